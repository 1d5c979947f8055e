"""Work orders for what rules leave undecided: what they ask about, how many are made in a day, and which are open.

The subjects are found in the store by sleep, or noted while long sessions are read. The most valuable that were not asked about before are
made work orders, within the budget of the day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import cache, partial
from heapq import heappush, heappushpop

import numpy as np

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.extraction.llm.claims import FIELDS, MAX_EVIDENCE_CHARS, MAX_EVIDENCE_SPANS, REQUIRED, claim_schema
from memgraph.extraction.llm.prompt import DATA, fenced, indented, informative_events, is_essential, question_in
from memgraph.extraction.llm.prompt import Event as SessionEvent
from memgraph.extraction.readers import Reader as SourceReader
from memgraph.extraction.readers import SourceRecord
from memgraph.extraction.rules.sessions import failures, mended_text, steps_of
from memgraph.extraction.secrets import redact, redact_any
from memgraph.fold.records import WORK_ORDER
from memgraph.index.columns import TRUST
from memgraph.journal.envelope import Event
from memgraph.lifecycle.communities import LARGE_FROM, tag_weights
from memgraph.lifecycle.contradictions.resolution import still_open
from memgraph.lifecycle.contradictions.search import open_questions
from memgraph.lifecycle.counting.kept import kept_rules, projects_of
from memgraph.lifecycle.counting.records import HOT_SPOT, MENDED, REVERTED
from memgraph.lifecycle.episodes import (
    LEAST_BUILDS,
    LESSON_TYPES,
    OWN_WATCH,
    WATCH,
    Deletions,
    Scope,
    ended_at,
    evidence_in,
    evidence_of,
    in_order,
    is_true,
    read_scope,
    task_of,
    waiting,
)
from memgraph.lifecycle.errors import SOURCE as ERROR_SOURCE
from memgraph.lifecycle.errors import Trouble, troubles
from memgraph.lifecycle.lessons import Experience, communities_of, read_experience
from memgraph.lifecycle.reconcile import deleted_of
from memgraph.lifecycle.run import Commit, Plan, View, carry_out, changes_after, last_run, report_orders
from memgraph.model.base import MAX_CONTENT_CHARS, MAX_TEXT_CHARS, Limit, Name, checked
from memgraph.model.build import BuildEventLog
from memgraph.model.events.records import COMPRESSION, ERROR_ANALYSIS, DistilRequested, phase_key
from memgraph.model.ids import canonical_name, natural_id
from memgraph.model.memory import TrustClass
from memgraph.model.results.learning import (
    MAX_ORDER_MEMORIES,
    OrderKind,
    OrdersResult,
    OrderState,
    WorkOrder,
    WorkSheet,
)
from memgraph.model.timestamps import from_iso, to_iso
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.query import Reader
from memgraph.text.cutting import fitted
from memgraph.text.safe import visible_line

PHASE = "work-orders"
"""Name of the phase of sleep that makes them."""
FIRST = (COMPRESSION, ERROR_ANALYSIS)
"""The runs that leave episodes undecided: what they have not seen has to wait."""
MAX_EXCERPT_CHARS = MAX_TEXT_CHARS
_MOST_QUOTED = 20
_MOST_FAILED, _MOST_FIXED = 8, 4
_DETAILS = ("lesson", "explained", "worked", "last_error", "decision", "reasoning", "action", "result")

QUESTIONS: dict[OrderKind, str] = {
    "long session": "What should be remembered of this session? The rules that the user stated, decisions with their reasons, the "
    "final cause of a problem that took several attempts with what was tried in vain, and facts about the environment.",
    "returned failure": "This failure came back after it had been fixed. What causes it, what fixed it for good if anything did, and "
    "what was tried in vain?",
    "community": "These episodes have something in common, but no lesson could be stated by rules. Which lesson do several of them "
    "support: a common cause with its remedy, or a rule that more than one states? If there is none, answer without statements.",
    "contradiction": "Do these two statements contradict each other? If they can both be true, the verdict is “both hold”; if one of "
    "them is no longer or never was true, it is “older holds” or “newer holds”.",
}


@dataclass(frozen=True, slots=True)
class Subject:
    """What a work order asks about; with its kind and project, its key determines the id of the order."""

    kind: OrderKind
    key: str
    excerpt: str
    value: float
    """The expected use of an answer, in [0, 1]. Highest for a returned failure, which costs again each time; then for an undecided contradiction,
    which misleads recalls; then for a missing lesson; lowest for a session."""
    source_at: str
    trust_class: TrustClass
    project_id: str | None = None
    task_id: str | None = None
    build_id: str | None = None
    subject_ids: list[str] = field(default_factory=list)
    source_event_ids: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        """Id of its work order."""
        return natural_id("work order", f"{self.kind}\x1f{self.key}", project_id=self.project_id)


def communities_without_lesson(
    experiences: Iterable[Experience], warned_of: Callable[[Scope], frozenset[str]], unseen: Collection[str]
) -> Iterator[Subject]:
    """Yield communities of at least three builds of which no generalisation or anti-pattern covers most, not even a hidden one.

    Those wait that have an episode which compression or the analysis of errors has not seen as it is. Of a scope `warned_of` has the evidence
    of anti-patterns.
    """
    for experience in experiences:
        known = [*experience.in_force, *experience.put_away]
        covered = warned_of(experience.scope).union(*(one.members for one in known))
        plain = [
            [canonical_name(tag) for tag in row.get("tags", ())] for row in experience.episodes if not task_of(row)
        ]
        for rows in communities_of(experience.episodes, tag_weights(plain), is_large=len(plain) >= LARGE_FROM):
            builds, ids = evidence_in(rows), {row["id"] for row in rows}
            is_settled = min(len(builds), len(ids)) < LEAST_BUILDS or 2 * len(ids & covered) > len(ids)
            if is_settled or not ids.isdisjoint(unseen):
                continue
            most = 0.8 if experience.outcome == "negative" else 0.4  # failures teach more than what went well
            quoted = in_order(rows)[-_MOST_QUOTED:]
            key = ",".join(sorted(row["id"] for row in quoted))
            yield from _about("community", key, quoted, most * (1 - 1 / (1 + len(builds) / 3)))


def counted_places(reader: Reader, now: str) -> Iterator[Subject]:
    """Yield the commits that speak for each counted rule about what goes wrong at a file: its fixes, what was mended, what was taken back.

    What no longer holds is shown as such; what another memory merely replaces is left out, as in recalls.
    """
    index, replaced = reader.index, reader.superseded()
    in_force = reader.listed() & ~replaced
    for rule in (rule for project in projects_of(reader) for rule in kept_rules(reader, project)):
        if in_force[index.slot(rule["id"])] and rule.get("category") in (HOT_SPOT, MENDED, REVERTED):
            known = in_order(reader.rows(index.supporting_ids(rule["id"])))
            rows = [row for row in known if not (is_true(row, now) and replaced[index.slot(row["id"])])]
            if len(rows) >= LEAST_BUILDS:
                key = ",".join(row["id"] for row in rows)
                yield from _about(
                    "community", key, rows, 0.5 * (1 - 1 / (1 + len(rows) / 3)), counted=rule["content"], now=now
                )


def returned_failures(reader: Reader, experiences: Iterable[Experience]) -> Iterator[Subject]:
    """Yield failures that occurred again, in another build, after a fix."""
    scopes: dict[Scope, list[Row]] = {}
    for experience in experiences:
        scopes.setdefault(experience.scope, []).extend(experience.episodes)
    for rows in scopes.values():
        for trouble in troubles(in_order(rows)):
            if trouble.failed and trouble.mended and (found := _returns(reader, trouble)):
                quoted = in_order([*in_order(trouble.failed)[-_MOST_FAILED:], *in_order(trouble.mended)[-_MOST_FIXED:]])
                key = f"{trouble.fingerprint} {found[-1]}"
                yield from _about("returned failure", key, quoted, 1 - 0.5 ** (len(found) + 1))


def undecided_contradictions(reader: Reader, changed_ids: Iterable[str]) -> Iterator[Subject]:
    """Yield the open contradictions, and changed statements that are near others; the older memory comes first."""
    found = [((one.older.id, one.newer.id), 0.9 * (one.score or 0.5)) for one in still_open(reader)]
    near = open_questions(reader, changed_ids)
    for ids, value in [*found, *(((pair.older.id, pair.newer.id), 0.6 * pair.cosine) for pair in near)]:
        yield from _about("contradiction", " ".join(ids), reader.rows(ids), value)


def _returns(reader: Reader, trouble: Trouble) -> list[str]:
    """Return, in order, the builds in which a failure occurred again after a fix, except the build of the fix."""
    met = [
        (ended_at(reader, build, row.get("project_id")) or row["occurred_at"], is_fix, build)
        for rows, is_fix in ((trouble.failed, False), (trouble.mended, True))
        for row in rows
        for build in evidence_of(row)
    ]
    found: list[str] = []
    fixed_in: set[str] = set()
    for _, is_fix, build in sorted(met):
        if is_fix:
            fixed_in.add(build)
        elif fixed_in and build not in fixed_in:
            found.append(build)
            fixed_in.clear()
    return found


def _about(
    kind: OrderKind, key: str, rows: Sequence[Row], value: float, *, counted: str = "", now: str = ""
) -> Iterator[Subject]:
    """Yield the subject of some memories of one scope if all of them are public: an order shows their texts to whoever answers it.

    `now` is needed if some of them may no longer hold.
    """
    if not rows or any(row.get("privacy_tier", "public") != "public" or row.get("is_suppressed") for row in rows):
        return
    sources = dict.fromkeys(one for row in rows for one in row.get("source_event_ids", ()))
    yield Subject(
        kind=kind,
        key=key,
        excerpt=excerpt_of([*([counted] if counted else []), *(text_shown(row, now) for row in rows)]),
        value=round(value, 6),
        source_at=max(min(_holds_since(row), row["created_at"]) for row in rows),
        trust_class=max((row.get("trust_class", "agent") for row in rows), key=TRUST.index),
        project_id=rows[0].get("project_id"),
        task_id=rows[0].get("task_id"),
        subject_ids=[row["id"] for row in rows][:MAX_ORDER_MEMORIES],
        source_event_ids=list(sources)[:MAX_ORDER_MEMORIES],
    )


def text_shown(row: Row, now: str = "") -> str:
    """Return the text of a memory, with the fields that the text omits, and that it no longer holds if it ended before `now`."""
    outcome = f", {row['outcome']}" if row.get("outcome", "unknown") != "unknown" else ""
    said = ((name.replace("_", " "), row.get(name)) for name in _DETAILS)
    details = [f"{name}: {text}" for name, text in said if text and text not in row["content"]]
    if row.get("invalid_at", "9999") <= now:
        ended = filter(None, (f"since {row['invalid_at'][:10]}", row.get("invalidation_reason")))
        details.append(f"no longer valid: {', '.join(ended)}")
    return "\n".join(map(indented, [f"{_holds_since(row)[:10]}{outcome}\n{row['content']}", *details]))


def _holds_since(row: Row) -> str:
    return str(row.get("valid_at") or row["occurred_at"])


def excerpt_of(texts: Sequence[str]) -> str:
    """Return texts as the numbered parts of one excerpt: without secrets and invisible characters, the longest ones shortened to fit."""
    # secrets first: a truncated one would not be recognised
    lines = ["\n".join(filter(str.strip, map(_visible, redact(text).value.split("\n")))) for text in texts]
    frame = len("[999]\n\n\n")
    shown = fitted(lines, MAX_EXCERPT_CHARS - frame * len(lines))
    return "\n\n".join(f"[{number}]\n{text}" for number, text in enumerate(shown, start=1))


def _visible(line: str) -> str:
    return f"{' ' if line.startswith(' ') else ''}{visible_line(line)}"


_SHARE = 0.75
"""What can wait, all but failures that returned, is asked about until so much of the day's budget is used."""
_SHARE_OF_WAITING = 0.25
"""What waits for another day takes at most so much of its budget: the rest of the sessions' share is left to those of that day."""
FIRST_PARTS = 4
"""Orders of one session that are made on one day. A quarter of the sessions' share is for the first order of each: those read later have room, too."""
_DAYS_AHEAD = 14
_MOST_COMPARED = 2_000
"""Of more changed memories only the latest are compared with others."""


