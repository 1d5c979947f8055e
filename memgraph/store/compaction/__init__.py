"""Compaction: a signed baseline of the state at a commit, before which segments are archived."""
