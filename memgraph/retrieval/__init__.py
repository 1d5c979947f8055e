"""Retrieval: filter, seed, walk, rank, budget and explain the memories for a task."""

from memgraph.retrieval.retrieval import MemoryRetrieval

__all__ = ["MemoryRetrieval"]
