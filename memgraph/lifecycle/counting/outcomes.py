"""What tests, commands and sessions teach: failures that return, flaky tests, commands that work, what follows what.

What follows what is mined as closed sequential patterns: Pei et al., *Mining Sequential Patterns by Pattern-Growth: the PrefixSpan Approach*
(TKDE 2004), best first by support as in Tzvetkov et al., *TSP: Mining Top-K Closed Sequential Patterns* (ICDM 2003), bounded in length and number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from memgraph.lifecycle.counting.records import (
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
"""A kind of outcome and a name, or the fingerprint of a failure."""
_FINGERPRINT = "fingerprint"


class Outcomes:
    """Counts over the outcomes of tests, commands and builds; see `Counting`."""

    def __init__(self) -> None:
        self._log: list[Outcome] = []
        self._returns: Tallies[_Subject, str] = Tallies(RETURNS)
        self._flaky: Tallies[_Subject, str] = Tallies(FLAKY)
        self._works: Tallies[_Subject, str] = Tallies(WORKS)
        self._mended_by: dict[_Subject, str] = {}
        self._failed_in: dict[_Subject, set[str]] = {}
        self._results: dict[tuple[_Subject, str], bool] = {}
        self.tallies = (self._returns, self._flaky, self._works)

    def learn(self, outcome: Outcome) -> None:
        """Count an outcome."""
        now = len(self._log)
        self._log.append(outcome)
        for tallies, subject in self._occasions(outcome):
            if tallies is self._returns:
                self._failed_in.setdefault(subject, set()).add(outcome.session)
                if earlier := tallies.occasions.get(subject):  # that was an occasion to return, and it did
                    tallies.hit(subject, "", earlier.numbers[-1], now)
            elif outcome.ok if tallies is self._works else outcome.ok != self._results[subject, outcome.state or ""]:
                tallies.hit(subject, "", now, now)
            tallies.occasion(subject, now)
        own, *same = _subjects(outcome)
        if outcome.mended_by and not outcome.ok:
            self._mended_by |= dict.fromkeys((own, *same), outcome.mended_by)
        if outcome.state is not None:
            self._results[own, outcome.state] = outcome.ok

    def _occasions(self, outcome: Outcome) -> Iterator[tuple[Tallies[_Subject, str], _Subject]]:
        """Yield of which kinds an outcome is an occasion, and of what subject."""
        own, *same = _subjects(outcome)
        if not outcome.ok:
            first = (one for one in (own, *same) if outcome.session not in self._failed_in.get(one, ()))
            yield from ((self._returns, one) for one in first)
        if outcome.kind == "test" and (own, outcome.state) in self._results:
            yield self._flaky, own
        if outcome.kind == "command":
            yield self._works, own

    def questions(self, outcome: Outcome) -> Iterator[Question]:
        """Yield what is asked before an outcome is learned: does the failure return, is the result another one, does the command work."""
        for tallies, subject in self._occasions(outcome):
            yield tallies.question(subject, len(self._log))

    def rules(self) -> Iterator[Counted]:
        """Yield the rules over tests, commands and builds, and over failures that several of them have in common."""
        for tallies in self.tallies:
            for subject, obj, share in tallies.found(len(self._log)):
                occasions, hits = tallies.occasions[subject].numbers, tallies.hits[subject][obj].numbers
                names = tuple(dict.fromkeys(self._log[number].name for number in reversed(occasions)))
                if subject[0] == _FINGERPRINT and len(names) < 2:
                    continue
                name = names[0] if len(names) < 2 else f"The same failure ({', '.join(sorted(names))})"
                rule = counted(tallies.kind, name, obj, share, self._log, occasions, hits)
                if tallies is self._returns:  # the latest failure is evidence, too: it may yet return
                    all_of_them = counted(tallies.kind, name, obj, share, self._log, occasions, occasions)
                    rule = rule._replace(
                        last=all_of_them.last,
                        first=all_of_them.first,
                        evidence=all_of_them.evidence,
                        counterexamples=(),
                    )
                mended_by = None if tallies is self._flaky else self._mended_by.get(subject)
                yield rule._replace(key=f"{rule.kind}: {' '.join(subject)}", names=names, mended_by=mended_by)


def _subjects(outcome: Outcome) -> list[_Subject]:
    failure = [(_FINGERPRINT, outcome.fingerprint)] if outcome.fingerprint and not outcome.ok else []
    return [(outcome.kind, outcome.name), *failure]


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
