"""Restores a store from a backup into a new place, where it appears only when all of it is verified."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import numpy as np

from memgraph.config import AgentMemoryConfig, load_config
from memgraph.disk.files import make_private_folder, sync_folder, write_private
from memgraph.disk.folders import TemporaryFolder, remove_abandoned
from memgraph.errors import BackupError, InvalidInputError, JournalError, KeyMissingError, StorageError
from memgraph.fold.fold import SCHEMA_VERSION
from memgraph.journal.envelope import MAX_LINE_BYTES, CommitDraft, Line, LineError, parsed
from memgraph.journal.head_file import Head, HeadFile
from memgraph.journal.key_providers import configured_keys
from memgraph.journal.opening import FILE, add_store
from memgraph.journal.sql import Database, SQLite
from memgraph.journal.vectors import NamedRows, file_name
from memgraph.model.base import Callback, checked
from memgraph.model.events.payload import Whole
from memgraph.model.events.store import StoreRestored
from memgraph.model.results.maintenance import RestoreResult
from memgraph.ports import Clock, KeyProvider, Progress
from memgraph.store.backups import EVENTS, BackupFile, BackupManifest, damaged, reading, seals_of, unsealed
from memgraph.store.opening import open_projector, open_store_journal, release, times_of

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
    started, home = time.perf_counter(), settings.home
    provider = keys or configured_keys(settings)
    _refuse_taken(home)
    chain = chain_of([path, *bases], provider, settings.keys_home)
    last = chain[-1].manifest
    make_private_folder(home.parent)
    with ExitStack() as stack:
        try:
            remove_abandoned(home.parent, prefix := f".{home.name}.restoring-")
            folder = TemporaryFolder(home.parent, prefix)
        except OSError as error:
            raise StorageError(f"cannot be written: {error.strerror}; choose another place", path=home.parent) from None
        stack.callback(folder.remove)
        original = HeadFile(settings.keys_home, last.store_id)
        copy_id = str(uuid4()) if original.path.exists() else None
        with closing(SQLite(folder.path / FILE)) as database, database.writing(settings.lock_timeout_s):
            add_store(database, last.store_id, copy_id)
            head = fill(database, chain, folder.path, until=until, progress=progress)
        restored = load_config({**config, "home": folder.path})  # with the settings that were restored
        later = _events_after(original, head)
        heads = HeadFile(restored.keys_home, last.store_id, copy_id)

        def withdraw() -> None:
            if folder.path.exists():  # else the store has its place, and needs it, even if Ctrl-C comes then
                heads.path.unlink(missing_ok=True)

        stack.callback(withdraw)
        heads.make(head)
        result = _completed(restored, chain, head, copy_id, provider, times_of(clock), progress)
        if not dry_run:
            _publish(folder.path, home)
    taken = round(time.perf_counter() - started, 3)
    shown = home.resolve() if ".." in home.parts else home
    updates = {"home": str(shown), "later_events": later, "dry_run": dry_run, "seconds": taken}
    return result.model_copy(update=updates | ({"recorded_as": None, "copy_id": None} if dry_run else {}))


def _completed(
    config: AgentMemoryConfig,
    chain: Sequence[Archived],
    head: Head,
    copy_id: str | None,
    keys: KeyProvider,
    now: Callable[[], str],
    progress: Progress | None,
) -> RestoreResult:
    """Verify the restored journal, make what is made of it, and record the restoration."""
    last = chain[-1]
    try:
        with (
            closing(open_store_journal(config, keys, now, with_expired_keys=True)) as journal,
            closing(open_projector(config.engine, journal, config.home)) as projector,
        ):
            if journal.tail.signature != head.signature:
                raise damaged(last.path, "its journal does not end where its manifest says")
            projector.rebuild(progress)
            with projector.reading():
                digest = f"{projector.projection.digest:064x}"
            is_whole = head.seq == last.manifest.head.seq
            if is_whole and last.manifest.schema_version == SCHEMA_VERSION and digest != last.manifest.digest:
                raise damaged(last.path, "the state's digest is not the one that was recorded")
            damaged_vectors = sum(1 for _ in NamedRows.of_lines(journal.lines()).damaged(journal.vectors))
            needed = journal.used.needed_after(journal.base.seq)
            expired = needed.expired(config.key_verification_days, now())
            record = StoreRestored(
                backup_id=last.manifest.backup_id,
                made_at=last.manifest.made_at,
                seq=head.seq,
                signature=head.signature,
                backup_seq=last.manifest.head.seq,
                copy_id=copy_id,
                restored_at=max(now(), journal.tail.timestamp),
                restored_by=f"memgraph {release()}",
            )
            with projector.writing():
                events = projector.append([CommitDraft("system", [record], actor="user")], record.restored_at)
    except KeyMissingError:
        raise
    except JournalError as error:
        raise damaged(last.path, f"its events do not verify ({error})") from None
    return RestoreResult(
        home=str(config.home),
        store_id=journal.store_id,
        backup_ids=[one.manifest.backup_id for one in chain],
        made_at=last.manifest.made_at,
        last_seq=head.seq,
        backup_seq=last.manifest.head.seq,
        digest=digest,
        copy_id=copy_id,
        damaged_vectors=damaged_vectors,
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
    """Put the events, vectors and settings of backups, compared with their SHA-256, into a database and folder; return the last event.

    Only whole commits up to `until` are put, not verified; with `keeps` the vectors and settings that are there stay.
    """
    last = chain[-1].manifest
    filling = _Filling(database, home, last.head.seq if until is None else until, keeps=keeps)
    total = sum(file.size_bytes for one in chain for file in one.manifest.files)
    done = 0
    for one in chain:
        models = {f"vectors/{file_name(kept.model)}.f32": kept for kept in one.manifest.vectors}
        with reading(one.path) as archive:
            if archive.read_manifest() != one.data:
                raise damaged(one.path, "it changed while it was read")
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
                    raise damaged(one.path, f"it contains {file.name}, which is no part of a backup")
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
            if line.seq <= (self._run[-1].seq if self._run else self.seq):
                problem = f"event {line.seq} does not follow the one before it"
                raise BackupError(f"the backup is damaged: {problem}; use another one", path=self._home)
            self._run.append(line)
            if b'"last":true' in line.head:
                self._put()

    def _put(self) -> None:
        tenant = self._database.tenant
        rows = [(tenant, one.seq, one.type, one.head, one.payload, one.salt, one.signature) for one in self._run]
        with self._database.writing(0.0) as tx:
            tx.many("add_event", rows)
        self.seq, self.signature = self._run[-1].seq, self._run[-1].signature.hex()
        self._run = []

    def vectors_of(self, model: str, dimension: int, file: BackupFile, path: Path) -> Callable[[bytes], None]:
        """Return what takes in the blocks of a model's vectors."""
        row_bytes = 4 * dimension
        if file.offset % row_bytes or file.size_bytes % row_bytes:
            raise damaged(path, f"{file.name} does not hold whole rows")
        tenant, rest, row = self._database.tenant, b"", file.offset // row_bytes

        def take(block: bytes) -> None:
            nonlocal rest, row
            data = rest + block
            whole = len(data) // row_bytes * row_bytes
            values, rest = [data[start : start + row_bytes] for start in range(0, whole, row_bytes)], data[whole:]
            numbered = [one for one in enumerate(values, row) if np.frombuffer(one[1], dtype="<u4").any()]
            with self._database.writing(0.0) as tx:  # rows of zeros alone are missing
                tx.many(self._put_vector, ((tenant, model, *one) for one in numbered))
            row += len(values)

        return take

    def end(self, path: Path) -> None:
        """Check that nothing is left."""
        if (self._rest or self._run) and not self._is_over:
            raise damaged(path, "its events end in the middle of a commit")


