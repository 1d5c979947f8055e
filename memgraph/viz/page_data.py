"""What the page is made of: memories, their times and links, places and series, as one compact document.

Memories are numbered in the order they came, and named by their number everywhere. Columns stand side by side instead of records;
times are whole seconds since the beginning of the span. `visualizations/src/data.js` reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from memgraph.index.index import RELATION_CODE
from memgraph.model.memory import MEMORY_TYPES, AgentMemory, ProceduralMemory, SemanticMemory
from memgraph.model.timestamps import from_iso
from memgraph.store import AgentMemoryStore
from memgraph.viz.chosen import chosen_ids
from memgraph.viz.grouping import areas, grouped
from memgraph.viz.history import read_history
from memgraph.viz.layout import lay_out
from memgraph.viz.series import Series, learning_series
from memgraph.viz.shown import count_shown, shown_ids
from memgraph.viz.timeline import Timeline, timelines

OUTCOMES = ("positive", "negative", "neutral", "unknown")
FULL_TEXTS = 5_000
"""Of so many memories the whole text is given, of the others its beginning."""
SHORT_CHARS = 120
_MOST_USES = 12
"""Of so many uses each memory's relevance is drawn, the latest."""
_MOST_THINGS = 6
_MOST_TAGS = 5
UNDATED = "2000-01-"
"""How times of undated trials begin: trial n is day n."""
_DAY_S = 86_400
_PATIENCE_S = 30 * _DAY_S
"""What is done with memories later than this after the last one came is not on the slider: it would be all empty time."""
_DRAWN_LINKS = ("SUPERSEDES", "CONTRADICTS", "RELATED_TO", "ELABORATES", "EXAMPLE_OF")
DRAWN_SERIES = (
    "live_memories",
    "success_rate",
    "repeated_failures",
    "returning_failures",
    "compression_ratio",
    "churn",
    "recalls_served",
    "recalls_helped",
)
_CHANGE_OF_LINK = {"SUPERSEDES": "superseded", "CONTRADICTS": "contradicted"}


@dataclass(frozen=True)
class PageData:
    """What a page shows.

    Attributes
    ----------
    document : dict
        As JSON.
    memories : list of AgentMemory
        Those shown, as they came.
    series : list of Series
    kept : dict of str to int
        Memories that may be shown, by type; the page has those that `memgraph.viz.chosen` chooses.
    hidden : int
        Memories that are left out because they are suppressed, sensitive or private.
    shortened : int
        Memories of whose text only the beginning is given.
    first, last : str
        The span that is shown, ISO 8601; empty where nothing is.
    """

    document: dict[str, Any]
    memories: list[AgentMemory]
    series: list[Series]
    kept: dict[str, int]
    hidden: int
    shortened: int
    first: str
    last: str


def page_data(
    store: AgentMemoryStore,
    *,
    project_id: str | None = None,
    since: str | None = None,
    until: str | None = None,
    include: Collection[str] = frozenset(),
    limit: int | None = None,
) -> PageData:
    """Return what a page of these memories shows; parameters as of `memgraph.viz.shown.shown_memories`.

    Archived memories are among them: the replay shows when they went, and a generalisation its evidence.

    Parameters
    ----------
    limit : int, optional
        At most so many memories, as `memgraph.viz.chosen` chooses them.

    Raises
    ------
    InvalidInputError
        As `memgraph.viz.shown.shown_memories`.
    """
    asked: dict[str, Any] = {"project_id": project_id, "since": since, "until": until}
    include = {*include, "archived"}
    with store.reader.frozen(links=True):
        ids = shown_ids(store, **asked, include=include)
        everything = count_shown(store, **asked, include={*include, "suppressed", "sensitive", "private"})
        shown = store.reader.read(chosen_ids(store, ids, limit))
        pairs = _pairs(store, [memory.id or "" for memory in shown])
        kept = _by_type(store, ids)
    history = read_history(store, uses_of=[memory.id or "" for memory in shown])
    known = timelines(store, [memory.id or "" for memory in shown], history=history)
    lines = {memory.id or "": known.get(memory.id or "") or Timeline(memory.id or "", _at(memory)) for memory in shown}
    rank = {memory.id or "": place for place, memory in enumerate(shown)}

    def came(memory: AgentMemory) -> tuple[str, int, int]:
        """Return what sorts memories as they came; what was made of others comes after them."""
        return lines[memory.id or ""].added, MEMORY_TYPES.index(memory.type), rank[memory.id or ""]

    memories = sorted(shown, key=came)
    series = learning_series(store, **asked, history=history)
    document, shortened, (first, last) = _document(store, memories, lines, rank, pairs)
    document["series"] = [one.to_dict() for one in series if one.name in DRAWN_SERIES]
    return PageData(document, memories, series, kept, everything - len(ids), shortened, first, last)


