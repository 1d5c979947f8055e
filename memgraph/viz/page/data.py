"""The page's data: memories, their times and links, positions and series, as one compact document.

Memories are numbered in the order they were added and referenced by number. The document stores columns instead of records; times
are whole seconds since the start of the span. `visualizations/src/data.js` reads it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from memgraph.errors import InvalidInputError
from memgraph.fold.history import KINDS, History, Life, is_attempt, is_undated, task_of_build, type_of
from memgraph.index.index import RELATION_CODE, Index
from memgraph.lifecycle.episodes import is_trial
from memgraph.model.memory import MEMORY_TYPES, ProceduralMemory, SemanticMemory, StoredMemory
from memgraph.ports import Progress
from memgraph.store import AgentMemoryStore
from memgraph.text.attempts import done_text
from memgraph.text.cutting import cut
from memgraph.viz.failures import SUCCESS, Which, reported_since
from memgraph.viz.page.layout import areas, grouped, lay_out
from memgraph.viz.page.limits import FULL_TEXTS, SHORT_CHARS
from memgraph.viz.page.times import DAY_S, Times, timelines, times_of
from memgraph.viz.periods import bounds, checked_bucket, starts
from memgraph.viz.reading import read_history, shown_ids
from memgraph.viz.series import GROUP_WORDS, Scope, Series, display_order, has_news, learning_series

OUTCOMES = ("positive", "negative", "neutral", "unknown")
_MOST_THINGS = 6
_MOST_TAGS = 5
_TITLE_CHARS = 56
_TELLING = ("lesson", "last_error", "result", "acted_on")
"""Fields of a trial, the most informative about the failure first."""
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
    """The content of a page: the JSON document, what is in it, what is left out, and the selection that was asked for.

    `memories` are in the order of their coming; `kept` counts by kind those that may be shown, of which the page has those that
    `chosen_ids` chooses. `hidden` counts those left out because they are suppressed, sensitive or private, `shortened` those whose text
    was shortened, `undrawn_recalls` the selected recalls that are dated while the trials are not. The span (`first`, `happened`) is that of
    all but stated facts, if there is anything else, and empty if there is nothing to show; up to `last` there are recalls, facts and
    changes of memories. `builds` are those with an outcome of their own, `commits` those that were read. `is_of_tasks`: all failures are
    tasks, identified by build names. `others` are projects that are not shown, because they have no common time axis with the one that is.
    """

    document: dict[str, Any]
    memories: list[StoredMemory]
    series: list[Series]
    kept: dict[str, int]
    hidden: int
    shortened: int
    first: str
    happened: str
    last: str
    builds: int = 0
    commits: int = 0
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
    """Return the content of a page of these memories; parameters as for `shown_ids`, but `chosen_ids` chooses within the limit.

    The period selects memories by when they were added, as the timeline shows it. Archived memories are included: the replay shows
    when they were archived, and a generalisation needs its evidence. Undated trials and dated memories have no common time axis: if
    projects differ in this, only the one with the most memories is shown.
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
    lines = timelines(history, [memory.id for memory in shown])
    rank = {memory.id: place for place, memory in enumerate(shown)}

    def came(memory: StoredMemory) -> tuple[str, int, int]:
        """Return the sort key of memories by their order of addition; derived memories come after their sources."""
        return lines[memory.id].added, MEMORY_TYPES.index(memory.type), rank[memory.id]

    memories = sorted(shown, key=came)

    def is_selected(project: str | None, at: str) -> bool:
        return project_id in (None, project) and since_then <= at <= until_then

    done_in = {key: build for key, build in history.builds.items() if is_selected(key[0], build.at)}
    builds = [build.at for build in done_in.values()]
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
    again = (at for one in lines for at in history.lives[one].again if at <= until_then)
    found = [line.added for one, line in lines.items() if history.lives[one].kind != "fact"]
    span = [*found, *builds, *again] or [line.added for line in lines.values()]
    commits = [build.tasks for (_, name), build in done_in.items() if not is_attempt(name)]
    shown_to = (min(span, default=""), max(span, default=""), times.last, len(builds) - len(commits), sum(commits))
    undrawn = 0 if is_dated else len(recalls)
    return PageData(
        document, memories, series, kept, hidden, shortened, *shown_to, undrawn, is_of_tasks, others, **asked
    )


