"""Extraction with a language model, within a budget."""
