"""Detection and merging of duplicates."""
