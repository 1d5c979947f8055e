"""The data model: memories, links, events, builds, queries and results. Pure data, no input or output."""