def chosen_ids(store: AgentMemoryStore, ids: Sequence[str], limit: int | None) -> list[str]:
    """Return at most `limit` of these ids, which are sorted by relevance, in the same order.

    Half of them are the most relevant ones. Their sources come next, because conclusions outlast their evidence, and a page
    without the evidence would explain nothing. The most relevant of the others fill the rest.
    """
    if limit is not None and limit < 0:
        raise InvalidInputError("must be 0 or more", field="limit", value=limit)
    if limit is None or len(ids) <= limit:
        return list(ids)
    rank = {memory_id: place for place, memory_id in enumerate(ids)}
    chosen = dict.fromkeys(ids[: limit - limit // 2])
    index = store.reader.index
    evidence = (
        source
        for memory_id in list(chosen)
        for source in sorted(_sources(index, memory_id) & rank.keys(), key=rank.__getitem__)
    )
    for memory_id in chain(evidence, ids):
        if len(chosen) == limit:
            break
        chosen[memory_id] = None
    return sorted(chosen, key=rank.__getitem__)


def _sources(index: Index, memory_id: str) -> set[str]:
    """Return the sources of a memory and the memories that support it."""
    others, weights = index.links.get(index.slot(memory_id))
    meant = {RELATION_CODE["DERIVED_FROM"], -RELATION_CODE["SUPPORTS"]}
    return {
        index.ids.names[other]
        for other, weight in zip(others.tolist(), weights.tolist(), strict=True)
        if weight in meant
    }


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
    """Return the failures, ordered by first failure, and the start of each bucket; None if no failure came back.

    Of each failure: what failed, in a few words (empty if only the memories' texts say so, or no memory is shown); the shown memories that
    describe it, each with the offset in its text where the description starts; and the times at which it failed, as counted by the series
    `returning_failures`, and for a named task those of its attempts and its successes.
    """
    returning = next((one for one in series if one.name == "returning_failures"), None)
    if returning is None or returning.bucket is None or not any(point.value for point in returning.points):
        return None
    begins = starts(min(point.at for point in returning.points), times.last, checked_bucket(returning.bucket) or "day")
    periods = [[day, times.at(f"{day}T00:00:00.000Z")] for day in begins]
    failed = defaultdict(list)
    for at, _, which in scope.failures:
        if scope.covers(at):
            failed[which].append(at)
    places = defaultdict(list)
    for place, memory in enumerate(memories):
        life = scope.lives.get(memory.id)
        if life is not None and life.type == "episodic":
            for which in reported_since(scope.history, life):
                places[which].append(place)
    by_task = _by_task(scope)
    failures = []
    for which, when in failed.items():
        numbers = places[which]
        if which.is_task:  # the report of a whole trial says more than an error along the way
            numbers = [place for place in numbers if is_trial(vars(memories[place]))] or numbers
        tried, solved = by_task.get(which, ([], [])) if which.is_task else ([], [])
        title = _title_of(memories[numbers[0]]) if numbers else ""
        told = [(place, _begins(memories[place])) for place in numbers]
        failures.append([title, told, *([times.at(at) for at in part] for part in (when, tried, solved))])
    return {"bucket": returning.bucket, "periods": periods, "failures": failures}


def _by_task(scope: Scope) -> dict[Which, tuple[list[str], list[str]]]:
    """Return the times of each named task's attempts and successes."""
    found: dict[Which, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for (project_id, build_id), build in sorted(scope.history.builds.items(), key=lambda item: item[1].at):
        task = task_of_build(build_id)
        if task is not None and scope.counts(project_id) and scope.covers(build.at):
            tried, solved = found[Which(project_id, task, is_task=True)]
            tried.append(build.at)
            if build.outcome == SUCCESS:
                solved.append(build.at)
    return dict(found)


def reported_times(history: History, memory: StoredMemory) -> list[str]:
    """Return the times of the builds that reported a memory, in order; empty if fewer than two did."""
    builds = [history.builds.get((memory.project_id or "", name)) for name in memory.evidence_build_ids]
    return sorted((build.at if build else memory.occurred_at or "") for build in builds) if len(builds) > 1 else []


def _title_of(memory: StoredMemory) -> str:
    if memory.title:
        return memory.title
    fields = vars(memory)
    if not is_trial(fields):
        return ""
    return cut(fields["asked"].rstrip("."), _TITLE_CHARS)


def _begins(memory: StoredMemory) -> int:
    """Return the offset at which a text starts to report what happened: in a trial's, behind what was asked."""
    fields = vars(memory)
    if not is_trial(fields):
        return 0
    telling = next((fields[name] for name in _TELLING if fields.get(name)), done_text(fields))
    return max(0, memory.content.find(telling))


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
        "kind": getattr(memory, "change_kind", None),
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