def request_orders(store: AgentMemoryStore) -> OrdersResult:
    """Make work orders for what the store leaves undecided, within the budget of the day.

    Only scopes that have changed since the phase's last run are searched, or all if the budget was used up on its day.
    """
    return report_orders(store, carry_out(store, _planned, rests_on=_matters).result)


def request_sessions(store: AgentMemoryStore, subjects: Sequence[Subject]) -> OrdersResult:
    """Make work orders for sessions, of at most three quarters of the day's budget; what is too much for it is due on one of the next 14 days."""
    if not subjects:
        return OrdersResult()
    plan = partial(_planned_sessions, subjects=subjects)
    return report_orders(store, carry_out(store, plan, rests_on=_matters).result)


def _matters(event: Event) -> bool:
    """Return whether an event may change which orders are made."""
    return isinstance(event.payload, DistilRequested) or bool(WATCH.touched(event))


def _planned(view: View) -> Plan[OrdersResult]:
    reader, known = view.reader, view.reader.every_record(WORK_ORDER)
    if not (left := _budget_left(view, known)):
        return Plan(OrdersResult())
    last = last_run(reader, phase_key(PHASE))
    day = last.get("applied_at", view.now)
    if day[:10] < view.now[:10] and not _budget_left(view, known, _SHARE, day):
        last = {}  # it may have used up the budget of its day: all is searched again
    with reader.frozen():
        changed = waiting(reader, last, LESSON_TYPES, now=view.now, until=reader.index.offset.seq)
        in_turn = sorted((scope for scope, _ in changed), key=lambda scope: tuple(part or "" for part in scope))
        deletions = cache(reader.deleted_of)
        experiences = [one for scope in in_turn for one in read_experience(reader, scope, deletions, view.now)]
        seen = min(last_run(reader, key).get("seq", 0) for key in FIRST)
        unseen = next(changes_after(reader, seen, OWN_WATCH.touched)).touched
        changes = next(changes_after(reader, last.get("seq", 0), WATCH.touched))
        doubted = list(undecided_contradictions(reader, list(changes.touched)[-_MOST_COMPARED:]))
        counted = list(counted_places(reader, view.now))
    without = communities_without_lesson(experiences, partial(_warned_of, reader, deletions), unseen)
    subjects = [*returned_failures(reader, experiences), *doubted, *counted, *without]
    ranked = _ranked(subjects, known)
    lasting = _budget_left(view, known, _SHARE)
    chosen = [one for place, one in enumerate(ranked) if place < lasting or one.kind == "returned failure"]
    return _plan([(one, view.now) for one in chosen[:left]], candidates=len(ranked))


