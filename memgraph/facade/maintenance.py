"""`MemGraph.maintenance`: the upkeep of a store, in one run or step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memgraph.lifecycle import ConsolidationPipeline, collect, foresee_collection, sleep
from memgraph.lifecycle.errors.antipatterns import analyse_errors
from memgraph.model.base import Callback, checked
from memgraph.model.results.learning import CompressionResult
from memgraph.model.results.maintenance import CollectionResult
from memgraph.model.results.procedures import ErrorAnalysis
from memgraph.model.results.sleep import SleepReport
from memgraph.ports import Progress
from memgraph.store import AgentMemoryStore


@dataclass(frozen=True)
class Maintenance:
    """The upkeep of a store.

    Attributes
    ----------
    store : AgentMemoryStore
    consolidation : ConsolidationPipeline
    """

    store: AgentMemoryStore
    consolidation: ConsolidationPipeline

    def sleep(
        self, *, phases: Sequence[str] = (), max_seconds: float | None = None, progress: Progress | None = None
    ) -> SleepReport:
        """Let the store sleep: validate facts, merge, generalise, analyse errors, learn procedures, find contradictions, collect, make work orders.

        Parameters
        ----------
        phases : sequence of str, optional
            These alone: temporal, near-duplicates, compress, errors, procedures, contradictions, collect, work-orders.
        max_seconds : float, optional
            Start nothing more after this time; the report says what is left, and the next sleep continues with it.
        progress : callable, optional
            Called with (done, total) after each phase.

        Raises
        ------
        InvalidInputError
            There is no such phase, or the time is negative.
        """
        checked(Callback, progress, "progress")
        return sleep(self.store, phases=phases, max_seconds=max_seconds, progress=progress)

    def compress(self) -> CompressionResult:
        """Generalise what at least three builds have in common, then collect what has faded; see `ConsolidationPipeline`."""
        return self.consolidation.compress()

    def analyse_errors(self) -> ErrorAnalysis:
        """Tell the agent's own errors from those of services and settings, and say of repeated ones what prevents them."""
        return analyse_errors(self.store)

    def collect(self, *, preview: bool = False, progress: Progress | None = None) -> CollectionResult:
        """Archive what has faded, apply the floors of landmarks, summarise episodes that were not used for 30 days.

        Parameters
        ----------
        preview : bool
            Write nothing. The result is a `CollectionPreview`: what would be collected, and the recalls of the last 90 days
            that had returned it.
        progress : callable, optional
            Called with (done, total).
        """
        checked(Callback, progress, "progress")
        return foresee_collection(self.store) if preview else collect(self.store, progress=progress)
