"""What a generalisation says without a model: how often something was seen, around what, and its most typical case in its own words.

Nothing is said that the episodes do not say: the frame counts them and names what they share, the rest is theirs, sentence by
sentence, and cut only between words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.ids import canonical_name
from memgraph.ports import Row

_T = TypeVar("_T", str, tuple[str, str])

_MOST_COMPARED = 200
"""Of a larger community so many of the best connected are compared by their words."""
_MOST_EXAMPLES = 3
_CASE_CHARS = 420
_EXAMPLE_CHARS = 180
_SHORT_CHARS = 120
_MOST_SHARED_TAGS = 6
_WORD = re.compile(r"[^\W\d_]{3,}")
_LEAD = re.compile(
    r"^(?:Failed trial|Solved after a failed trial|Solved|Fix|Partly done|Breaking change|Release|Instruction by the user|"
    r"The user corrected|The user stepped in):\s+"
)
_TRIAL = re.compile(r"(?:Failed trial|Solved after a failed trial|Solved): ")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`\"“*-])")
_PLACE = re.compile(r"[.:]?\s+\(([^()\s]{1,100})\)$")
_SAME_WORDS = 0.6
_UNDATED_YEAR = "2000"
_MONTHS = "January February March April May June July August September October November December".split()

_FRAMES: dict[str, tuple[str, str]] = {
    "fix": ("Fixes to {at} were needed", "Had to be fixed"),
    "novelty": ("Something new came to {at}", "Added"),
    "change": ("The behaviour of {at} was changed", "Changed"),
    "decision": ("Decisions about {at} were taken", "Decided"),
    "prevention": ("Safeguards were added to {at}", "Guarded against"),
    "removal": ("Something was removed from {at}", "Removed"),
    "revert": ("Changes to {at} were taken back", "Taken back"),
    "failure": ("Work on {at} failed", "Failed"),
    "lesson": ("Trials at {at} failed", "Failed"),
    "recovery": ("Work on {at} failed at first and then went well", "Failed at first and then went well"),
    "solution": ("Tasks about {at} were solved", "Solved"),
    "correction": ("The user corrected work on {at}", "Corrected by the user"),
    "insight": ("The same was found out about {at}", "Found out"),
    "positive": ("Work on {at} went well", "Went well"),
    "negative": ("Work on {at} went wrong", "Went wrong"),
    "neutral": ("Work on {at} went well only in part", "Went well only in part"),
    "unknown": ("The same was noted about {at}", "Noted"),
}
"""What happened, for the kind of thing that most of the episodes tell, or else their outcome: with a place and without."""
_KINDS = tuple(kind for kind in _FRAMES if kind not in {"positive", "negative", "neutral", "unknown"})
_SEVERAL: dict[str, str] = {
    "fix": "fixes",
    "novelty": "something new",
    "change": "changes of behaviour",
    "decision": "decisions",
    "prevention": "safeguards",
    "removal": "removals",
    "revert": "reverts",
    "failure": "failures",
    "lesson": "lessons",
    "recovery": "recoveries",
    "solution": "solutions",
}


@dataclass(frozen=True, slots=True)
class Shared:
    """What most of a community's episodes have in common.

    Attributes
    ----------
    tags : tuple of str
        Those of at least half of the episodes, the most frequent first.
    entities : tuple of dict
        The same of the things that they name.
    title : str or None
        What more than half of them are about.
    """

    tags: tuple[str, ...] = ()
    entities: tuple[Row, ...] = ()
    title: str | None = None


def shared_by(episodes: Sequence[Row]) -> Shared:
    """Return what at least half of the episodes have in common."""
    least = len(episodes) / 2
    tags, written = Counter[str](), dict[str, str]()
    named, things = Counter[tuple[str, str]](), dict[tuple[str, str], Row]()
    for row in episodes:
        own = {canonical_name(tag): tag for tag in row.get("tags", ())}
        tags.update(list(own))
        written = {**own, **written}
        entities = {(entity["kind"], canonical_name(entity["name"])): entity for entity in row.get("entities", ())}
        named.update(list(entities))
        for key, entity in entities.items():
            things[key] = {**entity, "about": entity.get("about", False) or things.get(key, {}).get("about", False)}
    titles = Counter(filter(None, (row.get("title") for row in episodes)))
    title = next((name for name, many in sorted(titles.items()) if many > least), None)
    return Shared(
        tags=tuple(written[tag] for tag in _frequent(tags, least))[:_MOST_SHARED_TAGS],
        entities=tuple(things[key] for key in _frequent(named, least))[:_MOST_SHARED_TAGS],
        title=title,
    )


def _frequent(counts: Counter[_T], least: float) -> list[_T]:
    kept = [item for item in counts.items() if item[1] >= least]
    return [name for name, _ in sorted(kept, key=lambda item: (-item[1], item[0]))]


def by_centrality(episodes: Sequence[Row], weights: Mapping[str, float]) -> list[Row]:
    """Return the episodes, the most typical first.

    By the weight of the tags that they share with the others, then by the words that they share with them, then by how often they
    were seen and by id.
    """
    tags = [{canonical_name(tag) for tag in row.get("tags", ())} for row in episodes]
    counts = Counter(tag for own in tags for tag in own)
    overlap = [sum(weights.get(tag, 0.0) * (counts[tag] - 1) for tag in sorted(own)) for own in tags]
    order = sorted(range(len(episodes)), key=lambda place: (-round(overlap[place], 6), episodes[place]["id"]))
    compared = order[:_MOST_COMPARED]
    words = {place: _words(episodes[place]["content"]) for place in compared}
    frequency = Counter(word for own in words.values() for word in own)

    def rank(place: int) -> tuple[float, ...] | tuple[float, float, int, str]:
        own = words[place]
        common = sum(frequency[word] - 1 for word in own) / (len(own) + 5.0)
        seen = len(episodes[place].get("evidence_build_ids", ()))
        return (-round(overlap[place], 6), -round(common, 6), -seen, episodes[place]["id"])

    return [episodes[place] for place in [*sorted(compared, key=rank), *order[_MOST_COMPARED:]]]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def counted(evidence: frozenset[str], episodes: Sequence[Row]) -> str:
    """Return how often something was seen, in words: "in 4 builds"."""
    unbuilt = sum(key.startswith("memory ") for key in evidence)
    unit = "builds" if not unbuilt else "episodes" if unbuilt == len(evidence) else "cases"
    if not unbuilt and all(_TRIAL.match(row["content"]) for row in episodes):
        unit = "trials"
    return f"in {len(evidence):,} {unit}"


def generalised(central: Sequence[Row], shared: Shared, outcome: str, seen: str) -> str:
    """Return the text of a generalisation, of at most 800 characters.

    Parameters
    ----------
    central : sequence of Row
        The episodes, the most typical first.
    seen : str
        How often, as `counted` says it.
    """
    place = _place(shared)
    frame = _frame(central, outcome, place, f"{seen}{_when(central)}")
    if len(central) == 1:
        return f"{frame}: {_case(central[0], place, MAX_CONTENT_CHARS - len(frame) - 2)}"
    shown = _unlike(central)
    short = [_case(row, place, _SHORT_CHARS).removesuffix(".") for row in shown]
    if len(short) > 1 and not any(text.endswith("…") or ". " in text for text in short):
        return f"{frame}. For example: {_enumerated([f'“{text}”' for text in short])}."
    told = f"{frame}. For example: {_case(shown[0], place, _CASE_CHARS)}"
    for example in shown[1:]:
        said = _case(example, place, _EXAMPLE_CHARS)
        if len(told) + len(said) + 7 <= MAX_CONTENT_CHARS:
            told += f" Also: {said}"
    return told


def _frame(episodes: Sequence[Row], outcome: str, place: str, seen: str) -> str:
    kinds = Counter(kind for row in episodes for kind in _KINDS if kind in row.get("tags", ()))
    most = [kind for kind in _KINDS if kinds[kind] * 3 >= len(episodes) * 2]
    text = _FRAMES[most[0] if most else outcome][0 if place else 1].format(at=place)
    parts = [(many, kind) for kind, many in kinds.items() if kind in _SEVERAL and many > 1]
    if most or len(parts) < 2:
        return f"{text} {seen}"
    listed = [f"{_SEVERAL[kind]} ({many})" for many, kind in sorted(parts, key=lambda part: (-part[0], part[1]))[:3]]
    return f"{text} {seen}: {_enumerated(listed)}"


def _place(shared: Shared) -> str:
    """Return what the episodes are about, in words: the file or thing of most of them, else the tags that they share."""
    if shared.title and " " not in shared.title:
        return f"`{shared.title.rstrip('/').rsplit('/', 1)[-1]}`"
    return _enumerated([f"`{tag}`" for tag in shared.tags if tag not in _KINDS][:3])


def _enumerated(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _when(episodes: Iterable[Row]) -> str:
    """Return the months from the first to the last; nothing for trials that nobody dated."""
    days = sorted(row["occurred_at"][:7] for row in episodes if row.get("occurred_at"))
    if not days or days[0][:4] <= _UNDATED_YEAR:
        return ""
    first, last = (f"{_MONTHS[int(day[5:7]) - 1]} {day[:4]}" for day in (days[0], days[-1]))
    if first == last:
        return f", in {first}"
    return f", from {first.removesuffix(last[-5:])} to {last}"


def _unlike(central: Sequence[Row]) -> list[Row]:
    """Return the most typical episodes that each say something else than those before them."""
    chosen = [central[0]]
    for row in central[1:_MOST_COMPARED]:
        own = _words(row["content"])
        if all(_likeness(own, _words(other["content"])) < _SAME_WORDS for other in chosen):
            chosen.append(row)
        if len(chosen) == _MOST_EXAMPLES:
            break
    return chosen


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / (len(one | other) or 1)


def _case(row: Row, place: str, room: int) -> str:
    """Return what an episode says, without what the frame says already, in whole sentences as far as they fit."""
    text = _LEAD.sub("", " ".join(row["content"].split()))
    where = _PLACE.search(text)
    if where:
        known = canonical_name(where[1]) in canonical_name(place)
        text = text[: where.start()] + ("" if known else f" ({where[1]})")
    first = text.split(" ", 1)[0]
    text = text[:1].upper() + text[1:] if first.rstrip(",:;").isalpha() else text
    if len(text) < room:
        return _ended(text)
    kept = ""
    for sentence in _SENTENCE_END.split(text):
        joined = f"{kept} {_ended(sentence)}".strip()
        if len(joined) > room:
            break
        kept = joined
    if kept:
        return kept
    cut = text[: room - 1]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut else cut}…".replace(",…", "…").replace(";…", "…")


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…", "”", ":")) else f"{text}."
