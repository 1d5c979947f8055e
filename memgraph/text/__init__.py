"""Texts: cutting them and rendering them safely. Pure."""
