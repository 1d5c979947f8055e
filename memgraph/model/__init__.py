"""What memgraph says: memories, links, events, builds, queries and results. Pure data, no input or output."""
