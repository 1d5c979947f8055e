"""What others do to the files of graph and index while a store is open, or put in their place, changes nothing that is true."""

from __future__ import annotations

import logging
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memgraph import AgentMemoryConfig, AgentMemoryStore, BusyError, ConfigError, JournalError, NotFoundError
from memgraph.errors import GraphError
from memgraph.journal.opening import FILE
from memgraph.testing import FakeClock, FakeEmbedder
from tests.tables import forget_journal, raw_lines

pytestmark = pytest.mark.embedded

Open = Callable[..., Any]
OF_LINKS = [("graph/opened.json", "lock.pid"), ("graph/upkeep.json", "graph.lock.pid")]
"""Files that are replaced by links; each pair is tried with one kind of link in every run."""
OF_NON_FILES = [("graph/opened.json", "index/index.npz"), ("graph/upkeep.json", "graph.lock.pid")]
TEXT = "Deploy on Tuesdays only, says Alice"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of two memories and a link, with everything in the graph's file, and its keys."""
    folder = tmp_path_factory.mktemp("template")
    config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    with AgentMemoryStore(config, embedder=FakeEmbedder(64), clock=FakeClock("2026-02-01T09:00:00Z")) as store:
        for text in (TEXT, "Alice knows the deployment"):
            store.insert_memory({"type": "semantic", "content": text, "tags": ["deploy"]})
        one, other = (memory.id for memory in store.get_all_memories())
        store.link(one, "RELATED_TO", other, reason="both of Alice")
        store.rebuild()
    return folder


