"""Who may call, on which store, and which answers are kept for repeated requests."""
