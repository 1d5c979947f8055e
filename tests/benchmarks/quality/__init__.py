"""Measures what memories are worth, by independent readings of samples."""
