"""What a purge removes: a pure function of the journal and of the present rows of the memories."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from memgraph.model.events.registry import NEVER_PURGED, POLICIES, STATES_MEMORY
from memgraph.model.results.maintenance import LostTask
from memgraph.ports import Row
from memgraph.store.purge.lost_tasks import lost_tasks
from memgraph.store.purge.records import Record, strings_in, texts_of
from memgraph.store.purge.restating import Restated, agents_only_of, cleared, named_builds, stacks
from memgraph.store.purge.selection import Criteria, selected
from memgraph.text.runs import Runs

Read = Callable[[], Iterable[Record]]
"""Returns all events of the journal that still have a payload, in order."""
Present = Callable[[str], Row | None]
"""Returns the present row of a memory; None if it does not exist."""


@dataclass(slots=True)
class Plan:
    """What a purge removes.

    Attributes
    ----------
    ids : list of str
        The memories that were asked for.
    derived, copied : list of str
        Memories that were derived from those; memories that contain the same words.
    restated : list of str
        Memories that are left, but whose history contains the words: they begin again with what they are now.
    kept : list of str
        Memories that contain the same words, and are kept nevertheless.
    again : list of Restated
        What is recorded again because the event that said it is removed.
    unlinked : list of tuple of str
        Links between memories that are left, whose stated reason contains the words: (relation, source, target).
    seqs : set of int
        The events whose payloads are removed.
    others : Counter
        Number of these events that are not about memories, by type.
    vectors : dict of str to set of int
        Rows of the vector files, by model.
    followers : dict of str to str or None
        Memories that are left and followed a removed one, with their present predecessor.
    related : set of str
        Memories that are left, and linked with removed ones.
    lost_tasks : list of LostTask
        Tasks whose registration is removed.
    is_said : callable
        Returns whether a text contains the words that are removed.
    is_everything : bool
        Whether no memory is left.
    """

    ids: list[str] = field(default_factory=list)
    derived: list[str] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)
    restated: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    again: list[Restated] = field(default_factory=list)
    unlinked: list[tuple[str, str, str]] = field(default_factory=list)
    seqs: set[int] = field(default_factory=set)
    others: Counter[str] = field(default_factory=Counter)
    vectors: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    followers: dict[str, str | None] = field(default_factory=dict)
    related: set[str] = field(default_factory=set)
    lost_tasks: list[LostTask] = field(default_factory=list)
    is_said: Callable[[str], bool] = lambda _text: False
    is_everything: bool = False

    def gone(self) -> set[str]:
        """Return all memories that are removed."""
        return {*self.ids, *self.derived, *self.copied}


def plan_of(
    read: Read, criteria: Criteria, present: Present, *, keeps_copies: bool = False, keeps_derived: bool = False
) -> Plan:
    """Return what a purge removes. Eight passes over the journal.

    What was derived from a removed memory goes with it: sleep derives it again from what is left. So does a memory that repeats eight
    words of it in a row, or all words of a shorter text, unless copies are kept; one that only used to is restated without its history.
    """
    found = selected(read(), criteria)
    plan = Plan(ids=list(found.ids))
    products: dict[str, set[str]] = defaultdict(set)
    texts: dict[str, None] = {}
    for record in read():
        if not keeps_derived:
            _note_products(record, products)
        if not found.ids.keys().isdisjoint(_stated(record)):
            texts |= dict.fromkeys(texts_of(record))
    runs = Runs([*texts, *filter(None, [criteria.match])])
    says = criteria.says
    plan.is_said = lambda text: runs.are_in(text) or bool(says and says(text))
    repeating = [
        one for one in read() if one.type not in NEVER_PURGED and any(map(runs.are_in, strings_in(one.content)))
    ]
    if keeps_copies:
        repeating = _kept(plan, found.ids, repeating, products, present)
    _sort(plan, found.ids, repeating, products, runs, present)
    others = found.seqs | {one.seq for one in repeating}
    plan.lost_tasks, of_tasks = lost_tasks(read(), others)
    others |= of_tasks
    builds = named_builds(read(), agents_only_of(read(), plan.gone()))
    plan.again = [restated for seq, restated in builds.items() if seq not in others]
    _collect(plan, read(), others | builds.keys())
    plan.again += cleared(read(), plan.seqs)
    plan.again += stacks(read(), plan.seqs, {one.id for one in plan.lost_tasks}, plan.is_said)
    _follow(plan, read(), present)
    gone = plan.gone()
    plan.related = {source for source, made in products.items() if not made.isdisjoint(gone)} - gone
    plan.is_everything = bool(found.every) and found.every <= gone
    return plan


def _stated(record: Record) -> Sequence[str]:
    return POLICIES[record.type].carries(record.content) if record.type in STATES_MEMORY else ()


def _note_products(record: Record, products: dict[str, set[str]]) -> None:
    """Note which memories were distilled from which, as the store itself or a derivation says."""
    content = record.content
    if record.type == "memory.derived":
        for source in content["source_ids"]:
            products[source].add(content["id"])
    elif record.type == "memory.linked" and content["relation"] == "DERIVED_FROM":
        products[content["target_id"]].add(content["source_id"])
    elif record.type == "memory.linked" and content["relation"] == "SUPPORTS" and record.actor == "system":
        products[content["source_id"]].add(content["target_id"])


def _sort(
    plan: Plan,
    asked: dict[str, None],
    repeating: Sequence[Record],
    products: dict[str, set[str]],
    runs: Runs,
    present: Present,
) -> None:
    """Decide which memories go besides those that were asked for, and which are restated."""
    derived = _derived(asked, products)
    going = {*asked, *derived}
    copied: dict[str, None] = {}
    restated: dict[str, None] = {}
    for record in repeating:
        named = POLICIES[record.type].carries(record.content) if record.type != "distil.requested" else []
        if not going.isdisjoint(named):
            continue
        if record.type == "memory.linked":
            plan.unlinked.append((record.content["relation"], named[0], named[1]))
            continue
        for memory_id in named:
            row = present(memory_id)
            if row is None or any(map(runs.are_in, strings_in(row))):
                copied[memory_id] = None
            else:
                restated[memory_id] = None
    derived |= {one: None for one in _derived(copied, products) if one not in asked}
    plan.derived = [one for one in derived if one not in asked]
    plan.copied = [one for one in copied if one not in derived]
    gone = plan.gone()
    plan.restated = [one for one in restated if one not in gone]
    plan.unlinked = [one for one in plan.unlinked if gone.isdisjoint(one[1:])]


def _kept(
    plan: Plan,
    asked: dict[str, None],
    repeating: Sequence[Record],
    products: dict[str, set[str]],
    present: Present,
) -> list[Record]:
    """Note the existing memories that are kept although they contain the words, and return the events about everything else."""
    going = {*asked, *_derived(asked, products)}
    others = []
    for record in repeating:
        named = POLICIES[record.type].carries(record.content)
        if record.type == "distil.requested" or not named or not going.isdisjoint(named):
            others.append(record)
            continue
        plan.kept += [one for one in named if one not in plan.kept and present(one) is not None]
    return others


def _derived(sources: Iterable[str], products: dict[str, set[str]]) -> dict[str, None]:
    """Return what was derived from memories, directly or through others."""
    found: dict[str, None] = {}
    waiting = list(sources)
    while waiting:
        new = [one for one in sorted(products.get(waiting.pop(), ())) if one not in found]
        found |= dict.fromkeys(new)
        waiting += new
    return found


def _collect(plan: Plan, records: Iterable[Record], others: set[int]) -> None:
    """Collect the events that are removed, and the rows of their vectors."""
    gone, restated = plan.gone(), set(plan.restated)
    for record in records:
        if record.type == "memory.reembedded":
            rows = {one["row"] for one in record.content["vectors"] if one["id"] in gone}
            if rows:
                plan.vectors[record.content["model"]] |= rows
            continue
        is_about = not gone.isdisjoint(POLICIES[record.type].carries(record.content))
        if record.type in NEVER_PURGED or not (
            is_about or record.seq in others or not restated.isdisjoint(_stated(record))
        ):
            continue
        plan.seqs.add(record.seq)
        if vector := record.content.get("vector"):
            plan.vectors[vector["model"]].add(vector["row"])
        if not is_about and record.type not in STATES_MEMORY:
            plan.others[record.type] += 1


def _follow(plan: Plan, records: Iterable[Record], present: Present) -> None:
    """Find the memories that followed a removed one, and keep the vectors that restated memories use."""
    gone = plan.gone()
    previous: dict[str, str] = {}
    for record in records:
        row = record.content.get("memory", {}) if record.type in STATES_MEMORY else {}
        if row.get("previous_id"):
            previous[row["id"]] = row["previous_id"]
    for memory_id, before in previous.items():
        row = None if memory_id in gone else present(memory_id)
        if row is None or (before not in gone and row.get("previous_id") not in gone):
            continue
        nearest, passed = row.get("previous_id"), set[str]()
        while nearest in gone and nearest not in passed:
            passed.add(nearest)
            nearest = (present(nearest) or {}).get("previous_id", previous.get(nearest))
        plan.followers[memory_id] = None if nearest in gone else nearest
    for memory_id in plan.restated:
        row = present(memory_id) or {}
        if "vector_row" in row:
            plan.vectors.get(row["embedding_model"], set()).discard(row["vector_row"])
