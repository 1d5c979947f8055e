"""Commands for analysts."""
