"""Writing: validation, redaction, embedding, signing, appending."""
