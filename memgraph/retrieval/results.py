"""Results of a recall, from the task that it is asked in and from the tasks that this one is linked to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from memgraph.model.events.records import RecalledItem
from memgraph.model.link import in_order
from memgraph.model.memory import StoredMemory
from memgraph.model.results.retrieval import Authority, Explanation, Opposed, StageReport
from memgraph.ports import Row
from memgraph.retrieval.context.budget import shortest_within_tokens, within_tokens
from memgraph.retrieval.context.context import oldest_first
from memgraph.retrieval.context.task_labels import related_label, task_label
from memgraph.retrieval.pipeline import Ranking
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import every_item, items_of, links_in, task_of


@dataclass(frozen=True)
class AskedTasks:
    """The tasks that a recall may read.

    Attributes
    ----------
    task_id : str or None
        The one in whose scope it is asked.
    items : list of dict
        What holds in it, or in every task if all are searched; oldest first.
    linked : list of str
        Those that it is linked to.
    linked_items : list of dict
        What holds in these.
    """

    task_id: str | None = None
    items: list[Row] = field(default_factory=list)
    linked: list[str] = field(default_factory=list)
    linked_items: list[Row] = field(default_factory=list)


class Line(NamedTuple):
    """One result: a memory, or an item of a task in the form of one, and why it is there.

    Attributes
    ----------
    item : str or None
        Its class if it is an item.
    label : str or None
        Its label if it comes from another task than the one asked about.
    is_related : bool
        Whether it comes from a linked task.
    has_evidence : bool
        Whether it passes the floor.
    """

    memory: StoredMemory
    why: Explanation
    item: Authority | None
    label: str | None
    is_related: bool
    has_evidence: bool


@dataclass(frozen=True)
class Related:
    """What linked tasks give: their results, how sure it is that they know of the matter, in [0, 1], and a report."""

    lines: list[Line] = field(default_factory=list)
    certainty: float = 0.0
    stages: list[StageReport] = field(default_factory=list)


def asked_tasks(
    store: AgentMemoryStore, task_id: str | None, *sessions: str | None, all_tasks: bool = False
) -> AskedTasks:
    """Return the tasks that a recall may read, with what holds in them. Call it outside of frozen blocks.

    Without a task and without a session that works on one it reads nothing; with one it costs a query for the task and for each link.
    """
    reader = store.reader
    name = task_of(reader, task_id, *sessions, all_tasks=all_tasks)
    if all_tasks:
        return AskedTasks(name, every_item(reader))
    if name is None:
        return AskedTasks()
    items = items_of(reader, name)
    linked = links_in(items)
    return AskedTasks(name, items, linked, [item for one in linked for item in items_of(reader, one)])


def lines_of(store: AgentMemoryStore, ranking: Ranking, slots: Sequence[int], task_id: str | None = None) -> list[Line]:
    """Return the results in these slots, in their order, without memories that were deleted meanwhile. Call it in a frozen block.

    Parameters
    ----------
    task_id : str, optional
        The task that is asked about: what comes from another one is labelled.
    """
    memories = {one.id: one for one in store.read_memories([ranking.id_of(slot) for slot in _memories(ranking, slots)])}
    is_related, found = ranking.search.scope.linked is not None, []
    for slot, why in zip(slots, ranking.explanations(slots), strict=True):
        place = ranking.place_of(slot)
        memory = memories.get(why.memory_id) if place < 0 else ranking.items.memory(place, store)
        if memory is not None:
            item = ranking.items.authority(place) if place >= 0 else None
            has_evidence = bool(ranking.search.is_near[slot])
            found.append(Line(memory, why, item, _label(memory, task_id, is_related), is_related, has_evidence))
    return found


class Fitting(NamedTuple):
    """Which results fit the budgets.

    Attributes
    ----------
    places : list of int
        Those that fit, ascending.
    constraints : set of int
        Those of them that are constraints.
    left_out : int
        Number of constraints that do not fit.
    """

    places: list[int]
    constraints: set[int]
    left_out: int


def within_budgets(
    found: Sequence[Line], tokens: Sequence[int], held: Collection[str], most_of_constraints: int, most: int
) -> Fitting:
    """Return which results fit: the best others, and of the constraints, which have a budget of their own, the shortest.

    Parameters
    ----------
    tokens : sequence of int
        Of each result.
    held : collection of str
        Ids of the constraints that hold for what was asked.
    most_of_constraints, most : int
        The budgets of the constraints and of all others, in tokens.
    """
    constraints = [place for place, one in enumerate(found) if one.memory.id in held]
    constraints.sort(key=lambda place: oldest_first(found[place].memory))
    kept = shortest_within_tokens([tokens[place] for place in constraints], most_of_constraints)
    fitting = {constraints[one] for one in kept}
    others = [place for place, one in enumerate(found) if one.memory.id not in held]
    number = within_tokens([tokens[place] for place in others], most)
    return Fitting(sorted([*fitting, *others[:number]]), fitting, len(constraints) - len(fitting))


def opposed_in(memories: Sequence[StoredMemory], pairs: Sequence[Sequence[str]]) -> list[Opposed]:
    """Return the contradicting pairs among the results, the older memory first."""
    given = {memory.id: memory for memory in memories}
    ordered = [in_order(given[one], given[other]) for one, other in pairs if one in given and other in given]
    return [Opposed(older_id=older.id, newer_id=newer.id) for older, newer in ordered]


def recorded(chosen: Iterable[tuple[Line, int]]) -> list[RecalledItem]:
    """Return what a retrieval's record says of its results, each with its tokens. Items of tasks are no memories, and left out."""
    return [
        RecalledItem(id=one.memory.id, type=one.memory.type, score=one.why.score, tokens=tokens)
        for one, tokens in chosen
        if one.item is None
    ]


def _memories(ranking: Ranking, slots: Iterable[int]) -> list[int]:
    return [slot for slot in slots if ranking.place_of(slot) < 0]


def _label(memory: StoredMemory, task_id: str | None, is_related: bool) -> str | None:
    if memory.task_id in (None, task_id):
        return None
    return related_label(memory.task_id or "") if is_related else task_label(memory.task_id or "")
