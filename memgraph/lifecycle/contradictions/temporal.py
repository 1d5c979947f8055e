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
from memgraph.lifecycle.contradictions.resolution import ended, is_decided, linked, still_open
from memgraph.lifecycle.run import Commit, Plan, TimeIsUp, View, added, carry_out, commits_by_task, last_run, never
from memgraph.model.events.records import phase_key
from memgraph.model.link import since
from memgraph.model.results.learning import TemporalResult
from memgraph.model.timestamps import to_iso
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.text import lazy_re as re
from memgraph.text.calendar import MONTHS, month_of, span
from memgraph.text.sentences import split_sentences

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
PHASE = "temporal"
STATED = "its own end has passed: the text says until when it holds"
"""The reason given when a fact is invalidated."""
_BATCH = 1_000


def validate_facts(store: AgentMemoryStore, *, is_time_up: TimeIsUp = never) -> TemporalResult:
    """Retire facts that no longer hold, a thousand at a time while there is time. Idempotent; `revalidate` and `unsupersede` undo it permanently."""
    total = TemporalResult()
    with store.reader.frozen():
        index = store.reader.index
        lasting = store.reader.listed(type="semantic") & np.isinf(index.column("invalid_days"))
        ids = [index.ids.names[slot] for slot in np.flatnonzero(lasting).tolist()]
    for start in range(0, len(ids), _BATCH):
        if is_time_up():
            return total.model_copy(update={"complete": False})
        total = added(total, carry_out(store, partial(_expired, ids=ids[start : start + _BATCH])).result)
    return added(total, carry_out(store, _replaced, attempts=1).result)


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
    return None if "invalid_at" in row else stated_end(row["content"], said_at)


def _replaced(view: View) -> Plan[TemporalResult]:
    """Plan to let newer facts supersede those they contradict, where they became valid since the last run."""
    run, found = last_run(view.reader, phase_key(PHASE)), still_open(view.reader)
    gone: set[str] = set()
    commits = []
    for pair in found:
        older, newer, conflict = pair.older, pair.newer, conflict_of(pair.older, pair.newer)
        has_begun = max(pair.found_at or "", run.get("applied_at", "")) < since(newer) <= view.now
        if not has_begun or conflict is None or gone & {newer.id, older.id}:
            continue
        if is_decided(conflict, older, newer, is_confirmed=False, now=view.now):
            commits.append(Commit([linked("SUPERSEDES", conflict, older, newer, view.now)], newer.task_id))
            gone.add(older.id)
    return Plan(TemporalResult(looked_at=len(found), replaced=len(commits)), commits)


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
