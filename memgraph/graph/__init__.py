"""The projection on disk: rows stored as nodes and edges in an embedded Kùzu graph."""
