"""What a turn asks: whether the message asks for what a rule forbids, and again what is not answered by a “yes” or a “no”."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from memgraph.fold.tasks import HAS_ITEM, ITEM, PIN, is_pin, task_key
from memgraph.index.analyser import analyse
from memgraph.model.memory import StoredMemory
from memgraph.model.results.tasks import Task
from memgraph.model.results.tasks.turns import Nudge, NudgeKind
from memgraph.ports import Row
from memgraph.privacy.access import Access
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import Mask, Scope, of_or_none
from memgraph.store.access.visible import visible
from memgraph.tasks.turns.nudges import Rule, ambiguity_nudge, conflict_nudge, topic_nudge
from memgraph.tasks.turns.prohibitions import asks_for_forbidden

MAX_MEMORIES = 64
"""Pinned memories that are compared with a message: those with the most of its words."""
_CHOOSES_NONE = "That chooses none of the options: name one by its number, or run its command."


@dataclass(frozen=True)
class Questions:
    """The questions of a turn, as far as whoever asks may see what they are about.

    Attributes
    ----------
    task_id : str or None
        The task that the session works on after the turn.
    project : str or None
        Only pinned memories of this project and of none; None: of any.
    """

    store: AgentMemoryStore
    access: Access
    session_id: str
    task_id: str | None
    project: str | None

    def conflict(self, message: str) -> Nudge | None:
        """Return the question that a message raises which asks for what a constraint of the task or a pinned memory forbids."""
        if self.task_id is not None:
            for row in self.store.reader.held(HAS_ITEM, task_key(self.task_id), None):
                if self._is_constraint(row) and asks_for_forbidden(message, row["content"]):
                    return conflict_nudge(Rule("constraint", row["id"], row["content"], self.task_id))
        for memory in self._pinned(message):
            if asks_for_forbidden(message, memory.content):
                return self._about(memory)
        return None

    def again(self, kind: NudgeKind, about: Sequence[str], candidates: Sequence[Task]) -> Nudge | None:
        """Return a question once more, because the answer chose none of its options; None if there is nothing to choose any more.

        Parameters
        ----------
        about : sequence of str
            Ids of the rule, or of the tasks.
        candidates : sequence of Task
            The open tasks that whoever asks may see.
        """
        nudge = self._rule(about) if kind == "conflict" else self._tasks(kind, about, candidates)
        if nudge is None:
            return None
        return nudge.model_copy(update={"question": f"{_CHOOSES_NONE} {nudge.question}"})

    def _rule(self, about: Sequence[str]) -> Nudge | None:
        if len(about) != 1:
            return None
        row = self.store.reader.record(ITEM, about[0])
        if row is not None and row["task_id"] == self.task_id and "closed_seq" not in row and self._is_constraint(row):
            return conflict_nudge(Rule("constraint", row["id"], row["content"], self.task_id))
        with self.store.reader.frozen():
            index, mask = self.store.reader.index, self._mask(about)
            memories = self.store.reader.read([index.ids.names[slot] for slot in np.flatnonzero(mask).tolist()])
        return self._about(memories[0]) if memories else None

    def _tasks(self, kind: NudgeKind, about: Sequence[str], candidates: Sequence[Task]) -> Nudge | None:
        known = {one.id: one.title for one in candidates}
        named = [(one, known[one]) for one in about if one in known]
        if not named or len(named) < len(about):
            return None
        if kind == "ambiguity":
            return ambiguity_nudge(self.session_id, named, self.task_id)
        return topic_nudge(self.session_id, named[0], self.task_id)

    def _is_constraint(self, row: Row) -> bool:
        """Return whether an item is a constraint that whoever asks may have."""
        return row["kind"] == "constraint" and self.access.may_read_text(row["content"])

    def _about(self, memory: StoredMemory) -> Nudge:
        self.store.auditing.record_disclosure(self.access, "read", [memory])
        is_a_pin = is_pin(self.store.reader.record(PIN, memory.id))
        return conflict_nudge(Rule("pin" if is_a_pin else "memory", memory.id, memory.content))

    def _pinned(self, message: str) -> list[StoredMemory]:
        """Return the pinned memories with the most words of a message that whoever asks may have."""
        reader = self.store.reader
        with reader.frozen():
            index, mask = reader.index, self._mask()
            if not mask.any():
                return []
            shared = np.zeros(len(index), dtype=np.int32)
            for term in set(analyse(message)):
                code = index.vocabulary.find(term)
                if code >= 0:
                    shared[index.postings.get(code)[0]] += 1
            slots = np.flatnonzero(mask & (shared > 0))
            best = slots[np.argsort(-shared[slots], kind="stable")][:MAX_MEMORIES]
            return reader.read([index.ids.names[slot] for slot in best.tolist()])

    def _mask(self, among: Sequence[str] | None = None) -> Mask:
        """Return which slots hold pinned memories that whoever asks may have, of all or of some. Call it in a frozen block."""
        reader = self.store.reader
        scope = Scope(self.access, project_id=self.project, asking_session=self.session_id, task_id=self.task_id)
        mask = visible(reader, self.access, "read", "search", scope=replace(scope, among=among))
        mask &= reader.index.column("is_pinned") & ~reader.superseded()
        return mask & of_or_none(reader.index, "project", self.project)
