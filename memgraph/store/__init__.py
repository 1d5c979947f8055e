"""The store: commits, catching up, reading memories back, and repair."""

from memgraph.store.maintenance.repair import repair_store
from memgraph.store.store import AgentMemoryStore

__all__ = ["AgentMemoryStore", "repair_store"]
