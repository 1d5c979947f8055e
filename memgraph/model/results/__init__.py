"""Results of the store's operations."""
