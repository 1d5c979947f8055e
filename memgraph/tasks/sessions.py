"""Which tasks a session works on, and whether turns may change that. Only explicit calls change either, and turns with autoswitch."""

from __future__ import annotations

from dataclasses import dataclass

from memgraph.errors import InvalidInputError
from memgraph.fold.tasks import SESSION, is_recent_switch, session_key
from memgraph.model.base import Name, checked
from memgraph.model.events.payload import Actor
from memgraph.model.events.tasks import SessionControlSet, SessionTasksSet
from memgraph.model.results.tasks import MAX_STACK, Guidance, RejectedRecall, SessionTasks, TaskSwitch
from memgraph.ports import Row
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
        return session_of(name, row, self.store.now())

    def control(
        self,
        session_id: str,
        *,
        autoswitch: bool | None = None,
        guidance: Guidance | None = None,
        actor: Actor = "user",
    ) -> SessionTasks:
        """Set whether turns may switch the task of a session by themselves, and how much they ask. What is omitted stays.

        Switching autoswitch on also clears the counters that hold it back. Equal values change nothing.
        """
        checked(bool | None, autoswitch, "autoswitch")
        checked(Guidance | None, guidance, "guidance")
        with self.store.exclusive():
            known = self.get(session_id)
            switches = known.autoswitch if autoswitch is None else autoswitch
            asks = guidance or known.guidance
            is_held_back = bool(autoswitch and (known.switches_back or known.mismatches))
            if is_held_back or (switches, asks) != (known.autoswitch, known.guidance):
                event = SessionControlSet(session_id=known.session_id, autoswitch=switches, guidance=asks)
                self.store.commit("system", [event], actor=actor)
            return self.get(session_id)

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
            return self._set(session_id, stack_with(now, task.id, push=push), actor)

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


def stack_with(stack: list[str], task_id: str, *, push: bool = False) -> list[str]:
    """Return the tasks of a session after a switch, instead of the current one or, with `push`, in addition to it.

    Raises
    ------
    InvalidInputError
        There would be four of them.
    """
    below = [one for one in (stack if push else stack[:-1]) if one != task_id]
    if len(below) >= MAX_STACK:
        problem = f"would be the {MAX_STACK + 1}th task of the session, which holds {', '.join(below)}; resume or switch instead"
        raise InvalidInputError(problem, field="task_id", value=task_id)
    return [*below, task_id]


def session_of(session_id: str, row: Row, now: str) -> SessionTasks:
    """Return a session from its row. Switches to and fro count no more once the last one is old."""
    switch = rejected = None
    if "switched_at" in row:
        switch = TaskSwitch(
            from_task=row.get("switched_from"), to_task=row.get("switched_to"), switched_at=row["switched_at"]
        )
    if "rejected_at" in row:
        rejected = RejectedRecall(query_id=row["rejected_query_id"], rejected_at=row["rejected_at"])
    is_recent = switch is not None and is_recent_switch(switch.switched_at, now)
    return SessionTasks(
        session_id=session_id,
        stack=row.get("stack", []),
        autoswitch=row.get("autoswitch", False),
        guidance=row.get("guidance", "minimal"),
        last_switch=switch,
        switches_back=row.get("switches_back", 0) if is_recent else 0,
        mismatches=row.get("mismatches", 0),
        rejected=rejected,
    )
