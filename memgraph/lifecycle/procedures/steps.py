"""Steps that several episodes have in common, in the same order. Pure.

Two steps are the same if they differ only in variable parts: files, addresses, numbers, quoted text, the arguments of a
call. The common steps are worded like those of the episode that is most similar to the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from memgraph.index.analyser import STOPWORDS
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
_QUOTED = re.compile(r"\"[^\"]{0,300}\"|'[^']{0,300}'|“[^”]{0,300}”")
_URL = re.compile(r"\b[a-z]{2,8}://\S+")
_FILE = re.compile(
    r"(?<![\w<])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*|\b[\w-]{1,80}\.(?:[a-z]{2,4}|[chr]|\d?[a-z]{2}\d|mp\d)\b(?!\()"
)
_HEX = re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{7,64}\b")
_NUMBER = re.compile(r"(?<![\w-])[+-]?\d[\d.,:]*(?!\w)")
_NUMBERING = re.compile(r"^\d{1,3}[.)]\s+")
_NUMBERED = re.compile(r"(?:^|(?<=\s))(\d{1,3})[.)]\s")
_LIST_CHARS = 6_000
_STOP = re.compile(r"(?<=[\w)`'\"])[.;,]$")
"""The end of a sentence in a step; a command may end with a dot of its own."""
_PLACEHOLDER = {"<file>": "a file", "<url>": "an address", "<text>": "…", "<number>": "a number", "<id>": "an id"}


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its comparison key, its text and its purpose."""

    key: str
    text: str
    purpose: str | None = None


@lru_cache(maxsize=8_192)
def step_of(text: str) -> Step:
    """Return the step described by a text."""
    text = _NUMBERING.sub("", " ".join(text[:_STEP_CHARS].split()))
    purpose = _PURPOSE.search(text)
    bare = _STOP.sub("", text[: purpose.start()] if purpose else text)
    return Step(_key(bare), bare, purpose[1] if purpose else None)


def _key(text: str) -> str:
    plain = text.replace("`", "").strip().removeprefix("run ").strip()
    if call := _CALL.match(plain):
        return call[1].casefold()
    for pattern, placeholder in (
        (_QUOTED, "<text>"),
        (_URL, "<url>"),
        (_FILE, "<file>"),
        (_HEX, "<id>"),
        (_NUMBER, "<number>"),
    ):
        plain = pattern.sub(placeholder, plain)
    return " ".join(plain.casefold().strip(" .;,").split()).removesuffix(
        " <text>"
    )  # the submitted value does not distinguish steps


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

    None if they do not share two different steps.
    """
    backbone = _medoid(ways)
    own = ways[backbone]
    shared = Counter(place for way in ways for place in _matched(own, way))
    kept = [place for place in range(len(own)) if shared[place] >= _SHARE * len(ways)]
    if len({own[place] for place in kept}) < 2:
        return None
    return [backbone, *kept]


def rendered(texts: Sequence[Step], own: Step) -> str:
    """Return the text of a step common to several: the wording of most, otherwise without the variable parts."""
    forms = Counter(step.text for step in texts)
    text, many = max(forms.items(), key=lambda item: (item[1], item[0] == own.text, item[0]))
    if many * 2 <= len(texts):
        text = f"`{own.key}`" if own.text.startswith("`") else own.key
        for placeholder, words in () if own.text.startswith("`") else _PLACEHOLDER.items():
            text = text.replace(placeholder, words)
    purpose = _common_purpose([step.purpose for step in texts if step.purpose])
    return f"{text} (to {purpose})" if purpose else text


def telling_words(text: str) -> list[str]:
    """Return the content words of a text, each once, in order."""
    words = (word.casefold() for word in _WORD.findall(text[:2_000]))
    return [word for word in dict.fromkeys(words) if word not in STOPWORDS and word not in _SAYS_LITTLE]


def _common_purpose(purposes: Sequence[str]) -> str | None:
    """Return the shortest purpose that shares two words with another one."""
    words = {purpose: set(telling_words(purpose)) for purpose in purposes}
    counts = Counter(purposes)
    alike = [
        one
        for one in words
        if counts[one] > 1 or any(other != one and len(words[one] & words[other]) > 1 for other in words)
    ]
    return min(alike, key=lambda purpose: (len(purpose), purpose), default=None)


def _medoid(ways: Sequence[Sequence[str]]) -> int:
    """Return the place of the sequence most similar to the others, relative to its length; ties go to the first."""
    first: dict[tuple[str, ...], int] = {}
    counts: Counter[tuple[str, ...]] = Counter()
    for place, way in enumerate(ways):
        first.setdefault(tuple(way), place)
        counts[tuple(way)] += 1
    compared = sorted(counts, key=lambda way: (-counts[way], first[way]))[:_MOST_COMPARED]

    def likeness(way: tuple[str, ...]) -> float:
        return sum(counts[other] * 2 * len(_matched(way, other)) / (len(way) + len(other) or 1) for other in compared)

    return first[max(compared, key=lambda way: (round(likeness(way), 6), -first[way]))]


def _matched(own: Sequence[str], other: Sequence[str]) -> tuple[int, ...]:
    """Return the places in `own` of a longest common subsequence."""
    return _lcs(tuple(own), tuple(other))


@lru_cache(maxsize=16_384)
def _lcs(own: tuple[str, ...], other: tuple[str, ...]) -> tuple[int, ...]:
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
