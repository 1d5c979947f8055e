"""Forgetting: what has faded is archived, landmarks stay."""
