"""Temporal validation: invalidate facts whose stated end has passed, and let newer facts replace older ones in time (seed 2).

Age alone retires nothing: a fact holds until its own text or a user ends it. Two kinds are retired: a
fact (a semantic memory) whose text states an end that has passed; and the older side of an open contradiction whose
newer side became valid later than it was recorded. A pinned fact stays and is counted: the user who pinned it decides.
``invalid_at`` needs no run: it is compared with the clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from memgraph.lifecycle.contradictions.conflict import conflict_of
from memgraph.lifecycle.contradictions.resolution import is_decided, still_open
from memgraph.lifecycle.evidence.evidence import TimeIsUp, never
from memgraph.lifecycle.run.changes import last_run
from memgraph.lifecycle.run.runner import Commit, Plan, View, added, carry_out
from memgraph.model.events.memories import MemoryLinked, MemoryRevised, RecordPatch
from memgraph.model.events.records import phase_key
from memgraph.model.link import since
from memgraph.model.results.learning import Contradiction, TemporalResult
from memgraph.model.timestamps import to_iso
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.query import Reader
from memgraph.text import lazy_re as re
from memgraph.text.calendar import MONTHS, month_of, span
from memgraph.text.sentences import split_sentences

_MONTH = "|".join([*MONTHS, "Sept", *(month[:3] for month in MONTHS)])
_DATE = (
    r"(?:the\s+)?(?:end\s+of\s+)?(?:"
    r"(?P<iso_year>\d{4})-(?P<iso_month>\d\d)-(?P<iso_day>\d\d)"
    rf"|(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month>{_MONTH})\.?,?\s+(?P<year>\d{{4}})"
    rf"|(?P<month_first>{_MONTH})\.?\s+(?P<day_second>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year_last>\d{{4}})"
    rf"|(?P<month_alone>{_MONTH})\.?\s+(?P<year_of_month>\d{{4}})"
    r"|(?P<dotted_day>\d{1,2})\.(?P<dotted_month>\d{1,2})\.(?P<dotted_year>\d{4})"
    r"|(?P<year_alone>\d{4})(?=\s*(?:[.,;:!?)]|$))"
    r")(?![\w/.-]*\d)"
)
_FORMS = (
    ("iso_year", "iso_month", "iso_day"),
    ("year", "month", "day"),
    ("year_last", "month_first", "day_second"),
    ("year_of_month", "month_alone", None),
    ("dotted_year", "dotted_month", "dotted_day"),
    ("year_alone", None, None),
)
"""The groups that hold year, month and day."""
_END = re.compile(
    r"\b(?:until|till|up\s+to|through|no\s+later\s+than|valid\s+(?:to|thru)|(?:expires?|ends?)(?:\s+(?:on|in|with\s+the\s+end\s+of))?)\s+"
    + _DATE,
    re.IGNORECASE,
)
_SIGN = re.compile(r"\b(?:until|till|up\s+to|through|later\s+than|valid\s+(?:to|thru)|expires?|ends?)\b", re.IGNORECASE)
_PAST = re.compile(r"\b(?:was|were|had|did|been|used to)\b|\bsince\b", re.IGNORECASE)
_NOT = re.compile(r"\b(?:not|never|no(?!\s+later)|cannot|nor|neither|without)\b|n['’]t\b", re.IGNORECASE)
PHASE = "temporal"
STATED = "its own end has passed: the text says until when it holds"
"""The reason given when a fact is invalidated."""
_BATCH = 1_000


def validate_facts(store: AgentMemoryStore, *, is_time_up: TimeIsUp = never) -> TemporalResult:
    """Retire facts that no longer hold. Idempotent; `revalidate` and `unsupersede` undo it permanently.

    Parameters
    ----------
    is_time_up : callable, optional
        Called after every thousand facts; stops the run if it returns true.
    """
    total = TemporalResult()
    for ids in _facts(store.reader):
        if is_time_up():
            return total.model_copy(update={"complete": False})
        total = added(total, carry_out(store, partial(_expired, ids=ids)).result)
    return added(total, carry_out(store, _replaced, attempts=1).result)


def _facts(reader: Reader) -> Iterator[list[str]]:
    """Yield in batches the ids of facts in force without an end of validity, each batch from one write scope."""
    with reader.frozen():
        index = reader.index
        mask = reader.listed(type="semantic") & np.isinf(index.column("invalid_days"))
        slots = np.flatnonzero(mask)
        task, seq = index.column("task")[slots], index.column("seq")[slots]
        slots = slots[np.lexsort((seq, task))]
        tasks = index.column("task")[slots]
        parts = np.split(slots, np.flatnonzero(np.diff(tasks)) + 1)
        batches = [
            [index.ids.names[slot] for slot in part[start : start + _BATCH].tolist()]
            for part in parts
            for start in range(0, len(part), _BATCH)
        ]
    yield from batches


def _expired(view: View, ids: Sequence[str]) -> Plan[TemporalResult]:
    """Plan to invalidate expired facts of one write scope."""
    stating = [(row, end) for row in view.reader.rows(ids) if (end := _end_of(row)) is not None]
    over = [(row, end) for row, end in stating if end <= view.now]
    ended = [_ended(row, end, view.now) for row, end in over if not row.get("is_pinned", False)]
    commits = [Commit(ended, over[0][0].get("task_id"))] if ended else []
    result = TemporalResult(looked_at=len(stating), expired=len(ended), ended_but_pinned=len(over) - len(ended))
    return Plan(result, commits)


def _end_of(row: Row) -> str | None:
    """Return the end that the text of a fact states; None if it states none, or if the fact was changed after that end."""
    changed_at = row["updated_at"] if row["updated_at"] > row["created_at"] else ""
    said_at = max(row["occurred_at"], row.get("valid_at", ""), changed_at)
    return None if "invalid_at" in row else stated_end(row["content"], said_at)


def _ended(row: Row, end: str, now: str) -> MemoryRevised:
    changed = {"invalid_at": end, "invalidation_reason": STATED, "updated_at": now}
    return MemoryRevised(id=row["id"], changed=RecordPatch.parse(changed))


def _replaced(view: View) -> Plan[TemporalResult]:
    """Plan to let newer facts supersede those they contradict, where they became valid since the last run."""
    run, found = last_run(view.reader, phase_key(PHASE)), still_open(view.reader)
    gone: set[str] = set()
    commits = []
    for pair in found:
        began = since(pair.newer)
        if not max(pair.found_at or "", run.get("applied_at", "")) < began <= view.now:
            continue
        if gone & {pair.newer.id, pair.older.id} or (link := _replacing(pair, view.now)) is None:
            continue
        commits.append(Commit([link], pair.newer.task_id))
        gone.add(pair.older.id)
    return Plan(TemporalResult(looked_at=len(found), replaced=len(commits)), commits)


def _replacing(pair: Contradiction, now: str) -> MemoryLinked | None:
    conflict = conflict_of(pair.older, pair.newer)
    if conflict is None or not is_decided(conflict, pair.older, pair.newer, is_confirmed=False, now=now):
        return None
    said = {"score": conflict.score, "reason": conflict.noted, "created_at": now}
    ends = {"source_id": pair.newer.id, "target_id": pair.older.id}
    return MemoryLinked(relation="SUPERSEDES", **ends, **said)


def stated_end(text: str, recorded_at: str) -> str | None:
    """Return the first moment at which a text no longer holds by its own words, or None if it states no end.

    The named day, month or year is the last one in which it holds, in UTC; of several the latest counts.

    A fact that is retired too early is lost to recall. So every sentence must state an end; the end must be an unambiguous day,
    month or year (03/04/2026 is not), and lie after the fact was recorded: an earlier one is history and stays true. Past states
    ("was down until") and beginnings ("not available until") state no end.

    Parameters
    ----------
    recorded_at : str
        When the text was recorded: canonical time.
    """
    if not _SIGN.search(text):
        return None
    ends = []
    for sentence in filter(None, (part.strip() for part in split_sentences(text, "end"))):
        found = [end for end in _ends(sentence) if end > recorded_at]
        if not found:
            return None
        ends.append(max(found))
    return max(ends, default=None)


def _ends(sentence: str) -> Iterator[str]:
    for match in _END.finditer(sentence):
        before = sentence[: match.start()]
        if _PAST.search(before) or _NOT.search(before):
            continue
        if (end := _after(match)) is not None:
            yield end


def _after(match: re.Match[str]) -> str | None:
    """Return the moment after the named day, month or year; None if there is no such date."""
    named = match.groupdict()
    year, month, day = next(
        (named[one], named[two] if two else None, named[three] if three else None)
        for one, two, three in _FORMS
        if named[one]
    )
    found = span(int(year), _month(month) if month else None, int(day) if day else None)
    return to_iso(found[1]) if found else None


def _month(named: str) -> int:
    return int(named) if named.isdecimal() else month_of(named)
