"""Long-term memory for AI agents, kept as a graph."""
