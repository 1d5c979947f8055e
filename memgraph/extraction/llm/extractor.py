"""Extractor and judge based on a language model; if it fails, or its budget is spent, the rules serve and the result says so."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, get_args

from pydantic import Field

from memgraph.config import AgentMemoryConfig
from memgraph.errors import BudgetSpentError, ConfigError, ProviderError
from memgraph.extraction.components import components_of, main_file
from memgraph.extraction.error_text import error_lines, failure_fingerprint
from memgraph.extraction.llm.asking import Budgeted, answer, cautious_tokens
from memgraph.extraction.llm.claims import MAX_TAGS, Claim, claim_schema
from memgraph.extraction.llm.prompt import DATA, Event, Prompt, fenced, prompt_for
from memgraph.extraction.llm.servers import REPLY_TOKENS, ChatCompletionsModel, OllamaLanguageModel
from memgraph.extraction.rules.extractor import RuleExtractor
from memgraph.extraction.rules.findings import origin
from memgraph.model.base import Model
from memgraph.model.build import BuildEventLog, Candidate, ExtractionResult
from memgraph.model.ids import canonical_name
from memgraph.model.memory import AgentMemory, EpisodicMemory
from memgraph.model.model_usage import UsageMeter
from memgraph.ports import Embedder, Extractor, Judgement, LanguageModel, Metered, TokenCounter

LIMIT = 8
PROMPT_TOKENS = 6_000
_MAX_FILES = 20


class _Found(Claim):
    """A memory as returned by the model, and the number of its event."""

    event_index: int


class _Reply(Model):
    memories: Annotated[list[_Found], Field(max_length=100)]


def reply_schema(limit: int) -> dict[str, Any]:
    """Return the JSON schema of a reply."""
    return _object(
        memories={"type": "array", "items": claim_schema(event_index={"type": "integer"}), "maxItems": limit}
    )


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


class ModelExtractor:
    """Asks a language model what is worth remembering. An `Extractor`.

    The model states claims about the events shown. Kept are the sentences of the event that a claim quotes, and what it says of them;
    a claim that its event does not support is dropped, as are unsupported fields (`Claim.verified`). All else derives from the event and the log: project,
    build, sources, trust class. So a prompt injection in a log can at worst become a memory of what that log says.
    Of a log longer than `prompt_tokens` a part is shown.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        limit: int = LIMIT,
        prompt_tokens: int = PROMPT_TOKENS,
        counter: TokenCounter = cautious_tokens,
    ) -> None:
        self._model = model if isinstance(model, Budgeted) else Budgeted(model, counter=counter)
        self._limit = limit
        self._prompt_tokens = prompt_tokens
        self._counter = counter
        self._otherwise = RuleExtractor()

    @property
    def meter(self) -> UsageMeter:
        """Usage of the model in this run, and the budget."""
        return self._model.meter

    @property
    def language_model(self) -> LanguageModel:
        """The model, within this run's budget."""
        return self._model

    def extract(self, build_log: BuildEventLog) -> ExtractionResult:
        """Return at most `limit` candidates, most informative first, or those of the rules with a notice of the reason.

        A log without events is not sent to the model.
        """
        prompt = prompt_for(build_log, limit=self._limit, max_tokens=self._prompt_tokens, counter=self._counter)
        if not prompt.events:
            return self._otherwise.extract(build_log)
        try:
            found = answer(
                self._model, prompt.messages, reply_schema(self._limit), lambda reply: _checked(reply, prompt)
            )
        except (ProviderError, BudgetSpentError) as error:
            return self._by_rules(build_log, str(error))
        result = self._result(found, prompt, build_log)
        if found and not result.candidates:
            return self._by_rules(build_log, f"of its {len(found)} memories none can be kept: {result.notice}")
        return result

    def _by_rules(self, log: BuildEventLog, why: str) -> ExtractionResult:
        served = self._otherwise.extract(log)
        notices = [f"the rules served instead of {self._model.name}: {why}", served.notice]
        return served.model_copy(update={"notice": "; ".join(filter(None, notices))})

    def _result(self, found: list[_Found], prompt: Prompt, log: BuildEventLog) -> ExtractionResult:
        candidates: dict[str, Candidate] = {}
        unsupported, keys = 0, Counter[str]()
        for one in found:
            event = prompt.events[one.event_index]
            claim, _ = one.verified(event.text, metadata=event.task.agent_name if event.task else "")
            content = canonical_name(one.text)
            if claim is None:
                unsupported += 1
            elif len(candidates) < self._limit and content not in candidates:
                memory = _composed(claim, event, log, self._model.name)
                key = _key(memory)
                candidates[content] = Candidate(key=f"{key}{keys[key]}", memory=memory)
                keys[key] += 1  # an event may yield several memories of a type
        notice = f"{unsupported} left out because the log does not support them" if unsupported else None
        return ExtractionResult(candidates=list(candidates.values()), extractor=self._model.name[:400], notice=notice)


