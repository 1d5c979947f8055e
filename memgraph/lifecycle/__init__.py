"""How experience becomes memory: consolidation and intake, episodes and observations."""

from memgraph.lifecycle.consolidate import ConsolidationPipeline
from memgraph.lifecycle.episodes import give_feedback, save_episode
from memgraph.lifecycle.ingest import ingest
from memgraph.lifecycle.observations import save_observation

__all__ = ["ConsolidationPipeline", "give_feedback", "ingest", "save_episode", "save_observation"]
