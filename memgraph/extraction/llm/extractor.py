"""Extractor based on a language model; if that fails, or its budget is spent, the rules are used and the result says so."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

from pydantic import Field

from memgraph.errors import BudgetSpentError, ProviderError
from memgraph.extraction.components import components_of, main_file
from memgraph.extraction.error_text import error_lines, failure_fingerprint
from memgraph.extraction.llm.asking import answer
from memgraph.extraction.llm.budget import Budgeted, cautious_tokens
from memgraph.extraction.llm.prompt import Event, Prompt, prompt_for
from memgraph.extraction.rules.extractor import RuleExtractor
from memgraph.extraction.statements import steps_in
from memgraph.model.base import MAX_CONTENT_CHARS, Model, Text, Unit
from memgraph.model.build import BuildEventLog, Candidate, ExtractionResult
from memgraph.model.ids import canonical_name
from memgraph.model.memory import (
    AgentMemory,
    EpisodicMemory,
    MemoryType,
    Outcome,
    ProceduralMemory,
    SemanticMemory,
)
from memgraph.model.model_usage import UsageMeter
from memgraph.ports import Extractor, LanguageModel, TokenCounter

LIMIT = 8
PROMPT_TOKENS = 6_000
_MAX_TAGS = 6
_MAX_TAG_CHARS = 40
_MAX_FILES = 20


class _Found(Model):
    """A memory as returned by the model."""

    type: MemoryType
    content: Text
    outcome: Outcome
    tags: Annotated[list[Text], Field(max_length=50)]
    confidence: Unit
    event_index: int


class _Reply(Model):
    memories: Annotated[list[_Found], Field(max_length=100)]


def reply_schema(limit: int) -> dict[str, Any]:
    """Return the JSON schema of a reply: flat, without references and lengths, which servers of small models fail on."""
    properties = {
        "type": {"type": "string", "enum": ["episodic", "semantic", "procedural"]},
        "content": {"type": "string"},
        "outcome": {"type": "string", "enum": ["positive", "negative", "neutral", "unknown"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "confidence": {"type": "number"},
        "event_index": {"type": "integer"},
    }
    memory = {"type": "object", "properties": properties, "required": list(properties)}
    memories = {"type": "array", "items": memory, "maxItems": limit}
    return {"type": "object", "properties": {"memories": memories}, "required": ["memories"]}


class ModelExtractor:
    """Asks a language model what is worth remembering. An `Extractor`.

    The model decides only on a memory's type, content, outcome, tags and confidence, and on which of the events shown
    it comes from. All else derives from that event and the log: project, build, sources, agents, time, trust class. So
    a prompt injection in a log can at worst become a memory of that log.

    Parameters
    ----------
    model : LanguageModel
        Wrapped in a `Budgeted` model unless it is one.
    limit : int
        Maximum number of candidates per log.
    prompt_tokens : int
        Maximum number of tokens in a question; longer logs are shortened to fit.
    otherwise : Extractor, optional
        Used where the model fails; default: the rules.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        limit: int = LIMIT,
        prompt_tokens: int = PROMPT_TOKENS,
        counter: TokenCounter = cautious_tokens,
        otherwise: Extractor | None = None,
    ) -> None:
        self._model = model if isinstance(model, Budgeted) else Budgeted(model, counter=counter)
        self._limit = limit
        self._prompt_tokens = prompt_tokens
        self._counter = counter
        self._otherwise = otherwise or RuleExtractor()

    @property
    def meter(self) -> UsageMeter:
        """Usage of the model in this run, and the budget."""
        return self._model.meter

    @property
    def language_model(self) -> LanguageModel:
        """The model, within this run's budget."""
        return self._model

    def extract(self, build_log: BuildEventLog) -> ExtractionResult:
        """Return at most `limit` candidates, most informative first.

        If the model fails, the result is that of the rules, with a notice of the reason. A log without events is not
        sent to it.
        """
        prompt = prompt_for(build_log, limit=self._limit, max_tokens=self._prompt_tokens, counter=self._counter)
        if not prompt.events:
            return self._otherwise.extract(build_log)
        schema = reply_schema(self._limit)
        try:
            found = answer(self._model, prompt.messages, schema, lambda reply: _checked(reply, prompt))
        except (ProviderError, BudgetSpentError) as error:
            served = self._otherwise.extract(build_log)
            told = f"the rules served instead of {self._model.name}: {error}"
            return served.model_copy(update={"notice": "; ".join(filter(None, [told, served.notice]))})
        return self._result(found, prompt, build_log)

    def _result(self, found: list[_Found], prompt: Prompt, log: BuildEventLog) -> ExtractionResult:
        candidates: dict[str, Candidate] = {}
        too_long, keys = 0, Counter[str]()
        for one in found:
            content = " ".join(one.content.split())
            if len(content) > MAX_CONTENT_CHARS:
                too_long += 1
            elif len(candidates) < self._limit and canonical_name(content) not in candidates:
                memory = _composed(one, content, prompt.events[one.event_index], log, self._model.name)
                key = _key(memory)
                candidates[canonical_name(content)] = Candidate(key=f"{key}{keys[key]}", memory=memory)
                keys[key] += 1  # an event may yield several memories of a type
        notice = (
            f"{too_long} left out because they are longer than {MAX_CONTENT_CHARS} characters" if too_long else None
        )
        return ExtractionResult(candidates=list(candidates.values()), extractor=self._model.name[:400], notice=notice)


