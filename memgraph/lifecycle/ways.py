"""Which ways of doing something repeat: episodes that went well by the same steps. Pure.

Episodes are compared by their steps alone, as compression compares them by their tags; a community's common steps, in their
order, are the way. When to go it is told by the words that the goals of those who went it share.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from memgraph.extraction.statements import sentences, steps_in
from memgraph.index.analyser import STOPWORDS
from memgraph.lifecycle.communities import communities
from memgraph.lifecycle.evidence import LEAST_BUILDS, in_order
from memgraph.lifecycle.experience import evidence_of
from memgraph.lifecycle.overlap import LARGE_FROM, tag_weights
from memgraph.lifecycle.steps import Step, common_way, follows, steps_of, told
from memgraph.ports import Row

LEAST_RATE = 0.5
"""A way that fails more often than it leads anywhere is none."""
_MOST_TRIGGER_WORDS = 6
_LEAST_TRIGGER_WORDS = 2
_TOO_COMMON = 0.5
"""Words in the goals of more than so many of a larger project's episodes do not tell one way from another."""
_LEAD = re.compile(
    r"^(?:Failed trial|Solved after a failed trial|Solved|How to|What led to success in):?\s+", re.IGNORECASE
)
_GOAL_ENDS = re.compile(r"\s(?:What was done|What it acted on|Lesson|Steps|Last error): |”: 1\. ")
_WORD = re.compile(r"(?<![^\W_])[^\W\d_]{3,40}(?![^\W_])")
_SAYS_LITTLE = frozenset(
    str.split(
        "see make sure get got use using need needs want wants like let lets know same also please help could one two new now way "
        "try trying hey there sorry okay thanks task problem named worth points don didn isn"
    )
)
_FILE_NAME = re.compile(r"([\w-]{2,80})\.[a-z]{1,4}\b")
_NAME_PART = re.compile(r"[a-z]{3,}", re.IGNORECASE)
_NAME = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)+")


@dataclass(frozen=True)
class Attempt:
    """An episode that tells, step by step, what was done."""

    row: Row
    steps: tuple[Step, ...]

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """What makes each step the same as others."""
        return tuple(step.key for step in self.steps)

    @cached_property
    def goal(self) -> list[str]:
        """The words of what was to be reached, in order."""
        row = self.row
        text = row.get("goal") or row.get("trigger_pattern") or row.get("situation")
        text = text or _GOAL_ENDS.split(_LEAD.sub("", row["content"]), maxsplit=1)[0]
        return _telling(text)

    @cached_property
    def purposes(self) -> list[str]:
        """The words of what the steps are said to be for, and of how the files are called that they are about, in order."""
        return _telling(" ".join(part for step in self.steps for part in (step.purpose or "", *_files(step.text))))

    @cached_property
    def builds(self) -> frozenset[str]:
        """What it is evidence of; an episode without a build counts by its session, or as one."""
        row = self.row
        if row.get("evidence_build_ids") or row.get("build_id") or not row.get("session_id"):
            return evidence_of(row)
        return frozenset([f"session {row['session_id']}"])

    @property
    def went_well(self) -> bool:
        """Whether it reached what was wanted."""
        return bool(self.row.get("outcome") == "positive")


@dataclass(frozen=True)
class Way:
    """A way that led to success in three builds or more.

    Attributes
    ----------
    trigger : tuple of str
        Words that say when.
    keys, steps : tuple of str
        Its steps, as they are compared and as they are told.
    supporters, failures : list of Attempt
        Those who went it and reached what they wanted, in order of time; those who did not.
    """

    trigger: tuple[str, ...]
    keys: tuple[str, ...]
    steps: tuple[str, ...]
    supporters: list[Attempt]
    failures: list[Attempt]

    @cached_property
    def builds(self) -> frozenset[str]:
        """Those in which it led to success."""
        return frozenset().union(*(attempt.builds for attempt in self.supporters))

    @cached_property
    def tried(self) -> int:
        """Builds in which it was gone."""
        return len(self.builds.union(*(attempt.builds for attempt in self.failures)))


def attempt_of(row: Row) -> Attempt | None:
    """Return what an episode, or a procedure that one session taught, tells step by step; None for fewer than two steps."""
    if row["type"] == "procedural":
        texts: Iterable[str] = row.get("steps", ())
    elif row.get("action_log"):
        texts = (
            f"{step['action']} {step['target']}" if step.get("target") else step["action"] for step in row["action_log"]
        )
    else:
        action = row.get("action", "")
        texts = steps_in(action) or sentences(action)
    steps = steps_of(list(texts))
    return Attempt(row, steps) if len({step.key for step in steps}) > 1 else None


