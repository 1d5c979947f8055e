"""Backups: made while the store is in use, verified, restored into a new place."""
