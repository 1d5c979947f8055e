"""How experience becomes memory, and what becomes of it: consolidation and intake, episodes and observations, sleep, collection."""

from memgraph.lifecycle.collect import collect
from memgraph.lifecycle.consolidate import ConsolidationPipeline
from memgraph.lifecycle.contradictions import find_contradictions
from memgraph.lifecycle.episodes import give_feedback, save_episode
from memgraph.lifecycle.foresee import foresee_collection
from memgraph.lifecycle.ingest import ingest
from memgraph.lifecycle.observations import save_observation
from memgraph.lifecycle.resolution import (
    decided_contradictions,
    dismiss_contradiction,
    open_contradictions,
    resolve_contradiction,
)
from memgraph.lifecycle.sleep import sleep, sleep_if_due

__all__ = [
    "ConsolidationPipeline",
    "collect",
    "decided_contradictions",
    "dismiss_contradiction",
    "find_contradictions",
    "foresee_collection",
    "give_feedback",
    "ingest",
    "open_contradictions",
    "resolve_contradiction",
    "save_episode",
    "save_observation",
    "sleep",
    "sleep_if_due",
]
