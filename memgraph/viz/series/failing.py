"""Which failures there are, when each failed, and when it was tried at all: what the page lists as still failing, and as solved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from memgraph.fold.history.builds import task_of_build
from memgraph.fold.history.lives import History
from memgraph.lifecycle.evidence.sentences import concrete, is_advice, sentences_of
from memgraph.lifecycle.evidence.trials import is_trial
from memgraph.model.memory import StoredMemory
from memgraph.text.attempts import done_text
from memgraph.text.cutting import cut
from memgraph.viz.series.failures import SUCCESS, Which, told_since
from memgraph.viz.series.measures import Scope

_TITLE_CHARS = 56
_TELLING = ("lesson", "last_error", "result", "acted_on")
"""What is told of a trial, that which says most of what went wrong first."""


class Failing(NamedTuple):
    """A failure.

    Attributes
    ----------
    title : str
        What failed, in a few words; empty where only the memories' texts say so, or none is shown.
    memories : list of (int, int)
        Those that tell of it, by their places, each with where in its text it begins to say what happened; none of one that was
        not remembered, or not by a memory that is shown.
    failed : list of str
        When it failed: as the series `returning_failures` counts it.
    tried, solved : list of str
        Of a named task, when it was tried, and when it succeeded; empty of any other failure.
    """

    title: str
    memories: list[tuple[int, int]]
    failed: list[str]
    tried: list[str]
    solved: list[str]


def failing(scope: Scope, memories: Sequence[StoredMemory]) -> list[Failing]:
    """Return the failures, each with those of these memories that tell of it, in the order in which they first failed."""
    failed = defaultdict(list)
    for at, _, which in scope.failures:
        if scope.covers(at):
            failed[which].append(at)
    places = defaultdict(list)
    for place, memory in enumerate(memories):
        life = scope.lives.get(memory.id)
        if life is not None and life.type == "episodic":
            for which in told_since(scope.history, life):
                places[which].append(place)
    by_task = _by_task(scope)
    found = []
    for which, times in failed.items():
        told = places[which]
        if which.is_task:  # what is told of a whole trial tells more of it than an error on the way
            told = [place for place in told if is_trial(vars(memories[place]))] or told
        tried, solved = by_task.get(which, ([], [])) if which.is_task else ([], [])
        title = _title_of(memories[told[0]]) if told else ""
        found.append(Failing(title, [(place, _begins(memories[place])) for place in told], times, tried, solved))
    return found


def _by_task(scope: Scope) -> dict[Which, tuple[list[str], list[str]]]:
    """Return when each named task was tried, and when it succeeded."""
    found: dict[Which, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for (project_id, build_id), build in sorted(scope.history.builds.items(), key=lambda item: item[1].at):
        task = task_of_build(build_id)
        if task is not None and scope.counts(project_id) and scope.covers(build.at):
            tried, solved = found[Which(project_id, task, is_task=True)]
            tried.append(build.at)
            if build.outcome == SUCCESS:
                solved.append(build.at)
    return dict(found)


def told_times(history: History, memory: StoredMemory) -> list[str]:
    """Return when the builds that told a memory did so, in order; empty where fewer than two did."""
    builds = [history.builds.get((memory.project_id or "", name)) for name in memory.evidence_build_ids]
    return sorted((build.at if build else memory.occurred_at or "") for build in builds) if len(builds) > 1 else []


def _title_of(memory: StoredMemory) -> str:
    if memory.title:
        return memory.title
    told = vars(memory)
    if not is_trial(told):
        return ""
    return cut(told["asked"].rstrip("."), _TITLE_CHARS)


def _begins(memory: StoredMemory) -> int:
    """Return where a text begins to say what happened: in a trial's, with a sentence that is no advice and does not fit any task."""
    told = vars(memory)
    if not is_trial(told):
        return 0
    telling = next((told[name] for name in _TELLING if told.get(name)), done_text(told))
    said = concrete(sentences_of(telling))
    happened = [sentence for sentence in said if not is_advice(sentence)] or said or [telling]
    return max(0, memory.content.find(happened[0].rstrip("."), memory.content.find(telling)))
