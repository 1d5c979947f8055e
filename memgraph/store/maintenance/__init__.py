"""Maintenance of a store: verification, repair, re-embedding, missing vectors."""
