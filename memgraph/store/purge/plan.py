"""What a purge removes and records again, and what it has to leave: read from the journal, and from the state without the removed events."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Literal, NamedTuple, get_args, get_origin

import orjson
from pydantic import BaseModel

from memgraph.errors import InvalidInputError
from memgraph.extraction.secrets import kinds_of_secrets
from memgraph.fold import EmptyRows, Workspace, fold
from memgraph.fold.tasks import CONTEXT, LEDGER, OPENINGS, SESSION, TRANSIENT, WORKING
from memgraph.journal.envelope import Line
from memgraph.journal.journal import Journal
from memgraph.model.build import event_id
from memgraph.model.events.memories import MemoryLinked
from memgraph.model.events.payload import Payload, WriteScope
from memgraph.model.events.records import BuildConsolidated
from memgraph.model.events.registry import NEVER_PURGED, PAYLOADS, POLICIES, STATES_MEMORY
from memgraph.model.events.tasks import (
    ChatContextSet,
    LedgerCheckpointed,
    SessionTasksSet,
    TaskCreated,
    TaskPayload,
    TitleSet,
    TransientRemoved,
    WorkingMemorySet,
)
from memgraph.model.ids import natural_id
from memgraph.model.results.maintenance import LostTask, RemainingName
from memgraph.ports import Row
from memgraph.store.deletions import reached
from memgraph.store.rows import Rows
from memgraph.text.cutting import preview
from memgraph.text.words import Runs

Says = Callable[[str], bool]
HISTORY = "history"
_HEAD = {"task_id": "id of a task", "key_id": "id of a key"}
_NO_WORD = re.compile(r"[\W_]+")
_MADE = frozenset({"model", "embedding_model"})
"""Fields of memgraph's own words."""
_MADE_TEXT = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{64}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"
)
"""Ids, hashes and times."""
_OF_TASK = frozenset(name for (name, _), kind in PAYLOADS.items() if issubclass(kind, TaskPayload))
"""Types that state something of a task. A pin is of its memory, which stays."""
_OF_TESTS = ("passed", "failed", "consumed_keys")
"""Fields of a consolidation that name tests: without those that go, it is recorded again."""
_CLEARING: dict[str, Callable[[Row], Payload]] = {
    WORKING: lambda row: WorkingMemorySet(session_id=row["name"]),
    CONTEXT: lambda row: ChatContextSet(session_id=row["name"]),
    TRANSIENT: lambda row: TransientRemoved(item_ids=[row["name"]]),
    LEDGER: lambda row: LedgerCheckpointed(agent=row["agent"]),
}
"""Notes by their tables, and what clears one of them."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """What was asked for: one of complete ids, a text (in any case and spacing), a project, a source, or whatever has a recognised secret."""

    ids: tuple[str, ...] = ()
    match: str | None = None
    project: str | None = None
    source: str | None = None
    secrets: bool = False

    def __post_init__(self) -> None:
        given = [f.name for f in fields(self) if getattr(self, f.name) not in (None, (), False)]
        if len(given) != 1:
            problem = "give one of: ids of memories, match, project, source or secrets"
            raise InvalidInputError(problem, field=given[1] if given else "ids", value=", ".join(given))
        for name in ("match", "project", "source"):
            value = getattr(self, name)
            if value is not None and not plain(value):
                raise InvalidInputError(
                    "is empty, which matches everything; name what is to go", field=name, value=value
                )

    @property
    def says(self) -> Says | None:
        """Whether a text is meant; None if texts do not matter."""
        if self.secrets:
            return lambda text: bool(kinds_of_secrets(text))
        if self.match is None:
            return None
        pattern = plain(self.match)
        return lambda text: pattern in plain(text)


@dataclass(slots=True)
class Plan:
    """What a purge removes and records."""

    ids: list[str] = field(default_factory=list)
    """The memories that were asked for."""
    derived: list[str] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)
    """Memories that contain the same words."""
    restated: list[str] = field(default_factory=list)
    """Memories that are left, but whose history contains the words: they begin again with what they are now."""
    kept: list[str] = field(default_factory=list)
    """Memories that contain the same words, and are kept nevertheless."""
    again: list[tuple[WriteScope, Payload]] = field(default_factory=list)
    """What is recorded because the event that said it is removed, or because a former statement must not hold again."""
    seqs: set[int] = field(default_factory=set)
    """The events whose payloads are removed."""
    others: Counter[str] = field(default_factory=Counter)
    """Number of these events that are not about memories, by type."""
    vectors: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Rows of vectors, by model."""
    followers: dict[str, str | None] = field(default_factory=dict)
    """Memories that are left and followed a removed one, with their nearest predecessor that is left."""
    related: set[str] = field(default_factory=set)
    """Memories that are left, and from which removed ones were derived."""
    lost_tasks: list[LostTask] = field(default_factory=list)
    """Tasks whose registration is removed."""
    is_said: Says = lambda _text: False
    """Whether a text contains the words that are removed."""
    is_everything: bool = False
    """Whether no memory is left."""

    def gone(self) -> set[str]:
        """Return all memories that are removed."""
        return {*self.ids, *self.derived, *self.copied}


