"""Writing: validation, recording and signing."""
