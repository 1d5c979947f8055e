"""What `memgraph` offers by name, with which signatures, and at what price."""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
from dataclasses import FrozenInstanceError
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import pytest

import memgraph
import memgraph.errors
from memgraph.errors import ClosedError

PUBLIC = [
    "AgentContext",
    "AgentMemory",
    "AgentMemoryConfig",
    "AgentMemoryStore",
    "Annotator",
    "BuildEventLog",
    "BuildTask",
    "BusyError",
    "Clock",
    "ConfigError",
    "ConsolidationPipeline",
    "Embedder",
    "Entity",
    "EpisodicMemory",
    "ExtractionResult",
    "Extractor",
    "InvalidInputError",
    "JournalError",
    "KeyProvider",
    "LanguageModel",
    "Link",
    "MemGraph",
    "MemGraphError",
    "MemoryCommands",
    "MemoryRetrieval",
    "NotFoundError",
    "ProceduralMemory",
    "RetrievalConfig",
    "RetrievalQuery",
    "RetrievalResult",
    "ScoredMemory",
    "SemanticMemory",
    "StorageError",
    "StoredMemory",
    "TaskContext",
    "create_enriched_system_prompt",
    "format_context_for_prompt",
    "parse_memory",
    "restore",
    "task_context",
]
"""Frozen: a name that comes or goes is a decision, made here."""
MOST_NAMES = 40

PACKAGES = {
    "memgraph.config": "AgentMemoryConfig ConsolidationConfig RetrievalBudget",
    "memgraph.embedding": "MiniLMEmbedder NoEmbedder OllamaEmbedder",
    "memgraph.facade": "MemGraph",
    "memgraph.facade.curation": "Curation",
    "memgraph.facade.learning": "Contradictions Distillation Maintenance Procedures",
    "memgraph.lifecycle": "ConsolidationPipeline collect ingest save_episode save_observation sleep",
    "memgraph.model.build": "BuildEventLog BuildTask Candidate ExtractionResult UserIntervention",
    "memgraph.model.memory": "StoredEpisodicMemory StoredMemory StoredProceduralMemory StoredSemanticMemory id_of",
    "memgraph.model.model_usage": "ModelBudget ModelUsage",
    "memgraph.model.relevance": "ForgettingCurveConfig",
    "memgraph.model.results.curation": "MemoryCommandResult MemoryExport MemoryListEntry MemoryStats",
    "memgraph.model.results.learning": (
        "CompressionResult ConsolidationResult Contradiction ContradictionResult ErrorAnalysis PhaseReport ProcedureResult Proposal "
        "RepeatedError SavedEpisode SavedObservation SleepReport"
    ),
    "memgraph.model.results.maintenance": (
        "CollectionPreview CollectionResult DecayResult FadedMemory ReembedResult VectorRepair"
    ),
    "memgraph.model.results.rows": "Column Rows",
    "memgraph.model.results.retrieval": (
        "AgentContext Explanation Hop RetrievalConfig RetrievalQuery RetrievalResult ScoredMemory StageReport TaskContext"
    ),
    "memgraph.model.similarity": "cosine_similarity",
    "memgraph.ports": (
        "Annotation Annotator Clock Embedder Extractor KeyProvider LanguageModel SigningKey TokenCounter"
    ),
    "memgraph.retrieval": "MemoryRetrieval agent_context create_enriched_system_prompt format_context_for_prompt task_context",
    "memgraph.store": "AgentMemoryStore repair_store",
}
"""Public names that are imported from their packages."""

REQUIRED = inspect.Parameter.empty
POSITIONAL, KEYWORD, REST = "positional", "keyword", "rest"

