"""Pipeline of the stages: filter, seed, walk, rank, floor. Budget and explanation follow for the requested results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from memgraph.embedding.onnx import MODEL_NAME, is_covered
from memgraph.index.analyser import analyse
from memgraph.model.memory import Vector
from memgraph.model.results.retrieval import Explanation, Hop, RetrievalConfig, StageReport
from memgraph.model.timestamps import epoch_days
from memgraph.retrieval.joined_index import JoinedIndex
from memgraph.retrieval.stages import authority, floor, name_seeds, rank, seeds, walk
from memgraph.retrieval.stages.certainty import LOW, certainty_of
from memgraph.retrieval.stages.state import Counts, Scores, Search, Slots
from memgraph.retrieval.task_items import TaskItems
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import Scope
from memgraph.store.access.visibility import visible
from memgraph.store.query import Mask, Reader
from memgraph.text.sentences import is_question


class Stage(NamedTuple):
    """One stage of a recall: reads and changes the search, and returns counts of what it did."""

    name: str
    run: Callable[[Search], Counts]


STAGES = (
    Stage("filter", seeds.admit),
    Stage("meaning", seeds.by_meaning),
    Stage("words", seeds.by_words),
    Stage("speakers", name_seeds.speakers),
    Stage("things", name_seeds.things),
    Stage("tags", name_seeds.tags),
    Stage("triggers", name_seeds.triggers),
    Stage("times", name_seeds.times),
    Stage("fuse", seeds.fuse),
    Stage("sequence", walk.sequence),
    Stage("naming", walk.naming),
    Stage("links", walk.links),
    Stage("succession", walk.succession),
    Stage("rank", rank.terms),
    Stage("authority", authority.penalise),
    Stage("floor", floor.judge),
    Stage("sources", authority.yield_to_the_user),
)
_OF_QUESTIONS, _OF_TASKS, _OF_PHRASES, _FEW_TERMS = 0.45, 0.75, 0.9, 3
"""Weights of the vectors. A question shares names with its answer, and so do texts of few words; a task is often told in other words than past
work, and phrases are guesses at these words: both are found by their meaning."""
_TITLE_WORDS = 2.0
"""Constant of the length correction for phrases, in words."""
Watch = Callable[[StageReport], None]
"""Called after each stage with its counts, for timing or display."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ranked memories with explanations. Valid while the reader is frozen.

    Attributes
    ----------
    items : TaskItems
        What holds in the tasks asked about: the last slots of the search.
    """

    search: Search
    items: TaskItems
    stages: list[StageReport]
    certainty: float

    @property
    def certainty_at_least(self) -> float:
        """The certainty: under a floor at least low if memories have passed it, as the few words of a saved fact make it too low, and else 0."""
        passed = max(self.certainty, LOW) if self.search.knows else 0.0
        return self.certainty if self.search.floor is None else passed

    def place_of(self, slot: int) -> int:
        """Return an item's place among the items; −1 for a memory."""
        return slot - self.search.items_from if 0 <= self.search.items_from <= slot else -1

    def id_of(self, slot: int) -> str:
        """Return a slot's memory id."""
        return self.search.index.ids.names[slot]

    def keep_near(self) -> None:
        """Keep only the memories with evidence that they belong to the query, constraints and saved facts that match it first.

        A saved fact from outside stays behind what the user said on the same matter.
        """
        floor.apply(self.search)
        authority.yield_to_the_user(self.search)

    def best(self, count: int) -> list[int]:
        """Return the best slots, best first."""
        return authority.best(self.search, self.search.slots, count)

    def best_of_types(self, most: Mapping[int, int], items: int) -> list[int]:
        """Return the constraints, and the best other slots with a maximum number of each type, and of items that hold in the task; best first.

        A memory that merely restates the single memory behind it takes that one's place: the other is left out. So is a line of a task with far less
        evidence than its best one (`leading_lines`).
        """
        search = self.search
        chosen = np.intersect1d(search.constraints, search.slots).tolist()
        types, restated = search.index.column("type"), set[int](chosen)
        is_item = search.is_item(search.slots)
        memories = search.slots[~is_item]
        for code, count in sorted(most.items(), reverse=True):  # distilled memories come before episodes
            slots = np.setdiff1d(memories[types[memories] == code], list(restated))
            chosen += authority.best(search, slots, count)
            restated |= {slot for one in chosen for slot in walk.restated_sources(search, one)}
        chosen += authority.best(search, search.slots[is_item], items)
        return floor.leading_lines(search, authority.best(search, np.array(chosen, dtype=np.int64), len(chosen)))

    def explanations(self, slots: Sequence[int]) -> list[Explanation]:
        """Return the explanation of each slot's rank: the parts of its score, and from where it was reached."""
        search, wanted = self.search, np.array(slots, dtype=np.int64)
        parts = [{"dense": float(search.dense[slot]), "text": float(search.text_score[slot])} for slot in slots]
        paths: list[list[Hop]] = [[] for _ in slots]
        place_of = np.full(len(search.index), -1, dtype=np.int64)
        for added in search.added:
            place_of[added.slots] = np.arange(len(added.slots))
            for of, place in enumerate(place_of[wanted].tolist()):
                if place >= 0:
                    parts[of][added.part] = parts[of].get(added.part, 0.0) + float(added.values[place])
                    if added.origins is not None:
                        origin = self.id_of(int(added.origins[place]))
                        paths[of].append(Hop(relation=added.relations[place], memory_id=origin))
            place_of[added.slots] = -1
        found = authority.candidates(search, wanted)
        overrode = authority.overrides(found, search.config)
        words = search.words_in(wanted)
        return [
            Explanation(
                memory_id=self.id_of(slot),
                score=round(float(search.scores[slot]), 6),
                path=path,
                rank=rank,
                authority=authority.authority_of(candidate),
                overrode=overrode.get(slot, []),
                words=words[rank - 1],
                **{part: value for part, given in made_of.items() if (value := round(given, 6))},
            )
            for rank, (slot, made_of, path, candidate) in enumerate(zip(slots, parts, paths, found, strict=True), 1)
        ]


