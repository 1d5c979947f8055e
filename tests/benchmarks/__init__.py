"""Benchmarks: see README.md."""
