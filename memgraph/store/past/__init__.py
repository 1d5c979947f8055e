"""A store as of a point in time."""
