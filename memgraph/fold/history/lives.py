"""What is kept of what happened: of memories, their changes and links, recalls and builds (see `memgraph.fold.history.reading`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from memgraph.fold.history.kinds import kind_of
from memgraph.fold.history.relevance import Relevance

_LESSON_TAG = "lesson"


class Change(NamedTuple):
    """Something that was done with a memory: `kind` as in `memgraph.viz.series.timeline.Timeline.changes`."""

    at: str
    seq: int
    id: str
    kind: str
    other: str | None = None


class Build(NamedTuple):
    """What became of a build, and the event that says so."""

    at: str
    outcome: str
    seq: int


@dataclass(slots=True)
class Life:
    """What is kept of a memory.

    Attributes
    ----------
    at : str
        When it came.
    worded_at : str
        Since when it has the text that it has at the end.
    fingerprint : str or None
        Of the failure that it tells of.
    builds : tuple of str
        That told it.
    again : tuple of str
        When it was told again without a build.
    tags : tuple of str
        Those that it came with and still has.
    tier, is_suppressed, is_archived, is_deleted : str, bool, bool, bool
        How private it is, and what has become of it at the end.
    sources : set of str
        What it was made of: by links that were made and not taken back, whether or not these memories are still there.
    is_made : bool
        Whether it was made by sleep, or ever linked as made of others.
    """

    type: str
    at: str
    seq: int
    project_id: str | None
    outcome: str
    tags: tuple[str, ...]
    worded_at: str = ""
    builds: tuple[str, ...] = ()
    again: tuple[str, ...] = ()
    tier: str = "public"
    fingerprint: str | None = None
    sources: set[str] | None = None
    is_made: bool = False
    is_suppressed: bool = False
    is_archived: bool = False
    is_deleted: bool = False
    invalid_at: str | None = None
    invalid_change: int = -1

    @property
    def kind(self) -> str:
        """What kind of memory it is: one of `memgraph.fold.history.kinds.KINDS`."""
        return kind_of(self.type, is_made=self.is_made)

    @property
    def is_lesson(self) -> bool:
        """Whether it says what is to be learned of a failure."""
        return self.type != "episodic" or _LESSON_TAG in self.tags


@dataclass(slots=True)
class Recall:
    """A retrieval, and what became of it.

    Attributes
    ----------
    returned : int
        Memories.
    is_served : bool
        Whether one of them had been made of others.
    outcome : str or None
        positive, negative, neutral or unknown; None as long as nobody has said.
    """

    at: str
    project_id: str | None
    returned: int
    is_served: bool
    outcome: str | None = None


@dataclass(slots=True)
class History:
    """All that happened.

    Attributes
    ----------
    lives : dict of str to Life
        By id, the deleted ones too.
    builds : dict of (str, str) to Build
        By project and name.
    relevances : dict of str to tuple of Relevance
        How relevant the memories asked for were, in the order of time.
    links : dict of (str, str, str) to list of str
        Of the links among the memories asked for, by relation, source and target: when each was made, unmade, made again, …
    """

    lives: dict[str, Life] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    recalls: dict[str, Recall] = field(default_factory=dict)
    builds: dict[tuple[str, str], Build] = field(default_factory=dict)
    relevances: dict[str, tuple[Relevance, ...]] = field(default_factory=dict)
    links: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
