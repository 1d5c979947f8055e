"""The built-in extractor: rules by kind of source."""
