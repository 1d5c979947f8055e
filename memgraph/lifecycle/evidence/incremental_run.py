"""An incremental run: what is learned of experience scope by scope, from where something has changed since the last run.

A run ends with an event that says how far it has looked, and so does one that is stopped: what has waited longest comes first,
so the next one goes on from there. Killed before that, the next one finds done what was done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from memgraph.lifecycle.evidence.deletions import Deletions
from memgraph.lifecycle.evidence.evidence import Scope, TimeIsUp, seen_up_to, waiting
from memgraph.lifecycle.run.changes import last_run
from memgraph.lifecycle.run.runner import Plan, View, added, carry_out, note
from memgraph.model.base import Model
from memgraph.model.events.payload import Payload
from memgraph.store import AgentMemoryStore

R = TypeVar("R", bound=Model)


@dataclass(frozen=True, slots=True)
class IncrementalRun(Generic[R]):
    """One kind of learning.

    Attributes
    ----------
    run_key : str
        Key of the row that says how far it has looked.
    types : sequence of str
        Memories in which something must have changed.
    plan : callable
        Returns what is to be written of a scope. The store is held still meanwhile.
    conclude : callable
        Returns the event that ends the run, given the result of all scopes, the time, and the last event that was looked at.
    nothing : Model
        The result of no scope at all; a field `complete` says whether the run came to its end, and all others add up.
    """

    run_key: str
    types: Sequence[str]
    plan: Callable[[View, Scope, Deletions], Plan[R]]
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

        def planned(scope: Scope, view: View) -> Plan[R]:
            with reader.frozen(links=True):
                is_alone = reader.index.offset.seq == began_at + len(own)  # else others may have deleted something
                return self.plan(view, scope, deletions if is_alone else Deletions(reader))

        for scope, seq in waiting(reader, self.run_key, self.types, now=now, until=began_at):
            if is_time_up() and not is_first:
                if seq - 1 > since:
                    note(store, lambda _view: self.conclude(total, now, seq - 1))  # noqa: B023 (called at once)
                return total.model_copy(update={"complete": False})
            result, seqs = carry_out(store, partial(planned, scope), embedder=store.embedder)
            total, is_first = added(total, result), False
            own.update(seqs)
        if not is_first:
            note(store, lambda view: self.conclude(total, now, seen_up_to(view.reader, began_at, own)))
        return total
