"""Maintenance of a store: verification, repair, re-embedding, waiting vectors."""
