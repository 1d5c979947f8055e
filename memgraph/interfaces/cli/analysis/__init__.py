"""Commands for analysts: Cypher and named queries."""
