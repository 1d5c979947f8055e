"""A store as it was: what a view shows, what it refuses, how it is kept."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph import AgentMemoryConfig, AgentMemoryStore, ConsolidationPipeline, MemoryRetrieval, StorageError
from memgraph.disk.folders import MOST_KEPT, KeptViews, Lease
from memgraph.errors import ClosedError, ReadOnlyError
from memgraph.model.build import ExtractionResult
from memgraph.store.past import moment_of
from memgraph.testing import FakeClock, FakeEmbedder, FakeExtractor
from tests.tables import tables

PORT = "The deploy port of the shop"
FAILED = "The nightly run failed because the disk of runner seven was full"
TEAM = "The team of the shop moved to the second floor"
HISTORY: dict[str, list[dict[str, Any]]] = {
    "2021-03-01": [
        {"type": "episodic", "content": FAILED, "outcome": "negative", "tags": ["disk", "runner"]},
        {"type": "semantic", "content": f"{PORT} is 8080", "title": PORT},
    ],
    "2022-03-01": [
        {"type": "episodic", "content": f"{FAILED} once again", "outcome": "negative", "tags": ["disk", "runner"]}
    ],
    "2023-03-01": [
        {"type": "episodic", "content": FAILED, "outcome": "negative", "tags": ["disk", "runner"]},
        {"type": "semantic", "content": f"{PORT} is 9090", "title": PORT},
    ],
    "2024-03-01": [{"type": "semantic", "content": TEAM}],
}
"""What was found in one build a year."""
TODAY = "2026-02-01T09:00:00.000Z"


def build(day: str) -> dict[str, Any]:
    return {
        "build_id": f"build of {day}",
        "project_id": "shop",
        "build_outcome": "failure",
        "started_at": f"{day}T10:00:00Z",
        "completed_at": f"{day}T12:00:00Z",
    }


def pipeline(store: AgentMemoryStore) -> ConsolidationPipeline:
    return ConsolidationPipeline(
        store, extractor=FakeExtractor([ExtractionResult.from_memories(found) for found in HISTORY.values()])
    )


def opened(folder: Path, clock: FakeClock, engine: Any = None) -> AgentMemoryStore:
    config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    return AgentMemoryStore(config, embedder=FakeEmbedder(64), clock=clock)


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentMemoryStore]:
    """Years of history, read today and compressed; not to be written to."""
    with opened(tmp_path_factory.mktemp("ingested"), FakeClock(TODAY)) as store:
        made = pipeline(store)
        made.consolidate_all([memgraph.BuildEventLog.parse(build(day)) for day in HISTORY])
        made.compress()
        yield store


@pytest.fixture(scope="module")
def then(ingested: AgentMemoryStore) -> Iterator[Callable[[str], AgentMemoryStore]]:
    """Return the ingested store as it was on a day; each is opened once."""
    views: dict[str, AgentMemoryStore] = {}
    yield lambda day: views.get(day) or views.setdefault(day, ingested.at(day))
    for view in views.values():
        view.close()


def contents(store: AgentMemoryStore, **which: Any) -> set[str]:
    return {memory.content for memory in store.list_memories(**which)}


def told(store: AgentMemoryStore) -> dict[Any, dict[str, Any]]:
    """Return what every memory says, but for its use and when it was recorded."""
    fields = {"content", "outcome", "tags", "entities", "evidence_build_ids", "confidence", "occurred_at", "title"}
    return {memory.id: memory.model_dump(include=fields) for memory in store.every_memory()}


def test_a_view_shows_what_was_known_then(then: Callable[[str], AgentMemoryStore]) -> None:
    assert contents(then("2021-03-01")) == {FAILED, f"{PORT} is 8080"}
    assert contents(then("2022-03-01")) == {f"{FAILED} once again", f"{PORT} is 8080"}
    (failure,) = then("2022-03-01").query_by_type("episodic")
    assert failure.evidence_build_ids == ["build of 2021-03-01", "build of 2022-03-01"]


def test_a_derived_memory_dates_from_its_latest_source(then: Callable[[str], AgentMemoryStore]) -> None:
    before, after = then("2022-03-01"), then("2023-03-01")
    assert [memory for memory in before.query_by_type("semantic") if memory.supporting_memory_ids] == []
    (learned,) = [memory for memory in after.query_by_type("semantic") if memory.supporting_memory_ids]
    assert len(learned.evidence_build_ids) == 3
    assert {link.relation for link in after.links(learned.id)} == {"DERIVED_FROM", "SUPPORTS"}
    assert before.list_memories(state="superseded") == []
    (older,) = after.list_memories(state="superseded")
    assert (older.content, older.invalid_at) == (f"{PORT} is 8080", "2023-03-01T12:00:00.000Z")
    assert TEAM not in contents(after)


def test_a_view_equals_a_store_recorded_live(then: Callable[[str], AgentMemoryStore], tmp_path: Path) -> None:
    clock = FakeClock("2021-01-01T00:00:00Z")
    with opened(tmp_path, clock) as store:
        living = pipeline(store)
        for day in HISTORY:
            clock.set(f"{day}T12:00:00Z")
            living.consolidate(build(day))
            past = then(day)
            learned = {key: said for key, said in told(past).items() if said["evidence_build_ids"]}
            seen = told(store)
            assert {key: said for key, said in learned.items() if key in seen} == seen
            assert len(learned) - len(seen) == (
                day >= "2023-03-01"
            )  # its generalisation: this store was never compressed
            shared = [link for link in past.every_link() if {link.source_id, link.target_id} <= seen.keys()]
            assert [(one.source_id, one.relation, one.target_id) for one in shared] == [
                (one.source_id, one.relation, one.target_id) for one in store.every_link()
            ]


def test_a_view_of_now_equals_the_store(ingested: AgentMemoryStore, then: Callable[[str], AgentMemoryStore]) -> None:
    with ingested.at(ingested.now()) as now:
        assert now.digest() == ingested.digest()
        assert now.verify(deep=True) == ingested.verify(deep=True)
        assert [memory.id for memory in now.get_all_memories()] == [one.id for one in ingested.get_all_memories()]
    assert then("2022-03-01").digest() != ingested.digest()


def test_recorded_views_differ(ingested: AgentMemoryStore) -> None:
    with ingested.at(TODAY, recorded=True) as past:
        assert past.is_recorded
        assert past.digest() == ingested.digest()
    with pytest.raises(memgraph.InvalidInputError, match=f"is before the first recorded event, at {TODAY}"):
        ingested.at("2025-01-01", recorded=True)


def test_all_read_operations_work(then: Callable[[str], AgentMemoryStore]) -> None:
    past = then("2022-03-01")
    (failure,) = past.query_by_type("episodic")
    assert past.get_memory(failure.id) == failure
    assert past.get_stats().by_type == {"episodic": 1, "semantic": 1, "procedural": 0}
    assert past.cypher("MATCH (m:Memory)-[:FROM_BUILD]->(b:Build) RETURN DISTINCT b.name AS b ORDER BY b") == [
        {"b": "build of 2021-03-01"},
        {"b": "build of 2022-03-01"},
    ]
    assert past._projector.projection.seq == past._journal.tail.seq  # so that no read goes over the journal
    assert past.now() == "2022-03-01T23:59:59.999Z"
    assert len(list(past.reader.events_after(0))) == past.verify(deep=True)
    assert past.reader.history(failure.id)[-1].payload.candidate_id is not None  # the merge of 2022, none later
    with past.at("2021-03-01") as earlier, past.at("2025-01-01") as later:
        assert contents(earlier) == {FAILED, f"{PORT} is 8080"}
        assert (later.as_of, later.digest()) == (past.as_of, past.digest())


def test_recall_uses_the_same_vectors_and_leaves_no_trace(
    ingested: AgentMemoryStore, then: Callable[[str], AgentMemoryStore]
) -> None:
    home, past = ingested.config.home, then("2022-03-01")
    before = tables(home)
    result = MemoryRetrieval(past).retrieve({"task_description": "disk of the runner is full", "agent_name": "a"})
    assert result.memories[0].content == f"{FAILED} once again"
    assert result.memories[0].embedding is not None
    past.flush()
    assert past.get_memory(result.memories[0].id).access_count == 0  # type: ignore[union-attr]
    assert tables(home) == before
    assert not list((home / "past").rglob("*.f32"))


@pytest.mark.parametrize(
    "write",
    [
        lambda store, one: store.insert_memory({"type": "episodic", "content": "new"}),
        lambda store, one: store.update_memory(one, content="changed"),
        lambda store, one: store.delete_memory(one),
        lambda store, one: store.suppress(one),
        lambda store, one: store.record_access(one),
        lambda store, one: store.link(one, "RELATED_TO", store.query_by_type("semantic")[0].id),
        lambda store, one: store.record_outcome(one, "success"),
        lambda store, one: store.reembed(FakeEmbedder(64, "other")),
        lambda store, one: MemoryRetrieval(store).apply_decay(),
        lambda store, one: memgraph.MemGraph(store).maintenance.compress(),
        lambda store, one: memgraph.MemGraph(store).maintenance.sleep(),
        lambda store, one: memgraph.MemGraph(store).maintenance.sleep(max_seconds=0),
        lambda store, _: store.insert_memories([]),
        lambda store, _: store.insert_parts([]),
        lambda store, _: store.import_memories([], []),
        lambda store, _: store.commit("none", []),
        lambda store, _: store.rebuild(),
        lambda store, one: memgraph.MemGraph(store).save_observation("The sky is blue"),
        lambda store, one: memgraph.MemoryCommands(store).remember("this"),
    ],
)
def test_writes_are_rejected(then: Callable[[str], AgentMemoryStore], write: Any) -> None:
    past = then("2022-03-01")
    (one,) = past.query_by_type("episodic")
    before = past.digest()
    with pytest.raises(ReadOnlyError, match=r"as it was at 2022-03-01T23:59:59\.999Z, which is read-only"):
        write(past, one.id)
    assert past.digest() == before


def test_relevance_is_that_of_the_moment(tmp_path: Path) -> None:
    clock = FakeClock(TODAY)
    with opened(tmp_path, clock) as store:
        fresh = store.insert_memory({"type": "episodic", "content": "seen", "occurred_at": "2025-06-01T00:00:00Z"})
        clock.advance(days=10)
        at_ten_days = store.get_memory(fresh.id).relevance_score  # type: ignore[union-attr]
        clock.advance(days=30)
        store.record_access(fresh.id)
        for moment, relevance in (("2026-02-11T09:00:00Z", at_ten_days), ("2025-07-01", 1.0)):
            with store.at(moment) as past:
                (memory,) = past.get_all_memories()
                assert (memory.relevance_score, memory.access_count) == (pytest.approx(relevance), 0)
                assert memgraph.MemoryCommands(past).list()[0].relevance_score == pytest.approx(relevance)


def test_a_view_does_not_change_with_later_writes(tmp_path: Path) -> None:
    clock = FakeClock(TODAY)
    store = opened(tmp_path, clock)
    one = store.insert_memory({"type": "episodic", "content": "first"})
    with store.at(store.now()) as past:
        clock.advance(days=1)
        store.update_memory(one.id, content="changed")
        store.insert_memory({"type": "episodic", "content": "second"})
        store.close()
        assert contents(past) == {"first"}
        assert MemoryRetrieval(past).search_memories("first")[0].memory.id == one.id
    with pytest.raises(ClosedError):
        store.at(TODAY)
    with pytest.raises(ClosedError):
        past.get_all_memories()


def test_current_vectors_are_used_where_the_text_was_the_same(tmp_path: Path) -> None:
    clock = FakeClock(TODAY)
    with opened(tmp_path, clock) as store:
        same, other = (
            store.insert_memory({"type": "episodic", "content": text}).id
            for text in ("the cache was cold", "the lamp was red")
        )
        moment = store.now()
        clock.advance(days=1)
        store.update_memory(other, content="the lamp was green")
        store.reembed(FakeEmbedder(32, "another model"))
        for recorded in (False, True):
            with store.at(moment, recorded=recorded) as past:
                memories = {memory.id: memory for memory in past.get_all_memories()}
                assert memories[same].embedding.shape == (32,)  # type: ignore[union-attr]
                assert (memories[other].content, memories[other].embedding) == ("the lamp was red", None)
                assert MemoryRetrieval(past).search_memories("the cache was cold")[0].memory.id == same


def test_a_day_means_its_end_and_an_offset_counts() -> None:
    assert moment_of("2024-06-01") == moment_of(date(2024, 6, 1)) == "2024-06-01T23:59:59.999Z"
    assert moment_of("2024-06-01T12:00") == moment_of(datetime(2024, 6, 1, 12)) == "2024-06-01T12:00:00.000Z"  # noqa: DTZ001
    east = timezone(timedelta(hours=2))
    assert moment_of(datetime(2024, 6, 1, 0, tzinfo=east)) == moment_of("2024-06-01T00:00+02:00")
    assert moment_of("2024-06-01T00:00+02:00") == "2024-05-31T22:00:00.000Z"
    assert moment_of("20240601") == moment_of("2024-W22-6") == moment_of("2024-06-01")
    assert moment_of("2024-W22") == moment_of("2024W22") == moment_of("2024-06-02")


@pytest.mark.parametrize(
    "when", ["", "soon", "2024-02-30", "2024-06-01T25:00", "June", 20240601, None, "0001-01-01T00:00+05:00"]
)
def test_an_invalid_time_is_rejected(ingested: AgentMemoryStore, when: Any) -> None:
    with pytest.raises(memgraph.InvalidInputError, match="when: is not a date"):
        ingested.at(when)


def test_a_view_of_a_view_keeps_its_filter(ingested: AgentMemoryStore, then: Callable[[str], AgentMemoryStore]) -> None:
    with pytest.raises(memgraph.InvalidInputError, match=r"recorded: must be False, as in this view"):
        then("2022-03-01").at("2021-06-01", recorded=True)
    with ingested.at(TODAY, recorded=True) as recorded:
        with pytest.raises(memgraph.InvalidInputError, match=r"recorded: must be True, as in this view"):
            recorded.at("2022-03-01")
        with pytest.raises(memgraph.InvalidInputError, match="is before the first recorded event"):
            recorded.at("2022-03-01", recorded=True)


def test_a_moment_before_the_beginning_is_rejected_with_its_time(ingested: AgentMemoryStore) -> None:
    begins = r"is before the first remembered event, at 2021-03-01T12:00:00\.000Z"
    with pytest.raises(memgraph.InvalidInputError, match=begins):
        ingested.at("2021-03-01T11:59:59.999Z")
    with ingested.at("2021-03-01T12:00:00.000Z") as past:
        assert past.get_stats().total == 2


def test_a_future_moment_means_now(ingested: AgentMemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "memgraph"), ingested.at("2030-01-01") as past:
        assert (past.as_of, past.digest()) == (ingested.now(), ingested.digest())
    assert "is in the future" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, "memgraph"), ingested.at(TODAY[:10]):
        assert caplog.text == ""  # of a day that is not over, nobody means its end


def made(caplog: pytest.LogCaptureFixture) -> int:
    """Return how many views were made since the last time."""
    count = sum("rebuilt rows and index" in record.getMessage() for record in caplog.records)
    caplog.clear()
    return count


def test_a_view_is_cached_until_the_next_write(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "memgraph")
    clock = FakeClock(TODAY)
    with opened(tmp_path, clock) as store:
        store.insert_memory({"type": "episodic", "content": "first"})
        clock.advance(days=9)
        caplog.clear()
        for expected in (1, 0):
            with store.at("2026-02-02") as past:
                assert contents(past) == {"first"}
            assert made(caplog) == expected
        store.insert_memory({"type": "episodic", "content": "old", "occurred_at": "2026-02-02T00:00:00Z"})
        with store.at("2026-02-02") as past:
            assert contents(past) == {"first", "old"}
        assert made(caplog) == 1
        view = max((store.config.home / "past").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        (view / "memgraph.db").write_bytes(b"no database")
        with store.at("2026-02-02") as past:
            assert contents(past) == {"first", "old"}
        assert made(caplog) == 1


def test_a_closed_store_closes_its_database_also_after_views(tmp_path: Path) -> None:
    store = opened(tmp_path, FakeClock(TODAY))
    store.insert_memory({"type": "episodic", "content": "first"})
    for _ in range(3):
        store.as_agent("planner").close()
        store.at(TODAY).close()
    with pytest.raises(memgraph.InvalidInputError):
        store.at("2001-01-01")
    store.close()
    held = [path for path in Path("/proc/self/fd").iterdir() if path.exists() and tmp_path in path.resolve().parents]
    assert held == []


def test_a_few_views_are_cached_and_used_ones_are_not_removed(tmp_path: Path) -> None:
    past = tmp_path / "past"
    views, begun = KeptViews(past), []

    def take(key: str) -> Any:
        return views.take(key, lambda _folder: begun.append(key))

    in_use = take("in use")
    for number in range(MOST_KEPT + 2):
        os.utime(in_use.folder, (number, number))  # older than all others
        take(f"view {number}").release()
        os.utime(past / f"view {number}", (1_000 + number,) * 2)
    take(f"view {MOST_KEPT + 1}").release()
    assert begun == ["in use", *(f"view {number}" for number in range(MOST_KEPT + 2))]
    assert names(past) == ["in use", *(f"view {number}" for number in range(2, MOST_KEPT + 2))]
    in_use.release()
    in_use.release()
    os.utime(in_use.folder, (0, 0))
    take("view 5").release()
    assert names(past) == [f"view {number}" for number in range(2, MOST_KEPT + 2)]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_creating_a_view_is_atomic(tmp_path: Path) -> None:
    past = tmp_path / "past"
    views, said = KeptViews(past), ""

    def write(folder: Path) -> None:
        (folder / "graph").write_text(said)
        if not said:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        views.take("key", write)
    assert names(past) == []
    killed = past / ".killed"
    killed.mkdir()
    os.utime(killed, (0, 0))
    said = "whole"
    views.take("key", write).release()
    assert names(past) == ["key"]
    (past / "key" / "used").unlink()  # by whom ever: then it is made anew
    said = "new"
    lease = views.take("key", write)
    assert (lease.folder / "graph").read_text() == "new"
    lease.release()


def test_a_killed_creation_leaves_no_view(
    tmp_path: Path, run: Callable[[str], Any], open_store: Callable[..., Any]
) -> None:
    program = """
