"""Commands that save and recover a store: backup, restoration, repair and migration."""