def _warned_of(reader: Reader, deletions: Deletions, scope: Scope) -> frozenset[str]:
    """Return the evidence of the anti-patterns of a scope, hidden and deleted ones too."""
    made = [row for row in read_scope(reader, scope, ("semantic",)) if row.get("source") == ERROR_SOURCE]
    made += [one.row for one in deleted_of(deletions, scope, ERROR_SOURCE)]
    return frozenset(one for row in made for one in row.get("source_event_ids", ()))


def _planned_sessions(view: View, subjects: Sequence[Subject]) -> Plan[OrdersResult]:
    known = view.reader.every_record(WORK_ORDER)
    ranked = _ranked(subjects, known)
    made = Counter(row.get("build_id") for row in known if row["requested_at"][:10] == view.now[:10])
    in_turn: list[tuple[int, Subject]] = []
    for one in ranked:
        in_turn.append((made[one.build_id], one))
        made[one.build_id] += 1
    in_turn.sort(key=lambda turn: turn[0])  # the first order of each session before the second of any
    today: list[Subject] = []
    waiting: list[Subject] = []
    left = _budget_left(view, known, _SHARE)
    for_first_ones = _budget_left(view, (), _SHARE) // 4
    for earlier, one in in_turn:
        is_due = earlier < FIRST_PARTS and len(today) < left - (for_first_ones if earlier else 0)
        (today if is_due else waiting).append(one)
    ahead = (from_iso(view.now) + timedelta(days=days) for days in range(1, _DAYS_AHEAD + 1))
    days = [to_iso(day.date().isoformat()) for day in ahead]
    places = [day for day in days for _ in range(_budget_left(view, known, _SHARE_OF_WAITING, day))]
    due = [*((one, view.now) for one in today), *zip(waiting, places, strict=False)]
    return _plan(due, candidates=len(ranked))


