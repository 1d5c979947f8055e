"""Lessons: groups of episodes from which something can be learned, because they state the same. Pure.

Shared tags say where episodes belong, not that they have a lesson in common: five changes of one file may have nothing to
do with each other. So only those episodes of a community become a generalisation that state the same in their words. A
change that is recorded in a history happens once, and is generalised only if it kept coming back: the same thing was
mended in at least three changes, one of which says itself that it had been mended before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from memgraph.index.analyser import analyse
from memgraph.lifecycle.evidence.evidence import LEAST_BUILDS, in_order
from memgraph.lifecycle.evidence.experience import evidence_of
from memgraph.lifecycle.evidence.sentences import in_general, sentences_of
from memgraph.model.ids import canonical_name
from memgraph.ports import Row
from memgraph.text.leads import without_lead
from memgraph.text.overlap import overlap

KINDS = (
    "fix", "novelty", "change", "decision", "prevention", "removal", "revert", "failure", "lesson", "recovery", "solution",
    "correction", "insight",
)  # fmt: skip
"""Tags that say what kind of thing an episode tells, not what it is about."""
Weights = Mapping[str, float]

_SAME = 0.6
"""Share of the shorter statement's words that two statements of the same have in common."""
_MOST_SEEDS = 200
"""Maximum number of different statements of a community with which the others are compared."""
_MOST_POSTINGS = 2_000
_LEAST_WORD_CHARS = 3
_RARE, _FEW = 0.03, 10
"""Share of a project's changes, and their number in a small one, that may name the same thing: what more name is a subject."""
_COPY = 0.6
"""Share of common words from which on two changes are one: a cherry-pick, or the same told in the release notes."""
_MOST_READ_CHARS = 2_000
_QUOTE_CHARS = 240
_NOT_MENDING = frozenset({"novelty", "release", "removal"})

_THING = re.compile(r"`([^`\s]{3,60})`|(?<![\w./-])([A-Za-z_]\w{0,60}(?:\.\w{1,60}){0,4})(?![\w/-])")
_IS_NAME = re.compile(r"\w[_.]\w|[a-z][A-Z]")
_FILE_OR_ERROR = re.compile(r"\.[a-z]{1,4}$|(?:Error|Exception|Warning)$")
_MENDS = re.compile(
    r"\b(?:fix(?:e[sd])?|bugs?|regress\w{0,4}|crash\w{0,3}|broken?|fail(?:s|ed|ing)?|wrong(?:ly)?|incorrect(?:ly)?|leak\w{0,3}|"
    r"hangs?|revert\w{0,3}|no longer|cannot|can't|doesn't|didn't|prevents?|ensures?|avoids?|preserves?)\b|\w{1,60}Error\b",
    re.IGNORECASE,
)
_RETURNED = re.compile(
    r"\bregress(?:ed|es|ions?)\b(?! tests?)|\brevert(?:ed|s)?\b|\bre-?introduc\w{1,5}|\brestor(?:e|es|ed|ing)\b|"
    r"\bbroken? (?:by|in|since)\b|\bcame back\b|\b(?:once|yet) again\b|\bstopped working\b",
    re.IGNORECASE,
)


def is_change(row: Row) -> bool:
    """Return whether an episode is a change that a history records."""
    return bool(row.get("git_commit"))


def statement_of(row: Row) -> str:
    """Return what an episode says, without what kind of thing it is and the place that stands behind it."""
    text = without_lead(" ".join(row["content"].split()), row.get("tags", ()))
    title = row.get("title") or ""
    for place in (title.rsplit("/", 1)[-1], title):
        if place and (bare := text.removesuffix(f" ({place})")) != text:
            return bare.rstrip(".:")
    return text


def words_of(row: Row) -> frozenset[str]:
    """Return the words of what an episode says, as terms without numbers; of a failure, those of its error and remedy."""
    error = None if row.get("asked") else row.get("last_error")
    said = f"{error} {row.get('worked') or ''}" if error else statement_of(row)
    return _words(said[:_MOST_READ_CHARS])


