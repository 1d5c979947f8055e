"""Anti-patterns learned from repeated errors."""
