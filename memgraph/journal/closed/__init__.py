"""Closed segments: their compressed form, and the signed manifest that names them."""
