"""The projection on disk: rows as nodes and edges in an embedded Kùzu graph."""
