"""What is counted (records of a history), how (hits among occasions), and what comes of it (rules with typed numbers). Pure."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from memgraph.lifecycle.evidence.evidence import LEAST_BUILDS, confidence_of

HALF_LIFE = 800
"""Records of the same sort (all commits, all outcomes) after which one counts half."""
MOST_IDS = 50
"""Maximum number of ids that a rule lists as evidence, and as counterexamples: the newest."""
LATELY = 10
"""Number of occasions that "lately" means."""


class FileChange(NamedTuple):
    """A file in a change: its path, git's status letter, lines added and removed, its earlier path if it was renamed."""

    path: str
    kind: Literal["A", "M", "D", "R"] = "M"
    added: int = 0
    removed: int = 0
    was: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """A commit. `mends` and `reverts` are the shas that its message names, whole or abbreviated, never guessed."""

    id: str
    sha: str
    at: datetime
    person: str
    files: tuple[FileChange, ...]
    is_fix: bool = False
    mends: str | None = None
    reverts: str | None = None
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a test, command or build went.

    `session` is the session or build that it is part of. `state` says what it ran on, such as a commit's sha: None if
    that is unknown, and then nothing follows for flakiness. `mended_by` names what made it succeed again, as it is to be printed.
    """

    id: str
    at: datetime
    name: str
    kind: Literal["test", "command", "build"]
    ok: bool
    session: str
    fingerprint: str | None = None
    state: str | None = None
    mended_by: str | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """The actions of a session in order, as keys that are equal for equal actions, and whether it ended well."""

    id: str
    at: datetime
    actions: tuple[str, ...]
    ended_well: bool


Record = Change | Outcome | Session

TOGETHER = "changes together"
HOT_SPOT = "hot spot"
MENDED = "fix after change"
REVERTED = "reverted"
KNOWS = "who knows"
RETURNS = "returning failure"
FLAKY = "flaky test"
WORKS = "command that works"
FOLLOWS = "what follows what"


class Kind(NamedTuple):
    """What makes a rule of a kind: at least so many hits, at least such a share; and its sentence."""

    least_support: int
    least_share: float
    template: str


KINDS: dict[str, Kind] = {
    TOGETHER: Kind(
        3,
        0.5,
        "Who changes {subject} changes {object} too: so did {recent} of the last {tries} commits that changed {subject} "
        "and 1 to 19 other files, the latest on {last}.",
    ),
    HOT_SPOT: Kind(
        3,
        0.0,
        "{subject} is a hot spot: {support} of its {occasions} changes were fixes, {recent} of the last {tries}; the latest fix was on {last}.",
    ),
    MENDED: Kind(
        2,
        0.0,
        "{subject} needs a second look: of its {occasions} changes {support} were mended by a later commit that names them, "
        "at least half of these within {days} days; the latest that was mended is of {last}.",
    ),
    REVERTED: Kind(
        2,
        0.0,
        "{support} of {occasions} changes of {subject} were taken back; the latest of them is of {last}.",
    ),
    KNOWS: Kind(
        3,
        0.4,
        "{object} knows {subject}: made {support} of its {occasions} changes, {recent} of the last {tries}; the latest is of {last}.",
    ),
    RETURNS: Kind(
        2,
        0.0,
        "{subject} fails again and again: in {occasions} builds or sessions, from {first} to {last}{mended}.",
    ),
    FLAKY: Kind(
        2,
        0.0,
        "{subject} is flaky: {support} of {occasions} times that it ran again on what it had run on, the result was another one; "
        "the latest time was on {last}.",
    ),
    WORKS: Kind(
        3,
        0.5,
        "`{subject}` works here: it succeeded in {support} of {occasions} runs, in {recent} of the last {tries}; the latest success "
        "was on {last}{mended}.",
    ),
    FOLLOWS: Kind(
        3,
        0.5,
        "After {subject} comes {object}: {support} of {occasions} sessions that did the former went on with the latter and ended well, "
        "the latest on {last}.",
    ),
}
_MENDED = {RETURNS: "; the last time it was mended by {}", WORKS: "; after a failure it was made to work by {}"}


class Counted(NamedTuple):
    """A rule: what was counted of a subject, with what speaks for it and against it.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    key : str
        Stable as the history goes on: a file is named in it by its first name and the change that it came with.
    subject, object : str
        What it says something about, and what it says, by their present names: two files; a file and a person; a test; a
        command; the first actions of a sequence and the next one.
    names : tuple of str
        All names that the subject has had, present one first.
    support, occasions : int
        Hits, and occasions on which there could have been one.
    recent, tries : int
        The same of the latest occasions, at most `LATELY`.
    share : float
        Faded hits over faded occasions, plus one so that few occasions say little; in [0, 1).
    confidence : float
        How often such rules were right in the same history, in [0, 1]: the chance of a hit on the next occasion.
    first, last : datetime
        Of the hits.
    evidence, counterexamples : tuple of str
        Ids of the records, newest first.
    lag_days : int, optional
        Days within which at least half of the hits were mended.
    mended_by : str, optional
        What made it succeed again the last time.
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
        values = self._asdict() | {"days": self.lag_days, "first": _day(self.first), "last": _day(self.last)}
        values["mended"] = _MENDED[self.kind].format(self.mended_by) if self.mended_by else ""
        return KINDS[self.kind].template.format_map(values)