def _ranked(subjects: Iterable[Subject], known: Sequence[Row]) -> list[Subject]:
    new = {one.id: one for one in subjects if not _is_known(one, known)}
    return sorted(new.values(), key=lambda one: (-one.value, one.id))


def _plan(due: Sequence[tuple[Subject, str]], *, candidates: int) -> Plan[OrdersResult]:
    events = [_event(one, at) for one, at in due]
    commits = [Commit(events, is_account=True)] if events else []
    return Plan(OrdersResult(candidates=candidates, requested=len(events)), commits)


def _budget_left(view: View, known: Sequence[Row], share: float = 1.0, day: str = "") -> int:
    most = view.config.distil_orders_a_day
    return max(0, min(most, max(1, int(most * share))) - _orders_of_day(known, day or view.now))


def _orders_of_day(known: Iterable[Row], moment: str) -> int:
    return sum(row["requested_at"][:10] == moment[:10] for row in known)


def _is_known(subject: Subject, known: Iterable[Row]) -> bool:
    """Return whether it, or most of what it is about, was asked about before: then a new answer would change little."""
    ids = set(subject.subject_ids)
    return any(
        row["id"] == subject.id
        or (row["kind"] == subject.kind and 2 * len(ids.intersection(row.get("subject_ids", ()))) > len(ids))
        for row in known
    )


