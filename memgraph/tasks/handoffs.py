"""Ledgers of agents, and handoffs: a task that one agent hands over to another, with what was done and the memories that matter."""

from __future__ import annotations

import builtins
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.extraction.readers.history.git import work_tree_state
from memgraph.fold.tasks import CARRIED_BY, COMPLETED_BY, HANDOFF, LEARNED_BY, LEDGER, ledger_key
from memgraph.model.agent_input import UNNAMED
from memgraph.model.base import MAX_COUNT, Name, Prose, checked
from memgraph.model.events.payload import Actor
from memgraph.model.events.tasks import (
    MAX_CARRIED,
    HandoffAccepted,
    HandoffCreated,
    HandoffWithdrawn,
    LedgerCheckpointed,
    WorkTree,
)
from memgraph.model.ids import MIN_ID_CHARS, new_id
from memgraph.model.results.tasks import AcceptedHandoff, ContinuityPage, Handoff, HandoffState, Ledger
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.tasks.continuity import Continuity, TaskReader, Tokens, git_of, reader_of
from memgraph.tasks.registry import find_task, snapshot

MEMORY_TOKENS = 800
"""Default budget of the memories that a handoff carries."""
PAGE_TOKENS = 2_000
"""Default budget of a continuity page."""


@dataclass(frozen=True)
class Ledgers:
    """The ledgers of a store's agents."""

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
        reader = reader_of(self.store, name, task_id=checked(Name | None, current_task, "current_task"))
        event = LedgerCheckpointed.parse(
            {
                "agent": name,
                "current_task": current_task,
                "goal": goal,
                "tech_stack": list(tech_stack),
                "git": _work_tree(work_tree),
                "completed": list(completed),
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


def _work_tree(folder: str | Path | None) -> WorkTree | None:
    """Return the state of a folder's git work tree as events hold it; None if it is in none."""
    state = None if folder is None else work_tree_state(folder)
    return None if state is None else WorkTree.parse(state.model_dump())


@dataclass(frozen=True)
class Handoffs:
    """The handoffs of a store."""

    store: AgentMemoryStore

    def create(
        self,
        task_id: str,
        what_was_done: str,
        *,
        from_agent: str,
        to_agent: str | None = None,
        artifacts: Sequence[str] = (),
        work_tree: str | Path | None = None,
        needs_testing: Sequence[str] = (),
        known_issues: Sequence[str] = (),
        memories: Sequence[str] | None = None,
        max_tokens: int = MEMORY_TOKENS,
        justification: str | None = None,
        project_id: str | None = None,
        actor: Actor = "agent",
    ) -> Handoff:
        """Hand a task over, in the state that it has now.

        Parameters
        ----------
        to_agent : str, optional
            Default: any other agent may accept it.
        artifacts, needs_testing, known_issues : sequence of str
            At most 100 each, of at most 800 characters.
        work_tree : path-like, optional
            A folder whose git work tree is read: branch, last commit, changed files. One in no work tree states nothing.
        memories : sequence of str, optional
            Ids of the memories that it carries, which `from_agent` may have: of the task, or of none. Default: those that the task and
            what was done recall.
        max_tokens : int
            Budget of the memories that are chosen.
        project_id : str, optional
            Only memories of this project and of none. Default: the task's project.

        Raises
        ------
        InvalidInputError, NotFoundError, SourceError
            The task does not exist, or is archived or closed; an agent hands over to itself; nothing is said to be done; or a memory or
            folder does not exist. Nothing is stored.
        """
        done, budget = checked(Prose, what_was_done, "what_was_done").strip(), checked(Tokens, max_tokens, "max_tokens")
        giver = _named(from_agent, "from_agent")
        taker = None if to_agent is None else _named(to_agent, "to_agent")
        task = find_task(self.store, task_id)
        project = task.project_id if project_id is None else project_id
        reader = reader_of(self.store, giver, justification, task_id=task.id, project_id=project)
        if memories is not None:
            carried = reader.known(memories)
        else:
            state = snapshot(self.store, task.id)
            carried = [one.id for one in Continuity(reader).relevant(state, done, max_tokens=budget)]
        handoff_id = new_id()
        event = HandoffCreated.parse(
            {
                "id": handoff_id,
                "from_agent": giver,
                "to_agent": taker,
                "what_was_done": done,
                "artifacts": list(artifacts),
                "git": _work_tree(work_tree),
                "needs_testing": list(needs_testing),
                "known_issues": list(known_issues),
                "memories": carried,
            }
        )
        self.store.commit("task", [event], task_id=task.id, actor=actor)
        return self.get(handoff_id)

    def get(
        self,
        handoff_id: str,
        *,
        agent: str | None = None,
        justification: str | None = None,
        project_id: str | None = None,
    ) -> Handoff:
        """Return a handoff.

        Parameters
        ----------
        handoff_id : str
            The id, or a beginning of eight or more characters that no other one has.
        agent, justification : str, optional
            Who reads, and why it needs sensitive memories: a handoff between other agents does not exist for it, and what it may not
            have is left out. Default: the owner.
        project_id : str, optional
            Only memories of this project and of none. Default: the task's project.

        Raises
        ------
        NotFoundError, InvalidInputError
        """
        row = self._row(handoff_id, agent)
        return self._shown(row, self._reader(row, agent, justification, project_id=project_id))

    def list(
        self, *, task_id: str | None = None, agent: str | None = None, state: HandoffState | None = None
    ) -> builtins.list[Handoff]:
        """Return handoffs, the latest first.

        Parameters
        ----------
        agent : str, optional
            Only those from or for this agent, or for any, as it may read them. Default: all, as the owner may.
        state : {"open", "accepted", "withdrawn"}, optional
        """
        checked(HandoffState | None, state, "state")
        task = None if task_id is None else find_task(self.store, task_id).id
        chosen = [row for row in self._rows(agent) if task in (None, row["task_id"]) and state in (None, row["state"])]
        return [self._shown(row, self._reader(row, agent)) for row in chosen]

    def accept(
        self,
        handoff_id: str,
        agent: str,
        *,
        justification: str | None = None,
        max_tokens: int = PAGE_TOKENS,
        project_id: str | None = None,
        actor: Actor = "agent",
    ) -> AcceptedHandoff:
        """Take a task over. Accepting again changes nothing. No session is switched: the result names the command for that.

        Raises
        ------
        InvalidInputError, NotFoundError
            The handoff does not exist for this agent, as for `get`; it was withdrawn or the agent created it; the agent has no name; or the
            task is archived or closed. Nothing is changed.
        """
        name = _named(agent, "agent")
        checked(Tokens, max_tokens, "max_tokens")
        reader_of(self.store, name, justification)  # refuses before anything is written
        with self.store.exclusive():
            row = self._row(handoff_id, name)
            if (row["state"], row.get("accepted_by")) != ("accepted", name):
                self.store.commit(
                    "task", [HandoffAccepted(id=row["id"], agent=name)], task_id=row["task_id"], actor=actor
                )
        page = self.page(
            row["id"], agent=name, justification=justification, max_tokens=max_tokens, project_id=project_id
        )
        handoff = page.handoff or self.get(row["id"], agent=name)
        return AcceptedHandoff(
            handoff=handoff, page=page, command=f"memgraph task switch {shlex.quote(row['task_id'])}"
        )

    def withdraw(
        self, handoff_id: str, *, agent: str | None = None, reason: str | None = None, actor: Actor = "user"
    ) -> Handoff:
        """Withdraw a handoff that was not accepted yet. Withdrawing again changes nothing.

        Parameters
        ----------
        agent : str, optional
            The agent that withdraws it: the one that created it. Default: the owner.

        Raises
        ------
        InvalidInputError, NotFoundError
            The handoff does not exist for this agent, as for `get`; it was accepted, or created by another agent. Nothing is changed.
        """
        with self.store.exclusive():
            row = self._row(handoff_id, agent)
            if agent not in (None, row["from_agent"]):
                raise InvalidInputError("is not the agent that created the handoff", field="agent", value=agent)
            if row["state"] != "withdrawn":
                event = HandoffWithdrawn.parse({"id": row["id"], "reason": reason})
                self.store.commit("task", [event], task_id=row["task_id"], actor=actor)
        return self.get(row["id"])

    def page(
        self,
        handoff_id: str,
        *,
        agent: str | None = None,
        justification: str | None = None,
        max_tokens: int = PAGE_TOKENS,
        project_id: str | None = None,
    ) -> ContinuityPage:
        """Return the page from which an agent continues the task of a handoff; see `ContinuityPage`. It is no recall.

        Parameters
        ----------
        project_id : str, optional
            Only memories of this project and of none. Default: the task's project.
        """
        row = self._row(handoff_id, agent)
        reader = self._reader(row, agent, justification, project_id=project_id)
        handoff = self._shown(row, reader)
        ledger = Ledgers(self.store).shown_to(reader, row["from_agent"])
        return Continuity(reader).page(row["task_id"], handoff, ledger, max_tokens=max_tokens)

    def _rows(self, agent: str | None) -> builtins.list[Row]:
        """Return the rows of the handoffs that exist for an agent, the latest first."""
        name = checked(Name | None, agent, "agent")
        rows = [row for row in self.store.reader.every_record(HANDOFF) if _exists_for(name, row)]
        return sorted(rows, key=lambda row: -int(row["seq"]))

    def _row(self, handoff_id: str, agent: str | None) -> Row:
        """Return the row of a handoff; one that does not exist for an agent is not found. A whole id costs a look-up, a beginning reads them all."""
        wanted = checked(Name, handoff_id, "handoff_id").strip().lower()
        row = self.store.reader.record(HANDOFF, wanted)
        if row is not None:
            rows = [row] if _exists_for(checked(Name | None, agent, "agent"), row) else []
        elif len(wanted) >= MIN_ID_CHARS:
            rows = [row for row in self._rows(agent) if row["id"].startswith(wanted)]
        else:
            rows = []
        if not rows:
            raise NotFoundError("handoff", handoff_id, listed_by="memgraph handoff list")
        if len(rows) > 1:
            problem = f"is the beginning of {len(rows)} ids; give more of it"
            raise InvalidInputError(problem, field="handoff_id", value=handoff_id)
        return rows[0]

    def _reader(
        self, row: Row, agent: str | None, justification: str | None = None, *, project_id: str | None = None
    ) -> TaskReader:
        project = find_task(self.store, row["task_id"]).project_id if project_id is None else project_id
        return reader_of(self.store, agent, justification, task_id=row["task_id"], project_id=project)

    def _shown(self, row: Row, reader: TaskReader) -> Handoff:
        """Return a handoff with what may be shown of it."""
        known = {name: row[name] for name in Handoff.model_fields if name in row}
        for name in ("artifacts", "needs_testing", "known_issues"):
            known[name] = reader.lines(row.get(name, []))
        if not reader.may_read(row["what_was_done"]):
            known["what_was_done"] = ""
        if not reader.may_read(row.get("reason")):
            known["reason"] = None
        return Handoff.parse(
            {**known, "git_state": reader.git(row), "memory_ids": reader.ids(self._carried(row["id"]))}
        )

    def _carried(self, handoff_id: str) -> builtins.list[str]:
        reader = self.store.reader
        ids = reader.sources(CARRIED_BY, handoff_id, limit=MAX_CARRIED)
        return sorted(ids, key=lambda one: int((reader.record(CARRIED_BY, (one, handoff_id)) or {}).get("rank", 0)))


def _exists_for(agent: str | None, row: Row) -> bool:
    """Return whether an agent has a part in a handoff, or it is for any and not accepted by another. For the owner (None) each one exists."""
    taker = row.get("accepted_by", row.get("to_agent", agent))
    return agent is None or agent in (row["from_agent"], taker)


def _named(agent: str, field: str) -> str:
    """Return the name of an agent; reject the one that all agents without a name share."""
    name: str = checked(Name, agent, field)
    if name == UNNAMED:
        raise InvalidInputError("is no agent's own name: a handoff needs one", field=field, value=name)
    return name


def present_page(
    store: AgentMemoryStore, task_id: str, agent: str | None, justification: str | None, *, max_tokens: int
) -> ContinuityPage:
    """Return the page of a task in its present state."""
    task = find_task(store, task_id)
    reader = reader_of(store, agent, justification, task_id=task.id, project_id=task.project_id)
    ledger = None if agent is None else Ledgers(store).shown_to(reader, agent)
    return Continuity(reader).page(task.id, None, ledger, max_tokens=max_tokens)
