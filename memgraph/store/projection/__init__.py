"""Projections: keep graph and index up to date with the journal."""