def ranked(
    store: AgentMemoryStore,
    text: str,
    vector: Vector | None,
    scope: Scope,
    config: RetrievalConfig,
    *,
    wanted: int = 0,
    least: float | None = None,
    items: TaskItems | None = None,
    task: str | None = None,
    phrases: Sequence[str] = (),
    watch: Watch | None = None,
) -> Ranking:
    """Rank the admitted memories for a query. Deterministic; costs one pass over the vectors and the terms' postings.

    Call it, and use its ranking, within one ``with store.reader.frozen():``.

    Parameters
    ----------
    vector : ndarray, shape (d,), float32, or None
        The query's vector; None: use text alone.
    wanted : int
        Number of results that will be requested, if it may exceed the setting ``candidates``.
    least : float, optional
        The floor: evidence that a recalled memory needs, in [0, 1]; None: none.
    items : TaskItems, optional
        What holds in the tasks asked about: candidates beside the memories.
    task : str, optional
        The task without its phrases, to tell a question by its form; None: the whole text.
    phrases : sequence of str
        What the text holds beside the task.
    """
    asked = text if task is None else task
    reader, items = _Reading(store.reader, items or TaskItems()), items or TaskItems()
    search = Search(
        index=reader.index,
        text=text,
        vector=vector,
        scope=scope,
        config=weighted(store, config, text, asked),
        now_days=epoch_days(store.now()),
        has_vector=reader.has_vector,
        cosines=reader.cosines,
        relevance=reader.relevance,
        phrases=phrases,
        wanted=wanted,
        floor=least,
        is_covered=_is_covered(store, text),
        is_question=is_question(asked),
        items_from=reader.items_from,
        visible=lambda: reader.visible(scope),
    )
    reports = []
    for stage in STAGES:
        report = StageReport(stage=stage.name, counts=dict(stage.run(search)))
        reports.append(report)
        if watch:
            watch(report)
    return Ranking(search, items, reports, certainty_of(search))


