"""The engine in a process of its own, for queries from outside."""
