"""What a reader may have of ledgers and handoffs: the rule for memories, and for texts that are no memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memgraph.errors import NotFoundError
from memgraph.model.base import Name, checked
from memgraph.model.ids import stored_form
from memgraph.model.memory import StoredMemory
from memgraph.model.results.tasks import GitState, TaskItem, TaskSnapshot
from memgraph.ports import Row
from memgraph.privacy.access import OWNER, Access
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import Scope
from memgraph.store.access.visible import visible
from memgraph.store.query import Mask

_GIT = ("branch", "last_git_commit", "uncommitted_changes", "files_modified", "has_more_files")


@dataclass(frozen=True)
class TaskReader:
    """Who reads about a task.

    Attributes
    ----------
    access : Access
        `OWNER` reads everything that is not forgotten.
    task_id : str or None
        Memories of this task and of none are admitted; None: only those of none.
    project_id : str or None
        Memories of this project and of none are admitted; None: those of every project.
    """

    store: AgentMemoryStore
    access: Access
    task_id: str | None = None
    project_id: str | None = None

    def scope(self, among: Sequence[str] | None = None) -> Scope:
        """Return the scope of what is read, of all memories or of some."""
        return Scope(self.access, project_id=self.project_id, task_id=self.task_id, among=among)

    def mask(self, among: Sequence[str] | None = None) -> Mask:
        """Return which slots may be shown, in force and not superseded. Call it, and use the result, in one frozen block."""
        reader = self.store.reader
        return visible(reader, self.access, "read", "search", scope=self.scope(among)) & ~reader.superseded()

    def ids(self, memory_ids: Sequence[str]) -> list[str]:
        """Return those of some memories that may be shown, in their order."""
        if not memory_ids:
            return []
        reader = self.store.reader
        with reader.frozen():
            may, slot_of = self.mask(memory_ids), reader.index.slot
            return [one for one in memory_ids if (slot := slot_of(one)) >= 0 and may[slot]]

    def memories(self, memory_ids: Sequence[str]) -> list[StoredMemory]:
        """Return those of some memories that may be shown, in their order, and record that sensitive ones were."""
        memories = self.store.read_memories(self.ids(memory_ids))
        self.store.auditing.record_disclosure(self.access, "read", memories)
        return memories

    def known(self, memory_ids: Iterable[str]) -> list[str]:
        """Return ids in their stored form, each once; refuse one of a memory that may not be shown as if it did not exist.

        Raises
        ------
        NotFoundError
        """
        wanted = {one: stored_form(checked(Name, one, "memories")) for one in memory_ids}
        visible_ids = set(self.ids(list(filter(None, wanted.values()))))
        for given, one in wanted.items():
            if one not in visible_ids:
                raise NotFoundError("memory that the agent may have in this task", given)
        return list(dict.fromkeys(wanted.values()))

    def may_read(self, *texts: str | None) -> bool:
        """Return whether texts that are no memories may be shown; see `Access.may_read_text`."""
        return self.access.may_read_text(*texts)

    def lines(self, texts: Iterable[str]) -> list[str]:
        """Return those of some texts that may be shown."""
        return [one for one in texts if self.may_read(one)]

    def git(self, row: Row) -> GitState | None:
        """Return the state of a work tree from a row, with the names that may be shown."""
        state = git_of(row)
        if state is None or self.access.is_owner:
            return state
        files, branch = self.lines(state.files_modified), state.branch
        return state.model_copy(update={"files_modified": files, "branch": branch if self.may_read(branch) else None})

    def snapshot(self, task: TaskSnapshot) -> TaskSnapshot:
        """Return the state of a task with the texts that may be shown."""
        if self.access.is_owner:
            return task

        def items(among: Sequence[TaskItem]) -> list[TaskItem]:
            return [one for one in among if self.may_read(one.content, one.reason)]

        shown = {
            name: items(getattr(task, name))
            for name in ("decisions", "constraints", "open_questions", "next_actions", "artifacts")
        }
        return task.model_copy(
            update={
                **shown,
                "title": task.title if self.may_read(task.title) else task.task_id,
                "goal": task.goal if self.may_read(task.goal) else None,
                "state": {name: value for name, value in task.state.items() if self.may_read(name, value)},
                "confirmation": next(iter(items([task.confirmation] if task.confirmation else [])), None),
            }
        )


def reader_of(
    store: AgentMemoryStore,
    agent: str | None,
    justification: str | None = None,
    *,
    task_id: str | None = None,
    project_id: str | None = None,
) -> TaskReader:
    """Return the reader for an agent; None: the owner.

    Raises
    ------
    PermissionDeniedError
        The justification justifies nothing. It is recorded.
    """
    access = OWNER if agent is None else store.access_of(agent, justification)
    return TaskReader(store, access, task_id=task_id, project_id=project_id)


def git_of(row: Row) -> GitState | None:
    """Return the state of a work tree from a row of a ledger or handoff; None if it has none."""
    return GitState.parse({name: row[name] for name in _GIT if name in row}) if "uncommitted_changes" in row else None
