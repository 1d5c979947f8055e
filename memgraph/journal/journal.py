"""The journal of one store: verification, recovery, appending, replay."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from memgraph.disk.files import read_only_message, refused_writes
from memgraph.disk.lock import ProcessLock
from memgraph.disk.seal import Seal, seal_of, text_hmac
from memgraph.errors import (
    DamagedJournalError,
    JournalError,
    KeyMissingError,
    ReadOnlyError,
    StorageError,
    TruncatedJournalError,
)
from memgraph.journal.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from memgraph.journal.envelope import (
    FIRST_SIGNATURE,
    Chain,
    CommitDraft,
    Event,
    LineError,
    seal,
    unseal_alone,
)
from memgraph.journal.head_file import Head, HeadFile
from memgraph.journal.replay import Committed, Offset, damaged, walk
from memgraph.journal.segments import DEFAULT_LIMITS, JournalLimits, Line, Position, Segments
from memgraph.journal.vectors.vector_file import NamedVectors, VectorFile
from memgraph.logs import logger_of
from memgraph.ports import Progress, SigningKey

logger = logger_of(__name__)

_SEQ = re.compile(rb'"seq":(\d{1,16})')
"""As it appears in a line, which begins with the head."""


class Journal:
    """Append-only, signed, synced. Use `memgraph.journal.opening.open_journal`.

    Readers need no lock: they ignore an incomplete final commit. Writers hold `locked`, which first reads what other
    processes wrote and removes a torn final commit.
    """

    def __init__(
        self,
        home: Path,
        store_id: str,
        key: SigningKey | None,
        *,
        keys_home: Path,
        lock_timeout_s: float,
        limits: JournalLimits = DEFAULT_LIMITS,
    ) -> None:
        folder = home / "journal"
        self.store_id = store_id
        self.folder = folder
        self.notices: list[str] = []
        self._key = key
        self.has_key = key is not None
        self._sealing_secret = key.secret if key else secrets.token_bytes(32)
        self._segments = Segments(folder, limits.segment_bytes)
        self._heads = HeadFile(keys_home, store_id)
        self._lock = ProcessLock(folder / "lock", "the journal's writer lock")
        self.lock_timeout_s = lock_timeout_s
        self._checkpoint_path = folder / "verified.json"
        self._checkpoint_seq = 0
        self._checkpoint_events = limits.checkpoint_events
        self._hash = hashlib.sha256()
        self.tail = self.start
        self.named = NamedVectors()
        self.holds_lock = False
        self._is_adopted = False

    @property
    def start(self) -> Offset:
        """The point before the first event."""
        return Offset(Chain(self.store_id, 0, FIRST_SIGNATURE, ""), self._segments.first())

    @property
    def is_read_only(self) -> bool:
        """Whether the journal cannot be written, because the key is missing or the system refuses it."""
        return self._key is None or self.refused_writes() is not None

    def refused_writes(self) -> str | None:
        """Return a message that names a file or folder of the journal that may not be written, and why; None if there is none."""
        return refused_writes(self.folder, self.folder / "lock", self._segments.path(self.tail.position))

    def vectors(self, model: str, dimension: int) -> VectorFile:
        """Return the vector file of a model."""
        return VectorFile(self.folder / "vectors", model, dimension)

    def hmac_of(self, text: str) -> str:
        """Return the HMAC-SHA256 of a text under the store's key, in hexadecimal."""
        return text_hmac(self._key.secret if self._key else b"", text)

    def seal(self, purpose: str) -> Seal:
        """Return the seal for one purpose, with a key derived from the store's; without that, a random key of this object."""
        return seal_of(self._sealing_secret, purpose, self.store_id)

    @contextmanager
    def locked(self, *, before_waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Hold the writer lock. On entry the journal is read to its end and a torn final commit is removed.

        Parameters
        ----------
        before_waiting : callable
            Called if the lock is taken: the waiting process must release what the holder may need.

        Raises
        ------
        BusyError
            Another process held the lock for too long.
        JournalError
            The journal cannot be trusted.
        KeyMissingError, ReadOnlyError
            The journal can be read but not written.
        """
        if self._key is None:
            raise KeyMissingError("the signing key of this store is missing, so the store is read-only")
        if refused := self.refused_writes():
            raise ReadOnlyError(read_only_message(refused))
        if not self._lock.try_acquire():
            before_waiting()
            self._lock.acquire(self.lock_timeout_s)
        self.holds_lock = True
        try:
            self.refresh()
            yield
        finally:
            self.holds_lock = False
            self._lock.release()

    def append(self, drafts: Sequence[CommitDraft], now: str) -> list[Committed]:
        """Append commits in one write and sync; the lock must be held.

        Returns
        -------
        list of Committed
            One for each draft that contains events.
        """
        if not self.holds_lock or self._key is None:
            raise JournalError("append needs the writer lock: call it inside `with journal.locked()`")
        drafts = [draft for draft in drafts if draft.payloads]
        sealed = seal(drafts, self.tail.chain, self._key, max(now, self.tail.chain.timestamp))
        position = self._segments.append(self.tail.position, sealed.data, self.tail.chain.seq + 1)
        self._hash.update(sealed.data)
        self.tail = Offset(sealed.chain, position)
        self._note_vectors(sealed.events)
        self._note_progress()
        commits, start = [], 0
        for draft in drafts:
            events = tuple(sealed.events[start : start + len(draft.payloads)])
            commits.append(Committed(events, self.tail))  # they become visible together, so they share the point after
            start += len(events)
        return commits

    def refresh(self) -> None:
        """Verify and read what was appended since; with the lock held, remove a torn final commit.

        Raises
        ------
        DamagedJournalError, TruncatedJournalError
            The journal is not what was signed.
        """
        if self._take_in() is None:
            self._adopt()

    def _take_in(self) -> Head | None:
        """Perform `refresh` and return the head that the journal was compared with."""
        head = self._heads.read()  # before the lines: a writer may append and move it meanwhile
        if self._segments.ends_before(self.tail.position):
            witness = "this process, which has it open,"
            raise TruncatedJournalError(path=self.folder, seq=None, head_seq=self.tail.chain.seq, witness=witness)
        torn: Line | None = None
        for found in self._walk(self.tail):
            if isinstance(found, Line):
                torn = found
                break
            self._take(found, head)
        chain = self.tail.chain
        if head is not None and chain.seq < head.seq:
            raise TruncatedJournalError(
                path=self.folder, seq=chain.seq, head_seq=head.seq, witness=f"its head file {self._heads.path}"
            )
        if head is not None and chain.seq == head.seq and chain.signature != head.signature:
            raise self._other_head(self.tail.position, chain.seq)
        if not self.holds_lock:
            return head
        if torn is not None:
            removed = self._segments.cut(self.tail.position)
            self._notice(f"dropped a torn final commit after event {chain.seq} ({removed} bytes)")
        if head is None or head.seq < chain.seq:
            self._note_progress()
        return head

    def torn_tail(self) -> tuple[int, int]:
        """Return how many events and bytes of a torn final commit lie after the tail; (0, 0) if there are none.

        The next writer removes them. A commit that another process is writing does not count.
        """
        if not any(True for _ in self._segments.lines(self.tail.position)):
            return 0, 0
        try:
            if not self._lock.try_acquire():
                return 0, 0
        except StorageError:  # a read-only store has no writer
            pass
        try:
            self._take_in()
            lines = [line.end.offset - line.start.offset for line in self._segments.lines(self.tail.position)]
            return len(lines), sum(lines)
        finally:
            self._lock.release()

    def has_changed(self) -> bool:
        """Tell, at the cost of a stat, whether the journal no longer ends at the tail."""
        return self._segments.differs_from(self.tail.position)

    def replay(self, after: Offset | None = None) -> Iterator[Committed]:
        """Iterate over whole commits after a point (default: from the beginning), each verified.

        Raises
        ------
        DamagedJournalError
            A line is not what was signed, or does not follow the chain.
        """
        for found in self._walk(after or self.start):
            if isinstance(found, Line):
                return
            if found.after.chain.seq > self.tail.chain.seq:
                return
            yield found

    def lines(self) -> Iterator[Line]:
        """Iterate over all lines up to the tail. They were verified before and are not verified again."""
        for line in self._segments.lines(self.start.position):
            if line.start >= self.tail.position:
                return
            yield line

    def events_after(self, seq: int) -> Iterator[Event]:
        """Iterate over the events after this one, each verified on its own. Segments that end before it are not read."""
        for line in self._segments.lines(self._segments.holding(seq + 1)):
            if line.start >= self.tail.position:
                return
            found = _SEQ.search(line.data)
            if found is None or int(found[1]) > seq:
                yield self.event(line)

    def event(self, line: Line) -> Event:
        """Verify one of the `lines` on its own and return its event.

        Raises
        ------
        DamagedJournalError
            The line is not what was signed.
        """
        try:
            return unseal_alone(line.data, self.store_id, self._key)
        except LineError as error:
            raise damaged(self._segments, str(error), line.start, None) from None

    def resume_point(self, seq: int, signature: str, segment: str, offset: int, timestamp: str) -> Offset:
        """Return the point that a projection has recorded. Replaying from a wrong point raises an error."""
        return Offset(Chain(self.store_id, seq, signature, timestamp), Position(segment, offset))

    def verify(
        self, progress: Progress | None = None, *, also: Callable[[Committed], None] = lambda _commit: None
    ) -> int:
        """Verify every event from the first, write a checkpoint, and return the number of events.

        Parameters
        ----------
        also : callable
            Called with each verified commit, in order.
        """
        count = 0
        for commit in self.replay():
            also(commit)
            count += len(commit.events)
            if progress:
                progress(count, self.tail.chain.seq)
        if count != self.tail.chain.seq:
            raise TruncatedJournalError(
                path=self.folder, seq=count, head_seq=self.tail.chain.seq, witness="this process"
            )
        self.checkpoint()
        return count

    def checkpoint(self) -> None:
        """Record how far the journal is verified. This only saves time, so a failure is logged and not raised."""
        if self._key is not None and self.tail.chain.seq > self._checkpoint_seq and self.refused_writes() is None:
            state = Checkpoint(self.tail.chain, self.tail.position, self._hash.hexdigest(), self.named)
            try:
                write_checkpoint(self._checkpoint_path, state, self._key)
            except StorageError as error:
                logger.warning("store %s: %s", self.store_id, error)
                return
            self._checkpoint_seq = self.tail.chain.seq

    def load(self) -> None:
        """Load the journal: by its checkpoint if that matches, else event by event."""
        checkpoint = read_checkpoint(self._checkpoint_path, self._key, self.store_id) if self._key else None
        head = self._heads.read()
        # a head that was not synced before a power failure is behind: then every event is verified and compared with it
        is_usable = checkpoint is not None and (head is None or head.can_follow(checkpoint.chain))
        fits = False
        if checkpoint is not None and is_usable:
            digest = hashlib.sha256()
            for block in self._segments.blocks(self.start.position, checkpoint.position):
                digest.update(block)
            fits = digest.hexdigest() == checkpoint.sha256
            if fits:
                self._hash = digest
                self.tail, self.named = Offset(checkpoint.chain, checkpoint.position), checkpoint.named
        if checkpoint is not None:
            self._checkpoint_seq = checkpoint.chain.seq  # even of one that does not match: evidence of truncation
        head = self._take_in()
        if checkpoint is not None and not fits:
            # every event verifies, but the bytes differ from those verified before: an older or different copy of the journal
            if self.tail.chain.seq < checkpoint.chain.seq:
                witness = f"its checkpoint {self._checkpoint_path}"
                raise TruncatedJournalError(
                    path=self.folder, seq=self.tail.chain.seq, head_seq=checkpoint.chain.seq, witness=witness
                )
            if is_usable:
                self._notice("the checkpoint did not match the journal; all events were verified")
            self._checkpoint_seq = 0
            self._maybe_checkpoint()
        if head is None:
            self._adopt()

    def _take(self, commit: Committed, head: Head | None) -> None:
        for event in commit.events:
            if head is not None and event.seq == head.seq and event.signature != head.signature:
                raise self._other_head(self.tail.position, event.seq)
        self._hash.update(commit.data)
        self.tail = commit.after
        self._note_vectors(commit.events)
        self._maybe_checkpoint()

    def _note_vectors(self, events: Iterable[Event]) -> None:
        for event in events:
            self.named = self.named.after(event.payload)

    def _walk(self, offset: Offset) -> Iterator[Committed | Line]:
        return walk(self._segments, offset, self._key)

    def _note_progress(self) -> None:
        """Update the head file and, at intervals, the checkpoint.

        The commit is already durable, so a failure here must not make it look failed; the next writer tries again.
        """
        try:
            self._heads.write(Head(self.tail.chain.seq, self.tail.chain.signature))
            self._maybe_checkpoint()
        except StorageError as error:
            logger.warning("store %s: %s", self.store_id, error)

    def _adopt(self) -> None:
        """Create the missing head file, and report it once."""
        chain = self.tail.chain
        if chain.seq == 0 or self._is_adopted:
            return
        self._is_adopted = True
        if self._key is not None:
            try:
                self._heads.make(Head(chain.seq, chain.signature))
            except StorageError as error:
                logger.warning("store %s: %s", self.store_id, error)
        self._notice(
            f"adopted a journal of {chain.seq} events that had no head file: a truncation before now would go unnoticed"
        )

    def _maybe_checkpoint(self) -> None:
        if self.tail.chain.seq - self._checkpoint_seq >= self._checkpoint_events:
            self.checkpoint()

    def _other_head(self, position: Position, seq: int) -> DamagedJournalError:
        return DamagedJournalError(
            "the head file names a different event with this number",
            path=self._segments.path(position),
            offset=position.offset,
            seq=seq,
            advice="restore the journal and its head file from one backup or, to continue with this journal, run "
            "`memgraph repair --accept-head`",
        )

    def _notice(self, text: str) -> None:
        logger.warning("store %s: %s", self.store_id, text)
        self.notices.append(text)
