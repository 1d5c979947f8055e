"""Exports of the graph (GraphML, node-link JSON) and of series (Parquet)."""
