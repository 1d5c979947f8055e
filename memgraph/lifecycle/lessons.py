"""Compression: generalise the lessons that at least three builds state; generalisations outlast their episodes (seed 0; design §5).

Shared tags say where episodes belong, not that they have a lesson in common: five changes of one file may have nothing to do with each
other. So only those of a community become a generalisation that state the same in their words. Changes that a history records are grouped
by the sentences that they share, word for word, and trials by their task.

A generalisation says what happened again, how often and when, and its best account. Nothing is said that the episodes do not
say: the frame counts them, the rest is theirs, sentence by sentence. If no sentence of theirs can be repeated, there is no lesson.

A run writes only differences: it is idempotent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Any, get_args

from memgraph.extraction.error_text import failure_fingerprint
from memgraph.index.analyser import analyse
from memgraph.lifecycle.communities import LARGE_FROM, communities, tag_weights
from memgraph.lifecycle.episodes import (
    COMPRESSION_SOURCE,
    LEAST_BUILDS,
    LESSON_TYPES,
    Deletions,
    IncrementalRun,
    Scope,
    confidence_of,
    counted,
    dated,
    ended_at,
    evidence_in,
    evidence_of,
    in_order,
    is_of_a_tool,
    is_trial,
    is_true,
    linked_ids,
    may_quote,
    one_build_a_run,
    read_scope,
    task_of,
    when,
)
from memgraph.lifecycle.errors import troubles
from memgraph.lifecycle.reconcile import (
    Known,
    Lesson,
    agents_of,
    deleted_of,
    fields_of,
    has_lapsed,
    invalidated,
    known_of,
    matched,
    reconcile,
    shared_tags,
)
from memgraph.lifecycle.run import Plan, View, added, commits_of, last_run, never
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.build import CommitKind
from memgraph.model.events.records import COMPRESSION, BuildConsolidated, CompressionApplied
from memgraph.model.ids import canonical_name
from memgraph.model.results.learning import CompressionResult
from memgraph.ports import Embedder, Row
from memgraph.store import AgentMemoryStore
from memgraph.store.query import Reader
from memgraph.store.rows import in_bulk
from memgraph.text.attempts import quoted_lesson, stated, step_text, without_lead
from memgraph.text.cutting import whole_sentences
from memgraph.text.sentences import ended, enumerated, split_sentences
from memgraph.text.words import overlap
from memgraph.text.words import words_of as spelt

RETIRED_TEXT = "A generalisation that was made: too few of the builds that it was seen in are left to tell it."


@dataclass(slots=True)
class Experience:
    """The experience of a scope and an outcome."""

    scope: Scope
    outcome: str
    episodes: list[Row]
    """In id order: those in force, and those that faded but are evidence of a generalisation in force."""
    in_force: list[Known]
    put_away: list[Known] = field(default_factory=list)
    """The generalisations made of such episodes that are hidden, archived, deleted, or replaced by another memory."""
    solved: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """Successful trials of the scope in any state, by their task."""


def read_experience(reader: Reader, scope: Scope, deletions: Deletions, now: str) -> Iterator[Experience]:
    """Yield the episodes and generalisations of a scope by outcome."""
    index, in_force = reader.index, reader.listed() & ~reader.superseded()
    rows = one_build_a_run(reader, read_scope(reader, scope, LESSON_TYPES))
    listed = {row["id"] for row in rows if in_force[index.slot(row["id"])]}
    own = [row for row in rows if row["type"] == "semantic" and row.get("source") == COMPRESSION_SOURCE]
    deleted = [
        one for one in deleted_of(deletions, scope, COMPRESSION_SOURCE) if one.row.get("invalid_at", "9999") > now
    ]
    solved: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("outcome") == "positive" and (task := task_of(row)):
            solved.setdefault(task, []).append(row)
    by_outcome: dict[str, dict[str, Row]] = {}
    for row in (*own, *(row for row in rows if row["type"] == "episodic" and is_true(row, now))):
        there = by_outcome.setdefault(row.get("outcome", "unknown"), {})
        if row["type"] == "episodic":
            there[row["id"]] = row
    for outcome, evidence in sorted(by_outcome.items()):
        made = [row for row in own if row.get("outcome", "unknown") == outcome]
        known = known_of([row for row in made if row["id"] in listed], evidence)
        covered = listed.union(*(one.members for one in known))
        put_away = []
        for row in made:
            newer = linked_ids(index, row["id"], "SUPERSEDES", to_it=True)
            if row["id"] not in listed and not has_lapsed(row) and newer.isdisjoint(one["id"] for one in own):
                members = frozenset(row.get("source_event_ids", ()))
                put_away.append(Known(row, members, gone="deleted" if newer else ""))
        for one in deleted:
            is_kept = any(len(other.members & one.members) * 2 > len(one.members) for other in known)
            if one.row.get("outcome", "unknown") == outcome and not is_kept:
                put_away.append(one)
        episodes = [evidence[one] for one in sorted(evidence) if one in covered]
        yield Experience(scope, outcome, episodes, known, put_away, solved)


def compress(store: AgentMemoryStore, embedder: Embedder) -> CompressionResult:
    """Update the generalisations to match the current episodes. Deterministic, without a model."""
    reader = store.reader

    def concluded(result: CompressionResult, now: str, up_to_seq: int) -> CompressionApplied:
        names = ("episodes", "communities", "updated", "superseded", "retired")
        counts = {name: getattr(result, name) for name in names}
        later = (event.payload for event in reader.events_after(up_to_seq))
        left = {(one.project_id, one.build_id) for one in later if isinstance(one, BuildConsolidated)}
        counts |= {"created": result.compressed, "builds_left": len(left)}
        return CompressionApplied(applied_at=now, up_to_seq=up_to_seq, **counts)

    run = IncrementalRun(COMPRESSION, LESSON_TYPES, _planned, CompressionResult(), concluded)
    with in_bulk():
        return run.run(store, never, embedder=embedder, is_due=builds_since(reader) > 0)


def builds_since(reader: Reader) -> int:
    """Return how many builds were consolidated since compression last ran."""
    return int(last_run(reader, COMPRESSION).get("builds_since", 0))


def _planned(view: View, scope: Scope, deletions: Deletions) -> Plan[CompressionResult]:
    experiences = list(read_experience(view.reader, scope, deletions, view.now))
    shared = _Scope([row for one in experiences for row in one.episodes])
    parts = [_learned(view, one, shared) for one in experiences]
    total = CompressionResult()
    for part in parts:
        total = added(total, part.result)
    commits = [commit for part in parts for commit in part.commits]
    return Plan(total, commits, [text for part in parts for text in part.texts])


class _Scope:
    """What the episodes of a scope have in common, whatever their outcome."""

    def __init__(self, episodes: Sequence[Row]) -> None:
        self.is_large = len(episodes) >= LARGE_FROM
        self.weights = tag_weights(map(_tags, episodes))
        self.statements = Statements(episodes, tag_weights(map(words_of, episodes)))
        repeated = (trouble for trouble in troubles(episodes) if len(trouble.builds) >= LEAST_BUILDS)
        self.told_as_errors = {row["id"] for one in repeated for row in (*one.failed, *one.mended)}

    def communities(self, episodes: Sequence[Row]) -> list[list[Row]]:
        """Return the communities of some of them.

        Changes of a history are left out, as their tags name files, and what met a repeated error, or was reported by a tool: the analysis
        of errors tells of these, with what ended them.
        """
        kept = [
            row
            for row in episodes
            if task_of(row) or not (is_change(row) or is_of_a_tool(row) or row["id"] in self.told_as_errors)
        ]
        return communities_of(kept, self.weights, is_large=self.is_large)


def communities_of(episodes: Sequence[Row], weights: dict[str, float], *, is_large: bool) -> list[list[Row]]:
    """Return the communities: all trials of one named task, whatever their words, and otherwise episodes with shared tags."""
    by_task: dict[str, list[int]] = {}
    others: list[int] = []
    for place, row in enumerate(episodes):
        task = task_of(row)
        (others if task is None else by_task.setdefault(task, [])).append(place)
    found = communities([_tags(episodes[place]) for place in others], weights, is_large=is_large)
    groups = sorted([*by_task.values(), *([others[one] for one in members] for members in found)])
    return [[episodes[place] for place in group] for group in groups]


def _tags(row: Row) -> list[str]:
    return [canonical_name(tag) for tag in row.get("tags", ())]


def _learned(view: View, experience: Experience, scope: _Scope) -> Plan[CompressionResult]:
    """Plan what is to be written about one experience."""
    episodes, known = experience.episodes, experience.in_force
    covered = frozenset[str]().union(*(one.members for one in known))
    groups = scope.communities(episodes)
    found: list[list[Row]] = []
    for rows in groups:  # trials of one task are one group, others are divided by what they state
        found += [rows] if task_of(rows[0]) is not None else scope.statements.same(rows, covered)
    found += said_again([row for row in episodes if is_change(row)], covered)
    found = [sorted(rows, key=lambda row: str(row["id"])) for rows in found]
    same = matched([[row["id"] for row in rows] for rows in found], [*known, *experience.put_away])
    ids = {one.id for one in known}
    wanted = list[Lesson]()
    for rows, matching in zip(found, same, strict=True):
        # a lesson that was put away goes on only where no other does
        old = sorted(matching, key=lambda one: one.id not in ids)
        if len(evidence_in(rows)) >= LEAST_BUILDS:
            replaces = [one for one in old[1:] if one.id in ids]
            of = next(iter(old), None)
            lesson = _lesson(view.reader, experience, scope, by_centrality(rows), of, replaces)
            wanted += [lesson] if lesson else []
    latest = max((row.get("occurred_at", "") for row in episodes), default="")
    lapse = partial(invalidated, view.now, ends_at=latest)
    done = reconcile(view, wanted, known, lapse=lapse, lapsed_text=RETIRED_TEXT)
    result = CompressionResult(
        compressed=len(done.made),
        episodes=len(episodes),
        communities=sum(len(rows) > 1 for rows in groups),
        updated=len(done.grown),
        superseded=sum(len(one.replaces) for one in wanted if one.key in done.ids),
        retired=len(done.lapsed),
        new_memory_ids=done.made,
    )
    return Plan(result, commits_of(experience.scope[1], done.units), done.texts)


def _lesson(
    reader: Reader,
    experience: Experience,
    scope: _Scope,
    central: Sequence[Row],
    of: Known | None,
    replaces: Sequence[Known],
) -> Lesson | None:
    """Return the generalisation of episodes that state the same, the most typical first; None if they have no lesson.

    It continues one that is known, and replaces those that were joined with that.
    """
    rows, evidence, solved = in_order(central), evidence_in(central), _solved(experience, central)
    seen = counted(evidence, central)
    fields = fields_of(rows, experience.scope, COMPRESSION_SOURCE)
    times = _times(reader, experience, central)
    until = [*times, *_times(reader, experience, solved or ())]
    against = evidence_in(_against(experience, central, scope)) - evidence
    plain, of_trials = generalised(central, experience.outcome, seen, times=times, solved=solved, against=len(against))
    if plain is None:
        return None
    tags = shared_tags(central)
    is_told = (
        of is not None and not (of.gone or of.lost) and of.row.get("pattern") == plain
    )  # somebody may have reworded it
    fields |= {
        **({"tags": tags} if tags else {}),  # else they are extracted from the text
        "outcome": experience.outcome,
        "confidence": confidence_of(len(evidence)),
        "title": title_of(central),
        "agents_involved": agents_of(rows),
        "occurred_at": max(until, default=fields["occurred_at"]),
        **({} if is_told else {"content": plain}),
        "pattern": plain,
        "incorrect_approach": None,  # up to 0.3 the analysis of errors had added these
        "correct_approach": None,
        "reason": f"the same was seen {seen}",
        **of_trials,
    }
    members, replaced = (
        "\x1f".join(sorted(ids)) for ids in ([row["id"] for row in rows], [one.id for one in replaces])
    )
    scoped = [part or "" for part in (*experience.scope, experience.outcome)]
    return Lesson(
        "\x1f".join(["generalisation", *scoped, members, replaced]),
        fields,
        [row["id"] for row in central],
        evidence,
        of,
        besides=[row["id"] for row in solved or ()],
        replaces=replaces,
    )


def _times(reader: Reader, experience: Experience, rows: Iterable[Row]) -> list[str]:
    """Return when evidence came, ascending: a merged episode has the time of one of its builds only."""
    times: dict[str, str] = {}
    for row in rows:
        for key in evidence_of(row):
            if at := ended_at(reader, key, experience.scope[0]) or row.get("occurred_at", ""):
                times[key] = min(at, times.get(key, at))
    return sorted(times.values())


def _against(experience: Experience, covered: Sequence[Row], scope: _Scope) -> list[Row]:
    """Return the episodes that state the same with the opposite outcome."""
    opposite = {"positive": "negative", "negative": "positive"}.get(experience.outcome)
    if opposite is None or is_change(covered[0]) or task_of(covered[0]) is not None:
        return []
    return [row for row in scope.statements.like(covered, opposite) if may_quote(row, covered)]


def _solved(experience: Experience, covered: Sequence[Row]) -> Sequence[Row] | None:
    """Return the trials that solved the failed trials' task; None if they must not be quoted, as “unsolved” would be wrong."""
    tasks = {task_of(row) for row in covered}
    task = tasks.pop() if len(tasks) == 1 else None
    if task is None or experience.outcome != "negative":
        return None
    solved = experience.solved.get(task, ())
    said = [row for row in solved if not row.get("is_suppressed") and "invalid_at" not in row]
    return [row for row in said if may_quote(row, covered)] or (None if solved else [])


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
_LEAST_WORD_CHARS = 3
_LEAST_SHARED_WORDS = 6
_MOST_READ_CHARS = 2_000


