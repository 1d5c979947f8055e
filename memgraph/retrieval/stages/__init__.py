"""Stages of retrieval, one per module."""
