"""Lists the failures with their times and attempts, which the page shows as still failing or solved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from memgraph.fold.history import History, task_of_build
from memgraph.lifecycle.evidence.sentences import concrete, is_advice, sentences_of
from memgraph.lifecycle.evidence.trials import is_trial
from memgraph.model.memory import StoredMemory
from memgraph.text.attempts import done_text
from memgraph.text.cutting import cut
from memgraph.viz.series.failures import SUCCESS, Which, reported_since
from memgraph.viz.series.measures import Scope

_TITLE_CHARS = 56
_TELLING = ("lesson", "last_error", "result", "acted_on")
"""Fields of a trial, the most informative about the failure first."""


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


def failing(scope: Scope, memories: Sequence[StoredMemory]) -> list[Failing]:
    """Return the failures, each with the memories that report it, ordered by first failure."""
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
    found = []
    for which, times in failed.items():
        numbers = places[which]
        if which.is_task:  # the report of a whole trial says more than an error along the way
            numbers = [place for place in numbers if is_trial(vars(memories[place]))] or numbers
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
    """Return the offset at which a text starts to report what happened. In the text of a trial, this is a sentence specific to its task that gives no advice."""
    fields = vars(memory)
    if not is_trial(fields):
        return 0
    telling = next((fields[name] for name in _TELLING if fields.get(name)), done_text(fields))
    said = concrete(sentences_of(telling))
    happened = [sentence for sentence in said if not is_advice(sentence)] or said or [telling]
    return max(0, memory.content.find(happened[0].rstrip("."), memory.content.find(telling)))
