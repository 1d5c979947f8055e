"""Rules learned from what users say about episodes."""
