"""Runner: the only place where lifecycle phases commit. A phase plans; the runner embeds and commits the result.

A plan reads a `View` and returns events: it writes nothing and reads no clock. It is made while others may write, and
made again if they changed its input; the last attempt holds the writer lock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from memgraph.config import AgentMemoryConfig
from memgraph.journal.envelope import Event
from memgraph.lifecycle.run.embedding import vectors_of
from memgraph.model.base import Model
from memgraph.model.events.memories import MemoryRevised
from memgraph.model.events.payload import Actor, Payload, WriteScope
from memgraph.model.memory import AgentMemory, Vector
from memgraph.ports import Embedder
from memgraph.store import AgentMemoryStore
from memgraph.store.commit.records import Write, with_vector
from memgraph.store.query import Reader

ATTEMPTS = 3
"""Maximum number of planning attempts if others write meanwhile; the last one holds the lock."""
_MOST_IN_A_COMMIT = 400

M = TypeVar("M", bound=Model)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class View:
    """The input of a plan.

    Attributes
    ----------
    now : str
        Time of planning.
    is_locked : bool
        Whether the writer lock is held: a plan must not ask a model then.
    """

    reader: Reader
    config: AgentMemoryConfig
    now: str
    is_locked: bool


class Commit(NamedTuple):
    """Writes that are committed together, in a task's scope, in the global one, or (system) as the record of a run."""

    writes: Sequence[Write]
    task_id: str | None = None
    is_account: bool = False

    @property
    def write_scope(self) -> WriteScope:
        """The write scope that all writes share."""
        if self.is_account:
            return "system"
        return "task" if self.task_id else "global"


@dataclass(frozen=True, slots=True)
class Plan(Generic[R]):
    """The commits to make, in order, and the phase's result after them.

    Attributes
    ----------
    texts : collection of str
        Texts of new and revised memories to embed. Memories with other texts stay without a vector.
    """

    result: R
    commits: Sequence[Commit] = ()
    texts: Collection[str] = ()


class Done(NamedTuple, Generic[R]):
    """The result of a plan, and the sequence numbers of the committed events."""

    result: R
    seqs: list[int]


def always(_event: Event) -> bool:
    """Return True: a plan depends on every event."""
    return True


def carry_out(
    store: AgentMemoryStore,
    plan: Callable[[View], Plan[R]],
    *,
    embedder: Embedder | None = None,
    rests_on: Callable[[Event], object] = always,
    attempts: int = ATTEMPTS,
    actor: Actor = "system",
) -> Done[R]:
    """Plan and commit.

    Parameters
    ----------
    plan : callable
        Called again if others changed its input.
    embedder : Embedder, optional
        Embeds the texts of the plan. None: it has no texts.
    rests_on : callable
        Returns whether an event written by others meanwhile makes the plan stale.
    attempts : int
        1: plan under the writer lock.
    actor : {"user", "agent", "system"}
        Who asked for it: recorded with each event except the records of runs, which are the system's.

    Raises
    ------
    ModelMismatchError
        The store has changed its embedding model meanwhile.
    """
    vectors: dict[str, Vector | None] = {}
    for left in reversed(range(attempts)):
        with nullcontext() if left else store.exclusive():
            seq = store.reader.index.offset.seq
            made = plan(View(store.reader, store.config, store.now(), is_locked=not left))
            if not made.commits:
                return Done(made.result, [])
            if embedder is not None:
                lacking = [text for text in dict.fromkeys(made.texts) if text not in vectors]
                vectors |= dict(zip(lacking, vectors_of(embedder, lacking), strict=True))
            with store.exclusive():
                if embedder is not None:
                    store.check_embedder(embedder)
                if not left or not _is_stale(store.reader, seq, rests_on):
                    return Done(made.result, _committed(store, made.commits, vectors, actor))
    raise AssertionError("unreachable: under the lock nobody else writes")  # pragma: no cover


def _is_stale(reader: Reader, seq: int, rests_on: Callable[[Event], object]) -> bool:
    """Return whether others have changed a plan's input after an event."""
    return reader.index.offset.seq != seq and any(map(rests_on, reader.events_after(seq)))


def account(event: Payload) -> Commit:
    """Return the commit of an event that records a run or its progress."""
    return Commit([event], is_account=True)


def note(store: AgentMemoryStore, event_of: Callable[[View], Payload]) -> None:
    """Commit an event that records a run or its progress, and nothing else. It is made under the writer lock."""
    carry_out(store, lambda view: Plan(None, [account(event_of(view))]), attempts=1)


def added(one: M, other: M) -> M:
    """Return the sum of two partial results; it is complete if both are."""
    fields = {name: getattr(one, name) + getattr(other, name) for name in type(one).model_fields if name != "complete"}
    if hasattr(one, "complete"):
        fields["complete"] = one.complete and getattr(other, "complete", True)
    return one.model_copy(update=fields)


def commits_of(task_id: str | None, units: Sequence[Sequence[Write]]) -> list[Commit]:
    """Return commits of a few hundred writes each; writes that belong together stay together."""
    batches: list[list[Write]] = [[]]
    for unit in units:
        if len(batches[-1]) + len(unit) > _MOST_IN_A_COMMIT:
            batches.append([])
        batches[-1].extend(unit)
    return [Commit(batch, task_id) for batch in batches if batch]


def commits_by_task(units: Iterable[tuple[str | None, Sequence[Write]]]) -> list[Commit]:
    """Return commits of writes, each unit with its task: one commit has one task, and units stay whole."""
    by_task: dict[str | None, list[Sequence[Write]]] = {}
    for task_id, unit in units:
        by_task.setdefault(task_id, []).append(unit)
    return [commit for task_id, of_task in by_task.items() for commit in commits_of(task_id, of_task)]


def _committed(
    store: AgentMemoryStore, commits: Sequence[Commit], vectors: Mapping[str, Vector | None], actor: Actor
) -> list[int]:
    """Commit, and return the events' sequence numbers."""
    seqs: list[int] = []
    for commit in commits:
        writes = [_embedded(write, vectors) for write in commit.writes]
        by = "system" if commit.is_account else actor
        events = store.commit(commit.write_scope, writes, task_id=commit.task_id, actor=by)
        seqs += [event.seq for event in events]
    return seqs


def _embedded(write: Write, vectors: Mapping[str, Vector | None]) -> Write:
    """Return a write with the vector of its memory's new text, if that was embedded."""
    if isinstance(write, AgentMemory):
        return write.model_copy(update={"embedding": vectors.get(write.content)}) if write.embedding is None else write
    if isinstance(write, MemoryRevised):
        return with_vector(write, vectors.get(write.changed.content))  # type: ignore[attr-defined]
    return write