SIGNATURES = {
    "AgentMemoryStore": "config=None, *, embedder=None, clock=None, keys=None",
    "AgentMemoryStore.insert_memory": "memory",
    "AgentMemoryStore.insert_memories": "memories",
    "AgentMemoryStore.get_memory": "id",
    "AgentMemoryStore.update_memory": "id, **updates",
    "AgentMemoryStore.delete_memory": "id",
    "AgentMemoryStore.query_by_type": "type, *, limit=50, include_suppressed=False",
    "AgentMemoryStore.query_by_project": "project_id, *, type=None, limit=50",
    "AgentMemoryStore.record_access": "id",
    "AgentMemoryStore.get_stats": "",
    "AgentMemoryStore.get_all_memories": "*, include_suppressed=False",
    "AgentMemoryStore.link": "source_id, relation, target_id, **properties",
    "AgentMemoryStore.links": "id",
    "AgentMemoryStore.cypher": "query, **params",
    "AgentMemoryStore.query": "name, **params",
    "AgentMemoryStore.to_networkx": "*, project_id=None, include=()",
    "AgentMemoryStore.commit": "write_scope, events",
    "AgentMemoryStore.digest": "",
    "AgentMemoryStore.close": "",
    "ConsolidationPipeline": "store, embedder=None, extractor=None, config=None",
    "ConsolidationPipeline.consolidate": "build_log",
    "ConsolidationPipeline.deduplicate": "embedding, type, *, project_id=None",
    "ConsolidationPipeline.merge": "existing, candidate",
    "MemoryRetrieval": "store, embedder=None, config=None, forgetting=None",
    "MemoryRetrieval.retrieve": "query",
    "MemoryRetrieval.search_memories": "text, *, limit=10, domain=None, include_archived=False",
    "MemoryRetrieval.format_injected_prefix": "memories",
    "MemoryRetrieval.apply_decay": "",
    "MemoryRetrieval.calculate_decayed_relevance": "initial, days, is_pinned",
    "MemoryRetrieval.get_confidence_label": "relevance",
    "MemoryRetrieval.get_confidence_text": "label",
    "MemoryCommands": "store, embedder=None, retrieval=None",
    "MemoryCommands.remember": "text, tags=None",
    "MemoryCommands.forget": "query",
    "MemoryCommands.ask": "query",
    "MemoryCommands.list": "*, type=None, project=None, include_suppressed=False, limit=20, sort_by='relevance'",
    "MemoryCommands.show": "id",
    "MemoryCommands.stats": "",
    "MemoryCommands.export_memories": "*, shareable=False",
    "MemoryCommands.import_memories": "data",
    "MemoryCommands.format_age": "iso_timestamp",
    "MemGraph.open": "home=None, **config",
    "MemGraph.save_observation": "content, *, context=None, confidence=0.7, episode_id=None, project=None, **details",
    "MemGraph.save_episode": "situation, reasoning, action, outcome, *, project=None, **details",
    "MemGraph.update_episode_with_feedback": "episode_id, feedback, *, comment=None",
    "MemGraph.invalidate_memory": "memory_id, *, reason, invalid_at=None",
    "ConsolidationPipeline.compress": "cycle_count=0",
    "ConsolidationPipeline.is_landmark": "memory",
    "MemGraph.at": "when, *, recorded=False",
    "facade.learning.Contradictions.dismiss": "one_id, other_id, *, reason=None",
    "facade.learning.Contradictions.find": "*, seconds=None, progress=None",
    "facade.learning.Contradictions.list": "*, project=None, decided=False",
    "facade.learning.Contradictions.resolve": "one_id, other_id, *, keep, reason=None",
    "facade.curation.Curation.archive": "ids, *, reason=None, summary=None",
    "facade.curation.Curation.delete": "ids, *, reason=None",
    "facade.curation.Curation.edit": "ids, values=None, *, add_tags=(), remove_tags=(), as_new=False",
    "facade.curation.Curation.forget": "ids",
    "facade.curation.Curation.invalidate": "ids, *, reason=None, at=None",
    "facade.curation.Curation.history": "id",
    "facade.curation.Curation.matching": "text, *, limit=10",
    "facade.curation.Curation.merge": "ids, *, keep=None",
    "facade.curation.Curation.pin": "ids",
    "facade.curation.Curation.split": "id, parts",
    "facade.curation.Curation.tag": "ids, tags",
    "facade.curation.Curation.undo": "event=None",
    "facade.curation.Curation.unpin": "ids",
    "facade.curation.Curation.untag": "ids, tags",
    "facade.curation.Curation.why": "id, *, depth=3, most=10",
    "facade.learning.Maintenance.compress": "",
    "facade.learning.Procedures.learn": "",
    "facade.learning.Maintenance.analyse_errors": "",
    "facade.learning.Procedures.proposals": "*, state='proposed', project=None",
    "facade.learning.Procedures.approve": "proposal_id",
    "facade.learning.Procedures.reject": "proposal_id",
    "facade.learning.Procedures.reopen": "proposal_id",
    "facade.learning.Maintenance.collect": "*, preview=False, progress=None",
    "facade.learning.Maintenance.sleep": "*, phases=(), max_seconds=None, progress=None",
    "MemGraph.record_outcome": "query_id, outcome, *, used=(), overridden=()",
    "MemGraph.search_memories": "text, **options",
    "MemGraph.build_agent_context": "task, also=(), *, agent='agent', project=None, **query",
    "MemGraph.format_context_for_prompt": "context, *, format='sections'",
    "MemGraph.create_enriched_system_prompt": "base_prompt, context, *, format='sections'",
    "retrieval.agent_context": "result",
    "retrieval.task_context": "recalled",
    "retrieval.format_context_for_prompt": "context, *, format='sections'",
    "retrieval.create_enriched_system_prompt": "base_prompt, context, *, format='sections'",
    "model.similarity.cosine_similarity": "a, b",
}


