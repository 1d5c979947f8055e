"""Extraction: readers of sources, rules and language models that extract memories, redaction of secrets, the annotator."""

from memgraph.extraction.annotate import RuleAnnotator
from memgraph.extraction.error_text import error_lines, failure_fingerprint
from memgraph.extraction.llm.chat_completions import ChatCompletionsModel
from memgraph.extraction.llm.extractor import ModelExtractor
from memgraph.extraction.llm.ollama import OllamaLanguageModel
from memgraph.extraction.rules.extractor import RuleExtractor

__all__ = [
    "ChatCompletionsModel",
    "ModelExtractor",
    "OllamaLanguageModel",
    "RuleAnnotator",
    "RuleExtractor",
    "error_lines",
    "failure_fingerprint",
]