class Record(NamedTuple):
    """An event as the journal holds it, not validated again: what its head says of it, and its payload."""

    seq: int
    commit_id: str
    type: str
    actor: str
    task_id: str | None
    content: Mapping[str, Any]

    @property
    def carries(self) -> list[str]:
        """The memories whose purge removes it."""
        return POLICIES[self.type].carries(self.content)

    @property
    def states(self) -> list[str]:
        """The memories of which it states fields."""
        return self.carries if self.type in STATES_MEMORY else []

    @property
    def row(self) -> Mapping[str, Any]:
        """The fields of a memory that it states."""
        row: Mapping[str, Any] = self.content.get("memory") or self.content.get("changed") or {}
        return row

    def says(self, is_meant: Says) -> bool:
        """Return whether any of its words is meant; what a build's tests are called does not count."""
        left_out = dict.fromkeys(_OF_TESTS) if self.type == BuildConsolidated.TYPE else {}
        return any(map(is_meant, strings_in({**self.content, **left_out})))


@dataclass(frozen=True, slots=True)
class _Names:
    """What builds are recorded again without: agents, tasks and tests that only removed memories had, and the words that are removed."""

    lost: set[str]
    tests: set[str]
    kept: set[str]
    """Tests whose failures other memories tell, if such memories may have the words."""
    is_said: Says

    def without(self, build: Mapping[str, Any]) -> dict[str, Any]:
        """Return those fields of a consolidation that change, as they are then."""

        def stays(name: str, task: str) -> bool:
            return not self._goes(name, task) and event_id(build["build_id"], task) not in self.lost

        passed, failed, keys = (build.get(name, ()) for name in _OF_TESTS)
        has_tests = bool(passed or failed)
        left = {
            "agents": [one for one in build.get("agents", ()) if one not in self.lost],
            "consumed_keys": [
                one for one in keys if (stays(one, one.rpartition(":")[0]) if has_tests else not self._goes(one))
            ],
            "passed": [one for one in passed if not self._goes(one)],
            "failed": [one for one in failed if stays(**one)],
        }
        return {name: value for name, value in left.items() if len(value) < len(build.get(name, ()))}

    def _goes(self, *names: str) -> bool:
        is_said = self.kept.isdisjoint(names) and any(map(self.is_said, names))
        return is_said or not self.tests.isdisjoint(names)


def records(lines: Iterable[Line]) -> Iterator[Record]:
    """Iterate over the events of lines that were verified before."""
    for line in lines:
        head, content = orjson.loads(line.head), orjson.loads(line.payload or b"{}")
        yield Record(line.seq, head["commit_id"], line.type, head["actor"], head["task_id"], content)


def plan_of(
    journal: Journal, rows: Rows, criteria: Criteria, *, keeps_copies: bool = False, keeps_derived: bool = False
) -> Plan:
    """Return what a purge removes, given the present rows: in five passes over the journal, and a fold of what is left of it.

    What was derived from a removed memory goes with it, and so, unless copies are kept, does one that repeats eight words in a row, or all of a shorter
    text; one that only used to is restated without its history.
    """

    def read() -> Iterator[Record]:
        return records(journal.lines())

    ids, others, every = _selected(read(), criteria)
    plan = Plan(ids=list(ids))
    products: dict[str, set[str]] = defaultdict(set)
    named: dict[str, set[str]] = defaultdict(set)
    failed: dict[str, set[str]] = defaultdict(set)
    texts: dict[str, None] = {}
    for record in read():
        if not keeps_derived:
            _note_products(record, products)
        for memory_id in record.states:
            named[memory_id].update(record.row.get("agents_involved", ()), record.row.get("source_event_ids", ()))
            if memory_id in ids:
                texts |= dict.fromkeys(_texts_of(record))
        for one in record.content.get("failed", ()) if record.type == BuildConsolidated.TYPE else ():
            failed[event_id(record.content["build_id"], one["task"])].add(one["name"])
    runs, says = Runs([*texts, *filter(None, [criteria.match])]), criteria.says
    plan.is_said = lambda text: runs.are_in(text) or bool(says and says(text))
    repeating = [one for one in read() if one.type not in NEVER_PURGED and one.says(runs.are_in)]
    others |= _sort(plan, repeating, products, runs, rows, keeps_copies=keeps_copies)
    others |= _lose_tasks(plan, journal, others)
    gone = plan.gone()
    of_others = set[str]().union(*(names for one, names in named.items() if one not in gone))
    lost = set[str]().union(*(named[one] for one in gone)) - of_others
    left = set[str]().union(*(names for event, names in failed.items() if event in of_others))
    tests = set[str]().union(*(names for event, names in failed.items() if event in lost)) - left
    names = _Names(lost, tests, left if keeps_copies else set(), plan.is_said)
    _collect(plan, read(), others, names, rows)
    _compare(plan, journal, rows)
    plan.related = {source for source, made in products.items() if not made.isdisjoint(gone)} - gone
    plan.is_everything = bool(every) and every <= gone
    return plan


