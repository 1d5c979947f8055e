"""Resolution of contradictions: which are open, which the newer memory settles by itself, and the user's decisions.

A contradiction is **open** while both sides are in force: not forgotten, archived, invalid or superseded. So
`supersede`, `invalidate` on one side, or forgetting one side closes it; undoing that opens it again.

The older side of a settled contradiction is *superseded*, not invalidated: it hands its recall score to the newer
memory, stays in lists, and counts again if the newer one is forgotten or proves wrong. The time when it ceased to be
true is unknown.

A later state of the same thing is no contradiction (`replaces`): the newer memory supersedes the older one, which is
invalid from then on. A fact whose own text states when it ends is retired then (`validate_facts`); ``invalid_at`` needs no
run: it is compared with the clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.index.columns import PIN_SOURCE, TRUST
from memgraph.index.index import RELATION_CODE, Index
from memgraph.lifecycle.contradictions.conflict import NOTED, Conflict, conflict_of, is_users
from memgraph.lifecycle.reconcile import linked_to
from memgraph.lifecycle.run import Plan, TimeIsUp, View, added, carry_out, commits_by_task, never
from memgraph.model.base import Name, checked
from memgraph.model.events.memories import MemoryLinked, MemoryRevised, MemoryUnlinked, RecordPatch
from memgraph.model.link import Link, in_order, since
from memgraph.model.memory import EpisodicMemory, StoredMemory
from memgraph.model.results.learning import Contradiction, TemporalResult
from memgraph.model.timestamps import days_between, to_iso
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.query import Reader
from memgraph.text import lazy_re as re
from memgraph.text.attempts import stated
from memgraph.text.calendar import MONTHS, month_of, span
from memgraph.text.sentences import split_sentences

_LATER_DAYS = 1.0
"""Statements that are at least this far apart are about different times."""
NO_CONFLICT = "they do not contradict each other"
"""Why two memories are related that do not conflict: linked memories are never compared."""


def replaces(conflict: Conflict, older: StoredMemory, newer: StoredMemory, *, now: str) -> bool:
    """Return whether the newer memory merely replaces the older one, so that they do not contradict each other.

    Each holds at its own time: a later value, version, rule or preference, or what is said to have taken the place of another. A source that
    is not the user's must be as sure, and a day later if it does not say so itself.
    """
    if not _may_replace(conflict, older, newer, now):
        return False
    if newer.trust_class == "user" or conflict.is_stated or (is_users(older) and is_users(newer)):
        return since(older) < since(newer)
    if isinstance(older, EpisodicMemory) and isinstance(newer, EpisodicMemory):
        return True  # both report changes, which follow each other
    if conflict.kind in ("denial", "judged"):
        return False  # being later alone does not make it truer
    return days_between(since(older), since(newer)) >= _LATER_DAYS and newer.confidence >= older.confidence


def is_decided(conflict: Conflict, older: StoredMemory, newer: StoredMemory, *, is_confirmed: bool, now: str) -> bool:
    """Return whether the newer memory supersedes the one that it contradicts without asking anybody.

    It does if it is later and confirmed: the user stated it, it was repeated or useful in a recall that ended well (`is_confirmed`), or its
    confidence is higher than the older one's. Being later alone does not make it truer.
    """
    if not _may_replace(conflict, older, newer, now) or since(older) == since(newer):
        return False
    return newer.trust_class == "user" or is_confirmed or newer.confidence > older.confidence


def _may_replace(conflict: Conflict, older: StoredMemory, newer: StoredMemory, now: str) -> bool:
    """Return whether one memory may take the place of another at all.

    Its source is trusted as much; a pinned memory yields only to the user, and a pin to nobody. Which of two outcomes will recur, only the user
    can decide.
    """
    if conflict.kind == "outcome" or not conflict.is_sure or not since(older) <= since(newer) <= now:
        return False
    if older.source == PIN_SOURCE or TRUST.index(newer.trust_class) > TRUST.index(older.trust_class):
        return False
    return newer.trust_class == "user" or not older.is_pinned


def linked(
    relation: Literal["SUPERSEDES", "CONTRADICTS"],
    conflict: Conflict,
    older: StoredMemory,
    newer: StoredMemory,
    now: str,
) -> MemoryLinked:
    """Return the event that links a newer memory to the older one that it conflicts with."""
    ends = {"source_id": newer.id, "target_id": older.id}
    return MemoryLinked(relation=relation, **ends, score=conflict.score, reason=conflict.noted, created_at=now)


def ended(memory_id: str, at: str, reason: str, now: str) -> MemoryRevised:
    """Return the event by which a memory no longer holds from a time on."""
    changed = {"invalid_at": at, "invalidation_reason": reason, "updated_at": now}
    return MemoryRevised(id=memory_id, changed=RecordPatch.parse(changed))


def open_contradictions(store: AgentMemoryStore, *, project_id: str | None = None) -> list[Contradiction]:
    """Return the contradictions whose sides are both in force, of one project or all: surest first, ties in id order."""
    return still_open(store.reader, checked(Name | None, project_id, "project"))


def still_open(reader: Reader, project_id: str | None = None) -> list[Contradiction]:
    """Return the result of `open_contradictions`."""
    with reader.frozen():
        return _contradictions(reader, reader.listed(project_id=project_id) & ~reader.superseded())


def decided_contradictions(store: AgentMemoryStore, *, project_id: str | None = None) -> list[Contradiction]:
    """Return the contradictions in which one listed memory supersedes the other, in the same order."""
    project_id, reader = checked(Name | None, project_id, "project"), store.reader
    with reader.frozen():
        found = _contradictions(reader, reader.listed(project_id=project_id))
        return [one for one in found if _between(reader, ("SUPERSEDES",), one.newer.id, one.older.id)]


def _between(reader: Reader, relations: Sequence[str], one: str, other: str) -> list[tuple[str, tuple[str, str], Row]]:
    """Return the links of these kinds between two memories, in either direction: the kind, the ends, and the row."""
    pairs = ((relation, ends) for relation in relations for ends in ((one, other), (other, one)))
    return [(relation, ends, row) for relation, ends in pairs if (row := reader.record(relation, ends)) is not None]


def _contradictions(reader: Reader, shown: NDArray[np.bool_]) -> list[Contradiction]:
    found = (_contradiction(reader, ends) for ends in pairs_among(reader.index, shown))
    return sorted(found, key=lambda one: (-(one.score or 0.0), one.newer.id, one.older.id))


def pairs_among(index: Index, shown: NDArray[np.bool_]) -> list[tuple[str, str]]:
    """Return the ends of the CONTRADICTS links between masked memories."""
    sources, targets = index.links.pairs(RELATION_CODE["CONTRADICTS"])
    both = np.flatnonzero(shown[sources] & shown[targets])
    return sorted({(index.ids.names[sources[at]], index.ids.names[targets[at]]) for at in both})


def _contradiction(reader: Reader, ends: tuple[str, str]) -> Contradiction:
    row: Row = reader.record("CONTRADICTS", ends) or {}
    older, newer = in_order(*reader.read(ends))
    score, reason = row.get("score"), row.get("reason")
    if reason in NOTED.values() and (conflict := conflict_of(older, newer)) is not None:
        reason = conflict.reason
    return Contradiction(
        newer=newer,
        older=older,
        score=score if score is not None and 0.0 <= score <= 1.0 else None,
        reason=reason,
        found_at=row.get("created_at"),
    )


def resolve_contradiction(
    store: AgentMemoryStore, one_id: str, other_id: str, *, keep: str, reason: str | None = None
) -> Link:
    """Settle a contradiction: the memory to keep supersedes the other one. `unsupersede` undoes it.

    An earlier decision the other way round is reversed. Raises `NotFoundError` if a memory is missing, and `InvalidInputError` if the two do
    not contradict each other, or the one to keep is neither of them.
    """
    with store.exclusive():
        ends = _linked(store, one_id, other_id)
        kept = store.find_id(keep)
        if kept not in ends:
            raise InvalidInputError("must be one of the two memories", field="keep", value=keep)
        gone = ends[1] if kept == ends[0] else ends[0]
        states = store.curation.states  # a decision is the user's
        states.unsupersede(kept, by=gone)
        said = replacement(store, keep=kept, gone=gone, reason=reason)
        return states.supersede(gone, by=kept, reason=said.reason, score=said.score)


def dismiss_contradiction(store: AgentMemoryStore, one_id: str, other_id: str, *, reason: str | None = None) -> Link:
    """Dismiss a contradiction between two memories: neither supersedes the other, and it is not proposed again.

    It is replaced by a RELATED_TO link with the reason: linked memories are never compared. ``link`` with CONTRADICTS
    undoes it; ``unlink`` of the RELATED_TO allows them to be compared again when one of them changes. Raises as `resolve_contradiction`.
    """
    with store.exclusive():
        events = dismissal(store, *_linked(store, one_id, other_id), reason=reason)
        said = events[-1]
        (memory,) = store.read_memories([said.source_id])
        task_id = memory.task_id
        store.commit("task" if task_id else "global", events, task_id=task_id, actor="user")
        return Link.parse(said.model_dump())


def dismissal(
    store: AgentMemoryStore, source: str, target: str, *, reason: str | None = None
) -> list[MemoryLinked | MemoryUnlinked]:
    """Return the events by which two memories are related and neither contradicts nor supersedes the other; the last one is the new link."""
    found = _between(store.reader, ("CONTRADICTS", "SUPERSEDES"), source, target)
    gone = [MemoryUnlinked(source_id=ends[0], relation=relation, target_id=ends[1]) for relation, ends, _ in found]
    return [*gone, linked_to(source, "RELATED_TO", target, reason or NO_CONFLICT, store.now())]


def replacement(store: AgentMemoryStore, *, keep: str, gone: str, reason: str | None = None) -> MemoryLinked:
    """Return the event by which the memory to keep supersedes the other one; with the words of their contradiction, if they are linked."""
    links = [row for _, _, row in _between(store.reader, ("CONTRADICTS",), keep, gone)]
    said = links[0] if links else {}
    return store.supersession(gone, by=keep, reason=reason or said.get("reason"), score=said.get("score"))


def _linked(store: AgentMemoryStore, one_id: str, other_id: str) -> tuple[str, str]:
    """Return the ends of the CONTRADICTS link between two memories, its source first."""
    one, other = store.find_id(one_id), store.find_id(other_id)
    for _, ends, _ in _between(store.reader, ("CONTRADICTS",), one, other):
        return ends
    for memory_id in (one, other):
        if not store.read_memories([memory_id]):
            raise NotFoundError("memory", memory_id)
    raise InvalidInputError(
        f"does not contradict {one}; `memgraph contradictions list` shows what does", field="memory", value=other
    )


# --- facts that end by themselves ---

_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_MONTH = "|".join(dict.fromkeys([*MONTHS, "Sept", *(month[:3] for month in MONTHS)]))
_END = re.compile(
    r"\b(?:until|till|up to|through|valid to|(?:expires?|ends?)(?: on| in)?)\s+(?:the\s+)?(?:end\s+of\s+)?(?:"
    r"(?P<iso>\d{4}-\d\d-\d\d)"
    rf"|(?:(?P<day>{_DAY})\s+)?(?P<month>{_MONTH})\b\.?(?:\s+(?P<day_after>{_DAY})\b)?,?\s+(?P<year>\d{{4}})"
    r"|(?P<year_alone>\d{4})(?=\s*(?:[.,;:!?)]|$)))(?![\w/.-]*\d)",
    re.IGNORECASE,
)
_NO_END = re.compile(
    r"\b(?:was|were|had|did|been|used to|since|not|never|no|cannot|nor|neither|without)\b|n['’]t\b", re.IGNORECASE
)
"""What makes of an end a past state or a beginning: “was down until”, “not available until”."""
STATED = "its own end has passed: the text says until when it holds"
"""The reason given when a fact is invalidated."""
_BATCH = 1_000


def validate_facts(store: AgentMemoryStore, *, is_time_up: TimeIsUp = never) -> TemporalResult:
    """Retire facts whose own text states an end that has passed, a thousand at a time while there is time. Idempotent; `revalidate` undoes it.

    Age alone retires nothing, and a pinned fact stays and is counted: the user who pinned it decides.
    """
    total = TemporalResult()
    with store.reader.frozen():
        index = store.reader.index
        lasting = store.reader.listed(type="semantic") & np.isinf(index.column("invalid_days"))
        ids = [index.ids.names[slot] for slot in np.flatnonzero(lasting).tolist()]
    for start in range(0, len(ids), _BATCH):
        if is_time_up():
            return total.model_copy(update={"complete": False})
        total = added(total, carry_out(store, partial(_expired, ids=ids[start : start + _BATCH])).result)
    return total


def _expired(view: View, ids: Sequence[str]) -> Plan[TemporalResult]:
    """Plan to invalidate expired facts."""
    stating = [(row, end) for row in view.reader.rows(ids) if (end := _end_of(row)) is not None]
    over = [(row, end) for row, end in stating if end <= view.now]
    ending = [(row, end) for row, end in over if not row.get("is_pinned", False)]
    result = TemporalResult(looked_at=len(stating), expired=len(ending), ended_but_pinned=len(over) - len(ending))
    events = ((row.get("task_id"), [ended(row["id"], end, STATED, view.now)]) for row, end in ending)
    return Plan(result, commits_by_task(events))


def _end_of(row: Row) -> str | None:
    """Return the end that the text of a fact states; None if it states none, or if the fact was changed after that end."""
    changed_at = row["updated_at"] if row["updated_at"] > row["created_at"] else ""
    said_at = max(row["occurred_at"], row.get("valid_at", ""), changed_at)
    return None if "invalid_at" in row else stated_end(stated(row["content"]), said_at)


def stated_end(text: str, recorded_at: str) -> str | None:
    """Return the first moment at which a text no longer holds by its own words, or None if it states no end.

    The named day, month or year is the last one in which it holds, in UTC; of several the latest counts.

    A fact that is retired too early is lost to recall. So every sentence must state an end, it must be an unambiguous day,
    month or year (03/04/2026 is not), and lie after the fact was recorded: an earlier one is history and stays true.
    """
    ends = []
    for sentence in filter(None, (part.strip() for part in split_sentences(text, "end"))):
        found = [end for end in _ends(sentence) if end > recorded_at]
        if not found:
            return None
        ends.append(max(found))
    return max(ends, default=None)


def _ends(sentence: str) -> Iterator[str]:
    """Yield the moments after the days, months or years that a sentence names as ends."""
    for match in _END.finditer(sentence):
        if _NO_END.search(sentence[: match.start()]):
            continue
        year, month, day = (match["iso"] or "").split("-") if match["iso"] else _named(match)
        found = span(int(year), int(month) if month else None, int(day) if day else None)
        if found is not None:
            yield to_iso(found[1])


def _named(match: re.Match[str]) -> tuple[str, str, str]:
    """Return the year, month and day of a date in words; "" for what it does not name."""
    day = (match["day"] or match["day_after"] or "").rstrip("stndrh")
    return match["year"] or match["year_alone"], str(month_of(match["month"])) if match["month"] else "", day
