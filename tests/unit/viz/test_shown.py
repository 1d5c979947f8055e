"""Pictures and exports leave out what is suppressed, archived, sensitive or private, unless it is named, and what tells of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memgraph import InvalidInputError, MemoryRetrieval
from memgraph.lifecycle.lessons import compress
from memgraph.model.memory import StoredMemory
from memgraph.testing import FakeClock
from memgraph.viz.export import node_link, shown_graph
from memgraph.viz.page.page import write_page
from memgraph.viz.reading import shown_ids
from memgraph.viz.series import learning_series

Store = Any
ALL = {"plain", "next", "sensitive", "private", "suppressed", "archived"}


def shown_memories(store: Store, **asked: Any) -> list[StoredMemory]:
    return store.read_memories(shown_ids(store, **asked))


def titles(store: Store, **asked: Any) -> set[str | None]:
    return {memory.title for memory in shown_memories(store, project_id="shop", **asked)}


@pytest.mark.parametrize("named", [(), ("sensitive",), ("private", "archived"), ("suppressed",), ("public",)])
def test_only_what_is_named_is_shown_besides(motley: Store, named: tuple[str, ...]) -> None:
    assert titles(motley, include=named) == {"plain", "next", *named} - {"public"}


def test_all_can_be_named(motley: Store) -> None:
    assert titles(motley, include={"sensitive", "private", "suppressed", "archived"}) == ALL
    assert titles(motley, include="archived") == {"plain", "next", "archived"}


def test_the_most_relevant_come_first_and_a_limit_keeps_these(motley: Store) -> None:
    everything = shown_memories(motley)
    assert everything[0].title == "plain"  # it alone was used
    assert [one.relevance_score for one in everything] == sorted(
        (one.relevance_score for one in everything), reverse=True
    )
    assert [one.id for one in shown_memories(motley, limit=3)] == [one.id for one in everything[:3]]
    assert shown_ids(motley, limit=0) == []


def test_a_period_counts_by_when_it_happened(learned: Store) -> None:
    assert len(shown_ids(learned, since="2026-02-02", until="2026-02-02")) == 3
    later = shown_ids(learned, since="2026-02-02T09:00:00.001Z")
    assert len(later) == len(shown_ids(learned)) - 3 - 1  # G, said to be of the 1st
    assert len(shown_ids(learned, until="2026-02-01")) == 1


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"include": {"secret"}}, "include"),
        ({"since": "2027-01-01", "until": "2026-01-01"}, "since"),
        ({"limit": -1}, "limit"),
    ],
)
def test_what_cannot_be_asked_is_refused(motley: Store, given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        shown_ids(motley, **given)
    assert refused.value.field == field


PLACES = ("the blue runner", "Ada's laptop", "the office", "a train")
NAMED = ("suppressed", "private", "deleted", "untagged")
BEFORE, AFTER = "2026-03-02", "2026-03-04"


@pytest.fixture(scope="module")
def hidden_since(opened: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, str]]:
    """A store in which on March 3rd was hidden what was open on the 2nd, and what sleep had made of four episodes."""
    clock = FakeClock("2026-03-01T09:00:00.000Z")
    with opened(tmp_path_factory.mktemp("hidden"), clock) as store:
        failed = {"type": "episodic", "project_id": "shop", "outcome": "failure", "tags": ["deploy", "cluster"]}
        told = [f"The deploy of the shop to the cluster from {place} timed out" for place in PLACES]
        episodes = [{**failed, "content": text, "build_id": f"b{number}"} for number, text in enumerate(told)]
        first = store.insert_memories(episodes)[0].id
        (made,) = compress(store, embedder=store.embedder).new_memory_ids
        given = [
            {
                "type": "episodic",
                "project_id": "bank",
                "title": name,
                "content": f"Of {name}",
                "tags": [f"tag of {name}"],
            }
            for name in NAMED
        ]
        kept = {memory.title: memory.id for memory in store.insert_memories(given)}
        store.insert_memory(
            {**given[0], "title": "open", "content": "Of what is open", "tags": [], "previous_id": kept["private"]}
        )
        clock.set("2026-03-03T09:00:00.000Z")
        for one in (first, kept["suppressed"]):
            store.suppress(one)
        store.update_memory(kept["private"], privacy_tier="private")
        store.delete_memory(kept["deleted"])
        store.update_memory(kept["untagged"], tags=[])
        clock.set(f"{AFTER}T09:00:00.000Z")
        yield store, made


def named(store: Store, **asked: Any) -> set[str | None]:
    """Return the titles that each of the three ways shows, which is the same."""
    found = {memory.title for memory in shown_memories(store, **asked)}
    assert found == {node.get("title") for node in shown_graph(store, **asked).nodes}
    network = store.to_networkx(**asked)
    assert found == {fields.get("title") for _, fields in network.nodes(data=True)}
    return found


def test_what_sleep_made_of_what_was_forgotten_is_not_shown(hidden_since: tuple[Store, str], tmp_path: Path) -> None:
    store, made = hidden_since
    text = store.get_memory(made).content
    shown = shown_graph(store, project_id="shop")
    assert len(shown.nodes) == len(PLACES) - 1
    assert made not in {node["id"] for node in shown.nodes} | set(store.to_networkx())
    write_page(store, tmp_path / "page.html")
    assert text[:30] not in (tmp_path / "page.html").read_text("utf-8")
    both = shown_graph(store, project_id="shop", include={"suppressed"})
    assert made in {node["id"] for node in both.nodes}
    assert len(both.nodes) == len(PLACES) + 1


def test_a_day_before_does_not_show_what_was_hidden_since(hidden_since: tuple[Store, str], tmp_path: Path) -> None:
    store, made = hidden_since
    with store.at(BEFORE) as past:
        assert {memory.title for memory in past.list_memories(project_id="bank")} == {
            *NAMED,
            "open",
        }  # it is read as it was
        assert made in [one.id for one in MemoryRetrieval(past).retrieve({"task_description": "deploy"}).memories]
        assert named(past, project_id="bank") == named(store, project_id="bank") == {"untagged", "open"}
        assert named(past, project_id="bank", include={"suppressed", "private"}) == {*NAMED, "open"} - {"deleted"}
        assert made not in shown_ids(past)
        write_page(past, tmp_path / "page.html")
        page = (tmp_path / "page.html").read_text("utf-8")
        for hidden in ("suppressed", "private", "deleted"):
            assert f"Of {hidden}" not in page
        assert "Of untagged" in page
        (tags,) = (one for one in learning_series(past, project_id="bank") if one.name == "tags")
        assert not tags.points
    (tags,) = (one for one in learning_series(store, project_id="bank") if one.name == "tags")
    assert not tags.points


def test_what_comes_before_is_named_only_if_it_is_shown(hidden_since: tuple[Store, str]) -> None:
    store, _ = hidden_since
    (of_page,) = (node for node in shown_graph(store).nodes if node.get("title") == "open")
    (of_network,) = (one for _, one in store.to_networkx().nodes(data=True) if one.get("title") == "open")
    assert "previous_id" not in {**of_page, **of_network}
    graph, network = shown_graph(store, include={"private"}), store.to_networkx(include={"private"})
    (of_page,) = (node for node in graph.nodes if node.get("title") == "open")
    assert network.nodes[of_page["id"]]["previous_id"] == of_page["previous_id"]
    assert of_page["previous_id"] in network
    hidden = {memory.id for memory in store.every_memory()} - {node["id"] for node in shown_graph(store).nodes}
    assert not any(one in node_link(shown_graph(store)).decode() for one in hidden)
