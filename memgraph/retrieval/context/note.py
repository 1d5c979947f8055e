"""Notes: what a memory says in a prompt, as statements with their kinds. Their text is not yet escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from memgraph.extraction.components import abbreviated
from memgraph.extraction.statements import is_instruction
from memgraph.model.memory import (
    RECORD_SOURCE,
    SAID_SOURCE,
    StoredEpisodicMemory,
    StoredMemory,
    StoredProceduralMemory,
    StoredSemanticMemory,
    TrustClass,
)
from memgraph.model.results.learning import COUNTING_SOURCE, WORK_ORDER_SOURCE
from memgraph.model.results.retrieval import Warned
from memgraph.retrieval.context.context import (
    DECIDED,
    commit_of,
    experience,
    failed,
    is_constraint,
    is_procedure,
    is_revert,
    known_errors,
    pattern,
    says_what_it_reverts,
    skill,
)
from memgraph.retrieval.context.markdown import inline, item
from memgraph.retrieval.context.statement import full_stop, key_of, statement
from memgraph.text.attempts import stated, without_lead
from memgraph.text.cutting import whole_sentences
from memgraph.text.sentences import split_sentences

Group = Literal["constraints", "do", "avoid", "known", "happened"]
Kind = Literal["Worked", "Worked in part", "Failed", "Fixed", "Reverted", "Changed", "Rule", "Fact", "How to"]

TRUST: tuple[TrustClass, ...] = ("web", "imported", "tool", "agent", "user")
"""Trust classes, the least trusted first."""
GENERALISED = "compression"
"""Source of what was generalised: its text gives the dates itself."""
_DOUBTED = 0.5
"""A fact of less confidence is marked as uncertain."""
_HEAD_CHARS = 200
_LEAST_SHA_CHARS = 7
_MOST_UNDONE = 3
_LEAD = re.compile(r"^(?:how to|when) (?=\S)", re.IGNORECASE)
_CHANGES = "git"
"""Source of changes: what a commit says is done, not tried."""
_FIX = re.compile(
    r"^(?:(?:bug|hot)?fix(?:e[sd])?(?:\([^()\n]{1,40}\))?!?:?)\s+(?!(?:for|in|of|up|with|on)\b)(?=\S)", re.IGNORECASE
)
_REVERT = re.compile(r"^(?:revert(?:s|ed)?:?)\s+(?=\S)", re.IGNORECASE)
_FORBIDS = ("never ", "do not ", "don't ", "don’t ", "avoid ", "must not ")
_DIRECTS = frozenset(
    "ask avoid call check deploy ensure keep make never please prefer put remember run set stop test use verify wait write".split()
)
"""First words of an imperative sentence. Words that often begin the summary of a change, such as "fix" or "add", are not among them."""


@dataclass(frozen=True)
class Note:
    """One entry of the format: what it says, the remarks in brackets behind it, and further lines below it."""

    memory: StoredMemory
    group: Group
    kind: Kind | str
    text: str
    remarks: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def notes_of(memory: StoredMemory, *, is_solved: bool) -> list[Note]:
    """Return what a memory says itself, then the errors that it lists beside, as far as they say more."""
    own = _own(memory, is_solved=is_solved)
    if is_solved:
        return own
    said = " ".join(key_of(part) for note in own for part in (note.text, *note.lines))
    errors = [_error(memory, one) for one in known_errors(memory)]
    return [*own, *(one for one in errors if f" {key_of(one.text)} " not in f" {said} ")]


def _own(memory: StoredMemory, *, is_solved: bool) -> list[Note]:
    if memory.outcome == "negative" and not is_solved:
        return [_failure(memory)]
    if isinstance(memory, StoredEpisodicMemory):
        return [_episode(memory, is_solved=is_solved)]
    if isinstance(memory, StoredSemanticMemory):
        return [_mended(memory) or _knowledge(memory)]
    return [_procedure(memory)] if is_procedure(memory) else []


def _failure(memory: StoredMemory) -> Note:
    if isinstance(memory, StoredEpisodicMemory) and (memory.situation or is_revert(memory)):
        return _episode(memory, is_solved=False)
    (warned,) = failed(memory)
    said = _without_outcome(memory, warned.what_fails if warned.prevention else memory.content)
    text, place = statement(said, memory.location if isinstance(memory, StoredEpisodicMemory) else None)
    lesson = f" Lesson: {full_stop(warned.prevention)}" if warned.prevention else ""
    return Note(memory, "avoid", "Failed", f"{text}{lesson}", [place] if place else [])


def _episode(memory: StoredEpisodicMemory, *, is_solved: bool) -> Note:
    said = _without_outcome(memory, memory.content)
    text, place = statement(said, memory.location)
    kind, text = _kind_of(memory, said, text)
    if memory.situation:
        parts = experience(memory)
        labelled = {"Action": parts.action, "Why": parts.approach, "Feedback": parts.feedback}
        told = [f"{label}: {full_stop(part)}" for label, part in labelled.items() if part]
        text, place = " ".join([full_stop(parts.text), *told]), None
    remarks = [*(["solved since"] if is_solved else []), *([place] if place else []), *_commits(memory, kind)]
    # a revert warns of what it took back
    is_warning = memory.outcome == "negative" or (says_what_it_reverts(memory) and memory.undoes)
    group: Group = "avoid" if is_warning and not is_solved else "happened"
    return Note(memory, group, kind, text, remarks)


def _commits(memory: StoredEpisodicMemory, kind: str) -> Iterator[str]:
    """Yield which commit made a change, and which ones it took back, as far as the entry does not say so."""
    commit, sha = commit_of(memory), (memory.git_commit or "")[:_LEAST_SHA_CHARS]
    if commit and memory.source != RECORD_SOURCE and sha not in memory.content:
        yield f"by {commit}" if kind == "Reverted" else commit
    if undone := [abbreviated(sha) for sha in memory.undoes if sha[:_LEAST_SHA_CHARS] not in memory.content]:
        yield f"reverts {', '.join(undone[:_MOST_UNDONE])}{', …' if undone[_MOST_UNDONE:] else ''}"


def _without_outcome(memory: StoredMemory, text: str) -> str:
    """Return the text of a trial without its outcome, which is put before it."""
    if isinstance(memory, StoredEpisodicMemory) and memory.asked:
        return text.removeprefix("Failed trial: ").removeprefix("Solved: ")
    return text


def _kind_of(memory: StoredEpisodicMemory, content: str, text: str) -> tuple[Kind | str, str]:
    """Return an episode's kind by its content, and the text to print without the word that the kind says."""
    if memory.source == SAID_SOURCE:
        return "Said", text
    if memory.source == RECORD_SOURCE:
        return commit_of(memory).capitalize() or "Commit", text
    if says_what_it_reverts(memory):
        return "Reverted", _REVERT.sub("", text)
    if memory.outcome == "neutral":
        return ("Worked in part" if memory.outcome_word == "partial" else "Fact"), text
    if memory.outcome == "positive" and memory.source == _CHANGES:
        return ("Fixed", _FIX.sub("", text)) if _FIX.match(content) else ("Changed", text)
    kinds: dict[str, Kind] = {"positive": "Worked", "negative": "Failed"}
    return kinds.get(memory.outcome, "Fact"), text


