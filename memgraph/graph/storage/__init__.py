"""The database file: access by one process at a time, and the check that it is unchanged since it was closed."""
