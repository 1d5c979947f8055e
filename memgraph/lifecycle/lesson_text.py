"""What episodes state, which of them state the same, and what is said of them without a model. Pure.

Shared tags say where episodes belong, not that they have a lesson in common: five changes of one file may have nothing to do with each
other. So only those of a community become a generalisation that state the same in their words. Changes that a history records are grouped
by the sentences that they share, word for word.

A generalisation says what happened again, how often and when, and its best account. Nothing is said that the episodes do not say: the
frame counts them, the rest is theirs, sentence by sentence. If no sentence of theirs can be repeated, there is no lesson.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, get_args

from memgraph.extraction.error_text import failure_fingerprint
from memgraph.index.analyser import analyse
from memgraph.lifecycle.episodes import LEAST_BUILDS, dated, evidence_in, is_trial, task_of, when
from memgraph.lifecycle.reconcile import shared_tags
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.build import CommitKind
from memgraph.model.ids import canonical_name
from memgraph.ports import Row
from memgraph.text import lazy_re as re
from memgraph.text.attempts import quoted_lesson, step_text, without_lead
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
    """Return the changes that state the same sentence in at least three builds, those of most builds first, each change once.

    With a change that a generalisation covers (`known`), a group may be of fewer builds.
    """
    stating: dict[str, list[Row]] = {}
    for row in changes:
        for said in _stated(row):
            stating.setdefault(said, []).append(row)
    found: list[list[Row]] = []
    taken: set[str] = set()
    for said in sorted(stating, key=lambda one: (-len(evidence_in(stating[one])), one)):
        rows = [row for row in stating[said] if row["id"] not in taken]
        if len(evidence_in(rows)) >= LEAST_BUILDS or any(row["id"] in known for row in rows):
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
    """What the episodes of a scope say, whatever their outcome, compared by their words; one without a weight says nothing in this scope."""

    def __init__(self, rows: Iterable[Row], weights: Weights) -> None:
        self._rows = list(rows)
        self._weights = weights
        self._postings: dict[str, list[Row]] | None = None

    def same(self, members: Sequence[Row], known: Collection[str] = ()) -> list[list[Row]]:
        """Return the groups of a community whose members state the same, each seen in at least three builds.

        What a generalisation covers (`known`) and is left over forms a group with what is like it, however small.
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
            builds = [len(evidence_in(group)) for group in rows]
            best = max(range(len(groups)), key=lambda place: (builds[place], -place))
            if builds[best] < LEAST_BUILDS:
                break
            found.append(rows[best])
            left.difference_update(groups.pop(best))
        covered = [form for form in left if any(row["id"] in known for row in forms[form])]
        rest = [row for form in left if any(_is_same(one, form) for one in covered) for row in forms[form]]
        return [*found, rest] if rest else found

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
        others = [row for row in near.values() if row.get("outcome") == outcome]
        return [row for row in others if _is_same(form, (self._telling(row), frozenset()))]

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


def generalised(
    central: Sequence[Row],
    outcome: str,
    seen: str,
    *,
    times: Sequence[str] = (),
    solved: Sequence[Row] | None = None,
    against: int = 0,
) -> tuple[str | None, dict[str, Any]]:
    """Return the text of a generalisation of the most typical episodes first, whole sentences only, and its fields as one of trials.

    No text: there is no lesson. `times` are those of all builds that are its evidence, and in so many others it was `against` it: the same
    ended otherwise.
    """
    tasks = {task_of(row) for row in central}
    if is_trial(central[0]) and (len(central) == 1 or (len(tasks) == 1 and None not in tasks)):
        return _of_trials(central, seen, solved)
    return _of_episodes(central, outcome, seen, times, against), {"asked": None, "lesson": None}


def _of_episodes(central: Sequence[Row], outcome: str, seen: str, times: Sequence[str], against: int) -> str | None:
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


def _account(row: Row, limit: int) -> str:
    """Return what an episode says in whole sentences; nothing if its first one is too long, or says nothing."""
    if row.get("worked_how"):
        told = step_text(row)
    elif is_trial(row):  # without what was done
        names = ("asked", "lesson", "acted_on", "last_error", "result")
        told = " ".join(row[name] for name in names if row.get(name))
    else:
        told = statement_of(row)
    said = _short(told, limit)
    return said if "…" not in said and len(words_of(row)) > 1 else ""


_LESSON_CHARS, _REQUEST_CHARS = 420, 180
_WORDS_OF_A_NAME, _LONGEST_NAME = 4, 80
_LEAST_TOOLS = 2
"""A single called tool does not describe an approach."""


