"""What runs of tests teach: which tests are flaky, and which fail again after they were mended.

A test is flaky if it gave another result on the same code: in the same run, on the same commit, or on two commits between which only
documentation changed. It returns as a failure if it fails on other code after it had failed and passed again. Only runs of one job are compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from memgraph.lifecycle.counting.records import (
    FLAKY,
    LEAST_SHARE,
    MOST_IDS,
    RETURNS,
    Counted,
    Outcome,
    Question,
    Tallies,
    counted,
)

_OfTests = Tallies[str, str]
"""Hits of a test, by ""; they are numbered by the runs of that test alone."""


class Outcomes:
    """Counts over the results of tests; see `Counting`."""

    def __init__(self) -> None:
        self._log: dict[str, list[Outcome]] = {}
        self._on: dict[tuple[str, str, str], bool] = {}
        self._failed: dict[tuple[str, str, str], str] = {}
        self._was_ok: dict[tuple[str, str], bool] = {}
        self._has_failed: set[tuple[str, str]] = set()
        self._told: dict[tuple[str, int], str] = {}
        self._returns, self._flaky = _OfTests(RETURNS), _OfTests(FLAKY)
        self.tallies = (self._returns, self._flaky)

    def learn(self, outcome: Outcome) -> None:
        """Count a result."""
        test, job = outcome.test, (outcome.test, outcome.job)
        place = (*job, outcome.code)
        now = len(self._log.setdefault(test, []))
        if outcome.failure:
            self._failed[place] = outcome.failure
        if tallies := self._asked(outcome):
            tallies.occasion(test, now)
            is_other = outcome.was_retried or (place in self._on and outcome.ok != self._on[place])
            if is_other if tallies is self._flaky else not outcome.ok:
                tallies.hit(test, "", now, now)
                self._told[test, now] = self._failed[place]
        self._log[test].append(outcome)
        self._on[place] = self._was_ok[job] = outcome.ok
        if not outcome.ok:
            self._has_failed.add(job)

    def _asked(self, outcome: Outcome) -> _OfTests | None:
        """Return the kind of which a result is an occasion: it ran again on the same code, or on other code after it was mended."""
        job = outcome.test, outcome.job
        if outcome.was_retried or (*job, outcome.code) in self._on:
            return self._flaky
        return self._returns if self._was_ok.get(job) and job in self._has_failed else None

    def questions(self, outcome: Outcome) -> Iterator[Question]:
        """Yield what is asked before a result is learned: whether it is another one on the same code, or a failure that returns."""
        if tallies := self._asked(outcome):
            yield tallies.question(outcome.test, len(self._log.get(outcome.test, ())))

    def rules(self) -> Iterator[Counted]:
        """Yield the rules over tests. Their evidence is the commit that mended the last failure, then the memories of the failures."""
        for tallies in self.tallies:
            for test, hits in tallies.hits.items():
                log = self._log[test]
                for share, _ in tallies.shares(test, len(log)):
                    if share >= LEAST_SHARE[tallies.kind]:
                        occasions, numbers = tallies.occasions[test].numbers, hits[""].numbers
                        rule = counted(tallies.kind, test, "", share, log, occasions, numbers)
                        told = [self._told[test, number] for number in reversed(numbers)]
                        last = next((one for one in reversed(log) if one.mended_by), None)
                        if last and tallies is self._returns:
                            told, rule = [last.mending, *told], rule._replace(mended_by=last.mended_by)
                        yield rule._replace(evidence=tuple(dict.fromkeys(told))[:MOST_IDS])
