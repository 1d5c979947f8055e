"""What tests, commands and sessions teach: failures that return, flaky tests, commands that work, what follows what.

What follows what is mined as closed sequential patterns: Pei et al., *Mining Sequential Patterns by Pattern-Growth: the PrefixSpan Approach*
(TKDE 2004), best first by support as in Tzvetkov et al., *TSP: Mining Top-K Closed Sequential Patterns* (ICDM 2003), bounded in length and number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from memgraph.lifecycle.counting.records import (
    FLAKY,
    FOLLOWS,
    KINDS,
    MOST_IDS,
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


class Outcomes:
    """Counts over the outcomes of tests, commands and builds; see `Counting`."""

    def __init__(self) -> None:
        self._log: list[Outcome] = []
        self._returns: Tallies[str, str] = Tallies(RETURNS)
        self._flaky: Tallies[str, str] = Tallies(FLAKY)
        self._works: Tallies[str, str] = Tallies(WORKS)
        self._mended_by: dict[str, str] = {}
        self._failed_in: dict[str, set[str]] = {}
        self._results: dict[tuple[str, str], bool] = {}
        self.tallies = (self._returns, self._flaky, self._works)

    def learn(self, outcome: Outcome) -> None:
        """Count an outcome."""
        now, name = len(self._log), outcome.name
        self._log.append(outcome)
        for tallies, subject in self._occasions(outcome):
            earlier = tallies.occasions.get(subject)
            if tallies is self._returns and earlier:  # it was an occasion to return, and did
                tallies.hit(subject, "", earlier.numbers[-1], now)
            tallies.occasion(subject, now)
            is_hit = tallies is self._works and outcome.ok
            if tallies is self._flaky:
                is_hit = outcome.ok != self._results[name, outcome.state or ""]
            if is_hit:
                tallies.hit(subject, "", now, now)
        if not outcome.ok:
            self._failed_in.setdefault(_failure(outcome), set()).add(outcome.session)
            if outcome.mended_by:
                self._mended_by[_failure(outcome)] = self._mended_by[name] = outcome.mended_by
        if outcome.state is not None and outcome.kind == "test":
            self._results[name, outcome.state] = outcome.ok

    def _occasions(self, outcome: Outcome) -> Iterator[tuple[Tallies[str, str], str]]:
        """Yield of which kinds an outcome is an occasion, and of what subject."""
        failure = _failure(outcome)
        if not outcome.ok and outcome.session not in self._failed_in.get(failure, ()):
            yield self._returns, failure
        if outcome.kind == "test" and (outcome.name, outcome.state) in self._results:
            yield self._flaky, outcome.name
        if outcome.kind == "command":
            yield self._works, outcome.name

    def questions(self, outcome: Outcome) -> Iterator[Question]:
        """Yield what is asked before an outcome is learned: does this failure return, does the result differ, does the command work."""
        now = len(self._log)
        for tallies, subject in self._occasions(outcome):
            yield tallies.question(subject, now)

    def rules(self) -> Iterator[Counted]:
        """Yield the rules over failures, tests and commands."""
        now = len(self._log)
        for tallies in self.tallies:
            for subject, _, share in tallies.found(now):
                occasions, hits = tallies.occasions[subject].numbers, tallies.hits[subject][""].numbers
                name = self._log[occasions[-1]].name
                rule = counted(tallies.kind, name, "", share, self._log, occasions, hits)
                if tallies is self._returns:  # it is in force with the last failure, which may yet return
                    dates = [self._log[number].at for number in occasions]
                    rule = rule._replace(
                        first=min(dates),
                        last=max(dates),
                        evidence=(self._log[occasions[-1]].id, *rule.evidence)[:MOST_IDS],
                        counterexamples=(),
                    )
                mended_by = None if tallies is self._flaky else self._mended_by.get(subject)
                yield rule._replace(key=f"{rule.kind}: {subject}", names=_names(name, subject), mended_by=mended_by)


def _failure(outcome: Outcome) -> str:
    return outcome.fingerprint or outcome.name


def _names(name: str, subject: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((name, subject)))


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
        fitting = (one for one in self._mined if _place(one[1][:-1], session.actions) is not None)
        share, actions = max(fitting, key=lambda one: (one[0], len(one[1])), default=(None, ()))
        yield Question(FOLLOWS, actions[:-1], len(self._log), actions[-1:], share, share is not None)

    def was_hit(self, actions: tuple[str, ...], number: int) -> bool:
        """Return whether the session with this number did all of these and ended well."""
        session = self._log[number]
        return session.ended_well and _place(actions, session.actions) is not None

    def rules(self) -> Iterator[Counted]:
        """Yield the rules over sequences of actions."""
        for _, rule in self._found():
            yield rule

    def _found(self) -> Iterator[tuple[tuple[str, ...], Counted]]:
        good = [number for number, session in enumerate(self._log) if session.ended_well]
        actions_of = [self._log[number].actions for number in good]
        often = Counter(action for actions in actions_of for action in set(actions))
        for pattern, places in closed_patterns(actions_of, KINDS[FOLLOWS].least_support):
            before = pattern[:-1]
            occasions = [n for n, session in enumerate(self._log) if _place(before, session.actions) is not None]
            hits = [good[place] for place in places]
            share = len(hits) / (len(occasions) + 1)
            is_more_than_usual = len(hits) * len(self._log) > often[pattern[-1]] * len(occasions)
            if share >= KINDS[FOLLOWS].least_share and is_more_than_usual:
                first = ", then ".join(f"`{action}`" for action in before)
                rule = counted(FOLLOWS, first, f"`{pattern[-1]}`", share, self._log, occasions, hits)
                yield pattern, rule._replace(names=tuple(dict.fromkeys(before)))


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
