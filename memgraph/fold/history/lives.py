"""The records of a history: memories, their changes and links, recalls and builds (see `memgraph.fold.history.reading`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from memgraph.fold.history.kinds import kind_of
from memgraph.fold.history.relevance import Relevance

_LESSON_TAG = "lesson"


class Change(NamedTuple):
    """A change of a memory; `kind` as in `memgraph.viz.series.timeline.Timeline.changes`."""

    at: str
    seq: int
    id: str
    kind: str
    other: str | None = None


class Build(NamedTuple):
    """A build's outcome, and the event that states it."""

    at: str
    outcome: str
    seq: int


@dataclass(slots=True)
class Life:
    """The history of a memory.

    Attributes
    ----------
    at : str
        When it was added.
    worded_at : str
        When its final text was set.
    fingerprint : str or None
        Fingerprint of the failure that it describes.
    builds : tuple of str
        Builds that reported it.
    again : tuple of str
        When it was repeated without a build.
    tags : tuple of str
        Tags that it was added with and still has.
    tier, is_suppressed, is_archived, is_deleted : str, bool, bool, bool
        Its privacy tier, and its state at the end.
    sources : set of str
        Memories it was made from, by links that were not removed, whether or not these memories still exist.
    is_made : bool
        Whether it was made by sleep, or was ever linked as made from others.
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
        """The memory's kind: one of `memgraph.fold.history.kinds.KINDS`."""
        return kind_of(self.type, is_made=self.is_made)

    @property
    def is_lesson(self) -> bool:
        """Whether it is a lesson from a failure."""
        return self.type != "episodic" or _LESSON_TAG in self.tags


@dataclass(slots=True)
class Recall:
    """A retrieval and its outcome.

    Attributes
    ----------
    returned : int
        Number of memories.
    is_served : bool
        Whether one of them was made from others.
    outcome : str or None
        positive, negative, neutral or unknown; None until it is recorded.
    """

    at: str
    project_id: str | None
    returned: int
    is_served: bool
    outcome: str | None = None


@dataclass(slots=True)
class History:
    """The history of a store.

    Attributes
    ----------
    lives : dict of str to Life
        By id, including deleted memories.
    builds : dict of (str, str) to Build
        By project and name.
    relevances : dict of str to tuple of Relevance
        Relevance over time of the requested memories.
    links : dict of (str, str, str) to list of str
        Links among the requested memories, by relation, source and target: when each was created, removed, created again, …
    """

    lives: dict[str, Life] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    recalls: dict[str, Recall] = field(default_factory=dict)
    builds: dict[tuple[str, str], Build] = field(default_factory=dict)
    relevances: dict[str, tuple[Relevance, ...]] = field(default_factory=dict)
    links: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)
