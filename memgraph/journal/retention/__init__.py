"""Retention: what is left of archived events after the retention days, and writing it in their place."""
