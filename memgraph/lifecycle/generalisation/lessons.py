"""Lessons: groups of episodes from which something can be learned, because they state the same. Pure.

Shared tags say where episodes belong, not that they have a lesson in common: five changes of one file may have nothing to
do with each other. So only those episodes of a community become a generalisation that state the same in their words.
Changes that a history records are grouped by the sentences that they share, word for word (`said_again`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

from memgraph.index.analyser import analyse
from memgraph.lifecycle.evidence.evidence import LEAST_BUILDS, evidence_of
from memgraph.lifecycle.evidence.sentences import sentences_of
from memgraph.model.ids import canonical_name
from memgraph.ports import Row
from memgraph.text.attempts import without_lead
from memgraph.text.words import overlap

KINDS = (
    "fix", "novelty", "change", "decision", "prevention", "removal", "revert", "failure", "lesson", "recovery", "solution",
    "correction", "insight", "statement", "instruction", "intervention", "user",
)  # fmt: skip
"""Tags that say what kind of thing an episode tells, not what it is about."""
Weights = Mapping[str, float]

_SAME = 0.6
"""Share of the shorter statement's words that two statements of the same have in common."""
_MOST_SEEDS = 200
"""Maximum number of different statements of a community with which the others are compared."""
_MOST_POSTINGS = 2_000
_LEAST_WORD_CHARS = 3
_LEAST_SHARED_WORDS = 6
_MOST_READ_CHARS = 2_000


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


def said_again(changes: Sequence[Row], known: Collection[str] = ()) -> list[list[Row]]:
    """Return the changes of a history that state the same sentence in at least three builds, those of most builds first, each change once.

    Parameters
    ----------
    known : collection of str
        Ids of changes that a generalisation covers: with one of them a group may be of fewer builds.
    """
    stating: dict[str, list[Row]] = {}
    for row in changes:
        for said in _stated(row):
            stating.setdefault(said, []).append(row)
    found: list[list[Row]] = []
    taken: set[str] = set()
    for said in sorted(stating, key=lambda one: (-len(_evidence(stating[one])), one)):
        rows = [row for row in stating[said] if row["id"] not in taken]
        if len(_evidence(rows)) >= LEAST_BUILDS or any(row["id"] in known for row in rows):
            found.append(rows)
            taken.update(row["id"] for row in rows)
    return found


def shared_sentence(rows: Sequence[Row]) -> str | None:
    """Return the longest sentence that all of these changes state, as the first of them words it; None without one."""
    common = set(_stated(rows[0])).intersection(*map(_stated, rows))
    return _stated(rows[0])[max(common, key=lambda said: (len(said), said))] if common else None


def _stated(row: Row) -> dict[str, str]:
    """Return the sentences of a change that are long enough to say something, by their form for comparison."""
    sentences = sentences_of(statement_of(row))
    return {canonical_name(one.rstrip(".!")): one for one in sentences if len(one.split()) >= _LEAST_SHARED_WORDS}


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
