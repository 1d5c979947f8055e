"""From a recall to an agent's context: which memory goes where, and how it is rendered.

A recall's budget counts the memories' contents, of 800 characters at most. What is rendered beside or instead of a content is
therefore cut to as much: a memory may hold a thousand times that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain, islice
from typing import Any, TypeGuard, TypeVar

from memgraph.extraction.components import abbreviated, is_sha
from memgraph.index.columns import CONSTRAINT_TAG, FACT_TAGS
from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.memory import (
    EncounteredError,
    Outcome,
    StandingRule,
    StoredEpisodicMemory,
    StoredMemory,
    StoredProceduralMemory,
    StoredSemanticMemory,
)
from memgraph.model.results.learning import WORK_ORDER_SOURCE
from memgraph.model.results.retrieval import (
    AgentContext,
    Experience,
    FromMemory,
    OutcomeWord,
    Pattern,
    RetrievalResult,
    Skill,
    TaskContext,
    Warned,
)
from memgraph.retrieval.context.task_labels import is_outside
from memgraph.text.attempts import quoted_lesson, trial_text
from memgraph.text.cutting import fitted, whole_sentences
from memgraph.text.safe import visible_line

RULE_CONFIDENCE = 0.5
"""A procedure that is more likely wrong than right is no behaviour to follow (seed 2, `getProceduralRules`)."""

APPROVED = "procedures"
"""Source of learned procedures, which are in force once they were approved."""
DECIDED = "Decided"
"""Stands before what an answer to a work order quotes as rejected: a sentence that denies it, so no failure with a remedy."""
_MOST_ITEMS = 20
_WORD_OF: dict[Outcome, OutcomeWord] = {
    "positive": "success",
    "negative": "failure",
    "neutral": "partial",
    "unknown": "unknown",
}

_Entry = TypeVar("_Entry", bound=FromMemory)
_Error = tuple[str | None, str | None, str | None]
"""What fails, why, and what prevents it."""


def agent_context(result: RetrievalResult) -> AgentContext:
    """Return the memories of a recall by type, each list best first."""
    shared = AgentContext.model_fields.keys() & RetrievalResult.model_fields.keys()
    return AgentContext(
        **{name: getattr(result, name) for name in shared},
        semantic_memories=[memory for memory in result.memories if isinstance(memory, StoredSemanticMemory)],
        similar_episodes=[memory for memory in result.memories if isinstance(memory, StoredEpisodicMemory)],
        procedural_rules=[memory for memory in result.memories if isinstance(memory, StoredProceduralMemory)],
        scores={one.memory_id: one.score for one in result.explanations},
        ranks={one.memory_id: one.rank for one in result.explanations if one.rank},
    )


def task_context(recalled: RetrievalResult | AgentContext) -> TaskContext:
    """Return what a recall tells an agent to build on, to avoid and to do; `TaskContext` says which memory goes where."""
    context = recalled if isinstance(recalled, AgentContext) else agent_context(recalled)
    held = context.rules or []
    memories = recalled.memories if context.rules is None else beside_rules(context, recalled.memories)
    solved = solved_since(memories)
    helping = [memory for memory in memories if memory.outcome != "negative" or memory.id in solved]
    warning = [memory for memory in memories if memory.id not in solved]
    avoid = [one for memory in warning for one in (*failed(memory), *known_errors(memory))]

    def marked(entries: Iterable[_Entry]) -> list[_Entry]:
        return [_marked(entry, recalled) for entry in entries]

    patterns = [pattern(memory) for memory in helping if isinstance(memory, StoredSemanticMemory)]
    return TaskContext(
        query_id=recalled.query_id,
        retrieved_at=recalled.retrieved_at,
        certainty=recalled.certainty,
        standing_rules=[rule_pattern(memory) for memory in held],
        relevant_patterns=marked(
            [*patterns, *(reported_procedure(memory) for memory in helping if is_reported(memory))]
        ),
        avoid_these=marked(avoid),
        applicable_skills=marked(skill(memory) for memory in helping if is_rule(memory)),
        similar_episodes=marked(experience(memory) for memory in helping if isinstance(memory, StoredEpisodicMemory)),
        notice=recalled.notice,
    )


def _marked(entry: _Entry, recalled: RetrievalResult | AgentContext) -> _Entry:
    """Return an entry that says which other memories of the recall contradict it, from which task it comes, and as what it holds there."""
    known = entry.memory_id
    marks: dict[str, Any] = {
        "contradicts_older": [one.older_id for one in recalled.contradictions if one.newer_id == known],
        "contradicted_by_newer": [one.newer_id for one in recalled.contradictions if one.older_id == known],
        "label": recalled.labels.get(known),
        "task_item": recalled.task_items.get(known),
    }
    given = {name: value for name, value in marks.items() if value}
    return entry.model_copy(update=given) if given else entry


def is_constraint(memory: StoredMemory) -> TypeGuard[StoredSemanticMemory]:
    """Whether a memory holds for every task: a pinned rule with the tag ``constraint``, of the user or an agent."""
    is_rule_of_theirs = memory.trust_class in {"user", "agent"} and memory.outcome != "negative"
    is_tagged = any(tag.casefold() == CONSTRAINT_TAG for tag in memory.tags)
    return isinstance(memory, StoredSemanticMemory) and memory.is_pinned and is_tagged and is_rule_of_theirs


def is_standing_rule(memory: StoredMemory) -> TypeGuard[StandingRule]:
    """Whether a memory is a rule, preference or constraint that holds for the user or a project, whatever the task is.

    It is knowledge that was remembered or pinned and is not tagged as a mere fact, or an approved procedure. Failures and memories from outside
    never are.
    """
    if memory.outcome == "negative" or is_outside(memory.trust_class) or isinstance(memory, StoredEpisodicMemory):
        return False
    if isinstance(memory, StoredProceduralMemory):
        return is_rule(memory) and (memory.is_pinned or memory.source == APPROVED)
    tags = {tag.casefold() for tag in memory.tags}
    return memory.is_pinned and (CONSTRAINT_TAG in tags or not tags & FACT_TAGS)


def oldest_first(memory: StoredMemory) -> tuple[str, str]:
    """Sort key of constraints: their order does not depend on what is asked."""
    return memory.created_at, memory.id


def rules_of(context: AgentContext) -> Sequence[StandingRule]:
    """Return the standing rules of a context: those that it was given, else the constraints among its memories, the oldest first."""
    if context.rules is not None:
        return context.rules
    held = [one for one in context.memories if is_constraint(one) and one.id not in context.labels]
    return sorted(held, key=oldest_first)


def beside_rules(context: AgentContext, memories: Iterable[StoredMemory]) -> list[StoredMemory]:
    """Return the memories beside the standing rules of a context, in their order, without constraints that do not fit among these."""
    held = {one.id for one in rules_of(context)}
    here = [one for one in memories if one.id in context.labels or not is_constraint(one)]
    return [one for one in here if one.id not in held]


def rules_first(context: AgentContext, memories: Iterable[StoredMemory]) -> list[StoredMemory]:
    """Return the standing rules of a context, then its other memories in their order."""
    return [*rules_of(context), *beside_rules(context, memories)]


def is_procedure(memory: StoredMemory) -> TypeGuard[StoredProceduralMemory]:
    """Whether a memory is a procedure that is likely right, whoever says so."""
    is_sound = memory.confidence >= RULE_CONFIDENCE and memory.outcome != "negative"
    return isinstance(memory, StoredProceduralMemory) and is_sound


def is_rule(memory: StoredMemory) -> TypeGuard[StoredProceduralMemory]:
    """Whether a memory is a procedure to follow: one of the user or an agent."""
    return is_procedure(memory) and not is_outside(memory.trust_class)


def is_reported(memory: StoredMemory) -> TypeGuard[StoredProceduralMemory]:
    """Whether a memory is a procedure of a tool, an import or a web page: it is known, and no behaviour to follow."""
    return is_procedure(memory) and is_outside(memory.trust_class)


def pattern(memory: StoredSemanticMemory) -> Pattern:
    """Return what a semantic memory says is so."""
    parts = _rendered(category=memory.category, conditions=memory.conditions, correct_approach=memory.correct_approach)
    return Pattern(**_origin(memory), text=visible_line(memory.content), **parts)


def skill(memory: StoredProceduralMemory) -> Skill:
    """Return how to do what a procedure is for."""
    parts = _rendered(
        name=memory.title,
        trigger=memory.trigger_pattern,
        prerequisites=memory.prerequisites,
        steps=memory.steps,
        exit_criteria=memory.exit_criteria,
    )
    text = None if parts["steps"] else visible_line(memory.content)
    return Skill(**_origin(memory), text=text, success_rate=memory.success_rate, **parts)


def reported_procedure(memory: StoredProceduralMemory) -> Pattern:
    """Return a procedure as something that is known, in one line."""
    return Pattern(**_origin(memory), text=skill_line(skill(memory)))


def rule_pattern(memory: StandingRule) -> Pattern:
    """Return a standing rule in one line."""
    return reported_procedure(memory) if isinstance(memory, StoredProceduralMemory) else pattern(memory)


def skill_line(entry: Skill) -> str:
    """Return a procedure in one line."""
    if entry.text:
        return entry.text
    when = entry.trigger or entry.name
    line = f"{f'When {when}: ' if when else ''}{' → '.join(entry.steps)}"
    first = f" (first: {'; '.join(entry.prerequisites)})" if entry.prerequisites else ""
    done = f" (done when: {'; '.join(entry.exit_criteria)})" if entry.exit_criteria else ""
    return f"{line}{first}{done}"


def experience(memory: StoredEpisodicMemory) -> Experience:
    """Return an episode: by its parts if it was recorded in parts (seed 2), else by its content."""
    parts = _rendered(
        text=memory.situation, approach=memory.reasoning, action=memory.action, feedback=memory.user_feedback
    )
    parts = parts if parts["text"] else {"text": visible_line(memory.content)}
    return Experience(
        **_origin(memory),
        **parts,
        outcome=_WORD_OF[memory.outcome],
        occurred_at=memory.event_date or memory.occurred_at,
        project_id=visible_line(memory.project_id or "") or None,
    )


def is_revert(memory: StoredMemory) -> bool:
    """Whether a memory is a commit that takes back another one."""
    return isinstance(memory, StoredEpisodicMemory) and memory.change_kind == "revert"


def says_what_it_reverts(memory: StoredMemory) -> bool:
    """Whether a memory is a revert whose title says what it took back: one with a title of its own says what holds since, unless that went wrong."""
    if not is_revert(memory):
        return False
    from memgraph.extraction.readers.commits import action_of, actions_in  # the readers take a while to load

    said, quote, _ = memory.content.partition("\n")[0].replace("“", '"').partition('"')
    is_told = "undo" in actions_in(said) if quote else action_of(said)[0] == "undo"
    return is_told or memory.outcome == "negative"


def commit_of(memory: StoredMemory) -> str:
    """Return "commit" with the abbreviated id of a memory's commit, or "" if it has none."""
    sha = (isinstance(memory, StoredEpisodicMemory) and memory.git_commit) or ""
    return f"commit {abbreviated(sha)}" if is_sha(sha) else ""


