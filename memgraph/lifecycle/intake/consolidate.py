"""`ConsolidationPipeline`: turn build logs into memories, merging duplicates and counting each log once."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from memgraph.config import ConsolidationConfig
from memgraph.errors import InvalidInputError, ModelMismatchError
from memgraph.extraction.llm.extractor import ModelExtractor, default_extractor
from memgraph.extraction.rules.extractor import RuleExtractor
from memgraph.lifecycle.collect import collect, is_landmark
from memgraph.lifecycle.dedup.near_duplicates import near_to
from memgraph.lifecycle.errors import analyse_errors
from memgraph.lifecycle.intake.build_run import BuildRun, Failures, Undone, with_fields
from memgraph.lifecycle.intake.settle import Pending, compared, redacted, settle
from memgraph.lifecycle.lessons import builds_since, compress
from memgraph.lifecycle.reconcile import linked_to
from memgraph.lifecycle.run import (
    RunUsage,
    TimeLimit,
    Timer,
    counts_of,
    report_budget,
    reported,
    vectors_in_time,
    vectors_of,
)
from memgraph.model.base import Callback, checked, checked_list
from memgraph.model.build import BuildEventLog, ExtractionResult
from memgraph.model.events.payload import Payload, WriteScope
from memgraph.model.ids import natural_id
from memgraph.model.memory import RECORD_SOURCES, AgentMemory, MemoryType, StoredMemory, Vector, id_of, parse_memory
from memgraph.model.results.learning import CompressionResult, ConsolidationResult
from memgraph.model.similarity import to_vector
from memgraph.ports import Embedder, Extractor, LanguageModel, Row
from memgraph.privacy import classified
from memgraph.store import AgentMemoryStore
from memgraph.store.commit.records import Write
from memgraph.text.calendar import in_words

_SWITCHED_OFF = "consolidation is switched off (consolidation_enabled)"


class ConsolidationPipeline:
    """Extracts memories from build logs and stores them.

    Parameters
    ----------
    store : AgentMemoryStore
    embedder : Embedder, optional
        Default: the store's current embedder.
    extractor : Extractor, optional
        Default: according to the store's setting ``extractor``.
    config : ConsolidationConfig, optional
    timer : callable, optional
        Returns the seconds of a monotonic clock, used for ``max_duration_ms``.

    Attributes
    ----------
    usage : RunUsage
        Use of model servers by embedder and extractor in a run: each `consolidate` begins a new run; the sources read
        with this pipeline form another one, until its `restart`.
    """

    def __init__(
        self,
        store: AgentMemoryStore,
        embedder: Embedder | None = None,
        extractor: Extractor | None = None,
        config: ConsolidationConfig | None = None,
        *,
        timer: Timer = time.monotonic,
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
        self._timer = timer
        self.usage = RunUsage(lambda: (self._embedder, self._extractor))

    @property
    def _embedder(self) -> Embedder:
        return self._given_embedder or self._store.embedder  # the store may have changed its embedder

    @property
    def is_quick(self) -> bool:
        """Whether the built-in rules extract the memories, so that repeating a log costs little."""
        return isinstance(self._extractor, RuleExtractor)

    @property
    def language_model(self) -> LanguageModel | None:
        """The language model that extracts, if one does."""
        return self._extractor.language_model if isinstance(self._extractor, ModelExtractor) else None

    def consolidate(self, build_log: BuildEventLog | Mapping[str, Any]) -> ConsolidationResult:
        """Extract, embed and deduplicate the memories of a log, and merge or insert them in one commit.

        A log that was consolidated before changes nothing; a grown one adds its growth; one that ran out of time
        continues where it stopped. Compression runs afterwards once per ``compression_cycle_interval`` builds.

        Raises
        ------
        InvalidInputError
            The log, or a memory that the extractor proposes, is invalid; nothing is stored.
        """
        self.usage.restart()
        result = self.consolidate_all([BuildEventLog.parse(build_log)])[0]
        also, usage = self.compress_if_due(), self.usage.total()
        report_budget(self._store, usage)
        counts = {"memories_compressed": also.compressed, "memories_deleted": also.deleted, "usage": usage}
        return result.model_copy(update=counts)

    def consolidate_all(
        self,
        build_logs: Sequence[BuildEventLog],
        *,
        also: Callable[[Sequence[ConsolidationResult]], Sequence[Payload]] | None = None,
        known: tuple[str, Mapping[str, str], Mapping[str, str]] = ("", {}, {}),
        embeds: bool = True,
    ) -> list[ConsolidationResult]:
        """Consolidate several logs in one commit, embedding all their memories together.

        When the time is up (``max_duration_ms``), what was embedded is stored, and the rest is left, in this order, to
        the next call with the same logs.

        Parameters
        ----------
        also : callable, optional
            Given the results, returns further events for the same commit, such as a reader's cursor.
        known : (str, mapping, mapping), optional
            A project, the first release of its commits, and whom names mean by now: memories that lack theirs get it.
        embeds : bool
            Whether to embed. Otherwise equal texts alone are duplicates, and `embed_awaiting` is left to the caller.
        """
        checked(Callback, also, "also")
        known, store = checked(tuple[str, Mapping[str, str], Mapping[str, str]], known, "known"), self._store
        builds = [self._opened(log) for log in checked_list(BuildEventLog, build_logs, "build_logs")]
        if not store.config.consolidation_enabled:
            return [build.result(store.now(), notice=_SWITCHED_OFF) for build in builds]
        fresh = [build for build in builds if not build.is_known]
        limit = TimeLimit(self._config.max_duration_ms, self._timer)
        failures = Failures(store)
        for place, build in enumerate(fresh):
            if place and limit.is_up:
                build.cut(0)
            else:
                self._extract(build, failures)
        embedder = self._embedder
        if embeds:
            self._embed(fresh, embedder, limit)
        with store.exclusive():  # new and duplicate must still be valid at the commit
            store.check_embedder(embedder)  # the store may have changed its model meanwhile
            pending, failures = Pending(store), Failures(store)
            undone = Undone(store.reader, fresh, known)
            by_build: dict[BuildRun | None, list[Write]] = {}
            for build in fresh:
                build.known = self._known(build.log)
                if not build.is_known:  # otherwise another process has consolidated it meanwhile
                    by_build[build] = [*self._settle(build, pending, failures)]
            new = [one for build in fresh for one in build.added]
            for by, event in undone.events({*new}, pending.now):
                by_build.setdefault(by, []).append(event)
            writes: list[Write] = []
            for by, own in by_build.items():  # what a build did comes before its own event, by which it is dated
                writes += own
                if by and by.is_decided and not by.is_known:
                    writes.append(by.event(store.now()))
            results = [build.result(store.now()) for build in builds]
            store.commit("global", [*writes, *(also(results) if also else ())], embeds=embeds)
            compared(store, new)
        self._unfinished = {one.sha256: one.extraction for one in fresh if one.is_extracted and not one.complete}
        return results

    def deduplicate(
        self, embedding: Vector | Sequence[float], type: MemoryType, *, project_id: str | None = None
    ) -> StoredMemory | None:
        """Return the nearest memory in force of this type, if its cosine reaches the threshold.

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
            return None  # no vectors to compare with
        if vector.size != wanted:
            raise InvalidInputError(f"must have {wanted} dimensions", field="embedding", value=vector.size)
        with self._store.reader.frozen():
            reader = self._store.reader
            mask = reader.listed(type=type, project_id=project_id) & ~reader.superseded()
            near = near_to(reader, vector, mask, self._config.deduplication_threshold)
            return next(iter(reader.read([*near][:1])), None)

    def merge(self, existing: StoredMemory, candidate: AgentMemory | Mapping[str, Any]) -> StoredMemory:
        """Merge a duplicate into a memory, commit, and return the memory.

        Parameters
        ----------
        candidate : AgentMemory or mapping
            At least its `content`; the type is that of the existing memory.
        """
        if not isinstance(existing, AgentMemory):
            raise InvalidInputError("must be a memory", field="existing", value=existing)
        candidate = parse_memory({"type": existing.type, **candidate} if isinstance(candidate, Mapping) else candidate)
        embedder = self._embedder
        if candidate.embedding is None and len(candidate.content) > len(existing.content):
            candidate = candidate.model_copy(update={"embedding": vectors_of(embedder, [candidate.content])[0]})
        with self._store.exclusive():
            self._store.check_embedder(embedder)
            found = self._store.reader.known(id_of(existing))
            scope: WriteScope = "task" if found.task_id else "global"
            self._store.commit(scope, [Pending(self._store).merge(found, candidate)], task_id=found.task_id)
            return self._store.reader.known(found.id)

    def compress(self, cycle_count: int = 0) -> CompressionResult:
        """Generalise what at least three builds have in common, errors among it, then collect faded memories.

        The sources are kept. Idempotent.

        Parameters
        ----------
        cycle_count : int
            Builds so far: nothing is done unless it is a multiple of ``compression_cycle_interval``. 0: run now.
        """
        if checked(int, cycle_count, "cycle_count") % self._config.compression_cycle_interval:
            return CompressionResult()
        if not self._store.config.consolidation_enabled:
            return CompressionResult(notice=_SWITCHED_OFF)
        with reported(self._store, "compress") as notes:
            errors = analyse_errors(self._store)  # errors of several builds, which `compress` leaves to it
            result = compress(self._store, self._embedder)
            collected = collect(self._store)
            result = result.model_copy(
                update={
                    "compressed": errors.created + result.compressed,
                    "updated": errors.updated + result.updated,
                    "new_memory_ids": errors.new_memory_ids + result.new_memory_ids,
                    "archived": collected.archived,
                    "deleted": collected.deleted,
                }
            )
            notes.counts = {**counts_of(collected), **counts_of(result)}
        return result

    def compress_if_due(self) -> CompressionResult:
        """Compress if the configured number of builds has been consolidated since the last compression."""
        if not self._store.config.consolidation_enabled:
            return CompressionResult()
        is_due = builds_since(self._store.reader) >= self._config.compression_cycle_interval
        return self.compress() if is_due else CompressionResult()

    def is_landmark(self, memory: AgentMemory) -> bool:
        """Return whether a memory is never forgotten: by its tags, or as the only record of a failure; see `landmarks`."""
        return is_landmark(self._store, parse_memory(memory))

    def _opened(self, log: BuildEventLog) -> BuildRun:
        log, secrets = redacted(self._store, log)
        canonical = orjson.dumps(log.content(), option=orjson.OPT_SORT_KEYS)
        return BuildRun(log, hashlib.sha256(canonical).hexdigest(), self._known(log), secrets)

    def _known(self, log: BuildEventLog) -> Row | None:
        return self._store.reader.record("Build", natural_id("build", log.build_id, project_id=log.project_id))

    def _extract(self, build: BuildRun, failures: Failures) -> None:
        # reuse the candidates of a log that ran out of time: a model may answer differently, and costs again
        began = self._timer()
        extraction = self._unfinished.get(build.sha256) or self._extractor.extract(build.log)
        found = {"candidates": failures.with_recoveries(build.log, extraction.candidates)}
        build.choose(extraction.model_copy(update=found), self._config.max_memories_per_extraction)
        for candidate in build.candidates:
            failures.note(build.log, candidate.memory)
        build.spent_s = self._timer() - began

    def _embed(self, builds: Sequence[BuildRun], embedder: Embedder, limit: TimeLimit) -> None:
        """Embed the candidates of all builds in order, and cut off those for which there is no time. Records get their vectors later."""
        lacking = [
            (build, place)
            for build in builds
            for place, memory in enumerate(one.memory for one in build.candidates)
            if memory.embedding is None and memory.source not in RECORD_SOURCES
        ]
        began, texts = self._timer(), [build.candidates[place].memory.content for build, place in lacking]
        vectors = vectors_in_time(embedder, texts, limit, self._timer)
        text_s = (self._timer() - began) / max(1, len(vectors))
        for (build, place), vector in zip(lacking, vectors, strict=False):
            build.candidates[place] = with_fields(build.candidates[place], {"embedding": vector})
            build.spent_s += text_s
        if len(vectors) < len(lacking):
            first, place = lacking[len(vectors)]
            first.cut(place)
            for later in builds[builds.index(first) + 1 :]:  # a duplicate is merged into what comes before it
                later.cut(0)

    def _settle(self, build: BuildRun, pending: Pending, failures: Failures) -> Iterator[Write]:
        """Decide for each candidate whether it is new, known or not wanted, and yield what is to be written."""
        began, threshold = self._timer(), self._config.deduplication_threshold
        build.consumed, decided = build.known_keys, set(build.known_keys)
        waiting = [one for one in reversed(build.candidates) if one.key not in decided]
        while waiting:
            candidate = waiting.pop()
            memory, is_record = classified(candidate.memory), candidate.memory.source in RECORD_SOURCES
            found = settle(self._store, memory, threshold=threshold, pending=pending)
            if not is_record:
                build.consumed.append(candidate.key or "")
                build.forgotten += found.is_left_out
            if found.state == "new":
                yield pending.add(memory)
                build.recorded += is_record
                build.added += [] if is_record else [id_of(memory)]
            elif found.state == "known" and found.memory:
                yield pending.merge(found.memory, memory)
                build.merged += 1
                waiting += build.record_beside(candidate)
            else:
                continue
            stays = pending.state_of(found.memory or memory)
            for one in failures.note(build.log, stays):
                pending.replaced.add(id_of(one))
                how = f"mended in {build.log.build_id} on {in_words(build.log.completed_at)}"
                yield linked_to(id_of(stays), "SUPERSEDES", id_of(one), how, self._store.now())
        build.spent_s += self._timer() - began
