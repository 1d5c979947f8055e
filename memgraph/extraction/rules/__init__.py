"""The embedded extractor: rules by kind of source."""
