"""The recommended format: standing rules, then notes for a task under four headings, one statement a line.

Each line says whether something worked or failed, was changed, fixed or reverted, or that it is a rule, a fact or how to do something. A memory's text is
escaped, on one line and behind such a word, so that it cannot pose as structure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from memgraph.model.ids import MIN_ID_CHARS
from memgraph.model.memory import (
    RUN_SOURCE,
    SAID_SOURCE,
    StandingRule,
    StoredEpisodicMemory,
    StoredMemory,
    StoredProceduralMemory,
    StoredSemanticMemory,
    TrustClass,
)
from memgraph.model.results.retrieval import WANTED_PHRASES, AgentContext
from memgraph.ports import TokenCounter
from memgraph.retrieval.context.budget import count_tokens
from memgraph.retrieval.context.context import beside_rules, rules_of, solved_since
from memgraph.retrieval.context.markdown import inline
from memgraph.retrieval.context.note import GENERALISED, TRUST, Group, Kind, Note, notes_of
from memgraph.retrieval.context.statement import sentence_keys, statement
from memgraph.retrieval.context.task_labels import is_outside, lead, word_of
from memgraph.text.attempts import AT_WORK, BEFORE, CONCLUDED, SAID
from memgraph.text.cutting import cut
from memgraph.text.safe import visible_line

_Sentences = frozenset[str]

_HEADINGS: dict[Group, str] = {
    "constraints": "Standing rules",
    "do": "What to do",
    "avoid": "What to avoid",
    "known": "What is known",
    "happened": "What happened",
}
_INTRODUCTION = "They may be out of date: check them against the present state."
_DOUBT = "They are only the most similar ones and may not concern this task: use what fits."
_PINNED = "They are pinned: keep to them where they apply."
_OLDER = "older; contradicted by the newer line above"
_OUTSIDE = "newer; contradicts what the user said in the line above"
_SOURCES: dict[TrustClass, str] = {"tool": "from a tool", "imported": "imported", "web": "from the web, unverified"}
_DAY_ENDS = "23:59:59.999Z"
_NAME_CHARS = 80
_NEARLY = 0.85
"""Share of a text's words, in whole sentences, that make another text with the same sentences a near-duplicate."""
_GOOD: frozenset[Kind] = frozenset({"Worked", "Fixed", "Reverted", "Changed"})


class Notes(NamedTuple):
    """The two parts of the notes, which follow each other: the standing rules, and everything else. Each may be empty."""

    constraints: str
    others: str


def format_notes(context: AgentContext, *, with_ids: bool = False) -> str:
    """Return the notes, each with the beginning of its memory's id if `with_ids`; empty if no memory has anything to say."""
    return "\n\n".join(filter(None, notes_in_parts(context, with_ids=with_ids)))


def notes_in_parts(context: AgentContext, *, with_ids: bool = False) -> Notes:
    """Return the notes in their two parts. What a standing rule says is not said again."""
    solved = solved_since(context.memories)
    others = beside_rules(context, by_rank(context))
    notes = [one for rule in rules_of(context) for one in _rule_notes(rule)]
    notes += [one for memory in others for one in _told(context, memory, is_solved=memory.id in solved)]
    opposed = [(one.newer_id, one.older_id) for one in context.contradictions]
    kept, same = list[Note](), dict[str, str]()
    for label in dict.fromkeys(context.labels.get(one.memory.id) for one in notes):
        those = [one for one in notes if context.labels.get(one.memory.id) == label]
        told, left_out = _told_once(those, {frozenset(pair) for pair in opposed})  # no task's line stands for another's
        kept, same = [*kept, *told], {**same, **left_out}
    pairs = [(same.get(newer, newer), same.get(older, older)) for newer, older in opposed]
    ordered = _newer_first(kept, pairs)
    below = [one for one in ordered if one.group != "constraints"]
    projects = {one.memory.project_id for one in below}
    shared = projects.pop() if len(projects) == 1 else None

    def in_context(note: Note) -> list[str]:
        known, is_rule = note.memory.id, note.group == "constraints"
        label, is_item = lead(known, context.labels, {}), known in context.task_items
        place = None if is_rule else shared
        return _lines(note, context.retrieved_at, place, label=label, with_id=with_ids and not is_item)

    def block(group: Group, *more: str) -> str:
        those = [one for one in ordered if one.group == group]
        lines = [line for one in those for line in in_context(one)]
        return "\n".join([f"## {_HEADINGS[group]}", *lines, *more])

    missing = missing_rules(context)
    constraints = block("constraints", *missing) if missing or len(below) < len(ordered) else ""
    blocks = [_introduction(context, below, shared), *map(block, _order(context, below))] if below else []
    return Notes(constraints, "\n\n".join(blocks))


def rules_within(
    rules: Sequence[StandingRule], most: int, *, now: str, counter: TokenCounter = count_tokens
) -> list[StandingRule]:
    """Return the standing rules whose section has at most so many tokens: in their order, without those for which there is no place."""
    kept, lines = list[StandingRule](), [f"## {_HEADINGS['constraints']}"]
    entries = [[line for note in _rule_notes(one) for line in _lines(note, now, None, with_id=True)] for one in rules]
    if counter("\n".join([*lines, *chain(*entries)])) <= most:
        return list(rules)
    for one, entry in zip(rules, entries, strict=True):
        if counter("\n".join([*lines, *entry, *_missing(len(rules))])) <= most:
            kept.append(one)
            lines += entry
    return kept


