"""One module per coding agent: how its hooks speak, and what connects it."""
