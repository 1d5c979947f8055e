"""What others do to the files of rows and index while a store is closed, or put in their place, changes nothing that is true."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memgraph import AgentMemoryConfig, AgentMemoryStore
from memgraph.testing import FakeClock, FakeEmbedder

pytestmark = pytest.mark.embedded

Open = Callable[..., Any]
OF_LINKS = [("memgraph.db", "journal/lock.pid"), ("memgraph.db-wal", "index/index.npz")]
"""Files that are replaced by links; each pair is tried with one kind of link in every run."""
OF_NON_FILES = [("memgraph.db", "index/index.npz"), ("memgraph.db-wal", "memgraph.db-shm")]
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


def contents(store: Any) -> set[str]:
    return {row["c"] for row in store.cypher("MATCH (m:Memory) RETURN m.content AS c")}


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
        (segment,) = (home / "journal").glob("*.jsonl")
        before = segment.read_bytes()
        for name in names:
            (home / name).unlink(missing_ok=True)
            link(segment, home / name)
        with open_store() as again:
            again.insert_memory({"type": "semantic", "content": "more"})
            again.rebuild()
            assert contents(again) == {TEXT, "Alice knows the deployment", "more"}
        assert segment.read_bytes().startswith(before)

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

    @pytest.mark.parametrize("name", ["memgraph.db-wal", "memgraph.db-journal", "memgraph.db-shm"])
    def test_neighbouring_files_are_not_trusted(self, kept: Any, open_store: Open, name: str) -> None:
        kept.close()
        (kept.config.home / name).write_bytes(b"planted")
        with open_store() as again:
            assert contents(again) == {TEXT, "Alice knows the deployment"}
            again.verify(deep=True)

    def test_a_graph_of_an_earlier_release_goes(self, kept: Any, open_store: Open) -> None:
        home = kept.config.home
        kept.close()
        (home / "memgraph.db").unlink()
        for name in ("graph/memgraph.kuzu", "graph/memgraph.kuzu.wal", "graph/upkeep.json", "graph.lock"):
            (home / "graph").mkdir(exist_ok=True)
            (home / name).write_bytes(TEXT.encode())
        with open_store() as again:
            assert contents(again) == {TEXT, "Alice knows the deployment"}
        assert not any(
            TEXT.encode() in path.read_bytes() for path in (home / "graph").iterdir() if path.suffix != ".kuzu"
        )
        assert not (home / "graph.lock").exists()


def test_without_its_key_a_store_is_read_from_a_rebuilt_copy(kept: Any, open_store: Open) -> None:
    home, keys = kept.config.home, kept.config.keys_home
    kept.close()
    before = {path: path.read_bytes() for path in home.glob("memgraph.db*")}
    (keys / "keys" / f"{kept.store_id}.json").unlink()
    with open_store(security_mode="dev", allow_unsigned_replay=True) as again:
        assert contents(again) == {TEXT, "Alice knows the deployment"}
    assert {path: path.read_bytes() for path in home.glob("memgraph.db*")} == before
