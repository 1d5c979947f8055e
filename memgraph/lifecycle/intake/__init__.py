"""Intake: build logs, observations and episodes become memories."""