def failed(memory: StoredMemory) -> list[Warned]:
    """Return a memory of negative outcome as what fails, and the lesson drawn from it as what prevents it; nothing of any other."""
    if memory.outcome != "negative":
        return []
    what, lesson = memory.content, None
    if isinstance(memory, StoredEpisodicMemory) and memory.asked and memory.lesson:
        what, lesson = trial_text({**vars(memory), "lesson": None}, is_solved=False), memory.lesson
    elif isinstance(memory, StoredSemanticMemory) and memory.lesson:
        before, quoted, after = what.partition(f" {quoted_lesson(memory.lesson)}")
        what, lesson = (before + after, memory.lesson) if quoted else (what, None)
    what, prevention = _fitted([what, lesson])
    return [_warned(memory, what, None, prevention)]


def solved_since(memories: Sequence[StoredMemory]) -> set[str | None]:
    """Return the ids of the failures whose task was solved, as they say or another of the memories: nothing of them is to be avoided."""
    solved = {
        memory.asked.rstrip(".")
        for memory in memories
        if (isinstance(memory, StoredEpisodicMemory) and memory.asked and memory.outcome == "positive")
        or (isinstance(memory, StoredSemanticMemory) and memory.asked and memory.is_solved)
    }
    return {memory.id for memory in memories if memory.outcome == "negative" and _is_solved(memory, solved)}


