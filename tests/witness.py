"""What a store answers, as JSON: a release freezes it beside its store, and every later release must answer the same.

The questions are frozen with the answers, so that a witness stays what it was when more is asked of younger ones.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from memgraph import MemGraph, MemoryRetrieval
from memgraph.model.results.rows import jsonable
from memgraph.privacy import OWNER
from memgraph.testing import FakeClock, FakeEmbedder
from memgraph.viz.export import node_link, shown_graph
from memgraph.viz.series import learning_series

ANSWERS = "answers.json"
_DIGITS = 6
"""Sums of floats differ between machines in their last digits."""
_STATES = (None, "suppressed", "archived", "invalidated", "superseded")
_SHOWN_CHARS = 200
_SOURCE_MARK = re.compile(r"\[source: (?:tool|imported|web)\] ")


def copied(store: Path, folder: Path) -> Path:
    """Copy a kept store, with the modes that git does not keep: opening writes beside the journal, and recalls into it."""
    shutil.copytree(store, folder)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return folder


def opened(folder: Path, asked: Mapping[str, Any]) -> MemGraph:
    """Open the store under a folder at the time, and with the embedding model, that its witness names."""
    clock, embedder = FakeClock(asked["at"]), FakeEmbedder(**asked["embedder"])
    memory = MemGraph.open(folder / "store", keys_home=folder / "keys", clock=clock, embedder=embedder)
    memory.retrieval = MemoryRetrieval(memory.store, access=OWNER)  # releases before the privacy tiers found everything
    return memory


def answers(memory: MemGraph, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return every answer: what reads first, then what is asked in recalls, since a recall counts as use."""
    found = {**_state(memory), **_views(memory, asked), **_recalled(memory, asked)}
    plain: dict[str, Any] = json.loads(json.dumps(_rounded(found)))
    return plain


def differences(kept: Any, found: Any, place: str = "") -> Iterator[str]:
    """Yield a line for each place where the answers differ."""
    if isinstance(kept, dict) and isinstance(found, dict):
        for name in sorted({*kept, *found}):
            where = f"{place}.{name}" if place else name
            if name not in found or name not in kept:
                yield f"{where}: {'missing now' if name in kept else 'new'}: {_cut((found | kept)[name])}"
            else:
                yield from differences(kept[name], found[name], where)
    elif isinstance(kept, list) and isinstance(found, list):
        if len(kept) != len(found):
            yield f"{place}: {len(kept)} entries were kept, {len(found)} are found"
        for number, (one, other) in enumerate(zip(kept, found, strict=False)):
            yield from differences(one, other, f"{place}[{number}]")
    elif kept != found:
        yield f"{place}: kept {_cut(kept)}, found {_cut(found)}"


def _state(memory: MemGraph) -> dict[str, Any]:
    store = memory.store
    return {
        "digest": store.digest(),
        "memories": {
            one.id: one.model_dump(mode="json", exclude={"id", "embedding"}, exclude_defaults=True)
            for one in store.every_memory()
        },
        "links": [link.model_dump(mode="json") for link in store.every_link()],
        "stats": _stats(memory),
        "lists": {
            state or "in force": [one.id for one in memory.commands.list(state=state, limit=10_000)]  # type: ignore[arg-type]
            for state in _STATES
        },
        "newest": [
            one.model_dump(mode="json", exclude={"privacy_tier", "states"})
            for one in memory.commands.list(sort_by="created", limit=5)
        ],
    }


def _stats(memory: MemGraph) -> dict[str, Any]:
    return memory.commands.stats().model_dump(mode="json", exclude={"db_size_bytes"})  # of the engine's making


def _views(memory: MemGraph, asked: Mapping[str, Any]) -> dict[str, Any]:
    graph = _rounded(json.loads(node_link(shown_graph(memory.store))))
    contradictions = (*memory.contradictions.list(), *memory.contradictions.list(decided=True))
    return {
        "queries": {
            name: jsonable(list(memory.store.query(name, **params))) for name, params in asked["queries"].items()
        },
        "cypher": {text: jsonable(list(memory.store.cypher(text))) for text in asked["cypher"]},
        "series": [
            {"of": of, "found": [one.to_dict() for one in learning_series(memory.store, **of)]}
            for of in asked["series"]
        ],
        "node_link_sha256": hashlib.sha256(orjson.dumps(graph, option=orjson.OPT_SORT_KEYS)).hexdigest(),
        "proposals": [one.model_dump(mode="json") for one in memory.procedures.proposals(state=None)],
        "contradictions": [one.model_dump(mode="json") for one in contradictions],
        "past": {when: _past(memory, when) for when in asked["past"]},
    }


def _past(memory: MemGraph, when: str) -> dict[str, Any]:
    with memory.at(when) as past:
        return {"list": [one.id for one in past.commands.list(limit=10_000)], "stats": _stats(past)}


def _recalled(memory: MemGraph, asked: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "searches": {
            text: [[one.memory.id, one.score, one.match_type] for one in memory.search_memories(text)]
            for text in asked["searches"]
        },
        "asks": {text: memory.commands.ask(text).message.splitlines() for text in asked["asks"]},
        "recalls": {question["task"]: _recall(memory, question) for question in asked["recalls"]},
    }


def _recall(memory: MemGraph, question: Mapping[str, Any]) -> dict[str, Any]:
    result = memory.recall(**question)
    return {
        "explanations": [
            one.model_dump(mode="json", exclude={"rank"}, exclude_defaults=True) for one in result.explanations
        ],
        "certainty": [result.certainty, result.certainty_score],
        "contradictions": [one.model_dump(mode="json") for one in result.contradictions],
        # the mark of outside sources is younger than the first witnesses
        "prefix": [_SOURCE_MARK.sub("", line) for line in result.injected_prompt_prefix.splitlines()],
        "sections": memory.format_context_for_prompt(result, format="sections").splitlines(),
    }


def _rounded(value: Any) -> Any:
    match value:
        case float():
            return round(value, _DIGITS) + 0.0  # no negative zero
        case dict():
            return {name: _rounded(one) for name, one in value.items()}
        case list() | tuple():
            return [_rounded(one) for one in value]
        case _:
            return value


def _cut(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
