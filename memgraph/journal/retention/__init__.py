"""Condenses archived segments: removes signatures, and the texts of deleted memories."""