def _is_solved(memory: StoredMemory, solved: Collection[str]) -> bool:
    if isinstance(memory, StoredEpisodicMemory):
        return memory.asked is not None and memory.asked.rstrip(".") in solved
    return isinstance(memory, StoredSemanticMemory) and memory.is_solved is True


def known_errors(memory: StoredMemory) -> list[Warned]:
    """Return the errors that a memory lists beside its content, with what prevents or resolves each."""
    errors: Iterable[_Error] = ()
    if isinstance(memory, StoredSemanticMemory):
        errors = [(memory.incorrect_approach, None, memory.correct_approach)]
        if memory.source == WORK_ORDER_SOURCE and memory.incorrect_approach:  # the sentence that denies it
            errors = [(f"{DECIDED}: {memory.incorrect_approach}", None, None)]
    elif isinstance(memory, StoredEpisodicMemory):
        content = visible_line(memory.content)
        met = memory.errors_encountered
        errors = [_met(one) for one in met if one.resolution or visible_line(one.message) not in content]
    elif isinstance(memory, StoredProceduralMemory):
        errors = [(one.error, None, one.fix) for one in memory.common_errors]
    texts = _fitted(chain.from_iterable(islice(errors, _MOST_ITEMS)))
    triples = zip(texts[::3], texts[1::3], texts[2::3], strict=True)
    return [_warned(memory, what, why, prevention) for what, why, prevention in triples if what]


