"""Exports of the graph and of series."""
