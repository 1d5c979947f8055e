"""What a model says in tags is stored through the gates of every other door, once, and each in its own scope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memgraph import InvalidInputError, MemGraph
from memgraph.errors import PermissionDeniedError
from memgraph.model.memory import SemanticMemory
from memgraph.tasks.absorbing import MAX_FACTS

ANSWER = """The port is 8443.

<memory>Deployment: the shop listens on port 8443</memory>
<chat-memory>Tone: Ann wants short answers here</chat-memory>
<working-memory>Task: Deploy the shop
Pending:
- Check the URL</working-memory>
<chat-context>Work group of the shop</chat-context>"""


def test_each_tag_goes_to_its_place(tasks: Any, memory: MemGraph) -> None:
    found = tasks.absorb("monday", ANSWER)
    assert found.text == "The port is 8443."
    assert found.left_out == []
    fact, told = (memory.store.get_memory(one[0].memory_id) for one in (found.memories, found.chat_memories))
    assert (fact.content, fact.trust_class, fact.session_id) == (
        "Deployment: the shop listens on port 8443",
        "agent",
        "monday",
    )
    assert (told.content, told.trust_class, told.session_id) == (
        "Tone: Ann wants short answers here",
        "agent",
        "monday",
    )
    assert tasks.working.get("monday").model_dump(include={"task", "context", "pending", "notes"}) == {
        "task": "Deploy the shop",
        "context": [],
        "pending": ["Check the URL"],
        "notes": None,
    }
    assert tasks.working.context("monday").context == "Work group of the shop"
    assert tasks.working.get("tuesday") is None


def test_what_is_said_for_a_chat_is_recalled_in_it_alone(tasks: Any, memory: MemGraph) -> None:
    told = tasks.absorb("monday", ANSWER).chat_memories[0].memory_id
    question = "which tone and how long are the answers that Ann wants here"
    assert told in [one.id for one in memory.recall(question, session_id="monday").memories]
    for elsewhere in ({}, {"session_id": "tuesday"}, {"task_id": "login"}, {"all_tasks": True}):
        assert told not in [one.id for one in memory.recall(question, **elsewhere).memories]
    assert told not in [one.memory.id for one in memory.search_memories(question)]
    assert told not in [one.id for one in memory.overview(None).memories]


def test_repeating_an_answer_stores_nothing_twice(tasks: Any, memory: MemGraph) -> None:
    first = tasks.absorb("monday", ANSWER)
    before = len(memory.store.get_all_memories())
    again = tasks.absorb("monday", ANSWER)
    assert [one.action for one in (*again.memories, *again.chat_memories)] == ["consolidated", "consolidated"]
    assert again.memories[0].memory_id == first.memories[0].memory_id
    assert len(memory.store.get_all_memories()) == before
    tasks.absorb("monday", "<memory>A: the disk is full</memory>" * 3)
    assert len(memory.store.get_all_memories()) == before + 1


def test_equal_texts_of_two_chats_and_for_the_long_term_stay_apart(tasks: Any, memory: MemGraph) -> None:
    text = "Tone: Ann wants short answers here"
    ids = [
        tasks.absorb("monday", f"<chat-memory>{text}</chat-memory>").chat_memories[0].memory_id,
        tasks.absorb("tuesday", f"<chat-memory>{text}</chat-memory>").chat_memories[0].memory_id,
        tasks.absorb("monday", f"<memory>{text}</memory>").memories[0].memory_id,
    ]
    memory.maintenance.sleep()
    assert len(set(ids)) == 3
    for one in ids:
        assert memory.store.get_memory(one).content == text
        assert not [link for link in memory.store.links(one) if link.relation == "SUPERSEDES"]


def test_what_is_said_for_a_chat_contradicts_nothing_beyond_it(tasks: Any, memory: MemGraph) -> None:
    known = memory.save_observation("The deploy port of the shop is 8080").memory_id
    said = tasks.absorb("monday", "<chat-memory>The deploy port of the shop is 9090</chat-memory>")
    memory.maintenance.sleep()
    assert not memory.store.links(known)
    assert not memory.store.links(said.chat_memories[0].memory_id)
    found = tasks.absorb("monday", "<memory>The deploy port of the shop is 9090</memory>").memories[0].memory_id
    assert memory.store.links(found), "for the long term it does"


def test_secrets_are_masked_and_private_matters_keep_their_tier(
    tasks: Any, memory: MemGraph, bytes_of: Callable[[], bytes]
) -> None:
    key = "sk-ant-api03-" + "a1B2c3D4" * 6
    found = tasks.absorb(
        "monday",
        f"<memory>Key: {key}</memory><chat-memory>The key is {key}</chat-memory>"
        f"<working-memory>Context: {key}</working-memory><chat-context>{key}</chat-context>"
        "<memory>Health: Ann has diabetes and takes insulin</memory>",
    )
    memory.store.flush()
    assert key.encode() not in bytes_of()
    assert found.memories[0].secrets_redacted == 1
    assert memory.store.get_memory(found.memories[1].memory_id).privacy_tier == "private"


def test_what_cannot_be_stored_is_left_out_with_the_reason(tasks: Any, memory: MemGraph) -> None:
    many = "".join(f"<memory>Fact {number} of the shop: {number * 7}</memory>" for number in range(MAX_FACTS + 3))
    found = tasks.absorb("monday", f"Yes.<memory>{'long ' * 2_000}</memory>{many[:400]}")
    assert found.text.startswith("Yes.")
    assert [(one.tag, one.reason) for one in found.left_out] == [("memory", "must have at most 8000 characters")]
    assert len(found.left_out[0].content) == 200
    assert found.memories
    assert tasks.absorb("monday", many).left_out[0].reason == f"and 2 more: {MAX_FACTS} are stored of one answer"
    forgotten = memory.save_observation("The cellar holds the wine").memory_id
    memory.commands.forget(forgotten)
    left_out = tasks.absorb("monday", "<memory>The cellar holds the wine</memory>").left_out
    assert "forgotten" in left_out[0].reason


def test_long_lines_of_a_working_memory_are_split(tasks: Any) -> None:
    found = tasks.absorb("monday", f"<working-memory>Context: {'word ' * 300}</working-memory>").working_memory
    assert " ".join(found.context) == ("word " * 300).strip()
    assert found.notes is None


def test_the_facts_belong_to_the_project_of_the_sessions_task(tasks: Any, memory: MemGraph) -> None:
    tasks.upsert("Deploy", task_id="deploy", project="shop")
    tasks.sessions.switch("monday", "deploy")
    for given, expected in ((None, "shop"), ("bank", "bank")):
        found = tasks.absorb("monday", "<memory>The port is 8443 in all</memory>", project=given)
        assert memory.store.get_memory(found.memories[0].memory_id).project_id == expected


def test_nothing_is_written_without_tags_or_for_who_may_not(
    tasks: Any, memory: MemGraph, open_store: Any, bytes_of: Callable[[], bytes]
) -> None:
    before = bytes_of()
    assert tasks.absorb("monday", "Just words, and `<memory>code</memory>`").memories == []
    for session in ("", " ", "x" * 500):
        with pytest.raises(InvalidInputError):
            tasks.absorb(session, ANSWER)
    assert bytes_of() == before
    other = MemGraph(open_store("other", agents={"reader": {"read": ["general"], "write": []}}))
    with pytest.raises(PermissionDeniedError):
        other.tasks.absorb("monday", ANSWER, agent="reader")
    assert other.store.get_all_memories() == []
    assert other.tasks.working.get("monday") is None


def test_a_chat_memory_is_exported_with_its_scope(tasks: Any, memory: MemGraph) -> None:
    tasks.absorb("monday", ANSWER)
    told = SemanticMemory(content="Tone: Ann wants short answers here", source="chat memory", session_id="tuesday")
    memory.store.insert_memory(told)
    exported = memory.commands.export_memories().model_dump(mode="json")
    assert {one["session_id"] for one in exported["memories"] if one["source"] == "chat memory"} == {
        "monday",
        "tuesday",
    }
