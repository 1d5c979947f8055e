"""The page's data: memories, their times and links, positions and series, as one compact document.

Memories are numbered in the order they were added and referenced by number. The document stores columns instead of records; times
are whole seconds since the start of the span. `visualizations/src/data.js` reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memgraph.fold.history import KINDS, Life, is_undated, type_of
from memgraph.index.index import RELATION_CODE
from memgraph.model.memory import MEMORY_TYPES, ProceduralMemory, SemanticMemory, StoredMemory
from memgraph.ports import Progress
from memgraph.store import AgentMemoryStore
from memgraph.viz.history import read_history
from memgraph.viz.page.groups import areas, grouped
from memgraph.viz.page.layout import lay_out
from memgraph.viz.page.limits import FULL_TEXTS, SHORT_CHARS
from memgraph.viz.page.selection import chosen_ids
from memgraph.viz.page.times import DAY_S, Times, times_of
from memgraph.viz.periods import bounds, checked_bucket, starts
from memgraph.viz.series.failing import failing, reported_times
from memgraph.viz.series.measures import Scope
from memgraph.viz.series.series import GROUP_WORDS, Series, display_order, has_news, learning_series
from memgraph.viz.series.timeline import timelines
from memgraph.viz.shown import shown_ids

OUTCOMES = ("positive", "negative", "neutral", "unknown")
_MOST_THINGS = 6
_MOST_TAGS = 5
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


@dataclass(frozen=True)
class PageData:
    """The content of a page.

    Attributes
    ----------
    document : dict
        As JSON.
    memories : list of StoredMemory
        Those shown, as they came.
    series : list of Series
    kept : dict of str to int
        Memories that may be shown, by kind; the page has those that `memgraph.viz.page.selection` chooses.
    hidden : int
        Memories that are left out because they are suppressed, sensitive or private.
    shortened : int
        Number of memories whose text was shortened.
    first, last : str
        The span shown, ISO 8601; empty if there is nothing to show.
    builds : int
        Number of selected builds.
    undrawn_recalls : int
        Number of selected recalls that are left out because they are dated and the trials are not.
    is_of_tasks : bool
        Whether all failures are tasks, identified by build names.
    others : list of str
        Projects that are not shown, because they have no common time axis with the one that is.
    project_id, since, until : str or None
        The selection.
    """

    document: dict[str, Any]
    memories: list[StoredMemory]
    series: list[Series]
    kept: dict[str, int]
    hidden: int
    shortened: int
    first: str
    last: str
    builds: int = 0
    undrawn_recalls: int = 0
    is_of_tasks: bool = False
    others: Sequence[str] = ()
    project_id: str | None = None
    since: str | None = None
    until: str | None = None


def page_data(
    store: AgentMemoryStore,
    *,
    project_id: str | None = None,
    since: str | None = None,
    until: str | None = None,
    include: Collection[str] = frozenset(),
    limit: int | None = None,
    progress: Progress | None = None,
) -> PageData:
    """Return the content of a page of these memories; parameters as for `memgraph.viz.shown.shown_ids`.

    The period selects memories by when they were added, as the timeline shows it. Archived memories are included: the replay shows
    when they were archived, and a generalisation needs its evidence. Undated trials and dated memories have no common time axis: if
    projects differ in this, only the one with the most memories is shown.

    Parameters
    ----------
    limit : int, optional
        Maximum number of memories; `memgraph.viz.page.selection` selects them.
    progress : callable, optional
        Called with the number of events read and of all events.

    Raises
    ------
    InvalidInputError
        As `memgraph.viz.shown.shown_ids`.
    """
    include = {*include, "archived"}
    since_then, until_then = bounds(since, until)
    until_then = min(until_then, store.now())
    details = shown_ids(store, project_id=project_id, include=include)
    history = read_history(store, details_of=details, progress=progress)
    others: list[str] = []

    def within(included: Collection[str]) -> list[str]:
        """Return the memories added in the period; a memory that is reported again counts when it was first reported."""
        lives = history.lives
        there = shown_ids(store, project_id=project_id, include=included)
        return [one for one in there if one in lives and since_then <= lives[one].at <= until_then]

    with store.reader.frozen():
        ids = within(include)
        if project_id is None and (apart := _apart([history.lives[one] for one in ids])):
            project_id, *others = apart
            ids = within(include)
        hidden = len(within({*include, "suppressed", "sensitive", "private"})) - len(ids)
        shown = store.reader.read(chosen_ids(store, ids, limit))
        pairs = _evidence(store, [memory.id for memory in shown])
    many = Counter(history.lives[one].kind for one in ids)
    kept = {kind: many[kind] for kind in KINDS}
    lines = timelines(store, [memory.id for memory in shown], history=history)
    rank = {memory.id: place for place, memory in enumerate(shown)}

    def came(memory: StoredMemory) -> tuple[str, int, int]:
        """Return the sort key of memories by their order of addition; derived memories come after their sources."""
        return lines[memory.id].added, MEMORY_TYPES.index(memory.type), rank[memory.id]

    memories = sorted(shown, key=came)

    def is_selected(project: str | None, at: str) -> bool:
        return project_id in (None, project) and since_then <= at <= until_then

    builds = [build.at for (project, _), build in history.builds.items() if is_selected(project, build.at)]
    recalls = [one.at for one in history.recalls.values() if is_selected(one.project_id, one.at)]
    is_dated = not all(is_undated(line.added) for line in lines.values())
    done = [*builds, *recalls] if is_dated else builds
    times = times_of([memory.id for memory in memories], lines, history, until_then, done)
    document, shortened = _document(store, memories, times, rank, pairs)
    asked: dict[str, Any] = {"project_id": project_id, "since": since, "until": until}
    counted = {**asked, "until": times.last, "history": history, "ids": frozenset(ids)}
    series = learning_series(store, **counted) if ids else []
    drawn = display_order([one for one in series if one.name in DRAWN_SERIES])
    document["series"] = [one.to_dict() | {"has_news": has_news(one)} for one in drawn]
    document["groups"] = GROUP_WORDS
    scope = Scope(history, project_id, since_then, times.last, None, store.now(), counted["ids"])
    document["failing"] = _failing(scope, series, memories, times)
    is_of_tasks = bool(scope.failures) and all(failure.which.is_task for failure in scope.failures)
    shown_to = (times.first, times.last, len(builds), 0 if is_dated else len(recalls), is_of_tasks, others)
    return PageData(document, memories, series, kept, hidden, shortened, *shown_to, **asked)


def _apart(lives: Sequence[Life]) -> list[str]:
    """Return the projects by number of memories if some have only undated trials and others only dates; otherwise an empty list."""
    many = Counter(life.project_id or "" for life in lives)
    undated = {life.project_id or "" for life in lives if is_undated(life.at)}
    dated = {life.project_id or "" for life in lives if not is_undated(life.at)}
    if not undated - dated or not dated - undated:
        return []
    return sorted((name for name in many if name), key=lambda name: (-many[name], name))


def _failing(
    scope: Scope, series: Sequence[Series], memories: Sequence[StoredMemory], times: Times
) -> dict[str, Any] | None:
    """Return the failures and the start of each bucket, or None if no failure came back."""
    returning = next((one for one in series if one.name == "returning_failures"), None)
    if returning is None or returning.bucket is None or not any(point.value for point in returning.points):
        return None
    begins = starts(min(point.at for point in returning.points), times.last, checked_bucket(returning.bucket) or "day")
    failures = [
        [one.title, one.memories, *([times.at(at) for at in part] for part in (one.failed, one.tried, one.solved))]
        for one in failing(scope, memories)
    ]
    periods = [[day, times.at(f"{day}T00:00:00.000Z")] for day in begins]
    return {"bucket": returning.bucket, "periods": periods, "failures": failures}


def _evidence(store: AgentMemoryStore, ids: Sequence[str]) -> set[tuple[str, str]]:
    """Return the (evidence, derived memory) pairs among these memories, from the index's arrays of links."""
    index = store.reader.index
    of_slot = {index.slot(memory_id): memory_id for memory_id in ids}
    found = set()
    for relation in ("SUPPORTS", "DERIVED_FROM"):
        sources, targets = index.links.pairs(RELATION_CODE[relation])
        ends = (sources, targets) if relation == "SUPPORTS" else (targets, sources)
        pairs = zip(*(end.tolist() for end in ends), strict=True)
        found |= {(of_slot[a], of_slot[b]) for a, b in pairs if a in of_slot and b in of_slot}
    return found


