"""Procedures from repeated solutions: the steps that led to success in three builds are proposed as a skill (seeds 1, 2, 3).

Episodes are compared by their steps alone, as compression compares them by their tags; a *way* is the common steps of a community, in
their order. Its trigger consists of the words that the goals of its episodes share.

A proposal is an archived memory whose reason says so: it is stored and can be viewed, but is never recalled. One event takes it out of the
archive and into force, and one event reverses that. A procedure in force keeps its approved text as long as all its evidence supports it;
its rates are updated. It never repeats statements found only in withdrawn episodes: it is composed again from the remaining ones, and
if these are too few it *lapses*, archived without its words. What is composed again, also when the episodes return, is a proposal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from math import ceil, isclose
from typing import Any

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.extraction.error_text import HEX, QUOTED
from memgraph.extraction.statements import steps_in
from memgraph.index.analyser import STOPWORDS
from memgraph.index.columns import TRUST
from memgraph.lifecycle.communities import LARGE_FROM, communities, tag_weights
from memgraph.lifecycle.episodes import (
    LEAST_BUILDS,
    Deletions,
    IncrementalRun,
    Scope,
    confidence_of,
    evidence_of,
    in_order,
    is_true,
    read_scope,
    strictness,
)
from memgraph.lifecycle.reconcile import (
    IN_FORCE,
    Known,
    Lesson,
    agents_of,
    confirmed,
    deleted_of,
    fields_of,
    fresh,
    known_of,
    matched,
    reconcile,
    revision,
    shared,
)
from memgraph.lifecycle.run import Commit, Plan, TimeIsUp, View, carry_out, commits_of, never
from memgraph.model.base import MAX_CONTENT_CHARS, MAX_ITEMS, checked
from memgraph.model.events.records import FADED, LEARNING, ProceduresLearned
from memgraph.model.memory import AgentMemory, ProceduralMemory, StoredMemory, id_of
from memgraph.model.results.learning import (
    LAPSED,
    PROPOSED,
    REJECTED,
    UNCONVINCING,
    ProcedureResult,
    Proposal,
    ProposalState,
)
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.commit.records import Write
from memgraph.store.outcomes import measurement, usage_counts, usage_factor
from memgraph.text import lazy_re as re
from memgraph.text.cutting import whole_sentences

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
_VARIABLE = {
    "<text>": QUOTED,
    "<url>": re.compile(r"\b[a-z]{2,8}://\S+"),
    "<file>": re.compile(
        r"(?<![\w<])(?:~|\.{1,2})?/?(?:[\w.@+-]+/)+[\w.@+-]*|\b[\w-]{1,80}\.(?:[a-z]{2,4}|[chr]|\d?[a-z]{2}\d|mp\d)\b(?!\()"
    ),
    "<id>": HEX,
    "<number>": re.compile(r"(?<![\w-])[+-]?\d[\d.,:]*(?!\w)"),
}
"""What varies in a step, by what stands for it in its key, in the order in which it is looked for."""
_NUMBERED = re.compile(r"(?:^|(?<=\s))(\d{1,3})[.)]\s")
_LIST_CHARS = 6_000
_STOP = re.compile(r"(?<=[\w)`'\"])[.;,]$")
"""The end of a sentence in a step; a command may end with a dot or a semicolon of its own."""
_PLACEHOLDER = {"<file>": "a file", "<url>": "an address", "<text>": "…", "<number>": "a number", "<id>": "an id"}


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its text, and its key, which leaves out what varies: files, addresses, numbers, quoted text, the arguments of a call."""

    key: str
    text: str


@lru_cache(maxsize=8_192)
def step_of(text: str) -> Step:
    """Return the step described by a text."""
    text = " ".join(text[:_STEP_CHARS].split())
    number = _NUMBERED.match(text)
    bare = _STOP.sub("", _PURPOSE.sub("", text[number.end() :] if number else text))
    plain = bare.replace("`", "").strip().removeprefix("run ").strip()
    name, mark, _ = plain.partition("(")
    if mark and name.replace(".", "").isidentifier():
        return Step(name.casefold(), bare)
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
    """Return the places in `own` of the steps that both have in the same order (Ratcliff and Metzener, 1988)."""
    blocks = SequenceMatcher(None, own, other, autojunk=False).get_matching_blocks()
    return tuple(place for block in blocks for place in range(block.a, block.a + block.size))


