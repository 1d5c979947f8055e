"""Commands that learn."""
