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
from memgraph.fold.projection import SCHEMA_VERSION
from memgraph.interfaces.cli.group import cli
from memgraph.store.compaction import compact
from memgraph.store.maintenance.migration import migrate
from memgraph.testing import FakeClock, FakeEmbedder
from tests.witness import copied

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
    assert dry.converted["memory.added 1"] == "memory.added 2"
    assert "memory.deleted 1" not in dry.converted
    assert (dry.segments[0].first_seq, dry.segments[-1].last_seq) == (1, dry.last_seq)
    assert dry.signature == json.loads(data.splitlines()[-1])["signature"]

    done = migrate(config, clock=FakeClock("2027-01-01T00:00:00.000Z"))
    assert done.model_dump(exclude={"dry_run", "digest", "recorded_as", "seconds", "started_at"}) == dry.model_dump(
        exclude={"dry_run", "digest", "recorded_as", "seconds", "started_at"}
    )
    assert done.recorded_as == done.last_seq + 1
    again = migrate(config)
    assert (again.rebuilds, again.schema_before, again.recorded_as) == (False, SCHEMA_VERSION, None)
    assert again.digest == done.digest
    after = b"".join(path.read_bytes() for path in sorted((config.home / "journal").glob("*.jsonl")))
    assert after.startswith(data), "what was signed is never rewritten"
    record = json.loads(after.splitlines()[-1])
    assert record["head"]["type"] == "store.migrated"
    assert record["payload"]["converted"] == sum(done.types[name] for name in done.converted)


def test_a_store_with_purged_commits_and_condensed_segments(tmp_path: Path) -> None:
    """A commit of which everything was purged has no event left, and the lines of a condensed segment no signature."""
    config, clock = config_of(tmp_path), FakeClock("2026-02-01T09:00:00.000Z")
    with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=clock) as store:
        store._journal.segments._segment_bytes = 1_500
        ids = []
        for number in range(6):
            ids.append(store.insert_memory({"type": "episodic", "content": f"text {number}"}).id)
            clock.advance(days=1)
        store.purge([ids[1]])
    assert migrate(config, dry_run=True).last_seq == sum(one.events for one in migrate(config, dry_run=True).segments)
    compact(config.model_copy(update={"archive_retention_days": 1}), before="2026-02-05", clock=clock)
    report = migrate(config, dry_run=True)
    assert report.segments[0].key_ids == []
    assert len(report.segments[-1].key_ids) == 1
    assert sum(one.events for one in report.segments) == sum(report.types.values()) == report.last_seq
    shown = CliRunner().invoke(
        cli, ["--home", str(config.home), "migrate", "--dry-run"], env={"MEMGRAPH_KEYS_HOME": str(config.keys_home)}
    )
    number = sum(not one.key_ids for one in report.segments)
    assert f"signed with 1 key; {number} condensed segment{'s' * (number > 1)} by condensed.json." in shown.output


class TestRefused:
    @pytest.fixture
    def store(self, tmp_path: Path) -> memgraph.AgentMemoryConfig:
        config = config_of(tmp_path)
        with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(16), clock=FakeClock()) as made:
            for number in range(3):
                made.insert_memory({"type": "episodic", "content": f"text {number}"})
        return config

    def segment(self, config: memgraph.AgentMemoryConfig) -> Path:
        return min((config.home / "journal").glob("*.jsonl"))

    @pytest.mark.parametrize("dry_run", [True, False])
    @pytest.mark.parametrize(
        "harm",
        [
            lambda data: data.replace(b"text 1", b"text X"),
            lambda data: b"".join(data.splitlines(keepends=True)[:-1]),
            lambda data: data.replace(b'"envelope_version":1', b'"envelope_version":7'),
        ],
        ids=["changed", "truncated", "of a later release"],
    )
    def test_a_journal_that_does_not_verify(
        self, store: memgraph.AgentMemoryConfig, tmp_path: Path, harm: Callable[[bytes], bytes], dry_run: bool
    ) -> None:
        self.segment(store).write_bytes(harm(self.segment(store).read_bytes()))
        before = files(tmp_path)
        with pytest.raises(JournalError):
            migrate(store, dry_run=dry_run)
        assert files(tmp_path) == before

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
