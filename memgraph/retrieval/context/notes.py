"""The recommended format: notes for a task under four headings, one statement a line.

Each line says whether something worked or failed, was changed, fixed or reverted, or that it is a rule, a fact or how to do something. A memory's text is
escaped, on one line and behind such a word, so that it cannot pose as structure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from memgraph.extraction.statements import is_instruction
from memgraph.model.ids import MIN_ID_CHARS
from memgraph.model.memory import (
    StoredEpisodicMemory,
    StoredMemory,
    StoredProceduralMemory,
    StoredSemanticMemory,
    TrustClass,
)
from memgraph.model.results.context import AgentContext, Warned
from memgraph.retrieval.context.context import (
    experience,
    failed,
    is_rule,
    known_errors,
    pattern,
    skill,
    solved_since,
)
from memgraph.retrieval.context.markdown import inline, item
from memgraph.retrieval.context.statement import full_stop, key_of, sentence_keys, statement
from memgraph.text.cutting import cut, whole_sentences
from memgraph.text.leads import without_lead
from memgraph.text.safe import visible_line
from memgraph.text.sentences import split_sentences

_Sentences = frozenset[str]
_Group = Literal["do", "avoid", "known", "happened"]
_Kind = Literal["Worked", "Worked in part", "Failed", "Fixed", "Reverted", "Changed", "Rule", "Fact", "How to"]

_HEADINGS: dict[_Group, str] = {
    "do": "What to do",
    "avoid": "What to avoid",
    "known": "What is known",
    "happened": "What happened",
}
_INTRODUCTION = "They may be out of date: check them against the present state."
_DOUBT = "They are only the most similar ones and may not concern this task: use what fits."
_PINNED = "They are pinned: keep to them where they apply."
_OLDER = "older; contradicted by the newer line above"
_TRUST: tuple[TrustClass, ...] = ("web", "imported", "tool", "agent", "user")
"""Trust classes, the least trusted first."""
_SOURCES: dict[TrustClass, str] = {"tool": "from a tool", "imported": "imported", "web": "from the web, unverified"}
_DOUBTED = 0.5
"""A fact of less confidence is marked as uncertain."""
_HEAD_CHARS = 200
_NAME_CHARS = 80
_LEAD = re.compile(r"^(?:how to|when) (?=\S)", re.IGNORECASE)
_GENERALISED = "compression"
"""Source of what was generalised: its text gives the dates itself."""
_NEARLY = 0.85
"""Share of a text's words, in whole sentences, that make another text with the same sentences a near-duplicate."""
_GOOD: frozenset[_Kind] = frozenset({"Worked", "Fixed", "Reverted", "Changed"})
_CHANGES = "git"
"""Source of changes: what a commit says is done, not tried."""
_FIX = re.compile(
    r"^(?:(?:bug|hot)?fix(?:e[sd])?(?:\([^()\n]{1,40}\))?!?:?)\s+(?!(?:for|in|of|up|with|on)\b)(?=\S)", re.IGNORECASE
)
_REVERT = re.compile(r"^(?:revert(?:s|ed)?:?)\s+(?=\S)", re.IGNORECASE)
_CONSTRAINT_TAG = "constraint"
_FORBIDS = ("never ", "do not ", "don't ", "don’t ", "avoid ", "must not ")
_DIRECTS = frozenset(
    "ask avoid call check deploy ensure keep make never please prefer put remember run set stop test use verify wait write".split()
)
"""First words of an imperative sentence. Words that often begin the summary of a change, such as "fix" or "add", are not among them."""


@dataclass(frozen=True)
class _Note:
    """One entry of the format: what it says, the remarks in brackets behind it, and further lines below it."""

    memory: StoredMemory
    group: _Group
    kind: _Kind
    text: str
    remarks: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def format_notes(context: AgentContext, *, with_ids: bool = False) -> str:
    """Return the notes, each with the beginning of its memory's id if `with_ids`; empty if no memory has anything to say."""
    solved = solved_since(context.memories)
    notes = [one for memory in _ranked(context) for one in _notes_of(memory, is_solved=memory.id in solved)]
    opposed = [(one.newer_id, one.older_id) for one in context.contradictions]
    kept, same = _told_once(notes, {frozenset(pair) for pair in opposed})
    pairs = [(same.get(newer, newer), same.get(older, older)) for newer, older in opposed]
    ordered = _newer_first(kept, pairs)
    if not ordered:
        return ""
    projects = {one.memory.project_id for one in ordered}
    shared = projects.pop() if len(projects) == 1 else None
    blocks = [_introduction(context, ordered, shared)]
    for group in _order(context, ordered):
        those = [one for one in ordered if one.group == group]
        lines = [line for one in those for line in _lines(one, context.retrieved_at, shared, with_id=with_ids)]
        blocks.append("\n".join([f"## {_HEADINGS[group]}", *lines]))
    return "\n\n".join(blocks)


