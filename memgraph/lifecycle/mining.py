"""Mining of repeated procedures: successful episodes with the same steps. Pure.

Episodes are compared by their steps alone, as compression compares them by their tags; a *way* is the common steps of a
community, in their order. Its trigger consists of the words that the goals of its episodes share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil
from typing import NamedTuple

from memgraph.extraction.statements import steps_in
from memgraph.index.analyser import STOPWORDS
from memgraph.lifecycle.communities import LARGE_FROM, communities, tag_weights
from memgraph.lifecycle.episodes import LEAST_BUILDS, evidence_of, in_order
from memgraph.ports import Row
from memgraph.text import lazy_re as re

MOST_STEPS = 40
"""Maximum number of steps that are compared: the first ones."""
_MOST_COMPARED = 24
_SHARE = 0.6
_SHORT = 4
"""A way with this few steps must be followed completely; a longer one at four steps out of five."""
_MOST_OF_A_LONG_ONE = 0.8
_STEP_CHARS = 300

_WORD = re.compile(r"(?<![^\W_])[^\W\d_]{3,40}(?![^\W_])")
_SAYS_LITTLE = frozenset(
    str.split(
        "see make sure get got use using need needs want wants like let lets know same also please help could one two new now way "
        "try trying hey there sorry okay thanks task problem named worth points don didn isn"
    )
)
_PURPOSE = re.compile(r"\s\(([^()]{3,200})\)$")
_CALL = re.compile(r"^([A-Za-z_][\w.]{1,80})\(")
_VARIABLE = {
    "<text>": re.compile(r"\"[^\"]{0,300}\"|'[^']{0,300}'|“[^”]{0,300}”"),
    "<url>": re.compile(r"\b[a-z]{2,8}://\S+"),
    "<file>": re.compile(
        r"(?<![\w<])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*|\b[\w-]{1,80}\.(?:[a-z]{2,4}|[chr]|\d?[a-z]{2}\d|mp\d)\b(?!\()"
    ),
    "<id>": re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{7,64}\b"),
    "<number>": re.compile(r"(?<![\w-])[+-]?\d[\d.,:]*(?!\w)"),
}
"""What varies in a step, by what stands for it in its key, in the order in which it is looked for."""
_NUMBERING = re.compile(r"^\d{1,3}[.)]\s+")
_NUMBERED = re.compile(r"(?:^|(?<=\s))(\d{1,3})[.)]\s")
_LIST_CHARS = 6_000
_STOP = re.compile(r"(?<=[\w)`'\"])[.;,]$")
"""The end of a sentence in a step; a command may end with a dot of its own."""
_PLACEHOLDER = {"<file>": "a file", "<url>": "an address", "<text>": "…", "<number>": "a number", "<id>": "an id"}


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its text, and its key, which leaves out what varies: files, addresses, numbers, quoted text, the arguments of a call."""

    key: str
    text: str


@lru_cache(maxsize=8_192)
def step_of(text: str) -> Step:
    """Return the step described by a text."""
    text = _NUMBERING.sub("", " ".join(text[:_STEP_CHARS].split()))
    bare = _STOP.sub("", _PURPOSE.sub("", text))
    plain = bare.replace("`", "").strip().removeprefix("run ").strip()
    if call := _CALL.match(plain):
        return Step(call[1].casefold(), bare)
    for placeholder, pattern in _VARIABLE.items():
        plain = pattern.sub(placeholder, plain)
    key = " ".join(plain.casefold().strip(" .;,").split())
    return Step(key.removesuffix(" <text>"), bare)  # the submitted value does not distinguish steps


def steps_of(texts: Sequence[str]) -> tuple[Step, ...]:
    """Return the steps of a text; repetitions in direct succession count once."""
    found: list[Step] = []
    for text in texts[:MOST_STEPS]:
        step = step_of(text)
        if step.key and (not found or found[-1].key != step.key):
            found.append(step)
    return tuple(found)


def listed(text: str) -> tuple[str, ...]:
    """Return the entries of a numbered list, on one line or several; nothing for other texts."""
    _, *parts = _NUMBERED.split(text[:_LIST_CHARS])
    entries = [entry.strip() for entry in parts[1::2]]
    is_list = len(entries) > 1 and [int(number) for number in parts[::2]] == list(range(1, len(entries) + 1))
    return tuple(entries) if is_list else ()


def may_be_left_out(way: Sequence[str]) -> int:
    """Return how many steps of a way may be skipped: none of a short one, one in five of a longer one."""
    return 0 if len(way) <= _SHORT else len(way) - ceil(_MOST_OF_A_LONG_ONE * len(way))


def follows(keys: Sequence[str], way: Sequence[str]) -> bool:
    """Return whether these steps follow a way: all steps of a short one, most steps of a long one, in its order."""
    rest = iter(keys)
    if all(key in rest for key in way):
        return True
    allowed, taken = may_be_left_out(way), frozenset(keys)
    return sum(key not in taken for key in way) <= allowed > 0 and len(_matched(way, keys)) >= len(way) - allowed


