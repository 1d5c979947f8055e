"""Readers of agents' trials and trajectories."""