def nothing_found(notice: str | None = None, *, is_over_budget: bool = False) -> str:
    """Return the line that stands for an empty recall, with the notice that may explain it."""
    explained = f" ({visible_line(notice)})" if notice else ""
    said = (
        "What memory holds on this task does not fit the budget"
        if is_over_budget
        else "Nothing in memory concerns this task"
    )
    return f"{said}{explained}."


def _introduction(context: AgentContext, notes: Sequence[_Note], project: str | None) -> str:
    place = f" in {inline(_name(project))}" if project else ""
    caution = _INTRODUCTION
    if context.certainty in {"low", "none"}:
        caution = _PINNED if all(one.memory.is_pinned for one in notes) else _DOUBT
    return f"Notes from past work{place}. {caution}"


def _ranked(context: AgentContext) -> list[StoredMemory]:
    """Return the memories, pinned ones first, then the best ones, where the recall's scores are known."""
    return sorted(context.memories, key=lambda memory: (not memory.is_pinned, -context.scores.get(memory.id, 0.0)))


def _order(context: AgentContext, notes: Sequence[_Note]) -> list[_Group]:
    """Return the groups that have notes: what to do and to avoid, then the others, that of the best memory first."""
    groups = {one.group for one in notes}
    found: list[_Group] = [group for group in _HEADINGS if group in groups]

    def key(group: _Group) -> tuple[bool, float]:
        best = max(context.scores.get(one.memory.id, 0.0) for one in notes if one.group == group)
        return (False, 0.0) if group in {"do", "avoid"} else (True, -best)

    return sorted(found, key=key)


def _notes_of(memory: StoredMemory, *, is_solved: bool) -> list[_Note]:
    """Return what a memory says itself, then the errors that it lists beside, as far as they say more."""
    own = _own(memory, is_solved=is_solved)
    if is_solved:
        return own
    said = " ".join(key_of(part) for note in own for part in (note.text, *note.lines))
    errors = [_error(memory, one) for one in known_errors(memory)]
    return [*own, *(one for one in errors if f" {key_of(one.text)} " not in f" {said} ")]


def _own(memory: StoredMemory, *, is_solved: bool) -> list[_Note]:
    if memory.outcome == "negative" and not is_solved:
        return [_failure(memory)]
    if isinstance(memory, StoredEpisodicMemory):
        return [_episode(memory, is_solved=is_solved)]
    if isinstance(memory, StoredSemanticMemory):
        return [_knowledge(memory)]
    return [_procedure(memory)] if is_rule(memory) else []


def _failure(memory: StoredMemory) -> _Note:
    if isinstance(memory, StoredEpisodicMemory) and memory.situation:
        return _episode(memory, is_solved=False)
    (warned,) = failed(memory)
    text, place = statement(_without_outcome(memory, warned.what_fails if warned.prevention else memory.content))
    lesson = f" Lesson: {full_stop(warned.prevention)}" if warned.prevention else ""
    return _Note(memory, "avoid", "Failed", f"{text}{lesson}", [place] if place else [])


def _episode(memory: StoredEpisodicMemory, *, is_solved: bool) -> _Note:
    said = _without_outcome(memory, memory.content)
    text, place = statement(said)
    kind, text = _kind_of(memory, said, text)
    if memory.situation:
        parts = experience(memory)
        labelled = {"Action": parts.action, "Why": parts.approach, "Feedback": parts.feedback}
        told = [f"{label}: {full_stop(part)}" for label, part in labelled.items() if part]
        text, place = " ".join([full_stop(parts.text), *told]), None
    remarks = [*(["solved since"] if is_solved else []), *([place] if place else [])]
    group: _Group = "avoid" if memory.outcome == "negative" and not is_solved else "happened"
    return _Note(memory, group, kind, text, remarks)


def _without_outcome(memory: StoredMemory, text: str) -> str:
    """Return the text of a trial without its outcome, which is put before it."""
    if isinstance(memory, StoredEpisodicMemory) and memory.asked:
        return text.removeprefix("Failed trial: ").removeprefix("Solved: ")
    return text


