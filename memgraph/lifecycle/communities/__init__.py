"""Communities of related episodes, found by shared tags (Louvain)."""
