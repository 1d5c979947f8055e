"""The graph that answers Cypher: a copy of today's rows in an embedded Kùzu database."""
