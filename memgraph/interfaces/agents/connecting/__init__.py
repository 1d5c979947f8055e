"""Connecting an agent program: what is written, what was written, and taking exactly that back."""
