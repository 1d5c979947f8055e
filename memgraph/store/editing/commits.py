"""The journal's commits, and which of them are undone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

import orjson

from memgraph.journal.envelope import Event, Line
from memgraph.journal.journal import Journal
from memgraph.model.events.store import CommitUndone


class RecordedCommit(NamedTuple):
    """The lines of one commit, and what their heads say."""

    id: str
    actor: str
    first: int
    """Sequence number of its first event."""
    last: int
    types: frozenset[str]
    lines: tuple[Line, ...]

    def events(self, journal: Journal) -> list[Event]:
        """Return its events, each verified."""
        return [journal.event(line) for line in self.lines]


def recorded_commits(journal: Journal) -> Iterator[RecordedCommit]:
    """Iterate over the commits of a journal; reads only the heads of its lines, which were verified when it was opened."""
    heads = (_Head.of(line) for line in journal.lines())
    for (commit_id, actor), group in groupby(heads, key=lambda head: (head.commit_id, head.actor)):
        found = list(group)
        types = frozenset(head.type for head in found)
        lines = tuple(head.line for head in found)
        yield RecordedCommit(commit_id, actor, found[0].seq, found[-1].seq, types, lines)


class Undoings:
    """Which commits are undone, and by which.

    Attributes
    ----------
    target_of : dict of str to str
        For each commit that undoes another one, that other commit's id.
    """

    def __init__(self) -> None:
        self.target_of: dict[str, str] = {}
        self._undone_by: dict[str, str | None] = {}

    def note(self, commit: RecordedCommit, journal: Journal) -> None:
        """Take a commit into account. Commits must be given in order."""
        if CommitUndone.TYPE not in commit.types:
            return
        for event in commit.events(journal):
            if isinstance(event.payload, CommitUndone):
                self.target_of[commit.id] = event.payload.commit_id
                self._set(event.payload.commit_id, commit.id)

    def undone_by(self, commit_id: str) -> str | None:
        """Return the commit that has undone a commit, or None if it is in force."""
        return self._undone_by.get(commit_id)

    def _set(self, commit_id: str, by: str | None) -> None:
        """Record that a commit is undone or in force, and so the reverse of the commit that it had undone itself."""
        passed: set[str] = set()
        while commit_id not in passed:
            passed.add(commit_id)
            self._undone_by[commit_id] = by
            if commit_id not in self.target_of:
                return
            commit_id, by = self.target_of[commit_id], None if by is not None else commit_id


class _Head(NamedTuple):
    line: Line
    commit_id: str
    actor: str
    seq: int
    type: str

    @classmethod
    def of(cls, line: Line) -> _Head:
        head = orjson.loads(line.head)
        return cls(line, head["commit_id"], head["actor"], line.seq, line.type)
