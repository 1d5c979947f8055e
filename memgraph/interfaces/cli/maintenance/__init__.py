"""Commands that look after a store."""
