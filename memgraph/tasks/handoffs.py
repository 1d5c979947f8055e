"""Ledgers of agents, handoffs of tasks between agents, and the page from which an agent continues a task, as far as it may have it.

Untrusted texts are on one line each and form no structure.
"""

from __future__ import annotations

import builtins
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.extraction.components import abbreviated
from memgraph.extraction.readers.git import work_tree_state
from memgraph.fold.tasks import CARRIED_BY, COMPLETED_BY, HANDOFF, LEARNED_BY, LEDGER, ledger_key
from memgraph.model.agent_input import UNNAMED
from memgraph.model.base import MAX_COUNT, Name, Prose, checked
from memgraph.model.events import tasks as events
from memgraph.model.events.payload import Actor
from memgraph.model.ids import MIN_ID_CHARS, new_id, stored_form
from memgraph.model.memory import StoredMemory, StoredSemanticMemory
from memgraph.model.results.retrieval import Warned
from memgraph.model.results.tasks import (
    AcceptedHandoff,
    CarriedMemory,
    ContinuityPage,
    GitState,
    Handoff,
    HandoffState,
    Ledger,
    LedgerContext,
    Pin,
    TaskItem,
    TaskSnapshot,
)
from memgraph.ports import Row
from memgraph.privacy import OWNER, Access
from memgraph.retrieval import MemoryRetrieval
from memgraph.retrieval.context.budget import count_tokens, within_tokens
from memgraph.retrieval.context.context import failed, is_constraint, known_errors, solved_since
from memgraph.retrieval.context.markdown import inline, item
from memgraph.retrieval.context.task_labels import source_label
from memgraph.retrieval.overview import rules_in
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import Scope
from memgraph.store.access.visibility import visible
from memgraph.store.listing import only_id
from memgraph.store.query import Mask
from memgraph.tasks.sessions import LISTS, find_task, snapshot
from memgraph.text.cutting import whole_sentences
from memgraph.text.safe import visible_line

MEMORY_TOKENS = 800
"""Default budget of the memories that a handoff carries."""
PAGE_TOKENS = 2_000
"""Default budget of a continuity page."""
_CHARS_A_TOKEN = 4
_REMARK_CHARS = 120
"""Kept free for the line that says what was left out."""
_CONSTRAINTS = "Constraints (pinned: keep to them)"
_TITLE_CHARS, _NAME_CHARS = 120, 80
_SHOWN_FILES = 20
Tokens = Annotated[int, Field(ge=200, le=100_000)]
_SEARCHED = 30
"""Memories among which relevant ones and mistakes are looked for."""
_MOST_RELEVANT, _MOST_MISTAKES = 12, 8
_QUERY_CHARS = 4_000
_NEGATIVE_READ = 20
"""Failures that are read in order of relevance, whether or not they match the task."""


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
        """
        name = checked(Name, agent, "agent")
        given = (current_task, goal, work_tree, *completed, *tech_stack, *learned)
        if not any(one is not None for one in given):
            raise InvalidInputError("states nothing: give a task, a goal, a stack or a work tree", field="checkpoint")
        reader = reader_of(self.store, name, task_id=checked(Name | None, current_task, "current_task"))
        event = events.LedgerCheckpointed.parse(
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
        """Return the ledger of an agent."""
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
        if not reader.access.may_read_text(row.get("goal")):
            shown.pop("goal")
        ledger = self._ledger(shown)
        context = ledger.context.model_copy(update={"patterns_learned": reader.ids(ledger.context.patterns_learned)})
        return ledger.model_copy(update={"context": context, "state": reader.git(row)})

    def _row(self, agent: str) -> Row | None:
        return self.store.reader.record(LEDGER, ledger_key(checked(Name, agent, "agent")))

    def _ledger(self, row: Row) -> Ledger:
        learned = self.store.reader.sources(LEARNED_BY, row["id"], limit=MAX_COUNT)
        completed = self.store.reader.sources(COMPLETED_BY, row["id"], limit=MAX_COUNT)
        return Ledger.of_row(
            row,
            agent_id=row["agent"],
            last_checkpoint=row["checkpoint_at"],
            tasks_completed=len(completed),
            state=git_of(row),
            context=LedgerContext.of_row(row, patterns_learned=sorted(learned), current_goal=row.get("goal")),
        )


def _work_tree(folder: str | Path | None) -> events.WorkTree | None:
    """Return the state of a folder's git work tree as events hold it; None if it is in none."""
    state = None if folder is None else work_tree_state(folder)
    return None if state is None else events.WorkTree.parse(state.model_dump())


