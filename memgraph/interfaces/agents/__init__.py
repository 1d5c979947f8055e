"""Coding agents: answers to their hooks, learning from their sessions, and connecting them."""
