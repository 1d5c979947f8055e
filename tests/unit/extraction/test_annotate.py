"""What the annotator finds in a memory, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph.extraction.annotate import RuleAnnotator
from memgraph.extraction.error_text import error_lines, failure_fingerprint
from memgraph.model.memory import Entity, EpisodicMemory, Outcome, SemanticMemory
from memgraph.ports import Annotator
from tests.growth import assert_grows_linearly


def named(content: str, **fields: Any) -> list[tuple[str, str]]:
    annotation = RuleAnnotator().annotate(EpisodicMemory(content=content, **fields))
    return [(entity.kind, entity.name) for entity in annotation.entities]


@pytest.mark.parametrize(
    ("content", "entity"),
    [
        ("The bug was in src/cart/total.py, near the end", ("file", "src/cart/total.py")),
        ("See package.json.", ("file", "package.json")),
        ("We call cart.total.compute here", ("symbol", "cart.total.compute")),
        ("The CartTotal class rounds", ("symbol", "CartTotal")),
        ("set max_retries to three", ("symbol", "max_retries")),
        ("Needs `redis` to run", ("package", "redis")),
        ("`npm install` missed the `left-pad` package", ("package", "left-pad")),
        ("`port` is bound already", ("symbol", "port")),
        ("It raised KeyError: 'total'", ("error", "KeyError")),
        ("Caught requests.exceptions.ReadTimeoutError", ("error", "requests.exceptions.ReadTimeoutError")),
        ("Closes #123.", ("issue", "#123")),
        ("Undid commit 0a1b2c3d4e5f6789 today", ("commit", "0a1b2c3d4e5f")),
        ("Docs at https://example.org/a?b=c.", ("url", "https://example.org/a?b=c")),
        ("We met at the Golden Gate Bridge yesterday", ("concept", "Golden Gate Bridge")),
        ("She read The Lord of the Rings", ("concept", "Lord of the Rings")),
    ],
)
def test_a_thing_is_found_with_its_kind(content: str, entity: tuple[str, str]) -> None:
    assert named(content) == [entity]


@pytest.mark.parametrize(
    "content",
    [
        "We fixed it and it works now",
        "Yesterday I went home. Then We slept",
        "This is e.g. a test, i.e. nothing and/or little",
        "Version 1.2.3 takes 1234567 bytes",
        "GitHub and JavaScript are words",
    ],
)
def test_common_words_are_no_entities(content: str) -> None:
    assert named(content) == []


def test_people_are_those_the_memory_lists() -> None:
    content = "Ada told Grace that Alice fixed it, Adam did not"
    assert named(content, agents_involved=["Ada"], speaker="Grace") == [("person", "Ada"), ("person", "Grace")]


def test_capitalised_names_are_not_concepts_in_a_git_log() -> None:
    assert named("Decision by Ada Lovelace: New York first", source="git") == []


def test_it_is_about_its_title_else_its_files() -> None:
    annotate = RuleAnnotator().annotate
    files = [f"shop/part{number}.py" for number in range(5)]
    with_title = annotate(EpisodicMemory(content="Rounds badly", title="shop/cart.py", files_involved=files))
    assert [entity.name for entity in with_title.entities if entity.about] == ["shop/cart.py"]
    assert with_title.entities[0].kind == "file"
    without = annotate(EpisodicMemory(content="Rounds badly", files_involved=files))
    assert [entity.name for entity in without.entities if entity.about] == files[:3]
    wiki = annotate(SemanticMemory(content="A film of 1999.", title="Magnolia"))
    assert [(entity.kind, entity.name, entity.about) for entity in wiki.entities] == [("concept", "Magnolia", True)]


def test_entities_are_few_in_the_order_of_the_text_and_named_once() -> None:
    content = " ".join(f"mod_{number}.run_it" for number in range(40)) + " mod_0.run_it"
    entities = named(content)
    assert entities == [("symbol", f"mod_{number}.run_it") for number in range(16)]


def test_a_revert_and_what_it_undid_name_one_commit() -> None:
    sha = "0a1b2c3d4e5f67890a1b2c3d4e5f67890a1b2c3d"
    original = named("Cache totals", git_commit=sha)
    revert = named(f"Ada reverted “Cache totals” (commit {sha[:12]})")
    assert original == revert == [("commit", sha[:12])]


def test_tags_are_kinds_and_components() -> None:
    memory = EpisodicMemory(
        content="Fix: KeyError in the cart", outcome="negative", files_involved=["src/checkout/cart.py"]
    )
    assert RuleAnnotator().annotate(memory).tags == ("failure", "keyerror", "cart", "checkout")


def test_only_negative_memories_have_a_fingerprint_and_equal_failures_share_it() -> None:
    annotate = RuleAnnotator().annotate

    def fingerprint(content: str, outcome: Outcome = "negative") -> str | None:
        return annotate(EpisodicMemory(content=content, outcome=outcome)).failure_fingerprint

    assert fingerprint("KeyError: 'a'", "positive") is None
    first = fingerprint("At 10:00:01 build 17 said KeyError: 'total' in /a/b/cart.py:14")
    assert first == fingerprint("At 23:59:59 build 18 said KeyError: 'price' in /c/cart.py:99")
    assert first is not None
    assert len(first) == 16
    assert first != fingerprint("At 23:59:59 build 18 said ValueError: 'price' in /c/cart.py:99")


def test_an_error_line_is_the_most_telling_one() -> None:
    text = "step 1 failed softly\nerror: see below\nTypeError: x is not a function\n0 errors in lint\ndone"
    assert error_lines(text)[0] == "TypeError: x is not a function"
    assert error_lines("3 passed, 0 failed\nno error: all is well") == []
    assert error_lines("    raise KeyError(name)\nKeyError: 'total'") == ["KeyError: 'total'"]
    ended = "Process completed with exit code 1."
    assert error_lines(f"sh: kubectl: not found\n{ended}") == ["sh: kubectl: not found"]
    assert error_lines(f"gone\n{ended}") == [ended]
    assert failure_fingerprint("Timeout after 30 s") == failure_fingerprint("timeout after 45 s")


def test_it_is_an_annotator_and_deterministic() -> None:
    memory = EpisodicMemory(content="Fix cart_total in shop/cart.py for #7", outcome="negative")
    assert isinstance(RuleAnnotator(), Annotator)
    assert RuleAnnotator().annotate(memory) == RuleAnnotator().annotate(memory)


@pytest.mark.parametrize("part", ["a", "a.", "a/", "A ", "Aa", "`", '"', "#1", "f0", "a_", "Ab Cd of ", "../", "0x"])
def test_hostile_text_costs_little(part: str) -> None:
    def annotate(length: int) -> None:
        text = (part * length)[:length]
        memory = EpisodicMemory(content="x" + text[:799], title=text, outcome="negative", files_involved=[text] * 20)
        assert len(RuleAnnotator().annotate(memory).entities) <= 16

    assert_grows_linearly(annotate, 8_000)


def test_a_memory_with_entities_is_not_searched_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memgraph.extraction.annotate._in_text", None)
    given = [Entity(name="cart", kind="concept")]

    found = RuleAnnotator().annotate(EpisodicMemory(content="KeyError in shop/cart.py", entities=given))

    assert found.entities == ()
    assert "keyerror" in found.tags


def test_a_file_of_the_memory_is_named_by_its_path_alone() -> None:
    memory = EpisodicMemory(
        content="Carts are kept in cart.py; README.md says so, and other.py does not.",
        files_involved=["shop/cart.py", "README.md"],
    )
    names = [entity.name for entity in RuleAnnotator().annotate(memory).entities if entity.kind == "file"]
    assert names == ["shop/cart.py", "README.md", "other.py"]


def test_a_bare_name_of_two_files_stays() -> None:
    memory = EpisodicMemory(content="See cart.py.", files_involved=["shop/cart.py", "admin/cart.py"])
    names = [entity.name for entity in RuleAnnotator().annotate(memory).entities]
    assert "cart.py" in names


@pytest.mark.parametrize("content", ["The order M05KNL is late.", "She has an ScM degree."])
def test_codes_and_degrees_are_no_identifiers(content: str) -> None:
    assert RuleAnnotator().annotate(EpisodicMemory(content=content)).entities == ()


def test_a_memory_that_brings_issues_alone_is_annotated_with_what_else_its_text_names() -> None:
    given = [Entity(name="#12", kind="issue")]
    memory = EpisodicMemory(content="Closes #12: KeyError in the cart", entities=given)
    assert [(entity.kind, entity.name) for entity in RuleAnnotator().annotate(memory).entities] == [
        ("error", "KeyError")
    ]
