"""Backups of an open store: made, and listed.

A backup holds the journal's events as lines of JSON, the vectors as rows of float32, and the settings; not rows, graph or index, which are made
of these. So it does not depend on the database that the store is in.
"""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import orjson

from memgraph.disk.files import read_own, storage_errors
from memgraph.disk.seal import Seal
from memgraph.errors import BackupError, InvalidInputError, KeyMissingError, StorageError
from memgraph.fold.fold import SCHEMA_VERSION
from memgraph.journal.envelope import ENVELOPE_VERSION, Chain, CommitDraft
from memgraph.journal.vectors import NamedVectors
from memgraph.logs import logger_of
from memgraph.model.base import Callback, checked
from memgraph.model.events.store import BackupMade, KeptVectors
from memgraph.model.results.maintenance import BackupResult
from memgraph.ports import Progress
from memgraph.store.backup.archive import (
    FORMAT,
    MANIFEST,
    PURPOSE,
    ArchiveWriter,
    BackupBase,
    BackupFile,
    BackupHead,
    BackupManifest,
    check_name,
    reading,
    sealed,
    stored_name,
    unsealed,
)
from memgraph.store.opening import release
from memgraph.store.query import StorePart

logger = logger_of(__name__)

EVENTS = "events.jsonl"
_MOST_TRIES = 3


@dataclass(frozen=True, slots=True)
class Boundary:
    """The journal's end in a backup, what the events up to there state about vectors, and the digest of the state."""

    chain: Chain
    named: NamedVectors
    digest: str


