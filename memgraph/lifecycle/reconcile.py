"""Derived memories: what a learner wants, compared with what is known, gives the events to write.

A learner is a pure function of the rows of a scope: it says which *lessons* these teach, and which known one each
continues. What becomes of a memory that was derived is decided here, for all of them alike:

- It is *made* with links to its evidence, whatever it quotes among it, so that the origin of its words is known.
- It *grows* with its evidence: fields, links, and with new evidence its relevance, as for a repeated memory. A pinned
  text is kept, and privacy and trust only become stricter.
- It *lapses* when its evidence no longer teaches it. If somebody withdrew some of that, its words go too. Collection archives
  what is linked as evidence and never deletes it, so that what is missing was withdrawn, or was beyond the 200 that are linked.
- It is *restored* if the lesson comes back, unless somebody has *put it away*: what a user or agent hid, archived or
  deleted is neither changed nor made again. What was deleted because it had faded is made again with new evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from memgraph.lifecycle.episodes import Deletions, Scope, is_true, shared_context, strictness
from memgraph.lifecycle.run import View
from memgraph.model.base import MAX_ITEMS
from memgraph.model.events.memories import MemoryDerived, MemoryLinked, MemoryRevised, MemoryUnlinked
from memgraph.model.events.payload import Payload, sparse
from memgraph.model.events.records import FADED
from memgraph.model.ids import source_id
from memgraph.model.memory import AgentMemory, SemanticMemory, StoredMemory, id_of
from memgraph.ports import Row
from memgraph.store.commit.records import Write, patch, record_of

_MOST_AGENTS = 50
MOST_LINKED = 200
"""Maximum number of episodes linked as evidence: those linked already first."""
NO_EVIDENCE_LEFT = "too few of the builds that it was seen in are left"
NO_LESSON = "what it was made of states no common lesson"
NOT_COUNTED = "the counts do not show it any more"
"""Reasons for which a derived memory lapses."""
_WORDS: dict[str, Any] = {
    **dict.fromkeys("title pattern incorrect_approach correct_approach asked lesson is_solved trigger_pattern".split()),
    **{name: [] for name in "steps prerequisites exit_criteria common_errors agents_involved entities cues".split()},
}
"""Fields that may hold words of the evidence, with their empty values."""
IN_FORCE: dict[str, Any] = {"archived_at": None, "archive_reason": None, "archive_summary": None}


class Known(NamedTuple):
    """A derived memory as it is, with its evidence."""

    row: Row
    members: frozenset[str]
    lost: frozenset[str] = frozenset()
    """Of its evidence, what was withdrawn."""
    gone: str = ""
    """Empty while it exists; else whether it was "collected", because it had faded, or "deleted" by a user or agent."""

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.row["id"])

    @property
    def reason(self) -> str | None:
        """Why it is archived; None if it is not."""
        return self.row.get("archive_reason", "archived") if "archived_at" in self.row else None

    def was_put_away(self, now: str, own: Collection[str] = ()) -> bool:
        """Return whether a user or agent hid, archived or deleted it; `own` are the reasons for which the learner itself archives."""
        is_out = not is_true(self.row, now) and not has_lapsed(self.row)
        return is_out or self.gone == "deleted" or self.reason not in (None, FADED, *own)


@dataclass(frozen=True, slots=True)
class Lesson:
    """A derived memory that is wanted."""

    key: str
    """Of it the id of a new one is made."""
    fields: Mapping[str, Any]
    evidence: Sequence[str]
    """The memories that it is derived from, those to be linked first in front."""
    seen: frozenset[str] = frozenset()
    """The builds that it was seen in, as `evidence_of` names them: what a known one does not have of these confirms it."""
    of: Known | None = None
    """The one that it continues."""
    besides: Sequence[str] = ()
    """Memories that it quotes: they are linked as its evidence whatever its number."""
    replaces: Sequence[Known] = ()
    also: Callable[[AgentMemory], Sequence[Write]] | None = None
    """Returns more events of a memory that is made or changed."""
    is_due: bool = False
    """Whether these events are to be written even if nothing else has changed."""
    kind: type[AgentMemory] = SemanticMemory


@dataclass(slots=True)
class Reconciled:
    """The events to write, those of one memory together; the texts to embed; the memories made, changed and lapsed; and the ids by key."""

    units: list[list[Write]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    grown: list[str] = field(default_factory=list)
    lapsed: list[str] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)


def revised(before: AgentMemory, after: AgentMemory) -> MemoryRevised:
    """Return the event that changes a memory from one state to another."""
    now = after.updated_at or ""
    old = sparse(vars(record_of(before, now=now, max_relevance=float("inf"))))
    changed, cleared = patch(old, record_of(after, now=now, max_relevance=float("inf")))
    return MemoryRevised(id=id_of(before), changed=changed, cleared=cleared)


def revision(before: AgentMemory, fields: Mapping[str, Any], now: str) -> list[Payload]:
    """Return the event that gives a memory these fields; none if only its time of update would differ."""
    event = revised(before, before.model_copy(update={**fields, "updated_at": now}))
    is_same = not event.cleared and set(sparse(event.changed.model_dump())) <= {"updated_at"}  # type: ignore[attr-defined]
    return [] if is_same else [event]


def unlinked(memory_id: str, source_ids: Sequence[str]) -> Iterator[Payload]:
    """Yield the events that remove a memory's links of derivation from some others."""
    for one in source_ids:
        yield MemoryUnlinked(source_id=memory_id, relation="DERIVED_FROM", target_id=one)
        yield MemoryUnlinked(source_id=one, relation="SUPPORTS", target_id=memory_id)