def _selected(read: Iterable[Record], criteria: Criteria) -> tuple[dict[str, None], set[int], set[str]]:
    """Return the memories that the criteria select, the events that belong to no memory, and all memories of the journal."""
    ids: dict[str, None] = {}
    seqs: set[int] = set()
    every: set[str] = set()
    builds: set[str] = set()
    rests_on: dict[str, set[str]] = defaultdict(set)
    says = criteria.says
    tasks: set[str | None] = set()
    waiting: list[Record] = []
    commit_id = ""
    for record in read:
        if record.commit_id != commit_id:
            waiting, commit_id = [], record.commit_id
        if record.type == BuildConsolidated.TYPE:
            waiting.append(record)
        elif record.type == "source.read":
            if criteria.source is not None and _is_source(record.content, criteria.source):
                seqs |= {record.seq, *(one.seq for one in waiting)}
                builds |= {one.content["build_id"] for one in waiting}
            waiting = []
        for memory_id in record.states:
            every.add(memory_id)
            rests_on[memory_id].update(
                filter(None, [record.row.get("build_id"), *record.row.get("evidence_build_ids", ())])
            )
            if memory_id in criteria.ids or _is_meant(record, criteria, says):
                ids[memory_id] = None
        if not record.states and ((says and record.says(says)) or _is_of_project(record, criteria.project, tasks)):
            seqs.add(record.seq)
    ids |= {one: None for one, names in rests_on.items() if names & builds}
    return ids, seqs, every


def _is_meant(record: Record, criteria: Criteria, says: Says | None) -> bool:
    if says:
        return record.says(says)
    if criteria.project is not None:
        return bool(record.row.get("project_id") == criteria.project)
    return criteria.source is not None and plain(record.row.get("source", "")) == plain(criteria.source)


def _is_of_project(record: Record, project: str | None, tasks: set[str | None]) -> bool:
    """Return whether an event is about a project: it names it, or is of a task that was registered in it."""
    if project is None:
        return False
    is_named = record.content.get("project_id") == project
    if is_named and record.type == TaskCreated.TYPE:
        tasks.add(record.task_id)
    return is_named or record.task_id in tasks


def _is_source(content: Mapping[str, str], wanted: str) -> bool:
    names = (content["source_id"], content["kind"], content["locator"], f"{content['kind']} {content['locator']}")
    return plain(wanted) in map(plain, names)


def _note_products(record: Record, products: dict[str, set[str]]) -> None:
    """Note which memories were distilled from which, as the store itself or a derivation says."""
    content = record.content
    if record.type == "memory.derived":
        for source in content["source_ids"]:
            products[source].add(content["id"])
    elif record.type == MemoryLinked.TYPE and content["relation"] == "DERIVED_FROM":
        products[content["target_id"]].add(content["source_id"])
    elif record.type == MemoryLinked.TYPE and content["relation"] == "SUPPORTS" and record.actor == "system":
        products[content["source_id"]].add(content["target_id"])


def _texts_of(record: Record) -> Iterator[str]:
    for name in ("memory", "changed"):
        if content := record.content.get(name, {}).get("content"):
            yield content
    if candidate := record.content.get("candidate_content"):
        yield candidate