def order_for(subject: Subject) -> WorkOrder:
    """Return a subject as the work order that it would become."""
    return WorkOrder.parse(_event(subject, subject.source_at).model_dump())


def _event(subject: Subject, now: str) -> DistilRequested:
    asked = {name: value for name, value in asdict(subject).items() if name != "key"}
    return DistilRequested(id=subject.id, question=QUESTIONS[subject.kind], requested_at=now, **asked)


MAX_ASKED = 3
"""Orders that an agent is asked to answer in one session."""
MAX_STATEMENTS = 8
MAX_ATTEMPTS = 3
"""An order is closed by this many answers of which statements were refused; one that adds nothing to an untouched order does not count."""
_LEAST_ID_CHARS = 4

_INSTRUCTIONS = """\
{question}

Reply with JSON: {{"statements": [...]}}, at most {most} statements, the most useful first; an empty list if nothing is worth keeping.
Each statement has:
{fields}

{data}"""
_INSTRUCTIONS_OF_A_VERDICT = """\
{question}

Reply with JSON: {{"verdict": "both hold", "older holds", "newer holds", or "" if it cannot be told}}.

{data}"""


def work_orders(
    store: AgentMemoryStore, *, state: OrderState | None = "open", project: str | None = None, limit: int | None = None
) -> list[WorkOrder]:
    """Return work orders in a state, or in any, most valuable first, ties by time and id. Open ones are those that are due.

    An order is withheld while a memory that it is about is forgotten, deleted or not public, or its excerpt of a session has the text of
    such a memory of that build; an open one about a contradiction also while one of the two is no longer in force.
    """
    state = checked(OrderState | None, state, "state")
    project, limit = checked(Name | None, project, "project"), checked(Limit | None, limit, "limit")
    reader = store.reader
    with reader.frozen():
        rows = [row for row in reader.every_record(WORK_ORDER) if project is None or row.get("project_id") == project]
        now = store.now()
        due = [row for row in rows if state != "open" or row["requested_at"] <= now]
        chosen = [row for row in due if (state is None or row["state"] == state) and _is_current(reader, row)]
    chosen.sort(key=lambda row: (-row["value"], row["requested_at"], row["id"]))
    return list(map(WorkOrder.parse, chosen[:limit]))


