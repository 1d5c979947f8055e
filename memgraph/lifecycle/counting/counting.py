"""All that is counted over a history, held against its last fifth, and chosen for what a task names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from memgraph.lifecycle.counting.changes import Changes, Outcomes
from memgraph.lifecycle.counting.records import (
    HOT_SPOT,
    LEAST_SHARE,
    TEMPLATES,
    Change,
    Counted,
    Question,
    Record,
    Tallies,
)

LAST_PART = 0.2
"""Share of the commits and of the results of tests, the last ones, before which the rules are asked."""
LEVELS = 10
"""Shares are measured in so many levels of equal width."""
LEAST_MEASURED = 20
"""Answers of a level from which its confidence is taken."""
FIXES = "fixes in a hot spot"


class Level(NamedTuple):
    """Answers with a share in [least, least + 1 / `LEVELS`), and how many were right."""

    least: float
    answered: int
    right: int


class Held(NamedTuple):
    """How a kind of rule did in the last part of a history.

    Attributes
    ----------
    asked : int
        Occasions of any subject.
    answered, right : int
        Those for which a rule was in force, and those that were hits as it said.
    usual : int
        Hits among all that were asked, for kinds that have no object: what an answer is to be compared with.
    levels : tuple of Level
        All answers with enough hits, by their share.
    """

    asked: int
    answered: int
    right: int
    usual: int = 0
    levels: tuple[Level, ...] = ()


class Counting:
    """Counts that take the commits and the results of tests of one project, each in order, and can be asked at any moment."""

    def __init__(self) -> None:
        self._changes, self._outcomes = Changes(), Outcomes()
        tallies: list[Tallies[Any, Any]] = [*self._changes.tallies, *self._outcomes.tallies]
        self._tallies = {one.kind: one for one in tallies}

    def learn(self, record: Record) -> None:
        """Count a commit or a result."""
        if isinstance(record, Change):
            self._changes.learn(record)
        else:
            self._outcomes.learn(record)

    def questions(self, record: Record) -> list[Question]:
        """Return what the rules are asked before a record is learned, with their answers."""
        return list(self._changes.questions(record) if isinstance(record, Change) else self._outcomes.questions(record))

    def rules(self, held: Mapping[str, Held] | None = None) -> list[Counted]:
        """Return the rules, the most confident of each kind first.

        Their confidence is what such rules had in the check (`held`); those that it shows not to hold are left out.
        """
        found = (*self._changes.rules(), *self._outcomes.rules())
        known = [(rule, measured(rule.kind, rule.share, held or {})) for rule in found]
        all_of_them = [rule if had is None else rule._replace(confidence=had) for rule, had in known]
        rules = [rule for rule in all_of_them if rule.confidence >= LEAST_SHARE[rule.kind]]
        order = {kind: place for place, kind in enumerate(TEMPLATES)}
        return sorted(rules, key=lambda rule: (order[rule.kind], -rule.confidence, -rule.share, rule.key))

    @property
    def has_hot_spots(self) -> bool:
        """Return whether there are files from which fixes can be expected."""
        return bool(self._changes.hot_spots())

    def was_hit(self, question: Question, obj: object) -> bool:
        """Return whether the occasion that was asked about was a hit of this object, as far as is known by now."""
        return self._tallies[question.kind].was_hit(question.subject, obj, question.number)


def check(history: Sequence[Record]) -> dict[str, Held]:
    """Hold the rules against the last part of a history: they are asked before a record is learned.

    Parameters
    ----------
    history : sequence of Change or Outcome
        Records of one project in order. Asked are the last fifth of the commits, and of the results of tests.

    Returns
    -------
    dict
        By kind; `FIXES` is for the fixes, of which those are right that fall in one of the hot spots.
    """
    counting, asked = Counting(), list[Question]()
    fixes = Held(0, 0, 0)
    many, met = Counter(map(type, history)), Counter[type[Record]]()
    for record in history:
        if met[type(record)] >= (1 - LAST_PART) * many[type(record)]:
            questions = counting.questions(record)
            asked += questions
            if isinstance(record, Change) and record.is_fix:
                hits = [one.is_answered for one in questions if one.kind == HOT_SPOT]
                fixes = Held(fixes.asked + 1, fixes.answered + counting.has_hot_spots, fixes.right + any(hits))
        met[type(record)] += 1
        counting.learn(record)
    held = {kind: _held([one for one in asked if one.kind == kind], counting) for kind in TEMPLATES}
    return held | {FIXES: fixes}


def _held(asked: Sequence[Question], counting: Counting) -> Held:
    answers = [(one, counting.was_hit(one, one.object)) for one in asked if one.share is not None]
    levels = []
    for level in range(LEVELS):
        right = [was_right for one, was_right in answers if _level(one.share) == level]
        levels.append(Level(level / LEVELS, len(right), sum(right)))
    in_force = [was_right for one, was_right in answers if one.is_answered]
    usual = sum(counting.was_hit(one, "") for one in asked)
    return Held(len(asked), len(in_force), sum(in_force), usual, tuple(levels))


def _level(share: float | None) -> int:
    return min(int((share or 0.0) * LEVELS), LEVELS - 1)


def measured(kind: str, share: float, held: Mapping[str, Held]) -> float | None:
    """Return how often rules of a kind with such a share were right in a check; None where too few were asked."""
    if levels := held[kind].levels if kind in held else ():
        level = levels[_level(share)]
        if level.answered >= LEAST_MEASURED:
            return level.right / level.answered
    return None


def about(name: str, rules: Iterable[Counted], most: int = 3) -> list[Counted]:
    """Choose the rules to show for a task that names a file, a folder or a test: the best of each kind first.

    Parameters
    ----------
    name : str
        A path, a former one too; a folder; a test; the last part of a path or test, if only one subject has it.
    rules : iterable of Counted
        What `Counting.rules` returned: order decides between rules of a kind.
    most : int
        Maximum number of rules.
    """
    rules = list(rules)
    subjects = named(name, {rule.subject: rule.names for rule in rules})
    wanted = [rule for rule in rules if rule.subject in subjects]
    if len(subjects) > 1:
        if not all(is_in(one, name) for one in subjects):
            return []
        wanted.sort(key=lambda rule: -rule.confidence)
    nth, ranked = Counter[str](), []
    for place, rule in enumerate(wanted):
        ranked.append((nth[rule.kind], place, rule))
        nth[rule.kind] += 1
    return [rule for *_, rule in sorted(ranked)[:most]]


def named(name: str, known: Mapping[str, Collection[str]]) -> list[str]:
    """Return which subjects, each with all its names, a name means: itself, those that had it, those with this last part, or those in this folder: all of them."""
    if name in known:
        return [name]
    found = [one for one, names in known.items() if name in names] or [
        one for one, names in known.items() if any(_last_part(each) == name for each in names)
    ]
    return found if any(not is_in(one, name) for one in found) else [one for one in known if is_in(one, name)]


def is_in(path: str, folder: str) -> bool:
    """Return whether a path is in a folder."""
    return path.startswith(folder.rstrip("/") + "/")


def _last_part(name: str) -> str:
    return name.rstrip("/").replace("::", "/").rpartition("/")[2]
