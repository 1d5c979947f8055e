"""Reading tasks and their states, what sessions work on, and what is only kept for a while (working memory, what a chat is about, transient texts)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, get_args

from pydantic import Field

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.fold.tasks import (
    CONTEXT,
    HAS_ITEM,
    SESSION,
    TASK,
    TRANSIENT,
    WORKING,
    WRITABLE,
    is_recent_switch,
    note_key,
    session_key,
    task_key,
)
from memgraph.index.columns import PROMOTED_SOURCE
from memgraph.model.base import Name, checked
from memgraph.model.events.payload import Actor, Payload, Whole
from memgraph.model.events.tasks import (
    ChatContextSet,
    SessionControlSet,
    SessionTasksSet,
    TransientRemoved,
    TransientSet,
    WorkingMemorySet,
)
from memgraph.model.ids import canonical_name, source_id
from memgraph.model.memory import SemanticMemory, StoredMemory
from memgraph.model.results.tasks import (
    MAX_STACK,
    ChatContext,
    Guidance,
    RejectedRecall,
    SessionTasks,
    Task,
    TaskItem,
    TaskSnapshot,
    TaskStatus,
    TaskSwitch,
    TransientItem,
    WorkingMemory,
)
from memgraph.model.timestamps import days_between, from_iso, to_iso
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.past import When, moment_of

LISTS = {
    "decision": "decisions",
    "constraint": "constraints",
    "open_question": "open_questions",
    "next_action": "next_actions",
    "artifact": "artifacts",
}
"""The fields of a snapshot by kind of item."""
_LATER = frozenset({"closed_seq", "closed_at", "resolution"})
"""Fields of an item that say what happened after it held."""
_NO_WORD = re.compile(r"[^\w.]+")
_ID_CHARS = 48
_Ttl = Annotated[float, Field(gt=0.0, le=366 * 86_400.0, allow_inf_nan=False)]


def find_task(store: AgentMemoryStore, task_id: str) -> Task:
    """Return a registered task."""
    name = checked(Name, task_id, "task_id")
    row = store.reader.record(TASK, task_key(name))
    if row is None:
        raise NotFoundError("task", name, listed_by="memgraph task list")
    return Task.of_row(row, id=name)


def has_task(store: AgentMemoryStore, task_id: str) -> bool:
    """Return whether a task is registered."""
    return store.reader.record(TASK, task_key(task_id)) is not None


def list_tasks(
    store: AgentMemoryStore, *, status: TaskStatus | Iterable[TaskStatus] | None = None, project: str | None = None
) -> list[Task]:
    """Return the registered tasks, the last touched first."""
    wanted = get_args(TaskStatus) if status is None else [status] if isinstance(status, str) else list(status)
    for one in wanted:
        checked(TaskStatus, one, "status")
    checked(Name | None, project, "project")
    tasks = [Task.of_row(row, id=row["name"]) for row in store.reader.every_record(TASK)]
    chosen = [one for one in tasks if one.status in wanted and project in (None, one.project_id)]
    return sorted(sorted(chosen, key=lambda one: one.id), key=lambda one: one.touched_at, reverse=True)


def snapshot(store: AgentMemoryStore, task_id: str, *, as_of: int | When | None = None) -> TaskSnapshot:
    """Return a task's state now, or at an event or a time, by one query: each item knows from when until when it held."""
    task = find_task(store, task_id)
    moment = _moment(as_of)
    rows = store.reader.held(HAS_ITEM, task_key(task.id), moment)
    then = ({name: value for name, value in row.items() if name not in _LATER} for row in rows)
    items = [TaskItem.model_validate(row) for row in then]
    items.sort(key=lambda item: (item.seq, item.id))
    held = {item.kind: item for item in items}
    if "title" not in held:
        raise InvalidInputError(f"is before the task was created, on {task.created_at}", field="as_of", value=as_of)
    lists: dict[str, Any] = {field: [item for item in items if item.kind == kind] for kind, field in LISTS.items()}
    return TaskSnapshot(
        task_id=task.id,
        title=held["title"].content,
        status=held["status"].content,
        project_id=task.project_id,
        as_of=moment,
        through=max(item.seq for item in items),
        goal=held["goal"].content if "goal" in held else None,
        state={item.name or "": item.content for item in items if item.kind == "state"},
        links=[item.content for item in items if item.kind == "link"],
        confirmation=held.get("confirmation"),
        **lists,
    )