def _sort(
    plan: Plan,
    repeating: Sequence[Record],
    products: Mapping[str, set[str]],
    runs: Runs,
    rows: Rows,
    *,
    keeps_copies: bool,
) -> set[int]:
    """Decide which memories go besides those that were asked for, which are restated or kept, and return which of these events go."""

    def derived_from(memory_ids: Iterable[str]) -> dict[str, None]:
        return reached(memory_ids, lambda one: sorted(products.get(one, ())))

    derived = derived_from(plan.ids)
    going = {*plan.ids, *derived}
    copied: dict[str, None] = {}
    restated: dict[str, None] = {}
    links: dict[tuple[str, str, str], None] = {}
    seqs: set[int] = set()
    for record in repeating:
        named = record.carries if record.type != "distil.requested" else []
        is_of_others = bool(named) and going.isdisjoint(named)
        if is_of_others and keeps_copies:
            plan.kept += [one for one in named if one not in plan.kept and rows.has("Memory", one)]
            continue
        seqs.add(record.seq)
        if is_of_others and record.type == MemoryLinked.TYPE:
            links[record.content["relation"], named[0], named[1]] = None
        elif is_of_others:
            for memory_id in named:
                row = rows.get("Memory", memory_id)
                has_words = row is None or any(map(runs.are_in, strings_in(row)))
                (copied if has_words else restated)[memory_id] = None
    derived |= derived_from(copied)
    plan.derived = [one for one in derived if one not in plan.ids]
    plan.copied = [one for one in copied if one not in derived]
    gone = plan.gone()
    plan.restated = [one for one in restated if one not in gone]
    for relation, source_id, target_id in links:
        link = rows.get(relation, (source_id, target_id))
        if link is not None and gone.isdisjoint((source_id, target_id)):
            stated = {**link, "source_id": source_id, "relation": relation, "target_id": target_id, "reason": None}
            plan.again.append(("global", MemoryLinked.parse(stated)))
    return seqs


def _lose_tasks(plan: Plan, journal: Journal, seqs: set[int]) -> set[int]:
    """Note the tasks whose every registration goes, and return all events that state something of them: nobody could see it any more."""
    registered = list(records(journal.lines_of(TaskCreated.TYPE)))
    left = {one.task_id for one in registered if one.seq not in seqs}
    lost = dict.fromkeys(one.task_id for one in registered if one.seq in seqs and one.task_id not in left)
    if not lost:
        return set()
    events = [one for one in records(journal.lines()) if one.task_id in lost and one.type in _OF_TASK]
    titles = {one.task_id: one.content["title"] for one in events if one.type in (TaskCreated.TYPE, TitleSet.TYPE)}
    items = Counter(one.task_id for one in events if one.type in OPENINGS)
    plan.lost_tasks = [LostTask(id=str(one), title=titles[one], items=items[one]) for one in lost]
    return {one.seq for one in events}


def _collect(plan: Plan, read: Iterable[Record], others: set[int], names: _Names, rows: Rows) -> None:
    """Collect the events that are removed, and the rows of their vectors; a build that is still there is recorded again without these names."""
    gone, restated = plan.gone(), set(plan.restated)
    builds: dict[str, Mapping[str, Any]] = {}
    for record in read:
        content = record.content
        if record.type == "memory.reembedded":
            if found := {one["row"] for one in content["vectors"] if one["id"] in gone}:
                plan.vectors[content["model"]] |= found
            continue
        if is_again := record.type == BuildConsolidated.TYPE and record.seq not in others:
            key = natural_id("build", content["build_id"], project_id=content["project_id"])
            if is_again := bool(fewer := names.without(content)) or key in builds:  # a later one must hold again
                builds[key] = {**content, **fewer}
        is_about = not gone.isdisjoint(record.carries)
        goes = is_about or is_again or record.seq in others or not restated.isdisjoint(record.states)
        if not goes or record.type in NEVER_PURGED:
            continue
        plan.seqs.add(record.seq)
        if vector := content.get("vector"):
            plan.vectors[vector["model"]].add(vector["row"])
        if not is_about and record.type not in STATES_MEMORY:
            plan.others[record.type] += 1
    plan.again += [("global", BuildConsolidated.parse(one)) for key, one in builds.items() if rows.has("Build", key)]
    for row in rows.memories(plan.restated):
        if "vector_row" in row:  # it is still in use
            plan.vectors[row["embedding_model"]].discard(row["vector_row"])