def known_order(store: AgentMemoryStore, order_id: str) -> WorkOrder:
    """Return a work order by its id or the beginning of it, at least four characters, unless it is withheld."""
    wanted = checked(Name, order_id, "id").strip().lower()
    reader = store.reader
    with reader.frozen():
        rows = reader.every_record(WORK_ORDER)
        named = [row for row in rows if row["id"].startswith(wanted) and (len(wanted) >= _LEAST_ID_CHARS)]
        found = [row for row in named if _is_current(reader, row)]
    if len(named) > 1:
        raise InvalidInputError(
            f"is the beginning of {len(named)} work orders' ids; give more of it", field="id", value=order_id
        )
    if not found:
        raise NotFoundError("open work order" if named else "work order", order_id, listed_by="memgraph distil list")
    return WorkOrder.parse(found[0])


def sheet_of(order: WorkOrder) -> WorkSheet:
    """Return a work order with the instructions, the fenced excerpt and the schema of an answer."""
    fence, fenced_excerpt = fenced(order.excerpt)
    said = {"question": order.question, "data": DATA.format(fence=fence)}
    properties: dict[str, object]
    if order.kind == "contradiction":  # its statements are memories already
        properties = {"verdict": {"type": "string", "enum": ["both hold", "older holds", "newer holds", ""]}}
        instructions = _INSTRUCTIONS_OF_A_VERDICT.format(**said)
    else:
        items = claim_schema(required=REQUIRED)
        properties = {"statements": {"type": "array", "items": items, "maxItems": MAX_STATEMENTS}}
        instructions = _INSTRUCTIONS.format(**said, most=MAX_STATEMENTS, fields=FIELDS)
    return WorkSheet(
        order=order,
        instructions=instructions,
        fenced_excerpt=fenced_excerpt,
        reply_schema={
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        },
        limits={
            "statements": MAX_STATEMENTS,
            "content_chars": MAX_CONTENT_CHARS,
            "evidence_spans": MAX_EVIDENCE_SPANS,
            "evidence_chars": MAX_EVIDENCE_CHARS,
        },
    )


def _is_current(reader: Reader, row: Row) -> bool:
    """Return whether an order may be shown, and if it is open, whether its answer would change something."""
    ids = row.get("subject_ids", ())
    rows = reader.rows(ids)
    if len(rows) < len(ids):
        return False
    if any(one.get("is_suppressed") or one.get("privacy_tier", "public") != "public" for one in rows):
        return False
    if row["kind"] == "long session" and _quotes_hidden(reader, row):
        return False
    if row["kind"] != "contradiction" or row["state"] != "open":
        return True
    in_force = reader.listed() & ~reader.superseded()
    both = (tuple(ids), tuple(ids[::-1]))
    is_answered = any(reader.record(name, ends) is not None for name in ("RELATED_TO", "SUPERSEDES") for ends in both)
    return not is_answered and all(in_force[reader.index.slot(one)] for one in ids)


