"""Lessons: groups of episodes that state the same, and what is said of them without a model. Pure.

Shared tags say where episodes belong, not that they have a lesson in common: five changes of one file may have nothing to
do with each other. So only those episodes of a community become a generalisation that state the same in their words.
Changes that a history records are grouped by the sentences that they share, word for word (`said_again`).

A generalisation says what happened again, how often and when, and its best account in its own words. Nothing is said that
the episodes do not say: the frame counts them, the rest is theirs, sentence by sentence, and cut only between words. If no
sentence of theirs can be repeated, there is no lesson.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import get_args

from memgraph.index.analyser import analyse
from memgraph.lifecycle.evidence.evidence import LEAST_BUILDS, dated, evidence_of, when
from memgraph.lifecycle.evidence.reconcile import shared_tags
from memgraph.lifecycle.evidence.trials import Trials, asked_and_learned, is_trial, of_trials, task_of
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.build import CommitKind
from memgraph.model.ids import canonical_name
from memgraph.ports import Row
from memgraph.text import lazy_re as re
from memgraph.text.attempts import step_text, without_lead
from memgraph.text.cutting import whole_sentences
from memgraph.text.sentences import ended, enumerated, split_sentences
from memgraph.text.words import overlap

KINDS = (
    *get_args(CommitKind), "change", "breaking", "restoration", "summary", "partial", "decision", "removal", "failure", "lesson", "recovery", "solution",
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
    sentences = dict.fromkeys(ended(one) for one in split_sentences(statement_of(row), "quoted"))
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


_MOST_COMPARED = 200
"""Of a larger group so many of the most typical are compared by their words."""
_MOST_EXAMPLES = 3
_CASE_CHARS = 420
_EXAMPLE_CHARS = 180
_LONGEST_NAME = 80
_WORD = re.compile(r"[^\W\d_]{3,}")
_ALIKE = 0.6

_FRAMES: dict[str, str] = {
    "fix": "The same had to be fixed",
    "decision": "The same was decided",
    "revert": "The same was taken back",
    "failure": "The same failed",
    "lesson": "Trials failed for the same reason",
    "recovery": "The same failed at first and then went well",
    "solution": "The same was solved",
    "correction": "The user corrected the same",
    "insight": "The same was found out",
    "positive": "The same worked",
    "negative": "The same went wrong",
    "neutral": "The same went well only in part",
    "unknown": "The same was noted",
}
"""What happened, for the kind of thing that most of the episodes tell, or else their outcome. Other kinds teach nothing."""
_AGAINST = {"positive": "It went wrong", "negative": "It went well"}


def title_of(rows: Sequence[Row]) -> str | None:
    """Return what more than half of some episodes are about."""
    titles = Counter(filter(None, (row.get("title") for row in rows)))
    return next((name for name, many in sorted(titles.items()) if many * 2 > len(rows)), None)


def by_centrality(episodes: Sequence[Row]) -> list[Row]:
    """Return the episodes, the most typical first: by the words that they share with the others, then by how often they were seen and by id."""
    words = [_spoken(row["content"]) for row in episodes]
    frequency = Counter(word for own in words for word in own)

    def rank(place: int) -> tuple[float, int, str]:
        common = sum(frequency[word] - 1 for word in words[place]) / (len(words[place]) + 5.0)
        row = episodes[place]
        return (-round(common, 6), -len(row.get("evidence_build_ids", ())), row["id"])

    return [episodes[place] for place in sorted(range(len(episodes)), key=rank)]


@lru_cache(maxsize=16_384)
def _spoken(text: str) -> frozenset[str]:
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
    outcome: str,
    seen: str,
    *,
    times: Sequence[str] = (),
    solved: Sequence[Row] | None = None,
    against: int = 0,
) -> str | None:
    """Return the text of a generalisation, of at most 800 characters, whole sentences only; None if there is no lesson.

    Parameters
    ----------
    central : sequence of Row
        The episodes, the most typical first.
    seen : str
        How often, as `counted` says it.
    times : sequence of str
        When: of all builds that are its evidence, not only of the first that told each episode.
    solved : sequence of Row or None
        Of failed trials, as `of_trials` takes it.
    against : int
        In how many other builds the same ended otherwise.
    """
    if trials := trials_of_one_task(central, seen, solved):
        return trials.text or None
    if all(map(is_change, central)):
        stated = shared_sentence(central)
        return f"Stated {seen}{when(times)}: “{stated.removesuffix('.')}”." if stated else None
    kind = kind_of(central) or outcome
    if kind not in _FRAMES:
        return None
    told = f"{_FRAMES[kind]}{_at(central)} {seen}{when(times)}"
    if len(central) == 1:
        said = _account(central[0], _CASE_CHARS)
        return f"{told}: {said}" if said else None
    accounts = _accounts(central)
    if not accounts:
        return None
    dates = when(times).startswith(", from")
    best, *others = (f"“{said.removesuffix('.')}”{dated(row) if dates else ''}" for said, row in accounts)
    text = f"{told}: {best}."
    rest = f" {_AGAINST[outcome]} in {against:,} other {'build' if against == 1 else 'builds'}." if against else ""
    for most in range(min(len(others), _MOST_EXAMPLES - 1), 0, -1):
        more = f" Also: {enumerated(others[:most])}."
        if len(text) + len(more) + len(rest) <= MAX_CONTENT_CHARS:
            return f"{text}{more}{rest}"
    return f"{text}{rest}"


def trials_of_one_task(central: Sequence[Row], seen: str, solved: Sequence[Row] | None) -> Trials | None:
    """Return the summary of episodes that are trials of one task; None for others. Parameters are those of `generalised`."""
    if is_trial(central[0]) and (len(central) == 1 or _is_of_one_task(central)):
        return of_trials(central, seen, solved)
    return None


def _at(rows: Sequence[Row]) -> str:
    """Return what the episodes are about, in words: the file or thing of most of them, else the tags that they share."""
    title = title_of(rows)
    if title and " " not in title and len(title) <= _LONGEST_NAME:
        return f" with `{title.rstrip('/').rsplit('/', 1)[-1]}`"
    tags = [f"`{tag}`" for tag in shared_tags(rows) if tag not in KINDS and len(tag) <= _LONGEST_NAME][:3]
    return f" with {enumerated(tags)}" if tags else ""


def _accounts(central: Sequence[Row]) -> list[tuple[str, Row]]:
    """Return what some of the episodes say, each something else than those before it, the most typical first."""
    found: list[tuple[str, Row, frozenset[str]]] = []
    for row in central[:_MOST_COMPARED]:
        limit = _EXAMPLE_CHARS if found else _CASE_CHARS
        said = _account(row, limit)
        words = _spoken(said)
        if said and all(overlap(words, other) < _ALIKE for _, _, other in found):
            found.append((said, row, words))
    return [(said, row) for said, row, _ in found[:_MOST_EXAMPLES]]


def kind_of(episodes: Sequence[Row]) -> str | None:
    """Return the kind of thing that two thirds of the episodes tell, if there is one, such as "fix"."""
    kinds = Counter(kind for row in episodes for kind in KINDS if kind in row.get("tags", ()))
    return next((kind for kind in KINDS if kinds[kind] * 3 >= len(episodes) * 2), None)


def _is_of_one_task(rows: Sequence[Row]) -> bool:
    tasks = {task_of(row) for row in rows}
    return len(tasks) == 1 and None not in tasks


def _account(row: Row, limit: int) -> str:
    """Return what an episode says in whole sentences; nothing if its first one is too long, or says nothing."""
    told = step_text(row) if row.get("worked_how") else asked_and_learned(row) if is_trial(row) else statement_of(row)
    said = whole_sentences(ended(" ".join(told.split())), limit)
    return said if "…" not in said and len(words_of(row)) > 1 else ""
