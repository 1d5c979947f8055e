"""Forgetting: faded memories are archived, landmarks are kept."""