def _of_trials(rows: Sequence[Row], seen: str, solved: Sequence[Row] | None) -> tuple[str | None, dict[str, Any]]:
    """Summarise trials of one task with the same end: what stopped them, and what solved it or the lesson.

    There is no lesson if no reason for their result is recorded, and all had the same. Of failed ones `solved` are the trials that solved the
    task; None: there are some, but they must not be quoted.
    """
    asked_for, is_failed = str(rows[0]["asked"]), rows[0].get("outcome") == "negative"
    name = asked_for.rstrip(".")
    is_unsolved = is_failed and solved is not None and not solved
    is_name = (
        len(name.split()) <= _WORDS_OF_A_NAME and len(name) <= _LONGEST_NAME and not name.endswith(("?", "!", "…"))
    )
    failed = len({build for row in rows for build in row.get("evidence_build_ids", ())})
    of = f"{seen} of {name}" if is_name else seen
    if not is_failed:
        head = f"Solved {of}{', after it had failed' if rows[0].get('acted_on') else ''}"
    elif solved is None:
        head = f"Failed {of}"
    else:
        head = f"Failed {of}, solved in {_which(solved)}" if solved else f"Never solved {of}"
    found = [f"{head}." if is_name else f"{head}: “{_short(asked_for, _REQUEST_CHARS)}”"]
    acted_on = _first(solved or (), "acted_on")
    part = "lesson" if any(row.get("lesson") for row in rows) else "acted_on"
    by_evidence = sorted(rows, key=lambda row: -len(row.get("evidence_build_ids", ())))
    said = _first(by_evidence, part)
    lesson = said if part == "lesson" and not acted_on else ""
    if acted_on:
        found.append(f"The trial that solved it acted on this: “{acted_on}”")
    elif said:
        found.append(quoted_lesson(said) if lesson else f"What was acted on: “{said}”")
        if is_unsolved and len(by_evidence) + failed > 2:
            found.append("No trial has succeeded with it so far.")
    decided = "" if acted_on else _first(solved or (), "explained")
    if decided:
        found.append(f"What decided the trial that solved it: “{decided}”")
    called, is_decisive = _called(rows, solved or ())
    found += called
    error, met = _common_error(rows)
    if error:
        of_all = met == _many(rows)
        found.append(f"{'Their last error' if of_all else f'The last error of {met:,} of them'} was: {error}")
    if not (said or acted_on or decided or error or is_decisive):
        return None, {}
    while len(" ".join(found)) > MAX_CONTENT_CHARS and len(found) > 1:
        found.pop()
    text = whole_sentences(" ".join(found), MAX_CONTENT_CHARS)
    is_told = bool(lesson) and quoted_lesson(lesson) in text
    return text, {
        "asked": name if is_name else None,
        "lesson": lesson if is_told else None,
        "is_solved": True if is_failed and solved else None,
    }


def _which(solved: Sequence[Row]) -> str:
    """Return which trials solved the task: their numbers, where the source counts them, else how many."""
    many, numbers = _many(solved), sorted({row["attempt"] + 1 for row in solved if row.get("attempt") is not None})
    if len(numbers) == many:
        return f"trial{'s' if many > 1 else ''} {enumerated(list(map(str, numbers)))}"
    return "another" if many == 1 else f"{many:,} others"


def _first(rows: Sequence[Row], name: str) -> str:
    """Return what the first of some trials that has it says in a field, in whole sentences."""
    return next((_short(row[name], _LESSON_CHARS) for row in rows if row.get(name)), "")


def _short(text: str, limit: int) -> str:
    return whole_sentences(ended(" ".join(text.split())), limit)


def _called(failed: Sequence[Row], solved: Sequence[Row]) -> tuple[list[str], bool]:
    """Return which tools the trial that solved it called, and whether no failed one called some of them."""
    others = {name for one in failed for name in one.get("tools_called", ())}
    names = list(dict.fromkeys(name for one in solved for name in one.get("tools_called", ())))
    if len(names) < _LEAST_TOOLS:
        return [], False
    own = [name for name in names if name not in others] if others else []
    is_decisive = 0 < len(own) < len(names)
    alone = f"; no failed one called {_enumerated(own)}" if is_decisive else ""
    return [f"What the solved trial called: {_enumerated(names)}{alone}."], is_decisive


def _common_error(rows: Sequence[Row]) -> tuple[str | None, int]:
    """Return the error that was the last one of at least two thirds of the trials, and of how many."""
    errors, texts = Counter[str](), dict[str, str]()
    for row in rows:
        if said := row.get("last_error"):
            errors[failure_fingerprint(said)] += _many([row])
            texts[failure_fingerprint(said)] = ended(said)
    same, met = next(iter(errors.most_common(1)), ("", 0))
    error = texts.get(same)
    return (error, met) if met >= min(2, len(rows)) and 3 * met >= 2 * _many(rows) else (None, 0)


def _many(rows: Sequence[Row]) -> int:
    """Return how many trials some episodes tell of."""
    return sum(max(1, len(row.get("evidence_build_ids", ()))) for row in rows)


def _enumerated(names: Sequence[str]) -> str:
    return enumerated([f"`{name}`" for name in names])
