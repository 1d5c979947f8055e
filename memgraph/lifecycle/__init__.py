"""How experience becomes memory: consolidation and intake."""

from memgraph.lifecycle.consolidate import ConsolidationPipeline
from memgraph.lifecycle.ingest import ingest

__all__ = ["ConsolidationPipeline", "ingest"]