def _day(at: datetime) -> str:
    return f"{at.day} {at:%B} {at.year}"


class Question(NamedTuple):
    """What was asked of a kind of rule before a record was learned, and the answer: an object, with its share; None without a rule."""

    kind: str
    subject: Any
    number: int
    object: Any = None
    share: float | None = None
    is_answered: bool = False


class Tally:
    """Numbers of records, ascending, and their weight: each counts half as much after `HALF_LIFE` records."""

    __slots__ = ("_at", "_weight", "numbers")

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self._weight = 0.0
        self._at = 0

    def __len__(self) -> int:
        return len(self.numbers)

    def __contains__(self, number: int) -> bool:
        place = bisect_left(self.numbers, number)
        return place < len(self.numbers) and self.numbers[place] == number

    def faded(self, now: int) -> float:
        """Return the weight of all when the next record has the number `now`."""
        return self._weight * _faded(now - self._at)

    def add(self, number: int, now: int) -> None:
        """Count a record, which may be earlier than `now`; twice counts once."""
        if number not in self:
            insort(self.numbers, number)
            self._weight, self._at = self.faded(now) + _faded(now - number), now

    def discard(self, number: int, now: int) -> None:
        """Count a record no longer."""
        if number in self:
            self.numbers.remove(number)
            self._weight, self._at = max(self.faded(now) - _faded(now - number), 0.0), now


def _faded(records: int) -> float:
    return float(2.0 ** (-records / HALF_LIFE))


Subject = TypeVar("Subject")
Object = TypeVar("Object")


class Tallies(Generic[Subject, Object]):
    """Hits among the occasions of each subject, by object (a rule without an object has one that says nothing).

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    occasions : dict, optional
        Occasions by subject, if several kinds have the same.
    """

    def __init__(self, kind: str, occasions: dict[Subject, Tally] | None = None) -> None:
        self.kind = kind
        self.occasions: dict[Subject, Tally] = {} if occasions is None else occasions
        self.hits: dict[Subject, dict[Object, Tally]] = {}

    def occasion(self, subject: Subject, number: int) -> None:
        """Count an occasion."""
        self.occasions.setdefault(subject, Tally()).add(number, number)

    def hit(self, subject: Subject, obj: Object, number: int, now: int) -> None:
        """Count a hit on the occasion with this number."""
        self.hits.setdefault(subject, {}).setdefault(obj, Tally()).add(number, now)

    def miss(self, subject: Subject, obj: Object, number: int, now: int) -> None:
        """Count what was a hit no longer."""
        if hits := self.hits.get(subject, {}).get(obj):
            hits.discard(number, now)

    def was_hit(self, subject: Subject, obj: Object, number: int) -> bool:
        """Return whether the occasion with this number was a hit, as far as is known by now."""
        hits = self.hits.get(subject, {}).get(obj)
        return hits is not None and number in hits

    def shares(self, subject: Subject, now: int) -> list[tuple[float, Object]]:
        """Return what has enough hits, with its share, greatest first."""
        occasions = self.occasions.get(subject)
        hits = self.hits.get(subject)
        if not occasions or not hits:
            return []
        least, total = KINDS[self.kind].least_support, occasions.faded(now) + 1
        found = [(tally.faded(now) / total, obj) for obj, tally in hits.items() if len(tally) >= least]
        return sorted(found, key=lambda one: -one[0])

    def question(self, subject: Subject, number: int) -> Question:
        """Return the question what the next occasion of a subject brings, with the first answer that the rules have."""
        best = next(iter(self.shares(subject, number)), None)
        if best is None:
            return Question(self.kind, subject, number)
        return Question(self.kind, subject, number, best[1], best[0], best[0] >= KINDS[self.kind].least_share)

    def found(self, now: int) -> Iterator[tuple[Subject, Object, float]]:
        """Yield what has enough hits and a sufficient share, greatest share first for each subject."""
        for subject in self.hits:
            for share, obj in self.shares(subject, now):
                if share >= KINDS[self.kind].least_share:
                    yield subject, obj, share


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
    lately, were_hits = occasions[-LATELY:], frozenset(hits)
    return Counted(
        kind=kind,
        key=f"{kind}: {subject} {obj}".strip(),
        subject=subject,
        object=obj,
        names=(subject,),
        support=len(hits),
        occasions=len(occasions),
        recent=sum(number in were_hits for number in lately),
        tries=len(lately),
        share=share,
        confidence=fallback(share, len(hits)),
        first=min(log[number].at for number in hits),
        last=max(log[number].at for number in hits),
        evidence=tuple(log[number].id for number in hits[: -MOST_IDS - 1 : -1]),
        counterexamples=tuple(
            islice((log[number].id for number in reversed(occasions) if number not in were_hits), MOST_IDS)
        ),
    )


def fallback(share: float, support: int) -> float:
    """Return the confidence where too little was measured: that of so many builds (design §5), at most the share itself."""
    return min(share, confidence_of(max(support, LEAST_BUILDS)))