def common_way(ways: Sequence[Sequence[str]]) -> list[int] | None:
    """Return the place of the sequence most similar to the others, and the places of its steps that most of them share.

    None if they do not share two different steps. Similarity is relative to length; ties go to the first.
    """
    counts = Counter(map(tuple, ways))
    first = {way: place for place, way in reversed(list(enumerate(map(tuple, ways))))}
    compared = sorted(counts, key=lambda way: (-counts[way], first[way]))[:_MOST_COMPARED]

    def likeness(way: tuple[str, ...]) -> float:
        return sum(counts[other] * 2 * len(_matched(way, other)) / (len(way) + len(other) or 1) for other in compared)

    own = max(compared, key=lambda way: (round(likeness(way), 6), -first[way]))
    shared = Counter(place for way, many in counts.items() for place in _matched(own, way) * many)
    kept = [place for place in range(len(own)) if shared[place] >= _SHARE * len(ways)]
    return [first[own], *kept] if len({own[place] for place in kept}) > 1 else None


def rendered(texts: Sequence[Step], own: Step) -> str:
    """Return the text of a step common to several: the wording of most, otherwise without the variable parts."""
    forms = Counter(step.text for step in texts)
    text, many = max(forms.items(), key=lambda item: (item[1], item[0] == own.text, item[0]))
    if many * 2 <= len(texts):
        text = f"`{own.key}`" if own.text.startswith("`") else own.key
        for placeholder, words in () if own.text.startswith("`") else _PLACEHOLDER.items():
            text = text.replace(placeholder, words)
    return text


@lru_cache(maxsize=16_384)
def _matched(own: tuple[str, ...], other: tuple[str, ...]) -> tuple[int, ...]:
    """Return the places in `own` of a longest common subsequence."""
    lengths = [[0] * (len(other) + 1) for _ in range(len(own) + 1)]
    for i in range(len(own) - 1, -1, -1):
        row, below = lengths[i], lengths[i + 1]
        for j in range(len(other) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if own[i] == other[j] else max(below[j], row[j + 1])
    found, i, j = [], 0, 0
    while i < len(own) and j < len(other):
        if own[i] == other[j]:
            found.append(i)
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return tuple(found)


_LEAST_RATE = 0.5
"""Minimum success rate of a proposed way."""
_MOST_TRIGGER_WORDS = 6
_LEAST_TRIGGER_WORDS = 2
_TOO_COMMON = 0.5
"""In a larger project, words in the goals of more than this share of episodes do not distinguish ways."""
_NAME = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)+")


@dataclass(frozen=True)
class Attempt:
    """An episode that records step by step what was done."""

    row: Row
    steps: tuple[Step, ...]

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The comparison keys of its steps."""
        return tuple(step.key for step in self.steps)

    @cached_property
    def goal(self) -> list[str]:
        """The content words of its goal, each once, in order."""
        row = self.row
        said = (row.get(name) for name in ("goal", "trigger_pattern", "situation", "asked"))
        text = next(filter(None, said), row["content"])
        words = dict.fromkeys(word.casefold() for word in _WORD.findall(text[:2_000]))
        return [word for word in words if word not in STOPWORDS and word not in _SAYS_LITTLE]

    @cached_property
    def builds(self) -> frozenset[str]:
        """The builds that it is evidence of; without a build it counts by its session, or as one."""
        row = self.row
        if row.get("evidence_build_ids") or row.get("build_id") or not row.get("session_id"):
            return evidence_of(row)
        return frozenset([f"session {row['session_id']}"])

    @property
    def went_well(self) -> bool:
        """Whether it reached its goal."""
        return bool(self.row.get("outcome") == "positive")


@dataclass(frozen=True)
class Way:
    """A sequence of steps that led to success in at least three builds, however often it failed."""

    trigger: tuple[str, ...]
    """The words that say when to use it."""
    keys: tuple[str, ...]
    steps: tuple[str, ...]
    supporters: list[Attempt]
    """Attempts that followed it and succeeded, in order of time; each supports one way only."""
    others: list[Attempt]
    """Supporters of other ways that followed this one as well."""
    failures: list[Attempt]

    @cached_property
    def builds(self) -> frozenset[str]:
        """The builds of its evidence."""
        return _builds(self.supporters)

    @cached_property
    def succeeded(self) -> int:
        """Builds in which it led to success, including supporters of other ways."""
        return len(self.builds | _builds(self.others))

    @cached_property
    def tried(self) -> int:
        """Builds in which it was followed."""
        return len(self.builds | _builds(self.others) | _builds(self.failures))

    @property
    def leads_there(self) -> bool:
        """Whether it led to success in at least half of the builds in which it was followed."""
        return self.succeeded >= _LEAST_RATE * self.tried


class _Draft(NamedTuple):
    """A candidate way: its trigger, its steps, and the successful attempts of one community that followed it."""

    trigger: tuple[str, ...]
    keys: tuple[str, ...]
    went: list[Attempt]


def _builds(attempts: Sequence[Attempt]) -> frozenset[str]:
    return frozenset().union(*(attempt.builds for attempt in attempts))


def attempt_of(row: Row) -> Attempt | None:
    """Return the steps of an episode, or of a procedure from a single session; None if there are fewer than two."""
    if row["type"] == "procedural":
        texts: Iterable[str] = row.get("steps", ())
    elif row.get("action_log"):
        texts = (" ".join(filter(None, (step["action"], step.get("target")))) for step in row["action_log"])
    else:
        action = row.get("action", "")
        texts = listed(action) or steps_in(action)
    steps = steps_of(list(texts))
    return Attempt(row, steps) if len({step.key for step in steps}) > 1 else None


def ways(attempts: Sequence[Attempt]) -> list[Way]:
    """Return the repeated ways of a scope's attempts, whatever their outcome, those with the most evidence first."""
    good = [attempt for attempt in attempts if attempt.went_well]
    weights = tag_weights(attempt.keys for attempt in good)
    groups = communities([attempt.keys for attempt in good], weights, is_large=len(good) >= LARGE_FROM)
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
    """Return the common trigger and steps of a community, and its attempts that followed them, if there are any."""
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
    """Return the drafts, merging those with equal trigger words and almost equal steps."""
    kept: list[_Draft] = []
    for draft in sorted(drafts, key=lambda one: (-len(one.went), one.keys, one.trigger)):
        told_alike = (one for one in kept if set(one.trigger) == set(draft.trigger))
        same = (one for one in told_alike if follows(draft.keys, one.keys) or follows(one.keys, draft.keys))
        known = next(same, None)
        if known is None:
            kept.append(draft)
        else:
            known.went.extend(attempt for attempt in draft.went if follows(attempt.keys, known.keys))
    return kept


