"""The store: commits events, keeps the projections current, and reads memories."""

from memgraph.store.repair import repair_store as repair_store
from memgraph.store.store import AgentMemoryStore as AgentMemoryStore
