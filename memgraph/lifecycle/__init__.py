"""How experience becomes memory, and what becomes of it: consolidation and intake, episodes and observations, collection."""

from memgraph.lifecycle.collect import collect
from memgraph.lifecycle.consolidate import ConsolidationPipeline
from memgraph.lifecycle.episodes import give_feedback, save_episode
from memgraph.lifecycle.foresee import foresee_collection
from memgraph.lifecycle.ingest import ingest
from memgraph.lifecycle.observations import save_observation

__all__ = [
    "ConsolidationPipeline",
    "collect",
    "foresee_collection",
    "give_feedback",
    "ingest",
    "save_episode",
    "save_observation",
]
