"""Spans of operations, as an application with OpenTelemetry's SDK gets them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from memgraph import MemGraph
from memgraph.errors import BusyError, InvalidInputError, MissingExtraError
from memgraph.interfaces.agents.hooks import answer_hook
from memgraph.interfaces.operations import OPERATIONS, Answer, Caller, perform

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is missing")

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

DOCTOR = Caller(agent="doctor")
EPISODE = {"task": "Deploy the shop", "action": "ran deploy", "reasoning": "the flag was missing", "outcome": "failure"}
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Collect the spans of this process, which may have one provider only."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return exporter


@pytest.fixture
def memory_of(open_store: Callable[..., Any]) -> Callable[[str], MemGraph]:
    permissions = {
        "doctor": {
            "domain": "health",
            "read": ["health", "general"],
            "search": ["health", "general"],
            "write": ["health"],
        }
    }
    return lambda tracing: MemGraph(open_store(tracing=tracing, agents=permissions))


@pytest.fixture
def spans_of(exporter: InMemorySpanExporter) -> Callable[..., list[ReadableSpan]]:
    """Perform operations and return their spans."""

    def call(memory: MemGraph, *calls: tuple[str, dict[str, Any]], caller: Caller | None = None) -> list[ReadableSpan]:
        exporter.clear()
        for name, arguments in calls:
            perform(memory, caller or Caller(), name, arguments)
        return list(exporter.get_finished_spans())

    return call


def saved(memory: MemGraph, text: str, caller: Caller | None = None, **given: Any) -> str:
    answer: Answer = perform(memory, caller or Caller(), "save_observation", {"text": text, **given})
    return str(answer.data["memory_id"])


def test_nothing_is_traced_unless_it_is_turned_on(memory_of: Any, spans_of: Any) -> None:
    assert spans_of(memory_of("off"), ("save_episode", EPISODE), ("recall", {"task": "Deploy the shop"})) == []


def test_a_span_has_the_names_of_the_conventions_and_no_text(memory_of: Any, spans_of: Any) -> None:
    memory = memory_of("spans")
    made, found = spans_of(memory, ("save_episode", EPISODE), ("search_memories", {"query": "Deploy the shop"}))
    [one] = memory.store.list_memories()
    store = {"gen_ai.memory.store.id": memory.store.store_id}
    about = {"gen_ai.memory.record.id": one.id, "gen_ai.memory.record.count": 1}
    assert dict(made.attributes) == {"gen_ai.operation.name": "create_memory", **store, **about}
    assert dict(found.attributes) == {"gen_ai.operation.name": "search_memory", **store, **about}
    assert (made.name, found.name, made.status.is_ok) == ("create_memory", "search_memory", True)
    assert "shop" not in made.to_json() + found.to_json()


def test_every_operation_on_memories_is_traced(memory_of: Any, spans_of: Any) -> None:
    memory = memory_of("spans")
    one, other = saved(memory, "The till needs a coin."), saved(memory, "The bell rings at noon.")
    episode = perform(memory, Caller(), "save_episode", EPISODE).data["episode_id"]
    query_id = perform(memory, Caller(), "recall", {"task": "open the till"}).data["query_id"]
    calls: dict[str, tuple[str, int | None, dict[str, Any]]] = {
        "recall": ("search_memory", None, {"task": "open the till"}),
        "search_memories": ("search_memory", 3, {"query": "the till"}),
        "get_memory": ("search_memory", 1, {"id": one}),
        "ask": ("search_memory", None, {"question": "Deploy the shop?"}),
        "list_memories": ("search_memory", 3, {}),
        "save_observation": ("upsert_memory", 1, {"text": "The lamp is green."}),
        "save_episode": ("create_memory", 1, EPISODE),
        "record_outcome": ("update_memory", 1, {"query_id": query_id, "outcome": "success", "used": [one]}),
        "feedback": ("update_memory", 1, {"id": episode, "feedback": "love"}),
        "remember": ("upsert_memory", 1, {"text": "Lunch is at one."}),
        "invalidate_memory": ("update_memory", 1, {"id": other, "reason": "it is broken"}),
        "forget": ("delete_memory", 1, {"id": other}),
        "prompt": ("search_memory", None, {"task": "open the till"}),
        "absorb": ("upsert_memory", 1, {"output": "Yes. <memory>The gate is blue.</memory>"}),
    }
    traced = {name for name, operation in OPERATIONS.items() if operation.traced}
    assert traced == {*calls, "answer_work_order"}
    for name, (kind, count, arguments) in calls.items():
        [span] = spans_of(memory, (name, arguments), caller=Caller(session="s1"))
        found = span.attributes["gen_ai.memory.record.count"]
        assert (name, span.name, found) == (name, kind, found if count is None else count)


def test_the_recall_of_a_hook_is_traced(memory_of: Any, exporter: InMemorySpanExporter) -> None:
    memory = memory_of("content")
    saved(memory, "The till of the shop needs a coin to open.")
    event = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": "s1",
        "cwd": "",
        "prompt": "Open the till of the shop",
    }
    exporter.clear()
    assert "needs a coin" in answer_hook(memory, "claude-code", event)
    [span] = exporter.get_finished_spans()
    assert (span.name, span.attributes["gen_ai.memory.query.text"]) == ("search_memory", "Open the till of the shop")


def test_texts_are_there_only_if_they_are_asked_for_and_public(memory_of: Any, spans_of: Any) -> None:
    memory = memory_of("content")
    public = saved(memory, f"The till needs a coin, and the lamp {SECRET} a switch.")
    [span] = spans_of(memory, ("search_memories", {"query": f"the till {SECRET}"}))
    [record] = json.loads(span.attributes["gen_ai.memory.records"])
    assert (record["id"], record["type"]) == (public, "semantic")
    assert record["content"].startswith("The till needs a coin")
    assert span.attributes["gen_ai.memory.query.text"].startswith("the till")
    assert SECRET not in span.to_json()


@pytest.mark.parametrize("operation", ["search_memories", "list_memories", "get_memory", "save_observation"])
def test_what_is_not_public_is_in_no_span(memory_of: Any, spans_of: Any, operation: str) -> None:
    memory = memory_of("content")
    private = saved(memory, "Ann is allergic to penicillin.", DOCTOR, domain="health")
    saved(memory, "Ann works on Tuesdays.")
    assert memory.store.get_memory(private).privacy_tier != "public"
    arguments = {
        "search_memories": {"query": "Is Ann allergic to penicillin?"},
        "list_memories": {},
        "get_memory": {"id": private},
        "save_observation": {"text": "Ann is allergic to penicillin and nuts.", "domain": "health"},
    }[operation]
    caller = Caller(agent="doctor", justification="she is about to be treated with it")
    [span] = spans_of(memory, (operation, arguments), caller=caller)
    assert span.attributes["gen_ai.memory.record.count"] >= 1
    assert "allergic" not in span.to_json()
    if operation == "list_memories":
        assert [one["content"] for one in json.loads(span.attributes["gen_ai.memory.records"])] == [
            "Ann works on Tuesdays."
        ]


def test_a_query_that_found_nothing_is_in_no_span(memory_of: Any, spans_of: Any) -> None:
    memory = memory_of("content")
    [span] = spans_of(memory, ("recall", {"task": "Is Ann allergic to penicillin?"}))
    assert span.attributes["gen_ai.memory.record.count"] == 0
    assert "allergic" not in span.to_json()


def test_the_text_of_a_forgotten_memory_is_in_no_span(memory_of: Any, spans_of: Any) -> None:
    memory = memory_of("content")
    [span] = spans_of(memory, ("forget", {"id": saved(memory, "The till needs a coin.")}))
    assert "coin" not in span.to_json()


def test_an_operation_does_not_fail_for_its_trace(
    memory_of: Any, spans_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = memory_of("content")
    saved(memory, "The till needs a coin.")

    def busy(_ids: list[str]) -> Any:
        raise BusyError("the graph", pid=None, timeout_s=1.0)

    monkeypatch.setattr(memory.store, "read_memories", busy, raising=False)
    [span] = spans_of(memory, ("list_memories", {}))
    assert (span.attributes["gen_ai.memory.record.count"], "gen_ai.memory.records" in span.attributes) == (1, False)


def test_an_error_is_known_by_its_type_alone(memory_of: Any, exporter: InMemorySpanExporter) -> None:
    with pytest.raises(InvalidInputError, match="no such argument"):
        perform(memory_of("content"), Caller(), "search_memories", {"query": "the till", "colour": "a secret"})
    [span] = exporter.get_finished_spans()
    assert (span.attributes["error.type"], span.status.is_ok, span.events) == ("InvalidInputError", False, ())
    assert "till" not in span.to_json()
    assert "secret" not in span.to_json()


def test_a_span_stands_below_the_one_in_which_the_operation_is_performed(memory_of: Any, spans_of: Any) -> None:
    memory = memory_of("spans")
    with trace.get_tracer("test").start_as_current_span("agent") as outer:
        [span] = spans_of(memory, ("list_memories", {}))
    assert span.parent.span_id == outer.get_span_context().span_id


def test_without_opentelemetry_the_refusal_says_what_to_install(
    memory_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'memgraph-kuzu\[otel\]'"):
        perform(memory_of("spans"), Caller(), "list_memories", {})
    assert perform(memory_of("off"), Caller(), "list_memories", {}).data["memories"] == []
