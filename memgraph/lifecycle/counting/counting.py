"""All that is counted over a history, held against its last fifth, and chosen for what a task names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from memgraph.lifecycle.counting.changes import Changes
from memgraph.lifecycle.counting.outcomes import Outcomes, Sequences
from memgraph.lifecycle.counting.records import (
    FOLLOWS,
    HOT_SPOT,
    LEAST_SHARE,
    TEMPLATES,
    Change,
    Counted,
    Outcome,
    Question,
    Record,
    Session,
    Tallies,
)
from memgraph.text import lazy_re as re

LAST_PART = 0.2
"""Share of the records of each sort, the last ones, before which the rules are asked."""
LEVELS = 10
"""Shares are measured in so many levels of equal width."""
LEAST_MEASURED = 20
"""Answers of a level from which its confidence is taken."""
FIXES = "fixes in a hot spot"
_AROUND = re.compile(r"^[`'\"(\[{<*]+|(?::\d+|['’]s)?[`'\")\]}>*.,;:!?]*$")
"""Quotes, brackets and a sentence's marks around a name, and the number of a line or a genitive after it."""
_WORD = re.compile(r"[a-z]+")


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
    """Counts that take the records of one project in order, and can be asked at any moment."""

    def __init__(self) -> None:
        self._changes, self._outcomes, self._sequences = Changes(), Outcomes(), Sequences()
        self._of: dict[type[Record], Any] = {
            Change: self._changes,
            Outcome: self._outcomes,
            Session: self._sequences,
        }
        tallies: list[Tallies[Any, Any]] = [*self._changes.tallies, *self._outcomes.tallies]
        self._tallies = {one.kind: one for one in tallies}

    def learn(self, record: Record) -> None:
        """Count a record."""
        self._of[type(record)].learn(record)

    def questions(self, record: Record) -> list[Question]:
        """Return what the rules are asked before a record is learned, with their answers."""
        return list(self._of[type(record)].questions(record))

    def names_of(self, name: str) -> tuple[str, ...]:
        """Return all names of a file that has or had this name, the present one first; none if it is unknown."""
        return self._changes.files.names_of(name)

    def rules(self, held: Mapping[str, Held] | None = None) -> list[Counted]:
        """Return the rules, the most confident of each kind first.

        Their confidence is what such rules had in the check (`held`); those that it shows not to hold are left out.
        """
        found = [*self._changes.rules(), *self._outcomes.rules(), *self._sequences.rules()]
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
        if question.kind == FOLLOWS:
            return self._sequences.was_hit((*question.subject, *question.object), question.number)
        return self._tallies[question.kind].was_hit(question.subject, obj, question.number)


def check(history: Sequence[Record]) -> dict[str, Held]:
    """Hold the rules against the last part of a history: each is asked before the record is learned.

    Parameters
    ----------
    history : sequence of Record
        Records of one project in order. The last fifth of the changes, of the outcomes and of the sessions is asked.

    Returns
    -------
    dict
        By kind; `FIXES` is for the fixes, of which those are right that fall in one of the hot spots.
    """
    counting, asked = Counting(), list[Question]()
    total, seen = Counter(type(record) for record in history), Counter[type[Record]]()
    fixes = Held(0, 0, 0)
    for record in history:
        if seen[type(record)] >= (1 - LAST_PART) * total[type(record)]:
            questions = counting.questions(record)
            asked += questions
            if isinstance(record, Change) and record.is_fix:
                hits = [one.is_answered for one in questions if one.kind == HOT_SPOT]
                fixes = Held(fixes.asked + 1, fixes.answered + counting.has_hot_spots, fixes.right + any(hits))
        counting.learn(record)
        seen[type(record)] += 1
    held = {kind: _held([one for one in asked if one.kind == kind], counting) for kind in TEMPLATES}
    return held | {FIXES: fixes}


def _held(asked: Sequence[Question], counting: Counting) -> Held:
    answers = [(one, counting.was_hit(one, one.object)) for one in asked if one.share is not None]
    levels = []
    for level in range(LEVELS):
        right = [was_right for one, was_right in answers if _level(one.share) == level]
        levels.append(Level(level / LEVELS, len(right), sum(right)))
    in_force = [was_right for one, was_right in answers if one.is_answered]
    usual = sum(counting.was_hit(one, "") for one in asked if one.kind != FOLLOWS)
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
    """Choose the rules to show for a task that names a file, component, test or command: the best of each kind first.

    Parameters
    ----------
    name : str
        A path, a former one too; a folder; the last part of a name, if only one subject has it; a test; a command.
    rules : iterable of Counted
        What `Counting.rules` returned: order decides between rules of a kind.
    most : int
        Maximum number of rules.
    """
    rules = list(rules)
    wanted = [rule for rule in rules if rule.subject == name] or [rule for rule in rules if name in rule.names]
    if not wanted:
        subjects = {rule.subject for rule in rules if any(_last_part(one) == name for one in rule.names)}
        wanted = [rule for rule in rules if rule.subject in subjects] if len(subjects) == 1 else []
    if not wanted:
        wanted = [rule for rule in rules if rule.subject.startswith(name.rstrip("/") + "/")]
        wanted.sort(key=lambda rule: -rule.confidence)
    nth, ranked = Counter[str](), []
    for place, rule in enumerate(wanted):
        ranked.append((nth[rule.kind], place, rule))
        nth[rule.kind] += 1
    return [rule for *_, rule in sorted(ranked)[:most]]


def named_in(text: str, names: Iterable[str]) -> list[str]:
    """Return which of these files, components, tests and commands a text names, in its order: whole tokens only.

    A name of several words counts where these follow each other; the last part of a path or test id counts if only one
    name ends in it. A name that could be a plain word (lower-case letters alone) counts in backticks only.
    """
    by_tokens: dict[tuple[str, ...], set[str]] = {}
    full = set(names)
    for name in full:
        by_tokens.setdefault(tuple(_AROUND.sub("", word) for word in name.split()), set()).add(name)
        part = _last_part(name)
        if part not in full and part != name and len(part.split()) == 1:
            by_tokens.setdefault((part,), set()).add(name)
    longest = max(map(len, by_tokens), default=0)
    found: dict[str, None] = {}
    tokens = [(_AROUND.sub("", token), token) for token in text.split()]
    for start in range(len(tokens)):
        for length in range(min(longest, len(tokens) - start), 0, -1):
            window = tokens[start : start + length]
            named = by_tokens.get(tuple(bare for bare, _ in window), set())
            could_be_a_word = length == 1 and _WORD.fullmatch(window[0][0]) and "`" not in window[0][1]
            if len(named) == 1 and not could_be_a_word:
                found[min(named)] = None
                break
    return list(found)


def _last_part(name: str) -> str:
    return name.rstrip("/").rpartition("::" if "::" in name else "/")[2]
