"""Writes rows to the engine and reads them back."""