def has_lapsed(row: Row) -> bool:
    """Return whether a derived memory is invalid for lack of evidence, so that it may be restored."""
    return row.get("invalidation_reason") in (NO_EVIDENCE_LEFT, NO_LESSON, NOT_COUNTED) and not row.get("is_suppressed")


def fields_of(rows: Sequence[Row], scope: Scope, source: str) -> dict[str, Any]:
    """Return the fields that every memory derived from these episodes has; the rows are in the order of time."""
    builds = [build for row in rows for build in (*row.get("evidence_build_ids", ()), row.get("build_id")) if build]
    return {
        "project_id": scope[0],
        "task_id": scope[1],
        **shared_context(rows),
        "evidence_build_ids": list(dict.fromkeys(builds))[-MAX_ITEMS:],
        "source_event_ids": [row["id"] for row in rows][-MAX_ITEMS:],
        "source": source,
        "occurred_at": rows[-1].get("occurred_at"),
    }


def shared(rows: Sequence[Row], *names: str) -> list[str]:
    """Return the entries of these lists that more than half of the episodes have, the most frequent first."""
    counts = Counter(value for row in rows for value in {value for name in names for value in row.get(name, ())})
    return [one for one, many in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if many * 2 > len(rows)]


def shared_tags(rows: Sequence[Row], *own: str) -> list[str]:
    """Return a learner's own tags, and those that more than half of the episodes have: at most six."""
    return list(dict.fromkeys([*own, *shared(rows, "tags")]))[:6]


def agents_of(rows: Sequence[Row]) -> list[str]:
    """Return the agents that took part in episodes."""
    return list(dict.fromkeys(one for row in rows for one in row.get("agents_involved", ())))[:_MOST_AGENTS]


def known_of(own: Iterable[Row], evidence: Collection[str]) -> list[Known]:
    """Return a learner's `own` derived memories, given what is evidence now."""
    members = ((row, frozenset(row.get("source_event_ids", ()))) for row in own)
    return [Known(row, ids, lost=ids.difference(evidence)) for row, ids in members]


def deleted_of(deletions: Deletions, scope: Scope, source: str) -> list[Known]:
    """Return what was derived in a scope and has been deleted: first what a user or agent deleted. Reads the journal."""
    found = [
        Known(row, frozenset(row.get("source_event_ids", ())), gone="collected" if reason == FADED else "deleted")
        for row, reason in deletions(source)
        if (row.get("project_id"), row.get("task_id")) == scope
    ]
    return sorted(found, key=lambda one: one.gone == "collected")


def matched(groups: Sequence[Sequence[str]], known: Iterable[Known]) -> list[list[Known]]:
    """Return for each group of evidence the known memories that it continues: what exists first, then those with the most in common.

    Each goes to one group: the one that has more than half of it, or of what is left of its evidence. Groups are disjoint.
    """
    place_of = {member: place for place, group in enumerate(groups) for member in group}
    pairs = []
    for one in known:
        went = Counter(place_of[member] for member in one.members if member in place_of)
        place, common = max(went.items(), key=lambda item: (item[1], -item[0]), default=(0, 0))
        there = one.members - one.lost
        if common and common * 2 > min(len(groups[place]), len(there or one.members)):
            pairs.append((one.gone, -common, one.id, place, one))
    found: list[list[Known]] = [[] for _ in groups]
    for *_, place, one in sorted(pairs, key=lambda pair: pair[:4]):
        found[place].append(one)
    return found


def reconcile(
    view: View,
    wanted: Iterable[Lesson],
    known: Iterable[Known],
    *,
    lapse: Callable[[Known], Mapping[str, Any] | None] | None = None,
    lapsed_text: str = "",
    tags: Sequence[str] = (),
    own: Collection[str] = (),
) -> Reconciled:
    """Return what brings the known lessons to those that are wanted; a known one lapses unless a wanted one continues or replaces it.

    `lapse` returns the fields that take one out of force (default: `invalidated`, now), or None if it stays. It then says `lapsed_text` and
    has these tags if words of it are withdrawn. For `own` reasons the learner itself archives; what is archived for another was put away.
    """
    result, followed = Reconciled(), set[str]()
    for lesson in wanted:
        of = lesson.of
        followed |= {of.id} if of else set()
        if of is not None and of.was_put_away(view.now, own):
            continue
        followed |= {one.id for one in lesson.replaces}
        if of is None or of.gone:
            if of is None or fresh(lesson, of):
                _make(view, result, lesson)
            continue
        result.ids[lesson.key] = of.id
        if unit := _grown(view, result, lesson, of):
            result.units.append(unit)
            result.grown.append(of.id)
    for one in known:
        state = None if one.id in followed or one.gone else (lapse or partial(invalidated, view.now))(one)
        if state is None:
            continue
        before = view.reader.read([one.id])[0]
        words = {name: value for name, value in _WORDS.items() if name in type(before).model_fields}
        said = {**words, "content": lapsed_text, "tags": list(tags)} if one.lost else {}
        linked: list[str] = before.supporting_memory_ids  # type: ignore[attr-defined]
        lost = unlinked(one.id, sorted(one.lost.intersection(linked)))
        result.units.append([*revision(before, {**said, **state}, view.now), *lost])
        result.texts += [lapsed_text] if one.lost else []
        result.lapsed.append(one.id)
    return result


