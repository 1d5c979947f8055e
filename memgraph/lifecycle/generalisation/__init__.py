"""Generalisations of what was seen in several builds."""