def _document(
    store: AgentMemoryStore,
    memories: Sequence[StoredMemory],
    times: Times,
    rank: Mapping[str, int],
    pairs: Collection[tuple[str, str]],
) -> tuple[dict[str, Any], int]:
    ids = times.ids
    number = {memory_id: place for place, memory_id in enumerate(ids)}
    evidence = sorted((number[a], number[b]) for a, b in pairs)
    groups, labels = grouped(memories, evidence)
    layout = lay_out(groups, len(memories))
    texts = [memory.content for memory in memories]
    is_short = [
        rank[memory_id] >= FULL_TEXTS and len(text) > SHORT_CHARS for memory_id, text in zip(ids, texts, strict=True)
    ]
    added = [times.at(times.lines[memory_id].added) for memory_id in ids]
    curve = store.config.forgetting_curve
    names = _Names()
    kinds = [times.history.lives[memory_id].kind for memory_id in ids]
    document = {
        "start": times.start * 1000,
        "end": (times.at(times.last) if times.last else 0) or DAY_S,
        "undated": bool(ids) and all(is_undated(times.lines[memory_id].added) for memory_id in ids),
        "rates": [curve.rate(type_of(kind)) for kind in KINDS],
        "threshold": curve.deletion_threshold,
        "most": max(1.0, curve.max_relevance),
        "types": KINDS,
        "outcomes": OUTCOMES,
        "memories": {
            "id": "".join(memory_id[:8] for memory_id in ids),
            "type": "".join(str(KINDS.index(kind)) for kind in kinds),
            "outcome": "".join(str(OUTCOMES.index(one)) for one in _outcomes(memories, kinds, evidence)),
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
        },
        "told": [
            [place, *map(times.at, reported)]
            for place, memory in enumerate(memories)
            if (reported := reported_times(times.history, memory))
        ],
        "worded": times.worded(),
        "more": {
            str(place): more
            for place, memory in enumerate(memories)
            if rank[ids[place]] < FULL_TEXTS and (more := _more(memory, names, store.now()))
        },
        "lives": times.lives(),
        "curves": times.curves(memories, curve),
        "changes": times.changes(),
        "links": _links(memories, evidence, number) | times.links(number),
        "discs": [
            [
                *(round(float(value)) for value in disc),
                label,
                group.members[0] if group.has_hub else -1,
                added[group.members[0]] if group.has_hub else min(added[place] for place in group.members),
            ]
            for disc, label, group in zip(layout.discs, labels, groups, strict=True)
        ],
    }
    document["areas"] = areas(groups, layout.discs)
    return document | names.lists, sum(is_short)


