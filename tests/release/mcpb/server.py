"""Starts the MCP server of memgraph: what the bundle's client runs with uv, which installs the dependencies first."""

import sys

from memgraph.interfaces.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["mcp"]
    main()
