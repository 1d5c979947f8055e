"""`ConsolidationPipeline`: build logs in, memories out; duplicates are merged, and a log counts once."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from memgraph.config import ConsolidationConfig
from memgraph.errors import InvalidInputError, ModelMismatchError, NotFoundError
from memgraph.extraction.default import default_extractor
from memgraph.extraction.model import ModelExtractor
from memgraph.extraction.rules import RuleExtractor
from memgraph.extraction.secrets import redact_any
from memgraph.lifecycle.batch import Batch
from memgraph.lifecycle.collect import collect
from memgraph.lifecycle.compress import builds_since, compress
from memgraph.lifecycle.contradictions import find_contradictions_of
from memgraph.lifecycle.duplicates import kin, nearest
from memgraph.lifecycle.equal import equal_memory
from memgraph.lifecycle.forgotten import is_forgotten
from memgraph.lifecycle.landmarks import is_landmark
from memgraph.lifecycle.merge import merge_event, merged
from memgraph.lifecycle.usage import RunUsage
from memgraph.lifecycle.vectors import vectors_of
from memgraph.model.build import BuildEventLog, Candidate, ExtractionResult
from memgraph.model.events import BuildConsolidated
from memgraph.model.ids import natural_id, source_id
from memgraph.model.memory import AgentMemory, MemoryType, Vector, parse_memory, to_vector
from memgraph.model.payload import Payload, WriteScope
from memgraph.model.results import CompressionResult, ConsolidationResult
from memgraph.ports import Embedder, Extractor, Row
from memgraph.store import AgentMemoryStore
from memgraph.store.appending import Write

_SWITCHED_OFF = "consolidation is switched off (consolidation_enabled)"


@dataclass(slots=True)
class _Build:
    """One log on its way through the pipeline."""

    log: BuildEventLog
    sha256: str
    known: Row | None
    extraction: ExtractionResult = field(default_factory=ExtractionResult)
    candidates: list[Candidate] = field(default_factory=list)
    consumed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    merged: int = 0
    forgotten: int = 0
    left_out: int = 0
    secrets: int = 0
    complete: bool = True
    started: float = 0.0

    @property
    def notice(self) -> str | None:
        """What the extractor has to tell, and what was left out."""
        said = f"{self.forgotten} left out, saying again what was forgotten" if self.forgotten else None
        return "; ".join(filter(None, [self.extraction.notice, said])) or None


class ConsolidationPipeline:
    """Extracts memories from build logs and keeps them.

    Parameters
    ----------
    store : AgentMemoryStore
    embedder : Embedder, optional
        Default: the store's, as it is at the time.
    extractor : Extractor, optional
        Default: what the store's setting ``extractor`` says.
    config : ConsolidationConfig, optional

    Attributes
    ----------
    usage : RunUsage
        What embedder and extractor ask of models' servers, in a run: each `consolidate` begins one; the sources that are
        read with this pipeline are another, until its `restart`.
    """

    def __init__(
        self,
        store: AgentMemoryStore,
        embedder: Embedder | None = None,
        extractor: Extractor | None = None,
        config: ConsolidationConfig | None = None,
    ) -> None:
        self._store = store
        self._given_embedder = embedder
        stored, given = store.vector_model, (self._embedder.name, self._embedder.dimension)
        if self._embedder.dimension and stored != given:
            raise ModelMismatchError(stored=stored, given=given)
        self._extractor = extractor or default_extractor(store.config, embedder=self._embedder)
        every = store.config.compression_cycle_interval
        self._config = config or ConsolidationConfig(compression_cycle_interval=every)
        self._unfinished: dict[str, ExtractionResult] = {}
        self.usage = RunUsage(lambda: (self._embedder, self._extractor))

    @property
    def _embedder(self) -> Embedder:
        return self._given_embedder or self._store.embedder  # the store may have changed to another one

    @property
    def is_quick(self) -> bool:
        """Whether the embedded rules find the memories, so that doing a log again costs little."""
        return isinstance(self._extractor, RuleExtractor)

    def consolidate(self, build_log: BuildEventLog | Mapping[str, Any]) -> ConsolidationResult:
        """Extract, embed, deduplicate, and merge or insert, in one commit.

        A log that was consolidated before changes nothing; a grown one adds its growth; one that ran out of time goes on
        where it stopped. Every so many builds (``compression_cycle_interval``) what was learned is compressed afterwards.

        Raises
        ------
        InvalidInputError
            The log, or a memory that the extractor proposes, is refused; nothing is stored.
        """
        self.usage.restart()
        result = self.consolidate_all([BuildEventLog.parse(build_log)])[0]
        also = self.compress_if_due()
        counts = {"memories_compressed": also.compressed, "memories_deleted": also.deleted, "usage": self.usage.total()}
        return result.model_copy(update=counts)

    def consolidate_all(
        self,
        build_logs: Sequence[BuildEventLog],
        *,
        also: Callable[[Sequence[ConsolidationResult]], Sequence[Payload]] = lambda _results: (),
    ) -> list[ConsolidationResult]:
        """Consolidate several logs in one commit, embedding all their memories in one batch.

        Parameters
        ----------
        also : callable
            Given the results, returns further events for the same commit, such as a reader's cursor.
        """
        builds = [self._opened(log) for log in build_logs]
        if not self._store.config.consolidation_enabled:
            return [self._result(build, notice=_SWITCHED_OFF) for build in builds]
        fresh = [build for build in builds if not self._is_done(build)]
        for build in fresh:
            self._extract(build)
        embedder = self._embedder
        self._embed(embedder, fresh)
        with self._store.exclusive():  # what is new and what is a duplicate must still be so at the commit
            self._store.check_embedder(embedder)  # the store may have changed its model meanwhile
            writes: list[Write] = []
            batch = Batch(self._store.now())
            for build in fresh:
                build.known = self._known(build.log)
                if self._is_done(build):
                    continue  # another process has done it meanwhile
                self._settle(build, batch, writes)
                writes.append(self._event(build))
            results = [self._result(build) for build in builds]
            self._store.commit("global", [*writes, *also(results)])
            find_contradictions_of(self._store, [one for build in fresh for one in build.added])
        self._unfinished = {build.sha256: build.extraction for build in fresh if not build.complete}
        return results

    def deduplicate(
        self,
        embedding: Vector | Sequence[float],
        type: MemoryType,
        *,
        project_id: str | None = None,
    ) -> AgentMemory | None:
        """Return the live memory of this type that is nearest, if its cosine reaches the threshold.

        Parameters
        ----------
        project_id : str or None
            None: in any project.
        """
        try:
            vector = to_vector(embedding)
        except ValueError as error:
            raise InvalidInputError(str(error), field="embedding", value=embedding) from None
        wanted = self._store.vector_model.dimension
        if not wanted:
            return None  # a store without vectors has none near this one
        if vector.size != wanted:
            raise InvalidInputError(f"must have {wanted} dimensions", field="embedding", value=vector.size)
        with self._store.reader.frozen():
            mask = self._store.reader.listed(type=type, project_id=project_id) & ~self._store.reader.superseded()
            return nearest(self._store, vector, mask, threshold=self._config.deduplication_threshold)[1]

    def merge(self, existing: AgentMemory, candidate: AgentMemory | Mapping[str, Any]) -> AgentMemory:
        """Merge a duplicate into a memory, commit that, and return the memory.

        Parameters
        ----------
        candidate : AgentMemory or mapping
            At least its `content`; the type is the existing memory's.
        """
        if isinstance(candidate, Mapping):
            candidate = parse_memory({"type": existing.type, **candidate})
        embedder = self._embedder
        if candidate.embedding is None and len(candidate.content) > len(existing.content):
            candidate = candidate.model_copy(update={"embedding": vectors_of(embedder, [candidate.content])[0]})
        with self._store.exclusive():
            self._store.check_embedder(embedder)
            found = self._store.get_memory(existing.id or "")
            if found is None:
                raise NotFoundError("memory", str(existing.id))
            now = self._store.now()
            after = merged(found, candidate, now, self._store.config.forgetting_curve)
            event = merge_event(found, after, candidate_id=candidate.id, now=now)
            rewritten = after.content != found.content and after.embedding is not None
            write: Write = (event, after.embedding) if rewritten else event  # type: ignore[assignment]
            scope: WriteScope = "task" if found.task_id else "global"
            self._store.commit(scope, [write], task_id=found.task_id)
            return self._store.read_memories([found.id or ""])[0]

    def compress(self, cycle_count: int = 0) -> CompressionResult:
        """Make generalisations of what was seen in three builds or more, then collect what has faded.

        Its sources stay. Run again when nothing has changed, it changes nothing.

        Parameters
        ----------
        cycle_count : int
            Builds so far: unless it is a multiple of ``compression_cycle_interval``, nothing is done. 0: now.
        """
        if cycle_count % self._config.compression_cycle_interval:
            return CompressionResult()
        if not self._store.config.consolidation_enabled:
            return CompressionResult(notice=_SWITCHED_OFF)
        model = self._extractor.language_model if isinstance(self._extractor, ModelExtractor) else None
        with self._store.batch():
            result = compress(self._store, embedder=self._embedder, model=model)
            collected = collect(self._store)
        return result.model_copy(update={"archived": collected.archived, "deleted": collected.deleted})

    def compress_if_due(self) -> CompressionResult:
        """Compress if so many builds have been consolidated since the last time as the setting says."""
        if not self._store.config.consolidation_enabled:
            return CompressionResult()
        is_due = builds_since(self._store) >= self._config.compression_cycle_interval
        return self.compress() if is_due else CompressionResult()

    def is_landmark(self, memory: AgentMemory) -> bool:
        """Tell whether a memory is never to be forgotten: its tags say so, or it alone tells of a failure; see `landmarks`."""
        return is_landmark(self._store, memory)

    def _opened(self, log: BuildEventLog) -> _Build:
        # before anything is cut or given to a model: half a secret would not be known for one
        log, secrets = redact_any(log) if self._store.config.redact_secrets else (log, 0)
        canonical = orjson.dumps(log.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS)
        return _Build(
            log, hashlib.sha256(canonical).hexdigest(), self._known(log), started=time.monotonic(), secrets=secrets
        )

    def _known(self, log: BuildEventLog) -> Row | None:
        return self._store.reader.record("Build", natural_id("build", log.build_id, project_id=log.project_id))

    @staticmethod
    def _is_done(build: _Build) -> bool:
        known = build.known
        return bool(known and known.get("is_complete") and known.get("log_sha256") == build.sha256)

    def _extract(self, build: _Build) -> None:
        # of a log that ran out of time, what was found then is known: a model may say something else, and costs again
        build.extraction = self._unfinished.get(build.sha256) or self._extractor.extract(build.log)
        consumed = set((build.known or {}).get("consumed_keys", ()))
        keyed = (
            Candidate(key=candidate.key or f"#{place}", memory=candidate.memory)
            for place, candidate in enumerate(build.extraction.candidates)
        )
        left = [self._completed(build.log, candidate) for candidate in keyed if candidate.key not in consumed]
        most = self._config.max_memories_per_extraction
        build.candidates, build.left_out = left[:most], max(0, len(left) - most)

    @staticmethod
    def _completed(log: BuildEventLog, candidate: Candidate) -> Candidate:
        """Fill in where a memory comes from; its id follows from that."""
        memory = candidate.memory
        updates = {
            "id": source_id(f"{log.project_id}\x1f{log.build_id}\x1f{candidate.key}", 0),
            "project_id": memory.project_id or log.project_id,
            "build_id": memory.build_id or log.build_id,
            "source_event_ids": memory.source_event_ids or [log.build_id],
            "evidence_build_ids": memory.evidence_build_ids or [log.build_id],
            "occurred_at": memory.occurred_at or getattr(memory, "event_date", None) or log.completed_at,
            "reason": memory.reason or "proposed by the extractor",
        }
        return Candidate(key=candidate.key, memory=memory.model_copy(update=updates))

    @staticmethod
    def _embed(embedder: Embedder, builds: Sequence[_Build]) -> None:
        """Embed the candidates of all builds in one batch."""
        lacking = [
            (build, place)
            for build in builds
            for place, candidate in enumerate(build.candidates)
            if candidate.memory.embedding is None
        ]
        vectors = vectors_of(embedder, [build.candidates[place].memory.content for build, place in lacking])
        for (build, place), vector in zip(lacking, vectors, strict=True):
            candidate = build.candidates[place]
            memory = candidate.memory.model_copy(update={"embedding": vector})
            build.candidates[place] = Candidate(key=candidate.key, memory=memory)

    def _settle(self, build: _Build, batch: Batch, writes: list[Write]) -> None:
        """Decide for each candidate: new, a duplicate, or forgotten. Out of time, the rest waits for the next run."""
        build.started = time.monotonic()  # the extraction and embedding of other builds are not its time
        build.consumed = list((build.known or {}).get("consumed_keys", ()))
        consumed = set(build.consumed)
        left = [candidate for candidate in build.candidates if candidate.key not in consumed]
        for place, candidate in enumerate(left):
            elapsed_ms = (time.monotonic() - build.started) * 1000
            if place and elapsed_ms > self._config.max_duration_ms:
                build.complete = False
                break
            memory = candidate.memory
            alike, duplicate = self._duplicate_of(memory, batch)
            threshold = self._config.deduplication_threshold
            if is_forgotten(self._store, memory, threshold=threshold, alike=alike):
                build.forgotten += 1
            elif duplicate:
                after = merged(duplicate, memory, batch.now, self._store.config.forgetting_curve)
                event = merge_event(duplicate, after, candidate_id=memory.id, now=batch.now)
                rewritten = after.content != duplicate.content and after.embedding is not None
                writes.append((event, after.embedding) if rewritten else event)  # type: ignore[arg-type]
                batch.touch(after)
                build.merged += 1
            elif not self._is_known(memory, batch):
                writes.append(memory)
                batch.add(memory)
                build.added.append(memory.id or "")
            build.consumed.append(candidate.key or "")

    def _duplicate_of(self, memory: AgentMemory, batch: Batch) -> tuple[float, AgentMemory | None]:
        """Return the nearest memory in force of equal type, project, privacy tier, trust class and outcome, and its cosine.

        Where one of two has no vector, they are the same only if their texts are.
        """
        mask = kin(self._store, memory)
        threshold = self._config.deduplication_threshold
        cosine, found = -1.0, None
        if memory.embedding is not None:
            stored = nearest(self._store, memory.embedding, mask, threshold=threshold, of=memory)
            near = stored, batch.nearest(memory, threshold)
            cosine, found = max(near, key=lambda pair: pair[0])
            found = found if cosine >= threshold else None
            mask &= ~self._store.reader.has_vector()
        if found is None:
            found = equal_memory(self._store, memory.content, mask) or batch.equal(memory)
            cosine = 1.0
        return (cosine, batch.touched.get(found.id or "", found)) if found else (-1.0, None)

    def _is_known(self, memory: AgentMemory, batch: Batch) -> bool:
        return memory.id in batch.touched or self._store.reader.index.slot(memory.id or "") >= 0

    def _event(self, build: _Build) -> BuildConsolidated:
        log, known = build.log, build.known or {}
        return BuildConsolidated(
            project_id=log.project_id,
            build_id=log.build_id,
            log_sha256=build.sha256,
            outcome=log.build_outcome,
            started_at=log.started_at,
            completed_at=log.completed_at,
            task_count=len(log.tasks),
            agents=sorted({task.agent_name for task in log.tasks}),
            consumed_keys=build.consumed,
            complete=build.complete,
            extracted=known.get("extracted", 0) + len(build.added),
            merged=known.get("merged", 0) + build.merged,
            extractor=build.extraction.extractor,
            consolidated_at=self._store.now(),
        )

    def _result(self, build: _Build, *, notice: str | None = None) -> ConsolidationResult:
        return ConsolidationResult(
            build_id=build.log.build_id,
            consolidated_at=self._store.now(),
            memories_extracted=len(build.added) + build.merged,
            memories_deduplicated=build.merged,
            memories_forgotten=build.forgotten,
            memories_left_out=build.left_out,
            secrets_redacted=build.secrets,
            new_memory_ids=build.added,
            duration_ms=(time.monotonic() - build.started) * 1000,
            complete=build.complete,
            notice=notice or build.notice,
            extraction_notice=build.extraction.notice,
        )
