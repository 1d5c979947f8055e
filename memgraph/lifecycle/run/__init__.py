"""Shared parts of lifecycle runs: changes since the last run, the committing runner, time limit, model usage."""