def _kind_of(memory: StoredEpisodicMemory, content: str, text: str) -> tuple[_Kind, str]:
    """Return an episode's kind by its content, and the text to print without the word that the kind says."""
    if memory.outcome == "neutral":
        return ("Worked in part" if memory.outcome_word == "partial" else "Fact"), text
    if memory.outcome == "positive" and memory.source == _CHANGES:
        changes: tuple[tuple[re.Pattern[str], _Kind], ...] = ((_FIX, "Fixed"), (_REVERT, "Reverted"))
        found = next(((verb, kind) for verb, kind in changes if verb.match(content)), None)
        return (found[1], found[0].sub("", text)) if found else ("Changed", text)
    kinds: dict[str, _Kind] = {"positive": "Worked", "negative": "Failed"}
    return kinds.get(memory.outcome, "Fact"), text


def _knowledge(memory: StoredSemanticMemory) -> _Note:
    content = without_lead(memory.content, ["instruction"])
    text, place = statement(content)
    parts = pattern(memory)
    if parts.conditions:
        text = f"{text} This holds when: {full_stop('; '.join(parts.conditions))}"
    if parts.correct_approach and not memory.incorrect_approach:
        text = f"{text} Do: {full_stop(parts.correct_approach)}"
    remarks = [*(["said by the user"] if content != memory.content else []), *([place] if place else [])]
    if not _is_directive(memory, text):
        doubt = ["uncertain"] if memory.confidence < _DOUBTED else []
        return _Note(memory, "known", "Fact", text, [*doubt, *remarks])
    return _Note(memory, "avoid" if text.casefold().startswith(_FORBIDS) else "do", "Rule", text, remarks)


def _is_directive(memory: StoredSemanticMemory, text: str) -> bool:
    """Return whether general knowledge says what to do, not what is so. What is trusted less than an agent gives no directions."""
    if _is_doubtful(memory):
        return False
    if memory.is_pinned and any(tag.casefold() == _CONSTRAINT_TAG for tag in memory.tags):
        return True
    if memory.category == "instruction" or (memory.correct_approach and not memory.incorrect_approach):
        return True
    first = split_sentences(text, "part")[0]
    return memory.source != _GENERALISED and (first.casefold().split(" ")[0] in _DIRECTS or is_instruction(first))


def _procedure(memory: StoredProceduralMemory) -> _Note:
    parts = skill(memory)
    trigger = _head(parts.trigger)
    title = _head(parts.name) or (f"when {trigger}" if trigger else _LEAD.sub("", statement(memory.content).text))
    steps = [line for step in parts.steps if (line := _step(step))]
    if not steps and parts.text and key_of(parts.text) != key_of(title):
        title = f"{full_stop(title)} {statement(memory.content).text}"
    remarks = [f"when {trigger}"] if trigger and f" {key_of(trigger)} " not in f" {key_of(title)} " else []
    remarks += [f"success rate {parts.success_rate:.0%}"] if parts.success_rate is not None else []
    named = {"Needs": parts.prerequisites, "Done when": parts.exit_criteria}
    lines = [f"  {label}: {inline('; '.join(texts))}" for label, texts in named.items() if texts]
    is_shortened = len(memory.steps) > len(parts.steps) and steps[-1:] and steps[-1].startswith("… ")
    omitted = steps.pop() if is_shortened else None
    lines += [f"  {number}. {item(inline(step))}" for number, step in enumerate(steps, 1)]
    lines += [f"  {omitted} steps"] if omitted else []
    return _Note(memory, "known" if _is_doubtful(memory) else "do", "How to", title, remarks, lines)


def _is_doubtful(memory: StoredMemory) -> bool:
    return _TRUST.index(memory.trust_class) < _TRUST.index("agent")


def _head(text: str | None) -> str:
    """Return the title or trigger of a procedure, of 200 characters at most, without the words that are put before it."""
    line = whole_sentences(statement(text).text, _HEAD_CHARS).removesuffix(".") if text else ""
    return _LEAD.sub("", line)


def _step(text: str) -> str:
    """Return a step without the number or bullet that it may have."""
    head, _, rest = text.partition(" ")
    is_mark = head in {"-", "*", "•", "+"} or (head[:-1].isdecimal() and head[-1:] in {".", ")"})
    return rest.strip() if is_mark and rest.strip() else text


