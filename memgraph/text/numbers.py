"""Numbers as texts write them."""

from __future__ import annotations

SUPERSCRIPT = str.maketrans({sign: f"^{digit}" for digit, sign in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")})
"""Writes powers with a caret, for `str.translate`: 10² is 10^2, not 102."""