@dataclass(frozen=True)
class Handoffs:
    """The handoffs of a store.

    `agent` and `justification` say who reads, and why it needs sensitive memories: a handoff between other agents does not exist for it, and
    what it may not have is left out; by default it is the owner. `project_id` admits only memories of this project and of none; by default it
    is the task's project.
    """

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
            carried = [one.id for one in reader.relevant(state, done, max_tokens=budget)]
        handoff_id = new_id()
        event = events.HandoffCreated.parse(
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
        """Return a handoff by its id, or by a beginning of eight or more characters that no other one has."""
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
        """Take a task over. Accepting again changes nothing. No session is switched: the result names the command for that."""
        name = _named(agent, "agent")
        checked(Tokens, max_tokens, "max_tokens")
        reader_of(self.store, name, justification)  # refuses before anything is written
        with self.store.exclusive():
            row = self._row(handoff_id, name)
            if (row["state"], row.get("accepted_by")) != ("accepted", name):
                self.store.commit(
                    "task", [events.HandoffAccepted(id=row["id"], agent=name)], task_id=row["task_id"], actor=actor
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
        """
        with self.store.exclusive():
            row = self._row(handoff_id, agent)
            if agent not in (None, row["from_agent"]):
                raise InvalidInputError("is not the agent that created the handoff", field="agent", value=agent)
            if row["state"] != "withdrawn":
                event = events.HandoffWithdrawn.parse({"id": row["id"], "reason": reason})
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
        """Return the page from which an agent continues the task of a handoff; see `ContinuityPage`. It is no recall."""
        row = self._row(handoff_id, agent)
        reader = self._reader(row, agent, justification, project_id=project_id)
        handoff = self._shown(row, reader)
        ledger = Ledgers(self.store).shown_to(reader, row["from_agent"])
        return reader.page(row["task_id"], handoff, ledger, max_tokens=max_tokens)

    def _rows(self, agent: str | None) -> builtins.list[Row]:
        """Return the rows of the handoffs that exist for an agent, the latest first."""
        name = checked(Name | None, agent, "agent")
        rows = [row for row in self.store.reader.every_record(HANDOFF) if _exists_for(name, row)]
        return sorted(rows, key=lambda row: -int(row["seq"]))

    def _row(self, handoff_id: str, agent: str | None) -> Row:
        """Return the row of a handoff; one that does not exist for an agent is not found. A whole id costs a look-up, a beginning reads them all."""
        name = checked(Name | None, agent, "agent")

        def ids_from(beginning: str) -> builtins.list[str]:
            return [row["id"] for row in self._rows(name) if row["id"].startswith(beginning)]

        listed_by = "memgraph handoff list"
        found = only_id(handoff_id, ids_from, kind="handoff", field="handoff_id", listed_by=listed_by)
        row = self.store.reader.record(HANDOFF, found)
        if row is None or not _exists_for(name, row):
            raise NotFoundError("handoff", handoff_id, listed_by=listed_by)
        return row

    def _reader(
        self, row: Row, agent: str | None, justification: str | None = None, *, project_id: str | None = None
    ) -> TaskReader:
        project = find_task(self.store, row["task_id"]).project_id if project_id is None else project_id
        return reader_of(self.store, agent, justification, task_id=row["task_id"], project_id=project)

    def _shown(self, row: Row, reader: TaskReader) -> Handoff:
        """Return a handoff with what may be shown of it."""
        known: dict[str, Any] = {"git_state": reader.git(row), "memory_ids": reader.ids(self._carried(row["id"]))}
        for name in ("artifacts", "needs_testing", "known_issues"):
            known[name] = reader.lines(row.get(name, []))
        if not reader.access.may_read_text(row["what_was_done"]):
            known["what_was_done"] = ""
        if not reader.access.may_read_text(row.get("reason")):
            known["reason"] = None
        return Handoff.of_row(row, **known)

    def _carried(self, handoff_id: str) -> builtins.list[str]:
        reader = self.store.reader
        ids = reader.sources(CARRIED_BY, handoff_id, limit=events.MAX_CARRIED)
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


@dataclass(frozen=True)
class TaskReader:
    """Who reads about a task, and what of it may be shown: texts, memories, and the page from which to continue it."""

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
        """Return ids in their stored form, each once; refuse one of a memory that may not be shown as if it did not exist."""
        wanted = {one: stored_form(checked(Name, one, "memories")) for one in memory_ids}
        visible_ids = set(self.ids(list(filter(None, wanted.values()))))
        for given, one in wanted.items():
            if one not in visible_ids:
                raise NotFoundError("memory that the agent may have in this task", given)
        return list(dict.fromkeys(wanted.values()))

    def lines(self, texts: Iterable[str]) -> list[str]:
        """Return those of some texts that may be shown."""
        return [one for one in texts if self.access.may_read_text(one)]

    def git(self, row: Row) -> GitState | None:
        """Return the state of a work tree from a row, with the names that may be shown."""
        state = git_of(row)
        if state is None or self.access.is_owner:
            return state
        files, branch = self.lines(state.files_modified), state.branch
        return state.model_copy(
            update={"files_modified": files, "branch": branch if self.access.may_read_text(branch) else None}
        )

    def snapshot(self, task: TaskSnapshot) -> TaskSnapshot:
        """Return the state of a task with the texts that may be shown."""
        if self.access.is_owner:
            return task

        def items(among: Sequence[TaskItem]) -> list[TaskItem]:
            return [one for one in among if self.access.may_read_text(one.content, one.reason)]

        shown = {name: items(getattr(task, name)) for name in LISTS.values()}
        return task.model_copy(
            update={
                **shown,
                "title": task.title if self.access.may_read_text(task.title) else task.task_id,
                "goal": task.goal if self.access.may_read_text(task.goal) else None,
                "state": {name: value for name, value in task.state.items() if self.access.may_read_text(name, value)},
                "confirmation": next(iter(items([task.confirmation] if task.confirmation else [])), None),
            }
        )

    def page(self, task_id: str, handoff: Handoff | None, ledger: Ledger | None, *, max_tokens: int) -> ContinuityPage:
        """Return the page of a task: in the state of the handoff if there is one, else in the present one."""
        budget = checked(Tokens, max_tokens, "max_tokens")
        now = self.snapshot(snapshot(self.store, task_id))
        then = now if handoff is None else self.snapshot(snapshot(self.store, task_id, as_of=handoff.seq))
        what_was_done = "" if handoff is None else handoff.what_was_done
        matching = self._found(then, what_was_done)
        if handoff is None:
            memories = self._within(matching, max_tokens=budget // 2)
        else:
            memories = self.memories(handoff.memory_ids)
        mistakes = self._mistakes([*memories, *matching])
        warned_ids = {one.memory_id for one in mistakes}
        memories = [one for one in memories if one.outcome != "negative" or one.id not in warned_ids]
        page = ContinuityPage(
            agent=self.access.agent,
            generated_at=self.store.now(),
            constraints=self._constraints(),
            task=then,
            handoff=handoff,
            since=list(_since(then, now)),
            ledger=ledger,
            memories=[
                CarriedMemory(id=one.id, type=one.type, text=visible_line(one.content), trust_class=one.trust_class)
                for one in memories
            ],
            mistakes=mistakes,
        )
        return rendered(page, max_tokens=budget)

    def relevant(self, task: TaskSnapshot, what_was_done: str, *, max_tokens: int) -> list[StoredMemory]:
        """Return the memories, without pinned constraints, that a task and what was done in it recall, best first, within a budget of tokens."""
        return self._within(self._found(task, what_was_done), max_tokens=max_tokens)

    def _within(self, memories: Sequence[StoredMemory], *, max_tokens: int) -> list[StoredMemory]:
        chosen = [one for one in memories if not is_constraint(one)][:_MOST_RELEVANT]
        return chosen[: within_tokens([count_tokens(one.content) for one in chosen], max_tokens)]

    def _found(self, task: TaskSnapshot, what_was_done: str) -> list[StoredMemory]:
        """Return the memories with evidence that they belong to the task, best first."""
        parts = [what_was_done, task.title, task.goal or "", *(one.content for one in task.next_actions)]
        text = "\n".join(filter(None, parts))[:_QUERY_CHARS]
        scored = MemoryRetrieval(self.store, access=self.access).search_memories(
            text, limit=_SEARCHED, task_id=self.task_id, project_id=self.project_id
        )
        matching = [one.memory for one in scored if one.has_evidence]
        shown = set(self.ids([one.id for one in matching]))
        return [one for one in matching if one.id in shown]

    def _mistakes(self, memories: Sequence[StoredMemory]) -> list[Warned]:
        """Return the failures among the memories found, then the most relevant other ones of the task's scope."""
        known = list({one.id: one for one in [*memories, *self._failures()]}.values())
        solved = solved_since(known)
        warned = (
            one for memory in known if memory.id not in solved for one in (*failed(memory), *known_errors(memory))
        )
        by_text: dict[str, Warned] = {}
        for one in warned:
            by_text.setdefault(one.what_fails, one)
        return list(by_text.values())[:_MOST_MISTAKES]

    def _failures(self) -> list[StoredMemory]:
        """Return failures and anti-patterns of the task and its project, the most relevant first."""
        reader = self.store.reader
        with reader.frozen():
            ids = reader.ranked_ids(self.mask() & reader.listed(), limit=None)
            ranked = self.store.read_memories(ids[: 10 * _NEGATIVE_READ])
        projects = set() if self.project_id is None else {self.project_id, None}
        of_scope = (one for one in ranked if one.task_id == self.task_id or one.project_id in projects)
        return self.memories([one.id for one in of_scope if _warns(one)][:_NEGATIVE_READ])

    def _constraints(self) -> list[Pin]:
        """Return the constraints that a prompt of the task has: pins, and other pinned memories that are constraints."""
        memories = [one for one in rules_in(self.store, self.scope()) if is_constraint(one)]
        self.store.auditing.record_disclosure(self.access, "read", memories)
        return [
            Pin(id=one.id, kind="constraint", content=one.content, task_id=one.task_id, created_at=one.created_at)
            for one in memories
        ]


def reader_of(
    store: AgentMemoryStore,
    agent: str | None,
    justification: str | None = None,
    *,
    task_id: str | None = None,
    project_id: str | None = None,
) -> TaskReader:
    """Return the reader for an agent; None: the owner."""
    access = OWNER if agent is None else store.access_of(agent, justification)
    return TaskReader(store, access, task_id=task_id, project_id=project_id)


def git_of(row: Row) -> GitState | None:
    """Return the state of a work tree from a row of a ledger or handoff; None if it has none."""
    return GitState.of_row(row) if "uncommitted_changes" in row else None


def _warns(memory: StoredMemory) -> bool:
    return memory.outcome == "negative" or (
        isinstance(memory, StoredSemanticMemory) and bool(memory.incorrect_approach)
    )


def _since(then: TaskSnapshot, now: TaskSnapshot) -> Iterator[str]:
    """Yield what was added to a task, or closed in it, between two of its states."""
    if then.status != now.status:
        yield f"status: {now.status}"
    if then.goal != now.goal and now.goal:
        yield f"goal: {now.goal}"
    for kind, field in LISTS.items():
        name = kind.replace("_", " ")
        before, after = ({one.id: one for one in getattr(state, field)} for state in (then, now))
        for one in after.values():
            if one.id not in before:
                yield f"{name}: {one.content}"
        for one in before.values():
            if one.id not in after:
                yield f"no longer open or in force: {name} {one.content}"
    for name, value in now.state.items():
        if then.state.get(name) != value:
            yield f"{name} = {value}"


class _Section(NamedTuple):
    heading: str
    rank: int
    lines: list[str]


def rendered(page: ContinuityPage, *, max_tokens: int) -> ContinuityPage:
    """Return a page with its text of at most `max_tokens`: sections are filled in the order of what is worst to miss; the last line says what is left out."""
    most = max_tokens * _CHARS_A_TOKEN
    longest = most // 4
    task, who = page.task, f" for {_name(page.agent)}" if page.agent else ""
    title = f"# Continuity: {_text(task.title, _TITLE_CHARS)}"
    head = f"{title}\n\nTask {_name(task.task_id)} ({task.status}){who}, {_minute(page.generated_at)} UTC."
    sections = list(_sections(page, longest))
    left = most - len(head) - _REMARK_CHARS
    kept: dict[str, list[str]] = {}
    omitted = 0
    for section in sorted(sections, key=lambda one: one.rank):
        cost = len(section.heading) + 5  # "\n## " and a line end
        for line in section.lines:
            needed = len(line) + 1 + (0 if section.heading in kept else cost)
            if needed > left:
                omitted += 1
                continue
            left -= needed
            kept.setdefault(section.heading, []).append(line)
    headings = [section.heading for section in sections if section.heading in kept]
    blocks = [head, *("\n".join([f"## {heading}", *kept[heading]]) for heading in headings)]
    if omitted:
        entries = "entry was" if omitted == 1 else "entries were"
        pinned = len(page.constraints) - len(kept.get(_CONSTRAINTS, ()))
        which = f" ({pinned} of them pinned constraints)" if pinned else ""
        blocks.append(f"{omitted} {entries} left out{which} to keep within {max_tokens} tokens.")
    text = "\n\n".join(blocks)
    return page.model_copy(update={"text": text, "total_tokens": count_tokens(text), "is_cut": omitted > 0})


def _sections(page: ContinuityPage, longest: int) -> Iterator[_Section]:
    """Yield the sections in the order of the page."""
    yield _Section(_CONSTRAINTS, 0, [f"- {_item(one.content, longest)}" for one in page.constraints])
    if page.handoff is not None:
        yield _Section("Handoff", 1, list(_handoff_lines(page.handoff, longest)))
    yield _Section("State", 2, list(_state_lines(page.task, longest)))
    yield _Section("Since the handoff", 3, [f"- {_item(one, longest)}" for one in page.since])
    if page.ledger is not None:
        has_git = page.handoff is not None and page.handoff.git_state is not None
        yield _Section("Last checkpoint", 6, list(_ledger_lines(page.ledger, longest, with_git=not has_git)))
    memories = [
        f"- {one.type.capitalize()}: {source_label(one.trust_class)}{_text(one.text, longest)} ({_short(one.id)})"
        for one in page.memories
    ]
    yield _Section("Relevant memories", 5, memories)
    yield _Section("Mistakes to avoid", 4, [_mistake(one, longest) for one in page.mistakes])


def _handoff_lines(handoff: Handoff, longest: int) -> Iterator[str]:
    to = _name(handoff.to_agent) if handoff.to_agent else "any agent"
    state = f"{handoff.state} by {_name(handoff.accepted_by)}" if handoff.accepted_by else handoff.state
    yield f"- From {_name(handoff.from_agent)} to {to}, {_minute(handoff.created_at)} UTC, {state} ({_short(handoff.id)})"
    if handoff.what_was_done:
        yield f"- Done: {_text(handoff.what_was_done, longest)}"
    yield from _labelled("Artifact", handoff.artifacts, longest)
    if handoff.git_state is not None:
        yield from _git_lines(handoff.git_state, longest)
    yield from _labelled("Needs testing", handoff.needs_testing, longest)
    yield from _labelled("Known issue", handoff.known_issues, longest)


def _state_lines(task: TaskSnapshot, longest: int) -> Iterator[str]:
    if task.goal:
        yield f"- Goal: {_text(task.goal, longest)}"
    kinds: tuple[tuple[str, Sequence[TaskItem]], ...] = (
        ("Constraint", task.constraints),
        ("Decision", task.decisions),
        ("Next action", task.next_actions),
        ("Open question", task.open_questions),
        ("Artifact", task.artifacts),
    )
    for label, items in kinds:
        for one in items:
            reason = f" ({'because ' if label == 'Decision' else ''}{_text(one.reason, longest)})" if one.reason else ""
            yield f"- {label}: {_text(one.content, longest)}{reason}"
    for name, value in sorted(task.state.items()):
        yield f"- {_text(name, longest)} = {_text(value, longest)}"
    if task.links:
        yield f"- May read the tasks: {', '.join(map(_name, task.links))}"


def _ledger_lines(ledger: Ledger, longest: int, *, with_git: bool) -> Iterator[str]:
    completed = f", {ledger.tasks_completed} tasks completed" if ledger.tasks_completed else ""
    yield f"- {_name(ledger.agent_id)}, {_minute(ledger.last_checkpoint)} UTC{completed}"
    if ledger.context.current_goal:
        yield f"- Goal: {_text(ledger.context.current_goal, longest)}"
    if ledger.context.tech_stack:
        yield f"- Stack: {_text(', '.join(ledger.context.tech_stack), longest)}"
    if ledger.state is not None and with_git:
        yield from _git_lines(ledger.state, longest)


def _git_lines(git: GitState, longest: int) -> Iterator[str]:
    commit = f"commit {_name(abbreviated(git.last_git_commit))}" if git.last_git_commit else "no commit yet"
    branch = f" on {_name(git.branch)}" if git.branch else ""
    changes = "uncommitted changes" if git.uncommitted_changes else "no uncommitted changes"
    yield f"- Git: {commit}{branch}, {changes}"
    if git.files_modified:
        more = " and more" if git.has_more_files or len(git.files_modified) > _SHOWN_FILES else ""
        yield f"- Changed files: {_text(', '.join(git.files_modified[:_SHOWN_FILES]), longest)}{more}"


def _mistake(one: Warned, longest: int) -> str:
    why = f": {_text(one.why, longest)}" if one.why else ""
    prevention = f" Instead: {_text(one.prevention, longest)}" if one.prevention else ""
    label = source_label(one.trust_class)
    what = f"{label}{_text(one.what_fails, longest)}" if label else _item(one.what_fails, longest)
    return f"- {what}{why}{prevention} ({_short(one.memory_id)})"


def _labelled(label: str, texts: Sequence[str], longest: int) -> Iterator[str]:
    return (f"- {label}: {_text(one, longest)}" for one in texts)


def _text(text: str, longest: int) -> str:
    return inline(whole_sentences(visible_line(text), longest))


def _item(text: str, longest: int) -> str:
    return item(_text(text, longest))


def _name(text: str) -> str:
    return _text(text, _NAME_CHARS)


def _short(memory_id: str) -> str:
    return memory_id[:MIN_ID_CHARS]


def _minute(timestamp: str) -> str:
    return timestamp[:16].replace("T", " ")