def shape(signature: inspect.Signature) -> list[tuple[str, str, object]]:
    """Return (name, kind, default) of each parameter but `self`; `**rest` may bear any name."""
    kinds = {
        inspect.Parameter.POSITIONAL_ONLY: POSITIONAL,
        inspect.Parameter.POSITIONAL_OR_KEYWORD: POSITIONAL,
        inspect.Parameter.KEYWORD_ONLY: KEYWORD,
        inspect.Parameter.VAR_KEYWORD: REST,
    }
    return [
        ("**" if kinds[one.kind] == REST else one.name, kinds[one.kind], one.default)
        for one in signature.parameters.values()
        if one.name not in {"self", "cls"}
    ]


def agreed(text: str) -> list[tuple[str, str, object]]:
    """Read a signature as the design writes it."""
    namespace: dict[str, object] = {}
    exec(f"def function({text}): ...", namespace)
    return shape(inspect.signature(namespace["function"]))


def disagreement(actual: inspect.Signature, text: str) -> list[object]:
    """List what an actual signature lacks, and what it adds other than optional keyword-only arguments."""
    has, wanted = shape(actual), agreed(text)
    missing = [one for one in wanted if one not in has]
    added = [one for one in has if one not in wanted and (one[1] != KEYWORD or one[2] is REQUIRED)]
    positional = [one[0] for one in has if one[1] == POSITIONAL]
    in_order = positional == [one[0] for one in wanted if one[1] == POSITIONAL]
    return [*missing, *added, *([] if in_order else [positional])]