def missing_rules(context: AgentContext) -> list[str]:
    """Return the line that says how many standing rules do not fit, if any."""
    return _missing(context.constraints_left_out + context.rules_left_out)


def _missing(number: int) -> list[str]:
    return [f"- … and {number} more: `memgraph list --rules`"] if number else []


def rules_notice(number: int) -> str | None:
    """Return the notice that standing rules do not fit; None if all do."""
    what = "1 standing rule does" if number == 1 else f"{number} standing rules do"
    remedy = "`memgraph list --rules` shows all; prompt_budget.constraints is their budget"
    return f"{what} not fit: {remedy}" if number else None


def entries_of(memory: StoredMemory, *, now: str, with_ids: bool = False) -> list[str]:
    """Return the lines of one memory by itself; empty if it has nothing to say."""
    notes = notes_of(memory, is_solved=memory.id in solved_since([memory]))
    return [line for one in notes for line in _lines(one, now, None, with_id=with_ids)]


def nothing_found(context: AgentContext) -> str:
    """Return the line that stands for an empty recall, with the notice that may explain it. Without phrases, it asks for some."""
    explained = f" ({visible_line(context.notice)})" if context.notice else ""
    if context.is_over_budget:
        return f"What memory holds on this task does not fit the budget{explained}."
    hint = "" if context.has_phrases else f" Ask again and give {WANTED_PHRASES} in `also` (in a shell: `--also`)."
    return f"Nothing in memory concerns this task{explained}.{hint}"


def _introduction(context: AgentContext, notes: Sequence[Note], project: str | None) -> str:
    place = f" in {inline(_name(project))}" if project else ""
    caution = _INTRODUCTION
    if context.certainty in {"low", "none"}:
        caution = _PINNED if all(one.memory.is_pinned for one in notes) else _DOUBT
    return f"Notes from past work{place}. {caution}"


def by_rank(context: AgentContext) -> list[StoredMemory]:
    """Return the pinned memories; then the best ones, where the recall's order is known; linked tasks' last.

    A pin lifts nothing that comes from outside: it would stand before what the user said on the same matter.
    """
    ranks, scores, last = context.ranks, context.scores, set(context.related_ids)
    best = sorted(context.memories, key=lambda one: (ranks.get(one.id, 0), -scores.get(one.id, 0.0)))

    def is_lifted(one: StoredMemory) -> bool:
        return one.is_pinned and not is_outside(one.trust_class)

    return sorted(best, key=lambda one: (one.id in last, not is_lifted(one)))


def _order(context: AgentContext, notes: Sequence[Note]) -> list[Group]:
    """Return the groups that have notes: what to do and to avoid, then the others, that of the best memory first."""
    groups = {one.group for one in notes}
    found: list[Group] = [group for group in _HEADINGS if group in groups]

    def key(group: Group) -> tuple[bool, float]:
        best = max(context.scores.get(one.memory.id, 0.0) for one in notes if one.group == group)
        return (False, 0.0) if group in {"do", "avoid"} else (True, -best)

    return sorted(found, key=key)


def _told(context: AgentContext, memory: StoredMemory, *, is_solved: bool) -> list[Note]:
    """Return the notes of a memory, or of an item that holds in a task."""
    if (authority := context.task_items.get(memory.id)) is not None:
        group: Group = "do" if authority in {"constraint", "next action"} else "known"
        return [Note(memory, group, word_of(authority), statement(memory.content).text)]
    return notes_of(memory, is_solved=is_solved)


def _rule_notes(memory: StoredMemory) -> list[Note]:
    """Return what a standing rule says, and not the errors beside it."""
    notes = notes_of(memory, is_solved=False)[:1]
    return [replace(one, group="constraints", kind="Rule" if one.kind == "Fact" else one.kind) for one in notes]


def _told_once(notes: Iterable[Note], opposed: Collection[frozenset[str]]) -> tuple[list[Note], dict[str, str]]:
    """Return the notes without those that another one covers, and the memory that stands for each memory that was left out."""
    kept: list[tuple[Note, _Sentences]] = []
    left_out: dict[str, str] = {}

    def covers(one: tuple[Note, _Sentences], other: tuple[Note, _Sentences]) -> bool:
        ids = frozenset([one[0].memory.id, other[0].memory.id])
        return ids not in opposed and _covers(one[0], one[1], other[0], other[1])

    for note in notes:
        keys = frozenset().union(*(sentence_keys(line) for line in (_said(note), *note.lines))) or frozenset(
            [note.text]
        )
        mine = (note, keys)
        if by := next((one for one in kept if covers(one, mine)), None):
            left_out[note.memory.id] = by[0].memory.id
            continue
        covered = [place for place, one in enumerate(kept) if covers(mine, one)]
        left_out |= {kept[place][0].memory.id: note.memory.id for place in covered}
        kept = [one for place, one in enumerate(kept) if place not in covered[1:]]
        if covered:
            kept[covered[0]] = mine
        else:
            kept.append(mine)
    shown = {one.memory.id for one, _ in kept}
    return [one for one, _ in kept], {dropped: by for dropped, by in left_out.items() if dropped not in shown}


