"""Contradictions: detection and resolution."""
