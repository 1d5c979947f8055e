"""The small doors: OpenAI Agents' session, LlamaIndex's memory block, LangChain's retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from memgraph import MemGraph
from memgraph.embedding import NoEmbedder
from memgraph.errors import InvalidInputError, PermissionDeniedError
from memgraph.interfaces.openai_agents import MemGraphSession
from memgraph.interfaces.operations import Caller, perform

CALL = {"type": "function_call", "call_id": "c1", "name": "open", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "the drawer sprang open"}
HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "The till needs a coin."},
    CALL,
    RESULT,
    {"role": "assistant", "content": [{"type": "output_text", "text": "I shall keep a coin ready."}]},
]


@pytest.fixture
def memory(open_store: Callable[..., Any]) -> MemGraph:
    """Words are evidence without a model; there is no floor for the vectors of a fake one."""
    agents = {"coach": {"domain": "health"}, "reader": {"write": []}}
    return MemGraph(open_store(embedder=NoEmbedder(), agents=agents))


def contents(memory: MemGraph) -> set[str]:
    return {one.content for one in memory.store.list_memories(limit=50)}


class TestSession:
    @pytest.fixture
    def session(self, memory: MemGraph) -> MemGraphSession:
        session = MemGraphSession("s1", memory)
        asyncio.run(session.add_items(HISTORY[:2]))
        asyncio.run(session.add_items(HISTORY[2:]))
        return session

    def test_it_has_what_the_framework_asks_of_a_session(self, session: MemGraphSession) -> None:
        agents = pytest.importorskip("agents", reason="the extra openai-agents is missing")
        assert isinstance(session, agents.Session)

    def test_the_history_comes_back_in_its_order(self, session: MemGraphSession, memory: MemGraph) -> None:
        again = MemGraphSession("s1", memory)
        assert asyncio.run(again.get_items()) == HISTORY
        assert asyncio.run(again.get_items(limit=2)) == HISTORY[2:]
        assert asyncio.run(again.get_items(limit=9)) == HISTORY
        assert asyncio.run(again.get_items(limit=0)) == []
        assert asyncio.run(MemGraphSession("s2", memory).get_items()) == []

    def test_the_limit_of_the_settings_holds(self, session: MemGraphSession) -> None:
        agents = pytest.importorskip("agents", reason="the extra openai-agents is missing")
        session.session_settings = agents.SessionSettings(limit=1)
        assert asyncio.run(session.get_items()) == HISTORY[3:]

    def test_the_last_item_is_taken_back(self, session: MemGraphSession) -> None:
        assert [asyncio.run(session.pop_item()) for _ in range(5)] == [*reversed(HISTORY), None]

    def test_clearing_leaves_the_other_sessions(self, session: MemGraphSession, memory: MemGraph) -> None:
        other = MemGraphSession("s2", memory)
        asyncio.run(other.add_items(HISTORY[:1]))
        asyncio.run(session.clear_session())
        assert asyncio.run(session.get_items()) == []
        assert asyncio.run(other.get_items()) == HISTORY[:1]

    def test_what_is_said_is_recalled_elsewhere_and_results_of_tools_are_not(
        self, session: MemGraphSession, memory: MemGraph
    ) -> None:
        found = perform(memory, Caller(), "recall", {"task": "Does the till need a coin?"}).text
        assert "user: The till needs a coin." in found
        assert contents(memory) == {"user: The till needs a coin.", "assistant: I shall keep a coin ready."}
        found = memory.search_memories("drawer sprang open")
        assert [one for one in found if "sprang" in one.memory.content] == []

    def test_the_agents_permissions_hold(self, memory: MemGraph) -> None:
        with pytest.raises(PermissionDeniedError):
            MemGraphSession("s1", memory, agent="reader")


class TestRetriever:
    @pytest.fixture
    def retriever(self, memory: MemGraph) -> Any:
        pytest.importorskip("langchain_core", reason="the extra langchain is missing")
        from memgraph.interfaces.langchain import MemGraphRetriever

        return MemGraphRetriever(memory=memory, caller=Caller(project="shop"))

    def test_what_is_recalled_comes_as_documents(self, retriever: Any, memory: MemGraph) -> None:
        saved = memory.save_observation("The till needs a coin.", project="shop", tags=["till"]).memory_id
        memory.save_observation("The till needs a key.", project="bakery")
        [found] = retriever.invoke("open the till")
        assert (found.id, found.page_content) == (saved, "The till needs a coin.")
        assert (found.metadata["type"], found.metadata["project_id"]) == ("semantic", "shop")
        arguments = {"query_id": found.metadata["query_id"], "outcome": "success", "used": [found.id]}
        assert perform(memory, retriever.caller, "record_outcome", arguments).data["used"] == [saved]
        assert [one.id for one in asyncio.run(retriever.ainvoke("open the till"))] == [saved]

    def test_the_phrases_of_a_query_find_what_its_words_do_not(self, retriever: Any, memory: MemGraph) -> None:
        saved = memory.save_observation("The till needs a coin.", project="shop").memory_id
        assert retriever.invoke("be ready to pay") == []
        retriever.also = lambda query: ["till needs coin", f"coin: {query}"]
        assert [one.id for one in retriever.invoke("be ready to pay")] == [saved]
        retriever.also = lambda query: [query] * 6
        with pytest.raises(InvalidInputError, match="also: must have at most 5 items"):
            retriever.invoke("be ready to pay")

    @pytest.mark.parametrize("query", ["", "  ", "paint the fence"])
    def test_there_are_none_if_nothing_belongs_to_the_query(self, retriever: Any, memory: MemGraph, query: str) -> None:
        memory.save_observation("The till needs a coin.", project="shop")
        assert retriever.invoke(query) == []

    def test_the_budget_holds(self, retriever: Any, memory: MemGraph) -> None:
        for place in ("door", "stair", "cellar"):
            memory.save_observation(f"The key of the {place} hangs beside the till.", project="shop")
        retriever.max_tokens = 12
        assert len(retriever.invoke("key beside the till")) == 1


class TestBlock:
    @pytest.fixture
    def block(self, memory: MemGraph) -> Any:
        pytest.importorskip("llama_index.core", reason="the extra llama-index is missing")
        from memgraph.interfaces.llama_index import MemGraphBlock

        return MemGraphBlock(memory=memory, caller=Caller(project="shop"))

    def test_messages_are_kept_and_recalled_for_the_last_prompt(self, block: Any, memory: MemGraph) -> None:
        from llama_index.core.base.llms.types import ChatMessage

        said = [
            ChatMessage(role="user", content="The till needs a coin."),
            ChatMessage(role="assistant", content=""),
            ChatMessage(role="tool", content="the drawer sprang open"),
        ]
        asyncio.run(block.aput(said, session_id="s1"))
        assert contents(memory) == {"user: The till needs a coin."}
        asked = [
            ChatMessage(role="user", content="Does the till need a coin?"),
            ChatMessage(role="assistant", content="One moment."),
        ]
        assert "The till needs a coin." in asyncio.run(block.aget(asked))
        assert asyncio.run(block.aget([ChatMessage(role="user", content="paint the fence")])) == ""
        assert asyncio.run(block.aget([])) == ""

    def test_a_message_of_a_domain_is_as_private_as_the_domain(self, memory: MemGraph, block: Any) -> None:
        from llama_index.core.base.llms.types import ChatMessage

        own = block.model_copy(update={"caller": Caller(agent="coach"), "domain": "health"})
        asyncio.run(own.aput([ChatMessage(role="user", content="I am allergic to penicillin.")]))
        [one] = memory.store.list_memories()
        assert one.privacy_tier != "public"
        assert asyncio.run(block.aget([ChatMessage(role="user", content="Am I allergic to penicillin?")])) == ""

    def test_the_phrases_of_a_message_find_what_its_words_do_not(self, block: Any, memory: MemGraph) -> None:
        from llama_index.core.base.llms.types import ChatMessage

        memory.save_observation("The till needs a coin.", project="shop")
        asked = [ChatMessage(role="user", content="be ready to pay")]
        assert asyncio.run(block.aget(asked)) == ""
        block.also = lambda message: ["till needs coin", f"coin: {message}"]
        assert "The till needs a coin." in asyncio.run(block.aget(asked))