_LEAST_RATE = 0.5
"""Minimum success rate of a proposed way."""
_MOST_TRIGGER_WORDS = 6
_LEAST_TRIGGER_WORDS = 2


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


@dataclass(frozen=True, slots=True)
class Way:
    """A sequence of steps that led to success in at least three builds, however often it failed."""

    trigger: tuple[str, ...]
    """The words that say when to use it."""
    keys: tuple[str, ...]
    steps: tuple[str, ...]
    supporters: list[Attempt]
    """Attempts that followed it and succeeded, in order of time; each supports one way only."""
    builds: frozenset[str]
    """The builds of its evidence."""
    succeeded: int
    """Builds in which it led to success, including supporters of other ways."""
    tried: int
    """Builds in which it was followed."""

    @property
    def leads_there(self) -> bool:
        """Whether it led to success in at least half of the builds in which it was followed."""
        return self.succeeded >= _LEAST_RATE * self.tried


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
    """Return the repeated ways of a scope's attempts, which are in the order of time, whatever their outcome; those with the most evidence first."""
    good = sorted((one for one in attempts if one.went_well), key=lambda one: str(one.row["id"]))
    weights = tag_weights(attempt.keys for attempt in good)
    groups = communities([attempt.keys for attempt in good], weights, is_large=len(good) >= LARGE_FROM)
    found = [way for group in groups if (way := _way([good[place] for place in group], attempts))]
    return sorted(found, key=lambda way: (-len(way.builds), way.keys, way.trigger))


def _way(members: Sequence[Attempt], attempts: Sequence[Attempt]) -> Way | None:
    """Return the common way of a community and all attempts that followed it; None if it led to success in too few builds."""
    common = common_way([attempt.keys for attempt in members])
    if common is None:
        return None
    own = members[common[0]]
    keys = tuple(own.keys[place] for place in common[1:])
    went = {attempt.row["id"]: attempt for attempt in members if follows(attempt.keys, keys)}
    trigger = _trigger([*went.values()], own, keys)
    words = set(trigger)
    is_of_the_goal = any(words & set(attempt.goal) for attempt in went.values())

    def wanted(attempt: Attempt) -> bool:
        return not is_of_the_goal or 2 * len(words & set(attempt.goal)) >= len(words)

    same = [attempt for attempt in attempts if follows(attempt.keys, keys) and wanted(attempt)]
    supporters = [attempt for attempt in same if attempt.row["id"] in went]
    builds = _builds(supporters)
    if not trigger or len(builds) < LEAST_BUILDS:
        return None
    steps = tuple(_step_text(place, keys, supporters) for place in range(len(keys)))
    succeeded = _builds([one for one in same if one.went_well])
    tried = succeeded | _builds([one for one in same if one.row.get("outcome") == "negative"])
    return Way(trigger, keys, steps, supporters, builds, len(succeeded), len(tried))


def _trigger(went: Sequence[Attempt], own: Attempt, keys: Sequence[str]) -> tuple[str, ...]:
    """Return the words that most goals share, in order of use; else the name of the first step that has several words."""
    goals = Counter(word for attempt in went for word in attempt.goal)
    common = [word for word, many in goals.most_common() if many * 2 > len(went)][:_MOST_TRIGGER_WORDS]
    if len(common) >= _LEAST_TRIGGER_WORDS:
        return tuple(word for word in dict.fromkeys([*own.goal, *common]) if word in common)
    names = (key.split("_") for key in keys if "_" in key)
    return next((tuple(name) for name in names if all(part.isalnum() for part in name)), ())