@pytest.fixture
def kept(template: Path, open_store: Open, tmp_path: Path) -> Iterator[Any]:
    """A copy of the template, opened."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    store = open_store()
    yield store
    store.close()


@pytest.fixture
def impatient() -> Iterator[None]:
    """End a test that waits for what never comes."""

    def expire(*_: object) -> None:
        pytest.fail("it waits for ever")

    before = signal.signal(signal.SIGALRM, expire)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def graph(store: Any) -> Path:
    return Path(store.config.home) / "graph" / "memgraph.kuzu"


def edit(path: Path, old: bytes, new: bytes) -> None:
    status, data = path.stat(), path.read_bytes()
    assert old in data
    with path.open("r+b") as file:
        file.write(data.replace(old, new))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def in_engine(store: Any, statement: str) -> None:
    """Let the engine forget something by itself."""
    with store._projector.holding(), store._projector.engine._session.use() as connection:
        connection.run(statement)


def contents(store: Any) -> set[str]:
    return {row["c"] for row in store.cypher("MATCH (m:Memory) RETURN m.content AS c")}


class TestOpenFiles:
    def test_the_next_checkpoint_does_not_sign_an_edit(self, kept: Any, open_store: Open) -> None:
        assert kept.get_memory(kept.get_all_memories()[0].id)
        edit(graph(kept), b"Tuesdays", b"FRIDAYS!")
        with kept._projector.holding(), pytest.raises(GraphError, match="changed while it was open"):
            kept._projector.engine.checkpoint()
        kept.insert_memory({"type": "semantic", "content": "more"})
        kept.close()
        with open_store() as again:
            assert contents(again) == {TEXT, "Alice knows the deployment", "more"}

    def test_closing_does_not_sign_an_edit(self, kept: Any, open_store: Open) -> None:
        engine = kept._projector.engine
        engine._file._limits = type(engine._file._limits)(short_bytes=0)
        one, other = (memory.id for memory in kept.get_all_memories())
        kept.supersede(one, by=other)  # a new text would make the engine rewrite the edited page
        edit(graph(kept), b"Tuesdays", b"FRIDAYS!")
        kept.close()
        with open_store() as again:
            assert contents(again) == {TEXT, "Alice knows the deployment"}


class TestHalves:
    @pytest.mark.parametrize(
        "statement",
        [
            "MATCH (r:MemoryRow) DELETE r",
            "MATCH (m:Memory) DETACH DELETE m",
            "MATCH (r:MemoryRow) SET r.record = NULL",
        ],
        ids=["no record", "no columns", "a null"],
    )
    @pytest.mark.parametrize("way", ["one", pytest.param("all", marks=pytest.mark.long)])
    def test_a_half_missing_pair_is_repaired(
        self, kept: Any, statement: str, way: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        ids = [memory.id for memory in kept.get_all_memories()]
        in_engine(kept, statement)
        kept._projector.rows.clear()
        with kept._projector.holding(), pytest.raises(GraphError):
            kept._projector.engine.get("Memory", ids[0])
        kept._projector._has_failed = False  # else the error that was just provoked would be what mends it
        if way == "one":
            assert kept.get_memory(ids[0]).id == ids[0]
        else:
            assert sorted(memory.id for memory in kept.every_memory()) == sorted(ids)
        assert sum("rebuilding the graph" in message for message in caplog.messages) == 1
        with pytest.raises(NotFoundError):
            kept.suppress("00000000-0000-4000-8000-000000000000")

    def test_an_index_from_a_graph_without_a_link_is_rebuilt(self, kept: Any) -> None:
        one, other = sorted(memory.id for memory in kept.get_all_memories())
        kept.supersede(one, by=other)
        kept._projector.index.relink(one, [])  # what an index says that was brought up from such a graph
        in_engine(kept, "MATCH ()-[e:SUPERSEDES]->() DELETE e")
        kept.check_graph()
        assert kept.verification(deep=True).differing == 0
        assert len(kept.links(one)) == 2


class TestOtherFiles:
    @pytest.mark.parametrize(
        ("names", "link"),
        [
            (OF_LINKS[0], os.symlink),
            (OF_LINKS[1], os.link),
            pytest.param(OF_LINKS[0], os.link, marks=pytest.mark.long),
            pytest.param(OF_LINKS[1], os.symlink, marks=pytest.mark.long),
        ],
    )
    def test_a_link_to_the_journal_is_not_written_through(
        self, kept: Any, open_store: Open, names: tuple[str, ...], link: Callable[[Path, Path], None]
    ) -> None:
        home = kept.config.home
        kept.close()
        events = home / FILE
        before = raw_lines(home)
        for name in names:
            (home / name).unlink(missing_ok=True)
            link(events, home / name)
        with open_store() as again:
            again.insert_memory({"type": "semantic", "content": "more"})
            again.rebuild()
            assert contents(again) == {TEXT, "Alice knows the deployment", "more"}
        assert raw_lines(home)[: len(before)] == before

    @pytest.mark.parametrize(
        ("names", "make"),
        [
            (OF_NON_FILES[0], os.mkfifo),
            (OF_NON_FILES[1], os.mkdir),
            pytest.param(OF_NON_FILES[0], os.mkdir, marks=pytest.mark.long),
            pytest.param(OF_NON_FILES[1], os.mkfifo, marks=pytest.mark.long),
        ],
    )
    def test_a_non_file_is_replaced(
        self, kept: Any, open_store: Open, names: tuple[str, ...], make: Callable[[Path], None], impatient: None
    ) -> None:
        home = kept.config.home
        kept.close()
        for name in names:
            (home / name).unlink(missing_ok=True)
            make(home / name)
        with open_store() as again:
            assert len(again.list_memories()) == 2
            again.rebuild()
        assert all((home / name).is_file() for name in names)

    @pytest.mark.parametrize("name", ["wal", "shadow", "tmp", "wal.checkpoint", "checkpoint.apply.lock"])
    def test_neighbouring_files_are_not_trusted(self, kept: Any, open_store: Open, name: str) -> None:
        kept.close()
        planted = graph(kept).with_name(f"memgraph.kuzu.{name}")
        planted.write_bytes(b"planted")
        with open_store() as again:
            assert contents(again) == {TEXT, "Alice knows the deployment"}
        assert not planted.exists() or planted.read_bytes() != b"planted"


class TestUpkeepAfterBatches:
    def test_a_written_batch_succeeds_if_the_comparison_fails(
        self, kept: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def busy() -> None:
            raise BusyError("the graph", pid=1, timeout_s=0.1)

        monkeypatch.setattr(kept._batches, "_compare_if_due", busy)
        with caplog.at_level(logging.WARNING), kept.batch():
            kept.insert_memory({"type": "semantic", "content": "more"})
        assert any("could not be compared" in message for message in caplog.messages)
        assert kept.get_stats().total == 3

    def test_an_aborted_batch_is_compared_at_close(
        self, kept: Any, open_store: Open, caplog: pytest.LogCaptureFixture
    ) -> None:
        kept.close()
        store = open_store()

        def broken_off() -> None:
            with store.batch():
                store.insert_memory({"type": "semantic", "content": "more"})
                in_engine(store, "MATCH (m:Memory) SET m.title = 'lost'")
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            broken_off()
        store.close()
        assert any("it lost writes" in message for message in caplog.messages)


@pytest.mark.parametrize("engine", ["kuzu", "ladybug"])
def test_a_store_without_its_journal_is_refused_on_either_engine(kept: Any, open_store: Open, engine: str) -> None:
    home = kept.config.home
    kept.close()
    if engine == "ladybug":  # whatever it holds: it was made from events
        graph(kept).rename(graph(kept).with_name("memgraph.ladybug"))
    forget_journal(home)
    shutil.rmtree(home / "index")
    with pytest.raises(JournalError, match="were made from some"):
        open_store()


def test_a_path_with_pattern_characters_is_rejected_at_once(open_store: Open) -> None:
    with pytest.raises(ConfigError, match="as patterns"):
        open_store("a store?")


def test_without_its_key_a_store_is_read_from_a_rebuilt_copy(kept: Any, open_store: Open) -> None:
    home, keys = kept.config.home, kept.config.keys_home
    kept.close()
    before = {path: path.read_bytes() for path in (home / "graph").iterdir() if path.is_file()}
    (keys / "keys" / f"{kept.store_id}.json").unlink()
    with open_store(security_mode="dev", allow_unsigned_replay=True) as again:
        assert contents(again) == {TEXT, "Alice knows the deployment"}
    assert {path: path.read_bytes() for path in (home / "graph").iterdir() if path.is_file()} == before
