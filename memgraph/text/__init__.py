"""Text utilities: truncation and safe rendering. Pure."""
