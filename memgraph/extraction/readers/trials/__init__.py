"""Readers of agent trials and trajectories."""
