"""What the changes of a project teach: what changes together, where fixes fall, what had to be mended or taken back, who knows what.

Changes together is association over commits: Zimmermann et al., *Mining Version Histories to Guide Software Changes* (TSE 2005), with counts
that fade. Hot spots are the files with the most fixes, faded: Kim et al., *Predicting Faults from Cached History* (ICSE 2007).

Runs of tests teach which tests are flaky: they gave another result on the same code, in the same run, on the same commit, or on two commits
between which only documentation changed; and which return as a failure: they fail on other code after they had failed and passed again.
Only runs of one job are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import timedelta
from heapq import nlargest
from math import ceil
from statistics import median_high

from memgraph.lifecycle.counting.records import (
    FLAKY,
    HOT_SPOT,
    KNOWS,
    LEAST_SHARE,
    LEAST_SUPPORT,
    MENDED,
    MOST_IDS,
    RETURNS,
    REVERTED,
    TOGETHER,
    Change,
    Counted,
    FileChange,
    Outcome,
    Question,
    Tallies,
    Tally,
    counted,
)

FEWEST_FILES, MOST_FILES = 2, 20
"""Sizes of the commits from which one learns what changes together."""
MOST_FILES_OF_A_CHANGE = 100
"""A commit of more files is a sweep: one of their changes, from which nothing else is learned about any of them but its name."""
HOT_SPOTS = 10
MOST_PARTNERS = 5
"""Maximum number of files that change together with one file, the most confident ones."""
_SHORTEST_SHA = 7


class Files:
    """Which file a path is or was: a number that stays when the file is renamed or moved."""

    def __init__(self) -> None:
        self.names: list[list[str]] = []
        self.keys: list[str] = []
        self.moves = 0
        self._there: dict[str, int] = {}
        self._last: dict[str, int] = {}

    def names_of(self, name: str) -> tuple[str, ...]:
        """Return all names of the file with this name, else of the last one that had it, present name first; none if it is unknown."""
        file = self._there.get(name, self._last.get(name))
        return () if file is None else tuple(dict.fromkeys(reversed(self.names[file])))

    def name(self, file: int) -> str:
        """Return the present name of a file."""
        return self.names[file][-1]

    def exists(self, file: int) -> bool:
        """Return whether a file is there."""
        return self._there.get(self.name(file)) == file

    def changed(self, change: Change) -> list[int | None]:
        """Return the changed files, in order; None for those that are new."""
        return [self._file(one) for one in change.files]

    def _file(self, one: FileChange) -> int | None:
        name = one.was if one.kind == "R" else one.path
        last = self._last.get(name)
        is_new = one.kind == "A" and last is not None and self.name(last) != name  # that one has moved away
        return self._there.get(name, None if is_new else last)

    def follow(self, change: Change) -> list[int]:
        """Return the changed files, in order, and remember their names from this change on."""
        before, found = self.changed(change), []
        for one in change.files:
            if one.kind in "RD":
                self._there.pop(one.was or one.path, None)
                self.moves += 1
        for one, known in zip(change.files, before, strict=True):
            file = len(self.names) if known is None else known
            if known is None:
                first = one.was or one.path
                self.names.append([first])
                self.keys.append(f"{first}@{change.id}")
                self._last[first] = file
            # a file that is changed after its removal was changed on another branch, before the merge that removed it there, too
            if one.kind in "AR" or (one.kind == "M" and known is None):
                if self.name(file) != one.path:
                    self.names[file].append(one.path)
                self._there[one.path] = self._last[one.path] = file
                self.moves += 1
            found.append(file)
        return found


_OfFiles = Tallies[int, int | str]
"""Hits of a file, by another file, a person, or ""."""


class Changes:
    """Counts over the changes of a project; see `Counting`."""

    def __init__(self) -> None:
        self.files = Files()
        self._log: list[Change] = []
        self._touched: list[frozenset[int]] = []
        self._numbers: dict[str, list[int]] = {}
        self._mended_by: dict[tuple[int, int], int] = {}
        self._hot: list[int] = []
        self._hot_at = (0, 0)
        self._fix_count = 0
        changed: dict[int, Tally] = {}
        self._together = _OfFiles(TOGETHER)
        self._fixes = _OfFiles(HOT_SPOT, changed)
        self._mended = _OfFiles(MENDED, changed)
        self._reverted = _OfFiles(REVERTED, changed)
        self._persons = _OfFiles(KNOWS)
        self.tallies = (self._together, self._fixes, self._mended, self._reverted, self._persons)

    def learn(self, change: Change) -> None:
        """Count a change."""
        now = len(self._log)
        files = self.files.follow(change)
        self._log.append(change)
        self._fix_count += change.is_fix
        self._touched.append(frozenset(files))
        self._numbers.setdefault(change.sha[:_SHORTEST_SHA], []).append(now)
        is_sweep = len(files) > MOST_FILES_OF_A_CHANGE
        for file in files:
            self._fixes.occasion(file, now)
            if change.is_fix and not is_sweep:
                self._fixes.hit(file, "", now, now)
            if change.person and not is_sweep:
                self._persons.occasion(file, now)
                self._persons.hit(file, change.person, now, now)
            if FEWEST_FILES <= len(files) <= MOST_FILES:
                self._together.occasion(file, now)
                for other in files:
                    if other != file:
                        self._together.hit(file, other, now, now)
        self._look_back(change, now)

    def _look_back(self, change: Change, now: int) -> None:
        """Count that this change mends or takes back an earlier one."""
        mended = self._number_of(change.mends, now)
        for file in self._common(mended, now):
            self._mended.hit(file, "", mended, now)
            self._mended_by.setdefault((file, mended), now)
        undone = self._number_of(change.reverts, now)
        for file in self._common(undone, now):
            self._reverted.hit(file, "", undone, now)
        if undone >= 0:  # what that one had taken back is in force again
            restored = self._number_of(self._log[undone].reverts, undone)
            for file in self._common(restored, now):
                if self._reverted.was_hit(file, "", restored):
                    self._reverted.hits[file][""].discard(restored, now)

    def _common(self, number: int, now: int) -> frozenset[int]:
        return self._touched[number] & self._touched[now] if number >= 0 else frozenset()

    def _number_of(self, sha: str | None, now: int) -> int:
        """Return the number of the only earlier change with this sha; -1 if there is none, or no only one."""
        if not sha or len(sha) < _SHORTEST_SHA:
            return -1
        near = self._numbers.get(sha[:_SHORTEST_SHA], ())
        same = [number for number in near if number < now and self._log[number].sha.startswith(sha)]
        return same[0] if len(same) == 1 else -1

    def hot_spots(self) -> list[int]:
        """Return the files with the most fixes, faded, that are there: the same until there is another fix or file."""
        now, least = len(self._log), LEAST_SUPPORT[HOT_SPOT]
        if self._hot_at != (state := (self._fix_count, self.files.moves)):
            fixes = ((hits[""], file) for file, hits in self._fixes.hits.items() if len(hits[""].numbers) >= least)
            found = ((tally.faded(now), -file) for tally, file in fixes if self.files.exists(file))
            self._hot, self._hot_at = [-file for _, file in nlargest(HOT_SPOTS, found)], state
        return self._hot

    def questions(self, change: Change) -> Iterator[Question]:
        """Yield what is asked of each changed file before the change is learned."""
        now, hot = len(self._log), self.hot_spots()
        is_small = FEWEST_FILES <= len(change.files) <= MOST_FILES
        skipped = {TOGETHER: not is_small, KNOWS: not change.person}
        for file in self.files.changed(change):
            for tallies in self.tallies:
                question = Question(tallies.kind, file, now) if file is None else tallies.question(file, now)
                if tallies.kind == HOT_SPOT:
                    question = question._replace(is_answered=file in hot)
                if not skipped.get(tallies.kind):
                    yield question

    def rules(self) -> Iterator[Counted]:
        """Yield the rules over files that are there."""
        now, hot = len(self._log), self.hot_spots()
        for tallies in self.tallies:
            partners = Counter[int]()
            for file, obj, share in tallies.found(now):
                is_there = self.files.exists(file) and (isinstance(obj, str) or self.files.exists(obj))
                if is_there and partners[file] < MOST_PARTNERS and (tallies.kind != HOT_SPOT or file in hot):
                    partners[file] += 1
                    yield self._rule(tallies, file, obj, share)

    def _rule(self, tallies: _OfFiles, file: int, obj: int | str, share: float) -> Counted:
        occasions, hits = tallies.occasions[file].numbers, tallies.hits[file][obj].numbers
        name, key = (obj, obj) if isinstance(obj, str) else (self.files.name(obj), self.files.keys[obj])
        rule = counted(tallies.kind, self.files.name(file), name, share, self._log, occasions, hits)
        return rule._replace(
            key=f"{rule.kind}: {self.files.keys[file]} {key}".strip(),
            names=self.files.names_of(self.files.name(file)),
            lag_days=self._lag_days(file, hits) if tallies is self._mended else None,
        )

    def _lag_days(self, file: int, mended: Iterable[int]) -> int:
        """Return the days within which at least half of the changes were mended."""
        lags = (self._log[self._mended_by[file, number]].at - self._log[number].at for number in mended)
        return median_high(max(ceil(lag / timedelta(days=1)), 0) for lag in lags)


# --- tests ---

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