def _met(error: EncounteredError) -> _Error:
    if error.message.startswith(error.type):  # "TimeoutError: no answer" says both
        return error.message, None, error.resolution
    return error.type, error.message, error.resolution


def _origin(memory: StoredMemory) -> dict[str, Any]:
    return {
        "memory_id": memory.id,
        "confidence": memory.confidence,
        "trust_class": memory.trust_class,
        "privacy_tier": memory.privacy_tier,
    }


def _warned(memory: StoredMemory, what: str, why: str | None, prevention: str | None) -> Warned:
    parts = {"what_fails": what, "why": why or None, "prevention": prevention or None}
    return Warned(**_origin(memory), memory_type=memory.type, **parts)


def _rendered(**fields: str | Sequence[str] | None) -> dict[str, Any]:
    """Return fields as visible lines that fit together into one memory; an empty text becomes None, an empty item is dropped."""
    texts = {name: [value or ""] if isinstance(value, str | None) else _items(value) for name, value in fields.items()}
    lines = iter(_fitted(chain.from_iterable(texts.values())))
    rendered = {name: list(islice(lines, len(given))) for name, given in texts.items()}
    return {
        name: (rendered[name][0] or None)
        if isinstance(value, str | None)
        else [line for line in rendered[name] if line]
        for name, value in fields.items()
    }


def _items(texts: Sequence[str]) -> list[str]:
    if len(texts) <= _MOST_ITEMS:
        return list(texts)
    return [*texts[: _MOST_ITEMS - 1], f"… {len(texts) - _MOST_ITEMS + 1} more"]


def _fitted(texts: Iterable[str | None]) -> list[str]:
    """Return texts as visible lines that fit together into one memory; what is too long is cut after a sentence where it can be."""
    lines = [visible_line(text or "") for text in texts]
    shortened = fitted(lines, MAX_CONTENT_CHARS)
    return [
        line if line == short else whole_sentences(line, len(short))
        for line, short in zip(lines, shortened, strict=True)
    ]