def _error(memory: StoredMemory, warned: Warned) -> _Note:
    remedies = {"episodic": "What worked", "semantic": "Do instead", "procedural": "Fix"}
    why = f" {full_stop(warned.why)}" if warned.why else ""
    remedy = f" {remedies[memory.type]}: {full_stop(warned.prevention)}" if warned.prevention else ""
    what = warned.what_fails if why and not warned.what_fails.endswith(":") else full_stop(warned.what_fails)
    return _Note(memory, "avoid", "Failed", f"{what}:{why}{remedy}" if why else f"{what}{remedy}")


def _told_once(notes: Iterable[_Note], opposed: Collection[frozenset[str]]) -> tuple[list[_Note], dict[str, str]]:
    """Return the notes without those that another one covers, and the memory that stands for each memory that was left out."""
    kept: list[tuple[_Note, _Sentences]] = []
    left_out: dict[str, str] = {}

    def covers(one: tuple[_Note, _Sentences], other: tuple[_Note, _Sentences]) -> bool:
        ids = frozenset([one[0].memory.id, other[0].memory.id])
        return ids not in opposed and _covers(one[0], one[1], other[0], other[1])

    for note in notes:
        keys = frozenset().union(*(sentence_keys(line) for line in (note.text, *note.lines))) or frozenset([note.text])
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


def _covers(note: _Note, keys: _Sentences, other: _Note, its: _Sentences) -> bool:
    """Return whether a note, no less trusted, says nearly all that another one says, and not of another outcome."""
    kinds = {note.kind, other.kind}
    if ("Failed" in kinds and kinds & _GOOD) or _trust(note) < _trust(other):
        return False
    return _words(keys & its) >= _NEARLY * _words(its)


def _words(keys: _Sentences) -> int:
    return sum(len(key.split()) for key in keys)


def _trust(note: _Note) -> int:
    return _TRUST.index(note.memory.trust_class)


def _newer_first(notes: Sequence[_Note], pairs: Iterable[tuple[str, str]]) -> list[_Note]:
    """Return the notes with each that a newer one contradicts behind that one, in its group, and marked as older.

    `pairs` are the ids of the newer and the older memory.
    """
    own = {one.memory.id: one for one in reversed(notes)}  # a memory's first note says what the memory itself says
    newer_of: dict[str, str] = {}
    for newer, older in pairs:
        if newer in own and older in own and older not in _chain(newer, newer_of):
            newer_of.setdefault(older, newer)

    def followed(note: _Note) -> Iterator[_Note]:
        yield note
        for older in [older for older, newer in newer_of.items() if newer == note.memory.id]:
            yield from followed(replace(own[older], group=note.group, remarks=[_OLDER, *own[older].remarks]))

    ordered: list[_Note] = []
    for one in notes:
        if one is not own[one.memory.id]:
            ordered.append(one)
        elif one.memory.id not in newer_of:
            ordered += followed(one)
    return ordered


def _chain(memory_id: str, newer_of: Mapping[str, str]) -> Iterator[str]:
    """Yield a memory and those that are newer than it, one after the other."""
    while True:
        yield memory_id
        if memory_id not in newer_of:
            return
        memory_id = newer_of[memory_id]


def _lines(note: _Note, now: str, shared: str | None, *, with_id: bool) -> list[str]:
    remarks = ", ".join([*([note.memory.id[:MIN_ID_CHARS]] if with_id else []), *_remarks(note, now, shared)])
    said = inline(note.text, has_code=True)
    return [f"- {note.kind}: {said}{f' ({inline(remarks)})' if remarks else ''}", *note.lines]


def _remarks(note: _Note, now: str, shared: str | None) -> Iterator[str]:
    memory = note.memory
    if not isinstance(memory, StoredProceduralMemory):
        yield from _date(memory)
    if memory.project_id and memory.project_id != shared:
        yield _name(memory.project_id)
    yield from note.remarks
    if memory.invalid_at and memory.invalid_at <= now:
        yield f"no longer valid since {memory.invalid_at[:10]}"
    if memory.privacy_tier != "public":
        yield memory.privacy_tier
    if origin := _SOURCES.get(memory.trust_class):
        yield f"{origin}: {_name(memory.source)}" if memory.source else origin


def _date(memory: StoredMemory) -> Iterator[str]:
    if isinstance(memory, StoredSemanticMemory) and memory.valid_at:
        yield f"since {memory.valid_at[:10]}"
    elif memory.source == _GENERALISED:
        return
    elif when := (isinstance(memory, StoredEpisodicMemory) and memory.event_date) or memory.occurred_at:
        yield when[:10]


def _name(text: str) -> str:
    """Return a name as visible text of 80 characters at most."""
    return cut(visible_line(text), _NAME_CHARS)
