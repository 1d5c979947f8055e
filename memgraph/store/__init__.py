"""The store: commits events, keeps the projections current, and reads memories."""

from memgraph.store.store import AgentMemoryStore as AgentMemoryStore
