"""What a generalisation says without a model: how often something was seen, around what, and its most typical case in its own words.

Nothing is said that the episodes do not say: the frame counts them and names what they share, the rest is theirs, sentence by
sentence, and cut only between words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TypeVar

from memgraph.lifecycle.evidence.sentences import (
    in_general,
    is_plain,
    most_central,
    sentences_of,
    without_numbers,
)
from memgraph.lifecycle.evidence.trials import Trials, asked_and_learned, is_trial, of_trials, task_of
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.ids import canonical_name
from memgraph.ports import Row
from memgraph.text.attempts import step_text
from memgraph.text.calendar import MONTHS
from memgraph.text.leads import without_lead
from memgraph.text.overlap import overlap
from memgraph.text.sentences import enumerated

_T = TypeVar("_T", str, tuple[str, str])

_MOST_COMPARED = 200
"""Of a larger community so many of the best connected are compared by their words."""
_MOST_EXAMPLES = 3
_MOST_OF_A_KIND = 2
_CASE_CHARS = 420
_EXAMPLE_CHARS = 180
_LONGEST_NAME = 80
_MOST_SHARED_TAGS = 6
_WORD = re.compile(r"[^\W\d_]{3,}")
_SAME_WORDS = 0.6
_UNDATED_YEAR = "2000"

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
    "undone": ("Work on {at} failed at first and worked later", "Failed at first and worked later"),
    "solution": ("Tasks about {at} were solved", "Solved"),
    "correction": ("The user corrected work on {at}", "Corrected by the user"),
    "insight": ("The same was found out about {at}", "Found out"),
    "positive": ("Work on {at} went well", "Went well"),
    "negative": ("Work on {at} went wrong", "Went wrong"),
    "neutral": ("Work on {at} went well only in part", "Went well only in part"),
    "unknown": ("The same was noted about {at}", "Noted"),
}
"""What happened, for the kind of thing that most of the episodes tell, or else their outcome: with a place and without."""
_KINDS = tuple(kind for kind in _FRAMES if kind not in {"undone", "positive", "negative", "neutral", "unknown"})
_SEVERAL: dict[str, str] = {
    "fix": "fixes",
    "novelty": "additions",
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
        tags.update(own.keys())
        for name, tag in own.items():
            written.setdefault(name, tag)
        entities = {(entity["kind"], canonical_name(entity["name"])): entity for entity in row.get("entities", ())}
        named.update(entities.keys())
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


@lru_cache(maxsize=2 * _MOST_COMPARED)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def counted(evidence: frozenset[str], episodes: Sequence[Row]) -> str:
    """Return how often something was seen, in words: "in 4 builds"."""
    unbuilt = sum(key.startswith("memory ") for key in evidence)
    unit = "builds" if not unbuilt else "episodes" if unbuilt == len(evidence) else "cases"
    if not unbuilt and all(is_trial(row) for row in episodes):
        unit = "trials"
    return f"in {len(evidence):,} {unit}"


def generalised(
    central: Sequence[Row],
    shared: Shared,
    outcome: str,
    seen: str,
    *,
    solved: Sequence[Row] | None = None,
    failed_builds: int = 0,
) -> str:
    """Return the text of a generalisation, of at most 800 characters: whole sentences only.

    Parameters
    ----------
    central : sequence of Row
        The episodes, the most typical first.
    seen : str
        How often, as `counted` says it.
    solved : sequence of Row or None
        Of failed trials, as `of_trials` takes it.
    failed_builds : int
        Of recoveries: how many of the builds failed all the same.
    """
    place = _place(shared)
    if trials := trials_of_one_task(central, seen, solved):
        return trials.text
    many = seen.split(" ", 2)
    seen += _when(central) if len(central) > 1 else ""
    if failed_builds:
        which = "which" if f"{failed_builds:,}" == many[1] else f"{failed_builds:,} of which"
        seen += f", {which} failed all the same"
    if len(central) == 1:
        return _of_one(central[0], outcome, place, seen, has_failed=failed_builds > 0)
    shown = list(central[:_MOST_COMPARED])
    frequency = Counter(word for row in shown for word in _words(row["content"]))
    if by_kind := _by_kind(central):
        told = f"{_FRAMES[outcome][0 if place else 1].format(at=place)} {seen}"
        if outcome == "positive" and place:  # what had to be fixed did not go well
            those, comma, when = seen.removeprefix("in ").partition(", ")
            told = f"{those} {'changed' if those.endswith('builds') else 'tell of changes to'} {place}{comma}{when}"
        parts = [(f"{len(rows)} {_SEVERAL[kind]}", _cases(rows, place, frequency)) for kind, rows in by_kind]
        for most in range(_MOST_OF_A_KIND, 0, -1):
            listed = [f"{many} (such as {_quoted(cases[:most])})" if cases else many for many, cases in parts]
            if len(text := f"{told}: {enumerated(listed)}.") <= MAX_CONTENT_CHARS:
                return text
        return f"{told}: {enumerated([many for many, _ in parts])}."
    told = f"{_frame(central, outcome, place, seen, has_failed=failed_builds > 0)}."
    cases = _cases(_unlike(shown), place, frequency)
    for most in range(_MOST_EXAMPLES, 0, -1):
        if cases and len(text := f"{told} For example: {_quoted(cases[:most])}.") <= MAX_CONTENT_CHARS:
            return text
    return told


def trials_of_one_task(central: Sequence[Row], seen: str, solved: Sequence[Row] | None) -> Trials | None:
    """Return the summary of episodes that are trials of one task; None for others. Parameters are those of `generalised`."""
    if is_trial(central[0]) and (len(central) == 1 or _is_of_one_task(central)):
        return of_trials(central, seen, solved)
    return None


def _quoted(cases: Sequence[str]) -> str:
    return enumerated([f"“{case}”" for case in cases])


def _of_one(row: Row, outcome: str, place: str, seen: str, *, has_failed: bool) -> str:
    """Tell of one episode that was seen again and again what holds of all these times, and what is to be learned from it."""
    text, where = _apart(row)
    said = most_central(in_general(sentences_of(text)), room=_CASE_CHARS)
    frame = _frame([row], outcome, place or f"`{where}`" * bool(where), seen, has_failed=has_failed)
    return f"{frame}: {' '.join(said)}" if said else f"{frame}."


def _by_kind(episodes: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Return the kinds of things that several episodes tell, with these, the most frequent first; none where most are of one kind."""
    found: dict[str, list[Row]] = {}
    for row in episodes:
        for kind in _KINDS:
            if kind in row.get("tags", ()):
                found.setdefault(kind, []).append(row)
                break
    if any(len(rows) * 3 >= len(episodes) * 2 for rows in found.values()):
        return []
    several = [(kind, rows) for kind, rows in found.items() if kind in _SEVERAL and len(rows) > 1]
    return sorted(several, key=lambda part: (-len(part[1]), part[0]))[:_MOST_EXAMPLES]


