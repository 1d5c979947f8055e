"""Keeps graph and index where the journal is."""
