"""The journal of one store: verification, recovery, appending, replay."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import orjson

from memgraph.disk.files import read_only_message, refused_writes
from memgraph.disk.lock import writer_lock
from memgraph.errors import (
    DamagedJournalError,
    JournalError,
    ReadOnlyError,
    StorageError,
    TruncatedJournalError,
)
from memgraph.journal import swap
from memgraph.journal.baseline.header import Baseline, check_signers, read_header
from memgraph.journal.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from memgraph.journal.closed import files
from memgraph.journal.closed.files import can_pack
from memgraph.journal.envelope import CommitDraft, Event, seal
from memgraph.journal.head_file import Head, HeadFile
from memgraph.journal.keys.ring import KeyRing
from memgraph.journal.reading import JournalReader
from memgraph.journal.replay import Committed, Offset
from memgraph.journal.segments import DEFAULT_LIMITS, JournalLimits, Line, Position
from memgraph.logs import logger_of
from memgraph.model.events.store import MemoryPurged
from memgraph.model.timestamps import days_between
from memgraph.ports import Progress, SigningKey

logger = logger_of(__name__)


class Journal(JournalReader):
    """Append-only, signed, synced. Use `memgraph.journal.opening.open_journal`.

    Readers need no lock: they ignore an incomplete final commit. Writers hold `locked`, which first reads what other
    processes wrote and removes a torn final commit.
    """

    def __init__(
        self,
        home: Path,
        store_id: str,
        ring: KeyRing | None,
        *,
        keys_home: Path,
        lock_timeout_s: float,
        limits: JournalLimits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(home / "journal", store_id, ring, limits)
        folder = self.folder
        self.notices: list[str] = []
        self._heads = HeadFile.of(folder, keys_home, store_id)
        self._keys_home = keys_home
        self._lock = writer_lock(folder)
        self.lock_timeout_s = lock_timeout_s
        self._checkpoint_path = folder / "verified.json"
        self._checkpoint_seq = 0
        self._checkpoint_events = limits.checkpoint_events
        self._compresses = limits.compresses
        self._age = SegmentAge(folder, limits.segment_days)
        self._is_rewritten = False
        self.holds_lock = False
        self._is_adopted = False

    def activate(self, key: SigningKey) -> None:
        """Treat a key as the provider's active one: the rotation to it is recorded, and it signs."""
        self.ring.active = key

    @property
    def is_read_only(self) -> bool:
        """Whether the journal cannot be written, because the key is missing or the system refuses it."""
        return self._key is None or self.refused_writes() is not None

    def refused_writes(self) -> str | None:
        """Return a message that names a file or folder of the journal that may not be written, and why; None if there is none."""
        return refused_writes(self.folder, self.folder / "lock", self._segments.path(self.tail.position))

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
        if self._ring is None:
            _ = self.signing_key
        if refused := self.refused_writes():
            raise ReadOnlyError(read_only_message(refused))
        if not self._lock.try_acquire():
            before_waiting()
            self._lock.acquire(self.lock_timeout_s)
        self.holds_lock = True
        try:
            # what is appended now would be replaced with the rest by whoever completes the resealing
            if swap.complete_if_planned(self.folder, self.store_id, self.ring, keys_home=self._keys_home):
                raise swap.replaced(self.folder)
            self.refresh()
            _ = self.signing_key  # another process may have rotated to one that is missing here
            self._take_over_baseline()
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
        if not self.holds_lock:
            raise JournalError("append needs the writer lock: call it inside `with journal.locked()`")
        drafts = [draft for draft in drafts if draft.payloads]
        time, tail = max(now, self.tail.chain.timestamp), self.tail.position
        sealed = seal(drafts, self.tail.chain, self.signing_key, time)
        starts_new = self.closed.is_named(tail.segment) or self._age.is_over(tail.segment, time)
        position = self._segments.append(tail, sealed.data, self.tail.chain.seq + 1, starts_new=starts_new)
        self._digest.add(position.segment, sealed.data)
        self.tail = Offset(sealed.chain, position)
        self._origin = self._origin or self._segments.origin()
        self._note(sealed.events)
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
        origin = self._segments.origin()
        try:
            head = self._take_in()
        except JournalError:
            if self._is_replaced():
                raise swap.replaced(self.folder) from None
            raise
        self._origin = origin or self._origin  # a purge may have rewritten the first segment, which stays valid
        if head is None:
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
        self._origin = self._origin or self._segments.origin()
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
        return self._segments.differs_from(self.tail.position, self.tail.chain.seq + 1)

    def verify(
        self, progress: Progress | None = None, *, also: Callable[[Committed], None] = lambda _commit: None
    ) -> int:
        """Verify every event as `JournalReader.verify` does, and write a checkpoint."""
        count = super().verify(progress, also=also)
        self.checkpoint()
        return count

    def checkpoint(self) -> None:
        """Record how far the journal is verified. This only saves time, so a failure is logged and not raised."""
        if self._is_rewritten and self.holds_lock:
            self._hash_again()
        if self._is_replaced():
            return  # the journal was replaced: this would speak of the former one
        if self._key is not None and self.tail.chain.seq > self._checkpoint_seq and self.refused_writes() is None:
            self._hash_again()
            digest = self._digest.hexdigest()
            state = Checkpoint(self.tail.chain, self.tail.position, digest, self.named, self.used, self.base.chain.seq)
            try:
                write_checkpoint(self._checkpoint_path, state, self._key)
            except StorageError as error:
                logger.warning("store %s: %s", self.store_id, error)
                return
            self._checkpoint_seq = self.tail.chain.seq

    def drop_checkpoint(self, rewritten: Collection[str]) -> None:
        """Remove the checkpoint, because segments before it are about to be rewritten; the lock must be held."""
        self.closed.forget(rewritten, self.signing_key, self.ring.find)  # raises first if it cannot be trusted
        self._checkpoint_path.unlink(missing_ok=True)
        self._checkpoint_seq, self._is_rewritten = 0, True

    def begin_at(self, baseline: Baseline) -> None:
        """Begin at a baseline that has just become the journal's; the lock must be held."""
        self.drop_checkpoint(())
        self.baseline = baseline
        self.checkpoint()

    def name_closed(self) -> None:
        """Complete the manifest of closed segments (see `ClosedSegments.complete`); the lock must be held."""
        if self.closed.is_behind(self._digest, self.signing_key):
            self._hash_again()
            self.closed.complete(self._digest, self.signing_key, self.ring.find, self.used.between)

    def pack_next(self) -> str | None:
        """Compress the first closed segment that is not compressed, and return its name; the lock must be held.

        A segment of 64 MiB takes about a second. None if there is none, if the limits say so, or the package for it is missing. Raises the errors of
        `ClosedSegments.pack`.
        """
        if not (self._compresses and can_pack()):
            return None
        self.closed.read_again(self.ring.find)
        self.name_closed()
        name = self.closed.next_to_pack()
        if name is not None:
            self.closed.pack(name, self.signing_key)
        return name

    def load(self) -> None:
        """Load the journal from its baseline, if it has one: by its checkpoint if that matches, else event by event."""
        signers = self._load_baseline()
        active = self._ring.active if self._ring else None
        self._origin = self._segments.origin()
        if self._ring is not None:
            self.closed.read(self._ring.find)
        self._digest = self._digest_before(self.base, active)
        checkpoint = read_checkpoint(self._checkpoint_path, active, self.store_id) if active else None
        head = self._heads.read()
        # a head that was not synced before a power failure is behind: then every event is verified and compared with it
        is_usable = (
            checkpoint is not None
            and (head is None or head.can_follow(checkpoint.chain))
            and checkpoint.base_seq == self.base.chain.seq
        )
        fits = False
        if checkpoint is not None and is_usable:
            digest = self._digest_to(checkpoint.position, active)
            fits = digest.hexdigest() == checkpoint.digest
            if fits:
                self._digest = digest
                self.tail, self.named = Offset(checkpoint.chain, checkpoint.position), checkpoint.named
                self._use(checkpoint.used)
        if checkpoint is not None:
            self._checkpoint_seq = checkpoint.chain.seq  # even of one that does not match: evidence of truncation
        head = self._take_in()
        self._check_closed()
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
        if self.baseline is not None:
            check_signers(self.folder, signers, self._key)
        if problem := self._checked_condensed():
            self._notice(problem)
        if head is None:
            self._adopt()

    def _is_baseline_replaced(self) -> bool:
        is_replaced = super()._is_baseline_replaced()
        self._is_rewritten |= is_replaced  # the checkpoint's bytes begin elsewhere
        return is_replaced

    def _take_over_baseline(self) -> None:
        """Begin at the baseline as it is now: a compaction or a purge by another process may have replaced it since it was read."""
        found, signers = read_header(self.folder, self.store_id, self._ring)
        if found is not None and found != self.baseline:
            check_signers(self.folder, signers, self._key)
            self.baseline, self._is_rewritten = found, True  # the checkpoint's bytes begin elsewhere

    def _hash_again(self) -> None:
        """Hash the journal's files again if some were rewritten."""
        if self._is_rewritten:
            self._digest, self._is_rewritten = self._digest_to(self.tail.position, self._key), False
            self._origin = self._segments.origin() if self.holds_lock else self._origin

    def _check_closed(self) -> None:
        """Refuse a manifest that cannot be trusted; report segments that differ from it although their events verify."""
        for name in self.closed.check(self._digest, self.tail.chain.seq) if self._ring else ():
            self._notice(f"the segment {name} is not what {self.closed.path} names; all its events were verified")

    def _take(self, commit: Committed, head: Head | None) -> None:
        for event in commit.events:
            if head is not None and event.seq == head.seq and event.signature != head.signature:
                raise self._other_head(self.tail.position, event.seq)
        self._digest.add(commit.after.position.segment, commit.data)
        self.tail = commit.after
        self._note(commit.events)
        self._maybe_checkpoint()

    def _note(self, events: Iterable[Event]) -> None:
        for event in events:
            self.named = self.named.after(event.payload)
            self._use(self.used.after(event))
            self._is_rewritten |= isinstance(event.payload, MemoryPurged)

    def _note_progress(self) -> None:
        """Update the head file and, at intervals, the checkpoint.

        The commit is already durable, so a failure here must not make it look failed; the next writer tries again.
        """
        try:
            self._heads.write(Head(self.tail.chain.seq, self.tail.chain.signature))
            self._maybe_checkpoint()
            self.name_closed()
        except (StorageError, DamagedJournalError) as error:
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

    def _tell_refused(self, error: JournalError) -> None:
        if not self._is_replaced():  # else nobody has forged anything
            super()._tell_refused(error)

    def _notice(self, text: str) -> None:
        logger.warning("store %s: %s", self.store_id, text)
        self.notices.append(text)


class SegmentAge:
    """Tells whether a segment is so old that a new one should be started.

    Parameters
    ----------
    days : float
        Age of its first event, by the journal's clock.
    """

    def __init__(self, folder: Path, days: float) -> None:
        self._folder = folder
        self._days = days
        self._name = ""
        self._since: str | None = None

    def is_over(self, name: str, now: str) -> bool:
        """Return whether a segment's first event was recorded longer ago than that."""
        if name != self._name or self._since is None:  # it may have been empty
            self._name, self._since = name, self._first_time(name)
        return self._since is not None and days_between(self._since, now) > self._days

    def _first_time(self, name: str) -> str | None:
        """Return when a segment's first event was recorded; None if it has none."""
        try:
            with files.opened(self._folder, name) as stream:
                return str(orjson.loads(stream.readline())["head"]["timestamp"])
        except (OSError, ValueError, KeyError, TypeError):  # appending or verifying reports it
            return None