def _way(
    trigger: tuple[str, ...], keys: tuple[str, ...], went: Sequence[Attempt], by_key: Mapping[str, Sequence[Attempt]]
) -> Way | None:
    """Return the way with all attempts that followed it; None if it led to success in too few builds."""
    words = set(trigger)
    is_of_the_goal = any(words & set(attempt.goal) for attempt in went)

    def wanted(attempt: Attempt) -> bool:
        return not is_of_the_goal or 2 * len(words & set(attempt.goal)) >= len(words)

    same = [attempt for attempt in _followers(keys, by_key) if wanted(attempt)]
    ids = {attempt.row["id"] for attempt in went}
    supporters = _dated([attempt for attempt in went if wanted(attempt)])
    way = Way(
        trigger,
        keys,
        tuple(_step_text(place, keys, supporters) for place in range(len(keys))),
        supporters,
        _dated([attempt for attempt in same if attempt.went_well and attempt.row["id"] not in ids]),
        _dated([attempt for attempt in same if attempt.row.get("outcome") == "negative"]),
    )
    return way if len(way.builds) >= LEAST_BUILDS else None


def _followers(keys: Sequence[str], by_key: Mapping[str, Sequence[Attempt]]) -> list[Attempt]:
    """Return all attempts that followed a way: with n steps optional, each took at least one of any n + 1, so of the rarest."""
    rarest = sorted(set(keys), key=lambda key: (len(by_key[key]), key))[: may_be_left_out(keys) + 1]
    near = {attempt.row["id"]: attempt for key in rarest for attempt in by_key[key]}
    return [attempt for attempt in near.values() if follows(attempt.keys, keys)]


def _step_text(place: int, keys: Sequence[str], supporters: Sequence[Attempt]) -> str:
    """Return the text of a step; of a repeated step, in the words of those repetitions."""
    nth = keys[:place].count(keys[place])
    taken = [[step for step in attempt.steps if step.key == keys[place]] for attempt in supporters]
    steps = [same[min(nth, len(same) - 1)] for same in taken if same]
    return rendered(steps, steps[0])


def _dated(attempts: Sequence[Attempt]) -> list[Attempt]:
    by_id = {attempt.row["id"]: attempt for attempt in attempts}
    return [by_id[row["id"]] for row in in_order([attempt.row for attempt in attempts])]


def _trigger(
    went: Sequence[Attempt], own: Attempt, keys: Sequence[str], telling: set[str], weights: dict[str, float]
) -> tuple[str, ...]:
    """Return the words that most goals share, in order of use; else the name of the rarest step."""
    goals = Counter(word for attempt in went for word in attempt.goal if word in telling)
    common = {word for word, count in goals.items() if count * 2 > len(went)}
    best = sorted(common, key=lambda word: (-goals[word], word))[:_MOST_TRIGGER_WORDS]
    if len(best) >= _LEAST_TRIGGER_WORDS:
        return tuple(dict.fromkeys([*(word for word in own.goal if word in best), *best]))
    named = [key for key in keys if _NAME.fullmatch(key)]
    rarest = max(named, key=lambda key: (round(weights.get(key, 0.0), 6), key), default="")
    return tuple(rarest.split("_"))
