"""Which lessons were known when: what they teach, from when on, and while they could be told."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping
from operator import attrgetter

from memgraph.viz.history import History, Life

Which = tuple[str | None, str]
"""A failure's project and fingerprint."""
_HIDES = {"suppressed": True, "deleted": True, "unsuppressed": False, "undeleted": False}
_TEACHES = {"compressed": True, "uncompressed": False}
_Turns = list[tuple[str, bool]]
"""From when on something was so, or was not so; in the order of time."""


class Lessons:
    """The lessons of a history.

    One teaches its own failure from when it came, and that of a memory that it was made of from when this was so. It is known as long
    as it is neither suppressed nor deleted.

    Parameters
    ----------
    lives : mapping of str to Life
        The memories that count, by id.
    """

    def __init__(self, history: History, lives: Mapping[str, Life]) -> None:
        self._taught: dict[Which, list[tuple[str, _Turns]]] = defaultdict(list)
        """Of each failure the lessons, and since when each teaches it."""
        self._hidden: dict[tuple[str, str], _Turns] = defaultdict(list)
        """When a lesson was suppressed, or deleted, and no longer so."""
        lessons = {one: life for one, life in lives.items() if life.is_lesson}
        made: dict[tuple[str, str], _Turns] = defaultdict(list)
        for change in sorted(history.changes, key=attrgetter("at", "seq")):
            if change.kind in _HIDES and change.id in lessons:
                self._hidden[change.id, change.kind.removeprefix("un")].append((change.at, _HIDES[change.kind]))
            elif change.kind in _TEACHES and change.other in lessons:
                made[change.other or "", change.id].append((change.at, _TEACHES[change.kind]))
        for one, life in lessons.items():
            if life.fingerprint is not None:
                self._taught[life.project_id, life.fingerprint].append((one, [(life.at, True)]))
        for (one, source), turns in made.items():
            fingerprint = history.lives[source].fingerprint
            if fingerprint is not None:
                self._taught[lessons[one].project_id, fingerprint].append((one, turns))

    def knew(self, which: Which, at: str) -> bool:
        """Tell whether a lesson of this failure was known right before a time."""
        return any(
            _was(turns, at)
            and not any(_was(self._hidden.get((one, kind), []), at) for kind in ("suppressed", "deleted"))
            for one, turns in self._taught.get(which, ())
        )


def _was(turns: _Turns, at: str) -> bool:
    """Tell whether it was so right before a time."""
    place = bisect_left(turns, (at, False))
    return place > 0 and turns[place - 1][1]
