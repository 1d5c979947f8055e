"""An anti-pattern as it grew: what there was to say of an error when a third build had met it, and what each later one added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memgraph.lifecycle.errors.antipattern_text import caution_of
from memgraph.lifecycle.errors.remedies import Trouble, troubles
from memgraph.lifecycle.evidence.evidence import LEAST_BUILDS, Scope, in_order, revision
from memgraph.lifecycle.evidence.experience import Experience
from memgraph.lifecycle.generalisation.patterns import Pattern
from memgraph.lifecycle.generalisation.stages import stages
from memgraph.model.events.links import MemoryDerived
from memgraph.model.memory import SemanticMemory, id_of
from memgraph.ports import Row
from memgraph.store.commit.append import Write
from memgraph.store.query import Reader


class Recurrence(NamedTuple):
    """What an anti-pattern says of an error at a time, as fields of its memory, and the ids of its episodes."""

    fields: dict[str, Any]
    members: list[str]


def recurrences(
    reader: Reader, trouble: Trouble, scope: Scope, lessons: Mapping[str, Row], *, source: str, most: int
) -> list[Recurrence]:
    """Return what is to be said of an error that was never told, from its third build on; what is to be said now comes last.

    Parameters
    ----------
    lessons : mapping
        As `caution_of` takes them.
    most : int
        So many episodes are linked at most.
    """
    rows = in_order([*trouble.failed, *trouble.mended])
    pattern = Pattern(Experience(scope, "negative"), rows, rows, trouble.builds)
    (grown,) = stages(reader, [pattern])
    found = []
    for stage in grown:
        met = trouble
        if not stage.is_latest:
            by_name = {one.fingerprint: one for one in troubles(in_order(stage.pattern.members))}
            met = by_name.get(trouble.fingerprint, Trouble(trouble.fingerprint, trouble.error))
            if len(met.builds) < LEAST_BUILDS:
                continue  # it was told in other words then
        known = {what: row for what, row in lessons.items() if row.get("occurred_at", "") <= stage.at}
        fields, _ = caution_of(met, scope, known, source=source)
        members = list(dict.fromkeys(row["id"] for row in (*met.failed, *met.mended)))[:most]
        found.append(Recurrence({**fields, "occurred_at": stage.at}, members))
    return found


def growth(memory: SemanticMemory, later: Sequence[Recurrence], now: str) -> list[Write]:
    """Return what a new anti-pattern came to say and to be linked with as its error came back: the events behind its addition."""
    writes: list[Write] = []
    before, linked = memory, set(memory.supporting_memory_ids)
    for recurrence in later:
        after = before.model_copy(update={**recurrence.fields, "updated_at": now})
        if (event := revision(before, after)) is not None:
            writes.append(event)
        if added := [one for one in recurrence.members if one not in linked]:
            writes.append(MemoryDerived(id=id_of(memory), source_ids=added, created_at=now))
        before, linked = after, linked | set(added)
    return writes