@lru_cache(maxsize=16_384)
def _words(text: str) -> frozenset[str]:
    return frozenset(
        term for term in analyse(text) if len(term) >= _LEAST_WORD_CHARS and not any(map(str.isdigit, term))
    )


class Statements:
    """What the episodes of a scope say, compared by their words.

    Parameters
    ----------
    rows : iterable of Row
        The episodes of the scope, of any outcome.
    weights : mapping
        Weight of each word, as `tag_weights` gives it; a word without one says nothing in this scope.
    """

    def __init__(self, rows: Iterable[Row], weights: Weights) -> None:
        self._rows = list(rows)
        self._weights = weights
        self._postings: dict[str, list[Row]] | None = None

    def same(self, members: Sequence[Row], known: Collection[str] = ()) -> list[list[Row]]:
        """Return the groups of a community whose members state the same, each seen in at least three builds.

        Parameters
        ----------
        known : collection of str
            Ids of episodes that a generalisation covers: those left over form a group with what is like them, however small.
        """
        forms: dict[tuple[frozenset[str], frozenset[str]], list[Row]] = {}
        for row in members:
            forms.setdefault((self._telling(row), _topics(row)), []).append(row)
        seeds = sorted(forms, key=lambda form: (-len(forms[form]), min(row["id"] for row in forms[form])))
        groups = [[form for form in forms if _is_same(seed, form)] for seed in seeds[:_MOST_SEEDS]]
        found: list[list[Row]] = []
        left = set(forms)
        while groups:
            rows = [[row for form in group if form in left for row in forms[form]] for group in groups]
            builds = [len(_evidence(group)) for group in rows]
            best = max(range(len(groups)), key=lambda place: (builds[place], -place))
            if builds[best] < LEAST_BUILDS:
                break
            found.append(sorted(rows[best], key=lambda row: str(row["id"])))
            left.difference_update(groups.pop(best))
        covered = [form for form in left if any(row["id"] in known for row in forms[form])]
        rest = [row for form in left if any(_is_same(one, form) for one in covered) for row in forms[form]]
        return [*found, sorted(rest, key=lambda row: str(row["id"]))] if rest else found

    def like(self, members: Sequence[Row], outcome: str) -> list[Row]:
        """Return the episodes with another outcome that state the same as the first of these."""
        if self._postings is None:
            self._postings = {}
            for row in self._rows:
                for word in self._telling(row):
                    self._postings.setdefault(word, []).append(row)
        form = (self._telling(members[0]), _topics(members[0]))
        lists = (self._postings.get(word, ()) for word in sorted(form[0]))
        near = {row["id"]: row for rows in lists if len(rows) <= _MOST_POSTINGS for row in rows}
        return [
            row
            for row in near.values()
            if row.get("outcome") == outcome and _is_same(form, (self._telling(row), frozenset()))
        ]

    def _telling(self, row: Row) -> frozenset[str]:
        return frozenset(word for word in words_of(row) if word in self._weights)


def _is_same(one: tuple[frozenset[str], frozenset[str]], other: tuple[frozenset[str], frozenset[str]]) -> bool:
    """Return whether two statements are the same: most words in common, or a word and the topic that their authors gave."""
    if one[0].isdisjoint(other[0]):
        return False
    common = one[0] & other[0]
    if overlap(one[0], other[0], of_smaller=True) >= _SAME and len(common) >= min(2, len(one[0]), len(other[0])):
        return True
    return len(one[1] & other[1]) > 1


def _topics(row: Row) -> frozenset[str]:
    """Return the tags that the author of an episode gave it; those made by a source's rules name its files and kind."""
    if row.get("source"):
        return frozenset()
    return frozenset(name for tag in row.get("tags", ()) if (name := canonical_name(tag)) not in KINDS)


def _evidence(rows: Iterable[Row]) -> frozenset[str]:
    return frozenset[str]().union(*map(evidence_of, rows))


