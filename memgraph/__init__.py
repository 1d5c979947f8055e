"""Long-term memory for AI agents, kept as a graph.

Names are imported when they are first used, so that ``import memgraph`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES = {
    "memgraph.commands": "MemoryCommands",
    "memgraph.config": "AgentMemoryConfig ConsolidationConfig RetrievalBudget",
    "memgraph.errors": (
        "BudgetSpentError BusyError ClosedError ConfigError DamagedJournalError DiskFullError DuplicateIdError EmbeddingError ExtractionError GraphError "
        "InvalidInputError JournalError KeyMissingError MemGraphError MissingExtraError ModelMismatchError NotAStoreError NotFoundError OutdatedGraphError "
        "PayloadError ProviderError QueryError ReadOnlyError ScopeError SourceError StorageError TruncatedJournalError UnknownEventError "
        "VectorDamageError"
    ),
    "memgraph.facade": "MemGraph",
    "memgraph.lifecycle": "ConsolidationPipeline",
    "memgraph.model.build": "BuildEventLog BuildTask Candidate ExtractionResult UserIntervention",
    "memgraph.model.results.context": "AgentContext TaskContext",
    "memgraph.model.results.contradictions": "Contradiction ContradictionResult",
    "memgraph.model.link": "Link",
    "memgraph.model.memory": "AgentMemory Entity EpisodicMemory ProceduralMemory SemanticMemory parse_memory",
    "memgraph.model.results.procedures": "ErrorAnalysis ProcedureResult Proposal RepeatedError",
    "memgraph.model.relevance": "ForgettingCurveConfig",
    "memgraph.model.results.learning": "CompressionResult ConsolidationResult SavedEpisode SavedObservation",
    "memgraph.model.results.listing": "MemoryCommandResult MemoryExport MemoryListEntry MemoryStats",
    "memgraph.model.results.maintenance": (
        "ChangedRecall CollectionPreview CollectionResult DecayResult FadedMemory ReembedResult VectorRepair"
    ),
    "memgraph.model.retrieval": "Explanation Hop RetrievalConfig RetrievalQuery RetrievalResult ScoredMemory StageReport",
    "memgraph.model.results.rows": "Column Rows",
    "memgraph.model.similarity": "cosine_similarity",
    "memgraph.model.results.sleep": "PhaseReport SleepReport",
    "memgraph.model.model_usage": "ModelBudget ModelUsage",
    "memgraph.ports": (
        "Annotation Annotator Clock Embedder Extractor GraphEngine KeyProvider LanguageModel SigningKey TokenCounter"
    ),
    "memgraph.retrieval": "MemoryRetrieval",
    "memgraph.retrieval.context.context": "agent_context task_context",
    "memgraph.retrieval.context.formats": "create_enriched_system_prompt format_context_for_prompt",
    "memgraph.store": "AgentMemoryStore",
    "memgraph.store.maintenance.repair": "repair_store",
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_MODULE_OF)  # noqa: PLE0605 - one list of names, not two


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'memgraph' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