def ways(attempts: Sequence[Attempt], settled: Sequence[Sequence[str]] = ()) -> list[Way]:
    """Return the ways that repeat, those with the most evidence first.

    Parameters
    ----------
    attempts : sequence of Attempt
        Of one scope, whatever their outcome.
    settled : sequence of sequence of str
        Ids of episodes that taught one procedure before: they stay together as long as they have something in common.
    """
    good = [attempt for attempt in attempts if attempt.went_well]
    place_of = {attempt.row["id"]: place for place, attempt in enumerate(good)}
    weights = tag_weights(attempt.keys for attempt in good)
    groups = communities(
        [attempt.keys for attempt in good],
        weights,
        is_large=len(good) >= LARGE_FROM,
        settled=[sorted({place_of[one] for one in ids if one in place_of}) for ids in settled],
    )
    frequency = Counter(word for attempt in attempts for word in attempt.goal)
    most = len(attempts) * _TOO_COMMON if len(attempts) >= LARGE_FROM else len(attempts)
    told_apart = {word for word, many in frequency.items() if many <= most}
    found = [_way([good[place] for place in group], attempts, told_apart, weights) for group in groups]
    kept = {(way.trigger, way.keys): way for way in found if way is not None}
    return sorted(kept.values(), key=lambda way: (-len(way.builds), way.keys, way.trigger))


def _way(
    members: Sequence[Attempt], attempts: Sequence[Attempt], telling: set[str], weights: dict[str, float]
) -> Way | None:
    if len(frozenset().union(*(attempt.builds for attempt in members))) < LEAST_BUILDS:
        return None
    members = [by_id for _, by_id in sorted((attempt.row["id"], attempt) for attempt in members)]
    common = common_way([attempt.keys for attempt in members])
    if common is None:
        return None
    own, places = members[common[0]], common[1:]
    keys = tuple(own.keys[place] for place in places)
    went = [attempt for attempt in members if follows(attempt.keys, keys)]
    trigger = _trigger(went, own, keys, telling, weights)
    if not trigger:
        return None
    words = set(trigger)
    is_of_the_goal = any(words & set(attempt.goal) for attempt in went)
    same = [
        one
        for one in attempts
        if follows(one.keys, keys) and (not is_of_the_goal or 2 * len(words & set(one.goal)) >= len(words))
    ]
    supporters = [one for one in same if one.went_well]
    way = Way(
        trigger,
        keys,
        tuple(
            told([step for one in supporters for step in one.steps if step.key == own.keys[place]], own.steps[place])
            for place in places
        ),
        _dated(supporters),
        _dated([one for one in same if one.row.get("outcome") == "negative"]),
    )
    return way if len(way.builds) >= LEAST_BUILDS and len(way.builds) >= LEAST_RATE * way.tried else None


def _dated(attempts: Sequence[Attempt]) -> list[Attempt]:
    by_id = {attempt.row["id"]: attempt for attempt in attempts}
    return [by_id[row["id"]] for row in in_order([attempt.row for attempt in attempts])]


def _trigger(
    went: Sequence[Attempt], own: Attempt, keys: Sequence[str], telling: set[str], weights: dict[str, float]
) -> tuple[str, ...]:
    """Return the words that most goals share; else those of the steps' stated purposes; else what the rarest step is called."""
    goals = Counter(word for attempt in went for word in attempt.goal if word in telling)
    if words := _shared(goals, len(went), own.goal):
        return words
    said = [word for attempt in went for word in attempt.purposes]
    if words := _shared(Counter(said), len(went), said):
        return words
    named = [key for key in keys if _NAME.fullmatch(key)]
    rarest = max(named, key=lambda key: (round(weights.get(key, 0.0), 6), key), default="")
    return tuple(rarest.split("_"))


def _telling(text: str) -> list[str]:
    words = (word.casefold() for word in _WORD.findall(text[:2_000]))
    return [word for word in dict.fromkeys(words) if word not in STOPWORDS and word not in _SAYS_LITTLE]


def _files(text: str) -> list[str]:
    """Return what the files are called that a step names, in words."""
    return [" ".join(_NAME_PART.findall(name)) for name in _FILE_NAME.findall(text)]


def _shared(counts: Counter[str], many: int, ordered: Sequence[str]) -> tuple[str, ...]:
    """Return the words that more than half have, in an order in which they were said; nothing for fewer than two."""
    common = {word for word, count in counts.items() if count * 2 > many}
    best = sorted(common, key=lambda word: (-counts[word], word))[:_MOST_TRIGGER_WORDS]
    said = [word for word in dict.fromkeys(ordered) if word in best]
    found = (*said, *(word for word in best if word not in said))
    return found if len(found) >= _LEAST_TRIGGER_WORDS else ()