def _step_text(place: int, keys: Sequence[str], supporters: Sequence[Attempt]) -> str:
    """Return the text of a step; of a repeated step, in the words of those repetitions."""
    nth = keys[:place].count(keys[place])
    taken = [[step for step in attempt.steps if step.key == keys[place]] for attempt in supporters]
    steps = [same[min(nth, len(same) - 1)] for same in taken if same]
    return rendered(steps, steps[0])


SOURCE = "procedures"
"""The `source` of procedures learned here."""
LAPSED_TEXT = "A procedure that was learned: too few of the builds that it worked in are left to tell it."
LEAST_CONFIDENCE = 0.3
"""A procedure below this confidence that was never used is archived (seed 1)."""
MOST_OVERRIDES = 3
"""A procedure that was overridden this often and never used is archived."""
LATER_SUCCESSES = 2
"""Builds after a proposal in which it must work before evidence may bring it into force."""
_TYPES = ("episodic", "procedural")
_HAS_LAPSED = tuple(f"{LAPSED}{stood}" for stood in ("", "; it was in force", "; it waited for approval"))
"""Releases 0.1 and 0.2 added how it had stood."""
_MAY_LAPSE = (None, FADED, PROPOSED)
_OWN_REASONS = (PROPOSED, REJECTED, *_HAS_LAPSED)
_OF_THE_EVIDENCE = "evidence_build_ids source_event_ids confidence occurred_at privacy_tier trust_class domain".split()
_KINDS = ("solution", "recovery")


def learn_procedures(store: AgentMemoryStore, *, is_time_up: TimeIsUp = never) -> ProcedureResult:
    """Propose procedures for repeated solutions, and update the existing ones to their current evidence. Deterministic; idempotent."""
    return _RUN.run(store, is_time_up)


def _concluded(result: ProcedureResult, now: str, up_to_seq: int) -> ProceduresLearned:
    counts = {"episodes": result.episodes, "updated": result.updated, "retired": result.retired}
    return ProceduresLearned(applied_at=now, up_to_seq=up_to_seq, created=len(result.new_memory_ids), **counts)


def _planned(view: View, scope: Scope, deletions: Deletions) -> Plan[ProcedureResult]:
    rows = in_order(read_scope(view.reader, scope, _TYPES))
    episodes = {row["id"]: row for row in rows if row.get("source") != SOURCE and is_true(row, view.now)}
    attempts = [attempt for row in episodes.values() if (attempt := attempt_of(row)) is not None]
    successes = {one.row["id"] for one in attempts if one.went_well}
    procedural = [row for row in rows if row["type"] == "procedural"]
    own = [row for row in procedural if row.get("source") == SOURCE]
    known = known_of(own, successes)
    found = ways(attempts)
    members = [[attempt.row["id"] for attempt in way.supporters] for way in found]
    same = matched(members, known)
    if any(way.leads_there and not ones for way, ones in zip(found, same, strict=True)):
        same = matched(members, [*known, *deleted_of(deletions, scope, SOURCE)])
    drawn = (_lesson(view, scope, way, next(iter(ones), None)) for way, ones in zip(found, same, strict=True))
    wanted = [lesson for lesson in drawn if lesson]
    followed = {lesson.of.id for lesson in wanted if lesson.of}
    left = [one for one in known if one.id not in followed]
    wanted += [lesson for one in left if (lesson := _stricter(one, episodes, view.now))]
    done = reconcile(
        view,
        wanted,
        left,
        lapse=lambda one: _lapse(one, view.now),
        lapsed_text=LAPSED_TEXT,
        tags=["procedure"],
        own=_OWN_REASONS,
    )
    changed = {*done.grown, *done.lapsed}
    unconvincing = [row["id"] for row in procedural if row["id"] not in changed and _is_unconvincing(view, row)]
    away = {"archived_at": view.now, "archive_reason": UNCONVINCING}
    done.units += [[*revision(before, away, view.now)] for before in view.reader.read(unconvincing)]
    states = {one.of.id: (one.of.reason, one.fields) for one in wanted if one.of and one.of.id in done.grown}
    moved = [(before, fields.get("archive_reason")) for before, fields in states.values() if "archived_at" in fields]
    proposed = len(done.made) + sum(after == PROPOSED != before for before, after in moved)
    retired = len(unconvincing) + sum(one.id in done.lapsed and one.reason in _MAY_LAPSE for one in left)
    result = ProcedureResult(
        episodes=len(attempts),
        proposed=proposed,
        updated=len(done.made) + len(changed) + len(unconvincing) - proposed - retired,
        brought_into_force=sum(after is None for _, after in moved),
        retired=retired,
        new_memory_ids=done.made,
    )
    return Plan(result, commits_of(scope[1], done.units), done.texts)


