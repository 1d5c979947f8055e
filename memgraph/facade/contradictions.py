"""`MemGraph.contradictions`: finding memories that contradict each other, and deciding between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memgraph.lifecycle import (
    decided_contradictions,
    dismiss_contradiction,
    find_contradictions,
    open_contradictions,
    resolve_contradiction,
)
from memgraph.model.base import Callback, checked
from memgraph.model.link import Link
from memgraph.model.results.learning import Contradiction, ContradictionResult
from memgraph.ports import Judge, Progress
from memgraph.store import AgentMemoryStore


@dataclass(frozen=True)
class Contradictions:
    """The contradictions between memories of a store; `judge` returns the `Judge`, if there is one."""

    store: AgentMemoryStore
    judge: Callable[[], Judge | None] = lambda: None

    def find(self, *, seconds: float | None = None, progress: Progress | None = None) -> ContradictionResult:
        """Compare the memories added since the last run with those in force.

        Memories from builds, observations and `remember` are already compared, by their words, when they are added.

        Parameters
        ----------
        seconds : float, optional
            Start no further comparison after this time; the next run continues there.
        progress : callable, optional
            Called with (done, total).
        """
        checked(Callback, progress, "progress")
        return find_contradictions(self.store, seconds=seconds, progress=progress, actor="user", judge=self.judge())

    def resolve(self, one_id: str, other_id: str, *, keep: str, reason: str | None = None) -> Link:
        """Decide a contradiction: the memory to keep supersedes the other. `Curation.undo` undoes it.

        Raises
        ------
        InvalidInputError, NotFoundError
            The memories do not contradict each other, `keep` is the id of neither, or one does not exist. Nothing is changed.
        """
        return resolve_contradiction(self.store, one_id, other_id, keep=keep, reason=reason)

    def dismiss(self, one_id: str, other_id: str, *, reason: str | None = None) -> Link:
        """Record that two memories do not contradict each other. They stay related and are not proposed again.

        Raises
        ------
        InvalidInputError, NotFoundError
            The memories are not linked as a contradiction, or one does not exist. Nothing is changed.
        """
        return dismiss_contradiction(self.store, one_id, other_id, reason=reason)

    def list(self, *, project: str | None = None, decided: bool = False) -> list[Contradiction]:
        """Return the open contradictions, or the decided ones, the most certain first.

        Parameters
        ----------
        project : str, optional
            Only of this project.
        """
        found = decided_contradictions if decided else open_contradictions
        return found(self.store, project_id=project)
