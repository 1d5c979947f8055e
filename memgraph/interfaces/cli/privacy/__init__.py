"""Commands that remove memories for good."""