def _lesson(view: View, scope: Scope, way: Way, known: Known | None) -> Lesson | None:
    """Return the procedure of a way; None if it is none, or if a known one is to stay as it is."""
    members = sorted(attempt.row["id"] for attempt in way.supporters)
    joined = [attempt.builds for attempt in way.supporters if known is None or attempt.row["id"] not in known.members]
    fields = skill_of(way, scope)
    key = "\x1f".join(["procedure", scope[0] or "", scope[1] or "", *members])
    lesson = Lesson(key, fields, members, frozenset[str]().union(*joined), known, kind=ProceduralMemory)
    worked = {"tried": way.tried, "succeeded": way.succeeded}

    def measured(memory: AgentMemory) -> list[Write]:
        of = {"id": id_of(memory)} if known is None or known.gone else known.row
        counts = {**usage_counts(view.reader, of), **worked}
        return [measurement(of, counts, confidence=memory.confidence, now=view.now)]

    if known is None or known.gone:
        fields |= {"archived_at": view.now, "archive_reason": PROPOSED, "access_count": 0}
        return replace(lesson, also=measured) if way.leads_there else None
    if known.was_put_away(view.now, _OWN_REASONS):
        return lesson
    new = len(fresh(lesson, known))
    stays_away = known.reason == REJECTED and new < LEAST_BUILDS and (known.lost or not _is_wordless(known))
    if stays_away or (not way.leads_there and known.reason in (REJECTED, *_HAS_LAPSED)):
        return None
    counts = usage_counts(view.reader, known.row)
    fields = _brought_up(view, known, way, fields, {**counts, **worked}, new)
    return replace(lesson, fields=fields, also=measured, is_due=counts != {**counts, **worked})


def _brought_up(
    view: View, known: Known, way: Way, fields: dict[str, Any], counts: Mapping[str, int], new: int
) -> dict[str, Any]:
    """Return the fields of a procedure that continues; `fields` are those composed from its current evidence."""
    before = view.reader.read([known.id])[0]
    assert isinstance(before, ProceduralMemory)  # noqa: S101 (what was learned here is one)
    is_in_force = known.reason in (None, FADED)
    fields = {**fields, **strictness([known.row, fields])}
    del fields["success_rate"]  # usage counts towards it
    if is_in_force and _is_outside(fields) and not _is_outside(known.row):
        # what comes from outside is evidence for what was approved, but adds no words to it
        fields |= {"trust_class": before.trust_class}
    if is_in_force and (before.is_pinned or not known.lost):  # its text was approved
        fields = {name: fields[name] for name in _OF_THE_EVIDENCE} | {"steps": before.steps}
    if is_in_force and not known.lost:
        # repetitions are merged into the procedure in force, so no episode records their builds
        builds = dict.fromkeys([*before.evidence_build_ids, *fields["evidence_build_ids"]])
        fields["evidence_build_ids"] = list(builds)[-MAX_ITEMS:]
        fields["confidence"] = confidence_of(max(len(way.builds), len(builds)))
    borne_out = fields["confidence"] * usage_factor(counts)
    fields["confidence"] = before.confidence if isclose(borne_out, before.confidence) else borne_out
    fields |= _state(view, known, way, before, fields["steps"], new)
    if known.reason and not fields.get("archived_at", view.now):  # it comes into force, and has faded meanwhile
        fields |= confirmed(view, before)
    return fields