def _quotes_hidden(reader: Reader, row: Row) -> bool:
    """Return whether the excerpt of a session has the text of a memory of its build that is forgotten or not public."""
    index = reader.index
    is_hidden = index.column("is_live") & (index.column("is_suppressed") | (index.column("tier") > 0))
    hidden = reader.rows([index.ids.names[slot] for slot in np.flatnonzero(is_hidden).tolist()])
    excerpt = canonical_name(row["excerpt"])
    return any(
        one.get("build_id") == row["build_id"]
        and one.get("project_id") == row.get("project_id")
        and canonical_name(one["content"]) in excerpt
        for one in hidden
    )


LONG_EVENTS = 30
"""Minimum number of events of a long session."""
_EVENTS_OF_AN_INTERVENTION = 6
"""An intervention counts as so many tasks: users state in about one turn of five what holds beyond the task, and rules find half of it."""
_NO_SESSIONS = frozenset({"git", "ci log", "test report"})
"""Sources whose builds contain no conversation."""
LEAST_CHARS = MAX_EXCERPT_CHARS // 2
"""What matters and was not asked about before: less of it in a session that has an order already makes no other."""
_EVENT_FRAME_CHARS = 12
_MOST_QUESTIONS = 500
_LEAST_QUESTION_CHARS = 40
"""What the agent asked in fewer characters may stand elsewhere by chance."""


class SessionWatch:
    """Notes the longest sessions that readers yield, at most as many as work orders may be made in a day."""

    def __init__(self, store: AgentMemoryStore) -> None:
        self._store = store
        self._most = store.config.distil_orders_a_day
        self._noted: list[tuple[int, str, BuildEventLog]] = []

    def over(self, reader: SourceReader) -> SourceReader:
        """Return a reader that yields the same records, and notes the long sessions among them."""
        return _Watched(reader, self)

    def note(self, log: BuildEventLog) -> None:
        """Note a log if it is a long session, and among the longest so far."""
        many = _length_of(log)
        if not many or not self._most:
            return
        entry = (many, f"{log.project_id}\x1f{log.build_id}", log)
        self._noted = [one for one in self._noted if one[1] != entry[1]]  # read again because it has grown
        self._noted.sort()
        (heappush if len(self._noted) < self._most else heappushpop)(self._noted, entry)

    def request_orders(self) -> OrdersResult:
        """Make work orders for the noted sessions, within the budget of the day. How much the rules kept says nothing of what they missed."""
        asked: dict[tuple[str, str], list[str]] = {}
        for row in self._store.reader.every_record(WORK_ORDER):
            if row["kind"] == "long session":
                asked.setdefault((row["project_id"], row["build_id"]), []).append(row["excerpt"])
        logs = [log for _, _, log in self._noted]
        self._noted = []
        subjects = [one for log in logs for one in subjects_of(log, asked.get((log.project_id, log.build_id), ()))]
        return request_sessions(self._store, subjects)


class _Watched:
    """A reader whose long sessions are noted."""

    def __init__(self, reader: SourceReader, watch: SessionWatch) -> None:
        self._reader = reader
        self._watch = watch
        self.source_id, self.kind = reader.source_id, reader.kind
        self.locator, self.project_id = reader.locator, reader.project_id
        self.count = reader.count

    def records(self, cursor: str | None = None) -> Iterator[SourceRecord]:
        for record in self._reader.records(cursor):
            if record.build is not None:
                self._watch.note(record.build)
            yield record


def _length_of(log: BuildEventLog) -> int:
    """Return the length of a session in events; 0 if it is not a long one, or no session."""
    many = len(log.tasks) + _EVENTS_OF_AN_INTERVENTION * len(log.user_interventions)
    return 0 if log.source in _NO_SESSIONS or many < LONG_EVENTS else many


