"""Generalisation: what several builds have in common."""