def python(program: str) -> object:
    """Run a program in an interpreter of its own and return what it prints, read as JSON."""
    environment = {**os.environ, "PYTHONPATH": str(Path(memgraph.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_all_is_the_frozen_list():
    assert list(memgraph.__all__) == sorted(memgraph.__all__)
    assert sorted(memgraph.__all__) == sorted(PUBLIC)
    assert len(PUBLIC) <= MOST_NAMES


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_can_be_imported(name):
    assert getattr(memgraph, name) is not None
    assert name in dir(memgraph)


def test_star_import_gives_exactly_the_public_names():
    namespace: dict[str, object] = {}
    exec("from memgraph import *", namespace)
    assert sorted(namespace.keys() - {"__builtins__"}) == sorted(PUBLIC)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="NoSuchName"):
        memgraph.NoSuchName  # noqa: B018 - the access is the test


@pytest.mark.parametrize(("package", "names"), PACKAGES.items(), ids=PACKAGES)
def test_the_rest_can_be_imported_from_its_package(package, names):
    module = import_module(package)
    assert [name for name in names.split() if not hasattr(module, name)] == []


def test_type_checkers_see_the_public_names():
    """`__getattr__` returns Any, so the package says under TYPE_CHECKING what each name is: the same, from the same module."""
    tree = ast.parse(Path(memgraph.__file__).read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    declared = [(node.module, name.name, name.asname) for node in block.body for name in node.names]
    assert sorted(name for _, name, _ in declared) == sorted(PUBLIC)
    assert all(getattr(import_module(module), name) is getattr(memgraph, alias) for module, name, alias in declared)


def test_every_error_is_in_one_module_and_descends_from_the_root():
    errors = {
        name: value
        for name, value in vars(memgraph.errors).items()
        if inspect.isclass(value) and value.__module__ == "memgraph.errors"
    }
    assert len(errors) > 20
    assert all(issubclass(error, memgraph.MemGraphError) for error in errors.values())


def test_the_three_types_are_memories():
    for name in ("EpisodicMemory", "SemanticMemory", "ProceduralMemory"):
        assert issubclass(getattr(memgraph, name), memgraph.AgentMemory)


@pytest.mark.parametrize(("dotted", "text"), SIGNATURES.items(), ids=SIGNATURES)
def test_signatures_are_the_agreed_ones(dotted, text):
    assert disagreement(inspect.signature(resolve_name(f"memgraph.{dotted}")), text) == []


@pytest.mark.parametrize(
    "other",
    [
        "text, limit=10, *, domain=None",  # positional where keyword-only was agreed
        "text, *, limit=20, domain=None",  # another default
        "text, *, limit=10",  # one missing
        "text, *, limit=10, domain=None, extra",  # one more that must be given
        "words, *, limit=10, domain=None",  # another name
        "text, extra=None, *, limit=10, domain=None",  # one more positional
    ],
)
def test_the_signature_check_can_fail(other):
    namespace: dict[str, object] = {}
    exec(f"def function({other}): ...", namespace)
    assert disagreement(inspect.signature(namespace["function"]), "text, *, limit=10, domain=None")


def test_the_signature_check_sees_order_and_allows_more_options():
    assert disagreement(inspect.signature(lambda b, a: None), "a, b")
    assert disagreement(inspect.signature(lambda a, *, more=1, **others: None), "a, **rest") == []
    assert disagreement(inspect.signature(lambda a: None), "a, **rest")


def test_a_store_is_a_context_manager_and_closes_twice(store):
    with store as entered:
        assert entered is store
    store.close()
    store.close()
    with pytest.raises(ClosedError):
        store.get_stats()


def test_the_facade_wires_the_parts(config, embedder, clock):
    with memgraph.MemGraph.open(config.home, keys_home=config.keys_home, embedder=embedder, clock=clock) as memory:
        assert isinstance(memory.store, memgraph.AgentMemoryStore)
        assert isinstance(memory.retrieval, memgraph.MemoryRetrieval)
        assert isinstance(memory.consolidation, memgraph.ConsolidationPipeline)
        assert isinstance(memory.commands, memgraph.MemoryCommands)
        for group in (memory.procedures, memory.contradictions, memory.maintenance):
            assert group.store is memory.store
            with pytest.raises(FrozenInstanceError):
                group.store = None
        memory.commands.remember("Always use pnpm")
        assert memory.store.get_stats().total == 1


HEAVY = ["click", "kuzu", "networkx", "numpy", "ollama", "onnxruntime", "orjson", "pydantic", "rich", "tokenizers"]


def test_importing_memgraph_is_light():
    program = "import json, sys, memgraph; {}; print(json.dumps([n for n in {!r} if n in sys.modules]))"

    assert python(program.format("pass", HEAVY)) == []
    assert python(program.format("memgraph.MemGraphError", HEAVY)) == []
    seen = python(program.format("memgraph.EpisodicMemory", HEAVY))
    assert "pydantic" in seen  # so the check sees what is imported
    assert "kuzu" not in seen
    assert "onnxruntime" not in seen
