"""Default extractor."""

from __future__ import annotations

from memgraph.config import AgentMemoryConfig
from memgraph.extraction.llm.budget import Budgeted
from memgraph.extraction.llm.extractor import ModelExtractor
from memgraph.extraction.llm.ollama import REPLY_TOKENS, OllamaLanguageModel
from memgraph.extraction.rules.extractor import RuleExtractor
from memgraph.model.model_usage import UsageMeter
from memgraph.ports import Embedder, Extractor, Metered


def default_extractor(config: AgentMemoryConfig, *, embedder: Embedder | None = None) -> Extractor:
    """Return the extractor configured by the setting ``extractor``, without contacting a server.

    Parameters
    ----------
    embedder : Embedder, optional
        If it uses a model server too, both share one budget.
    """
    if config.extractor == "rules":
        return RuleExtractor()
    reply_tokens = min(REPLY_TOKENS, config.ollama_context_tokens // 2)
    model = OllamaLanguageModel(
        config.ollama_model,
        host=config.ollama_host,
        timeout_s=config.ollama_timeout_s,
        context_tokens=config.ollama_context_tokens,
        reply_tokens=reply_tokens,
    )
    meter = embedder.meter if isinstance(embedder, Metered) else UsageMeter(config.model_budget)
    # a second question repeats the first together with the rejected reply: both must fit
    prompt_tokens = config.ollama_context_tokens - reply_tokens - reply_tokens // 4
    return ModelExtractor(Budgeted(model, meter=meter), prompt_tokens=prompt_tokens)