def _checked(reply: Any, prompt: Prompt) -> list[_Found]:
    """Return the memories of a reply; reject an invalid one, or one that names an event that was not shown."""
    found = _Reply.parse(reply).memories
    for place, one in enumerate(found):
        if one.event_index not in prompt.events:
            raise ValueError(f"memories.{place}.event_index: no event has the number {one.event_index}")
    return found


def _composed(claim: Claim, event: Event, log: BuildEventLog, model: str) -> AgentMemory:
    task, said = event.task, event.said
    files = task.files_changed[:_MAX_FILES] if task else []
    when = event.at if said else (task and task.occurred_at) or log.completed_at
    main = main_file(files, claim.text)
    fields = origin(log, task.task_id if task else f"{'agent' if event.is_reply else 'user'}@{when}", when) | {
        "agents_involved": [task.agent_name] if task else [],
        "tags": list(dict.fromkeys([*claim.clean_tags, *components_of(files)]))[:MAX_TAGS],
        "title": main[:400] if main else None,
        "reason": f"{model} found it worth remembering: “{claim.quoted}”",
    }
    if claim.outcome == "negative" and task and (errors := error_lines(task.output)):
        fields["failure_fingerprint"] = failure_fingerprint(errors[0])
    memory = claim.memory(**fields)
    if isinstance(memory, EpisodicMemory):
        return memory.model_copy(update={"files_involved": files})
    return memory


def _key(memory: AgentMemory) -> str:
    """Return a key that is stable when the log grows or the model changes its words: the kind of memory and its event."""
    source = memory.source_event_ids[0].removeprefix(f"{memory.build_id}/")
    return f"{source[:300]}:model-{memory.type}:"


_JUDGEMENTS: tuple[Judgement, ...] = get_args(Judgement)
_VERDICT = _object(verdict={"type": "string", "enum": list(_JUDGEMENTS)})
_TASK = """\
Two statements were remembered about one software project, the earlier one first. What are they to each other?
- "compatible": both can be true, also because they speak of different things, places or cases
- "replaces": the later one describes a later state of the same thing
- "contradicts": they cannot both be true of the same thing
- "unsure": the two texts do not show it

Reply with JSON: {{"verdict": ...}}.

{data}"""


class ModelJudge:
    """Asks a language model whether two statements exclude each other. A `Judge`."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    def judge(self, one: str, other: str) -> Judgement:
        """Return what two statements are to each other; an unusable reply is asked for once more."""
        fence, record = fenced(f"Earlier: {' '.join(one.split())}\nLater: {' '.join(other.split())}")
        messages = [
            {"role": "system", "content": _TASK.format(data=DATA.format(fence=fence))},
            {"role": "user", "content": record},
        ]
        return answer(self._model, messages, _VERDICT, _verdict)


def _verdict(reply: Any) -> Judgement:
    said = reply.get("verdict") if isinstance(reply, dict) else None
    for judgement in _JUDGEMENTS:
        if said == judgement:
            return judgement
    raise ValueError(f"the verdict must be one of {', '.join(_JUDGEMENTS)}")


def default_extractor(config: AgentMemoryConfig, *, embedder: Embedder | None = None) -> Extractor:
    """Return the extractor configured by the setting ``extractor``, without contacting a server.

    If the embedder uses a model server too, both share one budget.
    """
    if config.extractor == "rules":
        return RuleExtractor()
    context = config.openai.context_tokens if config.extractor == "openai" else config.ollama_context_tokens
    reply_tokens = min(REPLY_TOKENS, context // 2)
    meter = embedder.meter if isinstance(embedder, Metered) else UsageMeter(config.model_budget)
    # a second question repeats the first together with the rejected reply: both must fit
    prompt_tokens = context - reply_tokens - reply_tokens // 4
    return ModelExtractor(Budgeted(_model(config, reply_tokens), meter=meter), prompt_tokens=prompt_tokens)


def _model(config: AgentMemoryConfig, reply_tokens: int) -> LanguageModel:
    if config.extractor == "openai":
        server = config.openai
        for name in ("base_url", "model"):
            if not getattr(server, name).strip():
                raise ConfigError(f'openai.{name} must be set where extractor is "openai"')
        return ChatCompletionsModel(
            server.model, base_url=server.base_url, timeout_s=server.timeout_s, reply_tokens=reply_tokens
        )
    return OllamaLanguageModel(
        config.ollama_model,
        host=config.ollama_host,
        timeout_s=config.ollama_timeout_s,
        context_tokens=config.ollama_context_tokens,
        reply_tokens=reply_tokens,
    )
