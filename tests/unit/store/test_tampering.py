"""What others do to the rows, the index and the graph of a store while it is open, or put in their place, changes nothing that is true."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memgraph import AgentMemoryConfig, AgentMemoryStore, JournalError
from memgraph.disk.files import clear
from memgraph.journal.opening import FILE
from memgraph.store import rows
from memgraph.store.rows import Rows
from memgraph.testing import FakeClock, FakeEmbedder
from tests.tables import change, forget_journal, raw_lines

pytestmark = pytest.mark.embedded

Open = Callable[..., Any]
FILES = ["lock.pid", "index/index.npz", "graph/base-*", f"past/*/{FILE}"]
"""Files that are replaced by something else."""
TEXT = "Deploy on Tuesdays only, says Alice"
TOLD = {TEXT, "Alice knows the deployment"}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of two memories and a link, with its graph and a view, and its keys."""
    folder = tmp_path_factory.mktemp("template")
    config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    with AgentMemoryStore(config, embedder=FakeEmbedder(64), clock=FakeClock("2026-02-01T09:00:00Z")) as store:
        for text in sorted(TOLD):
            store.insert_memory({"type": "semantic", "content": text, "tags": ["deploy"]})
        one, other = (memory.id for memory in store.get_all_memories())
        store.link(one, "RELATED_TO", other, reason="both of Alice")
        assert contents(store) == TOLD
        store.at(store.now()).close()
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


def contents(store: Any) -> set[str]:
    return {row["c"] for row in store.cypher("MATCH (m:Memory) RETURN m.content AS c")}


def found(home: Path, name: str) -> Path:
    (path,) = home.glob(name)
    return path


def test_closing_does_not_sign_an_edit(kept: Any, open_store: Open) -> None:
    one, other = (memory.id for memory in kept.get_all_memories())
    assert change(kept.config.home, "UPDATE node SET body = CAST(replace(body, 'Tuesdays', 'FRIDAYS!') AS BLOB)")
    kept.supersede(one, by=other)
    kept.close()
    with open_store() as again:
        assert contents(again) == {memory.content for memory in again.every_memory()} == TOLD
        again.verify(deep=True)


class TestRows:
    @pytest.mark.parametrize(
        "statement",
        [
            "DELETE FROM node",
            "DELETE FROM node WHERE id = (SELECT max(id) FROM node WHERE kind = 0)",
            "UPDATE node SET body = CAST('' AS BLOB)",
            "UPDATE node SET code = code + 1",
            "UPDATE edge SET body = 'text'",
            "UPDATE state SET body = replace(body, 'digest', 'tsegid')",
            "UPDATE node SET key = CAST(key AS BLOB)",
            "UPDATE node SET id = 9223372036854775807 WHERE id = (SELECT max(id) FROM node)",
            "INSERT INTO gone VALUES (1, 99, 'x', '', 1000000)",
        ],
    )
    @pytest.mark.parametrize("is_loaded", [False, True])
    def test_damaged_ones_are_rebuilt(self, kept: Any, open_store: Open, statement: str, is_loaded: bool) -> None:
        assert kept.get_stats().total == 2
        if not is_loaded:
            kept.close()
            kept = open_store()
        assert change(kept.config.home, statement)
        kept.insert_memory({"type": "semantic", "content": "more", "tags": ["deploy"]})
        assert contents(kept) == {*TOLD, "more"}
        kept.check_graph()
        kept.verify(deep=True)

    def test_an_index_is_not_made_from_rows_without_a_link(self, kept: Any, open_store: Open) -> None:
        home = kept.config.home
        one, other = (memory.id for memory in kept.get_all_memories())
        kept.supersede(one, by=other)
        kept.close()
        assert change(home, "DELETE FROM edge")
        (home / "index" / "index.npz").unlink()
        again = open_store()
        assert again.reader.superseded()[again.reader.index.slot(one)]
        assert len(again.links(one)) == 2
        again.verify(deep=True)

    def test_a_large_store_is_looked_through_again_only_after_a_change(
        self, kept: Any, open_store: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rows, "_MANY_ROWS", 1)
        home, one = kept.config.home, kept.get_all_memories()[0].id
        kept.close()
        looks: list[Rows] = []
        look = Rows._tallied
        monkeypatch.setattr(Rows, "_tallied", lambda self, tx: (looks.append(self), look(self, tx))[1])
        with open_store() as again:
            assert len(again.links(one)) == 1
        assert not looks
        assert change(home, "DELETE FROM edge")
        with open_store() as again:
            assert len(again.links(one)) == 1
        assert looks


class TestOtherFiles:
    @pytest.mark.parametrize("link", [os.symlink, os.link])
    @pytest.mark.parametrize("name", FILES)
    def test_a_link_to_the_journal_is_not_written_through(
        self, kept: Any, open_store: Open, name: str, link: Callable[[Path, Path], None]
    ) -> None:
        home = kept.config.home
        kept.close()
        before = raw_lines(home)
        path = found(home, name)
        path.unlink()
        link(home / FILE, path)
        with open_store() as again:
            with again.at(again.now()) as past:
                assert contents(past) == TOLD
            again.insert_memory({"type": "semantic", "content": "more"})
            again.rebuild()
            assert contents(again) == {*TOLD, "more"}
            again.verify(deep=True)
        assert raw_lines(home)[: len(before)] == before

    @pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
    @pytest.mark.parametrize("name", FILES)
    def test_a_non_file_is_replaced(
        self, kept: Any, open_store: Open, name: str, make: Callable[[Path], None], impatient: None
    ) -> None:
        home = kept.config.home
        kept.close()
        path = found(home, name)
        clear(path)
        make(path)
        with open_store() as again:
            with again.at(again.now()) as past:
                assert contents(past) == TOLD
            assert contents(again) == TOLD
            again.insert_memory({"type": "semantic", "content": "more"})
            again.rebuild()
            assert contents(again) == {*TOLD, "more"}
        assert path.is_file() or (name == "graph/base-*" and not path.exists())

    def test_files_beside_the_graph_are_not_trusted(self, kept: Any, open_store: Open) -> None:
        kept.close()
        base = found(kept.config.home, "graph/base-*")
        for suffix in ("wal", "shadow", "tmp", "wal.checkpoint"):
            base.with_name(f"{base.name}.{suffix}").write_bytes(b"planted")
        with open_store() as again:
            assert contents(again) == TOLD


@pytest.mark.parametrize("engine", ["kuzu", "ladybug"])
def test_a_store_without_its_journal_is_refused_on_either_engine(kept: Any, open_store: Open, engine: str) -> None:
    home = kept.config.home
    kept.close()
    base = found(home, "graph/base-*")
    base.rename(base.with_suffix(f".{engine}"))  # whatever it holds: it was made from events
    forget_journal(home)
    for name in ("index", "cache"):
        shutil.rmtree(home / name)
    for _ in range(2):
        with pytest.raises(JournalError, match="graph was made from some"):
            open_store()


def test_without_its_key_a_store_is_read_from_a_rebuilt_copy(kept: Any, open_store: Open) -> None:
    home, keys = kept.config.home, kept.config.keys_home
    change(home, "UPDATE node SET body = CAST(replace(body, 'Tuesdays', 'FRIDAYS!') AS BLOB)")
    kept.close()
    before = files(home)
    (keys / "keys" / f"{kept.store_id}.json").unlink()
    with open_store(security_mode="dev", allow_unsigned_replay=True) as again:
        assert contents(again) == TOLD
    assert files(home) == before


def files(home: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