def _at(memory: AgentMemory) -> str:
    return memory.occurred_at or memory.created_at or ""


def _by_type(store: AgentMemoryStore, ids: Sequence[str]) -> dict[str, int]:
    index = store.reader.index
    types = index.column("type")[[index.slot(memory_id) for memory_id in ids]] if ids else np.zeros(0)
    return {kind: int((types == code).sum()) for code, kind in enumerate(MEMORY_TYPES)}


def _pairs(store: AgentMemoryStore, ids: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Return the links among these memories by relation: from the index, which has them all in arrays."""
    index = store.reader.index
    of_slot = {index.slot(memory_id): memory_id for memory_id in ids}
    found: dict[str, list[tuple[str, str]]] = {}
    for relation, code in RELATION_CODE.items():
        sources, targets = index.links.pairs(code)
        ends = zip(sources.tolist(), targets.tolist(), strict=True)
        found[relation] = [(of_slot[a], of_slot[b]) for a, b in ends if a in of_slot and b in of_slot]
    return found


def _document(
    store: AgentMemoryStore,
    memories: Sequence[AgentMemory],
    lines: Mapping[str, Timeline],
    rank: Mapping[str, int],
    pairs: Mapping[str, list[tuple[str, str]]],
) -> tuple[dict[str, Any], int, tuple[str, str]]:
    ids = [memory.id or "" for memory in memories]
    number = {memory_id: place for place, memory_id in enumerate(ids)}
    first, last = _span([lines[memory_id] for memory_id in ids])
    start = _seconds(first) if first else 0

    def since_start(at: str) -> int:
        return _seconds(at) - start

    evidence = sorted(
        {(number[a], number[b]) for a, b in pairs["SUPPORTS"]}
        | {(number[b], number[a]) for a, b in pairs["DERIVED_FROM"]}
    )
    groups, labels = grouped(memories, evidence)
    layout = lay_out(groups, len(memories))
    texts = [memory.content for memory in memories]
    is_short = [
        rank[memory_id] >= FULL_TEXTS and len(text) > SHORT_CHARS for memory_id, text in zip(ids, texts, strict=True)
    ]
    added = [since_start(lines[memory_id].added) for memory_id in ids]
    curve = store.config.forgetting_curve
    names = _Names()
    document = {
        "version": 1,
        "start": start * 1000,
        "end": (since_start(last) or _DAY_S) if last else _DAY_S,
        "undated": bool(ids) and all(lines[memory_id].added.startswith(UNDATED) for memory_id in ids),
        "rates": [curve.rate(kind) for kind in MEMORY_TYPES],
        "threshold": curve.deletion_threshold,
        "most": max(1.0, curve.max_relevance),
        "types": MEMORY_TYPES,
        "outcomes": OUTCOMES,
        "memories": {
            "id": "".join(memory_id[:8] for memory_id in ids),
            "type": "".join(str(MEMORY_TYPES.index(memory.type)) for memory in memories),
            "outcome": "".join(str(OUTCOMES.index(memory.outcome)) for memory in memories),
            "short": "".join("01"[one] for one in is_short),
            "text": [f"{text[:SHORT_CHARS]}…" if cut else text for text, cut in zip(texts, is_short, strict=True)],
            "added": [b - a for a, b in zip([0, *added], added, strict=False)],
            "x": [round(float(x)) for x in layout.places[:, 0]],
            "y": [round(float(y)) for y in layout.places[:, 1]],
            "project": [names.of("projects", memory.project_id) for memory in memories],
            "build": [names.of("builds", memory.build_id) for memory in memories],
            "reason": [names.of("reasons", memory.reason) for memory in memories],
            "agents": [names.all_of("agents", memory.agents_involved[:_MOST_TAGS]) for memory in memories],
            "tags": [names.all_of("tags", memory.tags[:_MOST_TAGS]) for memory in memories],
            "told": [len(memory.evidence_build_ids) for memory in memories],
            "score": [round(100 * memory.relevance_score) for memory in memories],
        },
        "more": {
            str(place): more
            for place, memory in enumerate(memories)
            if (more := _more(memory, lines[ids[place]].anchor, names, is_brief=rank[ids[place]] >= FULL_TEXTS))
        },
        "uses": _uses(memories, lines, since_start),
        "changes": _changes(ids, lines, number, since_start),
        "links": _links(memories, evidence, pairs, number, lines, since_start),
        "discs": [
            [
                *(round(float(value)) for value in disc),
                label,
                group.members[0] if group.has_hub else -1,
                min(added[place] for place in group.members),
            ]
            for disc, label, group in zip(layout.discs, labels, groups, strict=True)
        ],
    }
    document["areas"] = areas(groups, layout.discs)
    return document | names.lists, sum(is_short), (first, last)


class _Names:
    """Names as small numbers, a list of them for each kind, in order of first sight."""

    def __init__(self) -> None:
        self.lists: dict[str, list[str]] = {
            kind: [] for kind in ("projects", "builds", "reasons", "agents", "tags", "things")
        }
        self._numbers: dict[tuple[str, str], int] = {}

    def of(self, kind: str, name: str | None) -> int:
        if name is None:
            return -1
        known = self._numbers.get((kind, name))
        if known is None:
            known = self._numbers[kind, name] = len(self.lists[kind])
            self.lists[kind].append(name)
        return known

    def all_of(self, kind: str, names: Iterable[str]) -> list[int]:
        return [self.of(kind, name) for name in names]


def _seconds(at: str) -> int:
    return int(from_iso(at).timestamp() // 1)


def _span(lines: Sequence[Timeline]) -> tuple[str, str]:
    """Return the first and last time on the slider: of the memories, and of what was done with them soon after."""
    if not lines:
        return "", ""
    first, last = min(line.added for line in lines), max(line.added for line in lines)
    done = [at for line in lines for at, _ in line.uses] + [at for line in lines for at, _, _ in line.changes]
    end = max([last, *done])
    patience = max(_PATIENCE_S, (_seconds(last) - _seconds(first)) // 4)
    return first, end if _seconds(end) - _seconds(last) <= patience else last


def _more(memory: AgentMemory, anchor: float, names: _Names, *, is_brief: bool) -> dict[str, Any]:
    """Return what only some memories have; of the less relevant only what the picture needs."""
    found: dict[str, Any] = {
        "anchor": round(anchor, 4) if anchor != 1.0 else None,
        "floor": memory.floor or None,
        "pinned": memory.is_pinned or None,
    }
    if not is_brief:
        found |= {
            "title": memory.title,
            "word": memory.outcome_word,
            "sure": memory.confidence if memory.confidence < 1.0 else None,
            "used": memory.access_count or None,
            "commit": getattr(memory, "git_commit", None),
            "things": names.all_of("things", [entity.name for entity in memory.entities[:_MOST_THINGS]]),
            "recorded": (memory.created_at or "")[:10] if (memory.created_at or "")[:10] != _at(memory)[:10] else None,
            "tier": memory.privacy_tier if memory.privacy_tier != "public" else None,
        }
        if isinstance(memory, ProceduralMemory):
            found |= {"trigger": memory.trigger_pattern, "steps": memory.steps}
        if isinstance(memory, SemanticMemory):
            found |= {"right": memory.correct_approach, "wrong": memory.incorrect_approach}
    return {name: value for name, value in found.items() if value is not None and value != []}


def _uses(memories: Sequence[AgentMemory], lines: Mapping[str, Timeline], since_start: Any) -> list[list[int]]:
    """Return of each memory that was used: its number, and (time, anchor after it in hundredths) of the latest uses."""
    found = []
    for place, memory in enumerate(memories):
        uses = lines[memory.id or ""].uses[-_MOST_USES:]
        if uses:
            found.append([place, *(value for at, anchor in uses for value in (since_start(at), round(100 * anchor)))])
    return found


def _changes(
    ids: Sequence[str], lines: Mapping[str, Timeline], number: Mapping[str, int], since_start: Any
) -> list[list[Any]]:
    """Return (memory, time, kind, other memory or −1), each memory's in order; what was compressed follows from the links."""
    return [
        [place, since_start(at), kind, number.get(other or "", -1)]
        for place, memory_id in enumerate(ids)
        for at, kind, other in lines[memory_id].changes
        if kind not in ("compressed", "uncompressed")
    ]


def _links(
    memories: Sequence[AgentMemory],
    evidence: Sequence[tuple[int, int]],
    pairs: Mapping[str, list[tuple[str, str]]],
    number: Mapping[str, int],
    lines: Mapping[str, Timeline],
    since_start: Any,
) -> dict[str, list[int]]:
    """Return each relation's links, flat: (source, target), and of those that say that something changed, when."""
    found = {"EVIDENCE": [end for pair in evidence for end in pair]}
    found["NEXT"] = [
        end
        for place, memory in enumerate(memories)
        if memory.previous_id is not None and memory.previous_id in number
        for end in (number[memory.previous_id], place)
    ]
    for relation in _DRAWN_LINKS:
        kind = _CHANGE_OF_LINK.get(relation)
        flat = found[relation] = []
        for source, target in sorted((a, b) for a, b in pairs[relation]):
            flat += [number[source], number[target]]
            if kind:
                said = [
                    at
                    for end in (source, target)
                    for at, what, other in lines[end].changes
                    if what == kind and other in (source, target)
                ]
                flat.append(since_start(max(said) if said else max(lines[source].added, lines[target].added)))
    return {relation: flat for relation, flat in found.items() if flat}
