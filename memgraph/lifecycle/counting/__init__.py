"""Rules that are counted over a history, with their counterexamples, and held against its last part."""
