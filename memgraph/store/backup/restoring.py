"""Restores a store from a backup into a new place, where it appears only when all of it is verified."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np

from memgraph.config import AgentMemoryConfig, load_config
from memgraph.disk.files import make_private_folder, sync_folder, write_private
from memgraph.disk.folders import TemporaryFolder, remove_abandoned
from memgraph.disk.seal import Seal
from memgraph.errors import BackupError, InvalidInputError, JournalError, KeyMissingError, StorageError
from memgraph.fold.fold import SCHEMA_VERSION
from memgraph.journal.envelope import MAX_LINE_BYTES, CommitDraft, Line, LineError, parsed
from memgraph.journal.head_file import Head, HeadFile
from memgraph.journal.keys.providers import configured_keys
from memgraph.journal.opening import FILE, add_store
from memgraph.journal.sql import Database, SQLite
from memgraph.journal.vectors import NamedRows, file_name
from memgraph.model.base import Callback, checked
from memgraph.model.events.payload import Whole
from memgraph.model.events.store import StoreRestored
from memgraph.model.results.maintenance import RestoreResult
from memgraph.model.timestamps import to_iso
from memgraph.ports import Clock, KeyProvider, Progress
from memgraph.store.backup import manifest
from memgraph.store.backup.archive import reading
from memgraph.store.backup.making import EVENTS
from memgraph.store.backup.manifest import BackupFile, BackupManifest
from memgraph.store.opening import open_projector, open_store_journal, release, utc_now

SealFor = Callable[[str, str], Seal]
_SETTINGS = "config.toml"
_MAX_SETTINGS_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Archived:
    """An archive and its verified manifest."""

    path: Path
    manifest: BackupManifest
    data: bytes
    """The manifest as it stands in the archive."""


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
    if settings.server:
        raise StorageError(
            "restore into a directory, and then run `memgraph move --to` with this address", path=str(settings.server)
        )
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
            original = HeadFile(self._config.keys_home, last.store_id)
            copy_id = str(uuid4()) if original.path.exists() else None
            database = SQLite(folder.path / FILE)
            try:
                with database.writing(self._config.lock_timeout_s):
                    add_store(database, last.store_id, copy_id)
                    head = fill(database, chain, folder.path, until=until, progress=self._progress)
            finally:
                database.close()
            config = load_config({**self._given, "home": folder.path})  # with the settings that were restored
            later = _events_after(original, head)
            heads = HeadFile(config.keys_home, last.store_id, copy_id)

            def withdraw() -> None:
                if folder.path.exists():  # else the store has its place, and needs it, even if Ctrl-C comes then
                    heads.path.unlink(missing_ok=True)

            stack.callback(withdraw)
            heads.make(head)
            result = self._made(config, chain, head, copy_id)
            if not dry_run:
                _publish(folder.path, home)
        taken = round(time.perf_counter() - started, 3)
        shown = home.resolve() if ".." in home.parts else home
        updates = {"home": str(shown), "later_events": later, "dry_run": dry_run, "seconds": taken}
        return result.model_copy(update=updates | ({"recorded_as": None, "copy_id": None} if dry_run else {}))

    def _made(
        self, config: AgentMemoryConfig, chain: Sequence[Archived], head: Head, copy_id: str | None
    ) -> RestoreResult:
        """Verify the restored journal, make what is made of it, and record the restoration."""
        last = chain[-1]
        try:
            journal = open_store_journal(config, self._keys, self._now, with_expired_keys=True)
            projector = open_projector(config.engine, journal, config.home)
            try:
                if journal.tail.signature != head.signature:
                    raise manifest.damaged(last.path, "its journal does not end where its manifest says")
                projector.rebuild(self._progress)
                with projector.reading():
                    digest = f"{projector.projection.digest:064x}"
                is_whole = head.seq == last.manifest.head.seq
                if is_whole and last.manifest.schema_version == SCHEMA_VERSION and digest != last.manifest.digest:
                    raise manifest.damaged(last.path, "the state's digest is not the one that was recorded")
                damaged = sum(1 for _ in NamedRows.of_lines(journal.lines()).damaged(journal.vectors))
                needed = journal.used.needed_after(journal.base.seq)
                expired = needed.expired(config.key_verification_days, self._now())
                record = StoreRestored(
                    backup_id=last.manifest.backup_id,
                    made_at=last.manifest.made_at,
                    seq=head.seq,
                    signature=head.signature,
                    backup_seq=last.manifest.head.seq,
                    copy_id=copy_id,
                    restored_at=max(self._now(), journal.tail.timestamp),
                    restored_by=f"memgraph {release()}",
                )
                with projector.writing():
                    events = projector.append([CommitDraft("system", [record], actor="user")], record.restored_at)
            finally:
                projector.close()
                journal.close()
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


def fill(
    database: Database,
    chain: Sequence[Archived],
    home: Path,
    *,
    until: int | None = None,
    progress: Progress | None = None,
    keeps: bool = False,
) -> Head:
    """Put the events and vectors of a series of backups into a database, in the transaction that is open, and the settings into a folder.

    What is read is compared with its SHA-256; the events are not verified.

    Parameters
    ----------
    until : int, optional
        Only whole commits up to this event.
    keeps : bool
        Leave the vectors and settings that are there.

    Returns
    -------
    Head
        The last event.
    """
    last = chain[-1].manifest
    filling = _Filling(database, home, last.head.seq if until is None else until, keeps=keeps)
    total = sum(file.size_bytes for one in chain for file in one.manifest.files)
    done = 0
    for one in chain:
        models = {f"vectors/{file_name(kept.model)}.f32": kept for kept in one.manifest.vectors}
        with reading(one.path) as archive:
            if archive.read_manifest() != one.data:
                raise manifest.damaged(one.path, "it changed while it was read")
            archive.expect(one.manifest.files)
            for file in one.manifest.files:
                if file.name == EVENTS:
                    archive.copy(file, filling.take_events)
                elif file.name == _SETTINGS and file.size_bytes <= _MAX_SETTINGS_BYTES:
                    settings: list[bytes] = []
                    archive.copy(file, settings.append)
                    if not (keeps and (home / _SETTINGS).exists()):
                        write_private(home / _SETTINGS, b"".join(settings))
                elif file.name in models:
                    kept = models[file.name]
                    archive.copy(file, filling.vectors_of(kept.model, kept.dimension, file, one.path))
                else:
                    raise manifest.damaged(one.path, f"it contains {file.name}, which is no part of a backup")
                done += file.size_bytes
                if progress:
                    progress(done, total)
            archive.end()
    filling.end(chain[-1].path)
    if filling.seq == 0:
        raise InvalidInputError("must not lie before the end of the backup's first commit", field="until", value=until)
    return Head(filling.seq, filling.signature)


class _Filling:
    """Takes in the files of backups, block by block."""

    def __init__(self, database: Database, home: Path, until: int, *, keeps: bool) -> None:
        self._database = database
        self._home = home
        self._put_vector = "fill_vector" if keeps else "put_vector"
        self._until = until
        self._rest = b""
        self._run: list[Line] = []
        self._is_over = False
        self.seq = 0
        self.signature = ""

    def take_events(self, block: bytes) -> None:
        """Take in a block of lines."""
        *lines, self._rest = (self._rest + block).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            raise BackupError("the backup is damaged: a line is too long; use another one", path=self._home)
        for data in lines:
            try:
                line = parsed(data)
            except LineError as error:
                raise BackupError(f"the backup is damaged: {error}; use another one", path=self._home) from None
            self._is_over = self._is_over or line.seq > self._until
            if self._is_over:
                return
            self._run.append(line)
            if b'"last":true' in line.head:
                self._put()

    def _put(self) -> None:
        tenant = self._database.tenant
        with self._database.writing(0.0) as tx:
            tx.many(
                "add_event",
                (
                    (tenant, line.seq, line.type, line.head, line.payload, line.salt, line.signature)
                    for line in self._run
                ),
            )
        self.seq, self.signature = self._run[-1].seq, self._run[-1].signature.hex()
        self._run = []

    def vectors_of(self, model: str, dimension: int, file: BackupFile, path: Path) -> Callable[[bytes], None]:
        """Return what takes in the blocks of a model's vectors."""
        row_bytes = 4 * dimension
        if file.offset % row_bytes or file.size_bytes % row_bytes:
            raise manifest.damaged(path, f"{file.name} does not hold whole rows")
        return _Rows(self._database, self._put_vector, model, row_bytes, file.offset // row_bytes).take

    def end(self, path: Path) -> None:
        """Check that nothing is left."""
        if (self._rest or self._run) and not self._is_over:
            raise manifest.damaged(path, "its events end in the middle of a commit")


class _Rows:
    def __init__(self, database: Database, put: str, model: str, row_bytes: int, first: int) -> None:
        self._database = database
        self._put = put
        self._model = model
        self._row_bytes = row_bytes
        self._row = first
        self._rest = b""

    def take(self, block: bytes) -> None:
        """Take in a block of rows; those that are all zeros are missing."""
        data = self._rest + block
        whole = len(data) // self._row_bytes * self._row_bytes
        self._rest = data[whole:]
        with self._database.writing(0.0) as tx:
            tx.many(self._put, self._values(data[:whole]))

    def _values(self, data: bytes) -> Iterator[tuple[int, str, int, bytes]]:
        for start in range(0, len(data), self._row_bytes):
            value = data[start : start + self._row_bytes]
            if np.frombuffer(value, dtype="<u4").any():
                yield self._database.tenant, self._model, self._row, value
            self._row += 1


def chain_of(paths: Sequence[Path], seal_for: Callable[[Path], SealFor]) -> list[Archived]:
    """Return a full backup and the incremental ones that continue it, in order, from archives in any order.

    Of one archive that continues others, these are looked for beside it, by the names that they had.

    Raises
    ------
    BackupError
        One is missing or damaged, or they do not belong together.
    """
    found = [_archived(path, seal_for(path)) for path in paths]
    by_id = {one.manifest.backup_id: one for one in found}
    bases = {one.manifest.base.backup_id for one in found if one.manifest.base}
    ends = [one for one in by_id.values() if one.manifest.backup_id not in bases]
    if len(ends) != 1:
        raise BackupError(
            "is not continued by the other backups that were given: name those of one series", path=paths[0]
        )
    chain = [ends[0]]
    while (base := chain[0].manifest.base) is not None:
        before = by_id.get(base.backup_id)
        if before is None:
            before = _beside(chain[0], base.file, seal_for)
        if before is None or before.manifest.backup_id != base.backup_id:
            raise BackupError(
                f"continues the backup {base.file} (id {base.backup_id}, up to event {base.seq}), which was not given and is not "
                "beside it: name it, too",
                path=chain[0].path,
            )
        head = before.manifest.head
        if before.manifest.store_id != chain[0].manifest.store_id or (head.seq, head.signature) != (
            base.seq,
            base.signature,
        ):
            raise BackupError(f"does not continue {before.path.name}: it names another end of it", path=chain[0].path)
        if any(before is one for one in chain):
            raise BackupError("continues itself", path=before.path)
        chain.insert(0, before)
    return chain


def _archived(path: Path, seal_for: SealFor) -> Archived:
    with reading(path) as archive:
        data = archive.read_manifest()
    return Archived(path, manifest.unsealed(data, path, seal_for), data)


def _beside(one: Archived, name: str, seal_for: Callable[[Path], SealFor]) -> Archived | None:
    """Return the archive of a name in the same directory; None if there is none."""
    path = one.path.with_name(name) if name == Path(name).name and name not in (".", "..") else one.path
    return _archived(path, seal_for(path)) if path != one.path and path.is_file() else None


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


def _events_after(heads: HeadFile, head: Head) -> int:
    """Return how many events the original is known to have recorded after the restored ones."""
    try:
        known = heads.read()
    except (JournalError, StorageError):
        return 0
    return max(0, known.seq - head.seq) if known else 0


def _publish(folder: Path, home: Path) -> None:
    """Give the finished store its place."""
    try:
        folder.rename(home)  # replaces an empty directory, nothing else
        sync_folder(home.parent)
    except OSError as error:
        raise BackupError(f"cannot be used: {error.strerror}; name another directory with --home", path=home) from None
