"""Lists the failures with their times and attempts, which the page shows as still failing or solved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from memgraph.fold.history.builds import task_of_build
from memgraph.fold.history.lives import History
from memgraph.lifecycle.evidence.sentences import concrete, is_advice, sentences_of
from memgraph.lifecycle.evidence.trials import is_trial, told_in
from memgraph.model.memory import AgentMemory
from memgraph.viz.series.failures import SUCCESS, Which, reported_since
from memgraph.viz.series.measures import Scope

_TITLE_CHARS = 56
_TELLING = ("Lesson", "Last error", "Result", "What it acted on", "What was done")
"""Parts of a trial's text, the most informative about the failure first."""


class Failing(NamedTuple):
    """A failure.

    Attributes
    ----------
    title : str
        What failed, in a few words; empty if only the memories' texts say so, or if no memory is shown.
    memories : list of (int, int)
        The shown memories that describe it: number, and the offset in the text where the description starts. Empty if no shown
        memory describes it.
    failed : list of str
        Times at which it failed, as counted by the series `returning_failures`.
    tried, solved : list of str
        For a named task, the times of its attempts and successes; otherwise empty.
    """

    title: str
    memories: list[tuple[int, int]]
    failed: list[str]
    tried: list[str]
    solved: list[str]


def failing(scope: Scope, memories: Sequence[AgentMemory]) -> list[Failing]:
    """Return the failures with the memories that describe them, in order of first failure."""
    failed = defaultdict(list)
    for at, _, which in scope.failures:
        if scope.covers(at):
            failed[which].append(at)
    places = defaultdict(list)
    for place, memory in enumerate(memories):
        life = scope.lives.get(memory.id or "")
        if life is not None and life.type == "episodic":
            for which in reported_since(scope.history, life):
                places[which].append(place)
    by_task = _by_task(scope)
    found = []
    for which, times in failed.items():
        numbers = places[which]
        if which.is_task:  # the report of a whole trial says more than an error along the way
            numbers = [place for place in numbers if is_trial(memories[place].content)] or numbers
        tried, solved = by_task.get(which, ([], [])) if which.is_task else ([], [])
        title = _title_of(memories[numbers[0]]) if numbers else ""
        found.append(Failing(title, [(place, _begins(memories[place])) for place in numbers], times, tried, solved))
    return found


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


def reported_times(history: History, memory: AgentMemory) -> list[str]:
    """Return the times of the builds that reported a memory, in order; empty if there are fewer than two."""
    builds = [history.builds.get((memory.project_id or "", name)) for name in memory.evidence_build_ids]
    return sorted((build.at if build else memory.occurred_at or "") for build in builds) if len(builds) > 1 else []


def _title_of(memory: AgentMemory) -> str:
    if memory.title:
        return memory.title
    if not is_trial(memory.content):
        return ""
    name = told_in(memory.content)[0].rstrip(".")
    return name if len(name) <= _TITLE_CHARS else f"{name[: _TITLE_CHARS - 1].rstrip()}…"


def _begins(memory: AgentMemory) -> int:
    """Return the offset where a text starts to describe what happened: in a trial's, the first concrete sentence that is not advice."""
    if not is_trial(memory.content):
        return 0
    parts = told_in(memory.content)[1]
    telling = next((parts[name] for name in _TELLING if name in parts), "")
    said = concrete(sentences_of(telling))
    happened = [sentence for sentence in said if not is_advice(sentence)] or said or [telling]
    return max(0, memory.content.find(happened[0].rstrip("."), memory.content.find(telling)))
