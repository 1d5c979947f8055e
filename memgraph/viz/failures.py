"""The failures in a history, and the lessons that were known of them.

A failure is one of a task, if build names identify it, otherwise of an error, by its fingerprint. Trials of the same task count as the same
failure even if their texts or errors differ. So for builds whose names identify the task, the outcome of the build counts, not the text
of its memories.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple

from memgraph.fold.history import History, Life, task_of_build

SUCCESS = "success"
_HIDES = {"suppressed": True, "deleted": True, "unsuppressed": False, "undeleted": False}
_TEACHES = {"compressed": True, "uncompressed": False}
_Transitions = list[tuple[str, bool]]
"""Times at which a state became true or false, in order."""


class Which(NamedTuple):
    """The identity of a failure across its occurrences: its project (may be empty), and the task or the fingerprint."""

    project_id: str
    name: str
    is_task: bool = False


class Failure(NamedTuple):
    """One occurrence of a failure: its time, the sequence number of its event, and its identity."""

    at: str
    seq: int
    which: Which


def failures(history: History, lives: Mapping[str, Life], counts: Callable[[str], bool]) -> list[Failure]:
    """Return every failure of the counted memories and projects in order of time, once for each build in which it occurred."""
    found: dict[tuple[Which, str], Failure] = {}
    for (project_id, name), build in history.builds.items():
        task = task_of_build(name)
        if task is not None and build.outcome != SUCCESS and counts(project_id):
            which = Which(project_id, task, is_task=True)
            found[which, f"build {name}"] = Failure(build.at, build.seq, which)
    for memory_id, life in lives.items():
        if life.type == "episodic":
            for which, at, key in _reported(history, memory_id, life):
                found.setdefault((which, key), Failure(at, life.seq, which))
    return sorted(found.values(), key=lambda failure: failure[:2])


def _reported(history: History, memory_id: str, life: Life) -> Iterator[tuple[Which, str, str]]:
    """Yield the failures that a memory reports, with their times and a key that is equal for two reports of one failure."""
    if life.fingerprint is None:
        return
    project_id = life.project_id or ""
    same = Which(project_id, life.fingerprint)
    known = [name for name in life.builds if (project_id, name) in history.builds]
    for name in known:
        if task_of_build(name) is None:
            yield same, history.builds[project_id, name].at, f"build {name}"
    if not known:
        for which in reported_since(history, life):
            yield which, life.at, f"memory {memory_id}"
    yield from ((same, at, f"again {memory_id} {number}") for number, at in enumerate(life.again))


def reported_since(history: History, life: Life) -> dict[Which, str]:
    """Return the failures that a memory reports and since when; empty without a fingerprint."""
    if life.fingerprint is None:
        return {}
    project_id = life.project_id or ""
    found: dict[Which, str] = {}
    for name in life.builds:
        task, build = task_of_build(name), history.builds.get((project_id, name))
        which = Which(project_id, task or life.fingerprint, is_task=task is not None)
        at = max(build.at, life.at) if build else life.at
        found[which] = min(at, found.get(which, at))
    if life.again or not life.builds:
        found.setdefault(Which(project_id, life.fingerprint), life.at)
    return found


class Lessons:
    """The lessons of a history among the counted memories (`lives`): which failures had one, and when.

    A lesson covers its own failure from when it was added, and its sources' failures from when it was derived from them. It is known
    as long as it is not suppressed or deleted.
    """

    def __init__(self, history: History, lives: Mapping[str, Life]) -> None:
        lessons = {one: life for one, life in lives.items() if life.is_lesson}
        hidden: dict[str, dict[str, _Transitions]] = defaultdict(lambda: defaultdict(list))
        made: dict[tuple[str, str], _Transitions] = defaultdict(list)
        for change in sorted(history.changes, key=attrgetter("at", "seq")):
            if change.kind in _HIDES and change.id in lessons:
                hidden[change.id][change.kind.removeprefix("un")].append((change.at, _HIDES[change.kind]))
            elif change.kind in _TEACHES and change.other in lessons:
                made[change.other or "", change.id].append((change.at, _TEACHES[change.kind]))
        taught: dict[Which, list[tuple[str, int]]] = defaultdict(list)
        for one, life in lessons.items():
            for which, since in reported_since(history, life).items():
                taught[which] += _steps([(since, True)], hidden[one].values())
        for (one, source), turns in made.items():
            for which, since in reported_since(history, history.lives[source]).items():
                not_yet = [("", True), (since, False)]
                taught[which] += _steps(turns, [*hidden[one].values(), not_yet])
        self._times: dict[Which, list[str]] = {}
        self._known: dict[Which, list[int]] = {}
        """The number of known lessons of each failure, from each of the times on."""
        for which, steps in taught.items():
            steps.sort()
            self._times[which] = [at for at, _ in steps]
            self._known[which] = list(accumulate(step for _, step in steps))

    def knew(self, which: Which, at: str) -> bool:
        """Return whether a lesson of this failure was known right before a time."""
        place = bisect_left(self._times.get(which, ()), at)
        return place > 0 and self._known[which][place - 1] > 0


def _steps(teaches: _Transitions, hidden: Iterable[_Transitions]) -> list[tuple[str, int]]:
    """Return when a lesson becomes known (1) and unknown (-1): it is known while it covers the failure and nothing hides it."""
    states = [False, *(False for _ in hidden)]
    turns = sorted((at, place, is_so) for place, of in enumerate([teaches, *hidden]) for at, is_so in of)
    steps, was_known = [], False
    for at, place, is_so in turns:
        states[place] = is_so
        is_known = states[0] and not any(states[1:])
        if is_known != was_known:
            steps.append((at, 1 if is_known else -1))
            was_known = is_known
    return steps
