"""The database file: who has it open, and whether it is the one that was closed last."""