@dataclass(frozen=True, slots=True)
class Base:
    """The backup that an incremental one continues."""

    backup_id: str
    path: str
    chain: Chain
    vectors: dict[str, int]


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a backup: what the manifest says of it, and its bytes."""

    file: BackupFile
    blocks: Callable[[], Iterator[bytes]]


@dataclass(eq=False)
class Backups(StorePart):
    """Makes and lists the backups of a store."""

    _home: Path

    def backup(
        self,
        path: str | Path,
        *,
        incremental: bool = False,
        base: str | Path | None = None,
        replace: bool = False,
        progress: Progress | None = None,
    ) -> BackupResult:
        """Write a backup of all events, vectors and settings to one file that only its owner can read.

        Others may write meanwhile: the backup is the state after one commit. Every event is verified before it is copied. It
        never contains keys; without the store's key it can neither be verified nor restored. The backup is recorded as an event.

        Parameters
        ----------
        path : str or Path
            Ends in ``.tar.gz``, or in ``.tar.zst`` with the extra ``zstd``, which is quicker and smaller.
        incremental : bool
            Write only what was recorded since the last backup that the journal records; `memgraph.restore` needs both.
        base : str or Path, optional
            Continue this backup instead.
        replace : bool
            Replace the file if it exists.
        progress : callable, optional
            Called with (done, total) events.

        Raises
        ------
        BackupError
            The file exists or cannot be written, or there is nothing to continue. No file is left.
        JournalError
            An event is not what was signed.
        """
        checked(Callback, progress, "progress")
        target = _absolute(path)
        check_name(target)
        self._check(target, replaces=replace)
        self._reader.settle()
        started = time.perf_counter()
        for _ in range(_MOST_TRIES):
            boundary = self._boundary()
            found = self._base(boundary, None if base is None else _absolute(base)) if incremental or base else None
            try:
                result = self._write(target, boundary, found, replaces=replace, progress=progress)
            except RewrittenError:
                logger.warning("the journal was rewritten during a backup; it begins again")
                continue
            return result.model_copy(update={"seconds": round(time.perf_counter() - started, 3)})
        raise BackupError(
            f"the journal was rewritten {_MOST_TRIES} times during the backup; try again when no purge runs",
            path=target,
        )

    def backups(self) -> list[BackupMade]:
        """Return the records of the backups that were made of this store, the last one last."""
        return [made for _, made in self._recorded()]

    def last_backup_at(self) -> str | None:
        """Return when the last backup was recorded; None: none was made."""
        return max((at for at, _ in self._recorded()), default=None)

    def _recorded(self) -> list[tuple[str, BackupMade]]:
        with self._projector.guard:
            self._journal.refresh()
        found = self._journal.events_of(BackupMade.TYPE)
        return [(event.timestamp, event.payload) for event in found if isinstance(event.payload, BackupMade)]

    def _check(self, target: Path, *, replaces: bool) -> None:
        if not self._journal.has_key:
            raise KeyMissingError(
                "the signing key of this store is missing, so a backup could not be signed: restore the key"
            )
        if target.resolve().is_relative_to(self._home.resolve()):
            raise BackupError(
                "lies in the store itself, and would be lost with it; choose another directory", path=target
            )
        if target.is_dir():
            raise BackupError("is a directory; name a file in it", path=target)
        if target.exists() and not replaces:
            raise BackupError("exists; choose another name, or replace it with --force", path=target)

    def _boundary(self) -> Boundary:
        """Return the journal's end, and the state there."""
        with self._projector.reading():
            return Boundary(self._journal.tail, self._journal.named, f"{self._projector.projection.digest:064x}")

    def _base(self, boundary: Boundary, path: Path | None) -> Base:
        if path is not None:
            return self._base_of(path)
        records = [one for one in self.backups() if one.seq <= boundary.chain.seq]
        if not records:
            raise InvalidInputError("needs an earlier backup of this store; make a full one first", field="incremental")
        last = records[-1]
        if not Path(last.path).exists():
            logger.warning(
                "this backup continues %s, which is not there any more: it is needed to restore both", last.path
            )
        chain = Chain(self._journal.store_id, last.seq, last.signature, last.recorded_until)
        vectors = {one.model: one.rows for one in last.vector_files}
        return self._unchanged(Base(last.backup_id, last.path, chain, vectors))

    def _base_of(self, path: Path) -> Base:
        def seal_for(store_id: str, key_id: str) -> Seal:
            if store_id != self._journal.store_id:
                raise BackupError(f"is a backup of another store, {store_id}", path=path)
            seal = self._journal.seal_of(key_id, PURPOSE)
            if seal is None:
                raise KeyMissingError(f"{path} was made with another key, {key_id!r}, which is missing", key_id=key_id)
            return seal

        with reading(path) as archive:
            found = unsealed(archive.read_manifest(), path, seal_for)
        chain = Chain(found.store_id, found.head.seq, found.head.signature, found.head.timestamp)
        return self._unchanged(Base(found.backup_id, str(path), chain, {one.model: one.rows for one in found.vectors}))

    def _unchanged(self, base: Base) -> Base:
        """Check that the journal up to the base is as it was in it."""
        journal, seq = self._journal, base.chain.seq
        if self._is_rewritten(seq, base.chain.signature):
            raise BackupError(
                f"the journal up to event {seq} is no longer as it was in the backup {base.path}, because events were purged or "
                "signed again since, or that backup is of another copy: make a full backup",
                path=journal.path,
            )
        return base

    def _is_rewritten(self, seq: int, signature: str) -> bool:
        """Return whether the events up to one were signed again, or some of them purged, since that one was the last."""
        purges = (purge.seqs() for at, purge in self._journal.purges() if at > seq)
        return any(one <= seq for seqs in purges for one in seqs) or self._journal.signature_of(seq) != signature

    def _write(
        self, target: Path, boundary: Boundary, base: Base | None, *, replaces: bool, progress: Progress | None
    ) -> BackupResult:
        journal = self._journal
        parts, keys = self._parts(boundary, base, progress)
        made = self._manifest(boundary, base, parts, sorted(keys))
        with ArchiveWriter(target, replaces=replaces) as archive:
            first = sealed(made, journal.seal(PURPOSE), journal.signing_key.key_id)
            archive.add(MANIFEST, len(first), io.BytesIO(first))
            for part in parts:
                source = _Hashing(part)
                archive.add(stored_name(part.file), part.file.size_bytes, source)  # type: ignore[arg-type]
                source.check()
            size = archive.finish()
            seq = self._publish(archive, made, target, size)
        return BackupResult(
            file=str(target),
            backup_id=made.backup_id,
            base_id=base.backup_id if base else None,
            first_seq=made.first_seq,
            last_seq=made.head.seq,
            size_bytes=size,
            digest=made.digest,
            recorded_as=seq,
            seconds=0.0,
        )

    def _parts(self, boundary: Boundary, base: Base | None, progress: Progress | None) -> tuple[list[Part], set[str]]:
        """Verify what is copied; return it, the events first, and the ids of the keys that signed it."""
        journal, after, end = self._journal, base.chain.seq if base else 0, boundary.chain.seq
        reached = base.chain if base else journal.start
        for commit in journal.replay(reached, until=end):
            reached = commit.after
            if progress:
                progress(reached.seq, end)
        if (reached.seq, reached.signature) != (end, boundary.chain.signature):
            raise RewrittenError

        def events() -> Iterator[bytes]:
            return (line.data + b"\n" for line in journal.every_line(after, until=end))

        parts = [_part(EVENTS, 0, events)]
        keys = {str(orjson.loads(line.head)["key_id"]) for line in journal.every_line(after, until=end)}
        for model, rows in sorted(boundary.named.rows.items()):
            dimension = boundary.named.dimension_of(model) or 0
            first = base.vectors.get(model, 0) if base else 0
            if rows > first and dimension:
                vectors = journal.vectors(model, dimension)
                parts.append(
                    _part(
                        f"vectors/{vectors.path.name}",
                        first * vectors.row_bytes,
                        lambda vectors=vectors, first=first, rows=rows: vectors.blocks(first, rows),  # type: ignore[misc]
                    )
                )
        config = self._home / "config.toml"
        if config.exists():
            with storage_errors(config, "cannot be read"):
                data = read_own(config)
            parts.append(_part("config.toml", 0, lambda: iter([data])))
        return parts, keys

    def _manifest(self, boundary: Boundary, base: Base | None, parts: list[Part], key_ids: list[str]) -> BackupManifest:
        chain, continued = boundary.chain, None
        if base is not None:
            continued = BackupBase(
                backup_id=base.backup_id, seq=base.chain.seq, signature=base.chain.signature, file=Path(base.path).name
            )
        return BackupManifest(
            format=FORMAT,
            backup_id=str(uuid4()),
            store_id=self._journal.store_id,
            made_at=self._now(),
            made_by=f"memgraph {release()}",
            first_seq=base.chain.seq + 1 if base else 1,
            head=BackupHead(seq=chain.seq, signature=chain.signature, timestamp=chain.timestamp),
            digest=boundary.digest,
            schema_version=SCHEMA_VERSION,
            envelope_version=ENVELOPE_VERSION,
            key_ids=key_ids,
            journal_sha256=parts[0].file.sha256,
            vectors=[
                KeptVectors(model=model, dimension=dimension, rows=rows)
                for model, rows in sorted(boundary.named.rows.items())
                if rows and (dimension := boundary.named.dimension_of(model) or 0)
            ],
            base=continued,
            files=[part.file for part in parts],
        )

    def _publish(self, archive: ArchiveWriter, made: BackupManifest, target: Path, size: int) -> int | None:
        """Give the archive its name and record it; return the number of the record, or None if the store is read-only."""
        if self._journal.is_read_only:
            archive.publish()
            logger.warning("the store is read-only, so the backup is not recorded in it")
            return None
        with self._projector.writing():
            if self._is_rewritten(made.head.seq, made.head.signature):
                raise RewrittenError
            archive.publish()
            record = BackupMade(
                backup_id=made.backup_id,
                path=str(target),
                seq=made.head.seq,
                signature=made.head.signature,
                recorded_until=made.head.timestamp,
                segment=EVENTS,
                offset=0,
                journal_sha256=made.journal_sha256,
                vector_files=made.vectors,
                size_bytes=size,
                base_id=made.base.backup_id if made.base else None,
                made_by=made.made_by,
            )
            try:
                draft = CommitDraft("system", [record], actor="user")
                return self._projector.append([draft], self._now())[-1].seq
            except StorageError as error:
                logger.warning("the backup is whole, but could not be recorded: %s", error.loggable)
                return None