def _state(view: View, known: Known, way: Way, before: ProceduralMemory, steps: list[str], new: int) -> dict[str, Any]:
    """Return the fields that change whether a procedure is in force."""
    is_in_force, is_rejected = known.reason in (None, FADED), known.reason == REJECTED
    # the steps of what is in force were approved
    is_changed = known.reason in _HAS_LAPSED or (is_in_force and steps != before.steps)
    if is_changed or (is_rejected and new >= LEAST_BUILDS):
        return {"archived_at": view.now, "archive_reason": PROPOSED}
    if known.reason == FADED and new:
        return IN_FORCE
    is_own = not any(_is_outside(one.row) for one in way.supporters) and not _is_outside(known.row)
    if known.reason == PROPOSED and view.config.procedure_approval == "evidence" and way.leads_there and is_own:
        since = known.row["archived_at"]
        later = _builds([one for one in way.supporters if one.row["created_at"] > since])
        earlier = _builds([one for one in way.supporters if one.row["created_at"] <= since])
        if len(later - earlier) >= LATER_SUCCESSES:
            return IN_FORCE
    return {}


def _is_outside(row: Mapping[str, Any]) -> bool:
    """Return whether a tool, an import or a web page said it: only the user may bring that into force."""
    return TRUST.index(row.get("trust_class", "agent")) > TRUST.index("agent")


def _stricter(known: Known, episodes: Mapping[str, Row], now: str) -> Lesson | None:
    """Return what is wanted of a procedure with too little evidence that does not lapse: to be as strict as that, if it is not."""
    rows = [episodes[one] for one in known.members & episodes.keys()]
    own, strict = strictness([known.row]), strictness([known.row, *rows])
    if known.was_put_away(now, _OWN_REASONS) or own == strict or _lapse(known, now) is not None:
        return None
    return Lesson(known.id, strict, sorted(known.members - known.lost), of=known)


def _lapse(known: Known, now: str) -> dict[str, Any] | None:
    """Return the fields that archive a procedure that lost its evidence; None if a user decided on it, or its words are gone."""
    stays = known.was_put_away(now, _OWN_REASONS) or known.row.get("is_pinned") or _is_wordless(known)
    if stays or not known.lost:
        return None
    return {"archived_at": now, "archive_reason": LAPSED} if known.reason in _MAY_LAPSE else {}


def _is_wordless(known: Known) -> bool:
    """Return whether it has lapsed and so has no text to approve."""
    return bool(known.row["content"] == LAPSED_TEXT)


def _is_unconvincing(view: View, row: Row) -> bool:
    """Return whether a procedure is to be archived: never used, and overridden again and again or of low confidence (seed 1).

    Not if it is pinned, or if somebody wrote it down: it has no builds of evidence then.
    """
    is_settled = "archived_at" in row or row.get("is_pinned") or not row.get("evidence_build_ids")
    if is_settled or not is_true(row, view.now):
        return False
    counts = usage_counts(view.reader, row)
    is_doubtful = row.get("source") == SOURCE and row.get("confidence", 1.0) < LEAST_CONFIDENCE
    return not counts["uses"] and (is_doubtful or counts["override_count"] >= MOST_OVERRIDES)


def skill_of(way: Way, scope: Scope) -> dict[str, Any]:
    """Return the fields of a procedure composed from its evidence."""
    rows = [attempt.row for attempt in way.supporters]
    trigger = " ".join(way.trigger)
    return {
        **fields_of(rows, scope, SOURCE),
        "content": text_of(trigger, way.steps),
        "trigger_pattern": trigger,
        "steps": list(way.steps),
        "prerequisites": shared(rows, "prerequisites", "constraints"),
        "exit_criteria": shared(rows, "exit_criteria"),
        "common_errors": [],  # up to 0.3 what helped against errors on the way stood here: the analysis of errors tells it
        "outcome": "positive",
        "confidence": confidence_of(len(way.builds)),
        "success_rate": round(way.succeeded / way.tried, 6),
        "agents_involved": agents_of(rows),
        "tags": list(dict.fromkeys(["procedure", *(tag for tag in shared(rows, "tags") if tag not in _KINDS)]))[:6],
        "reason": "the same steps led to success again and again",
    }


