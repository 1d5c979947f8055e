"""Series over time."""
