"""Ledgers: the last checkpoint of each agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.extraction.readers.history.git import work_tree_state
from memgraph.fold.tasks import COMPLETED_BY, LEARNED_BY, LEDGER, ledger_key
from memgraph.model.base import MAX_COUNT, Name, checked
from memgraph.model.events.payload import Actor
from memgraph.model.events.tasks import LedgerCheckpointed, WorkTree
from memgraph.model.results.tasks import GitState, Ledger
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.tasks.handoffs.reading import TaskReader, git_of, reader_of
from memgraph.tasks.registry import find_task


@dataclass(frozen=True)
class Ledgers:
    """The ledgers of a store's agents.

    Attributes
    ----------
    store : AgentMemoryStore
    """

    store: AgentMemoryStore

    def checkpoint(
        self,
        agent: str,
        *,
        current_task: str | None = None,
        completed: Sequence[str] = (),
        goal: str | None = None,
        tech_stack: Sequence[str] = (),
        learned: Sequence[str] = (),
        work_tree: str | Path | None = None,
        actor: Actor = "agent",
    ) -> Ledger:
        """State where an agent is. It replaces the agent's last checkpoint; completed tasks and what was learned are added to.

        Parameters
        ----------
        current_task : str, optional
            Id of a task.
        completed : sequence of str
            Ids of tasks.
        goal : str, optional
            What the agent wants to reach at present.
        tech_stack : sequence of str
            Such as ``python`` or ``sqlite``.
        learned : sequence of str
            Ids of memories that the agent may have: of no task, or of the current one.
        work_tree : path-like, optional
            A folder whose git work tree is read: branch, last commit, changed files. One in no work tree states nothing.

        Raises
        ------
        InvalidInputError, NotFoundError, ScopeError, SourceError
            Nothing is stated, a value is too long, or a task, memory or folder does not exist. Nothing is stored.
        """
        name = checked(Name, agent, "agent")
        given = (current_task, goal, work_tree, *completed, *tech_stack, *learned)
        if not any(one is not None for one in given):
            raise InvalidInputError("states nothing: give a task, a goal, a stack or a work tree", field="checkpoint")
        task = None if current_task is None else find_task(self.store, current_task).id
        reader = reader_of(self.store, name, task_id=task)
        event = LedgerCheckpointed.parse(
            {
                "agent": name,
                "current_task": task,
                "goal": goal,
                "tech_stack": list(tech_stack),
                "git": git_payload(None if work_tree is None else work_tree_state(work_tree)),
                "completed": [find_task(self.store, one).id for one in completed],
                "learned": reader.known(learned),
            }
        )
        self.store.commit("system", [event], actor=actor)
        return self.get(name)

    def get(self, agent: str) -> Ledger:
        """Return the ledger of an agent.

        Raises
        ------
        NotFoundError
            The agent has made no checkpoint.
        """
        row = self._row(agent)
        if row is None:
            raise NotFoundError("ledger of the agent", agent, listed_by="memgraph ledger list")
        return self._ledger(row)

    def list(self) -> list[Ledger]:
        """Return all ledgers, the latest checkpoint first."""
        rows = sorted(self.store.reader.every_record(LEDGER), key=lambda row: -int(row["seq"]))
        return [self._ledger(row) for row in rows]

    def shown_to(self, reader: TaskReader, agent: str) -> Ledger | None:
        """Return an agent's ledger, as far as it is about the reader's task and may be shown; None if it is about another one."""
        row = self._row(agent)
        if row is None or row.get("current_task") != reader.task_id:
            return None
        shown = {**row, "tech_stack": reader.lines(row.get("tech_stack", []))}
        if not reader.may_read(row.get("goal")):
            shown.pop("goal")
        ledger = self._ledger(shown)
        context = ledger.context.model_copy(update={"patterns_learned": reader.ids(ledger.context.patterns_learned)})
        return ledger.model_copy(update={"context": context, "state": reader.git(row)})

    def _row(self, agent: str) -> Row | None:
        return self.store.reader.record(LEDGER, ledger_key(checked(Name, agent, "agent")))

    def _ledger(self, row: Row) -> Ledger:
        learned = self.store.reader.sources(LEARNED_BY, row["id"], limit=MAX_COUNT)
        context = {
            "tech_stack": row.get("tech_stack", []),
            "patterns_learned": sorted(learned),
            "current_goal": row.get("goal"),
        }
        return Ledger.parse(
            {
                "agent_id": row["agent"],
                "last_checkpoint": row["checkpoint_at"],
                "tasks_completed": len(self.store.reader.sources(COMPLETED_BY, row["id"], limit=MAX_COUNT)),
                "current_task": row.get("current_task"),
                "state": git_of(row),
                "context": context,
            }
        )


def git_payload(state: GitState | None) -> WorkTree | None:
    """Return the state of a work tree as events hold it."""
    return None if state is None else WorkTree.parse(state.model_dump())