def chain_of(paths: Sequence[str | Path], keys: KeyProvider, keys_home: Path) -> list[Archived]:
    """Return a full backup and the incremental ones that continue it, in order, from archives in any order, or found beside one."""
    for path in paths:
        if not isinstance(path, str | Path) or not Path(path).name:
            raise InvalidInputError("must be the path of a backup", field="file", value=path)

    def archived(path: Path) -> Archived:
        with reading(path) as archive:
            data = archive.read_manifest()
        return Archived(path, unsealed(data, path, seals_of(keys, keys_home, path)), data)

    found = [archived(Path(path).absolute()) for path in paths]
    by_id = {one.manifest.backup_id: one for one in found}
    bases = {one.manifest.base.backup_id for one in found if one.manifest.base}
    ends = [one for one in by_id.values() if one.manifest.backup_id not in bases]
    if len(ends) != 1:
        raise BackupError(
            "is not continued by the other backups that were given: name those of one series", path=found[0].path
        )
    chain = [ends[0]]
    while (base := chain[0].manifest.base) is not None:
        path, before = chain[0].path, by_id.get(base.backup_id)
        if before is None and base.file == Path(base.file).name and base.file not in (".", "..", path.name):
            beside = path.with_name(base.file)
            before = archived(beside) if beside.is_file() else None
        if before is None or before.manifest.backup_id != base.backup_id:
            raise BackupError(
                f"continues the backup {base.file} (id {base.backup_id}, up to event {base.seq}), which was not given and is not "
                "beside it: name it, too",
                path=path,
            )
        store_id, head = before.manifest.store_id, before.manifest.head
        if (store_id, head.seq, head.signature) != (chain[0].manifest.store_id, base.seq, base.signature):
            raise BackupError(f"does not continue {before.path.name}: it names another end of it", path=path)
        if any(before is one for one in chain):
            raise BackupError("continues itself", path=before.path)
        chain.insert(0, before)
    return chain


def _refuse_taken(home: Path) -> None:
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
    try:
        folder.rename(home)  # replaces an empty directory, nothing else
        sync_folder(home.parent)
    except OSError as error:
        raise BackupError(f"cannot be used: {error.strerror}; name another directory with --home", path=home) from None
