"""Default extractor."""

from __future__ import annotations

from memgraph.config import AgentMemoryConfig
from memgraph.errors import ConfigError
from memgraph.extraction.llm.budget import Budgeted
from memgraph.extraction.llm.chat_completions import ChatCompletionsModel
from memgraph.extraction.llm.extractor import ModelExtractor
from memgraph.extraction.llm.ollama import REPLY_TOKENS, OllamaLanguageModel
from memgraph.extraction.rules.extractor import RuleExtractor
from memgraph.model.model_usage import UsageMeter
from memgraph.ports import Embedder, Extractor, LanguageModel, Metered


def default_extractor(config: AgentMemoryConfig, *, embedder: Embedder | None = None) -> Extractor:
    """Return the extractor configured by the setting ``extractor``, without contacting a server.

    Parameters
    ----------
    embedder : Embedder, optional
        If it uses a model server too, both share one budget.

    Raises
    ------
    ConfigError
        The server's address or model is not set.
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
