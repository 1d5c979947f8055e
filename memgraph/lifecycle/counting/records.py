"""What is counted (the commits of a history, and the results of tests), how (hits among occasions), and what comes of it (rules with typed numbers). Pure."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from memgraph.lifecycle.episodes import LEAST_BUILDS, confidence_of

MOST_IDS = 50
"""Maximum number of ids that a rule lists as evidence, and as counterexamples: the newest."""
LATELY = 10
"""Number of occasions that "lately" means."""


class FileChange(NamedTuple):
    """A file in a change: git's status letter, lines added and removed, and the earlier path if it was renamed."""

    path: str
    kind: Literal["A", "M", "D", "R"] = "M"
    added: int = 0
    removed: int = 0
    was: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A commit. `person` is "" for a machine, and for a merge; `is_fix`: it is a fix, or closes an issue. `mends` and `reverts` are shas that its message names, whole or abbreviated, never guessed."""

    id: str
    sha: str
    at: datetime
    person: str
    files: tuple[FileChange, ...]
    is_fix: bool = False
    mends: str | None = None
    reverts: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a test ended in a run.

    `id` names the run, `code` what it ran on: equal for equal code, and for no two runs where that is not known; only runs of one `job`
    are compared. One that `was_retried` failed and then passed. `failure` is the memory of a failure; `mended_by` says what
    came between a failure and this pass, and `mending` is its memory.
    """

    id: str
    at: datetime
    test: str
    ok: bool
    code: str
    job: str = ""
    was_retried: bool = False
    failure: str = ""
    mended_by: str = ""
    mending: str = ""


Record = Change | Outcome

TOGETHER, HOT_SPOT, MENDED, REVERTED = "changes together", "hot spot", "fix after change", "reverted"
KNOWS, RETURNS, FLAKY = "who knows", "returning failure", "flaky test"
OF_TESTS = frozenset({RETURNS, FLAKY})

TEMPLATES = {
    TOGETHER: "Who changes {subject} changes {object} too: so did {recent} of the last {tries} commits of 2 to 20 files that changed it, the latest on {last}.",
    HOT_SPOT: "{subject} is a hot spot: {support} of its {occasions} changes were fixes or closed an issue, {recent} of the last {tries}; the latest of these was on {last}.",
    MENDED: "{subject} needs a second look: {support} of its {occasions} changes were mended by a later commit that names them, at least half of these within {lag_days} days; the latest that was mended is of {last}.",
    REVERTED: "{support} of {occasions} changes of {subject} were taken back; the latest of these is of {last}.",
    KNOWS: "{object} knows {subject}: made {support} of the {occasions} changes to it by people, {recent} of the last {tries}; the latest is of {last}.",
    RETURNS: "{subject} returns as a failure: of {occasions} runs before which it had failed and passed, it failed in {support}, {recent} of the last {tries}, the latest on {last}{mended}.",
    FLAKY: "{subject} is flaky: {support} of {occasions} times that it ran again on the same code it gave another result, {recent} of the last {tries}, the latest on {last}.",
}
"""The sentence of each kind of rule."""
_MENDED = "; what came between a failure of it and the next pass the last time: {}"
LEAST_SUPPORT = dict.fromkeys(TEMPLATES, LEAST_BUILDS) | {MENDED: 2, REVERTED: 2, RETURNS: 2, FLAKY: 2}
LEAST_SHARE = dict.fromkeys(TEMPLATES, 0.0) | {
    TOGETHER: 0.5,
    KNOWS: 0.4,
    MENDED: 0.05,
    REVERTED: 0.05,
    RETURNS: 0.05,
    FLAKY: 0.05,
}
HALF_LIFE = dict.fromkeys(TEMPLATES, 800) | {KNOWS: 200, RETURNS: 50, FLAKY: 50}
"""Commits (of a test: its runs) after which one counts half: people move on faster than habits."""


class Counted(NamedTuple):
    """A rule: what was counted of a subject, what speaks for it, and what against.

    Attributes
    ----------
    kind, key : str
        One of `TEMPLATES`; the key stays as the history goes on (in it a file has its first name and the change that it came with).
    subject, object : str
        What it is about and what it says, by their present names: two files, a file and a person.
    names : tuple of str
        All names that the subject has had, the present one first.
    support, occasions : int
        Hits, and occasions on which there could have been one.
    recent, tries : int
        The same among the latest `LATELY` occasions.
    share : float
        Faded hits over faded occasions plus one (few occasions say little), in [0, 1).
    confidence : float
        The chance of a hit on the next occasion, in [0, 1]: how often such rules were right in the same history, if that was measured.
    first, last : datetime
        Of the hits.
    evidence, counterexamples : tuple of str
        Ids of the records, newest first, at most `MOST_IDS`. Of a test: of the memories of its failures, and the names of runs.
    lag_days : int, optional
        Days within which at least half of the hits were mended.
    mended_by : str, optional
        What came between a failure of a test and the next pass, the last time that this is known.
    """

    kind: str
    key: str
    subject: str
    object: str
    names: tuple[str, ...]
    support: int
    occasions: int
    recent: int
    tries: int
    share: float
    confidence: float
    first: datetime
    last: datetime
    evidence: tuple[str, ...]
    counterexamples: tuple[str, ...]
    lag_days: int | None = None
    mended_by: str | None = None

    @property
    def text(self) -> str:
        """The rule as a sentence; every number in it can be counted in the history."""
        mended = _MENDED.format(self.mended_by) if self.mended_by else ""
        return TEMPLATES[self.kind].format_map(self._asdict() | {"last": _day(self.last), "mended": mended})


