"""Pipeline of the stages: filter, seed, walk, rank, floor. Budget and explanation follow for the requested results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from memgraph.embedding.covered import is_covered
from memgraph.embedding.onnx import MODEL_NAME
from memgraph.model.memory import Vector
from memgraph.model.results.retrieval import Explanation, Hop, RetrievalConfig, StageReport
from memgraph.model.timestamps import epoch_days
from memgraph.retrieval.stages import floor, name_seeds, rank, seeds, walk
from memgraph.retrieval.stages.certainty import LOW, certainty_of
from memgraph.retrieval.stages.filter import admit
from memgraph.retrieval.stages.state import Counts, Search
from memgraph.store import AgentMemoryStore
from memgraph.store.access.scope import Scope
from memgraph.store.access.visible import visible


class Stage(NamedTuple):
    """One stage of a recall: reads and changes the search, and returns counts of what it did."""

    name: str
    run: Callable[[Search], Counts]


STAGES = (
    Stage("filter", admit),
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
    Stage("floor", floor.judge),
)
Watch = Callable[[StageReport], None]
"""Called after each stage with its counts, for timing or display."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ranked memories with explanations. Valid while the reader is frozen."""

    search: Search
    stages: list[StageReport]
    certainty: float

    @property
    def certainty_at_least(self) -> float:
        """The certainty, but at least low if memories have passed a floor: the few words of a saved fact make it too low."""
        return max(self.certainty, LOW) if self.search.knows else self.certainty

    def id_of(self, slot: int) -> str:
        """Return a slot's memory id."""
        return self.search.index.ids.names[slot]

    def keep_near(self) -> None:
        """Keep only the memories with evidence that they belong to the query, constraints and saved facts that match it first."""
        floor.apply(self.search)

    def best(self, count: int) -> list[int]:
        """Return the best slots, best first."""
        return rank.best(self.search.index, self.search.scores, self.search.slots, count)

    def best_of_types(self, most: Mapping[int, int]) -> list[int]:
        """Return the constraints, and the best other slots with a maximum number of each type; best first.

        A memory that merely restates the single memory behind it takes that one's place: the other is left out. So is a line of a task with far less
        evidence than its best one (`leading_lines`).
        """
        search = self.search
        chosen = np.intersect1d(search.constraints, search.slots).tolist()
        types, restated = search.index.column("type"), set[int](chosen)
        for code, count in sorted(most.items(), reverse=True):  # distilled memories come before episodes
            slots = np.setdiff1d(search.slots[types[search.slots] == code], list(restated))
            chosen += rank.best(search.index, search.scores, slots, count)
            restated |= {slot for one in chosen for slot in walk.restated_sources(search, one)}
        return floor.leading_lines(
            search, rank.best(search.index, search.scores, np.array(chosen, dtype=np.int64), len(chosen))
        )

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
        return [
            Explanation(
                memory_id=self.id_of(slot),
                score=round(float(search.scores[slot]), 6),
                path=path,
                **{part: value for part, given in made_of.items() if (value := round(given, 6))},
            )
            for slot, made_of, path in zip(slots, parts, paths, strict=True)
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
    """
    reader = store.reader
    search = Search(
        index=reader.index,
        text=text,
        vector=vector,
        scope=scope,
        config=config,
        now_days=epoch_days(store.now()),
        has_vector=reader.has_vector,
        cosines=reader.cosines,
        relevance=reader.relevance,
        wanted=wanted,
        floor=least,
        is_covered=store.vector_model.name != MODEL_NAME or is_covered(text),
        visible=lambda: visible(reader, scope.access, "search", scope=scope),
    )
    reports = []
    for stage in STAGES:
        report = StageReport(stage=stage.name, counts=dict(stage.run(search)))
        reports.append(report)
        if watch:
            watch(report)
    return Ranking(search, reports, certainty_of(search))


def near_ids(
    store: AgentMemoryStore, text: str, vector: Vector | None, scope: Scope, memory_ids: Sequence[str]
) -> frozenset[str]:
    """Return which of some memories have evidence that they belong to a text; without a floor all.

    Call it within ``with store.reader.frozen():``.
    """
    least = floor.floor_of(store, vector)
    near = ranked(store, text, vector, scope, RetrievalConfig(), least=least).search.is_near
    return frozenset(one for one in memory_ids if near[store.reader.index.slot(one)])
