"""Backup and restoration: what is restored is what was there, and what does not verify is not restored."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import resource
import shutil
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.errors import BackupError, InvalidInputError, KeyMissingError, MemGraphError, MissingExtraError
from memgraph.journal.key_providers import FileKeys
from memgraph.store import backups
from memgraph.store.backups import ArchiveWriter
from memgraph.store.maintenance.keys import reseal_store, rotate_key
from memgraph.testing import FakeClock, FakeEmbedder
from tests.tables import VectorTable, copy_journal, cut_events, forget_journal, harm_event, lines_of, raw_lines

Restore = Callable[..., Any]


@pytest.fixture
def store(lived: tuple[Any, list[str]]) -> Any:
    return lived[0]


@pytest.fixture
def keys_home(tmp_path: Path) -> Path:
    return tmp_path / "keys"


@pytest.fixture
def restore(tmp_path: Path, keys_home: Path) -> Restore:
    def to(path: Path, place: str = "restored", **options: Any) -> Any:
        clock = FakeClock("2026-02-01T09:00:00.000Z")
        return memgraph.restore(path, tmp_path / place, keys_home=keys_home, clock=clock, **options)

    return to


@pytest.fixture
def opened(tmp_path: Path, keys_home: Path) -> Callable[..., Any]:
    def at(place: str = "restored") -> Any:
        config = memgraph.AgentMemoryConfig(home=tmp_path / place, keys_home=keys_home)
        return memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(64), clock=FakeClock("2026-02-01T09:00:00.000Z"))

    return at


def memory(text: str) -> dict[str, Any]:
    return {"type": "episodic", "content": text, "tags": ["t"]}


def shown(state: dict[str, Any]) -> dict[str, Any]:
    """Return what is equal whichever engine keeps the graph, and whenever it is looked at."""
    memories = {key: one.model_copy(update={"relevance_score": 0.0}) for key, one in state["memories"].items()}
    return {"memories": memories, **{name: state[name] for name in ("digest", "links", "listed")}}


def left_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


class TestWhole:
    @pytest.mark.parametrize("name", ["a.tar.gz", "a.tar.zst"])
    def test_a_restored_store_is_the_one_that_was_backed_up(
        self, store: Any, seen: Any, tmp_path: Path, restore: Restore, opened: Any, name: str
    ) -> None:
        before = shown(seen(store))
        made = store.backup(tmp_path / name)
        assert (made.first_seq, made.digest, made.base_id) == (1, before["digest"], None)
        assert made.recorded_as == made.last_seq + 1
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
        assert (tmp_path / name).stat().st_size == made.size_bytes
        found = restore(tmp_path / name)
        assert (found.digest, found.last_seq, found.recorded_as) == (before["digest"], made.last_seq, made.last_seq + 1)
        with opened() as copy:
            assert copy.notices == []
            assert shown(seen(copy)) == before
            assert copy.verify(deep=True) == found.recorded_as

    def test_graph_and_index_are_made_before_the_store_appears(
        self, store: Any, tmp_path: Path, restore: Restore, opened: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        restore(Path(store.backup(tmp_path / "a.tar.gz").file))
        assert (tmp_path / "restored" / "index" / "index.npz").exists()
        with caplog.at_level("INFO", "memgraph"), opened() as copy:
            assert copy.get_all_memories()
        assert "rebuilt" not in caplog.text

    def test_both_are_recorded_and_listed(self, store: Any, tmp_path: Path, restore: Restore, opened: Any) -> None:
        made = store.backup(tmp_path / "a.tar.gz")
        (record,) = store.backups()
        assert (record.backup_id, record.path, record.seq) == (made.backup_id, made.file, made.last_seq)
        restore(tmp_path / "a.tar.gz")
        with opened() as copy:
            assert copy.backups() == [], "a backup does not contain its own record"
            last = lines_of(tmp_path / "restored")[-1]
            assert last["head"]["type"] == "store.restored"
            assert last["payload"]["backup_id"] == made.backup_id

    def test_settings_are_in_it_and_keys_tokens_and_projections_are_not(self, store: Any, tmp_path: Path) -> None:
        home = store.config.home
        (home / "config.toml").write_text("")
        (home / "server").mkdir(exist_ok=True)
        (home / "server" / "tokens.json").write_text("{}")
        store.backup(tmp_path / "a.tar.gz")
        key = FileKeys(tmp_path / "keys").key(store.store_id)
        assert key is not None
        with tarfile.open(tmp_path / "a.tar.gz") as tar:
            names = tar.getnames()
            content = b"".join(tar.extractfile(one).read() for one in tar)  # type: ignore[union-attr]
        assert names[0] == "backup.json"
        assert set(names[1:]) == {"events.jsonl", "vectors/fake.f32", "config.toml"}
        assert key.secret not in content
        assert key.secret.hex().encode() not in content

    def test_events_keep_their_bytes_and_settings_come_back(self, store: Any, tmp_path: Path, restore: Restore) -> None:
        (store.config.home / "config.toml").write_text("working_memory_days = 9\n")
        before = raw_lines(store.config.home)
        restore(Path(store.backup(tmp_path / "a.tar.gz").file))
        assert raw_lines(tmp_path / "restored")[:-1] == before
        assert VectorTable(tmp_path / "restored").rows() == VectorTable(store.config.home).rows()
        assert (tmp_path / "restored" / "config.toml").read_text() == "working_memory_days = 9\n"

    def test_progress_ends_at_its_total(self, store: Any, tmp_path: Path, restore: Restore) -> None:
        steps: list[tuple[int, int]] = []
        store.backup(tmp_path / "a.tar.gz", progress=lambda done, total: steps.append((done, total)))
        assert steps[-1][0] == steps[-1][1] > 0
        assert [done for done, _ in steps] == sorted(done for done, _ in steps)
        steps.clear()
        restore(tmp_path / "a.tar.gz", progress=lambda done, total: steps.append((done, total)))
        assert any(done == total > 0 for done, total in steps)

    def test_only_the_first_commits(self, store: Any, tmp_path: Path, restore: Restore, opened: Any) -> None:
        made = store.backup(tmp_path / "a.tar.gz")
        boundaries = {commit.after.seq for commit in store._journal.replay()}
        found = restore(tmp_path / "a.tar.gz", until=made.last_seq // 2)
        assert found.last_seq in boundaries
        assert max(one for one in boundaries if one <= made.last_seq // 2) == found.last_seq < found.backup_seq
        with opened() as copy:
            assert copy.verify(deep=True) == found.last_seq + 1
        with pytest.raises(InvalidInputError, match="until"):
            restore(tmp_path / "a.tar.gz", "other", until=0)
        assert not (tmp_path / "other").exists()


class TestIncremental:
    def test_a_series_is_restored_together(
        self, store: Any, seen: Any, tmp_path: Path, restore: Restore, opened: Any
    ) -> None:
        first = store.backup(tmp_path / "a.tar.gz")
        for number in range(3):
            store.insert_memory(memory(f"since the first, {number}"))
        second = store.backup(tmp_path / "b.tar.zst", incremental=True)
        assert (second.base_id, second.first_seq) == (first.backup_id, first.last_seq + 1)
        store.delete_memory(store.insert_memory(memory("since the second")).id)
        third = store.backup(tmp_path / "c.tar.gz", incremental=True)
        before = shown(seen(store))
        assert third.size_bytes < first.size_bytes
        found = restore(tmp_path / "c.tar.gz")  # the others are found beside it
        assert found.backup_ids == [first.backup_id, second.backup_id, third.backup_id]
        with opened() as copy:
            assert shown(seen(copy)) == before
            assert copy.verify(deep=True) == found.recorded_as
        middle = restore(tmp_path / "b.tar.zst", "middle")
        assert middle.digest == second.digest

    def test_elsewhere_each_one_has_to_be_named(self, store: Any, tmp_path: Path, restore: Restore) -> None:
        store.backup(tmp_path / "a.tar.gz")
        store.insert_memory(memory("since"))
        store.backup(tmp_path / "b.tar.gz", incremental=True)
        (tmp_path / "far").mkdir()
        (tmp_path / "a.tar.gz").rename(tmp_path / "far" / "renamed.tar.gz")
        with pytest.raises(BackupError, match=r"continues the backup a\.tar\.gz .*name it, too"):
            restore(tmp_path / "b.tar.gz")
        found = restore(tmp_path / "b.tar.gz", bases=[tmp_path / "far" / "renamed.tar.gz"])
        assert len(found.backup_ids) == 2

    def test_a_full_disk_is_named_with_the_file(self, store: Any, tmp_path: Path) -> None:
        """All of a small one is written only when its file is closed."""
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
        try:
            with pytest.raises(BackupError, match=r"a\.tar\.gz: cannot be written: .*free some space"):
                store.backup(tmp_path / "a.tar.gz")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert not list(tmp_path.glob("*a.tar.gz*"))

    def test_one_without_a_base_is_refused(self, store: Any, tmp_path: Path) -> None:
        with pytest.raises(InvalidInputError, match="make a full one first"):
            store.backup(tmp_path / "a.tar.gz", incremental=True)
        assert not (tmp_path / "a.tar.gz").exists()

    def test_a_base_can_be_named(self, store: Any, tmp_path: Path, restore: Restore) -> None:
        first = store.backup(tmp_path / "a.tar.gz")
        store.insert_memory(memory("since the first"))
        store.backup(tmp_path / "b.tar.gz")
        store.insert_memory(memory("since the second"))
        third = store.backup(tmp_path / "c.tar.gz", base=tmp_path / "a.tar.gz")
        assert third.base_id == first.backup_id
        assert restore(tmp_path / "c.tar.gz").digest == third.digest

    def test_backups_of_two_series_do_not_mix(self, store: Any, tmp_path: Path, restore: Restore) -> None:
        store.backup(tmp_path / "a.tar.gz")
        store.insert_memory(memory("since"))
        store.backup(tmp_path / "b.tar.gz")
        with pytest.raises(BackupError, match="not continued by"):
            restore(tmp_path / "b.tar.gz", bases=[tmp_path / "a.tar.gz"])

    def test_a_rewritten_history_needs_a_full_backup(self, store: Any, tmp_path: Path, opened: Any) -> None:
        """A purge keeps the signatures and takes out content: an incremental backup would bring it back."""
        gone = store.insert_memory(memory("purged later")).id
        store.backup(tmp_path / "a.tar.gz")
        store.purge([gone])
        for options in ({"incremental": True}, {"base": tmp_path / "a.tar.gz"}):
            with pytest.raises(BackupError, match="make a full backup"):
                store.backup(tmp_path / "b.tar.gz", **options)
            assert not (tmp_path / "b.tar.gz").exists()
        store.backup(tmp_path / "b.tar.gz")
        store.close()
        rotate_key(store.config, clock=FakeClock("2026-02-01T09:00:00.000Z"))
        reseal_store(store.config, clock=FakeClock("2026-02-01T09:00:00.000Z"))
        with opened("store") as again, pytest.raises(BackupError, match="make a full backup"):
            again.backup(tmp_path / "c.tar.gz", incremental=True)


class TestWhileOthersWrite:
    def test_what_is_written_during_a_backup_is_not_in_it(self, store: Any, tmp_path: Path, restore: Restore) -> None:
        digest, times = store.digest(), []

        def meanwhile(*_: int) -> None:
            if not times:
                times.append(store.insert_memory(memory("written during the backup")))

        made = store.backup(tmp_path / "a.tar.gz", progress=meanwhile)
        assert made.digest == digest != store.digest()
        assert restore(tmp_path / "a.tar.gz").digest == digest

    @pytest.mark.parametrize("moment", ["verified", "copied", "published"])
    def test_a_purge_meanwhile_is_noticed_and_it_begins_again(
        self, store: Any, tmp_path: Path, restore: Restore, monkeypatch: pytest.MonkeyPatch, opened: Any, moment: str
    ) -> None:
        owner, name = {
            "verified": (backups.Backups, "_parts"),
            "copied": (backups.Backups, "_manifest"),
            "published": (backups.Backups, "_publish"),
        }[moment]
        gone = store.insert_memory(memory("purged meanwhile")).id
        real, times = getattr(owner, name), []

        def meanwhile(*args: Any, **options: Any) -> Any:
            times.append(1)
            if len(times) == 1:
                store.purge([gone])
            return real(*args, **options)

        monkeypatch.setattr(owner, name, meanwhile)
        made = store.backup(tmp_path / "a.tar.gz")
        assert len(times) == 2
        assert restore(tmp_path / "a.tar.gz").digest == made.digest == store.digest()
        with tarfile.open(tmp_path / "a.tar.gz") as tar:
            assert b"purged meanwhile" not in tar.extractfile("events.jsonl").read()  # type: ignore[union-attr]

    def test_one_that_is_rewritten_again_and_again_is_given_up(
        self, store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def changed(*_: Any, **__: Any) -> Any:
            raise backups.RewrittenError

        monkeypatch.setattr(backups.Backups, "_parts", changed)
        with pytest.raises(BackupError, match="3 times"):
            store.backup(tmp_path / "a.tar.gz")
        assert not list(tmp_path.glob("*.tar.gz"))


class TestHeadFiles:
    def test_the_original_and_its_copy_are_both_used_on(
        self, store: Any, tmp_path: Path, restore: Restore, opened: Any, open_store: Any
    ) -> None:
        store.backup(tmp_path / "a.tar.gz")
        store.insert_memory(memory("only in the original"))
        found = restore(tmp_path / "a.tar.gz")
        assert found.copy_id
        assert found.later_events == 2
        with opened() as copy:
            copy.insert_memory(memory("only in the copy"))
            assert copy.notices == []
        store.insert_memory(memory("again in the original"))
        store.close()
        for place in ("store", "restored"):
            with opened(place) as again:
                assert again.notices == []
                again.verify()

    def test_resealing_a_copy_leaves_the_head_file_of_the_original(
        self, store: Any, tmp_path: Path, keys_home: Path, restore: Restore, opened: Any
    ) -> None:
        store.backup(tmp_path / "a.tar.gz")
        store.close()
        restore(tmp_path / "a.tar.gz")
        config = memgraph.AgentMemoryConfig(home=tmp_path / "restored", keys_home=keys_home)
        clock = FakeClock("2026-02-01T09:00:00.000Z")
        rotate_key(config, clock=clock)
        reseal_store(config, clock=clock)
        for place in ("store", "restored"):
            with opened(place) as again:
                again.verify()

    def test_a_truncated_copy_is_refused_and_so_is_one_without_its_head_file(
        self, store: Any, tmp_path: Path, restore: Restore, opened: Any, keys_home: Path
    ) -> None:
        store.backup(tmp_path / "a.tar.gz")
        found = restore(tmp_path / "a.tar.gz")
        home = tmp_path / "restored"
        copy_journal(home, tmp_path / "kept")
        cut_events(home, len(raw_lines(home)) - 2)
        with pytest.raises(memgraph.JournalError):
            opened()
        forget_journal(home)
        copy_journal(tmp_path / "kept", home)
        head = keys_home / "heads" / f"{store.store_id}.{found.copy_id}"
        head.unlink()
        with pytest.raises(memgraph.JournalError, match="of this restored store is missing"):
            opened()
        config = memgraph.AgentMemoryConfig(home=tmp_path / "restored", keys_home=keys_home)
        condition = memgraph.store.repair_store(config)
        memgraph.store.repair_store(config, accept_head=condition)
        with opened() as copy:
            copy.verify()

    def test_where_the_original_never_was_the_copy_takes_its_place(
        self, store: Any, tmp_path: Path, restore: Restore, opened: Any, keys_home: Path
    ) -> None:
        store.backup(tmp_path / "a.tar.gz")
        store.close()
        shutil.rmtree(keys_home / "heads")
        found = restore(tmp_path / "a.tar.gz")
        assert found.copy_id is None
        assert left_in(keys_home / "heads") == {store.store_id}
        with opened() as copy:
            assert copy.notices == []

    def test_a_copy_can_be_backed_up_and_restored(
        self, store: Any, tmp_path: Path, restore: Restore, opened: Any
    ) -> None:
        store.backup(tmp_path / "a.tar.gz")
        restore(tmp_path / "a.tar.gz")
        with opened() as copy:
            made = copy.backup(tmp_path / "b.tar.gz")
        found = restore(tmp_path / "b.tar.gz", "again")
        assert found.digest == made.digest
        with opened("again") as again:
            again.verify()


class TestRefused:
    def test_a_place_that_is_not_empty(self, store: Any, tmp_path: Path, restore: Restore) -> None:
        store.backup(tmp_path / "a.tar.gz")
        before = left_in(tmp_path)
        with pytest.raises(BackupError, match="is not empty"):
            restore(tmp_path / "a.tar.gz", "store")
        (tmp_path / "file").write_text("x")
        with pytest.raises(BackupError, match="cannot be used"):
            restore(tmp_path / "a.tar.gz", "file")
        (tmp_path / "file").unlink()
        assert left_in(tmp_path) == before
        (tmp_path / "empty").mkdir()
        assert restore(tmp_path / "a.tar.gz", "empty").last_seq

    def test_an_existing_file_unless_it_may_be_replaced(self, store: Any, tmp_path: Path, restore: Restore) -> None:
        (tmp_path / "a.tar.gz").write_text("mine")
        with pytest.raises(BackupError, match="--force"):
            store.backup(tmp_path / "a.tar.gz")
        assert (tmp_path / "a.tar.gz").read_text() == "mine"
        store.backup(tmp_path / "a.tar.gz", replace=True)
        assert restore(tmp_path / "a.tar.gz").last_seq

    def test_a_file_that_appears_meanwhile_is_kept(
        self, store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = backups.Backups._publish

        def late(*args: Any, **options: Any) -> Any:
            (tmp_path / "a.tar.gz").write_text("mine")
            return real(*args, **options)

        monkeypatch.setattr(backups.Backups, "_publish", late)
        with pytest.raises(BackupError, match="exists"):
            store.backup(tmp_path / "a.tar.gz")
        assert (tmp_path / "a.tar.gz").read_text() == "mine"
        assert not list(tmp_path.glob(".a.tar.gz*"))

    def test_without_hard_links_nothing_is_replaced_either(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refused(*_: Any) -> None:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

        def write() -> None:
            with ArchiveWriter(path, replaces=False) as archive:
                archive.add("one", 3, io.BytesIO(b"one"))
                archive.finish()
                archive.publish()

        monkeypatch.setattr(os, "link", refused)
        path = tmp_path / "a.tar.gz"
        path.symlink_to(tmp_path / "elsewhere.tar.gz")
        with pytest.raises(BackupError, match="exists"):
            write()
        assert path.is_symlink()
        assert list(tmp_path.glob("*a.tar.gz*")) == [path]
        path.unlink()
        write()
        with tarfile.open(path) as tar:
            assert tar.getnames() == ["one"]
        assert list(tmp_path.glob("*a.tar.gz*")) == [path]

    @pytest.mark.parametrize("name", ["a.tar", "a.zip", "a", "", "a.tar.gz\0"])
    def test_a_name_without_a_known_ending(self, store: Any, tmp_path: Path, name: str) -> None:
        with pytest.raises(InvalidInputError, match="file"):
            store.backup(str(tmp_path / name) if name else "")

    def test_places_that_cannot_be_used(self, store: Any, tmp_path: Path) -> None:
        with pytest.raises(BackupError, match="in the store itself"):
            store.backup(store.config.home / "a.tar.gz")
        with pytest.raises(BackupError, match="No such file"):
            store.backup(tmp_path / "nowhere" / "a.tar.gz")
        (tmp_path / "folder.tar.gz").mkdir()
        with pytest.raises(BackupError, match="is a directory"):
            store.backup(tmp_path / "folder.tar.gz", replace=True)

    def test_without_the_package_the_other_ending_is_named(
        self, store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restore: Restore
    ) -> None:
        store.backup(tmp_path / "b.tar.zst")
        monkeypatch.setitem(sys.modules, "zstandard", None)
        with pytest.raises(MissingExtraError, match=r"\.tar\.gz.*zstandard.*\[zstd\]"):
            store.backup(tmp_path / "a.tar.zst")
        with pytest.raises(MissingExtraError):
            restore(tmp_path / "b.tar.zst")
        assert restore(Path(store.backup(tmp_path / "a.tar.gz").file)).last_seq

    def test_a_missing_or_another_key_is_named(
        self, store: Any, tmp_path: Path, restore: Restore, keys_home: Path
    ) -> None:
        store.backup(tmp_path / "a.tar.gz")
        key = FileKeys(keys_home).key(store.store_id)
        assert key is not None
        with pytest.raises(
            KeyMissingError, match=f"{key.key_id} of store {store.store_id}, which is missing.*never contains keys"
        ):
            memgraph.restore(tmp_path / "a.tar.gz", tmp_path / "restored", keys_home=tmp_path / "no-keys")
        other = FileKeys(tmp_path / "other")
        other.create(store.store_id)
        with pytest.raises(KeyMissingError, match="not the key given"):
            memgraph.restore(tmp_path / "a.tar.gz", tmp_path / "restored", keys_home=tmp_path / "other")
        assert not (tmp_path / "restored").exists()
        assert not (tmp_path / "no-keys").exists()

    def test_after_a_rotation_old_and_new_backups_are_restored(
        self, store: Any, tmp_path: Path, restore: Restore, keys_home: Path, opened: Any
    ) -> None:
        """The manifest of each was signed with the key of its time, and so were its events."""
        from memgraph.store.maintenance.keys import rotate_key

        store.backup(tmp_path / "a.tar.gz")
        config = store.config
        store.close()
        rotate_key(config, clock=FakeClock("2026-02-01T09:00:00.000Z"))
        with opened("store") as rotated:
            rotated.insert_memory(memory("under the new key"))
            made = rotated.backup(tmp_path / "b.tar.gz", base=tmp_path / "a.tar.gz")
            whole = rotated.backup(tmp_path / "c.tar.gz")
        assert restore(tmp_path / "a.tar.gz", "one").last_seq < made.last_seq
        assert restore(tmp_path / "b.tar.gz", "two").digest == made.digest
        assert restore(tmp_path / "c.tar.gz", "three").digest == whole.digest

    def test_a_dry_run_leaves_nothing(self, store: Any, tmp_path: Path, restore: Restore, keys_home: Path) -> None:
        made = store.backup(tmp_path / "a.tar.gz")
        before, heads = left_in(tmp_path), left_in(keys_home / "heads")
        found = restore(tmp_path / "a.tar.gz", dry_run=True)
        assert (found.digest, found.dry_run, found.recorded_as) == (made.digest, True, None)
        assert (left_in(tmp_path), left_in(keys_home / "heads")) == (before, heads)

    def test_an_interrupted_backup_or_restoration_leaves_nothing(
        self, store: Any, tmp_path: Path, restore: Restore, keys_home: Path
    ) -> None:
        def stop(*_: Any) -> None:
            raise KeyboardInterrupt

        before, heads = left_in(tmp_path), left_in(keys_home / "heads")
        with pytest.raises(KeyboardInterrupt):
            store.backup(tmp_path / "a.tar.gz", progress=stop)
        assert left_in(tmp_path) == before
        store.backup(tmp_path / "a.tar.gz")
        for step in (1, 5, 9):
            calls = iter(range(100_000))
            with pytest.raises(KeyboardInterrupt):
                restore(tmp_path / "a.tar.gz", progress=lambda *_, n=step, c=calls: stop() if next(c) == n else None)  # type: ignore[misc]
            assert left_in(tmp_path) == before | {"a.tar.gz"}
            assert left_in(keys_home / "heads") == heads


class TestHostileArchives:
    """Archives that no backup made: of a stranger, or signed by who has the key and means harm."""

    @pytest.fixture
    def forge(self, store: Any, tmp_path: Path) -> Callable[..., Path]:
        store.backup(tmp_path / "good.tar.gz")
        with tarfile.open(tmp_path / "good.tar.gz") as tar:
            entries = [(one, tar.extractfile(one).read()) for one in tar]  # type: ignore[union-attr]

        def made(change: Callable[[list[Any]], None], body: Callable[[Any], None] | None = None) -> Path:
            again = [(tarfile.TarInfo(info.name), data) for info, data in entries]
            if body is not None:
                stored = json.loads(again[0][1])
                body(stored["body"])
                code = store._journal.seal(backups.PURPOSE).code(backups.canonical(stored["body"]))
                again[0] = (again[0][0], json.dumps({**stored, "code": code}).encode())
            change(again)
            with tarfile.open(tmp_path / "bad.tar.gz", "w:gz") as tar:
                for info, data in again:
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
            return tmp_path / "bad.tar.gz"

        return made

    def refused(self, path: Path, restore: Restore, tmp_path: Path, match: str) -> None:
        before = left_in(tmp_path)
        with pytest.raises(BackupError, match=match):
            restore(path)
        assert left_in(tmp_path) == before

    @pytest.mark.parametrize(
        ("kind", "link"),
        [
            (tarfile.SYMTYPE, "/etc/passwd"),
            (tarfile.LNKTYPE, "backup.json"),
            (tarfile.CHRTYPE, ""),
            (tarfile.FIFOTYPE, ""),
            (tarfile.DIRTYPE, ""),
        ],
    )
    def test_links_devices_and_directories(
        self, forge: Any, restore: Restore, tmp_path: Path, kind: bytes, link: str
    ) -> None:
        def change(entries: list[Any]) -> None:
            entries[1][0].type, entries[1][0].linkname = kind, link
            entries[1] = (entries[1][0], b"")

        self.refused(forge(change), restore, tmp_path, "where the file|bytes, not|unpacked")

    @pytest.mark.parametrize(
        "name",
        ["../evil.jsonl", "/tmp/evil.jsonl", "journal/../../evil", "journal//x", ".ssh/x", "a\\b", "journal/./x"],
    )
    def test_paths_that_lead_elsewhere_even_if_they_are_signed(
        self, forge: Any, restore: Restore, tmp_path: Path, name: str
    ) -> None:
        def rename(entries: list[Any]) -> None:
            entries[1][0].name = name

        self.refused(
            forge(rename, lambda body: body["files"][0].update(name=name)), restore, tmp_path, r"files\.0\.name"
        )
        self.refused(forge(rename), restore, tmp_path, "where the file")

    def test_further_missing_and_swapped_files(self, forge: Any, restore: Restore, tmp_path: Path) -> None:
        self.refused(forge(lambda e: e.append((tarfile.TarInfo("more"), b"x"))), restore, tmp_path, "does not name")
        self.refused(forge(lambda e: e.pop()), restore, tmp_path, "ends before")
        self.refused(forge(lambda e: e.insert(1, e.pop(2))), restore, tmp_path, "is expected")
        self.refused(forge(lambda e: e.pop(0)), restore, tmp_path, "is expected")

    def test_a_manifest_that_was_changed(self, forge: Any, restore: Restore, tmp_path: Path) -> None:
        def change(entries: list[Any]) -> None:
            entries[0] = (entries[0][0], entries[0][1].replace(b'"first_seq":1', b'"first_seq":2'))

        self.refused(forge(change), restore, tmp_path, "not what was signed")

    def test_a_later_format(self, forge: Any, restore: Restore, tmp_path: Path) -> None:
        path = forge(lambda _: None, lambda body: body.update(format=99, whatever={}))
        self.refused(path, restore, tmp_path, "install a newer memgraph")

    def test_a_bomb(self, restore: Restore, tmp_path: Path, store: Any) -> None:
        """What unpacks to more than the manifest names is given up at once, and no memory is taken for it."""
        store.backup(tmp_path / "good.tar.gz")
        with tarfile.open(tmp_path / "good.tar.gz") as tar:
            entries = [(one, tar.extractfile(one).read()) for one in tar]  # type: ignore[union-attr]
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for info, data in entries:
                tar.addfile(info, io.BytesIO(data))
        zeros = bytes(1 << 20)
        with gzip.open(tmp_path / "bomb.tar.gz", "wb") as packed:
            packed.write(out.getvalue())
            for _ in range(200):
                packed.write(zeros)
        self.refused(tmp_path / "bomb.tar.gz", restore, tmp_path, "more than its manifest")
        header = tarfile.TarInfo("backup.json")
        header.size = 1 << 40
        with gzip.open(tmp_path / "bomb.tar.gz", "wb") as packed:
            packed.write(header.tobuf(tarfile.GNU_FORMAT))
        self.refused(tmp_path / "bomb.tar.gz", restore, tmp_path, "too large")
        long = tarfile.TarInfo("x")
        long.type, long.size = tarfile.XHDTYPE, 1 << 30
        with gzip.open(tmp_path / "bomb.tar.gz", "wb", compresslevel=1) as packed:
            packed.write(long.tobuf(tarfile.GNU_FORMAT))
            for _ in range(40):
                packed.write(zeros)
        self.refused(tmp_path / "bomb.tar.gz", restore, tmp_path, "more than its manifest")

    def test_endless_extension_headers(self, restore: Restore, tmp_path: Path) -> None:
        name = tarfile.TarInfo("././@LongLink")
        name.type, name.size = tarfile.GNUTYPE_LONGNAME, 512
        with gzip.open(tmp_path / "x.tar.gz", "wb") as packed:
            packed.write((name.tobuf(tarfile.GNU_FORMAT) + bytes(512)) * 5_000)
        self.refused(tmp_path / "x.tar.gz", restore, tmp_path, "is damaged")

    @pytest.mark.parametrize(
        "content", [b"", b"\x1f\x8b", b"not a backup", b"\x28\xb5\x2f\xfd", b"\x1f\x8b" + bytes(100)]
    )
    def test_files_that_are_no_backups(self, restore: Restore, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "x.tar.gz").write_bytes(content)
        self.refused(tmp_path / "x.tar.gz", restore, tmp_path, "is not a backup|is damaged")
        with pytest.raises(BackupError, match="cannot be read"):
            restore(tmp_path / "missing.tar.gz")

    def test_a_pipe_is_not_waited_for(self, restore: Restore, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.tar.gz")
        self.refused(tmp_path / "pipe.tar.gz", restore, tmp_path, "cannot be read")


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar.zst"])
def test_a_flipped_bit_is_refused_or_harmless(
    store: Any, tmp_path: Path, restore: Restore, name: str, request: pytest.FixtureRequest
) -> None:
    """Every byte in a long run, else a sample: bytes of the compression's own header may differ without any effect."""
    made = store.backup(tmp_path / name)
    data = (tmp_path / name).read_bytes()
    is_long = request.config.getoption("--long")
    harmless = 0
    for place in range(0, len(data), 1 if is_long else max(1, len(data) // 40)):
        flipped = bytearray(data)
        flipped[place] ^= 1 << (place % 8)
        (tmp_path / "bad").write_bytes(flipped)
        before = left_in(tmp_path)
        try:
            found = restore(tmp_path / "bad", dry_run=True)
        except MemGraphError as error:
            assert isinstance(error, BackupError | KeyMissingError), f"byte {place}: {error!r}"  # noqa: PT017
        else:
            assert found.digest == made.digest, f"byte {place}"
            harmless += 1
        assert left_in(tmp_path) == before, f"byte {place}"
    assert harmless <= 12, "only the compression's header"


def test_an_event_that_repeats_a_number_is_damage(store: Any, tmp_path: Path, restore: Restore) -> None:
    store.backup(tmp_path / "a.tar.gz")
    data = gzip.decompress((tmp_path / "a.tar.gz").read_bytes())
    repeated = data.replace(b'"seq":3,', b'"seq":2,', 1)
    assert repeated != data
    (tmp_path / "bad.tar.gz").write_bytes(gzip.compress(repeated))
    with pytest.raises(BackupError, match="damaged"):
        restore(tmp_path / "bad.tar.gz")


def test_every_cut_is_refused(store: Any, tmp_path: Path, restore: Restore) -> None:
    store.backup(tmp_path / "a.tar.gz")
    data = (tmp_path / "a.tar.gz").read_bytes()
    for size in (0, 1, 10, 100, len(data) // 2, len(data) - 9, len(data) - 1):
        (tmp_path / "cut.tar.gz").write_bytes(data[:size])
        with pytest.raises(BackupError):
            restore(tmp_path / "cut.tar.gz")


def test_a_damaged_journal_is_not_backed_up(store: Any, tmp_path: Path) -> None:
    harm_event(store.config.home, 5)
    with pytest.raises(memgraph.JournalError, match="damaged"):
        store.backup(tmp_path / "a.tar.gz")
    assert not list(tmp_path.glob("*.tar.gz*"))


def test_damaged_vectors_are_restored_as_they_are_and_reported(
    store: Any, tmp_path: Path, restore: Restore, opened: Any
) -> None:
    VectorTable(store.config.home).flip(0)
    store.backup(tmp_path / "a.tar.gz")
    assert restore(tmp_path / "a.tar.gz").damaged_vectors == 1
    with opened() as copy:
        assert copy.repair_vectors().restored == 1
        copy.verify()


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_backup_outlives_the_keys_that_were_rotated_before_it(
    store: Any, tmp_path: Path, keys_home: Path, opened: Any, dry_run: bool
) -> None:
    """The copy is refused until it is resealed, as the original is: the result names the keys."""
    first = store._journal.used.current
    store.close()
    rotate_key(store.config, clock=FakeClock("2026-02-01T09:00:00.000Z"))
    with opened(store.config.home.name) as again:
        made = again.backup(tmp_path / "a.tar.gz")

    def restored(place: str, at: str) -> Any:
        clock = FakeClock(at)
        return memgraph.restore(
            made.file, tmp_path / place, keys_home=keys_home, clock=clock, dry_run=dry_run, embedding_model="none"
        )

    assert restored("soon", "2026-02-02T09:00:00.000Z").expired_keys == []
    late = restored("late", "2026-04-10T09:00:00.000Z")
    assert (late.last_seq, late.expired_keys) == (made.last_seq, [first])
    if dry_run:
        assert not (tmp_path / "late").exists()
        return
    config = memgraph.AgentMemoryConfig(home=tmp_path / "late", keys_home=keys_home)
    clock = FakeClock("2026-04-10T09:00:00.000Z")
    with pytest.raises(KeyMissingError, match="keys rotate --reseal"):
        memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(64), clock=clock)
    reseal_store(config, clock=clock)
    with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(64), clock=clock) as copy:
        assert copy.verify() == late.recorded_as + 1