def _day(at: datetime) -> str:
    return f"{at.day} {at:%B} {at.year}"


def counted(
    kind: str,
    subject: str,
    obj: str,
    share: float,
    log: Sequence[Record],
    occasions: Sequence[int],
    hits: Sequence[int],
) -> Counted:
    """Return the rule that these numbers of records make; both ascend, and hits are among the occasions."""
    were_hits, dates = frozenset(hits), [log[number].at for number in hits]
    against = (log[number].id for number in reversed(occasions) if number not in were_hits)
    return Counted(
        kind=kind,
        key=f"{kind}: {subject} {obj}".strip(),
        subject=subject,
        object=obj,
        names=(subject,),
        support=len(hits),
        occasions=len(occasions),
        recent=sum(number in were_hits for number in occasions[-LATELY:]),
        tries=min(len(occasions), LATELY),
        share=share,
        confidence=min(share, confidence_of(max(len(hits), LEAST_BUILDS))),
        first=min(dates),
        last=max(dates),
        evidence=tuple(log[number].id for number in hits[: -MOST_IDS - 1 : -1]),
        counterexamples=tuple(islice(against, MOST_IDS)),
    )


class Question(NamedTuple):
    """What was asked about a subject before a record was learned, and the best answer: an object and its share; None without one."""

    kind: str
    subject: Any
    number: int
    object: Any = None
    share: float | None = None
    is_answered: bool = False


class Tally:
    """Numbers of records, ascending, and their weight, of which half is left after `half_life` records."""

    __slots__ = ("_at", "_half_life", "_weight", "numbers")

    def __init__(self, half_life: int) -> None:
        self.numbers: list[int] = []
        self._half_life = half_life
        self._weight = 0.0
        self._at = 0

    def __contains__(self, number: int) -> bool:
        place = bisect_left(self.numbers, number)
        return place < len(self.numbers) and self.numbers[place] == number

    def faded(self, now: int) -> float:
        """Return the weight when the next record has the number `now`."""
        return self._weight * self._left(now - self._at)

    def add(self, number: int, now: int) -> None:
        """Count a record, which may be earlier than `now`; twice counts once."""
        if number not in self:
            insort(self.numbers, number)
            self._weight, self._at = self.faded(now) + self._left(now - number), now

    def discard(self, number: int, now: int) -> None:
        """Count a record no longer."""
        if number in self:
            self.numbers.remove(number)
            self._weight, self._at = max(self.faded(now) - self._left(now - number), 0.0), now

    def _left(self, records: int) -> float:
        return float(2.0 ** (-records / self._half_life))


Subject = TypeVar("Subject")
Object = TypeVar("Object")


class Tallies(Generic[Subject, Object]):
    """Hits among the occasions of each subject, by object ("" where a rule has none); `occasions` may be shared by several kinds."""

    def __init__(self, kind: str, occasions: dict[Subject, Tally] | None = None) -> None:
        self.kind = kind
        self.occasions: dict[Subject, Tally] = {} if occasions is None else occasions
        self.hits: dict[Subject, dict[Object, Tally]] = {}

    def occasion(self, subject: Subject, number: int) -> None:
        """Count an occasion."""
        self.occasions.setdefault(subject, Tally(HALF_LIFE[self.kind])).add(number, number)

    def hit(self, subject: Subject, obj: Object, number: int, now: int) -> None:
        """Count a hit on the occasion with this number."""
        self.hits.setdefault(subject, {}).setdefault(obj, Tally(HALF_LIFE[self.kind])).add(number, now)

    def was_hit(self, subject: Subject, obj: Object, number: int) -> bool:
        """Return whether the occasion with this number was a hit, as far as is known by now."""
        return number in self.hits.get(subject, {}).get(obj, ())

    def shares(self, subject: Subject, now: int) -> list[tuple[float, Object]]:
        """Return the objects with enough hits and their shares, greatest first."""
        occasions, hits = self.occasions.get(subject), self.hits.get(subject)
        if not occasions or not hits:
            return []
        least, total = LEAST_SUPPORT[self.kind], occasions.faded(now) + 1
        found = [(tally.faded(now) / total, obj) for obj, tally in hits.items() if len(tally.numbers) >= least]
        return sorted(found, key=lambda one: -one[0])

    def question(self, subject: Subject, now: int) -> Question:
        """Return the question what the next occasion of a subject brings, with the best answer."""
        for share, obj in self.shares(subject, now):
            return Question(self.kind, subject, now, obj, share, share >= LEAST_SHARE[self.kind])
        return Question(self.kind, subject, now)

    def found(self, now: int) -> Iterator[tuple[Subject, Object, float]]:
        """Yield subjects and objects with enough hits and a sufficient share."""
        for subject in self.hits:
            for share, obj in self.shares(subject, now):
                if share >= LEAST_SHARE[self.kind]:
                    yield subject, obj, share
