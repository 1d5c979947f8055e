"""Purged lines: events whose payload was removed from the journal for good."""
