"""Intake: consolidate a reader's builds batch by batch, committing each with the reader's cursor."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from memgraph.errors import EmbeddingError
from memgraph.extraction.readers import Reader, SourceRecord
from memgraph.lifecycle.intake.consolidate import ConsolidationPipeline
from memgraph.lifecycle.run import report_budget
from memgraph.logs import logger_of
from memgraph.model.events.records import SourceRead
from memgraph.model.ids import natural_id
from memgraph.model.results.learning import CompressionResult, ConsolidationResult, IngestReport
from memgraph.ports import Progress
from memgraph.store import AgentMemoryStore

logger = logger_of(__name__)

BATCH_BUILDS = 256
_BATCH_TASKS = 512
"""Builds or tasks per commit: an interruption loses at most the work on these, nothing committed. A commit costs the
graph the same 0.2 s for ten memories as for a hundred."""
_BATCH_ASKED = 4
"""The same for extractors other than the rules: losing their replies costs more than a commit."""
_NOTICES_SHOWN = 3
_REASONS_KEPT = 100
"""Maximum number of reasons for skipping that are reported; further ones are only counted."""


def ingest(
    store: AgentMemoryStore,
    reader: Reader,
    *,
    pipeline: ConsolidationPipeline | None = None,
    progress: Progress | None = None,
    compress: bool = True,
) -> IngestReport:
    """Read a source from the last run's cursor on, and consolidate it.

    After an interruption at any moment, the next run continues after the last committed batch, with the same final
    result. Repeated input adds nothing. Sources read by one pipeline form one run with one model budget; its
    `usage.restart()` begins another.

    Parameters
    ----------
    pipeline : ConsolidationPipeline, optional
        Default: a new one, which begins a new run.
    compress : bool
        Whether to compress once at the end if the configured number of builds has come; False if another source
        follows.

    Returns
    -------
    IngestReport
        Counts of this run.

    Raises
    ------
    SourceError
        The source cannot be read at all.
    """
    if not store.config.consolidation_enabled:
        notice = "nothing was read: consolidation is disabled (consolidation_enabled)"
        return IngestReport(source=reader.source_id, notice=notice)
    pipeline = pipeline or ConsolidationPipeline(store)
    run = _Run(store, reader, pipeline)
    pipeline.usage.begin_stage()
    total = reader.count() if progress else None
    batch: list[SourceRecord] = []
    tasks, most = 0, BATCH_BUILDS if pipeline.is_quick else _BATCH_ASKED
    for record in reader.records(run.cursor):
        batch.append(record)
        tasks += len(record.build.tasks) if record.build else 0
        if len(batch) >= most or tasks >= _BATCH_TASKS:
            run.consolidate(batch)
            batch, tasks = [], 0
            if progress:
                progress(run.read, total)
    if batch:
        run.consolidate(batch)
    if progress:
        progress(run.read, total)
    run.embed(progress)
    report_budget(store, pipeline.usage.total())
    report = run.report(pipeline.compress_if_due() if compress else CompressionResult())
    logger.info(
        "read a source in %.1f s, records %d, builds %d, memories %d, merged %d, skipped %d",
        report.seconds,
        report.read,
        report.builds,
        report.extracted,
        report.merged,
        report.skipped,
    )
    return report


class _Run:
    """Counts of one run, and the totals that the journal keeps."""

    def __init__(self, store: AgentMemoryStore, reader: Reader, pipeline: ConsolidationPipeline) -> None:
        self._store = store
        self._reader = reader
        self._source_id = reader.source_id
        self._pipeline = pipeline
        self._known = store.reader.record("Source", natural_id("source", self._source_id)) or {}
        self._started = time.monotonic()
        self._reasons: Counter[str] = Counter()
        self._notices: Counter[str] = Counter()
        self.cursor: str | None = self._known.get("cursor")
        self.left_out = 0
        self.read = self.builds = self.kept = self.extracted = self.merged = self.forgotten = self.skipped = (
            self.secrets
        ) = 0
        self.known = self.read_again = self.recorded = 0

    def consolidate(self, batch: Sequence[SourceRecord]) -> None:
        """Consolidate one batch and commit it with the cursor after it.

        While nothing at all could be read the cursor stays, so that the next run reports the reason again.
        """
        cursor = batch[-1].cursor
        for record in batch:
            self.read += record.records
            if record.skipped is not None:
                self.skipped += 1
                if record.skipped in self._reasons or len(self._reasons) < _REASONS_KEPT:
                    self._reasons[record.skipped] += 1
        built = [record for record in batch if record.build is not None]
        logs = [record.build for record in built if record.build is not None]
        releases = {commit: name for record in batch for commit, name in record.releases.items()}
        released = (self._reader.project_id, releases)
        self.builds += len(logs)
        changed = cursor != self.cursor
        kept: set[str] = set()
        is_continued = False

        def cursor_event(results: Sequence[ConsolidationResult]) -> list[SourceRead]:
            nonlocal is_continued
            if not is_continued:  # later, what was just consolidated is known
                again = [record for record, result in zip(built, results, strict=True) if result.was_known]
                self.known += len(again)
                self.read_again += sum(record.records for record in again)
                is_continued = True
            self.extracted += sum(len(result.new_memory_ids) for result in results)
            self.merged += sum(result.memories_deduplicated for result in results)
            self.forgotten += sum(result.memories_forgotten for result in results)
            self.left_out += sum(result.memories_left_out for result in results)
            self.recorded += sum(result.records_kept for result in results)
            self._notices.update(filter(None, (result.extraction_notice for result in results)))
            kept.update(result.build_id for result in results if result.memories_extracted)
            is_done = all(result.complete for result in results)
            if is_done:
                self.secrets += sum(result.secrets_redacted for result in results)
            return [self._event(cursor)] if changed and is_done and self.builds else []

        # a build that ran out of time is continued: the cursor never passes what was not consolidated
        while not all(
            result.complete for result in self._pipeline.consolidate_all(logs, also=cursor_event, released=released)
        ):
            pass
        self.kept += len(kept)
        self.cursor = cursor

    def embed(self, progress: Progress | None) -> None:
        """Make the vectors that are missing: what lacks one is found by its words already. Whatever is left is made by the next run, or by `memgraph embed`."""
        if self._store.embedder.dimension:
            try:
                self._store.embed_awaiting(progress=progress)
            except EmbeddingError as error:
                self._notices[f"what has no vector is found by its words only, until `memgraph embed`: {error}"] += 1

    def report(self, compression: CompressionResult) -> IngestReport:
        """Return the counts of this run."""
        return IngestReport(
            source=self._source_id,
            read=self.read - self.read_again,
            builds=self.builds - self.known,
            known=self.known,
            extracted=self.extracted,
            merged=self.merged,
            forgotten=self.forgotten,
            left_out=self.left_out,
            recorded=self.recorded,
            skipped=self.skipped,
            secrets_redacted=self.secrets,
            kept_share=self.kept / (self.builds - self.known) if self.builds > self.known else 0.0,
            reasons=dict(self._reasons),
            seconds=round(time.monotonic() - self._started, 3),
            compressed=compression.compressed,
            notice="; ".join(filter(None, [self._notice(), compression.notice])) or None,
            usage=self._pipeline.usage.of_stage(),
        )

    def _notice(self) -> str | None:
        """Return the extractor's notices, each once with the number of builds it concerns."""
        notices = [
            f"of {many} builds: {notice}" if many > 1 else notice for notice, many in self._notices.most_common()
        ]
        more = len(notices) - _NOTICES_SHOWN
        return "; ".join([*notices[:_NOTICES_SHOWN], *([f"and {more} more notices"] if more > 0 else [])]) or None

    def _event(self, cursor: str) -> SourceRead:
        def total(name: str, here: int) -> int:
            return int(self._known.get(name, 0)) + here

        return SourceRead(
            source_id=self._source_id,
            kind=self._reader.kind,
            locator=self._reader.locator,
            project_id=self._reader.project_id,
            cursor=cursor,
            records=total("records", self.read - self.read_again),
            builds=total("builds", self.builds - self.known),
            extracted=total("extracted", self.extracted),
            merged=total("merged", self.merged),
            skipped=total("skipped", self.skipped),
            read_at=self._store.now(),
        )
