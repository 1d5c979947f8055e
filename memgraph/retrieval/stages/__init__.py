"""The stages of retrieval, one module each."""
