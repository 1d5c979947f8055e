"""Readers of version control history."""