with opened() as store:
    store.insert_memory({"type": "episodic", "content": "seen"})
    store.at(store.now(), progress=lambda done, total: os._exit(9))
"""
    assert run(program).returncode == 9
    (left,) = (tmp_path / "store" / "past").iterdir()
    assert left.name.startswith(".")
    with open_store() as store, store.at(store.now()) as past:
        assert contents(past) == {"seen"}
        past.verify(deep=True)


def test_concurrent_creations_of_a_view_do_not_interfere(tmp_path: Path) -> None:
    past = tmp_path / "past"
    views, together, leases = KeptViews(past), threading.Barrier(4), list[Lease]()

    def make(folder: Path) -> None:
        together.wait(60)
        (folder / "graph").mkdir()

    def take() -> None:
        leases.append(views.take("key", make))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert [lease.folder.name for lease in leases] == ["key"] * 4
    assert names(past / "key") == ["graph", "used"]
    assert names(past) == ["key"]
    for lease in leases:
        lease.release()


def test_a_kept_view_whose_rows_cannot_be_cleared_is_made_anew(tmp_path: Path) -> None:
    with opened(tmp_path, FakeClock(TODAY)) as store:
        store.insert_memory({"type": "episodic", "content": "the cache was cold"})
        store.at(TODAY).close()
    [kept] = (tmp_path / "store" / "past").glob("*/memgraph.db")
    with sqlite3.connect(kept) as database:
        database.execute("UPDATE state SET body = '{'")
        database.execute("CREATE TRIGGER kept BEFORE DELETE ON node BEGIN SELECT RAISE(IGNORE); END")
    database.close()
    with opened(tmp_path, FakeClock(TODAY)) as store, store.at(TODAY) as past:
        assert past.cypher("MATCH (m:Memory) RETURN m.content AS content") == [{"content": "the cache was cold"}]


def test_a_view_removed_while_open_raises_an_error(tmp_path: Path) -> None:
    with opened(tmp_path, FakeClock(TODAY)) as store:
        store.insert_memory({"type": "episodic", "content": "the cache was cold"})
        kept = tmp_path / "store" / "past"
        with store.at(TODAY) as past:
            assert len(past.cypher("MATCH (m:Memory) RETURN m.id")) == 1
            shutil.rmtree(kept)
            with pytest.raises(StorageError, match="removed while it was open; open it again"):
                past.cypher("MATCH (m:Memory) RETURN m.id")
        shutil.rmtree(kept, ignore_errors=True)
        kept.write_text("mine")
        with pytest.raises(StorageError, match=r"past: is not a directory") as refused:
            store.at(TODAY)
        assert (refused.value.path, kept.read_text()) == (kept, "mine")