def weighted(store: AgentMemoryStore, config: RetrievalConfig, text: str, task: str) -> RetrievalConfig:
    """Return the settings with the given weight of the vectors, else that for a question, or for a task with or without phrases, which `text` has."""
    if config.dense_weight is not None:
        return config
    weight, constant = _OF_TASKS, config.length_constant_words
    if is_question(task) or len({*analyse(text)}) <= _FEW_TERMS or not _is_covered(store, text):
        weight = _OF_QUESTIONS
    elif text != task:
        weight, constant = _OF_PHRASES, min(_TITLE_WORDS, constant)
    return config.model_copy(update={"dense_weight": weight, "length_constant_words": constant})


def _is_covered(store: AgentMemoryStore, text: str) -> bool:
    return store.vector_model.name != MODEL_NAME or is_covered(text)


class _Reading:
    """What the stages read of the store, with the items behind the memories' slots."""

    def __init__(self, reader: Reader, items: TaskItems) -> None:
        self._reader, self._items = reader, items
        self._count = len(reader.index)
        self.items_from = self._count if items.rows else -1
        self.index = JoinedIndex(reader.index, items.index) if items.rows else reader.index

    def visible(self, scope: Scope) -> Mask:
        mask = visible(self._reader, scope.access, "search", scope=replace(scope, include_ended=True))
        return np.concatenate([mask, np.ones(len(self._items.rows), dtype=np.bool_)]) if self._items.rows else mask

    def relevance(self, slots: Slots) -> Scores:
        found: Scores = self._each(slots, self._reader.relevance, lambda places: np.ones(len(places)))
        return found

    def has_vector(self, slots: Slots | slice = slice(None)) -> Mask:
        vectors = self._items.vectors
        found: Mask = self._each(
            slots,
            self._reader.has_vector,
            lambda places: np.zeros(len(places), dtype=np.bool_) if vectors is None else vectors[places].any(axis=1),
        )
        return found

    def cosines(self, vector: Vector, slots: Slots | slice, *, only_near: bool = False) -> Scores:
        def of_items(places: Slots) -> Scores:
            if self._items.vectors is None:
                return np.zeros(len(places))
            asked = vector.astype(np.float64)  # a given vector may be of any length
            cosines: Scores = self._items.vectors[places].astype(np.float64) @ (asked / np.linalg.norm(asked))
            return cosines

        found: Scores = self._each(slots, lambda own: self._reader.cosines(vector, own, only_near=only_near), of_items)
        return found

    def _each(self, slots: Slots | slice, of_memories: Callable[..., Any], of_items: Callable[[Slots], Any]) -> Any:
        """Return one value for each slot: the memories' from the store, the items' from their places."""
        if not self._items.rows:
            return of_memories(slots)
        places = np.arange(len(self.index))[slots]
        behind = places >= self._count
        if not behind.any():
            return of_memories(places)
        own, those = of_memories(places[~behind]), of_items(places[behind] - self._count)
        found = np.zeros(len(places), dtype=own.dtype)
        found[~behind], found[behind] = own, those
        return found


def near_ids(
    store: AgentMemoryStore, text: str, vector: Vector | None, scope: Scope, memory_ids: Sequence[str]
) -> frozenset[str]:
    """Return which of some memories have evidence that they belong to a text; without a floor all.

    Call it within ``with store.reader.frozen():``.
    """
    least = floor.floor_of(store, vector)
    near = ranked(store, text, vector, scope, RetrievalConfig(), least=least).search.is_near
    return frozenset(one for one in memory_ids if near[store.reader.index.slot(one)])