def weak_points(changes: Sequence[Row], others: Iterable[Row] = ()) -> list[list[Row]]:
    """Return the changes that mended the same thing again and again, by thing; each change belongs to one group.

    Parameters
    ----------
    others : iterable of Row
        Further episodes of the scope: what they report as removed is no weak point any more.
    """
    naming: dict[str, list[Row]] = {}
    for row in in_order(changes):
        for thing in things_of(row):
            naming.setdefault(thing, []).append(row)
    gone = {thing: row["occurred_at"] for row in in_order([*others]) if _removes(row) for thing in things_of(row)}
    most = max(_FEW, _RARE * len(changes))
    mended = {
        thing: [row for row in rows if _mends(row)]
        for thing, rows in naming.items()
        if LEAST_BUILDS <= len(rows) <= most and rows[-1]["occurred_at"] > gone.get(thing, "")
    }
    taken: set[str] = set()
    found: list[list[Row]] = []
    for thing in sorted(mended, key=lambda one: (-len(mended[one]), one)):
        rows = _without_copies([row for row in mended[thing] if row["id"] not in taken])
        if came_back(rows, thing):
            taken.update(row["id"] for row in rows)
            found.append(rows)
    return found


def came_back(rows: Sequence[Row], thing: str) -> Row | None:
    """Return the last of some changes that says that the thing had worked before; None if it is the first, or too few do."""
    later = in_order(rows)[1:]
    if len(_evidence(rows)) < LEAST_BUILDS:
        return None
    return next((row for row in reversed(later) if any(map(says_it_returned, naming(row, thing)))), None)


def says_it_returned(sentence: str) -> bool:
    """Return whether a sentence says that what it names had worked before, and broke."""
    return _RETURNED.search(sentence) is not None


def naming(row: Row, thing: str) -> list[str]:
    """Return the sentences of a change that name a thing and may be repeated."""
    said = (one for one in in_general(sentences_of(_read(row))) if len(one) <= _QUOTE_CHARS)
    return [one for one in said if thing.casefold() in _things(one)]


def thing_of(rows: Sequence[Row]) -> str | None:
    """Return the name of the thing that all of some changes mend, as most of them write it."""
    named = [things_of(row) for row in rows]
    common = set(named[0]).intersection(*named[1:])
    if not common:
        return None
    thing = max(common, key=lambda one: (came_back(rows, one) is not None, len(one), one))
    written = Counter(own[thing] for own in named)
    return max(written, key=lambda form: (written[form], form))


def things_of(row: Row) -> dict[str, str]:
    """Return the things that a change names, functions and options rather than files and errors, with their spelling."""
    return _things(_read(row))


def _things(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in _THING.finditer(text):
        written = match[1] or match[2]
        if not (match[1] or _IS_NAME.search(written)) or _FILE_OR_ERROR.search(written):
            continue
        name = written.rstrip("()").rsplit(".", 1)[-1].strip("_")
        if len(name) > _LEAST_WORD_CHARS and name.isidentifier():
            found.setdefault(name.casefold(), name)
    return found


def _read(row: Row) -> str:
    text = statement_of(row)[:_MOST_READ_CHARS]
    for agent in row.get("agents_involved", ()):
        text = text.replace(agent, "")
    return text


def _mends(row: Row) -> bool:
    tags = row.get("tags", ())
    return "fix" in tags or (_NOT_MENDING.isdisjoint(tags) and _MENDS.search(_read(row)) is not None)


def _removes(row: Row) -> bool:
    return is_change(row) and "removal" in row.get("tags", ())


def _without_copies(rows: Collection[Row]) -> list[Row]:
    """Return changes without those that repeat an earlier one."""
    kept: list[Row] = []
    for row in rows:
        own = words_of(row)
        if all(overlap(own, words_of(other), of_smaller=True) < _COPY for other in kept):
            kept.append(row)
    return kept
