"""Which ways of doing something repeat: episodes that went well by the same steps. Pure.

Episodes are compared by their steps alone, as compression compares them by their tags; a community's common steps, in their
order, are the way. When to go it is told by the words that the goals of those who went it share.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from memgraph.extraction.statements import sentences, steps_in
from memgraph.lifecycle.communities.louvain import communities
from memgraph.lifecycle.communities.tag_overlap import LARGE_FROM, tag_weights
from memgraph.lifecycle.evidence.evidence import LEAST_BUILDS, in_order
from memgraph.lifecycle.evidence.experience import evidence_of
from memgraph.lifecycle.procedures.steps import (
    Step,
    common_way,
    follows,
    may_be_left_out,
    steps_of,
    telling_words,
    told,
)
from memgraph.ports import Row

_LEAST_RATE = 0.5
"""What fails more often than it leads anywhere is not proposed."""
_MOST_TRIGGER_WORDS = 6
_LEAST_TRIGGER_WORDS = 2
_TOO_COMMON = 0.5
"""Words in the goals of more than so many of a larger project's episodes do not tell one way from another."""
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
        said = (row.get(name) for name in ("goal", "trigger_pattern", "situation", "asked"))
        return telling_words(next(filter(None, said), row["content"]))

    @cached_property
    def purposes(self) -> list[str]:
        """The words of what the steps are said to be for, and of how the files are called that they are about, in order."""
        return telling_words(" ".join(part for step in self.steps for part in (step.purpose or "", *_files(step.text))))

    @cached_property
    def builds(self) -> frozenset[str]:
        """What it is evidence of."""
        return builds_of(self.row)

    @property
    def went_well(self) -> bool:
        """Whether it reached what was wanted."""
        return bool(self.row.get("outcome") == "positive")


@dataclass(frozen=True)
class Way:
    """A way that led to success in three builds or more, however often it failed.

    Attributes
    ----------
    trigger : tuple of str
        Words that say when.
    keys, steps : tuple of str
        Its steps, as they are compared and as they are told.
    supporters : list of Attempt
        Those who went it and reached what they wanted, in order of time; each supports one way only.
    others, failures : list of Attempt
        Supporters of other ways who went this one as well; those who did not reach what they wanted.
    """

    trigger: tuple[str, ...]
    keys: tuple[str, ...]
    steps: tuple[str, ...]
    supporters: list[Attempt]
    others: list[Attempt]
    failures: list[Attempt]

    @cached_property
    def builds(self) -> frozenset[str]:
        """Those of its evidence."""
        return _builds(self.supporters)

    @cached_property
    def succeeded(self) -> int:
        """Builds in which it led to success, the other ways' included."""
        return len(self.builds | _builds(self.others))

    @cached_property
    def tried(self) -> int:
        """Builds in which it was gone."""
        return len(self.builds | _builds(self.others) | _builds(self.failures))

    @property
    def leads_there(self) -> bool:
        """Whether it led to success in half the builds, at least, in which it was gone."""
        return self.succeeded >= _LEAST_RATE * self.tried


class _Draft(NamedTuple):
    """What may be a way: its trigger, its steps, and the successes of one community that went it."""

    trigger: tuple[str, ...]
    keys: tuple[str, ...]
    went: list[Attempt]


def builds_of(row: Row) -> frozenset[str]:
    """Return what an episode is evidence of; one without a build counts by its session, or as one."""
    if row.get("evidence_build_ids") or row.get("build_id") or not row.get("session_id"):
        return evidence_of(row)
    return frozenset([f"session {row['session_id']}"])


def _builds(attempts: Sequence[Attempt]) -> frozenset[str]:
    return frozenset().union(*(attempt.builds for attempt in attempts))


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
    drafts = [draft for group in groups if (draft := _drafted([good[place] for place in group], told_apart, weights))]
    by_key: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        for key in sorted(set(attempt.keys)):
            by_key.setdefault(key, []).append(attempt)
    found = [way for draft in _merged(drafts) if (way := _way(*draft, by_key))]
    return sorted(found, key=lambda way: (-len(way.builds), way.keys, way.trigger))


def _drafted(members: Sequence[Attempt], telling: set[str], weights: dict[str, float]) -> _Draft | None:
    """Return the trigger and the steps that a community has in common, and those of it who took them, if there are any."""
    if len(_builds(members)) < LEAST_BUILDS:
        return None
    members = sorted(members, key=lambda attempt: str(attempt.row["id"]))
    common = common_way([attempt.keys for attempt in members])
    if common is None:
        return None
    own = members[common[0]]
    keys = tuple(own.keys[place] for place in common[1:])
    went = [attempt for attempt in members if follows(attempt.keys, keys)]
    trigger = _trigger(went, own, keys, telling, weights)
    return _Draft(trigger, keys, went) if trigger else None


def _merged(drafts: Sequence[_Draft]) -> list[_Draft]:
    """Return the drafts, those in one that are triggered by the same words and differ in little."""
    kept: list[_Draft] = []
    for draft in sorted(drafts, key=lambda one: (-len(one.went), one.keys, one.trigger)):
        same = (
            one
            for one in kept
            if set(one.trigger) == set(draft.trigger)
            and (follows(draft.keys, one.keys) or follows(one.keys, draft.keys))
        )
        known = next(same, None)
        if known is None:
            kept.append(draft)
        else:
            known.went.extend(attempt for attempt in draft.went if follows(attempt.keys, known.keys))
    return kept


def _way(
    trigger: tuple[str, ...], keys: tuple[str, ...], went: Sequence[Attempt], by_key: Mapping[str, Sequence[Attempt]]
) -> Way | None:
    """Return the way with all who went it; None if it led to success in too few builds."""
    words = set(trigger)
    is_of_the_goal = any(words & set(attempt.goal) for attempt in went)

    def wanted(attempt: Attempt) -> bool:
        return not is_of_the_goal or 2 * len(words & set(attempt.goal)) >= len(words)

    same = [attempt for attempt in _who_went(keys, by_key) if wanted(attempt)]
    ids = {attempt.row["id"] for attempt in went}
    supporters = _dated([attempt for attempt in went if wanted(attempt)])
    way = Way(
        trigger,
        keys,
        tuple(_told(place, keys, supporters) for place in range(len(keys))),
        supporters,
        _dated([attempt for attempt in same if attempt.went_well and attempt.row["id"] not in ids]),
        _dated([attempt for attempt in same if attempt.row.get("outcome") == "negative"]),
    )
    return way if len(way.builds) >= LEAST_BUILDS else None


def _who_went(keys: Sequence[str], by_key: Mapping[str, Sequence[Attempt]]) -> list[Attempt]:
    """Return all attempts that went a way: who may leave out so many steps took one of any so many and one, so of the rarest."""
    rarest = sorted(set(keys), key=lambda key: (len(by_key[key]), key))[: may_be_left_out(keys) + 1]
    near = {attempt.row["id"]: attempt for key in rarest for attempt in by_key[key]}
    return [attempt for attempt in near.values() if follows(attempt.keys, keys)]


def _told(place: int, keys: Sequence[str], supporters: Sequence[Attempt]) -> str:
    """Return how a step is told; of one that comes several times, in the words of those times."""
    nth = keys[:place].count(keys[place])
    taken = [[step for step in attempt.steps if step.key == keys[place]] for attempt in supporters]
    steps = [same[min(nth, len(same) - 1)] for same in taken if same]
    return told(steps, steps[0])


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
