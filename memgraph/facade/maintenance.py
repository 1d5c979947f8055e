"""`MemGraph.maintenance`: the upkeep of a store, in one run or step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memgraph.lifecycle import ConsolidationPipeline, collect, preview_collection, sleep
from memgraph.lifecycle.errors import analyse_errors
from memgraph.model.base import Callback, checked
from memgraph.model.results.learning import CompressionResult, ErrorAnalysis, SleepReport
from memgraph.model.results.maintenance import CollectionResult, ResetResult, ResetScope
from memgraph.ports import Judge, Progress
from memgraph.store import AgentMemoryStore


@dataclass(frozen=True)
class Maintenance:
    """The upkeep of a store."""

    store: AgentMemoryStore
    consolidation: ConsolidationPipeline
    judge: Callable[[], Judge | None] = lambda: None

    def sleep(
        self, *, phases: Sequence[str] = (), max_seconds: float | None = None, progress: Progress | None = None
    ) -> SleepReport:
        """Run the phases of maintenance that have work to do, in their order.

        They expire and replace facts, merge duplicates and copies, generalise, extract rules from feedback, analyse errors, learn
        procedures, find contradictions, collect, and create work orders.

        Parameters
        ----------
        phases : sequence of str, optional
            Run only these: temporal, copies, near-duplicates, compress, feedback, errors, procedures, contradictions, collect, work-orders.
        max_seconds : float, optional
            Start no further step after this time. The report lists what is left, and the next sleep continues there.
        progress : callable, optional
            Called with (done, total) after each phase.

        Raises
        ------
        InvalidInputError
            A phase is unknown, or the time is negative.
        """
        checked(Callback, progress, "progress")
        judge = self.judge()
        model = self.consolidation.language_model
        return sleep(self.store, phases=phases, max_seconds=max_seconds, model=model, judge=judge, progress=progress)

    def compress(self) -> CompressionResult:
        """Generalise what at least three builds have in common, then collect faded memories; see `ConsolidationPipeline`."""
        return self.consolidation.compress()

    def analyse_errors(self) -> ErrorAnalysis:
        """Classify errors as the agent's own, external or of configuration, and record how to prevent repeated ones."""
        return analyse_errors(self.store)

    def collect(self, *, preview: bool = False, progress: Progress | None = None) -> CollectionResult:
        """Archive faded memories, apply the floors of landmarks, and summarise episodes that were not used for 30 days.

        Parameters
        ----------
        preview : bool
            Write nothing, and return a `CollectionPreview`: the memories that would be collected, and the recalls of the last 90 days
            that returned them.
        progress : callable, optional
            Called with (done, total).
        """
        checked(Callback, progress, "progress")
        return preview_collection(self.store) if preview else collect(self.store, progress=progress)

    def reset(self, scope: ResetScope, *, preview: bool = False) -> ResetResult:
        """Remove what was learned and what is kept for sessions ("memory"), or everything ("all"), from every view. Idempotent.

        ``memory`` keeps pinned memories, facts that somebody asked to keep (`remember`, observations, pins), and tasks; ``all`` keeps
        none of them. The store's id and keys, its settings and the journal's history stay in both cases. Only the owner can do it.

        Parameters
        ----------
        scope : {"memory", "all"}
        preview : bool
            Write nothing; return what would be removed.
        """
        return self.store.reset(scope, preview=preview)
