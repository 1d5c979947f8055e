"""Commands that maintain a store."""
