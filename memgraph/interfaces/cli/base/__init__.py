"""Shared parts of all commands: options, opening a store, input and output."""
