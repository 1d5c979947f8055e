"""Reading a journal that was opened: its events, its end, and what is derived from its keys."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from memgraph.disk.seal import Seal, SealKey
from memgraph.errors import DamagedJournalError, JournalError, KeyMissingError, StorageError, TruncatedJournalError
from memgraph.journal.baseline.header import Baseline, checked_header, read_header
from memgraph.journal.baseline.rows import BaselineRow, read_rows
from memgraph.journal.closed.closing import ClosedSegments
from memgraph.journal.closed.condensed import CondensedSegments
from memgraph.journal.closed.digest import JournalDigest
from memgraph.journal.envelope import FIRST_SIGNATURE, Chain, Event, KeyOf, LineError
from memgraph.journal.keys.ring import KeyHistory, KeyRing, seal_key, seal_of
from memgraph.journal.purge.lines import is_purged, seq_of
from memgraph.journal.purge.purged import PurgedSeqs
from memgraph.journal.replay import Committed, Offset, damaged, walk
from memgraph.journal.segments import COMPRESSED, JournalLimits, Line, Position, Segments, event_of
from memgraph.journal.vectors.vector_file import NamedVectors, VectorFile
from memgraph.logs import logger_of
from memgraph.ports import Progress, SigningKey

logger = logger_of(__name__)


class JournalReader:
    """The readable part of a `Journal`, up to its tail.

    Attributes
    ----------
    tail : Offset
        The end of what was verified.
    named, used : NamedVectors, KeyHistory
        What the events up to the tail state about vectors, and which keys signed them.
    on_refused, on_unverified : callable
        Called with the error when a replay is refused; and at each replay whose signatures are not verified.
    on_full : callable
        Called when the journal or the graph cannot be written for lack of disk space.
    has_key : bool
        Whether there are keys to verify with; without, nothing can be written.
    """

    def __init__(self, folder: Path, store_id: str, ring: KeyRing | None, limits: JournalLimits) -> None:
        self.store_id = store_id
        self.folder = folder
        self._ring = ring
        self._key = ring.active if ring else None
        self.has_key = ring is not None
        self._own_secret = secrets.token_bytes(32)
        self._seal_keys: dict[str, tuple[KeyHistory, SealKey]] = {}
        self.condensed = CondensedSegments(folder, store_id, ring.find if ring else None, self._is_current)
        self.segments = self._segments = Segments(folder, limits.segment_bytes, self.condensed)
        self.purged = PurgedSeqs(
            self._segments, store_id, (lambda key_id: ring.verifying(key_id, None)) if ring else None
        )
        self.baseline: Baseline | None = None
        self.closed = ClosedSegments(folder, store_id)
        self._digest = JournalDigest()
        self._origin: int | None = None
        self.tail = self.start
        self.named = NamedVectors()
        self.used = KeyHistory()
        self.on_refused: Callable[[JournalError], None] = lambda _error: None
        self.on_unverified: Callable[[], None] = lambda: None
        self.on_full: Callable[[], None] = lambda: None

    @property
    def start(self) -> Offset:
        """The point before the first event."""
        return Offset(Chain(self.store_id, 0, FIRST_SIGNATURE, ""), self._segments.first())

    @property
    def base(self) -> Offset:
        """The point from which opening verifies the journal and a rebuild replays it: the baseline's, or else the start."""
        return self.baseline.offset if self.baseline else self.start

    def rows_of_baseline(self) -> tuple[Baseline, list[BaselineRow]] | None:
        """Return the baseline and its rows, as it is now: a purge or a compaction by another process may have replaced it.

        Raises
        ------
        JournalError
            They are not what was signed.
        """
        while self.baseline is not None:
            try:
                return self.baseline, read_rows(self.folder, self.baseline)
            except JournalError:
                if not self._is_baseline_replaced():
                    raise
        return None

    def _load_baseline(self) -> list[SigningKey]:
        """Begin at the baseline, if there is one; return the keys that verify it."""
        before, _ = read_header(self.folder, self.store_id, self._ring)
        try:
            self.baseline, signers = checked_header(self._segments, self.store_id, self._ring)
        except JournalError:
            if read_header(self.folder, self.store_id, self._ring)[0] == before:
                raise
            return self._load_baseline()  # it was replaced while it was read
        if self.baseline is not None:
            self.tail, self.named = self.baseline.offset, self.baseline.named
            self._use(self.baseline.used)
        return signers

    def _is_baseline_replaced(self) -> bool:
        """Take over the baseline as it is now; return whether it has changed."""
        before = self.baseline
        found, _ = read_header(self.folder, self.store_id, self._ring)
        if found is not None and found != before:
            self.baseline = found
        return self.baseline != before

    def vectors(self, model: str, dimension: int) -> VectorFile:
        """Return the vector file of a model."""
        return VectorFile(self.folder / "vectors", model, dimension)

    @property
    def ring(self) -> KeyRing:
        """The keys of the store.

        Raises
        ------
        KeyMissingError
            Signatures are not verified.
        """
        if self._ring is None:
            raise KeyMissingError("the signing key of this store is missing, so the store is read-only")
        return self._ring

    @property
    def signing_key(self) -> SigningKey:
        """The key that signs what is written next.

        Raises
        ------
        KeyMissingError
            It is missing.
        """
        if self._key is None or self._ring is None:
            named = (
                f"the key {self.used.current}, to which this store was rotated,"
                if self._ring
                else "the signing key of this store"
            )
            raise KeyMissingError(f"{named} is missing, so the store is read-only", key_id=self.used.current)
        return self._key

    @property
    def key_id(self) -> str:
        """The id of the `signing_key`, as the events name it."""
        key = self.signing_key
        return self.used.current or key.key_id

    def hmac_of(self, text: str) -> str:
        """Return the HMAC-SHA256 of a text under the key that signs, in hexadecimal."""
        said = b"memgraph text\x1f" + text.encode("utf-8", "surrogatepass")
        return hmac.digest(self._key.secret if self._key else b"", said, "sha256").hex()

    def seal(self, purpose: str) -> Seal:
        """Return the seal for one purpose, with a key derived from the one that signs now, also after a rotation; without one, from a random one.

        Its name is of the key and of the event from which on it signs: if that changes, what was sealed before is to be made again.
        """
        return Seal(partial(self._seal_key, purpose))

    def seal_of(self, key_id: str, purpose: str) -> Seal | None:
        """Return the seal that a key of the store made for one purpose; None if the key is missing."""
        key = self._ring.find(key_id) if self._ring else None
        return seal_of(key, purpose, self.store_id) if key else None

    def _seal_key(self, purpose: str) -> SealKey:
        used, known = self.used, self._seal_keys.get(purpose)
        if known is None or known[0] is not used:
            key, use = self._key, used.uses[-1] if used.uses else None
            name = f"{use.key_id} from event {use.first_seq}" if key and use else ""
            secret = key.secret if key else self._own_secret
            known = self._seal_keys[purpose] = (used, SealKey(seal_key(secret, purpose, self.store_id), name))
        return known[1]

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

    def verify(
        self, progress: Progress | None = None, *, also: Callable[[Committed], None] = lambda _commit: None
    ) -> int:
        """Verify every event from the first, archived ones included, and return the number of events.

        Parameters
        ----------
        also : callable
            Called with each verified commit, in order.
        """
        count, digest = 0, JournalDigest()
        if self._ring is not None:
            self.closed.read(self._ring.find)  # before the events: a writer may close a segment meanwhile
        for commit in self.replay():
            also(commit)
            digest.add(commit.after.position.segment, commit.data)
            count = commit.after.chain.seq
            if progress:
                progress(count, self.tail.chain.seq)
        if count != self.tail.chain.seq:
            raise TruncatedJournalError(
                path=self.folder, seq=count, head_seq=self.tail.chain.seq, witness="this process"
            )
        if self._ring is not None:
            self.closed.check_all(digest, count, self._ring.find)
        return count

    def lines(self) -> Iterator[Line]:
        """Iterate over all lines up to the tail but purged ones. They were verified before and are not verified again."""
        self._warn_if_unverified()
        return (line for line in self.every_line(self.start.position) if not is_purged(line.data))

    def every_line(self, start: Position) -> Iterator[Line]:
        """Iterate over the lines after a position up to the tail, purged ones included."""
        for line in self._segments.lines(start):
            if line.start >= self.tail.position:
                return
            yield line

    def events_after(self, seq: int) -> Iterator[Event]:
        """Iterate over the events after this one, each verified on its own. Segments that end before it are not read."""
        self._warn_if_unverified()
        for line in self.every_line(self._segments.holding(seq + 1)):
            if not is_purged(line.data) and not 0 < seq_of(line.data) <= seq:
                yield self.event(line)

    def event(self, line: Line) -> Event:
        """Verify one of the `lines` on its own and return its event.

        Raises
        ------
        DamagedJournalError
            The line is not what was signed.
        """
        try:
            return event_of(line, self.store_id, self._keys_at(line))
        except LineError as error:
            raise damaged(self._segments, str(error), line.start, None) from None

    def resume_point(self, seq: int, signature: str, segment: str, offset: int, timestamp: str) -> Offset:
        """Return the point that a projection has recorded. Replaying from a wrong point raises an error."""
        return Offset(Chain(self.store_id, seq, signature, timestamp), Position(segment, offset))

    def _digest_to(self, end: Position, key: SigningKey | None) -> JournalDigest:
        """Hash the journal up to a position, from the beginning of the segment in which the baseline ends."""
        first = self.base.position.segment if self.baseline else self._segments.first().segment
        return self.closed.digest((first, 0), (end.segment, end.offset), key)

    def _digest_before(self, point: Offset, key: SigningKey | None) -> JournalDigest:
        """Return what a digest begins with that is then fed with the events after a point: nothing at the journal's beginning."""
        return self._digest_to(point.position, key) if point.chain.seq else JournalDigest()

    def _is_replaced(self) -> bool:
        """Return whether other segments are in the place of those that were read."""
        if self._is_tail_condensed():
            return True
        return self._origin is not None and self._segments.origin() not in (None, COMPRESSED, self._origin)

    def _use(self, used: KeyHistory) -> None:
        """Sign with the key that the journal names from now on, whichever the provider has as its active one."""
        if used is not self.used:
            self._key = self._ring.find(used.current) if self._ring and used.current else None
            self.used = used  # last: a seal of another thread takes the key that belongs to it

    def _condensed_problem(self) -> str | None:
        """Return why the history in condensed segments cannot be read; None if it can. With a baseline, the present state does not need it."""
        try:
            self.condensed.contents()
        except (DamagedJournalError, StorageError) as error:
            return f"the history in condensed segments cannot be read: {error}"
        return None

    def _checked_condensed(self) -> str | None:
        """Return why the history in condensed segments cannot be read; None if it can.

        Raises
        ------
        DamagedJournalError
            It cannot, and there is no baseline: the state was made of what these segments say.
        """
        if self.baseline is None:
            self.condensed.contents()
        return self._condensed_problem()

    def _is_tail_condensed(self) -> bool:
        """Return whether the segment that ends at the tail was condensed since: a position in it means nothing any more."""
        return (
            bool(self.tail.position.offset)
            and not self._condensed_problem()
            and self.condensed.names(self.tail.position.segment)
        )

    def _is_current(self, key: SigningKey) -> bool:
        """Return whether a key signs the journal. Any does before that is known: whoever reads the events checks it again at their end."""
        return self._key is None or not self.used.uses or key.secret == self._key.secret

    def _keys_at(self, line: Line) -> KeyOf | None:
        """Return what finds the key that must verify a line; None if signatures are not verified."""
        ring, seq = self._ring, seq_of(line.data)
        if ring is None:
            return None
        in_use = self.used.at(seq) if seq else None
        return lambda key_id: ring.verifying(key_id, in_use)

    def _walk(self, offset: Offset) -> Iterator[Committed | Line]:
        try:
            for number, found in enumerate(walk(self._segments, offset, self._ring, self.used, self.purged)):
                if number == 0:
                    self._warn_if_unverified()
                yield found
        except JournalError as error:
            self._tell_refused(error)
            raise

    def _tell_refused(self, error: JournalError) -> None:
        self.on_refused(error)

    def _warn_if_unverified(self) -> None:
        """Log an error, each time that events are read although nothing proves who wrote them."""
        if self._ring is None:
            logger.error(
                "store %s: its events are read without verifying their signatures (setting allow_unsigned_replay): they may "
                "have been forged",
                self.store_id,
            )
            self.on_unverified()
