"""Collects what an agent needs to continue a task: its state, relevant memories, mistakes to avoid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from memgraph.model.base import checked
from memgraph.model.memory import StoredMemory, StoredSemanticMemory
from memgraph.model.results.retrieval import Warned
from memgraph.model.results.tasks import CarriedMemory, ContinuityPage, Handoff, Ledger, Pin, TaskSnapshot
from memgraph.retrieval import MemoryRetrieval
from memgraph.retrieval.context.budget import count_tokens, within_tokens
from memgraph.retrieval.context.context import failed, is_constraint, known_errors, solved_since
from memgraph.retrieval.overview import rules_in
from memgraph.tasks.handoffs.page import rendered
from memgraph.tasks.handoffs.reading import TaskReader
from memgraph.tasks.registry import LISTS, snapshot
from memgraph.text.safe import visible_line

Tokens = Annotated[int, Field(ge=200, le=100_000)]
_SEARCHED = 30
"""Memories among which relevant ones and mistakes are looked for."""
_MOST_RELEVANT, _MOST_MISTAKES = 12, 8
_QUERY_CHARS = 4_000
_NEGATIVE_READ = 20
"""Failures that are read in order of relevance, whether or not they match the task."""


@dataclass(frozen=True)
class Continuity:
    """The pages for one reader.

    Attributes
    ----------
    reader : TaskReader
    justification : str or None
        Why the reader needs sensitive memories.
    """

    reader: TaskReader
    justification: str | None = None

    def page(self, task_id: str, handoff: Handoff | None, ledger: Ledger | None, *, max_tokens: int) -> ContinuityPage:
        """Return the page of a task: in the state of the handoff if there is one, else in the present one."""
        budget = checked(Tokens, max_tokens, "max_tokens")
        reader, store = self.reader, self.reader.store
        now = reader.snapshot(snapshot(store, task_id))
        then = now if handoff is None else reader.snapshot(snapshot(store, task_id, as_of=handoff.seq))
        what_was_done = "" if handoff is None else handoff.what_was_done
        matching = self._found(then, what_was_done)
        if handoff is None:
            memories = self._within(matching, max_tokens=budget // 2)
        else:
            memories = reader.memories(handoff.memory_ids)
        mistakes = self._mistakes([*memories, *matching])
        warned_ids = {one.memory_id for one in mistakes}
        memories = [one for one in memories if one.outcome != "negative" or one.id not in warned_ids]
        page = ContinuityPage(
            agent=reader.access.agent,
            generated_at=store.now(),
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
        """Return the memories that a task and what was done in it recall, best first, within a budget of tokens.

        What a page shows anyway is not among them: pinned constraints.
        """
        return self._within(self._found(task, what_was_done), max_tokens=max_tokens)

    def _within(self, memories: Sequence[StoredMemory], *, max_tokens: int) -> list[StoredMemory]:
        chosen = [one for one in memories if not is_constraint(one)][:_MOST_RELEVANT]
        return chosen[: within_tokens([count_tokens(one.content) for one in chosen], max_tokens)]

    def _found(self, task: TaskSnapshot, what_was_done: str) -> list[StoredMemory]:
        """Return the memories with evidence that they belong to the task, best first."""
        reader = self.reader
        parts = [what_was_done, task.title, task.goal or "", *(one.content for one in task.next_actions)]
        text = "\n".join(filter(None, parts))[:_QUERY_CHARS]
        scored = MemoryRetrieval(reader.store, access=reader.access).search_memories(
            text, limit=_SEARCHED, task_id=reader.task_id, project_id=reader.project_id
        )
        matching = [one.memory for one in scored if one.has_evidence]
        shown = set(reader.ids([one.id for one in matching]))
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
        store = self.reader.store
        with store.reader.frozen():
            mask = self.reader.mask() & store.reader.listed()
            ids = store.reader.ranked_ids(mask, limit=None)
            ranked = self._of_scope(store.read_memories(ids[: 10 * _NEGATIVE_READ]))
        warnings = [one for one in ranked if _warns(one)][:_NEGATIVE_READ]
        return self.reader.memories([one.id for one in warnings])

    def _of_scope(self, memories: Sequence[StoredMemory]) -> list[StoredMemory]:
        """Return the memories of the task, and those of its project if it has one."""
        task, project = self.reader.task_id, self.reader.project_id
        return [
            one
            for one in memories
            if one.task_id == task or (project is not None and one.project_id in (project, None))
        ]

    def _constraints(self) -> list[Pin]:
        """Return the constraints that a prompt of the task has: pins, and other pinned memories that are constraints."""
        reader = self.reader
        memories = [one for one in rules_in(reader.store, reader.scope()) if is_constraint(one)]
        reader.store.auditing.record_disclosure(reader.access, "read", memories)
        return [
            Pin(id=one.id, kind="constraint", content=one.content, task_id=one.task_id, created_at=one.created_at)
            for one in memories
        ]


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
