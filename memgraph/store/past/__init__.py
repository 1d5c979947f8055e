"""Read-only views of a store as of a point in time."""
