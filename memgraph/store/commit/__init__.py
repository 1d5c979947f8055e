"""Writing: what is checked, recorded and signed."""
