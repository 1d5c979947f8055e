"""Retrieval: filter, seed, walk, rank, budget and explain the memories for a task."""

from memgraph.retrieval.context.context import agent_context, task_context
from memgraph.retrieval.context.formats import create_enriched_system_prompt, format_context_for_prompt
from memgraph.retrieval.overview import project_overview
from memgraph.retrieval.retrieval import MemoryRetrieval

__all__ = [
    "MemoryRetrieval",
    "agent_context",
    "create_enriched_system_prompt",
    "format_context_for_prompt",
    "project_overview",
    "task_context",
]
