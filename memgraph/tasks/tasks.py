"""`MemGraph.tasks`: creates and changes tasks, and records what happens in them."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.fold.tasks import ITEM, held_key
from memgraph.journal.envelope import Event
from memgraph.model.agent_input import UNNAMED
from memgraph.model.base import Name, checked
from memgraph.model.events import tasks as events
from memgraph.model.events.payload import Actor, Payload
from memgraph.model.ids import new_id
from memgraph.model.results.retrieval import Prompt
from memgraph.model.results.tasks import Absorbed, ContinuityPage, Task, TaskItem, TaskSnapshot, TaskStatus, TurnControl
from memgraph.privacy import OWNER
from memgraph.store import AgentMemoryStore
from memgraph.store.listing import only_id
from memgraph.store.past import When
from memgraph.tasks.handoffs import PAGE_TOKENS, Handoffs, Ledgers, reader_of
from memgraph.tasks.pins import Pins
from memgraph.tasks.sessions import TaskSessions, Working, find_task, has_task, id_for, list_tasks, snapshot
from memgraph.tasks.turns import Turns


@dataclass(frozen=True)
class Tasks:
    """The tasks of a store.

    What is recorded in a task is one commit in its write scope and changes no other task. Tasks that are archived or closed do not
    change until their status is set again. All of it, and of `sessions`, `pins`, `working`, `ledgers` and `handoffs`, raises `NotFoundError` for
    what does not exist, or not for the agent that asks, `InvalidInputError` for a value or a change that is refused, `PermissionDeniedError` for what
    an agent may not have, `ScopeError` for an event that does not belong in the write scope, and `SourceError` for a work tree that git cannot read.
    Nothing is changed then.
    """

    store: AgentMemoryStore

    @cached_property
    def sessions(self) -> TaskSessions:
        """Which tasks sessions work on."""
        return TaskSessions(self.store)

    @cached_property
    def pins(self) -> Pins:
        """Pinned texts, for every task or for one."""
        return Pins(self.store)

    @cached_property
    def working(self) -> Working:
        """What sessions are doing, what chats are about, and texts that are kept for a while."""
        return Working(self.store)

    def absorb(self, session_id: str, output: str, *, agent: str | None = None, project: str | None = None) -> Absorbed:
        """Store what a model says in the tags of an answer, and return the answer without them; see `memgraph.tasks.absorbing.absorb`."""
        from memgraph.tasks.absorbing import absorb

        current = self.sessions.get(session_id).active
        place = project if project is not None or current is None else find_task(self.store, current).project_id
        return absorb(self.working, session_id, output, agent=agent or UNNAMED, project=place)

    def prompt(
        self, text: str = "", *, session: str | None = None, task_id: str | None = None, **options: Any
    ) -> Prompt:
        """Return what of memory goes into a prompt, in sections within budgets; see `memgraph.tasks.prompt.prompt_for`.

        The task is by default the one that the session works on.
        """
        from memgraph.tasks.prompt import prompt_for

        return prompt_for(self.store, text, session=session, task_id=task_id, **options)

    @cached_property
    def ledgers(self) -> Ledgers:
        """The last checkpoint of each agent."""
        return Ledgers(self.store)

    @cached_property
    def handoffs(self) -> Handoffs:
        """Tasks that one agent hands over to another."""
        return Handoffs(self.store)

    def continuity(
        self, task_id: str, *, agent: str | None = None, justification: str | None = None, max_tokens: int = PAGE_TOKENS
    ) -> ContinuityPage:
        """Return the page from which to continue a task in its present state; `handoffs.page` returns that of a handoff. It is no recall.

        Parameters
        ----------
        agent, justification : str, optional
            Who reads, and why it needs sensitive memories: the page holds only what it may have. Default: the owner.
        max_tokens : int
            Budget of the whole page.
        """
        task = find_task(self.store, task_id)
        reader = reader_of(self.store, agent, justification, task_id=task.id, project_id=task.project_id)
        ledger = None if agent is None else self.ledgers.shown_to(reader, agent)
        return reader.page(task.id, None, ledger, max_tokens=max_tokens)

    def begin_turn(
        self,
        session_id: str,
        message: str,
        *,
        asked: str | None = None,
        agent: str | None = None,
        justification: str | None = None,
        project: str | None = None,
        actor: Actor = "user",
    ) -> TurnControl:
        """Return which task a message of the user belongs to, and what to ask before it is answered.

        The current task is switched only if the user of the session allowed it (``sessions.control(session_id, autoswitch=True)``), the
        message belongs to an open task with high confidence, no other one matches about equally well, and the counters of the
        session are below their limits (settings ``turns``).

        A message that merely confirms (“yes”, “that's right”) is committed at once as ``USER_CONFIRMED`` in the scope of the current task, unless
        the last turn asked a question: “yes” and “no” choose none of its options, so it is asked again and nothing is committed. Besides, a turn appends one event ``memory.turn-control``, with a switch if there is one, and only if it changes the session: its
        task, the number of mismatches in a row, or what was asked last. Any other turn appends nothing.

        It reads the titles and ids of all open tasks, the items of the twenty touched last, and the pinned memories that share words with the
        message: some 10 ms with a few tasks, and about 3 ms more for each task of 150 items.

        Parameters
        ----------
        message : str
            Of any length; its first 16,000 characters are read.
        asked : str, optional
            What the user was asked instead of what the last turn asked: a confirmation is recorded with it.
        agent, justification : str, optional
            For whom: tasks and memories that this agent may not have are neither inferred nor named. Default: the owner.
        project : str, optional
            Only tasks of this project and of none. Default: of any.

        Returns
        -------
        TurnControl
        """
        access = OWNER if agent is None else self.store.access_of(agent, justification)
        return Turns(self.store, access).begin(session_id, message, asked=asked, project=project, actor=actor)

    def upsert(
        self, title: str, *, task_id: str | None = None, project: str | None = None, actor: Actor = "user"
    ) -> Task:
        """Register a task, or set the title of the one with this id.

        Parameters
        ----------
        task_id : str, optional
            Default: made from the title, and not yet in use.
        project : str, optional
            Of a new task.
        """
        title = checked(Name, title, "title").strip()
        with self.store.exclusive():
            name = id_for(self.store, title) if task_id is None else checked(Name, task_id, "task_id")
            if not has_task(self.store, name):
                self._commit(name, events.TaskCreated.parse({"title": title, "project_id": project}), actor=actor)
            elif project not in (None, (known := find_task(self.store, name)).project_id):
                raise InvalidInputError(
                    f"is not that of the task, {known.project_id!r}", field="project", value=project
                )
            elif known.title != title:
                self._commit(name, events.TitleSet(title=title), actor=actor)
            return find_task(self.store, name)

    def get(self, task_id: str) -> Task:
        """Return a task."""
        return find_task(self.store, task_id)

    def list(
        self, *, status: TaskStatus | Iterable[TaskStatus] | None = None, project: str | None = None
    ) -> list[Task]:
        """Return tasks, the last touched first.

        Parameters
        ----------
        status : {"active", "suspended", "archived", "closed"}, optional
            One or several. Default: any.
        """
        return list_tasks(self.store, status=status, project=project)

    def set_status(self, task_id: str, status: TaskStatus, *, reason: str | None = None, actor: Actor = "user") -> Task:
        """Set the status of a task. An equal one changes nothing."""
        checked(TaskStatus, status, "status")
        with self.store.exclusive():
            if find_task(self.store, task_id).status != status:
                self._commit(task_id, events.TaskStatusSet.parse({"status": status, "reason": reason}), actor=actor)
            return find_task(self.store, task_id)

    def link(self, task_id: str, target_id: str, *, actor: Actor = "user") -> TaskSnapshot:
        """Let a task read others, at most ``max_task_links``; it never writes there. A link that exists is left as it is."""
        with self.store.exclusive():
            known = snapshot(self.store, task_id).links
            if target_id not in known:
                most = self.store.config.max_task_links
                if len(known) >= most and target_id != task_id and has_task(self.store, target_id):
                    problem = f"would be link {len(known) + 1} of the task, and {most} are allowed (max_task_links); unlink one of {', '.join(known)}"
                    raise InvalidInputError(problem, field="target_id", value=target_id)
                self._commit(task_id, events.TaskLinked.parse({"target_id": target_id}), actor=actor)
            return snapshot(self.store, task_id)

    def unlink(self, task_id: str, target_id: str, *, actor: Actor = "user") -> TaskSnapshot:
        """Undo `link`. A link that does not exist changes nothing."""
        with self.store.exclusive():
            if target_id in snapshot(self.store, task_id).links:
                self._commit(task_id, events.TaskUnlinked.parse({"target_id": target_id}), actor=actor)
            return snapshot(self.store, task_id)

    def snapshot(self, task_id: str, *, as_of: int | When | None = None) -> TaskSnapshot:
        """Return a task's state, now or at a moment. It is read from the graph, without a replay.

        Parameters
        ----------
        as_of : int, str, date or datetime, optional
            The number of an event, or a time: ISO 8601, UTC unless it has an offset; a day alone means its end.
        """
        return snapshot(self.store, task_id, as_of=as_of)

    def related(self, task_id: str, *, as_of: int | When | None = None) -> builtins.list[TaskSnapshot]:
        """Return the states of the tasks that a task is linked to, in the order of their links: they are read, never written to.

        Parameters
        ----------
        as_of : int, str, date or datetime, optional
            As for `snapshot`, of the links and of their tasks.
        """
        return [snapshot(self.store, one, as_of=as_of) for one in snapshot(self.store, task_id, as_of=as_of).links]

    def commit(
        self, scope: str, events: Sequence[events.TaskPayload], *, task_id: str | None = None, actor: Actor = "agent"
    ) -> builtins.list[Event]:
        """Commit several events of one task together, or with the scope ``none`` nothing."""
        return self.store.commit(scope, events, task_id=task_id, actor=actor)  # type: ignore[arg-type]

    def set_goal(self, task_id: str, goal: str, *, actor: Actor = "user") -> TaskSnapshot:
        """Set the goal; it replaces the former one."""
        self._commit(task_id, events.GoalSet(goal=goal), actor=actor)
        return snapshot(self.store, task_id)

    def decide(self, task_id: str, decision: str, *, reason: str | None = None, actor: Actor = "user") -> TaskItem:
        """Record a decision."""
        return self._item(task_id, events.DecisionMade(id=new_id(), decision=decision, reason=reason), actor)

    def revert(self, task_id: str, item_id: str, *, reason: str | None = None, actor: Actor = "user") -> TaskItem:
        """Record that a decision no longer holds."""
        return self._item(task_id, events.DecisionReverted(id=item_id, reason=reason), actor)

    def constrain(self, task_id: str, constraint: str, *, actor: Actor = "user") -> TaskItem:
        """Record a constraint."""
        return self._item(task_id, events.ConstraintAdded(id=new_id(), constraint=constraint), actor)

    def lift(self, task_id: str, item_id: str, *, reason: str | None = None, actor: Actor = "user") -> TaskItem:
        """Record that a constraint no longer holds."""
        return self._item(task_id, events.ConstraintRemoved(id=item_id, reason=reason), actor)

    def ask(self, task_id: str, question: str, *, actor: Actor = "user") -> TaskItem:
        """Record an open question."""
        return self._item(task_id, events.OpenQuestionAdded(id=new_id(), question=question), actor)

    def resolve(self, task_id: str, item_id: str, *, resolution: str | None = None, actor: Actor = "user") -> TaskItem:
        """Record the answer to an open question."""
        return self._item(task_id, events.OpenQuestionResolved(id=item_id, resolution=resolution), actor)

    def plan(self, task_id: str, action: str, *, actor: Actor = "user") -> TaskItem:
        """Record a next action."""
        return self._item(task_id, events.NextActionSet(id=new_id(), action=action), actor)

    def complete(self, task_id: str, item_id: str, *, result: str | None = None, actor: Actor = "user") -> TaskItem:
        """Record that a next action was done."""
        return self._item(task_id, events.NextActionCompleted(id=item_id, result=result), actor)

    def add_artifact(self, task_id: str, artifact: str, *, title: str | None = None, actor: Actor = "user") -> TaskItem:
        """Record something that the task made or needs, such as a path or an address."""
        return self._item(task_id, events.ArtifactLinked(id=new_id(), artifact=artifact, title=title), actor)

    def patch_state(
        self,
        task_id: str,
        changed: Mapping[str, str] | None = None,
        *,
        removed: Sequence[str] = (),
        actor: Actor = "user",
    ) -> TaskSnapshot:
        """Set and remove named values of the task's state."""
        patch = events.StatePatchApplied.parse({"changed": dict(changed or {}), "removed": list(removed)})
        self._commit(task_id, patch, actor=actor)
        return snapshot(self.store, task_id)

    def confirm(self, task_id: str, message: str, *, confirmed: str | None = None, actor: Actor = "user") -> TaskItem:
        """Record that the user agreed.

        Parameters
        ----------
        message : str
            What the user said.
        confirmed : str, optional
            What the user agreed to.
        """
        self._commit(task_id, events.UserConfirmed(message=message, confirmed=confirmed), actor=actor)
        return self._read(held_key(task_id, "confirmation"))

    def close_item(self, task_id: str, item_id: str, *, note: str | None = None, actor: Actor = "user") -> TaskItem:
        """Close an item that holds: revert a decision, lift a constraint, resolve a question or complete a next action.

        Parameters
        ----------
        item_id : str
            The id, or a beginning of eight or more characters that no other item of the task has.
        """
        known = snapshot(self.store, task_id)
        items = [*known.decisions, *known.constraints, *known.open_questions, *known.next_actions]
        kind_of = {item.id: item.kind for item in items}
        named = {"kind": "item that holds in the task", "listed_by": f"memgraph task show {task_id}"}
        found = only_id(
            item_id, lambda start: [one for one in kind_of if one.startswith(start)], field="item_id", **named
        )
        match kind_of.get(found):
            case None:
                raise NotFoundError(named["kind"], item_id, listed_by=named["listed_by"])
            case "decision":
                return self.revert(task_id, found, reason=note, actor=actor)
            case "constraint":
                return self.lift(task_id, found, reason=note, actor=actor)
            case "open_question":
                return self.resolve(task_id, found, resolution=note, actor=actor)
            case _:
                return self.complete(task_id, found, result=note, actor=actor)

    def _item(self, task_id: str, payload: events.ItemEvent, actor: Actor) -> TaskItem:
        self._commit(task_id, payload, actor=actor)
        return self._read(payload.id)

    def _read(self, item_id: str) -> TaskItem:
        return TaskItem.model_validate(self.store.reader.record(ITEM, item_id) or {})

    def _commit(self, task_id: str, payload: Payload, *, actor: Actor) -> None:
        self.store.commit("task", [payload], task_id=checked(Name, task_id, "task_id"), actor=actor)