def text_of(trigger: str, steps: Sequence[str]) -> str:
    """Return the text of a procedure: trigger and steps."""
    numbered = "; ".join(f"{number}. {step}" for number, step in enumerate(steps, start=1))
    return whole_sentences(f"How to go about “{trigger}”: {numbered}.", MAX_CONTENT_CHARS)


_RUN = IncrementalRun(LEARNING, _TYPES, _planned, ProcedureResult(), _concluded)


_OF_REASON: dict[str | None, ProposalState] = {PROPOSED: "proposed", REJECTED: "rejected"}


def list_proposals(
    store: AgentMemoryStore, *, state: ProposalState | None = "proposed", project_id: str | None = None
) -> list[Proposal]:
    """Return learned procedures in a state, or in any, those with the most evidence first."""
    state = checked(ProposalState | None, state, "state")
    with store.reader.frozen():
        archived = store.list_memories(type="procedural", project_id=project_id, state="archived")
        listed = store.list_memories(type="procedural", project_id=project_id)
    found = [_proposal(memory) for memory in (*archived, *listed) if _state_of(memory) is not None]
    wanted = [one for one in found if state is None or one.state == state]
    return sorted(wanted, key=lambda one: (-one.builds, -(one.success_rate or 0.0), one.id))


def approve_proposal(store: AgentMemoryStore, id: str) -> Proposal:
    """Bring a proposed or rejected procedure into force; `reopen_proposal` undoes it."""
    return _moved(store, id, "in force", None)


def reject_proposal(store: AgentMemoryStore, id: str) -> Proposal:
    """Reject a procedure, proposed or in force. It is proposed again only if three more builds support it."""
    return _moved(store, id, "rejected", REJECTED)


def reopen_proposal(store: AgentMemoryStore, id: str) -> Proposal:
    """Undo an approval or a rejection: the procedure is a proposal again."""
    return _moved(store, id, "proposed", PROPOSED)


def _moved(store: AgentMemoryStore, id: str, state: ProposalState, reason: str | None) -> Proposal:
    """Change the state of a procedure by one event; do nothing if it is in that state."""

    def plan(view: View) -> Plan[str]:
        before = store.get_memory(id)
        if before is None:
            raise NotFoundError("proposal", id)
        if (known := _state_of(before)) is None:
            problem = "does not name a learned procedure that is proposed, approved or rejected"
            raise InvalidInputError(f"{problem}; `memgraph proposals list --all` lists them", field="id", value=id)
        if known == state:
            return Plan(before.id)
        away = {"archived_at": view.now, "archive_reason": reason}
        fields = away if reason else {**IN_FORCE, **confirmed(view, before)}  # it has faded while it waited
        return Plan(before.id, [Commit(revision(before, fields, view.now), before.task_id)])

    memory_id = carry_out(store, plan, attempts=1, actor="user").result
    return _proposal(store.read_memories([memory_id])[0])


def _state_of(memory: StoredMemory) -> ProposalState | None:
    """Return the state of a procedure; None if it was not learned, or was archived for another reason."""
    is_out = memory.is_suppressed or memory.invalid_at is not None or memory.content == LAPSED_TEXT
    if memory.source != SOURCE or is_out:
        return None
    return "in force" if memory.archived_at is None else _OF_REASON.get(memory.archive_reason)


def _proposal(memory: StoredMemory) -> Proposal:
    assert isinstance(memory, ProceduralMemory)  # noqa: S101 (what was learned here is one)
    return Proposal(
        id=memory.id,
        state=_state_of(memory) or "proposed",
        trigger=memory.trigger_pattern or "",
        steps=memory.steps,
        success_rate=memory.success_rate,
        confidence=memory.confidence,
        builds=len(memory.evidence_build_ids) or len(memory.supporting_memory_ids),
        since=memory.archived_at or memory.updated_at or "",
        project_id=memory.project_id,
        common_errors=[f"{known.error}: {known.fix}" for known in memory.common_errors],
    )
