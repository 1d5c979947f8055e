"""Long-term memory for AI agents, kept as a graph.

Everything else is imported from its package: errors from `memgraph.errors`, settings from `memgraph.config`, ports from
`memgraph.ports`, models and results from the modules of `memgraph.model`.

Names are imported when they are first used, so that ``import memgraph`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers, which do not see what `__getattr__` returns
    from memgraph.commands import MemoryCommands as MemoryCommands
    from memgraph.config import AgentMemoryConfig as AgentMemoryConfig
    from memgraph.errors import BusyError as BusyError
    from memgraph.errors import ConfigError as ConfigError
    from memgraph.errors import InvalidInputError as InvalidInputError
    from memgraph.errors import JournalError as JournalError
    from memgraph.errors import MemGraphError as MemGraphError
    from memgraph.errors import NotFoundError as NotFoundError
    from memgraph.errors import StorageError as StorageError
    from memgraph.facade import MemGraph as MemGraph
    from memgraph.lifecycle import ConsolidationPipeline as ConsolidationPipeline
    from memgraph.model.build import BuildEventLog as BuildEventLog
    from memgraph.model.build import BuildTask as BuildTask
    from memgraph.model.build import ExtractionResult as ExtractionResult
    from memgraph.model.link import Link as Link
    from memgraph.model.memory import AgentMemory as AgentMemory
    from memgraph.model.memory import Entity as Entity
    from memgraph.model.memory import EpisodicMemory as EpisodicMemory
    from memgraph.model.memory import ProceduralMemory as ProceduralMemory
    from memgraph.model.memory import SemanticMemory as SemanticMemory
    from memgraph.model.memory import StoredMemory as StoredMemory
    from memgraph.model.memory import parse_memory as parse_memory
    from memgraph.model.results.retrieval import AgentContext as AgentContext
    from memgraph.model.results.retrieval import RetrievalConfig as RetrievalConfig
    from memgraph.model.results.retrieval import RetrievalQuery as RetrievalQuery
    from memgraph.model.results.retrieval import RetrievalResult as RetrievalResult
    from memgraph.model.results.retrieval import ScoredMemory as ScoredMemory
    from memgraph.model.results.retrieval import TaskContext as TaskContext
    from memgraph.ports import Annotator as Annotator
    from memgraph.ports import Clock as Clock
    from memgraph.ports import Embedder as Embedder
    from memgraph.ports import Extractor as Extractor
    from memgraph.ports import KeyProvider as KeyProvider
    from memgraph.ports import LanguageModel as LanguageModel
    from memgraph.retrieval import MemoryRetrieval as MemoryRetrieval
    from memgraph.retrieval import create_enriched_system_prompt as create_enriched_system_prompt
    from memgraph.retrieval import format_context_for_prompt as format_context_for_prompt
    from memgraph.retrieval import task_context as task_context
    from memgraph.store import AgentMemoryStore as AgentMemoryStore
    from memgraph.store.restoring import restore as restore

_NAMES = {
    "memgraph.commands": "MemoryCommands",
    "memgraph.config": "AgentMemoryConfig",
    "memgraph.errors": "BusyError ConfigError InvalidInputError JournalError MemGraphError NotFoundError StorageError",
    "memgraph.facade": "MemGraph",
    "memgraph.lifecycle": "ConsolidationPipeline",
    "memgraph.model.build": "BuildEventLog BuildTask ExtractionResult",
    "memgraph.model.link": "Link",
    "memgraph.model.memory": "AgentMemory Entity EpisodicMemory ProceduralMemory SemanticMemory StoredMemory parse_memory",
    "memgraph.model.results.retrieval": "AgentContext RetrievalConfig RetrievalQuery RetrievalResult ScoredMemory TaskContext",
    "memgraph.ports": "Annotator Clock Embedder Extractor KeyProvider LanguageModel",
    "memgraph.retrieval": "MemoryRetrieval create_enriched_system_prompt format_context_for_prompt task_context",
    "memgraph.store": "AgentMemoryStore",
    "memgraph.store.restoring": "restore",
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
