"""The same cases through every door: the same answers, the same refusals. A door is a function from a call to a text or an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from memgraph import MemGraph, errors
from memgraph.errors import InvalidInputError, MemGraphError, NotFoundError, PermissionDeniedError
from memgraph.interfaces.operations import OPERATIONS, Answer, Caller, offered, perform
from memgraph.interfaces.worker import client
from memgraph.model.memory import EpisodicMemory, SemanticMemory
from memgraph.testing import FakeClock, FakeEmbedder, FakeKeys
from tests.interfaces.workers import served, socket_folder

CORE = [
    "recall",
    "search_memories",
    "get_memory",
    "record_outcome",
    "save_observation",
    "save_episode",
    "invalidate_memory",
]
Door = Callable[[str, Mapping[str, Any]], Answer]


@pytest.fixture
def memory(tmp_path):
    with MemGraph.open(
        tmp_path / "store",
        keys_home=tmp_path / "keys",
        embedder=FakeEmbedder(),
        clock=FakeClock(),
        keys=FakeKeys(),
        agents={"coach": {"domain": "health", "write": ["health"]}},
    ) as opened:
        yield opened


@pytest.fixture(params=["in the process", "worker"])
def door(request, memory, tmp_path, monkeypatch) -> Iterator[Door]:
    caller = Caller(project="shop", session="s1")
    if request.param == "in the process":
        yield lambda name, arguments: perform(memory, caller, name, arguments)
    else:
        with through_worker(memory, caller, tmp_path, monkeypatch) as call:
            yield call


@contextmanager
def through_worker(memory, caller, tmp_path, monkeypatch) -> Iterator[Door]:
    with socket_folder(monkeypatch), served(memory, tmp_path / "store") as (place, _):

        def call(name: str, arguments: Mapping[str, Any]) -> Answer:
            try:
                found = client.perform(place, name, dict(arguments), caller=caller.model_dump(), timeout_s=10)
            except client.WorkerAnsweredError as error:
                raise of_type(error.type, error.message) from None
            return Answer(**found)

        yield call


def of_type(name: str, message: str) -> MemGraphError:
    """Return the error of this name and message, as a door sends it."""
    kind = getattr(errors, name)
    error = kind.__new__(kind)
    error.args = (message,)
    return error


def test_the_core_tools_are_seven_and_every_description_fits():
    assert [one.name for one in offered("core")] == CORE
    assert all(len(one.description) <= 2048 and one.description.endswith(".") for one in OPERATIONS.values())
    for one in OPERATIONS.values():
        assert one.arguments.model_json_schema()["additionalProperties"] is False


def test_what_is_saved_is_recalled_with_the_id_that_its_outcome_needs(door, memory):
    saved = door("save_episode", EPISODE).data["episode_id"]
    found = door("recall", {"task": "run the checkout migration again"})
    assert saved[:8] in found.text
    assert found.text.endswith(f"query_id: {found.data['query_id']}")
    done = door("record_outcome", {"query_id": found.data["query_id"], "outcome": "success", "used": [saved[:8]]})
    assert done.data["used"] == [saved]
    assert memory.store.get_memory(saved).project_id == "shop"
    assert memory.store.get_memory(saved).session_id == "s1"


def test_no_answer_holds_a_vector(door):
    saved = door("save_observation", {"text": "The shop runs on port 8080."}).data["memory_id"]
    for answer in (
        door("get_memory", {"id": saved[:8]}),
        door("search_memories", {"query": "port"}),
        door("recall", {"task": "which port does the shop run on"}),
        door("list_memories", {}),
    ):
        assert "8080" in answer.text
        assert "embedding'" not in str(answer.data)


def test_a_search_can_be_for_one_type(door):
    door("save_observation", {"text": "The checkout migration locks the orders table."})
    door("save_episode", EPISODE)
    types = {
        one["memory"]["type"]
        for one in door("search_memories", {"query": "migration", "type": "semantic"}).data["results"]
    }
    assert types == {"semantic"}


def test_a_memory_that_is_invalidated_is_no_longer_recalled(door):
    saved = door("save_observation", {"text": "The shop runs on port 8080."}).data["memory_id"]
    door("invalidate_memory", {"id": saved, "reason": "It moved to 9090."})
    assert "8080" not in door("recall", {"task": "which port does the shop run on"}).text


@pytest.mark.parametrize(
    ("name", "arguments", "error", "said"),
    [
        ("recall", {}, InvalidInputError, "task"),
        ("recall", {"task": ""}, InvalidInputError, "task"),
        ("recall", {"task": "x", "agent": "owner"}, InvalidInputError, "agent"),
        ("search_memories", {"query": "x", "limit": 1000}, InvalidInputError, "limit"),
        ("get_memory", {"id": "1234"}, InvalidInputError, "id"),
        ("get_memory", {"id": "00000000-0000-4000-8000-000000000000"}, NotFoundError, "no memory"),
        (
            "save_episode",
            {"task": "x", "action": "y", "reasoning": "z", "outcome": "won"},
            InvalidInputError,
            "outcome",
        ),
        ("save_observation", {"text": "a\x00b"}, InvalidInputError, "text"),
        ("record_outcome", {"query_id": "none", "outcome": "success"}, MemGraphError, "none"),
        ("query", {}, InvalidInputError, "cypher"),
        ("query", {"cypher": "MATCH (m:Memory) DELETE m"}, MemGraphError, "DELETE"),
        ("no_such", {}, NotFoundError, "operation"),
    ],
)
def test_a_bad_call_is_refused_with_what_to_do(door, memory, name, arguments, error, said):
    before = memory.store.digest()
    with pytest.raises(error, match=said):
        door(name, arguments)
    assert memory.store.digest() == before


def test_an_operation_outside_the_toolset_does_not_exist(memory):
    with pytest.raises(NotFoundError, match="recall, search_memories"):
        perform(memory, Caller(), "forget", {"id": "x"}, toolset="core")


class TestPrivacy:
    @pytest.fixture
    def private(self, memory) -> str:
        return memory.store.insert_memory(
            EpisodicMemory(content="Took the SECRETWORD dose of insulin", domain="health", source="test")
        ).id

    @pytest.mark.parametrize("agent", ["agent", "planner"])
    def test_no_operation_shows_an_agent_what_it_may_not_have(self, memory, private, agent):
        caller, seen = Caller(agent=agent), []
        missing = "00000000-0000-4000-8000-000000000000"
        calls: dict[str, list[dict[str, Any]]] = {
            "recall": [{"task": "Took the SECRETWORD dose of insulin"[5:]}],
            "search_memories": [{"query": "dose of insulin"}],
            "get_memory": [{"id": private}, {"id": private[:8]}],
            "ask": [{"question": "dose of insulin"}],
            "list_memories": [{}],
            "record_outcome": [{"query_id": missing, "outcome": "success", "used": [private]}],
            "save_observation": [{"text": "An apple a day"}],
            "save_episode": [EPISODE],
            "invalidate_memory": [{"id": private, "reason": "no"}],
            "feedback": [{"id": private, "feedback": "meh"}],
            "remember": [{"text": "Lunch is at noon"}],
            "forget": [{"id": private}],
            "query": [{"cypher": "MATCH (m:Memory) RETURN m.id, m.content"}],
            "stats": [{}],
            "sleep": [{}],
            "next_work_order": [{}],
            "answer_work_order": [{"order_id": missing}],
        }
        assert calls.keys() == OPERATIONS.keys()  # a new operation fails here until it is tried
        for name, tried in calls.items():
            for arguments in tried:
                try:
                    answer = perform(memory, caller, name, arguments)
                    seen.append(f"{answer.text}{answer.data}")
                except MemGraphError as error:
                    seen.append(str(error))
        told = "\n".join(seen)
        assert "An apple" in told
        assert "SECRETWORD" not in told.replace(str(calls["recall"]), "")
        kept = memory.store.get_memory(private)
        assert not kept.is_suppressed
        assert kept.invalid_at is None
        assert kept.user_feedback is None

    def test_an_unknown_and_a_hidden_id_are_refused_alike(self, memory, private):
        errors = []
        for one in (private, "00000000-0000-4000-8000-000000000000"):
            with pytest.raises(NotFoundError) as caught:
                perform(memory, Caller(), "get_memory", {"id": one})
            errors.append(str(caught.value).replace(one, "ID"))
        assert errors[0] == errors[1]

    def test_its_own_agent_has_it_and_writes_no_other_domain(self, memory, private):
        coach = Caller(agent="coach")
        assert "SECRETWORD" in perform(memory, coach, "get_memory", {"id": private}).text
        for name, arguments in (("remember", {"text": "Lunch is at noon"}), ("save_episode", EPISODE)):
            with pytest.raises(PermissionDeniedError, match="general"):
                perform(memory, coach, name, arguments)

    def test_what_an_agent_remembers_is_not_said_by_the_user(self, memory):
        kept = perform(memory, Caller(), "remember", {"text": "Lunch is at noon"}).data["ids"]
        found = memory.store.get_memory(kept[0])
        assert isinstance(memory.store.get_memory(kept[0]), SemanticMemory)
        assert (found.trust_class, found.is_pinned) == ("agent", True)


EPISODE = {
    "task": "Run the checkout migration",
    "action": "Ran it with a lock timeout of five seconds",
    "reasoning": "The orders table is busy",
    "outcome": "success",
}
