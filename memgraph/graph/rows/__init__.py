"""Rows on their way into the engine and back."""
