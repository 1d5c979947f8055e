"""Determines which failures had a known lesson at a time."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import accumulate
from operator import attrgetter

from memgraph.fold.history import History, Life
from memgraph.viz.series.failures import Which, reported_since

_HIDES = {"suppressed": True, "deleted": True, "unsuppressed": False, "undeleted": False}
_TEACHES = {"compressed": True, "uncompressed": False}
_Transitions = list[tuple[str, bool]]
"""Times at which a state became true or false, in order."""


class Lessons:
    """The lessons of a history.

    A lesson covers its own failure from when it was added, and its sources' failures from when it was derived from them. It is known
    as long as it is not suppressed or deleted.

    Parameters
    ----------
    lives : mapping of str to Life
        The counted memories, by id.
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