def _compare(plan: Plan, journal: Journal, rows: Rows) -> None:
    """Compare the present state with a fold without the removed events: notes that came back are cleared, sessions and followers move on."""
    gone, lost, left = plan.gone(), {one.id for one in plan.lost_tasks}, Workspace(EmptyRows())
    for commit in journal.replay():
        for event in commit.events:
            if event.seq not in plan.seqs:
                fold(left, event)

    def previous_of(memory_id: str | None) -> str | None:
        return (rows.get("Memory", memory_id or "") or {}).get("previous_id")

    for table, key, _, row in left.changes():
        if row is None:
            continue
        if table in _CLEARING and row != rows.get(table, key):
            plan.again.append(("system", _CLEARING[table](row)))
        elif table == "Memory" and row.get("previous_id") in gone and row["id"] not in gone:
            previous, passed = previous_of(row["id"]), set[str | None]()
            while previous in gone and previous not in passed:
                passed.add(previous)
                previous = previous_of(previous)
            plan.followers[row["id"]] = None if previous in gone else previous
    for key, row in rows.scan(SESSION):
        stack = [one for one in row.get("stack", ()) if one not in lost and not plan.is_said(one)]
        if stack != (left.get(SESSION, key) or {}).get("stack", []) and not plan.is_said(row["name"]):
            plan.again.append(("system", SessionTasksSet(session_id=row["name"], stack=stack)))


def plain(text: str) -> str:
    """Return a text as it is compared."""
    return " ".join(text.casefold().split())


def strings_in(value: object, name: str = "") -> Iterator[str]:
    """Iterate over the words in a field's JSON: strings and names of values, but no names of fields, fixed values, ids, hashes or times."""
    if isinstance(value, str):
        is_made = name in _MADE or value in _fixed_values().get(name, ())
        if not is_made and not _MADE_TEXT.fullmatch(value):
            yield value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            if key not in _fixed_values():
                yield str(key)
            yield from strings_in(part, str(key))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from strings_in(part, name)


@cache
def _fixed_values() -> Mapping[str, frozenset[str]]:
    """Return the names of the fields of all events, each with the values that it is restricted to, if it is."""
    found: dict[str, set[str]] = {}
    seen: set[type[BaseModel]] = set()
    waiting: list[type[BaseModel]] = list(PAYLOADS.values())
    while waiting:
        model = waiting.pop()
        if model in seen:
            continue
        seen.add(model)
        for name, info in model.model_fields.items():
            values = found.setdefault(name, set())
            for part in _parts(info.annotation):
                if get_origin(part) is Literal:
                    values |= {one for one in get_args(part) if isinstance(one, str)}
                elif isinstance(part, type) and get_origin(part) is None and issubclass(part, BaseModel):
                    waiting.append(part)
    return {name: frozenset(values) for name, values in found.items()}


def _parts(annotation: object) -> Iterator[object]:
    """Yield a type and, unless it is a literal, the types that it is made of."""
    yield annotation
    if get_origin(annotation) is not Literal:
        for part in get_args(annotation):
            yield from _parts(part)


def matched_in(lines: Iterable[Line], is_meant: Says, rows: Mapping[str, Row]) -> dict[str, list[str]]:
    """Return the fields of memories that contain the words, unless the preview shows them; `HISTORY` if only an earlier version does."""

    def fields_of(row: Row) -> list[str]:
        return sorted(name for name, value in row.items() if any(map(is_meant, strings_in(value, name))))

    found = {one: fields_of(row) for one, row in rows.items() if not is_meant(preview(row.get("content", "")))}
    waiting = {one for one, names in found.items() if not names}
    for record in records(lines) if waiting else ():
        for one in waiting.intersection(record.states):
            if record.says(is_meant):
                found[one] = [HISTORY]
    return found


def remaining_names(lines: Iterable[Line], is_said: Says) -> list[RemainingName]:
    """Return the names with the words that stay, in signed heads and events that the journal needs, in the order of their first events."""
    known: dict[str, bool] = {}
    found: dict[tuple[str, str], list[int]] = {}
    for line in lines:
        head = orjson.loads(line.head)
        names = [(what, head[name]) for name, what in _HEAD.items() if head[name]]
        if line.type in NEVER_PURGED:
            texts = dict.fromkeys(strings_in(orjson.loads(line.payload or b"{}")))
            names += [(f"event {line.type}", text) for text in texts]
        for what, name in names:
            if name not in known:
                known[name] = is_said(name) or is_said(_NO_WORD.sub(" ", name))
            if known[name]:
                found.setdefault((what, name), []).append(line.seq)
    return [
        RemainingName(what=what, name=name, event=seqs[0], events=len(seqs)) for (what, name), seqs in found.items()
    ]


def without_names(found: Iterable[RemainingName]) -> list[RemainingName]:
    """Return the places alone, for what is kept in the store's directory."""
    return [one.model_copy(update={"name": None}) for one in found]


def phrase_of(found: Iterable[RemainingName]) -> str:
    """Return what remains as a phrase."""
    return "; ".join(
        f"the {one.what} {one.name!r} in {one.events:,} {'event' if one.events == 1 else 'events'}, first event {one.event}"
        for one in found
    )
