"""The LangGraph store: what LangGraph's own stores promise, and what it adds: items are memories, and memories can be read."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import pytest

from memgraph import EpisodicMemory, MemGraph
from memgraph.errors import InvalidInputError, PermissionDeniedError
from memgraph.interfaces.operations import Caller, perform
from memgraph.items import Items
from memgraph.testing import FakeClock

pytest.importorskip("langgraph.store.base", reason="the extra langgraph is missing")

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

from memgraph.interfaces.langgraph import MemGraphStore

USER = ("users", "ann")


@pytest.fixture
def graph_store(memory: MemGraph) -> MemGraphStore:
    return MemGraphStore(memory)


class TestItems:
    def test_a_value_is_kept_replaced_and_deleted(self, graph_store: MemGraphStore, clock: FakeClock) -> None:
        graph_store.put(USER, "prefs", {"theme": "dark", "sizes": [1, 2.5], "nested": {"a": None}})
        clock.advance(minutes=1)
        first = graph_store.get(USER, "prefs")
        graph_store.put(USER, "prefs", {"theme": "light"})
        second = graph_store.get(USER, "prefs")
        assert first is not None
        assert second is not None
        assert first.value == {"theme": "dark", "sizes": [1, 2.5], "nested": {"a": None}}
        assert (second.namespace, second.key, second.value) == (USER, "prefs", {"theme": "light"})
        assert second.created_at == first.created_at < second.updated_at
        graph_store.delete(USER, "prefs")
        assert graph_store.get(USER, "prefs") is None
        graph_store.put(USER, "prefs", {"theme": "blue"})
        assert graph_store.get(USER, "prefs").value == {"theme": "blue"}

    @pytest.mark.parametrize("size", [10, 900, 9_000, 120_000])
    def test_a_value_of_any_size_is_kept(self, graph_store: MemGraphStore, memory: MemGraph, size: int) -> None:
        value = {"text": ("Größe “x” \\ {}\n" * size)[:size], "n": size}
        graph_store.put(USER, "big", value)
        assert graph_store.get(USER, "big").value == value
        graph_store.put(USER, "big", {"n": 1})
        assert graph_store.get(USER, "big").value == {"n": 1}
        assert len([one for one in memory.store.every_memory() if one.source == "item"]) == 1

    def test_a_long_value_that_is_not_searched_is_kept_too(self, graph_store: MemGraphStore, memory: MemGraph) -> None:
        value = {"title": "Minutes of May", "body": "x" * 20_000}
        graph_store.put(USER, "doc", value, index=["title"])
        assert graph_store.get(USER, "doc").value == value
        assert [one.content for one in memory.store.list_memories()] == ["Minutes of May"]
        assert graph_store.search(USER, query="minutes")[0].value == value

    @pytest.mark.parametrize(
        ("namespace", "key", "value", "error"),
        [
            ((), "k", {}, InvalidNamespaceError),
            (("a.b",), "k", {}, InvalidNamespaceError),
            (("a", ""), "k", {}, InvalidNamespaceError),
            (("memgraph", "semantic"), "k", {}, InvalidInputError),
            (("a",), "k" * 500, {}, InvalidInputError),
            (("a",), "k\x00", {}, InvalidInputError),
            (("a",), "k", {"x": object()}, InvalidInputError),
            (("a",), "k", {1: 2}, InvalidInputError),
            (("a",), "k", ["x"], InvalidInputError),
            (("ghp_" + "a1B2" * 9,), "k", {}, InvalidInputError),
        ],
    )
    def test_what_cannot_be_kept_is_refused_and_changes_nothing(
        self, graph_store: MemGraphStore, memory: MemGraph, namespace: Any, key: str, value: Any, error: type[Exception]
    ) -> None:
        before = memory.store.digest()
        with pytest.raises(error):
            graph_store.batch([PutOp(("fine",), "k", {"x": 1}), PutOp(namespace, key, value)])
        assert memory.store.digest() == before

    def test_a_secret_is_redacted_and_the_rest_is_kept(self, graph_store: MemGraphStore, memory: MemGraph) -> None:
        token = "ghp_" + "a1B2c3D4" * 5
        graph_store.put(USER, "env", {"note": f"the token is {token}", "line": f'API_TOKEN={token}"quoted"', "n": 7})
        found = graph_store.get(USER, "env")
        assert found.value["n"] == 7
        assert token not in str(found.value)
        assert token not in str(list(memory.store.every_memory()))


class TestBatches:
    def test_reads_see_the_state_before_the_puts_and_the_last_put_counts(self, graph_store: MemGraphStore) -> None:
        graph_store.put(USER, "a", {"n": 1})
        found = graph_store.batch(
            [
                PutOp(USER, "a", {"n": 2}),
                GetOp(USER, "a"),
                PutOp(USER, "b", {"n": 3}),
                SearchOp(USER),
                ListNamespacesOp(),
                PutOp(("other",), "c", {"n": 4}),
                PutOp(USER, "a", None),
                GetOp(("nowhere",), "a"),
            ]
        )
        assert found[0] is None
        assert found[1].value == {"n": 1}
        assert [one.key for one in found[3]] == ["a"]
        assert found[4] == [USER]
        assert found[7] is None
        assert graph_store.get(USER, "a") is None
        assert graph_store.get(USER, "b").value == {"n": 3}

    def test_a_batch_is_one_commit(self, graph_store: MemGraphStore, memory: MemGraph) -> None:
        graph_store.put(USER, "a", {"n": 1})
        before = memory.store.reader.index.offset.seq
        graph_store.batch([PutOp(USER, "a", {"n": 2}), PutOp(USER, "b", {"n": 2}), PutOp(USER, "c", {"n": 3})])
        events = list(memory.store.reader.events_after(before))
        assert len(events) == 3
        assert len({event.commit_id for event in events}) == 1

    def test_labels_are_checked_in_batches_too(self, graph_store: MemGraphStore) -> None:
        for op in (GetOp(("a.b",), "k"), SearchOp(("a.b",)), ListNamespacesOp((MatchCondition("prefix", ("a.b",)),))):
            with pytest.raises(InvalidNamespaceError):
                graph_store.batch([op])

    def test_the_asynchronous_methods_do_the_same(self, graph_store: MemGraphStore) -> None:
        async def use() -> list[Any]:
            await asyncio.gather(*(graph_store.aput(USER, f"k{number}", {"n": number}) for number in range(8)))
            await graph_store.adelete(USER, "k0")
            found = await graph_store.asearch(USER, filter={"n": {"$gte": 6}})
            return [await graph_store.aget(USER, "k0"), await graph_store.alist_namespaces(), found]

        gone, namespaces, found = asyncio.run(use())
        assert gone is None
        assert namespaces == [USER]
        assert sorted(one.key for one in found) == ["k6", "k7"]


class TestSearch:
    @pytest.fixture(autouse=True)
    def documents(self, graph_store: MemGraphStore, clock: FakeClock) -> None:
        for number, (label, value) in enumerate(
            [
                ("docs", {"title": "Alpha", "score": 1, "tags": ["x"], "meta": {"lang": "en"}, "ok": True}),
                ("docs", {"title": "Beta", "score": 2.5, "meta": {"lang": "de"}, "none": None}),
                ("images", {"title": "Gamma", "score": "high"}),
                ("docs2", {"title": "Delta", "score": 3}),
            ]
        ):
            clock.advance(minutes=1)
            graph_store.put(("test", label), f"k{number}", value)

    @pytest.mark.parametrize(
        ("filter", "keys"),
        [
            ({"title": "Alpha"}, ["k0"]),
            ({"title": {"$eq": "Alpha"}}, ["k0"]),
            ({"title": {"$ne": "Alpha"}}, ["k3", "k2", "k1"]),
            ({"score": {"$gt": 1, "$lt": 3}}, ["k1"]),
            ({"score": {"$gte": 1}}, ["k3", "k1", "k0"]),
            ({"score": {"$lte": 2.5}}, ["k1", "k0"]),
            ({"score": {"$gt": "a"}}, ["k2"]),
            ({"tags": ["x"]}, ["k0"]),
            ({"meta.lang": "de"}, ["k1"]),
            ({"meta": {"$eq": {"lang": "en"}}}, ["k0"]),
            ({"none": None, "title": "Beta"}, ["k1"]),
            ({"missing": {"$gt": 1}}, []),
            ({"missing": {"$ne": 1}}, []),
            ({"missing": None}, ["k3", "k2", "k1", "k0"]),
            ({"ok": True}, ["k0"]),
            ({"x') OR 1=1 --": "y"}, []),
        ],
    )
    def test_filters(self, graph_store: MemGraphStore, filter: dict[str, Any], keys: list[str]) -> None:
        assert [one.key for one in graph_store.search(("test",), filter=filter)] == keys

    def test_an_unknown_operator_is_refused(self, graph_store: MemGraphStore) -> None:
        with pytest.raises(ValueError, match=r"\$regex"):
            graph_store.search(("test",), filter={"title": {"$regex": "A"}})

    def test_a_prefix_is_one_of_whole_labels(self, graph_store: MemGraphStore) -> None:
        assert {one.key for one in graph_store.search(("test", "docs"))} == {"k0", "k1"}
        assert {one.key for one in graph_store.search(("Test",))} == set()
        assert len(graph_store.search(())) == 4

    def test_pages(self, graph_store: MemGraphStore) -> None:
        pages = [graph_store.search(("test",), limit=2, offset=offset) for offset in (0, 2, 4)]
        assert [[one.key for one in page] for page in pages] == [["k3", "k2"], ["k1", "k0"], []]

    def test_namespaces(self, graph_store: MemGraphStore) -> None:
        graph_store.put(("prod", "v1", "docs"), "k", {"n": 1})
        assert graph_store.list_namespaces() == [
            ("prod", "v1", "docs"),
            ("test", "docs"),
            ("test", "docs2"),
            ("test", "images"),
        ]
        assert graph_store.list_namespaces(prefix=("test",), limit=2, offset=1) == [
            ("test", "docs2"),
            ("test", "images"),
        ]
        assert graph_store.list_namespaces(suffix=("docs",)) == [("prod", "v1", "docs"), ("test", "docs")]
        assert graph_store.list_namespaces(prefix=("*", "v1")) == [("prod", "v1", "docs")]
        assert graph_store.list_namespaces(suffix=("v1", "*")) == [("prod", "v1", "docs")]
        assert graph_store.list_namespaces(max_depth=1) == [("prod",), ("test",)]
        graph_store.delete(("prod", "v1", "docs"), "k")
        assert graph_store.search(("nowhere",)) == []
        assert ("prod", "v1", "docs") not in graph_store.list_namespaces()


class TestByWords:
    def test_a_query_finds_what_matches_best_among_the_namespace(self, graph_store: MemGraphStore) -> None:
        graph_store.put(USER, "food", {"text": "Ann likes pizza with olives"})
        graph_store.put(USER, "work", {"text": "Ann repairs bicycles"})
        graph_store.put(("users", "bob"), "food", {"text": "Bob likes pizza with tuna"})
        found = graph_store.search(USER, query="pizza")
        assert found[0].key == "food"
        assert found[0].score > 0
        assert {one.namespace for one in found} == {USER}
        assert [
            one.key for one in graph_store.search(USER, query="pizza", filter={"text": "Ann repairs bicycles"})
        ] == ["work"]
        assert len(graph_store.search(("users",), query="pizza", limit=1, offset=1)) == 1

    def test_fields_and_index_say_what_is_searched(self, memory: MemGraph) -> None:
        graph_store = MemGraphStore(memory, fields=["title", "notes[*].text"])
        value = {"title": "Bicycles", "notes": [{"text": "grease the chain"}, {"text": "true the wheel"}], "id": "q7x9"}
        graph_store.put(USER, "default", value)
        graph_store.put(USER, "title", value, index=["title"])
        graph_store.put(USER, "hidden", value, index=False)
        assert [one.key for one in graph_store.search(USER, query="wheel")] == ["default", "title"]
        assert {one.key for one in graph_store.search(USER)} == {"default", "title", "hidden"}
        contents = {one.content for one in memory.store.list_memories()}
        assert contents == {"Bicycles", "grease the chain", "true the wheel"}

    def test_a_long_text_is_found_by_each_of_its_parts_once(self, graph_store: MemGraphStore) -> None:
        text = " ".join(f"Sentence {number} is about nothing in particular." for number in range(60))
        graph_store.put(USER, "long", {"text": f"{text} The gearbox needs oil. {text}"})
        graph_store.put(USER, "short", {"text": "It rains"})
        found = graph_store.search(USER, query="gearbox oil", limit=2)
        assert found[0].key == "long"
        assert len({one.key for one in found}) == len(found)


class TestTimeToLive:
    @pytest.fixture
    def mortal(self, memory: MemGraph) -> MemGraphStore:
        return MemGraphStore(memory, ttl={"default_ttl": 10, "refresh_on_read": True})

    def test_an_item_is_absent_everywhere_when_its_time_has_ended(
        self, mortal: MemGraphStore, memory: MemGraph, clock: FakeClock
    ) -> None:
        mortal.put(USER, "short", {"text": "The coupon is SPRING"}, ttl=5)
        mortal.put(USER, "default", {"text": "b"})
        mortal.put(USER, "forever", {"text": "c"}, ttl=None)
        clock.advance(minutes=6)
        assert mortal.get(USER, "short") is None
        assert "SPRING" not in perform(memory, Caller(), "recall", {"task": "which coupon"}).text
        clock.advance(minutes=5)
        assert [one.key for one in mortal.search(())] == ["forever"]
        assert mortal.sweep_ttl() == 2
        assert len(list(memory.store.every_memory())) == 1
        assert mortal.sweep_ttl() == 0

    def test_reading_lets_it_begin_again_unless_that_is_not_wanted(
        self, mortal: MemGraphStore, clock: FakeClock
    ) -> None:
        mortal.put(USER, "read", {"text": "Read again. " * 200})
        mortal.put(USER, "found", {"n": 1})
        mortal.put(USER, "peeked", {"n": 2})
        clock.advance(minutes=8)
        assert mortal.get(USER, "read")
        assert mortal.search(USER, filter={"n": 1})
        assert mortal.get(USER, "peeked", refresh_ttl=False)
        clock.advance(minutes=8)
        assert mortal.get(USER, "read", refresh_ttl=False).value == {"text": "Read again. " * 200}
        assert mortal.get(USER, "found", refresh_ttl=False)
        assert mortal.get(USER, "peeked") is None

    def test_a_put_sets_it_anew(self, mortal: MemGraphStore, clock: FakeClock) -> None:
        mortal.put(USER, "k", {"n": 1}, ttl=1)
        clock.advance(minutes=2)
        mortal.put(USER, "k", {"n": 2}, ttl=None)
        clock.advance(days=30)
        assert mortal.get(USER, "k").value == {"n": 2}

    @pytest.mark.parametrize("ttl", [float("nan"), 1e300, "soon"])
    def test_a_time_to_live_must_be_one(self, mortal: MemGraphStore, ttl: Any) -> None:
        with pytest.raises(InvalidInputError, match="ttl"):
            mortal.put(USER, "k", {"n": 1}, ttl=ttl)


class TestMemories:
    def test_an_item_is_recalled_through_the_other_doors(self, graph_store: MemGraphStore, memory: MemGraph) -> None:
        graph_store.put(USER, "editor", {"name": "helix", "indent": 3})
        graph_store.put(USER, "diet", {"data": "Ann eats no cheese."})
        assert (
            "users/ann/editor: name: helix. indent: 3." in perform(memory, Caller(), "recall", {"task": "helix"}).text
        )
        assert "Ann eats no cheese." in perform(memory, Caller(), "recall", {"task": "does Ann eat cheese"}).text

    def test_other_memories_are_read_in_a_namespace_of_their_own(
        self, graph_store: MemGraphStore, memory: MemGraph
    ) -> None:
        saved = perform(memory, Caller(), "save_observation", {"text": "The shop runs on port 8080."}).data["memory_id"]
        graph_store.put(USER, "port", {"text": "The shop has a port"})
        where = ("memgraph", "semantic")
        assert graph_store.get(where, saved).value["text"] == "The shop runs on port 8080."
        assert graph_store.get(("memgraph", "episodic"), saved) is None
        assert [one.key for one in graph_store.search(("memgraph",), query="port")] == [saved]
        assert [one.key for one in graph_store.search(where, filter={"trust_class": "agent"})] == [saved]
        assert graph_store.search(("memgraph", "episodic")) == []
        assert [one.key for one in graph_store.search(())] == ["port"]
        assert graph_store.list_namespaces() == [USER]

    def test_what_the_user_forgets_or_corrects_is_absent_until_it_is_put_again(
        self, graph_store: MemGraphStore, memory: MemGraph
    ) -> None:
        for key in ("forgotten", "wrong"):
            graph_store.put(USER, key, {"n": key})
        ids = {one.title.rsplit("/")[-1]: one.id for one in memory.store.every_memory()}
        memory.store.suppress(ids["forgotten"])
        memory.invalidate_memory(ids["wrong"], reason="it is wrong")
        assert graph_store.search(()) == []
        assert graph_store.get(USER, "forgotten") is None
        for key in ("forgotten", "wrong"):
            graph_store.put(USER, key, {"n": 2})
        assert len(graph_store.search(())) == 2

    def test_sleep_neither_merges_items_nor_takes_them_away(
        self, graph_store: MemGraphStore, memory: MemGraph, clock: FakeClock
    ) -> None:
        values = {
            ("users", name): {"data": text}
            for name, text in [
                ("ann", "The user lives in Paris"),
                ("bob", "The user lives in Rome"),
                ("cid", "The user lives in Rome"),
            ]
        }
        for namespace, value in values.items():
            graph_store.put(namespace, "home", value)
        memory.save_observation("The user lives in Oslo and not in Rome")
        memory.save_observation("The user lives in Rome")
        memory.maintenance.sleep()
        clock.advance(days=2_000)
        memory.maintenance.sleep()
        assert {one.namespace: one.value for one in graph_store.search(())} == values

    def test_an_agent_has_what_its_permissions_admit(self, memory: MemGraph) -> None:
        coach = MemGraphStore(memory, agent="coach", domain="health")
        coach.put(USER, "dose", {"text": "Ann takes the SECRETWORD dose"})
        assert coach.get(USER, "dose").value == {"text": "Ann takes the SECRETWORD dose"}
        other = MemGraphStore(memory)
        private = memory.store.insert_memory(EpisodicMemory(content="A SECRETWORD", domain="health", source="test")).id
        assert other.get(USER, "dose") is None
        assert other.get(("memgraph", "episodic"), private) is None
        assert coach.get(("memgraph", "episodic"), private) is not None
        seen = [other.search(()), other.search((), query="SECRETWORD"), other.search(("memgraph",), query="SECRETWORD")]
        assert "SECRETWORD" not in str([seen, other.search(("memgraph",))])
        assert other.list_namespaces() == []
        for value in ({"text": "mine"}, None):
            with pytest.raises(PermissionDeniedError):
                other.batch([PutOp(USER, "dose", value)])
        with pytest.raises(PermissionDeniedError):
            MemGraphStore(memory, agent="reader")
        with pytest.raises(PermissionDeniedError):
            MemGraphStore(memory, domain="health")

    def test_what_an_agent_gets_with_a_justification_is_recorded(self, memory: MemGraph) -> None:
        why = "The quarterly report needs these amounts"
        banker = MemGraphStore(memory, agent="banker", justification=why, domain="financial")
        banker.put(USER, "salary", {"text": "Ann earns much"})
        assert MemGraphStore(memory).search(()) == []
        assert memory.audit() == []
        reads = (
            lambda: banker.get(USER, "salary"),
            lambda: banker.search(()),
            lambda: banker.search((), query="earns"),
        )
        for number, read in enumerate(reads, start=1):
            assert read()
            assert len(memory.audit()) == number

    def test_projects_have_separate_items(self, memory: MemGraph) -> None:
        shop, bank = MemGraphStore(memory, project="shop"), MemGraphStore(memory, project="bank")
        shop.put(USER, "k", {"n": 1})
        bank.put(USER, "k", {"n": 2})
        assert shop.get(USER, "k").value == {"n": 1}
        assert [one.value for one in bank.search(())] == [{"n": 2}]

    def test_a_text_that_poses_as_a_record_is_a_text(self, graph_store: MemGraphStore, memory: MemGraph) -> None:
        graph_store.put(USER, "real", {"n": 1})
        record = next(iter(memory.store.every_memory())).pattern.partition("\n")[0]
        filler = "x" * (8_000 - len(record.replace("real", "fake")) - len('\n{"a":"'))
        graph_store.put(USER, "fake", {"a": f"{filler}{record}\n"})
        assert {one.key for one in graph_store.search(())} == {"real", "fake"}
        assert Items(memory.store).sweep() == 0

    def test_times_are_aware(self, graph_store: MemGraphStore) -> None:
        graph_store.put(USER, "k", {"n": 1})
        item = graph_store.get(USER, "k")
        assert isinstance(item.created_at, datetime)
        assert item.created_at.utcoffset() is not None
