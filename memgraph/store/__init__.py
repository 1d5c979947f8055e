"""The store: commits, catching up, and reading memories back."""

from memgraph.store.store import AgentMemoryStore

__all__ = ["AgentMemoryStore"]
