"""Verification of statements against the source that they name as evidence."""
