"""The memory lifecycle: intake and consolidation, learning from episodes, sleep, and collection."""

from memgraph.lifecycle.collect import collect as collect, preview_collection as preview_collection
from memgraph.lifecycle.contradictions.resolution import (
    decided_contradictions as decided_contradictions,
    dismiss_contradiction as dismiss_contradiction,
    open_contradictions as open_contradictions,
    resolve_contradiction as resolve_contradiction,
)
from memgraph.lifecycle.contradictions.search import find_contradictions as find_contradictions
from memgraph.lifecycle.intake.consolidate import ConsolidationPipeline as ConsolidationPipeline
from memgraph.lifecycle.intake.ingest import ingest as ingest
from memgraph.lifecycle.intake.observations import (
    give_feedback as give_feedback,
    save_episode as save_episode,
    save_observation as save_observation,
)
from memgraph.lifecycle.sleep import sleep as sleep, sleep_if_due as sleep_if_due
