"""Runs users' queries in an engine in a separate process."""
