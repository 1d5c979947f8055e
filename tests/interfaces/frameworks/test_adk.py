"""The memory service for Google ADK."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

from memgraph import MemGraph
from memgraph.embedding import NoEmbedder
from memgraph.errors import NotFoundError
from memgraph.interfaces.operations import Caller, perform

try:
    pytestmark = pytest.mark.skipif(find_spec("google.adk") is None, reason="the extra adk is missing")
except ModuleNotFoundError:
    pytestmark = pytest.mark.skip(reason="the extra adk is missing")

ANN = {"app_name": "shop", "user_id": "ann"}


@pytest.fixture
def memory(open_store: Callable[..., Any]) -> MemGraph:
    """Words are evidence without a model; there is no floor for the vectors of a fake one."""
    return MemGraph(open_store(embedder=NoEmbedder()))


@pytest.fixture
def service(memory: MemGraph) -> Any:
    from memgraph.interfaces.adk import MemGraphMemoryService

    return MemGraphMemoryService(memory)


def content(text: str) -> Any:
    from google.genai.types import Content, Part

    return Content(role="user", parts=[Part(text=text), Part(text="a thought", thought=True)])


def session(*texts: str, user: str = "ann") -> Any:
    from google.adk.events import Event
    from google.adk.sessions import Session

    events = [
        Event(
            id=f"e{number}",
            author="user" if number % 2 == 0 else "clerk",
            content=content(text),
            timestamp=1_780_000_000,
        )
        for number, text in enumerate(texts)
    ]
    events.append(Event(id="call", author="clerk", timestamp=1_780_000_001))
    return Session(id="s1", app_name="shop", user_id=user, events=events)


def search(service: Any, query: str, **of: str) -> list[Any]:
    return list(asyncio.run(service.search_memory(**(of or ANN), query=query)).memories)


def texts(found: list[Any]) -> list[str]:
    return [one.content.parts[0].text for one in found]


def test_a_session_is_found_by_its_user_however_often_it_is_added(service: Any, memory: MemGraph) -> None:
    asyncio.run(service.add_session_to_memory(session("I keep two llamas", "Noted")))
    before = memory.store.digest()
    asyncio.run(service.add_session_to_memory(session("I keep two llamas", "Noted")))
    assert memory.store.digest() == before
    asyncio.run(service.add_session_to_memory(session("I keep two llamas", "Noted", "And a goat called Bo")))
    found = search(service, "llamas")[0]
    assert texts(search(service, "llamas")) == ["I keep two llamas"]
    assert (found.author, found.timestamp) == ("user", "2026-05-28T20:26:40.000Z")
    assert texts(search(service, "goat")) == ["And a goat called Bo"]
    assert search(service, "llamas", app_name="shop", user_id="bob") == []
    assert search(service, "spacecraft") == []
    assert search(service, " ") == []


def test_what_is_deleted_stays_deleted(service: Any) -> None:
    asyncio.run(service.add_session_to_memory(session("I keep two llamas")))
    (found,) = search(service, "llamas")
    with pytest.raises(NotFoundError):
        asyncio.run(service.delete_memory(app_name="shop", user_id="bob", memory_id=found.id))
    asyncio.run(service.delete_memory(**ANN, memory_id=found.id))
    asyncio.run(service.add_session_to_memory(session("I keep two llamas")))
    assert search(service, "llamas") == []


def test_other_doors_and_this_one_share_what_they_know(service: Any, memory: MemGraph) -> None:
    from google.adk.memory.memory_entry import MemoryEntry

    perform(memory, Caller(), "save_observation", {"text": "The llama shed opens at nine."})
    asyncio.run(service.add_memory(**ANN, memories=[MemoryEntry(content=content("Ann owns the llama shed"))]))
    assert set(texts(search(service, "llama shed"))) == {"The llama shed opens at nine.", "Ann owns the llama shed"}
    assert "Ann owns the llama shed" in perform(memory, Caller(), "recall", {"task": "llama shed"}).text
