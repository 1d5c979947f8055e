"""Rendering of a recall as text for an agent."""
