"""From a task to the memories that help: filter, seed, walk, rank, budget, explain."""

from memgraph.retrieval.retrieval import MemoryRetrieval

__all__ = ["MemoryRetrieval"]
