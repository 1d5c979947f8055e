"""The HTTP server: operations as REST routes and MCP tools, pages for people, tokens that decide who calls."""
