"""The journal of one store: opening, verifying, healing, appending, replaying."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from memgraph.errors import (
    DamagedJournalError,
    JournalError,
    KeyMissingError,
    NotAStoreError,
    StorageError,
    TruncatedJournalError,
)
from memgraph.journal.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from memgraph.journal.envelope import FIRST_SIGNATURE, Chain, CommitDraft, Event, LineError, seal, unseal
from memgraph.journal.files import make_private_folder, write_private
from memgraph.journal.heads import Head, HeadFile
from memgraph.journal.lock import ProcessLock
from memgraph.journal.segments import Line, Position, Segments
from memgraph.journal.vectors import VectorFile
from memgraph.model.events import StoreCreated
from memgraph.ports import KeyProvider, Progress, SigningKey

logger = logging.getLogger("memgraph.journal")

FORMAT = 1
_BEGUN = {"lock", "lock.pid"}
"""What a journal folder may hold that was never finished: the lock of who is making it."""
_CHECKPOINT_EVENTS = 10_000
"""So many events past the last checkpoint, a new one is written."""


@dataclass(frozen=True, slots=True)
class Offset:
    """A point of the journal between two commits: the chain there and the place in the files."""

    chain: Chain
    position: Position


@dataclass(frozen=True, slots=True)
class Committed:
    """Events of one whole commit, and the point after them."""

    events: tuple[Event, ...]
    after: Offset
    data: bytes = field(default=b"", repr=False)


class Journal:
    """Append-only, signed, synced. Use `open_journal`.

    Readers need no lock: they ignore a trailing run of lines without its end. Writers hold `locked`, which first takes
    in what other processes wrote and heals a torn final commit.
    """

    def __init__(
        self,
        home: Path,
        store_id: str,
        key: SigningKey | None,
        *,
        keys_home: Path,
        lock_timeout_s: float,
    ) -> None:
        folder = home / "journal"
        self.store_id = store_id
        self.folder = folder
        self.notices: list[str] = []
        self._key = key
        self._segments = Segments(folder)
        self._heads = HeadFile(keys_home, store_id)
        self._lock = ProcessLock(folder / "lock", "the journal's writer lock")
        self._lock_timeout_s = lock_timeout_s
        self._checkpoint_path = folder / "verified.json"
        self._checkpoint_seq = 0
        self._hash = hashlib.sha256()
        self.tail = self.start
        self._holds_lock = False
        self._is_adopted = False

    @property
    def start(self) -> Offset:
        """The point before the first event."""
        return Offset(Chain(self.store_id, 0, FIRST_SIGNATURE, ""), self._segments.first())

    @property
    def is_read_only(self) -> bool:
        """Whether the key is missing, so that nothing can be written."""
        return self._key is None

    def vectors(self, model: str, dimension: int) -> VectorFile:
        """Return the vector file of a model."""
        return VectorFile(self.folder / "vectors", model, dimension)

    def hmac_of(self, text: str) -> str:
        """HMAC-SHA256 of a text under the store's key, in hexadecimal: recognisable, not readable."""
        secret = self._key.secret if self._key else b""
        return hmac.digest(secret, b"memgraph text\x1f" + text.encode("utf-8", "surrogatepass"), "sha256").hex()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the writer lock; on entry the tail is current and clean.

        Raises
        ------
        BusyError
            Another process holds it for too long.
        JournalError
            The journal cannot be trusted.
        """
        if self._key is None:
            raise KeyMissingError("the signing key of this store is missing: it can be read, not written")
        self._lock.acquire(self._lock_timeout_s)
        self._holds_lock = True
        try:
            self.refresh()
            yield
        finally:
            self._holds_lock = False
            self._lock.release()

    def try_lock(self) -> bool:
        """Tell whether the writer lock is free now (it is given back at once)."""
        if not self._lock.try_acquire():
            return False
        self._lock.release()
        return True

    def append(self, drafts: Sequence[CommitDraft], now: str) -> list[Committed]:
        """Append commits in one write and sync; the lock must be held.

        Returns
        -------
        list of Committed
            One for each draft that holds events.
        """
        if not self._holds_lock or self._key is None:
            raise JournalError("append needs the writer lock: call it inside `with journal.locked()`")
        drafts = [draft for draft in drafts if draft.payloads]
        sealed = seal(drafts, self.tail.chain, self._key, max(now, self.tail.chain.timestamp))
        position = self._segments.append(self.tail.position, sealed.data, self.tail.chain.seq + 1)
        self._hash.update(sealed.data)
        self.tail = Offset(sealed.chain, position)
        self._heads.write(Head(sealed.chain.seq, sealed.chain.signature))
        self._maybe_checkpoint()
        commits, start = [], 0
        for draft in drafts:
            events = tuple(sealed.events[start : start + len(draft.payloads)])
            commits.append(Committed(events, self.tail))  # they become visible together, so they share the point after
            start += len(events)
        return commits

    def refresh(self) -> None:
        """Verify and take in what was appended since; with the lock held, cut a torn final commit away.

        Raises
        ------
        DamagedJournalError, TruncatedJournalError
            The journal is not what was signed.
        """
        head = self._heads.read()  # before the lines: a writer may append and move it meanwhile
        torn: Line | None = None
        for found in self._walk(self.tail):
            if isinstance(found, Line):
                torn = found
                break
            self._take(found, head)
        chain = self.tail.chain
        if head is not None and chain.seq < head.seq:
            raise TruncatedJournalError(path=self.folder, seq=chain.seq, head_seq=head.seq, head_path=self._heads.path)
        if head is not None and chain.seq == head.seq and chain.signature != head.signature:
            raise self._damaged("the head file names another event of this number", self.tail.position, chain.seq)
        if head is None and chain.seq and not self._is_adopted:
            self._is_adopted = True
            self._notice(f"adopted a journal of {chain.seq} events that had no head file: a truncation would go unnoticed")
        if not self._holds_lock:
            return
        if torn is not None:
            removed = self._segments.cut(self.tail.position)
            self._notice(f"dropped a torn final commit after event {chain.seq} ({removed} bytes)")
        if head is None or head.seq < chain.seq:
            self._heads.write(Head(chain.seq, chain.signature))

    def has_grown(self) -> bool:
        """Tell, at the cost of a stat, whether there are bytes past the tail."""
        return self._segments.reaches_past(self.tail.position)

    def replay(self, after: Offset | None = None) -> Iterator[Committed]:
        """Iterate over whole commits after a point (default: from the beginning), each verified.

        Raises
        ------
        DamagedJournalError
            A line is not what was signed, or does not follow.
        """
        for found in self._walk(after or self.start):
            if isinstance(found, Line):
                return
            if found.after.chain.seq > self.tail.chain.seq:
                return
            yield found

    def resume_point(self, seq: int, signature: str, segment: str, offset: int, timestamp: str) -> Offset:
        """Return the point that a projection has kept. Replaying from a wrong one raises."""
        return Offset(Chain(self.store_id, seq, signature, timestamp), Position(segment, offset))

    def verify(self, progress: Progress | None = None) -> int:
        """Verify every event from the first, keep a checkpoint, and return how many there are."""
        count = 0
        for commit in self.replay():
            count += len(commit.events)
            if progress:
                progress(count, self.tail.chain.seq)
        if count != self.tail.chain.seq:
            raise TruncatedJournalError(path=self.folder, seq=count, head_seq=self.tail.chain.seq, head_path=self._heads.path)
        self.checkpoint()
        return count

    def checkpoint(self) -> None:
        """Remember how far the journal is verified."""
        if self._key is not None and self.tail.chain.seq > self._checkpoint_seq:
            state = Checkpoint(self.tail.chain, self.tail.position, self._hash.hexdigest())
            write_checkpoint(self._checkpoint_path, state, self._key)
            self._checkpoint_seq = self.tail.chain.seq

    def load(self) -> None:
        """Take the journal in: by its checkpoint where that fits, else event by event."""
        checkpoint = read_checkpoint(self._checkpoint_path, self._key, self.store_id) if self._key else None
        if checkpoint is not None:
            digest = hashlib.sha256()
            for block in self._segments.blocks(self.start.position, checkpoint.position):
                digest.update(block)
            if digest.hexdigest() == checkpoint.sha256:
                self._hash = digest
                self.tail = Offset(checkpoint.chain, checkpoint.position)
                self._checkpoint_seq = checkpoint.chain.seq
        self.refresh()
        if checkpoint is not None and self._checkpoint_seq == 0:
            # every event verifies, yet the bytes are not those once verified: an older or another copy of the journal
            if self.tail.chain.seq < checkpoint.chain.seq:
                raise TruncatedJournalError(path=self.folder, seq=self.tail.chain.seq, head_seq=checkpoint.chain.seq, head_path=self._heads.path)
            self._notice("the checkpoint did not fit the journal; all events were verified anew")

    def _take(self, commit: Committed, head: Head | None) -> None:
        for event in commit.events:
            if head is not None and event.seq == head.seq and event.signature != head.signature:
                raise self._damaged("the head file names another event of this number", self.tail.position, event.seq)
        self._hash.update(commit.data)
        self.tail = commit.after
        self._maybe_checkpoint()

    def _walk(self, offset: Offset) -> Iterator[Committed | Line]:
        """Yield whole commits, then the first line of a trailing run without its end, if there is one."""
        chain, first = offset.chain, None
        run: list[Event] = []
        data: list[bytes] = []
        for line in self._segments.lines(offset.position):
            first = first or line
            if not line.whole:
                yield first
                return
            try:
                event, chain = unseal(line.data, chain, self._key)
            except LineError as error:
                raise self._damaged(str(error), line.start, chain.seq + 1) from None
            if run and event.commit_id != run[0].commit_id:
                raise self._damaged("a commit has no end", line.start, event.seq)
            run.append(event)
            data.append(line.data + b"\n")
            if event.last:
                yield Committed(tuple(run), Offset(chain, line.end), b"".join(data))
                run, data, first = [], [], None
        if first is not None:
            yield first

    def _maybe_checkpoint(self) -> None:
        if self.tail.chain.seq - self._checkpoint_seq >= _CHECKPOINT_EVENTS:
            self.checkpoint()

    def _damaged(self, reason: str, position: Position, seq: int | None) -> DamagedJournalError:
        return DamagedJournalError(reason, path=self._segments.path(position), offset=position.offset, seq=seq)

    def _notice(self, text: str) -> None:
        logger.warning("store %s: %s", self.store_id, text)
        self.notices.append(text)


def open_journal(
    home: Path,
    keys: KeyProvider,
    *,
    keys_home: Path,
    now: Callable[[], str],
    created_by: str,
    lock_timeout_s: float = 10.0,
    allow_unverified: bool = False,
) -> Journal:
    """Open a store's journal, making it where the directory is new or empty.

    Parameters
    ----------
    now : callable
        Returns the time; asked only when a journal is made.
    allow_unverified : bool
        Serve read-only when the key is missing (``dev``); otherwise refuse.

    Raises
    ------
    NotAStoreError
        The directory holds something else.
    KeyMissingError
        The journal holds events and their key is not to be had.
    JournalError
        The journal cannot be trusted.
    """
    folder = home / "journal"
    manifest = folder / "manifest.json"
    if not manifest.exists():
        _refuse_foreign(home)
        make_private_folder(folder)
        lock = ProcessLock(folder / "lock", "the journal's writer lock")
        lock.acquire(lock_timeout_s)
        try:
            if not manifest.exists():
                body = {"format": FORMAT, "store_id": str(uuid4()), "created_at": now()}
                write_private(manifest, json.dumps(body).encode())
        finally:
            lock.release()
    store_id = _read_manifest(manifest)
    is_empty = not any(path.stat().st_size for path in folder.glob("*.jsonl"))
    key = keys.key(store_id)
    if key is None and is_empty:
        key = keys.create(store_id)
    if key is None and not allow_unverified:
        raise KeyMissingError(
            f"the signing key of the store at {home} (id {store_id}) is missing: put its key file back as "
            f"{keys_home / 'keys' / store_id}.json, or set MEMGRAPH_KEY"
        )
    journal = Journal(home, store_id, key, keys_home=keys_home, lock_timeout_s=lock_timeout_s)
    journal.load()
    if journal.tail.chain.seq == 0 and key is not None:
        with journal.locked():
            if journal.tail.chain.seq == 0:
                journal.append([CommitDraft("system", [StoreCreated(created_by=created_by)], actor="system")], now())
    return journal


def _read_manifest(path: Path) -> str:
    try:
        stored = json.loads(path.read_bytes())
        version, store_id = stored["format"], stored["store_id"]
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", path=path) from None
    except (ValueError, KeyError, TypeError):
        raise JournalError(f"{path} is not a journal's manifest; restore it from a backup") from None
    if version != FORMAT:
        raise JournalError(f"{path}: journal format {version!r} is unknown to this release; install a newer memgraph")
    return str(store_id)


def _refuse_foreign(home: Path) -> None:
    with suppress(FileNotFoundError):
        try:
            entries = {entry.name for entry in home.iterdir()}
        except NotADirectoryError:
            raise StorageError("is a file, not a directory; name another place for the store", path=home) from None
        journal = home / "journal"
        started = {entry.name for entry in journal.iterdir()} if journal.is_dir() else set()
        if entries - {"config.toml", "journal"} or started - _BEGUN:
            raise NotAStoreError(home)
