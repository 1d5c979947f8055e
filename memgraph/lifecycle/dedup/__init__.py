"""Duplicates: found, compared and merged."""
