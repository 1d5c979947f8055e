"""Sources of keys, and missing keys."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memgraph.errors import KeyMissingError
from memgraph.journal.journal import Journal
from memgraph.journal.key_providers import EnvKeys, FileKeys
from memgraph.journal.keyring import key_from_secret
from memgraph.model.events.memories import MemoryAdded

SECRET = "ab" * 32


def test_a_new_key_is_readable_only_by_its_owner(journal: Journal, keys: FileKeys, tmp_path: Path) -> None:
    path = keys.path(journal.store_id)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.is_relative_to(tmp_path / "keys")
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]  # no temporary file is left
    assert len(bytes.fromhex(json.loads(path.read_text())["secret"])) == 32


def test_no_file_of_the_store_holds_the_secret(
    journal: Journal, keys: FileKeys, write: Callable[..., Any], added: Callable[..., MemoryAdded], tmp_path: Path
) -> None:
    write(journal, added(1))
    key = keys.key(journal.store_id)
    assert key is not None
    for path in (tmp_path / "store").rglob("*"):
        if path.is_file():
            assert key.secret not in path.read_bytes()
            assert key.secret.hex().encode() not in path.read_bytes()


def test_files_of_the_store_are_readable_only_by_their_owner(
    journal: Journal, write: Callable[..., Any], added: Any
) -> None:
    write(journal, added(1))
    for path in journal.home.glob("memgraph.db*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_key_is_made_only_for_an_empty_journal(
    journal: Journal, keys: FileKeys, open_one: Callable[..., Journal]
) -> None:
    path = keys.path(journal.store_id)
    path.unlink()
    with pytest.raises(KeyMissingError, match=journal.store_id) as refused:
        open_one()
    assert str(path) in str(refused.value)
    assert not path.exists()


def test_a_store_without_events_gets_its_key_later(
    journal: Journal, keys: FileKeys, open_one: Callable[..., Journal], head_path: Any, sql: Any
) -> None:
    for path in (keys.path(journal.store_id), head_path(journal)):
        path.unlink()  # as if the first process had died between naming the store and its first event
    for table in ("event", "head"):
        sql(f"DELETE FROM {table}")
    assert open_one().tail.seq == 1
    assert keys.path(journal.store_id).exists()


def test_another_key_is_refused(
    journal: Journal, keys: FileKeys, open_one: Callable[..., Journal], write: Callable[..., Any], added: Any
) -> None:
    write(journal, added(1))
    path = keys.path(journal.store_id)
    path.unlink()
    keys.create(journal.store_id)
    with pytest.raises(Exception, match="key") as refused:
        open_one()
    assert type(refused.value).__name__ == "KeyMissingError"


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: "{}",
        lambda text: "[]",
        lambda text: "null",
        lambda text: text[:-10],
        lambda text: text.replace('"secret": "', '"secret": "zz'),
        lambda text: json.dumps({**json.loads(text), "secret": "00" * 32}),
        lambda text: json.dumps({**json.loads(text), "key_id": "0" * 16}),
        lambda text: json.dumps({**json.loads(text), "secret": 7}),
    ],
)
def test_a_damaged_key_file_is_refused(
    journal: Journal, keys: FileKeys, open_one: Callable[..., Journal], damage: Callable[[str], str]
) -> None:
    path = keys.path(journal.store_id)
    text = path.read_text()
    path.write_text(damage(text))
    with pytest.raises(KeyMissingError, match="keys import"):
        open_one()
    with pytest.raises(KeyMissingError):
        open_one(allow_unverified=True)  # a damaged key does not count as a missing one
    path.write_text(text)
    assert open_one().tail == journal.tail


def test_a_store_signed_from_the_environment(
    open_one: Callable[..., Journal], tmp_path: Path, write: Any, added: Any
) -> None:
    first = open_one(keys=EnvKeys({"MEMGRAPH_KEY": SECRET}))
    write(first, added(1))
    assert open_one(keys=EnvKeys({"MEMGRAPH_KEY": f" {SECRET.upper()}\n"})).tail == first.tail
    assert not (tmp_path / "keys" / "keys").exists()
    with pytest.raises(KeyMissingError):
        open_one(keys=EnvKeys({}))


def test_the_environment_of_the_process_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMGRAPH_KEY", SECRET)
    assert EnvKeys().key("any") == key_from_secret(bytes.fromhex(SECRET), "env:MEMGRAPH_KEY")


@pytest.mark.parametrize("text", ["secret", "ab" * 31, "a" * 63, "xy" * 32])
def test_a_bad_environment_key_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(KeyMissingError, match="MEMGRAPH_KEY") as refused:
        EnvKeys({"MEMGRAPH_KEY": text}).key("any")
    assert text not in str(refused.value)


class TestMissing:
    """A store without its key is refused in ``prod`` and read-only in ``dev``."""

    @pytest.fixture
    def lost(self, open_store: Callable[..., Any], tmp_path: Path) -> str:
        store = open_store()
        memory = store.insert_memory({"type": "episodic", "content": "What was learned"})
        store.close()
        (tmp_path / "keys" / "keys" / f"{store.store_id}.json").unlink()
        return str(memory.id)

    @pytest.mark.parametrize("mode", ["prod", "production", "DEV", ""])
    def test_prod_refuses(self, lost: str, open_store: Callable[..., Any], mode: str) -> None:
        with pytest.raises(KeyMissingError):
            open_store(security_mode=mode)

    def test_dev_alone_refuses_too(self, lost: str, open_store: Callable[..., Any]) -> None:
        with pytest.raises(KeyMissingError):
            open_store(security_mode="dev")

    @pytest.mark.parametrize("mode", ["prod", "production", "DEV"])
    def test_the_flag_has_no_effect_outside_dev(self, lost: str, open_store: Callable[..., Any], mode: str) -> None:
        with pytest.raises(KeyMissingError):
            open_store(security_mode=mode, allow_unsigned_replay=True)

    def test_dev_reads_and_never_writes(self, lost: str, open_store: Any, tmp_path: Path, sql: Any) -> None:
        before = sql("SELECT * FROM event")
        store = open_store(security_mode="dev", allow_unsigned_replay=True)
        assert store.get_memory(lost).content == "What was learned"
        assert store.get_stats().total == 1
        assert store.cypher("MATCH (m:Memory) RETURN count(*) AS n") == [{"n": 1}]
        for write in (
            lambda: store.insert_memory({"type": "episodic", "content": "x"}),
            lambda: store.update_memory(lost, is_pinned=True),
            lambda: store.delete_memory(lost),
        ):
            with pytest.raises(KeyMissingError):
                write()
        assert store.record_access(lost).access_count == 0
        store.close()
        assert sql("SELECT * FROM event") == before
        assert not (tmp_path / "keys" / "keys" / f"{store.store_id}.json").exists()

    def test_dev_still_refuses_damage(self, lost: str, open_store: Any, sql: Any) -> None:
        changed = "CAST(replace(CAST(payload AS TEXT), 'What was learned', 'What was burned!') AS BLOB)"
        sql(f"UPDATE event SET payload = {changed}")
        with pytest.raises(Exception, match="not the one that was signed"):
            open_store(security_mode="dev", allow_unsigned_replay=True)