def _outcomes(
    memories: Sequence[StoredMemory], kinds: Sequence[str], evidence: Sequence[tuple[int, int]]
) -> Iterable[str]:
    """Yield the outcome to show for each memory: a stated fact did not go well, and of a commit only that it was made is known.

    The same holds for what was derived from commits alone.
    """
    is_told = [kind != "fact" and memory.source != "git" for memory, kind in zip(memories, kinds, strict=True)]
    of_others = {made for source, made in evidence if is_told[source]}
    of_commits = {made for source, made in evidence if memories[source].source == "git"} - of_others
    for place, memory in enumerate(memories):
        is_good = memory.outcome == "positive"
        yield "unknown" if is_good and (not is_told[place] or place in of_commits) else memory.outcome


class _Names:
    """Numbers names by kind, in order of first use."""

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


def _more(memory: StoredMemory, names: _Names, now: str) -> dict[str, Any]:
    """Return what only some memories have."""
    recorded = memory.created_at[:10]
    found: dict[str, Any] = {
        "title": memory.title,
        "word": memory.outcome_word,
        "sure": memory.confidence if memory.confidence < 1.0 else None,
        "used": memory.access_count or None,
        "commit": getattr(memory, "git_commit", None),
        "things": names.all_of("things", [entity.name for entity in memory.entities[:_MOST_THINGS]]),
        "recorded": recorded if recorded != memory.occurred_at[:10] else None,
        "tier": memory.privacy_tier if memory.privacy_tier != "public" else None,
        "holds": memory.invalid_at if (memory.invalid_at or "") > now else None,
    }
    if isinstance(memory, ProceduralMemory):
        found |= {"trigger": memory.trigger_pattern, "steps": memory.steps}
    if isinstance(memory, SemanticMemory):
        found |= {"right": memory.correct_approach, "wrong": memory.incorrect_approach}
    return {name: value for name, value in found.items() if value is not None and value != []}


def _links(
    memories: Sequence[StoredMemory], evidence: Sequence[tuple[int, int]], number: Mapping[str, int]
) -> dict[str, list[int]]:
    """Return flat lists of (evidence, derived memory) and (memory, next memory) pairs; these exist when both memories do."""
    before = ((number.get(memory.previous_id or ""), place) for place, memory in enumerate(memories))
    follow = [(one, place) for one, place in before if one is not None]
    found = {"EVIDENCE": evidence, "NEXT": follow}
    return {relation: [end for pair in pairs for end in pair] for relation, pairs in found.items() if pairs}
