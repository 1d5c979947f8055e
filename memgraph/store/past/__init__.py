"""A store as it was at a moment."""
