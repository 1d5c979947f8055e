"""MCP: the operations as tools of a server that an agent's client starts and talks to over its standard streams."""
