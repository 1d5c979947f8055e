"""Which tasks a session works on. Only explicit calls change it."""

from __future__ import annotations

from dataclasses import dataclass

from memgraph.errors import InvalidInputError
from memgraph.fold.tasks import SESSION, session_key
from memgraph.model.base import Name, checked
from memgraph.model.events.payload import Actor
from memgraph.model.events.tasks import SessionTasksSet
from memgraph.model.results.tasks import MAX_STACK, SessionTasks
from memgraph.store import AgentMemoryStore
from memgraph.store.commit.task_gate import WRITABLE
from memgraph.tasks.registry import find_task


@dataclass(frozen=True)
class TaskSessions:
    """The sessions of a store and their tasks.

    Attributes
    ----------
    store : AgentMemoryStore
    """

    store: AgentMemoryStore

    def get(self, session_id: str) -> SessionTasks:
        """Return the tasks of a session; none for an unknown session."""
        name = checked(Name, session_id, "session_id")
        row = self.store.reader.record(SESSION, session_key(name)) or {}
        return SessionTasks(session_id=name, stack=row.get("stack", []), switched_at=row.get("switched_at"))

    def switch(self, session_id: str, task_id: str, *, push: bool = False, actor: Actor = "user") -> SessionTasks:
        """Work on a task from now on, instead of the current one.

        Parameters
        ----------
        push : bool
            Interrupt the current task: `resume` returns to it. A session holds at most three tasks.

        Raises
        ------
        NotFoundError, InvalidInputError
            The task does not exist, or is archived or closed; or a fourth task would be held. Nothing is changed.
        """
        with self.store.exclusive():
            task = find_task(self.store, task_id)
            now = self.get(session_id).stack
            if task.id == (now[-1] if now else None):
                return self.get(session_id)
            below = [one for one in (now if push else now[:-1]) if one != task.id]
            if len(below) >= MAX_STACK:
                problem = f"would be the {MAX_STACK + 1}th task of the session, which holds {', '.join(below)}; resume or switch instead"
                raise InvalidInputError(problem, field="task_id", value=task.id)
            return self._set(session_id, [*below, task.id], actor)

    def resume(self, session_id: str, *, actor: Actor = "user") -> SessionTasks:
        """Leave the current task and return to the last one that was interrupted and is still open.

        Raises
        ------
        InvalidInputError
            No task was interrupted.
        """
        with self.store.exclusive():
            below = self.get(session_id).stack[:-1]
            open_ = [one for one in below if find_task(self.store, one).status in WRITABLE]
            if not open_:
                problem = "has interrupted no task that is still open; name the task to work on"
                raise InvalidInputError(problem, field="session_id", value=session_id)
            return self._set(session_id, open_, actor)

    def leave(self, session_id: str, task_id: str, *, actor: Actor = "user") -> SessionTasks:
        """Take a task out of what a session works on, if it is there."""
        with self.store.exclusive():
            known = self.get(session_id)
            left = [one for one in known.stack if one != task_id]
            return known if left == known.stack else self._set(session_id, left, actor)

    def _set(self, session_id: str, stack: list[str], actor: Actor) -> SessionTasks:
        self.store.commit("system", [SessionTasksSet(session_id=session_id, stack=stack)], actor=actor)
        return self.get(session_id)
