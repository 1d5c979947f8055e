"""Migration: every event is read, graph and index get this release's schema, and the report says what was there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import memgraph
from memgraph.errors import JournalError, StorageError
from memgraph.fold.fold import SCHEMA_VERSION
from memgraph.interfaces.cli.group import cli
from memgraph.store.compaction import compact
from memgraph.store.maintenance.migration import migrate, move
from memgraph.store.purge.exports import note_exports
from memgraph.testing import FakeClock, FakeEmbedder
from tests.tables import change, change_payload, cut_events, lines_of, raw_lines, tables
from tests.witness import copied

VERSION_SEVEN = """UPDATE event SET head = CAST(replace(CAST(head AS TEXT), '"envelope_version":1', '"envelope_version":7') AS BLOB)"""
KINDS = {".jsonl", ".f32", ".json"}
EARLIER = Path(__file__).parents[3] / "fixtures" / "stores" / "0.1.0"


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the first release."""
    return copied(EARLIER, tmp_path_factory.mktemp("earlier") / "copy")


def config_of(folder: Path) -> memgraph.AgentMemoryConfig:
    return memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")


def files(folder: Path) -> dict[str, bytes]:
    kept = (path for path in folder.rglob("*") if path.is_file() and "lock" not in path.name)
    return {str(path): path.read_bytes() for path in kept}


def test_a_store_of_an_earlier_release(earlier: Path, tmp_path: Path) -> None:
    config = config_of(earlier)
    before = files(earlier)
    dry = migrate(config, dry_run=True)
    assert {name: data for name, data in files(earlier).items() if name in before} == before
    assert dry.rebuilds
    assert dry.digest is None
    data = b"".join(path.read_bytes() for path in sorted((config.home / "journal").glob("*.jsonl")))
    assert dry.journal_sha256 == hashlib.sha256(data).hexdigest()
    heads = [json.loads(line)["head"] for line in data.splitlines()]
    assert dry.types == {
        name: sum(f"{head['type']} {head['event_version']}" == name for head in heads) for name in dry.types
    }
    assert sum(dry.types.values()) == dry.events == len(heads)
    assert dry.converted["memory.added 1"] == "memory.added 3"
    assert "memory.deleted 1" not in dry.converted
    assert (dry.first_seq, dry.last_seq) == (1, len(heads))
    assert dry.signature == json.loads(data.splitlines()[-1])["signature"]

    done = migrate(config, clock=FakeClock("2027-01-01T00:00:00.000Z"))
    assert done.model_dump(exclude={"dry_run", "digest", "recorded_as", "seconds", "started_at"}) == dry.model_dump(
        exclude={"dry_run", "digest", "recorded_as", "seconds", "started_at"}
    )
    assert done.recorded_as == done.last_seq + 1
    again = migrate(config)
    assert (again.rebuilds, again.schema_before, again.recorded_as) == (False, SCHEMA_VERSION, None)
    assert again.digest == done.digest
    assert raw_lines(config.home)[: len(heads)] == data.splitlines(), "what was signed is never rewritten"
    record = lines_of(config.home)[-1]
    assert record["head"]["type"] == "store.migrated"
    assert record["payload"]["converted"] == sum(done.types[name] for name in done.converted)


def test_the_files_of_the_earlier_release_are_kept_until_they_are_removed(tmp_path: Path) -> None:
    folder = copied(EARLIER, tmp_path / "copy")
    config, journal = config_of(folder), folder / "store" / "journal"
    before = {path.relative_to(journal): path.read_bytes() for path in journal.rglob("*") if path.suffix in KINDS}

    def command(*arguments: str) -> str:
        result = CliRunner().invoke(
            cli, ["--home", str(config.home), "migrate", *arguments], env={"MEMGRAPH_KEYS_HOME": str(config.keys_home)}
        )
        assert result.exit_code == 0, result.output
        return result.output

    assert "No journal of an earlier release is kept here" in command("--finish")
    assert journal.exists()
    digest = migrate(config, clock=FakeClock("2027-01-01T00:00:00.000Z")).digest
    kept = config.home / "journal-0.2"
    assert not journal.exists()
    assert {path.relative_to(kept): path.read_bytes() for path in kept.rglob("*") if path.suffix in KINDS} == before
    assert f"Removed {kept}" in command("--finish")
    assert not kept.exists()
    assert migrate(config).digest == digest


def test_a_store_with_purged_commits_and_an_archive(tmp_path: Path) -> None:
    """A commit of which everything was purged has no event left."""
    config, clock = config_of(tmp_path), FakeClock("2026-02-01T09:00:00.000Z")
    with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=clock) as store:
        ids = []
        for number in range(6):
            ids.append(store.insert_memory({"type": "episodic", "content": f"text {number}"}).id)
            clock.advance(days=1)
        store.purge([ids[1]])
    before = migrate(config, dry_run=True)
    assert before.last_seq == before.events == sum(before.types.values())
    compact(config, before="2026-02-05", clock=clock)
    after = migrate(config, dry_run=True)
    assert (after.events, after.types, after.journal_sha256) == (before.events, before.types, before.journal_sha256)


