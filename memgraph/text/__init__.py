"""Text utilities: truncation, sentences, safe rendering. Pure."""
