"""What is to be purged: memories by id, by their words, by the secrets in them, by project or by source."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields

from memgraph.errors import InvalidInputError
from memgraph.extraction.secrets import kinds_of_secrets
from memgraph.model.events.registry import POLICIES, STATES_MEMORY
from memgraph.ports import Row
from memgraph.store.purge.records import Record, strings_in
from memgraph.text.cutting import preview

Says = Callable[[str], bool]
HISTORY = "history"


@dataclass(frozen=True, slots=True)
class Criteria:
    """What was asked for: one of these.

    Attributes
    ----------
    ids : tuple of str
        Complete ids.
    match : str or None
        A text, compared without case and with any white space between its words.
    project : str or None
    source : str or None
        The source of memories (``trial``), or the id, kind or place of a source that was read.
    secrets : bool
        Everything that contains a recognised secret.
    """

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
class Selected:
    """What was found.

    Attributes
    ----------
    ids : dict of str to None
        Memories, in the order in which they were added.
    seqs : set of int
        Events that belong to no memory.
    every : set of str
        All memories that the journal holds.
    """

    ids: dict[str, None] = field(default_factory=dict)
    seqs: set[int] = field(default_factory=set)
    every: set[str] = field(default_factory=set)


def plain(text: str) -> str:
    """Return a text as it is compared."""
    return " ".join(text.casefold().split())


def selected(records: Iterable[Record], criteria: Criteria) -> Selected:
    """Return what the criteria select. One pass over the journal."""
    found = Selected()
    builds: dict[str, set[str]] = defaultdict(set)
    rests_on: dict[str, set[str]] = defaultdict(set)
    says, wanted = criteria.says, frozenset(criteria.ids)
    tasks: set[str] = set()
    waiting: list[Record] = []
    commit_id = ""
    for record in records:
        memory_id = _memory_of(record)
        if memory_id is not None:
            found.every.add(memory_id)
        if criteria.source is not None:
            if record.commit_id != commit_id:
                waiting, commit_id = [], record.commit_id
            if record.type == "build.consolidated":
                waiting.append(record)
            elif record.type == "source.read":
                if _is_source(record.content, criteria.source):
                    found.seqs |= {record.seq, *(one.seq for one in waiting)}
                    for one in waiting:
                        builds[one.content["project_id"]].add(one.content["build_id"])
                waiting = []
        if memory_id is not None:
            _note_builds(record, memory_id, rests_on)
            if memory_id in wanted if wanted else _is_meant(record, criteria, says):
                found.ids[memory_id] = None
        elif (says and _says(record, says)) or _is_of_project(record, criteria.project, tasks):
            found.seqs.add(record.seq)
    named = set().union(*builds.values())
    found.ids |= {one: None for one, names in rests_on.items() if names & named}
    return found


def _memory_of(record: Record) -> str | None:
    if record.type not in STATES_MEMORY:
        return None
    memory_id: str = record.content["memory"]["id"] if "memory" in record.content else record.content["id"]
    return memory_id


def _note_builds(record: Record, memory_id: str, rests_on: dict[str, set[str]]) -> None:
    row = record.content.get("memory") or record.content.get("changed") or {}
    rests_on[memory_id].update(filter(None, [row.get("build_id"), *row.get("evidence_build_ids", ())]))


def _is_meant(record: Record, criteria: Criteria, says: Says | None) -> bool:
    if says:
        return _says(record, says)
    row = record.content.get("memory") or record.content.get("changed") or {}
    if criteria.project is not None:
        return bool(row.get("project_id") == criteria.project)
    return criteria.source is not None and plain(row.get("source", "")) == plain(criteria.source)


def _says(record: Record, says: Says) -> bool:
    return any(map(says, strings_in(record.content)))


def _is_of_project(record: Record, project: str | None, tasks: set[str]) -> bool:
    """Return whether an event is about a project: it names it, or is of a task that was registered in it."""
    if project is None:
        return False
    is_named = record.content.get("project_id") == project
    if is_named and record.type == "TASK_CREATED" and record.task_id is not None:
        tasks.add(record.task_id)
    return is_named or (record.task_id in tasks and record.type not in STATES_MEMORY)


def _is_source(content: Mapping[str, str], wanted: str) -> bool:
    names = {content["source_id"], content["kind"], content["locator"], f"{content['kind']} {content['locator']}"}
    return plain(wanted) in set(map(plain, names))


def shows(is_meant: Says, row: Row) -> bool:
    """Return whether the preview of a memory's text shows the words: else a person would not know why it is listed."""
    return is_meant(preview(row.get("content", "")))


def matched_in(records: Iterable[Record], is_meant: Says, rows: Mapping[str, Row]) -> dict[str, list[str]]:
    """Return the fields of memories that contain the words, or `HISTORY` where only an earlier version does. One pass over the journal.

    Parameters
    ----------
    rows : mapping
        The present or last rows of the memories, by id.

    Returns
    -------
    dict
        Memories that contain the words nowhere have an empty list.
    """

    def says(value: object, name: str = "") -> bool:
        return any(map(is_meant, strings_in(value, name)))

    found = {one: sorted(name for name, value in row.items() if says(value, name)) for one, row in rows.items()}
    waiting = {one for one, names in found.items() if not names}
    for record in records if waiting else ():
        if record.type not in STATES_MEMORY:
            continue
        for one in waiting.intersection(POLICIES[record.type].carries(record.content)):
            if says(record.content):
                found[one] = [HISTORY]
    return found
