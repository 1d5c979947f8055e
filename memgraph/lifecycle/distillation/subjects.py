"""Subjects of work orders in a store: what rules leave undecided, each with its question and the texts to judge by. Pure reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from memgraph.extraction.secrets import redact
from memgraph.index.columns import TRUST
from memgraph.lifecycle.communities import LARGE_FROM, communities, tag_weights
from memgraph.lifecycle.contradictions.resolution import still_open
from memgraph.lifecycle.contradictions.search import open_questions
from memgraph.lifecycle.counting.kept import kept_rules, projects_of
from memgraph.lifecycle.counting.records import HOT_SPOT, MENDED, REVERTED
from memgraph.lifecycle.errors import Trouble, troubles
from memgraph.lifecycle.evidence.evidence import LEAST_BUILDS, evidence_of, in_order
from memgraph.lifecycle.evidence.experience import Experience
from memgraph.lifecycle.evidence.trials import task_of
from memgraph.model.base import MAX_TEXT_CHARS
from memgraph.model.ids import canonical_name, natural_id
from memgraph.model.memory import TrustClass
from memgraph.model.results.learning import MAX_ORDER_MEMORIES, OrderKind
from memgraph.ports import Row
from memgraph.store.query import Reader
from memgraph.text.cutting import fitted
from memgraph.text.safe import visible_line

MAX_EXCERPT_CHARS = MAX_TEXT_CHARS
_MOST_QUOTED = 20
_MOST_FAILED, _MOST_FIXED = 8, 4
_DETAILS = ("lesson", "explained", "worked", "last_error", "decision", "reasoning", "action", "result")

QUESTIONS: dict[OrderKind, str] = {
    "long session": "What should be remembered of this session? The rules that the user stated, decisions with their reasons, the "
    "final cause of a problem that took several attempts with what was tried in vain, and facts about the environment.",
    "returned failure": "This failure came back after it had been fixed. What causes it, what fixed it for good if anything did, and "
    "what was tried in vain?",
    "community": "These episodes have something in common, but no lesson could be stated by rules. Which lesson do several of them "
    "support: a common cause with its remedy, or a rule that more than one states? If there is none, answer without statements.",
    "contradiction": "Do these two statements contradict each other? If they can both be true, the verdict is “both hold”; if one of "
    "them is no longer or never was true, it is “older holds” or “newer holds”.",
}


@dataclass(frozen=True, slots=True)
class Subject:
    """What a work order asks about.

    Attributes
    ----------
    key : str
        Identifies the subject; together with kind and project it determines the id of the order.
    value : float
        The expected use of an answer, in [0, 1]. Highest for a returned failure, which costs again each time; then for an undecided contradiction,
        which misleads recalls; then for a missing lesson; lowest for a session.
    """

    kind: OrderKind
    key: str
    excerpt: str
    value: float
    source_at: str
    trust_class: TrustClass
    project_id: str | None = None
    task_id: str | None = None
    build_id: str | None = None
    subject_ids: list[str] = field(default_factory=list)
    source_event_ids: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        """Id of its work order."""
        return natural_id("work order", f"{self.kind}\x1f{self.key}", project_id=self.project_id)


def communities_without_lesson(experiences: Sequence[Experience]) -> Iterator[Subject]:
    """Yield communities of at least three builds whose episodes are mostly covered by no generalisation, not even a hidden one.

    Valid after compression has seen the episodes.
    """
    for experience in experiences:
        known = [*experience.in_force, *experience.put_away]
        covered = frozenset[str]().union(*(one.members for one in known))
        for rows in _communities(experience.episodes):
            builds = frozenset[str]().union(*map(evidence_of, rows))
            if min(len(builds), len(rows)) < LEAST_BUILDS or 2 * sum(row["id"] in covered for row in rows) > len(rows):
                continue
            most = 0.8 if experience.outcome == "negative" else 0.4  # failures teach more than what went well
            quoted = in_order(rows)[-_MOST_QUOTED:]
            key = ",".join(sorted(row["id"] for row in quoted))
            yield from _about("community", key, quoted, most * (1 - 1 / (1 + len(builds) / 3)))


def counted_places(reader: Reader) -> Iterator[Subject]:
    """Yield the commits that speak for each counted rule about what goes wrong at a file: its fixes, what was mended, what was taken back."""
    index, in_force = reader.index, reader.listed() & ~reader.superseded()
    for rule in (rule for project in projects_of(reader) for rule in kept_rules(reader, project)):
        if in_force[index.slot(rule["id"])] and rule.get("category") in (HOT_SPOT, MENDED, REVERTED):
            rows = in_order(reader.rows(index.supporting_ids(rule["id"])))
            if len(rows) >= LEAST_BUILDS:
                key = ",".join(row["id"] for row in rows)
                yield from _about("community", key, rows, 0.5 * (1 - 1 / (1 + len(rows) / 3)), counted=rule["content"])


def _communities(episodes: Sequence[Row]) -> list[list[Row]]:
    """Return the trials of each task, and the communities of other episodes by their tags."""
    by_task: dict[str, list[Row]] = {}
    others: list[Row] = []
    for row in episodes:
        task = task_of(row)
        (others if task is None else by_task.setdefault(task, [])).append(row)
    tags = [[canonical_name(tag) for tag in row.get("tags", ())] for row in others]
    found = communities(tags, tag_weights(tags), is_large=len(others) >= LARGE_FROM)
    return [*by_task.values(), *([others[place] for place in members] for members in found)]


def returned_failures(reader: Reader, experiences: Sequence[Experience]) -> Iterator[Subject]:
    """Yield failures that occurred again, in another build, after a fix."""
    scopes: dict[object, list[Row]] = {}
    for experience in experiences:
        scopes.setdefault(experience.scope, []).extend(experience.episodes)
    for rows in scopes.values():
        for trouble in troubles(in_order(rows)):
            if trouble.failed and trouble.mended and (found := _returns(reader, trouble)):
                quoted = in_order([*in_order(trouble.failed)[-_MOST_FAILED:], *in_order(trouble.mended)[-_MOST_FIXED:]])
                yield from _about(
                    "returned failure", f"{trouble.fingerprint} {found[-1]}", quoted, 1 - 0.5 ** (len(found) + 1)
                )


def undecided_contradictions(reader: Reader, changed_ids: Iterable[str]) -> Iterator[Subject]:
    """Yield the open contradictions, and changed statements that are near others; the older memory comes first."""
    found = [((one.older.id, one.newer.id), 0.9 * (one.score or 0.5)) for one in still_open(reader)]
    near = open_questions(reader, changed_ids)
    for ids, value in [*found, *(((pair.older.id, pair.newer.id), 0.6 * pair.cosine) for pair in near)]:
        yield from _about("contradiction", " ".join(ids), reader.rows(ids), value)


def _returns(reader: Reader, trouble: Trouble) -> list[str]:
    """Return, in order, the builds in which a failure occurred again after a fix, except the build of the fix."""
    met = [(at, False, build) for row in trouble.failed for build, at in _builds_of(reader, row)]
    fixed = [(at, True, build) for row in trouble.mended for build, at in _builds_of(reader, row)]
    found: list[str] = []
    fixed_in: set[str] = set()
    for _, is_fix, build in sorted([*met, *fixed]):
        if is_fix:
            fixed_in.add(build)
        elif fixed_in and build not in fixed_in:
            found.append(build)
            fixed_in.clear()
    return found


def _builds_of(reader: Reader, row: Row) -> Iterator[tuple[str, str]]:
    """Yield the builds of an episode, and when each was completed: an episode that was merged has several."""
    for build in evidence_of(row):
        known = reader.record("Build", natural_id("build", build, project_id=row.get("project_id"))) or {}
        yield build, known.get("completed_at") or row["occurred_at"]


def _about(kind: OrderKind, key: str, rows: Sequence[Row], value: float, *, counted: str = "") -> Iterator[Subject]:
    """Yield the subject of some memories of one scope if all of them are public: an order shows their texts to whoever answers it."""
    if not rows or any(row.get("privacy_tier", "public") != "public" or row.get("is_suppressed") for row in rows):
        return
    sources = dict.fromkeys(one for row in rows for one in row.get("source_event_ids", ()))
    yield Subject(
        kind=kind,
        key=key,
        excerpt=excerpt_of([*([counted] if counted else []), *map(text_shown, rows)]),
        value=round(value, 6),
        source_at=max(row["occurred_at"] for row in rows),
        trust_class=max((row.get("trust_class", "agent") for row in rows), key=TRUST.index),
        project_id=rows[0].get("project_id"),
        task_id=rows[0].get("task_id"),
        subject_ids=[row["id"] for row in rows][:MAX_ORDER_MEMORIES],
        source_event_ids=list(sources)[:MAX_ORDER_MEMORIES],
    )


def text_shown(row: Row) -> str:
    """Return the text of a memory, with the fields that the text omits."""
    outcome = f", {row['outcome']}" if row.get("outcome", "unknown") != "unknown" else ""
    details = [
        f"{name.replace('_', ' ')}: {row[name]}"
        for name in _DETAILS
        if row.get(name) and row[name] not in row["content"]
    ]
    return "\n".join([f"{row['occurred_at'][:10]}{outcome}", row["content"], *details])


def excerpt_of(texts: Sequence[str]) -> str:
    """Return texts as the numbered parts of one excerpt: without secrets and invisible characters, the longest ones shortened to fit."""
    # secrets first: a truncated one would not be recognised
    lines = ["\n".join(filter(None, map(visible_line, redact(text).value.split("\n")))) for text in texts]
    frame = len("[999]\n\n\n")
    shown = fitted(lines, MAX_EXCERPT_CHARS - frame * len(lines))
    return "\n\n".join(f"[{number}]\n{text}" for number, text in enumerate(shown, start=1))
