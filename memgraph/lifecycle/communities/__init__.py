"""Communities of related episodes."""
