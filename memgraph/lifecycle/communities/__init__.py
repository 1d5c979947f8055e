"""Which episodes belong together."""