def invalidated(now: str, known: Known, *, reason: str = "", ends_at: str = "") -> dict[str, Any] | None:
    """Return the fields that end a memory which nothing teaches any more; None: it is out of force or pinned.

    What lapses without having lost anything was ended by the latest evidence, at `ends_at`; else it ends now. The default reason is a lack of
    evidence, or of a lesson in what is left.
    """
    row = known.row
    if not is_true(row, now) or "archived_at" in row or row.get("is_pinned"):
        return None
    at = min(ends_at, now) if ends_at and not known.lost else now
    reason = reason or (NO_LESSON if known.members and not known.lost else NO_EVIDENCE_LEFT)
    return {"invalid_at": at, "invalidation_reason": reason}


def fresh(lesson: Lesson, known: Known) -> frozenset[str]:
    """Return what confirms a known lesson: the builds of its evidence that it does not have yet."""
    had = {*known.row.get("evidence_build_ids", ()), *(f"memory {one}" for one in known.members)}
    return lesson.seen - had


def _make(view: View, result: Reconciled, lesson: Lesson) -> None:
    ids = (source_id(lesson.key, number) for number in count())
    memory_id = next(one for one in ids if view.reader.index.slot(one) < 0)
    linked = list(dict.fromkeys([*lesson.evidence[:MOST_LINKED], *lesson.besides]))
    known = [*lesson.replaces, *([lesson.of] if lesson.of else ())]
    fields = {**lesson.fields, **strictness([lesson.fields, *(one.row for one in known)])}
    made = lesson.kind(id=memory_id, **fields, supporting_memory_ids=linked)
    also = lesson.also(made) if lesson.also else ()
    result.units.append([made, *also, *_superseding(view, memory_id, lesson)])
    result.texts.append(made.content)
    result.made.append(memory_id)
    result.ids[lesson.key] = memory_id


def _grown(view: View, result: Reconciled, lesson: Lesson, known: Known) -> list[Write]:
    """Return the events that bring a memory up to date; none if it is."""
    before, row = view.reader.read([known.id])[0], known.row
    new, fields = fresh(lesson, known), dict(lesson.fields)
    fields |= strictness([row, fields, *(one.row for one in lesson.replaces)])
    if known.lost and "content" in fields:
        fields.setdefault("entities", [])
    if before.is_pinned:
        fields.pop("content", None)
    if has_lapsed(row):
        fields |= {"invalid_at": None, "invalidation_reason": None}
    if new and before.archive_reason == FADED:
        fields |= IN_FORCE
    linked: list[str] = before.supporting_memory_ids  # type: ignore[attr-defined]
    unit = [*_links(view, known.id, linked, lesson), *_superseding(view, known.id, lesson)]
    if not (unit or lesson.is_due) and all(getattr(before, name) == value for name, value in fields.items()):
        return []
    if new:
        fields |= confirmed(view, before)
    after = before.model_copy(update=fields)
    if after.content != before.content:
        result.texts.append(after.content)
    return [*revision(before, fields, view.now), *(lesson.also(after) if lesson.also else ()), *unit]


def _superseding(view: View, memory_id: str, lesson: Lesson) -> list[Write]:
    return [linked_to(memory_id, "SUPERSEDES", one.id, "joined", view.now) for one in lesson.replaces]


def confirmed(view: View, before: StoredMemory) -> dict[str, Any]:
    """Return the fields of a memory that something confirms now."""
    relevance = view.config.forgetting_curve.confirmed(before.relevance_score)
    return {"relevance_score": relevance, "relevance_anchor": relevance, "relevance_at": view.now}


def _links(view: View, memory_id: str, linked: Sequence[str], lesson: Lesson) -> list[Write]:
    """Return the events that link it with its evidence and with nothing else."""
    before = frozenset(linked)
    first = sorted(lesson.evidence, key=lambda one: one not in before)
    wanted = dict.fromkeys([*first[:MOST_LINKED], *lesson.besides])
    added = [one for one in wanted if one not in before]
    return [
        *([MemoryDerived(id=memory_id, source_ids=added, created_at=view.now)] if added else ()),
        *unlinked(memory_id, sorted(before.difference(wanted))),
    ]


def linked_to(memory_id: str, relation: str, other: str, reason: str, now: str) -> MemoryLinked:
    """Return the event that links two memories."""
    link = {"source_id": memory_id, "relation": relation, "target_id": other, "reason": reason, "created_at": now}
    return MemoryLinked.parse(link)
