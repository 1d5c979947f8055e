"""Intake: consolidate a reader's builds batch by batch, committing each with the reader's cursor."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

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
_COUNTED = {
    "merged": "memories_deduplicated",
    "forgotten": "memories_forgotten",
    "left_out": "memories_left_out",
    "recorded": "records_kept",
}
_TOTALS = ("records", "builds", "extracted", "merged", "skipped")


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
    `usage.restart()` begins another. By default it is compressed once at the end, if the configured number of builds has come.
    Raises `SourceError` if the source cannot be read at all.
    """
    if not store.config.consolidation_enabled:
        notice = "nothing was read: consolidation is disabled (consolidation_enabled)"
        return IngestReport(source=reader.source_id, notice=notice)
    pipeline = pipeline or ConsolidationPipeline(store)
    run = _Run(store, reader, pipeline)
    pipeline.usage.begin_stage()
    total = reader.count() if progress else None
    most = BATCH_BUILDS if pipeline.is_quick else _BATCH_ASKED
    for batch in _batches(reader.records(run.cursor), most):
        run.consolidate(batch)
        if progress:
            progress(run.read, total)
    if progress:
        progress(run.read, total)
    run.embed(progress)
    report_budget(store, pipeline.usage.total())
    report = run.report(pipeline.compress_if_due() if compress else CompressionResult())
    counts = report.seconds, report.read, report.builds, report.extracted, report.merged, report.skipped
    logger.info("read a source in %.1f s, records %d, builds %d, memories %d, merged %d, skipped %d", *counts)
    return report


def _batches(records: Iterable[SourceRecord], most: int) -> Iterator[list[SourceRecord]]:
    batch: list[SourceRecord] = []
    tasks = 0
    for record in records:
        batch.append(record)
        tasks += len(record.build.tasks) if record.build else 0
        if len(batch) >= most or tasks >= _BATCH_TASKS:
            yield batch
            batch, tasks = [], 0
    if batch:
        yield batch


class _Run:
    """Counts of one run, and the totals that the journal keeps."""

    def __init__(self, store: AgentMemoryStore, reader: Reader, pipeline: ConsolidationPipeline) -> None:
        self._store, self._reader, self._pipeline = store, reader, pipeline
        self._source_id = reader.source_id
        self._known = store.reader.record("Source", natural_id("source", self._source_id)) or {}
        own = (one for one in store.reader.every_record("Source") if one["project_id"] == reader.project_id)
        self._is_alone = sum(one["kind"].startswith("git") for one in own) < 2
        # the thousands of commits of a new history are found by words within seconds; what was forgotten or replaced is known by meaning
        put_away = store.reader.listed(state="suppressed") | store.reader.superseded()
        self._embeds = bool(self._known or put_away.any()) or not reader.kind.startswith("git")
        self._started = time.monotonic()
        self._reasons, self._notices, self._counts = Counter[str](), Counter[str](), Counter[str]()
        self._kept = self.read = 0
        self.cursor: str | None = self._known.get("cursor")

    def consolidate(self, batch: Sequence[SourceRecord]) -> None:
        """Consolidate one batch and commit it with the cursor after it.

        While nothing at all could be read the cursor stays, so that the next run reports the reason again.
        """
        cursor, counts = batch[-1].cursor, self._counts
        built = [(record, record.build) for record in batch if record.build is not None]
        releases = {commit: name for record in batch for commit, name in record.releases.items()}
        # a name of one word may be somebody else's in another history of the project
        renamed = (item for record in batch for item in record.people.items())
        people = {name: person for name, person in renamed if self._is_alone or " " in name.strip()}
        records = sum(record.records for record in batch)
        self.read += records
        skipped = [record.skipped for record in batch if record.skipped is not None]
        counts.update(read=records, builds=len(built), skipped=len(skipped))
        for reason in skipped:
            if reason in self._reasons or len(self._reasons) < _REASONS_KEPT:
                self._reasons[reason] += 1
        kept: set[str] = set()
        is_first = True

        def cursor_event(results: Sequence[ConsolidationResult]) -> list[SourceRead]:
            nonlocal is_first
            for (record, log), result in zip(built, results, strict=True):
                if is_first and result.was_known:  # later, what was just consolidated is known
                    counts.update(known=1, builds=-1, read=-record.records)
                counts.update({name: getattr(result, field) for name, field in _COUNTED.items()})
                counts["extracted"] += len(result.new_memory_ids)
                if result.complete and not result.was_known:
                    counts["repeated"] += sum(task.repeats is not None for task in log.tasks)
                self._notices.update(filter(None, [result.extraction_notice]))
                kept.update([result.build_id] if result.memories_extracted else [])
            is_first, is_done = False, all(result.complete for result in results)
            if is_done:
                counts["secrets_redacted"] += sum(result.secrets_redacted for result in results)
            has_built = counts["builds"] + counts["known"] > 0
            return [self._event(cursor)] if cursor != self.cursor and is_done and has_built else []

        # a build that ran out of time is continued: the cursor never passes what was not consolidated
        logs, known = [log for _, log in built], (self._reader.project_id, releases, people)
        is_left = True
        while is_left:
            results = self._pipeline.consolidate_all(logs, also=cursor_event, known=known, embeds=self._embeds)
            is_left = not all(result.complete for result in results)
        self._kept += len(kept)
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
        notices = [
            f"of {many} builds: {notice}" if many > 1 else notice for notice, many in self._notices.most_common()
        ]
        more = len(notices) - _NOTICES_SHOWN
        said = [*notices[:_NOTICES_SHOWN], f"and {more} more notices" if more > 0 else None, compression.notice]
        builds = self._counts["builds"]
        return IngestReport(
            source=self._source_id,
            **self._counts,
            kept_share=self._kept / builds if builds else 0.0,
            reasons=dict(self._reasons),
            seconds=round(time.monotonic() - self._started, 3),
            compressed=compression.compressed,
            notice="; ".join(filter(None, said)) or None,
            usage=self._pipeline.usage.of_stage(),
        )

    def _event(self, cursor: str) -> SourceRead:
        here = {"records": self._counts["read"], **self._counts}
        totals = {name: int(self._known.get(name, 0)) + here.get(name, 0) for name in _TOTALS}
        return SourceRead(
            source_id=self._source_id,
            kind=self._reader.kind,
            locator=self._reader.locator,
            project_id=self._reader.project_id,
            cursor=cursor,
            read_at=self._store.now(),
            **totals,
        )
