"""Input of compression: the episodes in force, and the existing generalisations of episodes.

A *scope* is a project and a task: episodes of a task are never mixed with those outside it, nor those of two projects.
Only scopes that have changed since the last run are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memgraph.index.index import RELATION_CODE, Index
from memgraph.lifecycle.communities.lineage import are_kin
from memgraph.lifecycle.evidence.evidence import Deletions, evidence_of, is_true, sources_of
from memgraph.lifecycle.evidence.retirement import was_retired
from memgraph.lifecycle.evidence.runs import one_build_a_run
from memgraph.lifecycle.evidence.trials import task_of
from memgraph.lifecycle.run.changes import MOST_EVENTS, Watch, changes_after, expired, last_run
from memgraph.model.events.memories import MemoryReembedded
from memgraph.model.events.records import COMPRESSION, FADED, AccessRecorded
from memgraph.model.memory import MEMORY_TYPES
from memgraph.ports import Row
from memgraph.store.query import Reader

SOURCE = "compression"
"""The `source` of generalisations made by compression."""
WATCH = Watch(
    (AccessRecorded, MemoryReembedded),
    frozenset(
        "floor archive_summary relevance_anchor relevance_at updated_at is_pinned embedding_model embedded_at".split()
    ),
)
"""Events that can change generalisations, not only the use or state of a memory."""

Mask = NDArray[np.bool_]
Scope = tuple[str | None, str | None]
Slots = NDArray[np.int64]


@dataclass(slots=True)
class Generalisation:
    """An existing generalisation made by compression.

    Attributes
    ----------
    live : set of str
        Its linked episodes that are in force.
    faded : list of Row
        Its archived or superseded episodes: what they say is still true.
    withdrawn : list of Row
        Its episodes that were forgotten or are no longer true, so they are no longer evidence.
    collected : set of str
        Its episodes that were deleted because they had faded: still covered by it.
    deleted : list of Row
        Its episodes that a user or agent deleted, so they are no longer evidence.
    others : set of str
        Its other linked memories: those with another outcome, such as the trial that solved the task.
    blocks : bool
        Whether a user or agent hid or deleted the generalisation itself. It is then not created again while most episodes of a
        community were its own, however many builds they come from.
    """

    row: Row
    live: set[str] = field(default_factory=set)
    faded: list[Row] = field(default_factory=list)
    withdrawn: list[Row] = field(default_factory=list)
    collected: set[str] = field(default_factory=set)
    deleted: list[Row] = field(default_factory=list)
    others: set[str] = field(default_factory=set)
    blocks: bool = False

    @property
    def lost(self) -> list[Row]:
        """Its episodes that are no longer evidence: no text may repeat statements found only in them."""
        return [*self.withdrawn, *self.deleted]

    def evidence_besides(self, live: list[Row]) -> frozenset[str]:
        """Return its evidence from sources other than episodes in force; `live` are its own ones among these."""
        kept = {key for row in self.faded for key in evidence_of(row)}
        if self.collected:
            known = set(self.row.get("evidence_build_ids", ()))
            kept |= known - {key for row in [*live, *self.lost] for key in evidence_of(row)}
            if not known:  # they had no builds
                kept |= {f"memory {memory_id}" for memory_id in self.collected}
        return frozenset(kept)


@dataclass(slots=True)
class Experience:
    """The episodes of a scope and an outcome, in id order, and the generalisations derived from them.

    Attributes
    ----------
    solved : mapping
        Successful trials of the scope in any state, by their task (`trials.task_of`).
    """

    scope: Scope
    outcome: str
    episodes: list[Row] = field(default_factory=list)
    in_force: list[Generalisation] = field(default_factory=list)
    put_away: list[Generalisation] = field(default_factory=list)
    solved: Mapping[str, Sequence[Row]] = field(default_factory=dict)


def changed_scopes(reader: Reader, now: str, run: Row | None = None) -> set[tuple[int, int]]:
    """Return the scopes, as the index's codes of project and task, that have changed since a run: by default compression's last."""
    index = reader.index
    project, task = index.column("project"), index.column("task")
    run = last_run(reader, COMPRESSION) if run is None else run
    everywhere = index.memories() & (index.column("type") != MEMORY_TYPES.index("procedural"))
    since = run.get("seq", 0)
    if (
        not since or index.offset.seq - since > MOST_EVENTS
    ):  # reading all scopes is cheaper than finding the changed ones
        slots = np.flatnonzero(everywhere)
    else:
        changes = next(changes_after(reader, since, WATCH.touched))
        found = [index.ids.find(memory_id) for memory_id in changes.touched]
        if -1 in found:  # one was deleted, and its scope is unknown
            slots = np.flatnonzero(everywhere)
        else:
            slots = np.unique(
                np.concatenate([found, _replaced_by(index, found), expired(index, run, now)]).astype(np.int64)
            )
    return set(zip(project[slots].tolist(), task[slots].tolist(), strict=True))


def _replaced_by(index: Index, slots: list[int]) -> Slots:
    newer, older = index.links.pairs(RELATION_CODE["SUPERSEDES"])
    return np.asarray(older[np.isin(newer, slots)], dtype=np.int64)


def read_experience(reader: Reader, scopes: set[tuple[int, int]], now: str) -> list[Experience]:
    """Return the episodes and generalisations of some scopes, grouped by scope."""
    index = reader.index
    if not scopes:
        return []
    pairs = np.stack([index.column("project"), index.column("task")], axis=1).astype(np.int64)
    key = pairs[:, 0] * (1 << 32) + pairs[:, 1]
    wanted = np.isin(key, [project * (1 << 32) + task for project, task in scopes])
    kind = index.column("type")
    live = index.column("is_live") & wanted & (kind != MEMORY_TYPES.index("procedural"))
    slots = np.flatnonzero(live)
    found_rows = one_build_a_run(reader, reader.rows([index.ids.names[slot] for slot in slots]))
    rows = {row["id"]: row for row in found_rows}
    in_force = reader.listed() & ~reader.superseded()
    found: dict[tuple[Scope, str], Experience] = {}
    for memory_id in sorted(rows):
        row = rows[memory_id]
        is_generalisation = row["type"] == "semantic" and row.get("source") == SOURCE
        if not is_generalisation and row["type"] != "episodic":
            continue
        scope, outcome = (row.get("project_id"), row.get("task_id")), row.get("outcome", "unknown")
        experience = found.setdefault((scope, outcome), Experience(scope, outcome))
        slot = index.slot(memory_id)
        if not is_generalisation:
            if in_force[slot]:
                experience.episodes.append(row)
        elif in_force[slot]:
            experience.in_force.append(_known(index, row, rows, in_force, now))
        elif not _is_history(index, row, rows):
            experience.put_away.append(_known(index, row, rows, in_force, now))
    deletions = Deletions(reader)
    _separate_deleted(deletions, [known for experience in found.values() for known in experience.in_force])
    _note_deleted(deletions, found, now)
    _note_solved(rows.values(), found)
    ordered = sorted(found.items(), key=lambda item: tuple(part or "" for part in (*item[0][0], item[0][1])))
    return [experience for _, experience in ordered]


def _separate_deleted(deletions: Deletions, known: Sequence[Generalisation]) -> None:
    """Separate missing episodes into those collected after they had faded and those deleted by a user or agent."""
    deleted = deletions.deleted_by_user(memory_id for one in known for memory_id in one.collected)
    rows = deletions.rows(deleted)
    for one in known:
        one.deleted = [rows.get(memory_id, {"id": memory_id}) for memory_id in sorted(one.collected & deleted)]
        one.collected -= deleted


def _note_deleted(deletions: Deletions, found: Mapping[tuple[Scope, str], Experience], now: str) -> None:
    """Record deleted generalisations. One deleted by a user or agent blocks new ones like it; one deleted as faded does not.

    One that was already superseded or retired when it was deleted blocks nothing.
    """
    for row, reason in deletions.of(SOURCE):
        experience = found.get(((row.get("project_id"), row.get("task_id")), row.get("outcome", "unknown")))
        if experience is None or row.get("invalid_at", "9999") <= now:
            continue
        episodes = set(row.get("source_event_ids", ()))
        if not any(are_kin(len(one.live & episodes), one.live, episodes) for one in experience.in_force):
            experience.put_away.append(Generalisation(row, live=episodes, blocks=reason != FADED))


def _note_solved(rows: Iterable[Row], found: Mapping[tuple[Scope, str], Experience]) -> None:
    """Note in every scope which trials solved which task."""
    solved: dict[Scope, dict[str, list[Row]]] = {}
    for row in rows:
        if row.get("outcome") == "positive" and (task := task_of(row)):
            solved.setdefault((row.get("project_id"), row.get("task_id")), {}).setdefault(task, []).append(row)
    for (scope, _), experience in found.items():
        experience.solved = solved.get(scope, {})


def _known(index: Index, row: Row, rows: dict[str, Row], in_force: Mask, now: str) -> Generalisation:
    known = Generalisation(row)
    known.collected = {one for one in row.get("source_event_ids", ()) if index.slot(one) < 0}
    linked = sources_of(index, row["id"]).intersection(
        index.supporting_ids(row["id"])
    )  # quoted memories are no evidence
    for memory_id in sorted(linked):
        source = rows.get(memory_id)
        if source is None:
            continue
        if source.get("outcome", "unknown") != row.get("outcome", "unknown"):
            known.others.add(memory_id)
        elif in_force[index.slot(memory_id)]:
            known.live.add(memory_id)
        elif not is_true(source, now):
            known.withdrawn.append(source)
        else:
            known.faded.append(source)
    known.blocks = not is_true(row, now) or _is_replaced(index, row["id"])
    return known


def _is_history(index: Index, row: Row, rows: dict[str, Row]) -> bool:
    """Return whether compression itself has retired or superseded a generalisation."""
    if was_retired(row):
        return True
    others, weights = index.links.get(index.slot(row["id"]))
    newer = [rows.get(index.ids.names[slot]) for slot in others[weights == -RELATION_CODE["SUPERSEDES"]]]
    return any(one is not None and one.get("source") == SOURCE for one in newer)


def _is_replaced(index: Index, memory_id: str) -> bool:
    _, weights = index.links.get(index.slot(memory_id))
    return bool((weights == -RELATION_CODE["SUPERSEDES"]).any())
