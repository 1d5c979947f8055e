"""Rules learned from user feedback on episodes."""
