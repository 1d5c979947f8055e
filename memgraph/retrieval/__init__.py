"""Retrieval: filter, seed, walk, rank, budget and explain the memories for a task."""

from memgraph.retrieval.context.context import agent_context as agent_context, task_context as task_context
from memgraph.retrieval.context.formats import (
    create_enriched_system_prompt as create_enriched_system_prompt,
    format_context_for_prompt as format_context_for_prompt,
)
from memgraph.retrieval.overview import project_overview as project_overview
from memgraph.retrieval.retrieval import MemoryRetrieval as MemoryRetrieval