def _knowledge(memory: StoredSemanticMemory) -> Note:
    content = without_lead(memory.content, ["instruction"])
    text, place = statement(content)
    parts = pattern(memory)
    if parts.conditions:
        text = f"{text} This holds when: {full_stop('; '.join(parts.conditions))}"
    if parts.correct_approach and not memory.incorrect_approach:
        text = f"{text} {'Recommended there' if _is_doubtful(memory) else 'Do'}: {full_stop(parts.correct_approach)}"
    remarks = [*(["said by the user"] if content != memory.content else []), *([place] if place else [])]
    said = stated(text)
    if not _is_directive(memory, said):
        is_doubted = memory.confidence < _DOUBTED and memory.source != COUNTING_SOURCE  # what was counted is so
        doubt = ["uncertain"] if is_doubted else []
        return Note(memory, "known", "Fact", text, [*doubt, *remarks])
    return Note(memory, "avoid" if said.casefold().startswith(_FORBIDS) else "do", "Rule", text, remarks)


def _mended(memory: StoredSemanticMemory) -> Note | None:
    """Return what works now of what had failed again and again, first the remedy; None for other knowledge, and for trials, which say so themselves."""
    remedy = pattern(memory).correct_approach
    if memory.outcome != "negative" or not memory.is_solved or memory.asked or not remedy:
        return None
    text, place = statement(memory.content)
    told = text if key_of(remedy) in key_of(text) else f"{full_stop(remedy)} Before: {text}"
    return Note(memory, "known" if _is_doubtful(memory) else "do", "Worked", told, [place] if place else [])


def _is_directive(memory: StoredSemanticMemory, text: str) -> bool:
    """Return whether general knowledge says what to do, not what is so. What is trusted less than an agent gives no directions."""
    if _is_doubtful(memory):
        return False
    if is_constraint(memory):
        return True
    if memory.category == "instruction" or (memory.correct_approach and not memory.incorrect_approach):
        return True
    if memory.source in {GENERALISED, WORK_ORDER_SOURCE}:
        return False  # what an agent found or quotes is a rule only if it says so
    first = split_sentences(text, "part")[0]
    return first.casefold().split(" ")[0] in _DIRECTS or is_instruction(first)


def _procedure(memory: StoredProceduralMemory) -> Note:
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
    return Note(memory, "known" if _is_doubtful(memory) else "do", "How to", title, remarks, lines)


def _is_doubtful(memory: StoredMemory) -> bool:
    return TRUST.index(memory.trust_class) < TRUST.index("agent")


def _head(text: str | None) -> str:
    """Return the title or trigger of a procedure, of 200 characters at most, without the words that are put before it."""
    line = whole_sentences(statement(text).text, _HEAD_CHARS).removesuffix(".") if text else ""
    return _LEAD.sub("", line)


def _step(text: str) -> str:
    """Return a step without the number or bullet that it may have."""
    head, _, rest = text.partition(" ")
    is_mark = head in {"-", "*", "•", "+"} or (head[:-1].isdecimal() and head[-1:] in {".", ")"})
    return rest.strip() if is_mark and rest.strip() else text


def _error(memory: StoredMemory, warned: Warned) -> Note:
    if (rejected := warned.what_fails.removeprefix(f"{DECIDED}: ")) != warned.what_fails:
        return Note(memory, "avoid", DECIDED, full_stop(rejected))
    remedies = {"episodic": "What worked", "semantic": "Do instead", "procedural": "Fix"}
    word = "Recommended there" if _is_doubtful(memory) else remedies[memory.type]
    why = f" {full_stop(warned.why)}" if warned.why else ""
    remedy = f" {word}: {full_stop(warned.prevention)}" if warned.prevention else ""
    what = warned.what_fails if why and not warned.what_fails.endswith(":") else full_stop(warned.what_fails)
    return Note(memory, "avoid", "Failed", f"{what}:{why}{remedy}" if why else f"{what}{remedy}")
