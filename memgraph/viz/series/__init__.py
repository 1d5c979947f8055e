"""Time series: numbers per bucket and group, computed from the history."""