def subjects_of(log: BuildEventLog, asked: Sequence[str] = ()) -> list[Subject]:
    """Return what to ask about a long session: a subject for each part of what the user said, what the agent concluded and what failed.

    One in which little matters is filled up with its other events. The value of a part is by its share of what matters. What stands in the
    excerpts of its orders (`asked`) is left out.
    """
    if not (many := _length_of(log)):
        return []
    log = _told_once(redact_any(log).value)  # secrets before anything is cut: a truncated one would not be recognised
    essential = list(filter(is_essential, informative_events(log, 1, lambda _: 0)))
    if asked:
        shown = ((excerpt_of([event.text]).partition("\n")[2], event) for event in essential)
        left = [event for text, event in shown if not any(text in excerpt for excerpt in asked)]
        parts = [part for part in _parts(left) if sum(map(_cost, part)) >= LEAST_CHARS]
    else:
        parts = _parts(informative_events(log, max(sum(map(_cost, essential)), MAX_EXCERPT_CHARS), _cost))
    shares = [sum(map(is_essential, part)) + 1 for part in parts]
    if shares:
        shares[-1] = max(shares)  # the end of a session says what holds of it
    return [
        Subject(
            kind="long session",
            key=f"{log.build_id}\x1f{part[0].text}" if asked or number else log.build_id,
            excerpt=excerpt_of([event.text for event in part]),
            value=round(0.7 * (1 - 1 / (1 + many / 60)) * share / max(shares), 6),
            source_at=max(event.at for event in part) if all(event.at for event in part) else log.completed_at,
            trust_class=log.trust_class,
            project_id=log.project_id,
            build_id=log.build_id,
            source_event_ids=[log.build_id],
        )
        for number, (part, share) in enumerate(zip(parts, shares, strict=True))
    ]


def _cost(event: SessionEvent) -> int:
    return len(event.text) + _EVENT_FRAME_CHARS


def _told_once(log: BuildEventLog) -> BuildEventLog:
    """Return a log without repetitions, and with what ended a failure: an agent's text stands before the user's first answer if there is one, else with its first task."""
    asked: set[str] = set()
    asked_of = (question_in(turn.context) for turn in log.user_interventions[-_MOST_QUESTIONS:])
    questions = [text for text in asked_of if len(text) >= _LEAST_QUESTION_CHARS]
    turns = []
    for turn in log.user_interventions:
        context = "" if turn.context in asked else turn.context
        turns.append(turn.model_copy(update={"context": context, "reply": _without(turn.reply, questions)}))
        asked.add(turn.context)
    told = {turn.reply for turn in turns}
    found = failures(steps_of(log.tasks)) if log.source == "transcript" else ()
    mended = {one.task.task_id: mended_text(one) for one in found if one.task and one.kind == "recovery"}
    tasks = []
    for task in log.tasks:
        texts = {"reasoning": task.reasoning, "lesson": mended.get(task.task_id, task.lesson)}
        own = {name: _without(text, questions) for name, text in texts.items()}
        own = {name: "" if text in told else text for name, text in own.items()}
        new = {text for text in own.values() if text} or {f"{task.description}\x1f{task.command}\x1f{task.output}"}
        if not new <= told:
            tasks.append(task.model_copy(update=own))
        told |= new
    return log.model_copy(update={"tasks": tasks, "user_interventions": turns})


def _without(text: str, passages: Iterable[str]) -> str:
    for one in passages:
        text = text.replace(one, "")
    return text.strip()


def _parts(events: Sequence[SessionEvent]) -> list[list[SessionEvent]]:
    """Return events, in order, in as many parts as their texts need."""
    parts: list[list[SessionEvent]] = [[]]
    left = MAX_EXCERPT_CHARS
    for event in events:
        if parts[-1] and _cost(event) > left:
            parts.append([])
            left = MAX_EXCERPT_CHARS
        parts[-1].append(event)
        left -= _cost(event)
    return parts
