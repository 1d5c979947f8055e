"""Failures of earlier builds, and what mends them: a later success of the same task, or in a session of the same error.

Such a success becomes a memory and supersedes the failures, so that recall gives it in their place. What fails again is a new failure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from memgraph.extraction.error_text import failure_fingerprint
from memgraph.extraction.rules.extractor import command_of, recovery_of, task_name
from memgraph.extraction.rules.findings import quoted_task
from memgraph.index.columns import OUTCOMES, TIERS, TRUST
from memgraph.lifecycle.dedup.duplicates import of_scope
from memgraph.lifecycle.evidence.evidence import strictness
from memgraph.model.build import BuildEventLog, Candidate
from memgraph.model.ids import canonical_name, natural_id
from memgraph.model.memory import RECORD_SOURCES, AgentMemory, EpisodicMemory, id_of
from memgraph.store import AgentMemoryStore

_SOURCES = frozenset({"build log", "ci log", "test report"})
"""Sources whose tasks are named alike in each build."""
_MOST_READ = 2_000


class Failures:
    """The failures that nothing has mended: those of a store, and those of builds that are read in order."""

    def __init__(self, store: AgentMemoryStore) -> None:
        self._store = store
        self._known: dict[str | None, list[EpisodicMemory]] = {}
        self._new: dict[str, EpisodicMemory] = {}
        self._ends: dict[tuple[str | None, str], str] = {}
        self.mended: set[str] = set()
        """Ids of those that have been mended meanwhile."""

    def with_recoveries(self, log: BuildEventLog, found: Sequence[Candidate]) -> list[Candidate]:
        """Return what was found in a build, with the recoveries from failures of earlier ones in place of what else their tasks say."""
        if log.source not in _SOURCES:
            return list(found)
        told = {what_failed(one.memory) for one in found}
        failed: defaultdict[str, list[EpisodicMemory]] = defaultdict(list)
        latest = reversed(self._before(log))
        for one in sorted(latest, key=lambda one: not one.errors_encountered):
            if (its := what_failed(one)) and its not in told:
                failed[its].append(one)
                if command := command_of(one):
                    failed[f"$ {command}"].append(one)
        made: dict[str | None, Candidate] = {}
        for task in log.tasks if failed else ():
            names = [task_name(task), *([quoted_task(f"Test {task.test}")] if task.test else [])]  # as reports have it
            keys = dict.fromkeys([*map(canonical_name, names), f"$ {' '.join(task.command.split())}"])
            for one in (one for key in keys for one in failed.get(key, ())):
                if task.outcome == "success" and what_failed(one) not in made:
                    made[what_failed(one)] = _quoting(recovery_of(log, task, one), one)
        events = {event for one in made.values() for event in one.memory.source_event_ids}
        others = (
            one for one in found if one.memory.type != "episodic" or events.isdisjoint(one.memory.source_event_ids)
        )
        return [*made.values(), *others]

    def note(self, log: BuildEventLog, memory: AgentMemory) -> Iterator[EpisodicMemory]:
        """Note a memory of a build, and yield the failures that it mends."""
        self._ends[log.project_id, log.build_id] = log.completed_at
        what = what_failed(memory)
        if what is None or not isinstance(memory, EpisodicMemory):
            return
        if memory.outcome == "negative":
            self._new[id_of(memory)] = memory
        elif memory.outcome == "positive" and memory.source not in RECORD_SOURCES:
            for one in self._before(log):
                if what_failed(one) == what and _may_replace(memory, one):
                    self.mended.add(id_of(one))
                    yield one

    def _before(self, log: BuildEventLog) -> list[EpisodicMemory]:
        """Return the failures of a project that were met before the end of a build, the last ones last."""
        every = {id_of(one): one for one in self._stored(log.project_id)} | self._new
        left = (one for key, one in every.items() if key not in self.mended and one.project_id == log.project_id)
        return [one for one in left if self._last(one) <= log.completed_at]

    def _stored(self, project: str) -> list[EpisodicMemory]:
        if project not in self._known:
            reader = self._store.reader
            index = reader.index
            mask = reader.listed(type="episodic") | (index.column("is_live") & index.column("is_record"))
            mask &= of_scope(self._store, "project", project) & ~reader.superseded()
            mask &= ~index.column("is_archived") & ~index.column("is_suppressed")
            slots = np.flatnonzero(mask & (index.column("outcome") == OUTCOMES.index("negative")))
            slots = slots[np.argsort(index.column("seq")[slots], kind="stable")][-_MOST_READ:]
            read = self._store.read_memories([index.ids.names[slot] for slot in slots.tolist()])
            self._known[project] = [one for one in read if isinstance(one, EpisodicMemory) and what_failed(one)]
        return self._known[project]

    def _last(self, failure: EpisodicMemory) -> str:
        """Return when a failure was met last."""
        project, times = failure.project_id, []
        for build in failure.evidence_build_ids:
            if (project, build) not in self._ends:
                row = self._store.reader.record("Build", natural_id("build", build, project_id=project)) or {}
                self._ends[project, build] = row.get("completed_at", "")
            times.append(self._ends[project, build])
        return max(times, default=failure.occurred_at or "")


def what_failed(memory: AgentMemory) -> str | None:
    """Return what a failure and its recovery have in common: the task, or the error and the program; None for other memories."""
    tried = getattr(memory, "tried", None)
    if not tried:
        return None
    if tried.startswith("“"):
        return canonical_name(tried).replace(" failed”", "”")
    errors = memory.errors_encountered if isinstance(memory, EpisodicMemory) else []
    return f"{failure_fingerprint(errors[0].message)} {tried.strip('`').split(' ', 1)[0]}" if errors else None


def _quoting(recovery: Candidate, failure: AgentMemory) -> Candidate:
    """Return a recovery that is as private as the failure whose error it quotes, and no more trusted."""
    both = [{"privacy_tier": one.privacy_tier, "trust_class": one.trust_class} for one in (recovery.memory, failure)]
    return recovery.model_copy(update={"memory": recovery.memory.model_copy(update=strictness(both))})


def _may_replace(by: AgentMemory, failure: AgentMemory) -> bool:
    """Return whether a recovery is as visible and as trusted as the failure it replaces, and the failure is not pinned."""
    is_seen = TIERS.index(by.privacy_tier) <= TIERS.index(failure.privacy_tier) and failure.task_id is None
    return is_seen and TRUST.index(by.trust_class) <= TRUST.index(failure.trust_class) and not failure.is_pinned
