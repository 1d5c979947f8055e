"""Procedures learned from repeated solutions."""