def _covers(note: Note, keys: _Sentences, other: Note, its: _Sentences) -> bool:
    """Return whether a note, no less trusted, says nearly all that another one says, and not of another outcome. A constraint is always given."""
    if other.group == "constraints":
        return False
    kinds = {note.kind, other.kind}
    if ("Failed" in kinds and kinds & _GOOD) or _trust(note) < _trust(other):
        return False
    if other.text.startswith(SAID) and not sentence_keys(other.text.partition(BEFORE)[0]) <= keys:
        return False  # another answer to the same question
    return _words(keys & its) >= _NEARLY * _words(its)


def _said(note: Note) -> str:
    """Return a note's text for comparison: what an agent said is the same as a message, and where a turn of the user quotes it."""
    if note.memory.source != SAID_SOURCE:
        return note.text
    return note.text.removeprefix(CONCLUDED).removeprefix(AT_WORK).replace(BEFORE, "\n")


def _words(keys: _Sentences) -> int:
    return sum(len(key.split()) for key in keys)


def _trust(note: Note) -> int:
    return TRUST.index(note.memory.trust_class)


def _newer_first(notes: Sequence[Note], pairs: Iterable[tuple[str, str]]) -> list[Note]:
    """Return the notes with each that a newer one contradicts behind that one, in its group, and marked as older.

    `pairs` are the ids of the newer and the older memory. Constraints hold until somebody removes them, and nothing else stands among them.
    What comes from outside never stands before what the user said: it follows, and is marked.
    """
    own = {one.memory.id: one for one in reversed(notes)}  # a memory's first note says what the memory itself says
    first_of: dict[str, str] = {}
    remarks: dict[str, str] = {}
    for newer, older in pairs:
        if newer not in own or older not in own:
            continue
        yields = is_outside(own[newer].memory.trust_class) and own[older].memory.trust_class == "user"
        first, second = (older, newer) if yields else (newer, older)
        if own[second].group != "constraints" and second not in _chain(first, first_of) and second not in first_of:
            first_of[second], remarks[second] = first, _OUTSIDE if yields else _OLDER

    def followed(note: Note) -> Iterator[Note]:
        yield note
        for other in [other for other, first in first_of.items() if first == note.memory.id]:
            group = own[other].group if note.group == "constraints" else note.group
            yield from followed(replace(own[other], group=group, remarks=[remarks[other], *own[other].remarks]))

    ordered: list[Note] = []
    for one in notes:
        if one is not own[one.memory.id]:
            ordered.append(one)
        elif one.memory.id not in first_of:
            ordered += followed(one)
    return ordered


def _chain(memory_id: str, first_of: Mapping[str, str]) -> Iterator[str]:
    """Yield a memory and those that it follows, one after the other."""
    while True:
        yield memory_id
        if memory_id not in first_of:
            return
        memory_id = first_of[memory_id]


def _lines(note: Note, now: str, shared: str | None, *, label: str = "", with_id: bool) -> list[str]:
    remarks = ", ".join([*([note.memory.id[:MIN_ID_CHARS]] if with_id else []), *_remarks(note, now, shared)])
    said = label + inline(note.text, has_code=True)
    return [f"- {note.kind}: {said}{f' ({inline(remarks)})' if remarks else ''}", *note.lines]


def _remarks(note: Note, now: str, shared: str | None) -> Iterator[str]:
    memory = note.memory
    if not isinstance(memory, StoredProceduralMemory):
        yield from _date(memory)
    if memory.project_id and memory.project_id != shared:
        yield _name(memory.project_id)
    yield from note.remarks
    if note.memory.source == RUN_SOURCE:
        yield "a record, unconfirmed"
    if memory.invalid_at:
        ends = memory.invalid_at
        yield f"no longer valid since {ends[:10]}" if ends <= now else f"until {_end(ends)}"
    if memory.privacy_tier != "public":
        yield memory.privacy_tier
    if origin := _SOURCES.get(memory.trust_class):
        yield f"{origin}: {_name(memory.source)}" if memory.source else origin


def _date(memory: StoredMemory) -> Iterator[str]:
    if isinstance(memory, StoredSemanticMemory) and memory.valid_at:
        yield f"since {memory.valid_at[:10]}"
    elif memory.source == GENERALISED:
        return
    elif when := (isinstance(memory, StoredEpisodicMemory) and memory.event_date) or memory.occurred_at:
        yield when[:10]


def _end(moment: str) -> str:
    """Return a day for its end, else the day and the minute."""
    return moment[:10] if moment[11:] == _DAY_ENDS else f"{moment[:10]} {moment[11:16]} UTC"


def _name(text: str) -> str:
    """Return a name as visible text of 80 characters at most."""
    return cut(visible_line(text), _NAME_CHARS)
