"""Restores a store from a backup into a new place, where it appears only when all of it is verified."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

from memgraph.config import AgentMemoryConfig, load_config
from memgraph.disk.files import make_private_folder, sync_folder, write_private
from memgraph.disk.temporary import TemporaryFolder, remove_abandoned
from memgraph.errors import BackupError, InvalidInputError, JournalError, KeyMissingError, StorageError
from memgraph.fold.projection import SCHEMA_VERSION
from memgraph.journal.envelope import CommitDraft
from memgraph.journal.head_file import Head, HeadFile
from memgraph.journal.keys.configured import configured_keys
from memgraph.journal.opening import read_manifest
from memgraph.journal.vectors.damage import NamedRows
from memgraph.model.base import Callback, checked
from memgraph.model.events.payload import Whole
from memgraph.model.events.store import StoreRestored
from memgraph.model.results.maintenance import RestoreResult
from memgraph.model.timestamps import to_iso
from memgraph.ports import Clock, KeyProvider, Progress
from memgraph.store.backup import manifest
from memgraph.store.backup.manifest import BackupManifest
from memgraph.store.backup.unpacking import Archived, chain_of, cut_after, unpack
from memgraph.store.opening import open_projector, open_store_journal, release, utc_now


def restore(
    path: str | Path,
    home: str | Path | None = None,
    *,
    bases: Sequence[str | Path] = (),
    until: int | None = None,
    dry_run: bool = False,
    clock: Clock | None = None,
    keys: KeyProvider | None = None,
    progress: Progress | None = None,
    **config: object,
) -> RestoreResult:
    """Restore a store from a backup into a new directory, and verify all of it before it appears there.

    Verified are the manifest's signature, each file's SHA-256, every event's signature and its place in the chain, and the
    digest of the state. Graph and index are rebuilt. The restoration is recorded as an event. The restored store has the id and
    needs the key of the original. If the original's head file is still here, the copy gets a head file of its own, so that neither
    looks truncated beside the other; from then on they are two stores. Keys that were rotated before the backup may have expired
    since: they verify the restoration, and the copy opens after `memgraph keys rotate --reseal`.

    Parameters
    ----------
    path : str or Path
        The backup; of a series, the last one to be restored.
    home : str or Path, optional
        A directory that is empty or does not exist. Default: ``MEMGRAPH_HOME``, else ``~/.memgraph``.
    bases : sequence of str or Path
        For an incremental backup: those that it continues, unless they are beside it.
    until : int, optional
        Restore only the commits up to this event.
    dry_run : bool
        Verify everything, and restore nothing.
    progress : callable, optional
        Called with (done, total): first bytes, then events.
    config : Any
        Settings of `AgentMemoryConfig`.

    Raises
    ------
    BackupError
        A backup is damaged or missing, or the directory is not empty. Nothing is changed.
    KeyMissingError
        The key with which it was made is missing.
    JournalError
        The events in it are not what was signed.
    """
    checked(Callback, progress, "progress")
    checked(Whole | None, until, "until")
    settings = load_config({"home": home, **config})
    time_of = clock or utc_now
    provider = keys or configured_keys(settings)
    restoring = _Restoring(settings, config, provider, lambda: to_iso(time_of()), progress)
    files = [file_of(one) for one in (path, *bases)]
    return restoring.run(files, until=until, dry_run=dry_run)


class _Restoring:
    def __init__(
        self,
        config: AgentMemoryConfig,
        given: Mapping[str, object],
        keys: KeyProvider,
        now: Callable[[], str],
        progress: Progress | None,
    ) -> None:
        self._config = config
        self._given = given
        self._keys = keys
        self._now = now
        self._progress = progress

    def run(self, paths: Sequence[Path], *, until: int | None, dry_run: bool) -> RestoreResult:
        """Restore, or only verify."""
        started = time.perf_counter()
        home = self._config.home
        _refuse_taken(home)
        chain = chain_of(paths, lambda path: manifest.seals_of(self._keys, self._config.keys_home, path))
        last = chain[-1].manifest
        make_private_folder(home.parent)
        prefix = f".{home.name}.restoring-"
        with ExitStack() as stack:
            try:
                remove_abandoned(home.parent, prefix)
                folder = TemporaryFolder(home.parent, prefix)
            except OSError as error:
                raise StorageError(
                    f"cannot be written: {error.strerror}; choose another place", path=home.parent
                ) from None
            stack.callback(folder.remove)
            unpack(chain, folder.path, self._progress)
            config = load_config({**self._given, "home": folder.path})  # with the settings that were restored
            head = head_of(folder.path / "journal", last, until)
            original = HeadFile.of(folder.path / "journal", config.keys_home, last.store_id)
            later = _events_after(original, head)
            copy_id = _adopt(folder.path / "journal" / "manifest.json", last.store_id, config.keys_home)
            heads = HeadFile(config.keys_home, last.store_id, copy_id)
            stack.callback(heads.path.unlink, missing_ok=True)
            heads.make(head)
            result = self._made(config, chain, head, copy_id)
            if not dry_run:
                _publish(folder.path, home)
                stack.pop_all()
        taken = round(time.perf_counter() - started, 3)
        shown = home.resolve() if ".." in home.parts else home
        updates = {"home": str(shown), "later_events": later, "dry_run": dry_run, "seconds": taken}
        return result.model_copy(update=updates | ({"recorded_as": None, "copy_id": None} if dry_run else {}))

    def _made(
        self, config: AgentMemoryConfig, chain: Sequence[Archived], head: Head, copy_id: str | None
    ) -> RestoreResult:
        """Verify the unpacked journal, make its graph and index, and record the restoration."""
        last = chain[-1]
        try:
            journal = open_store_journal(config, self._keys, self._now, with_expired_keys=True)
            projector = open_projector(config.engine, journal, config.home)
            try:
                if journal.baseline is not None:
                    journal.verify(self._progress)  # opening begins at the baseline
                projector.rebuild(self._progress)
                with projector.reading():
                    digest = f"{projector.projection.digest:064x}"
                is_whole = head.seq == last.manifest.head.seq
                if is_whole and last.manifest.schema_version == SCHEMA_VERSION and digest != last.manifest.digest:
                    raise manifest.damaged(last.path, "the state's digest is not the one that was recorded")
                damaged = sum(1 for _ in NamedRows.of_lines(journal.lines()).damaged(journal.vectors))
                needed = journal.used.needed_after(journal.base.chain.seq)
                expired = needed.expired(config.key_verification_days, self._now())
                record = StoreRestored(
                    backup_id=last.manifest.backup_id,
                    made_at=last.manifest.made_at,
                    seq=head.seq,
                    signature=head.signature,
                    backup_seq=last.manifest.head.seq,
                    copy_id=copy_id,
                    restored_at=max(self._now(), journal.tail.chain.timestamp),
                    restored_by=f"memgraph {release()}",
                )
                with projector.writing():
                    events = projector.append([CommitDraft("system", [record], actor="user")], record.restored_at)
            finally:
                projector.close()
        except KeyMissingError:
            raise
        except JournalError as error:
            raise manifest.damaged(last.path, f"its events do not verify ({error})") from None
        return RestoreResult(
            home=str(config.home),
            store_id=journal.store_id,
            backup_ids=[one.manifest.backup_id for one in chain],
            made_at=last.manifest.made_at,
            last_seq=head.seq,
            backup_seq=last.manifest.head.seq,
            digest=digest,
            copy_id=copy_id,
            damaged_vectors=damaged,
            expired_keys=expired,
            recorded_as=events[-1].seq,
            seconds=0.0,
        )


def file_of(path: str | Path) -> Path:
    """Return the path of a backup that was given.

    Raises
    ------
    InvalidInputError
    """
    if not isinstance(path, str | Path) or not Path(path).name:
        raise InvalidInputError("must be the path of a backup", field="file", value=path)
    return Path(path).absolute()


def _refuse_taken(home: Path) -> None:
    """Refuse a place that holds anything.

    Raises
    ------
    BackupError
    """
    try:
        is_free = not any(home.iterdir())
    except FileNotFoundError:
        is_free = not home.is_symlink()
    except OSError as error:
        raise BackupError(f"cannot be used: {error.strerror}; choose another directory", path=home) from None
    if not is_free:
        raise BackupError(
            "is not empty, and a restoration never replaces a store: name a new directory with --home, or move this one away",
            path=home,
        )


def head_of(folder: Path, last: BackupManifest, until: int | None) -> Head:
    """Return the last event to be restored, after cutting the unpacked journal there."""
    if until is None or until >= last.head.seq:
        return Head(last.head.seq, last.head.signature)
    end = cut_after(folder, until)
    if end.seq == 0:
        raise InvalidInputError("must not lie before the end of the backup's first commit", field="until", value=until)
    if not end.signature:
        problem = f"lies in {end.position.segment}, which was condensed after the retention days and is proven as a whole; name a later event"
        raise InvalidInputError(problem, field="until", value=until)
    return Head(end.seq, end.signature)


def _events_after(heads: HeadFile, head: Head) -> int:
    """Return how many events the original is known to have recorded after the restored ones."""
    try:
        known = heads.read()
    except (JournalError, StorageError):
        return 0
    return max(0, known.seq - head.seq) if known else 0


def _adopt(path: Path, store_id: str, keys_home: Path) -> str | None:
    """Write the restored journal's manifest; return the id of the copy, if another one's head file is there."""
    if read_manifest(path) != store_id:
        raise JournalError("its journal is another store's")
    stored = json.loads(path.read_bytes())
    copy_id = str(uuid4()) if HeadFile(keys_home, store_id).path.exists() else None
    kept = {name: value for name, value in stored.items() if name != "copy"}
    write_private(path, json.dumps({**kept, "copy": copy_id} if copy_id else kept).encode())
    return copy_id


def _publish(folder: Path, home: Path) -> None:
    """Give the finished store its place."""
    try:
        folder.rename(home)  # replaces an empty directory, nothing else
        sync_folder(home.parent)
    except OSError as error:
        raise BackupError(f"cannot be used: {error.strerror}; name another directory with --home", path=home) from None