class RewrittenError(Exception):
    """The journal was rewritten while it was copied."""


class _Hashing:
    """The stream of a part, which hashes what is read from it."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._blocks = part.blocks()
        self._rest = b""
        self._digest = hashlib.sha256()

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        parts, length = [self._rest], len(self._rest)
        while length < size and (block := next(self._blocks, b"")):
            parts.append(block)
            length += len(block)
        data = b"".join(parts)
        data, self._rest = data[:size], data[size:]
        self._digest.update(data)
        if len(data) < size:
            raise RewrittenError
        return data

    def check(self) -> None:
        """Raise `RewrittenError` unless the bytes are those of the part."""
        if self._digest.hexdigest() != self._part.file.sha256:
            raise RewrittenError


def _part(name: str, offset: int, blocks: Callable[[], Iterator[bytes]]) -> Part:
    digest, size = hashlib.sha256(), 0
    for block in blocks():
        digest.update(block)
        size += len(block)
    return Part(BackupFile(name=name, offset=offset, size_bytes=size, sha256=digest.hexdigest()), blocks)


def _absolute(path: str | Path) -> Path:
    """Return a file's path from the root, because it is recorded."""
    if isinstance(path, str | Path) and Path(path).name and "\0" not in str(path):
        with suppress(ValueError, RuntimeError, OSError):
            str(path).encode()
            return Path(path).expanduser().absolute()
    raise InvalidInputError("must be the path of a file", field="file", value=path)