class TestRefused:
    @pytest.fixture
    def store(self, tmp_path: Path) -> memgraph.AgentMemoryConfig:
        config = config_of(tmp_path)
        with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=FakeClock()) as made:
            for number in range(3):
                made.insert_memory({"type": "episodic", "content": f"text {number}"})
        return config

    @pytest.mark.parametrize("dry_run", [True, False])
    @pytest.mark.parametrize(
        "harm",
        [
            lambda home: change_payload(home, "text 1", "text X"),
            lambda home: cut_events(home, 3),
            lambda home: change(home, VERSION_SEVEN),
        ],
        ids=["changed", "truncated", "of a later release"],
    )
    def test_a_journal_that_does_not_verify(
        self, store: memgraph.AgentMemoryConfig, harm: Callable[[Path], object], dry_run: bool
    ) -> None:
        harm(store.home)
        before = tables(store.home)
        with pytest.raises(JournalError):
            migrate(store, dry_run=dry_run)
        assert tables(store.home) == before

    @pytest.mark.parametrize(
        "harm",
        [
            lambda data: data.replace(b"build", b"guild", 1),
            lambda data: b"".join(data.splitlines(keepends=True)[:-1]),
            lambda data: data.replace(b'"envelope_version":1', b'"envelope_version":7'),
        ],
        ids=["changed", "truncated", "of a later release"],
    )
    def test_an_earlier_journal_that_does_not_verify_is_not_moved(
        self, tmp_path: Path, harm: Callable[[bytes], bytes]
    ) -> None:
        folder = copied(EARLIER, tmp_path / "copy")
        segment = max((folder / "store" / "journal").glob("*.jsonl"))
        data = harm(segment.read_bytes())
        assert data != segment.read_bytes()
        segment.write_bytes(data)
        before = files(folder)
        for _ in range(2):
            with pytest.raises(JournalError):
                migrate(config_of(folder))
        assert {name: data for name, data in files(folder).items() if name in before} == before
        if (folder / "store" / "memgraph.db").exists():
            assert tables(folder / "store")["event"] == []

    def test_where_there_is_no_store(self, tmp_path: Path) -> None:
        with pytest.raises(StorageError, match="no store yet"):
            migrate(config_of(tmp_path))
        assert not (tmp_path / "store").exists()

    def test_the_command_writes_the_report(self, store: Any, tmp_path: Path) -> None:
        arguments = ["--home", str(store.home), "migrate", "--report", str(tmp_path / "report.json"), "--json"]
        result = CliRunner().invoke(cli, arguments, env={"MEMGRAPH_KEYS_HOME": str(store.keys_home)})
        assert result.exit_code == 0, result.output
        assert json.loads((tmp_path / "report.json").read_text()) == json.loads(result.stdout)
        shown = CliRunner().invoke(cli, arguments[:3], env={"MEMGRAPH_KEYS_HOME": str(store.keys_home)})
        assert "nothing to migrate" in shown.output


def test_a_moved_store_knows_the_files_that_were_written_before(store: Any, tmp_path: Path) -> None:
    """A purge in the new place names them."""
    one = store.insert_memory({"type": "episodic", "content": "The vault is in Bern"}).id
    store.insert_memory({"type": "episodic", "content": "The key is in Thun"})
    note_exports(store.config.home, "export", tmp_path / "before.jsonl", at=store.now())
    store.close()
    move(tmp_path / "moved", store.config)
    config = store.config.model_copy(update={"home": tmp_path / "moved"})
    with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(64)) as moved:
        receipt = moved.purge([one])
    assert [exported.path for exported in receipt.exports] == [str(tmp_path / "before.jsonl")]


def test_the_place_that_a_store_was_moved_from_says_where_it_is_and_takes_no_more(store: Any, tmp_path: Path) -> None:
    """So the two copies of one store never part: `repair --accept-head` in one of them would cost what is in the other."""
    store.insert_memory({"type": "episodic", "content": "The vault is in Bern"})
    move(tmp_path / "moved", store.config)
    with pytest.raises(StorageError, match=r"was moved to .*/moved on "):  # also who has it open
        store.insert_memory({"type": "episodic", "content": "The key is in Thun"})
    arguments = {"env": {"MEMGRAPH_KEYS_HOME": str(store.config.keys_home)}}
    for command in (["list"], ["repair", "--accept-head", "--yes"], ["doctor"]):
        result = CliRunner().invoke(cli, ["--home", str(store.config.home), *command], **arguments)
        assert (result.exit_code, f"moved to {tmp_path / 'moved'}" in result.output) == (1, True), (
            command,
            result.output,
        )
    config = store.config.model_copy(update={"home": tmp_path / "moved"})
    with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(64)) as moved:
        moved.insert_memory({"type": "episodic", "content": "The key is in Thun"})
        assert len(moved.get_all_memories()) == 2
