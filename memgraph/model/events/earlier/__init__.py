"""Versions of events that are only read any more."""
