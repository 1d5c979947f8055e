"""Purging: memories and their words are removed for good, from the journal and from everything made from it."""
