"""Contradictions: detection, resolution, and facts that end or are replaced."""
