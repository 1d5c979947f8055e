"""How something is learned of experience: scope by scope, from where something has changed since the last run.

What is to be written of a scope is planned while others may write, and planned again under the lock if they did. A run ends with
an event that says how far it has looked, and so does one that is stopped: what has waited longest comes first, so the next
one goes on from there. Killed before that, the next one finds done what was done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from memgraph.lifecycle.evidence.deletions import Deletions
from memgraph.lifecycle.evidence.evidence import Scope, TimeIsUp, seen_up_to, waiting
from memgraph.lifecycle.run.changes import last_run
from memgraph.lifecycle.run.embedding import vectors_of
from memgraph.model.base import Model
from memgraph.model.events.payload import Payload
from memgraph.model.memory import Vector
from memgraph.store import AgentMemoryStore

Vectors = Mapping[str, Vector | None]


class Planned(Protocol):
    """What is to be written of a scope."""

    @property
    def texts(self) -> list[str]:
        """Return what is to be embedded for it, each once."""


P = TypeVar("P", bound=Planned)
R = TypeVar("R", bound=Model)


@dataclass(frozen=True, slots=True)
class Study(Generic[P, R]):
    """One kind of learning.

    Attributes
    ----------
    run_key : str
        Key of the row that says how far it has looked.
    types : sequence of str
        Memories in which something must have changed.
    plan : callable
        Returns what is to be written of a scope; writes nothing.
    write : callable
        Writes it, given the vectors of its texts, under the lock; returns the result and the numbers of the events.
    conclude : callable
        Returns the event that ends the run, given the result of all scopes, the time, and the last event that was looked at.
    nothing : Model
        The result of no scope at all; a field `complete` says whether the run came to its end, and all others add up.
    """

    run_key: str
    types: Sequence[str]
    plan: Callable[[AgentMemoryStore, Scope, Deletions], P]
    write: Callable[[AgentMemoryStore, Scope, P, Vectors], tuple[R, set[int]]]
    conclude: Callable[[R, str, int], Payload]
    nothing: R

    def run(self, store: AgentMemoryStore, is_time_up: TimeIsUp) -> R:
        """Learn from every scope in which something has changed, but at least from one; once the time is up, the rest waits."""
        reader = store.reader
        with reader.frozen(links=True):
            began_at, now = reader.index.offset.seq, store.now()
            since = last_run(reader, self.run_key).get("seq", 0)
        total, own, is_first = self.nothing, set[int](), True
        deletions = Deletions(reader)
        for scope, seq in waiting(reader, self.run_key, self.types, now=now, until=began_at):
            if is_time_up() and not is_first:
                if seq - 1 > since:
                    store.commit("system", [self.conclude(total, now, seq - 1)], actor="system")
                return total.model_copy(update={"complete": False})
            if reader.index.offset.seq != began_at + len(own):  # others write: they may have deleted something
                deletions = Deletions(reader)
            result, written = self._learn(store, scope, deletions)
            total, own, is_first = _sum(total, result), own | written, False
        if not is_first:
            with store.exclusive():
                event = self.conclude(total, now, seen_up_to(store, began_at, own))
                store.commit("system", [event], actor="system")
        return total

    def _learn(self, store: AgentMemoryStore, scope: Scope, deletions: Deletions) -> tuple[R, set[int]]:
        with store.reader.frozen(links=True):
            seq = store.reader.index.offset.seq
            plan = self.plan(store, scope, deletions)
        embedder = store.embedder
        vectors = dict(zip(plan.texts, vectors_of(embedder, plan.texts), strict=True))
        with store.exclusive():
            store.check_embedder(embedder)
            if store.reader.index.offset.seq != seq:
                plan = self.plan(store, scope, Deletions(store.reader))
                lacking = [text for text in plan.texts if text not in vectors]
                vectors |= dict(zip(lacking, vectors_of(embedder, lacking), strict=True))
            return self.write(store, scope, plan, vectors)


def _sum(one: R, other: R) -> R:
    names = [name for name in type(one).model_fields if name != "complete"]
    return one.model_copy(update={name: getattr(one, name) + getattr(other, name) for name in names})
