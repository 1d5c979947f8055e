"""Interfaces for people and for programs outside Python. No other folder imports them."""