def _checked(reply: Any, prompt: Prompt) -> list[_Found]:
    """Return the memories of a reply; reject an invalid one, or one that names an event that was not shown."""
    found = _Reply.parse(reply).memories
    for place, one in enumerate(found):
        if one.event_index not in prompt.events:
            raise ValueError(f"memories.{place}.event_index: no event has the number {one.event_index}")
        if not one.content.strip():
            raise ValueError(f"memories.{place}.content: must not be empty")
    return found


def _composed(found: _Found, content: str, event: Event, log: BuildEventLog, model: str) -> AgentMemory:
    task, said = event.task, event.said
    files = task.files_changed[:_MAX_FILES] if task else []
    when = said.timestamp if said else (task and task.occurred_at) or log.completed_at
    main = main_file(files, content)
    fields: dict[str, Any] = {
        "content": content,
        "outcome": found.outcome,
        "confidence": found.confidence,
        "occurred_at": when,
        "project_id": log.project_id,
        "build_id": log.build_id,
        "source_event_ids": [_source(event, log)],
        "evidence_build_ids": [log.build_id],
        "agents_involved": [task.agent_name] if task else [],
        "tags": _tags(found, files),
        "title": main[:400] if main else None,
        "session_id": log.session_id,
        "source": log.source,
        "trust_class": log.trust_class,
        "reason": f"{model} found it worth remembering",
    }
    if found.outcome == "negative" and task and (errors := error_lines(task.output)):
        fields["failure_fingerprint"] = failure_fingerprint(errors[0])
    if found.type == "semantic":
        return SemanticMemory(**fields)
    if found.type == "procedural":
        return ProceduralMemory(**fields, steps=list(steps_in(content)))
    return EpisodicMemory(**fields, event_date=when, files_involved=files)


def _source(event: Event, log: BuildEventLog) -> str:
    """Return the source id of an event, as the rules do."""
    part = event.task.task_id if event.task else f"user@{event.said.timestamp}" if event.said else ""
    return f"{log.build_id}/{part}"[:400]


def _key(memory: AgentMemory) -> str:
    """Return a key that is stable when the log grows or the model changes its words: the kind of memory and its event."""
    source = memory.source_event_ids[0].removeprefix(f"{memory.build_id}/")
    return f"{source[:300]}:model-{memory.type}:"


def _tags(found: _Found, files: list[str]) -> list[str]:
    given = (canonical_name(tag)[:_MAX_TAG_CHARS].strip() for tag in found.tags)
    return [tag for tag in dict.fromkeys([*given, *components_of(files)]) if tag][:_MAX_TAGS]
