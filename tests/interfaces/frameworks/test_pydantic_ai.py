"""The pydantic-ai capability, with a model that is a function."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

from memgraph import MemGraph
from memgraph.embedding import NoEmbedder
from memgraph.errors import NotFoundError
from memgraph.interfaces.operations import Caller, perform

pytestmark = pytest.mark.skipif(find_spec("pydantic_ai") is None, reason="the extra pydantic-ai is missing")

CALLER = Caller(project="shop", session="s1")


class Script:
    """A model that makes some calls, one a turn, then says that it is done; it keeps what it was shown."""

    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        self.calls = list(calls)
        self.instructions: list[str] = []
        self.tools: list[str] = []
        self.messages: list[Any] = []

    def __call__(self, messages: list[Any], info: Any) -> Any:
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

        self.messages = messages
        self.instructions.append(info.instructions or "")
        self.tools = [tool.name for tool in info.function_tools]
        if self.calls:
            return ModelResponse([ToolCallPart(*self.calls.pop(0))])
        return ModelResponse([TextPart("done")])


def run(memory: MemGraph, script: Script, prompt: Any, **options: Any) -> Any:
    from pydantic_ai import Agent
    from pydantic_ai.models.function import FunctionModel

    from memgraph.interfaces.pydantic_ai import MemGraphMemory

    agent = Agent(FunctionModel(script), capabilities=[MemGraphMemory(memory, CALLER, **options)])
    return agent.run_sync(prompt)


def test_what_one_run_saves_the_next_one_is_told(memory: MemGraph) -> None:
    first = Script(("save_observation", {"text": "Deployments of the shop need the flag --canary."}))
    run(memory, first, "Deploy the shop")
    assert first.tools[:2] == ["recall", "search_memories"]
    assert "--canary" not in first.instructions[0]
    second = Script()
    run(memory, second, ["Deploy the shop with its flag"])
    assert "--canary" in second.instructions[0]
    assert "query_id: " in second.instructions[0]
    assert memory.store.list_memories()[0].project_id == "shop"


def test_the_phrases_of_a_prompt_find_what_its_words_do_not(open_store: Callable[..., Any]) -> None:
    memory, plain, helped = MemGraph(open_store(embedder=NoEmbedder())), Script(), Script()
    perform(memory, CALLER, "save_observation", {"text": "The till needs a coin."})
    run(memory, plain, "be ready to pay")
    run(memory, helped, "be ready to pay", also=lambda prompt: ["till needs coin", f"coin: {prompt}"])
    assert "The till needs a coin." not in plain.instructions[0]
    assert "The till needs a coin." in helped.instructions[0]


def test_the_outcome_of_a_run_is_recorded_if_it_is_known(memory: MemGraph) -> None:
    perform(memory, CALLER, "save_observation", {"text": "The shop runs on port 8080."})
    run(memory, Script(), "Which port does the shop run on?", outcome_of=lambda result: "success")
    assert [row["outcome"] for row in memory.store.reader.every_record("Recall")] == ["success"]


def test_a_refusal_tells_the_model_what_to_do_and_the_run_goes_on(memory: MemGraph) -> None:
    script = Script(("get_memory", {"id": "1"}), ("get_memory", {"id": "1", "agent": "owner"}))
    assert run(memory, script, "x").output == "done"
    returned = [str(part) for message in script.messages for part in message.parts if part.part_kind == "tool-return"]
    assert "at least its first 8 characters" in returned[0]
    assert "agent" in returned[1]


def test_a_run_goes_on_without_a_memory_that_fails(memory: MemGraph) -> None:
    memory.close()
    script = Script(("recall", {"task": "x"}))
    assert run(memory, script, "x", outcome_of=lambda result: "success").output == "done"
    with pytest.raises(NotFoundError):
        perform(memory, CALLER, "none", {})
