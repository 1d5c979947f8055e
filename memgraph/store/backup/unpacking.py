"""Unpacks a backup, and those that it continues, into a folder: the files of a store, as they were at a commit boundary."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from memgraph.disk.files import clear, free_bytes, make_private_folder, sync_folder, write_all
from memgraph.disk.seal import Seal
from memgraph.errors import BackupError, StorageError
from memgraph.journal.baseline.header import FOLDER, HEADER, unverified_place
from memgraph.journal.segments import RESERVE_BYTES, Position, Segments
from memgraph.ports import Progress
from memgraph.store.backup import manifest
from memgraph.store.backup.archive import ArchiveReader, reading
from memgraph.store.backup.manifest import BackupFile, BackupManifest

SealFor = Callable[[str, str], Seal]


@dataclass(frozen=True, slots=True)
class Archived:
    """An archive and its verified manifest."""

    path: Path
    manifest: BackupManifest
    data: bytes
    """The manifest as it stands in the archive."""


@dataclass(frozen=True, slots=True)
class Point:
    """The end of a journal's part: the last event and its signature, and the position after it."""

    seq: int
    signature: str
    position: Position


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
    if unused := [one for one in by_id.values() if one not in chain]:
        raise BackupError(
            f"is no part of the series that ends with {ends[0].path.name}: leave it out", path=unused[0].path
        )
    return chain


def unpack(chain: Sequence[Archived], folder: Path, progress: Progress | None = None) -> None:
    """Put the files of a series of backups into an empty folder, each with its SHA-256 verified, and sync them.

    Raises
    ------
    BackupError
        An archive is damaged.
    StorageError
        The files cannot be written.
    """
    total = sum(file.size_bytes for one in chain for file in one.manifest.files)
    if (free := free_bytes(folder / "journal")) < total + RESERVE_BYTES:
        needed = f"needs {(total + RESERVE_BYTES) / 1e6:,.0f} MB, and {free / 1e6:,.0f} MB are free"
        raise StorageError(f"{needed}; free some disk space and try again", path=folder.parent)
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        if progress:
            progress(done, total)

    for one in chain:
        with reading(one.path) as archive:
            if archive.read_manifest() != one.data:
                raise manifest.damaged(one.path, "it changed while it was read")
            archive.expect(one.manifest.files)
            for file in one.manifest.files:
                _put(archive, file, folder, one.path, advance)
            archive.end()
    _sync(folder)


def cut_after(folder: Path, until: int) -> Point:
    """Cut the journal in a folder after the last whole commit that ends at or before an event. Nothing is verified.

    Raises
    ------
    StorageError
        A segment cannot be changed.
    """
    segments = Segments(folder, 0)
    end = Point(0, "0" * 64, segments.first())
    for line in segments.lines(segments.first()):
        try:
            envelope = orjson.loads(line.data)
            head, signature = envelope["head"], envelope["signature"]
            seq, last = int(head["seq"]), head["last"]
        except (ValueError, KeyError, TypeError):
            break  # verification reports it
        if seq > until:
            break
        if last:
            end = Point(seq, str(signature), line.end)
    segments.cut(end.position)
    place = unverified_place(folder)
    if place is not None and place[0] > end.seq:  # the events that it stands for are there
        (folder / HEADER).unlink()
        clear(folder / FOLDER)
    return end


def _archived(path: Path, seal_for: SealFor) -> Archived:
    with reading(path) as archive:
        data = archive.read_manifest()
    return Archived(path, manifest.unsealed(data, path, seal_for), data)


def _beside(one: Archived, name: str, seal_for: Callable[[Path], SealFor]) -> Archived | None:
    """Return the archive of a name in the same directory; None if there is none."""
    path = one.path.with_name(name) if name == Path(name).name and name not in (".", "..") else one.path
    return _archived(path, seal_for(path)) if path != one.path and path.is_file() else None


def _put(archive: ArchiveReader, file: BackupFile, folder: Path, path: Path, advance: Callable[[int], None]) -> None:
    """Write one file of an archive to its place, after what its base has put there."""
    target = folder / file.name
    make_private_folder(target.parent)
    size = target.stat().st_size if file.offset and target.exists() else 0
    if size != file.offset and not (
        target.suffix == ".f32" and size < file.offset
    ):  # a damaged vector file may end early
        raise manifest.damaged(path, f"{file.name} continues at byte {file.offset}, its base ends at {size}")
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.ftruncate(descriptor, file.offset)
            os.lseek(descriptor, file.offset, os.SEEK_SET)

            def write(block: bytes) -> None:
                write_all(descriptor, block)
                advance(len(block))

            archive.copy(file, write)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StorageError(
            f"cannot be written: {error.strerror}; free some disk space and try again", path=target
        ) from None


def _sync(folder: Path) -> None:
    for parent in (path for path in folder.rglob("*") if path.is_dir()):
        sync_folder(parent)
    sync_folder(folder)
