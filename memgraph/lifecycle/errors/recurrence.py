"""The growth of an anti-pattern: what it said when a third build had met the error, and what each later one added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from memgraph.lifecycle.errors.antipattern_text import caution_of
from memgraph.lifecycle.errors.remedies import Trouble, troubles
from memgraph.lifecycle.evidence.evidence import LEAST_BUILDS, Scope, in_order, revision
from memgraph.lifecycle.evidence.experience import Experience
from memgraph.lifecycle.generalisation.patterns import Pattern
from memgraph.lifecycle.generalisation.stages import stages
from memgraph.model.events.memories import MemoryDerived
from memgraph.model.memory import SemanticMemory, id_of
from memgraph.ports import Row
from memgraph.store.commit.records import Write
from memgraph.store.query import Reader


class Recurrence(NamedTuple):
    """The state of an anti-pattern at a time, as fields of its memory, and the ids of its episodes."""

    fields: dict[str, Any]
    members: list[str]


def recurrences(
    reader: Reader, trouble: Trouble, scope: Scope, lessons: Mapping[str, Row], *, source: str, most: int
) -> list[Recurrence]:
    """Return the states for an error without an anti-pattern yet, from its third build on; the current state comes last.

    Parameters
    ----------
    lessons : mapping
        As for `caution_of`.
    most : int
        Maximum number of linked episodes.
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
            met.ends = trouble.ends
            if len(met.builds) < LEAST_BUILDS:
                continue  # its wording was different then
        known = {what: row for what, row in lessons.items() if row.get("occurred_at", "") <= stage.at}
        fields, _ = caution_of(met, scope, known, source=source)
        members = list(dict.fromkeys(row["id"] for row in (*met.failed, *met.mended)))[:most]
        found.append(Recurrence({**fields, "occurred_at": stage.at}, members))
    return found


def growth(memory: SemanticMemory, later: Sequence[Recurrence], now: str) -> list[Write]:
    """Return the changes to a new anti-pattern's text and links as its error recurred: the events after its addition."""
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