def id_for(store: AgentMemoryStore, title: str) -> str:
    """Return an unused id made from a title."""
    base = _NO_WORD.sub("-", canonical_name(title)).strip("-.")[:_ID_CHARS].strip("-.") or "task"
    number, candidate = 1, base
    while has_task(store, candidate):
        number += 1
        candidate = f"{base}-{number}"
    return candidate


def _moment(as_of: int | When | None) -> int | str | None:
    if as_of is None:
        return None
    if isinstance(as_of, int):
        event: int = checked(Whole, as_of, "as_of")
        return event
    return moment_of(as_of, field="as_of")


@dataclass(frozen=True)
class TaskSessions:
    """The sessions of a store and their tasks."""

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
        """
        with self.store.exclusive():
            known = self.get(session_id)
            if checked(Name, task_id, "task_id") == known.active:
                return known
            return self._set(session_id, stack_with(known.stack, task_id, push=push), actor)

    def resume(self, session_id: str, *, actor: Actor = "user") -> SessionTasks:
        """Leave the current task and return to the last one that was interrupted and is still open."""
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
    """Return the tasks of a session after a switch, instead of the current one or, with `push`, in addition to it."""
    below = [one for one in (stack if push else stack[:-1]) if one != task_id]
    if len(below) >= MAX_STACK:
        problem = f"would be the {MAX_STACK + 1}th task of the session, which holds {', '.join(below)}; resume or switch instead"
        raise InvalidInputError(problem, field="task_id", value=task_id)
    return [*below, task_id]


def session_of(session_id: str, row: Row, now: str) -> SessionTasks:
    """Return a session from its row. Switches to and fro count no more once the last one is old."""
    found: dict[str, Any] = {"session_id": session_id, "switches_back": 0}
    if "switched_at" in row:
        tasks = {"from_task": row.get("switched_from"), "to_task": row.get("switched_to")}
        found["last_switch"] = TaskSwitch.of_row(row, **tasks)
        if is_recent_switch(row["switched_at"], now):
            found["switches_back"] = row.get("switches_back", 0)
    if "rejected_at" in row:
        found["rejected"] = RejectedRecall.of_row(row, query_id=row["rejected_query_id"])
    return SessionTasks.of_row(row, **found)


@dataclass(frozen=True)
class Working:
    """The working memory of sessions, what chats are about, and transient texts."""

    store: AgentMemoryStore

    def get(self, session_id: str) -> WorkingMemory | None:
        """Return the working memory of a session; None if there is none, or if it is older than ``working_memory_days``."""
        row = self._row(WORKING, session_id, "session_id")
        if row is None or days_between(row["updated_at"], self.store.now()) > self.store.config.working_memory_days:
            return None
        return WorkingMemory.of_row(row, session_id=row["name"])

    def exists(self, session_id: str) -> bool:
        """Return whether a session has a working memory that is not too old."""
        return self.get(session_id) is not None

    def replace(
        self,
        session_id: str,
        *,
        task: str | None = None,
        context: Sequence[str] = (),
        pending: Sequence[str] = (),
        notes: str | None = None,
        actor: Actor = "agent",
    ) -> WorkingMemory:
        """Replace the working memory of a session as a whole.

        Parameters
        ----------
        task : str, optional
            What the session is doing.
        context, pending : sequence of str
            What matters for it; what is still to be done.
        notes : str, optional
        """
        given = {"task": task, "context": list(context), "pending": list(pending), "notes": notes}
        if not any(given.values()):
            raise InvalidInputError("is empty; `clear` removes the working memory", field="working memory")
        event = WorkingMemorySet.parse({"session_id": session_id, **given})
        self._commit(event, actor)
        return WorkingMemory.of_row(self._row(WORKING, session_id, "session_id") or {}, session_id=session_id)

    def clear(self, session_id: str, *, actor: Actor = "agent") -> bool:
        """Remove the working memory of a session; return whether there was one."""
        is_there = self._row(WORKING, session_id, "session_id") is not None
        if is_there:
            self._commit(WorkingMemorySet(session_id=session_id), actor)
        return is_there

    def set_context(self, session_id: str, context: str, *, actor: Actor = "agent") -> ChatContext:
        """State what a chat is about, instead of what was stated before."""
        self._commit(ChatContextSet(session_id=session_id, context=context), actor)
        return ChatContext.of_row(self._row(CONTEXT, session_id, "session_id") or {}, session_id=session_id)

    def context(self, session_id: str) -> ChatContext | None:
        """Return what a chat is about, as stated last."""
        row = self._row(CONTEXT, session_id, "session_id")
        return None if row is None else ChatContext.of_row(row, session_id=row["name"])

    def keep(
        self, item_id: str, content: str, *, ttl_s: float, task_id: str | None = None, actor: Actor = "agent"
    ) -> TransientItem:
        """Keep a text under a name for some seconds; it replaces the former one of this name."""
        name, seconds = checked(Name, item_id, "item_id"), checked(_Ttl, ttl_s, "ttl_s")
        ends = to_iso(from_iso(self.store.now()) + timedelta(seconds=seconds))
        self._commit(TransientSet(item_id=name, content=content, expires_at=ends, task_id=task_id), actor)
        return TransientItem.of_row(self._row(TRANSIENT, name, "item_id") or {}, id=name)

    def kept(self, *, task_id: str | None = None) -> list[TransientItem]:
        """Return the texts that have not expired, the first to expire first: of no task, or of this one."""
        now = self.store.now()
        rows = [row for row in self.store.reader.every_record(TRANSIENT) if row["expires_at"] > now]
        items = [TransientItem.of_row(row, id=row["name"]) for row in rows if row.get("task_id") == task_id]
        return sorted(items, key=lambda item: (item.expires_at, item.id))

    def prune(self, *, actor: Actor = "system") -> int:
        """Remove the texts that have expired, and working memories that are void; return their number."""
        now = self.store.now()
        days = self.store.config.working_memory_days
        rows = self.store.reader.every_record(WORKING)
        void = [row["name"] for row in rows if days_between(row["updated_at"], now) > days]
        for start in range(0, len(void), 1_000):
            events = [WorkingMemorySet(session_id=name) for name in void[start : start + 1_000]]
            self.store.commit("system", events, actor=actor)
        gone = [row["name"] for row in self.store.reader.every_record(TRANSIENT) if row["expires_at"] <= now]
        for start in range(0, len(gone), 1_000):
            self._commit(TransientRemoved(item_ids=gone[start : start + 1_000]), actor)
        return len(gone) + len(void)

    def promote(self, item_id: str, *, actor: Actor = "user") -> StoredMemory:
        """Store a text that has not expired as a memory, in the scope of its task, and keep it here no longer."""
        with self.store.exclusive():
            row = self._row(TRANSIENT, item_id, "item_id")
            if row is None or row["expires_at"] <= self.store.now():
                raise NotFoundError(
                    "transient item that has not expired", item_id, known=[one.id for one in self.kept()]
                )
            memory = SemanticMemory(
                id=source_id(
                    f"{PROMOTED_SOURCE}\x1f{row['name']}", int(from_iso(row["created_at"]).timestamp() * 1_000)
                ),
                content=row["content"],
                task_id=row.get("task_id"),
                trust_class="agent" if actor == "agent" else "user",
                source=PROMOTED_SOURCE,
                reason="promoted from what was kept for a while",
            )
            existing = self.store.get_memory(memory.id or "")  # a crash after the first of the two commits
            stored = existing or self.store.insert_parts([memory], actor=actor)[0]
            self._commit(TransientRemoved(item_ids=[row["name"]]), actor)
            return stored

    def _row(self, table: str, name: str, field: str) -> Row | None:
        return self.store.reader.record(table, note_key(table, checked(Name, name, field)))

    def _commit(self, event: Payload, actor: Actor) -> None:
        self.store.commit("system", [event], actor=actor)
