"""Tags in a model's answer: what is extracted, what its user sees, and the time that hostile answers take."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.tasks.absorbing import parse_tags, working_fields
from tests.growth import assert_grows_linearly

PIECES = [
    "<memory>", "</memory>", "<chat-memory>", "</chat-memory>", "<working-memory>", "</working-memory>", "<chat-context>", "</chat-context>",
    "<MEMORY a='1'>", "<memory/>", "`", "``", "```", "~~~", "\n", "\n\n", " ", "word", "Title: fact", "<", ">", "<memory", "é",
]  # fmt: skip


def memories(answer: str) -> list[tuple[str | None, str]]:
    return [tuple(one) for one in parse_tags(answer).memories]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("answer", "seen", "expected"),
    [
        ("No tag.  \n", "No tag.  \n", []),
        ("Yes <memory>Port: 8443</memory>.", "Yes.", [("Port", "8443")]),
        ("<memory>A: 1</memory> and <memory>B: 2</memory>", "and", [("A", "1"), ("B", "2")]),
        ("One.\n\n<memory>A: 1</memory>\n\nTwo.", "One.\n\nTwo.", [("A", "1")]),
        ("- a\n  <memory>A: 1</memory>\n- b", "- a\n- b", [("A", "1")]),
        ("<Memory>A: 1</MEMORY >b", "b", [("A", "1")]),
        ('<memory id="7" lang=en>A: 1</memory>b', "b", [("A", "1")]),
        ("a <memory></memory><memory> \n </memory><memory/> b", "a b", []),
        ("a </memory> b", "a b", []),
        ("a <memory>A: 1", "a A: 1", []),
        ("<memory>A: 1\n\nThe answer. <memory>B: 2</memory>", "A: 1\n\nThe answer.", [("B", "2")]),
        ("<memory>A: 1 <memory>B: 2</memory> 3</memory>.", ".", [("A", "1 3"), ("B", "2")]),
        ("<memory>no title</memory>", "", [(None, "no title")]),
        ("<memory>see http://a.b:80/c</memory>", "", [(None, "see http://a.b:80/c")]),
        ("<memory>a\nb: c</memory>", "", [(None, "a\nb: c")]),
        ("`<memory>A: 1</memory>`", "`<memory>A: 1</memory>`", []),
        ("``a ` <memory>A: 1</memory>`` <memory>B: 2</memory>", "``a ` <memory>A: 1</memory>``", [("B", "2")]),
        ("```xml\n<memory>A: 1</memory>\n```\nb", "```xml\n<memory>A: 1</memory>\n```\nb", []),
        ("~~~\n<memory>A: 1</memory>\n```\n~~~ x\n", "~~~\n<memory>A: 1</memory>\n```\n~~~ x\n", []),
        ("<memory>A: run `x </memory>` now</memory>b", "b", [("A", "run `x </memory>` now")]),
        ("a ` b\n\n<memory>A: 1</memory> ` c", "a ` b\n\n ` c", [("A", "1")]),
        ("<memory-bank>a</memory-bank>", "<memory-bank>a</memory-bank>", []),
        ("    code\n<memory>A: 1</memory>", "    code", [("A", "1")]),
    ],
)
def test_memories(answer: str, seen: str, expected: list[tuple[str | None, str]]) -> None:
    assert memories(answer) == expected
    assert parse_tags(answer).text == seen


def test_each_tag_has_its_place_and_the_last_state_holds() -> None:
    found = parse_tags(
        "<chat-memory>Tone: dry</chat-memory><working-memory>Task: one</working-memory><chat-context>Work</chat-context>"
        "<memory>A <chat-memory>B</chat-memory> C</memory><working-memory>Task: two</working-memory>"
        "<chat-context>Home</chat-context><chat-context> </chat-context>"
    )
    assert [one.text for one in found.chat_memories] == ["Tone: dry", "B"]
    assert [one.text for one in found.memories] == ["A C"]
    assert (found.working_memory, found.chat_context, found.text) == ("Task: two", "Home", "")


def test_a_closing_tag_ends_what_is_open_within_its_element() -> None:
    found = parse_tags("a <memory>q <chat-memory>w</memory> b</chat-memory>")
    assert ([one.text for one in found.memories], found.chat_memories, found.text) == (["q w"], [], "a b")


@pytest.mark.parametrize(
    "answer",
    [
        lambda size: "<memory>" * (size // 100),
        lambda size: "<memory>x" * (size // 100) + "</memory>" * (size // 100),
        lambda size: "<chat-memory>" * (size // 20) + "</memory>" * (size // 25),
        lambda size: "<memory " * (size // 8),
        lambda size: "a <memory>T: x</memory>\n" * (size // 24),
        lambda size: "``` " * (size // 4),
        lambda size: "".join("`" * count + " " for count in range(1, isqrt(2 * size))),
        lambda size: "```\n~~~\n" * (size // 8),
        lambda size: "\n " * (size // 2),
        lambda size: " <memory></memory>" * (size // 20),
        lambda size: f"<memory>{'a' * size}</memory>",
        lambda size: "`" * size,
        lambda size: "a" * size + "</memory>b" + "</memory>" * (size // 5),
    ],
    ids=range(13),
)
def test_hostile_answers_of_a_megabyte_take_linear_time(answer: Callable[[int], str]) -> None:
    assert_grows_linearly(lambda size: parse_tags(answer(size)), 1_000_000)


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_a_word_is_seen_or_extracted_once_and_no_tag_is_left_outside_code(answer: str) -> None:
    found = parse_tags(answer)
    facts = [one.text for one in (*found.memories, *found.chat_memories)]
    told = [found.text, *facts, found.working_memory or "", found.chat_context or ""]
    states = answer.lower().count("<working-memory>") + answer.lower().count("<chat-context>")
    words = sum(text.count("word") for text in told)
    written = answer.count("word")
    assert words <= written
    assert words == written or states > 1  # only states that are replaced are lost
    if "`" not in answer and "~" not in answer:
        assert not parse_tags(found.text).memories
        assert "</memory>" not in found.text
        assert "<memory>" not in found.text


def test_a_working_memory_as_fields() -> None:
    text = "Hello\nTask: Fix\nit\n**Context:** a\n - b\n\n# Pending\npending:\n* c\n2. d\nNotes: - e\nf"
    task, context, pending, notes = working_fields(text)
    assert (task, context, pending) == ("Fix it", ["a", "b", "# Pending"], ["c", "2. d"])
    assert notes == "Hello\n- e\nf"
    assert working_fields("just words") == (None, [], [], "just words")
