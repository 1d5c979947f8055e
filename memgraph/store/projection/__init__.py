"""Projections: keep rows and index up to date with the journal."""
