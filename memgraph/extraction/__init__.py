"""Extraction: readers of sources, rules and language models that extract memories, redaction of secrets, the annotator.

Its parts are imported from their modules: a command that only reads needs few of them.
"""
