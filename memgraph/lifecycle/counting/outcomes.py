"""What tests, commands and sessions teach: failures that return, flaky tests, commands that work, what follows what.

What follows what is mined as closed sequential patterns: Pei et al., *Mining Sequential Patterns by Pattern-Growth: the PrefixSpan Approach*
(TKDE 2004), best first by support as in Tzvetkov et al., *TSP: Mining Top-K Closed Sequential Patterns* (ICDM 2003), bounded in length and number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from memgraph.lifecycle.counting.records import (
    ALIKE,
    FLAKY,
    FOLLOWS,
    LEAST_SHARE,
    LEAST_SUPPORT,
    RETURNS,
    WORKS,
    Counted,
    Outcome,
    Question,
    Session,
    Tallies,
    counted,
)

MOST_ACTIONS = 5
"""Maximum length of a sequence."""
MOST_PATTERNS = 2_000
"""Maximum number of sequences that are looked at, those of most sessions first."""
_MINED_AGAIN_AFTER = 1.05
"""Questions are answered from sequences mined over all sessions, and again once there are 5 % more."""


_Subject = tuple[str, str]
"""A kind of outcome and a name, or `ALIKE` and the fingerprint of a failure."""
_OfOutcomes = Tallies[_Subject, str]


class Outcomes:
    """Counts over the outcomes of tests, commands and builds; see `Counting`."""

    def __init__(self) -> None:
        self._log: list[Outcome] = []
        self._of_build: list[Outcome] = []
        self._ran: dict[tuple[_Subject, str], int] = {}
        self._results: dict[tuple[_Subject, str | None], bool] = {}
        self._mended_by: dict[_Subject, str] = {}
        self._returns, self._alike = _OfOutcomes(RETURNS), _OfOutcomes(ALIKE)
        self._flaky, self._works = _OfOutcomes(FLAKY), _OfOutcomes(WORKS)
        self.tallies = (self._returns, self._alike, self._flaky, self._works)

    def learn(self, outcome: Outcome) -> None:
        """Count an outcome."""
        now, own, same = len(self._log), (outcome.kind, outcome.name), (ALIKE, outcome.fingerprint or "")
        self._log.append(outcome)
        self._of_build.append(outcome)
        for tallies in self._asked(outcome):
            tallies.occasion(own, now)
            is_another = tallies is self._flaky and outcome.ok != self._results[own, outcome.state]
            if is_another or (tallies is self._works and outcome.ok):
                tallies.hit(own, "", now, now)
        first = self._ran.setdefault((own, outcome.session), now)
        if not outcome.ok:
            self._returns.hit(own, "", first, now)
            self._of_build[first] = outcome  # the build's latest failure stands for its first run
            if outcome.fingerprint and self._ran.setdefault((same, outcome.session), now) == now:
                self._alike.occasion(same, now)
                self._alike.hit(same, "", now, now)
            if outcome.mended_by:
                self._mended_by |= {own: outcome.mended_by, same: outcome.mended_by}
        if outcome.state is not None:
            self._results[own, outcome.state] = outcome.ok

    def _asked(self, outcome: Outcome) -> Iterator[_OfOutcomes]:
        """Yield the kinds of which an outcome is an occasion: it runs in a build, runs again on the same, is a command."""
        own = (outcome.kind, outcome.name)
        if (own, outcome.session) not in self._ran:
            yield self._returns
        if outcome.kind == "test" and (own, outcome.state) in self._results:
            yield self._flaky
        if outcome.kind == "command":
            yield self._works

    def questions(self, outcome: Outcome) -> Iterator[Question]:
        """Yield what is asked before an outcome is learned: does it fail in this build, is the result another one, does it work."""
        for tallies in self._asked(outcome):
            yield tallies.question((outcome.kind, outcome.name), len(self._log))

    def rules(self) -> Iterator[Counted]:
        """Yield the rules over tests, commands and builds, and over failures that several of them have in common."""
        for tallies in self.tallies:
            for subject, obj, share in tallies.found(len(self._log)):
                occasions, hits = tallies.occasions[subject].numbers, tallies.hits[subject][obj].numbers
                names = tuple(sorted({self._log[number].name for number in hits}))
                if tallies is not self._alike or len(names) > 1:
                    log = self._of_build if tallies is self._returns else self._log
                    rule = counted(tallies.kind, ", ".join(names), obj, share, log, occasions, hits)
                    mended_by = None if tallies is self._flaky else self._mended_by.get(subject)
                    yield rule._replace(key=f"{rule.kind}: {' '.join(subject)}", names=names, mended_by=mended_by)


class Sequences:
    """Counts over the actions of sessions; see `Counting`."""

    def __init__(self) -> None:
        self._log: list[Session] = []
        self._mined: list[tuple[float, tuple[str, ...]]] = []
        self._mined_at = 0

    def learn(self, session: Session) -> None:
        """Count a session."""
        self._log.append(session)

    def questions(self, session: Session) -> Iterator[Question]:
        """Yield what is asked before a session is learned: what follows the first actions of a sequence, and does it end well."""
        if len(self._log) > self._mined_at * _MINED_AGAIN_AFTER:
            self._mined = [(rule.share, actions) for actions, rule in self._found()]
            self._mined_at = len(self._log)
        fitting = (one for one in self._mined if one[1][0] in session.actions)
        share, actions = max(fitting, key=lambda one: one[0], default=(None, ()))
        yield Question(FOLLOWS, actions[:1], len(self._log), actions[1:], share, share is not None)

    def was_hit(self, actions: tuple[str, ...], number: int) -> bool:
        """Return whether the session with this number did all of these and ended well."""
        session = self._log[number]
        return session.ended_well and _place(actions, session.actions) is not None

    def rules(self) -> Iterator[Counted]:
        """Yield the rules over sequences of actions."""
        for _, rule in self._found():
            yield rule

    def _found(self) -> Iterator[tuple[tuple[str, ...], Counted]]:
        numbers: dict[str, list[int]] = {}
        for number, session in enumerate(self._log):
            for action in dict.fromkeys(session.actions):
                numbers.setdefault(action, []).append(number)
        good = [number for number, session in enumerate(self._log) if session.ended_well]
        for actions, places in closed_patterns([self._log[number].actions for number in good], LEAST_SUPPORT[FOLLOWS]):
            (first, *rest), hits = actions, [good[place] for place in places]
            occasions, usual = numbers[first], sum(self.was_hit(actions[1:], number) for number in numbers[rest[0]])
            share = len(hits) / (len(occasions) + 1)
            if share >= LEAST_SHARE[FOLLOWS] and len(hits) * len(self._log) > usual * len(occasions):
                then = ", then ".join(f"`{action}`" for action in rest)
                rule = counted(FOLLOWS, first, then, share, self._log, occasions, hits)
                yield actions, rule


def closed_patterns(sequences: Sequence[Sequence[str]], least: int) -> list[tuple[tuple[str, ...], list[int]]]:
    """Return the sequences of 2 to `MOST_ACTIONS` actions that at least so many sequences contain, and the places of these.

    The actions need not be next to each other. A pattern that is contained in a longer one in the same sequences is left out.
    Deterministic; O(`MOST_PATTERNS` · actions of all sequences).
    """
    found: list[tuple[tuple[str, ...], list[int]]] = []
    queue: list[tuple[int, tuple[str, ...], list[tuple[int, int]]]] = [(0, (), [(n, 0) for n in range(len(sequences))])]
    while queue and len(found) < MOST_PATTERNS:
        _, pattern, ends = heappop(queue)
        if len(pattern) > 1:
            found.append((pattern, [place for place, _ in ends]))
        if len(pattern) == MOST_ACTIONS:
            continue
        projected: dict[str, list[tuple[int, int]]] = {}
        for place, end in ends:
            seen = set(pattern[-1:])  # an action that follows itself is one
            for number, action in enumerate(sequences[place][end:], end + 1):
                if action not in seen:
                    seen.add(action)
                    projected.setdefault(action, []).append((place, number))
        for action, after in projected.items():
            if len(after) >= least:
                heappush(queue, (-len(after), (*pattern, action), after))
    by_places: dict[tuple[int, ...], list[tuple[str, ...]]] = {}
    for pattern, places in found:
        by_places.setdefault(tuple(places), []).append(pattern)
    return [
        (pattern, places)
        for pattern, places in found
        if not any(
            len(other) > len(pattern) and _place(pattern, other) is not None for other in by_places[tuple(places)]
        )
    ]


def _place(pattern: Sequence[str], actions: Sequence[str]) -> int | None:
    """Return where the earliest occurrence of a sequence ends; None if the actions do not contain it."""
    place = 0
    for action in pattern:
        while place < len(actions) and actions[place] != action:
            place += 1
        if place == len(actions):
            return None
        place += 1
    return place
