"""Corrections by a person: edits, merging, splitting and undoing, and where a memory and each of its changes come from."""
