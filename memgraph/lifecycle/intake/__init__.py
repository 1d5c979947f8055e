"""Intake: turn build logs, observations and episodes into memories."""