def is_change(row: Row) -> bool:
    """Return whether an episode is a change that a history records."""
    return bool(row.get("git_commit"))


def statement_of(row: Row) -> str:
    """Return what an episode says, without what kind of thing it is and the place that stands behind it."""
    text = without_lead(" ".join(stated(row["content"]).split()), row.get("tags", ()))
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


def _stated(row: Row) -> dict[str, str]:
    """Return the sentences of a change that are long enough to say something, by their form for comparison."""
    sentences = dict.fromkeys(ended(one) for one in split_sentences(statement_of(row), "quoted"))
    return {canonical_name(one.rstrip(".!")): one for one in sentences if len(one.split()) >= _LEAST_SHARED_WORDS}


class Statements:
    """What the episodes of a scope say, whatever their outcome, compared by their words; one without a weight says nothing in this scope."""

    def __init__(self, rows: Iterable[Row], weights: Weights) -> None:
        self._rows = list(rows)
        self._weights = weights

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
        form = (self._telling(members[0]), _topics(members[0]))
        others = ((row, words) for row, words in self._told if row.get("outcome") == outcome)
        return [row for row, words in others if _is_same(form, (words, frozenset()))]

    @cached_property
    def _told(self) -> list[tuple[Row, frozenset[str]]]:
        return [(row, self._telling(row)) for row in self._rows]

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
_LEAST_SPOKEN_CHARS = 3
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
    return frozenset(word for word in spelt(text) if len(word) >= _LEAST_SPOKEN_CHARS and word.isalpha())


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
        stated = list(map(_stated, central))
        common = max(set(stated[0]).intersection(*stated[1:]), key=lambda one: (len(one), one), default=None)
        return f"Stated {seen}{when(times)}: “{stated[0][common].removesuffix('.')}”." if common else None
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


_WORDS_OF_A_NAME = 4
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
    found = [f"{head}." if is_name else f"{head}: “{_short(asked_for, _EXAMPLE_CHARS)}”"]
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
    return next((_short(row[name], _CASE_CHARS) for row in rows if row.get(name)), "")


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