def _frame(episodes: Sequence[Row], outcome: str, place: str, seen: str, *, has_failed: bool) -> str:
    kind = "undone" if has_failed else kind_of(episodes) or outcome
    return f"{_FRAMES[kind][0 if place else 1].format(at=place)} {seen}"


def kind_of(episodes: Sequence[Row]) -> str | None:
    """Return the kind of thing that two thirds of the episodes tell, if there is one, such as "fix"."""
    kinds = Counter(kind for row in episodes for kind in _KINDS if kind in row.get("tags", ()))
    return next((kind for kind in _KINDS if kinds[kind] * 3 >= len(episodes) * 2), None)


def _is_of_one_task(rows: Sequence[Row]) -> bool:
    tasks = {task_of(row) for row in rows}
    return len(tasks) == 1 and None not in tasks


def _place(shared: Shared) -> str:
    """Return what the episodes are about, in words: the file or thing of most of them, else the tags that they share."""
    if shared.title and " " not in shared.title and len(shared.title) <= _LONGEST_NAME:
        return f"`{shared.title.rstrip('/').rsplit('/', 1)[-1]}`"
    return enumerated([f"`{tag}`" for tag in shared.tags if tag not in _KINDS and len(tag) <= _LONGEST_NAME][:3])


def _when(episodes: Iterable[Row]) -> str:
    """Return the months from the first to the last; nothing for trials that nobody dated."""
    days = sorted(row["occurred_at"][:7] for row in episodes if row.get("occurred_at"))
    if not days or days[0][:4] <= _UNDATED_YEAR:
        return ""
    first, last = (f"{MONTHS[int(day[5:7]) - 1]} {day[:4]}" for day in (days[0], days[-1]))
    if first == last:
        return f", in {first}"
    return f", from {first.removesuffix(last[-5:])} to {last}"


def _unlike(central: Sequence[Row]) -> list[Row]:
    """Return the most typical episodes that each say something else than those before them."""
    chosen = [central[0]]
    for row in central[1:_MOST_COMPARED]:
        own = _words(row["content"])
        if all(overlap(own, _words(other["content"])) < _SAME_WORDS for other in chosen):
            chosen.append(row)
        if len(chosen) == _MOST_EXAMPLES:
            break
    return chosen


def _apart(row: Row) -> tuple[str, str | None]:
    """Return what an episode says, without what kind of thing it is, and the place that stands behind it."""
    if row.get("worked_how"):
        return _step_in_general(row), None
    text = without_lead(" ".join(row["content"].split()), row.get("tags", ()))
    title = row.get("title") or ""
    for place in (title.rsplit("/", 1)[-1], title):
        if place and (bare := text.removesuffix(f" ({place})")) != text:
            return bare.rstrip(".:"), place
    return text, None


def _step_in_general(row: Row) -> str:
    """Return what a step of a session that failed and worked later says, without what belongs to one case."""
    told = {**row, "last_error": without_numbers(row["last_error"])}
    if row["worked_how"] == "instead":
        worked = row["worked"].replace("… ", "").replace(" …", "")
        told["worked"] = worked if is_plain(worked.strip("`")) else None
    return step_text(told)


def _cases(rows: Sequence[Row], place: str, frequency: Mapping[str, int]) -> list[str]:
    """Return what some of the rows say, a sentence of each, where one can be told."""
    told = (case for row in rows[:_MOST_COMPARED] if (case := _case(row, place, frequency)))
    return list(islice(told, _MOST_EXAMPLES))


def _case(row: Row, place: str, frequency: Mapping[str, int]) -> str | None:
    """Return the sentence of an episode that says most of what the others say too; None where none can be told."""
    text, where = _apart(row)
    if is_trial(row):
        text = asked_and_learned(row)
    fitting = [one for one in in_general(sentences_of(text)) if len(one) <= _EXAMPLE_CHARS]
    if not fitting:
        return None

    def rank(said: str) -> tuple[float, int]:
        own = _words(said)
        return (round(-sum(frequency[word] - 1 for word in sorted(own)) / (len(own) + 5.0), 6), fitting.index(said))

    said = min(fitting, key=rank).removesuffix(".")
    is_known = where is None or canonical_name(where) in canonical_name(place) or where in said
    return said if is_known else f"{said} ({where})"
