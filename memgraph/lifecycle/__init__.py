"""The memory lifecycle: intake and consolidation, learning from episodes, sleep, and collection."""

from memgraph.lifecycle.collection.collect import collect, preview_collection
from memgraph.lifecycle.contradictions.resolution import (
    decided_contradictions,
    dismiss_contradiction,
    open_contradictions,
    resolve_contradiction,
)
from memgraph.lifecycle.contradictions.search import find_contradictions
from memgraph.lifecycle.intake.consolidate import ConsolidationPipeline
from memgraph.lifecycle.intake.episodes import give_feedback, save_episode
from memgraph.lifecycle.intake.ingest import ingest
from memgraph.lifecycle.intake.observations import save_observation
from memgraph.lifecycle.sleep import sleep, sleep_if_due

__all__ = [
    "ConsolidationPipeline",
    "collect",
    "decided_contradictions",
    "dismiss_contradiction",
    "find_contradictions",
    "give_feedback",
    "ingest",
    "open_contradictions",
    "preview_collection",
    "resolve_contradiction",
    "save_episode",
    "save_observation",
    "sleep",
    "sleep_if_due",
]
