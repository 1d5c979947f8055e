"""The journal of one store: the events in the database, verified when they are read, signed when they are appended."""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from memgraph.disk.seal import Seal, SealKey
from memgraph.errors import (
    DamagedJournalError,
    JournalError,
    KeyMissingError,
    ReadOnlyError,
    StorageError,
    TruncatedJournalError,
)
from memgraph.journal.baseline import (
    ADVICE,
    Baseline,
    BaselineRow,
    archive_row,
    header_of,
    read_rows,
    signed_header,
    unpacked,
)
from memgraph.journal.envelope import (
    Chain,
    CommitDraft,
    Committed,
    Event,
    ForeignKeyError,
    KeyOf,
    Line,
    LineError,
    PurgedHead,
    SignatureError,
    UnknownEnvelopeError,
    canonical,
    content_alone,
    followed,
    seal,
    stored,
    unseal_alone,
    unseal_any,
)
from memgraph.journal.head_file import Head, HeadFile
from memgraph.journal.keyring import KeyHistory, KeyRing, KeyUse, seal_key, seal_of
from memgraph.journal.sql import Database, FullDatabaseError, Transaction
from memgraph.journal.vectors import NamedVectors, Vectors
from memgraph.logs import logger_of
from memgraph.model.events.store import JournalResealed, MemoryPurged
from memgraph.ports import Progress, SigningKey

logger = logger_of(__name__)

_BATCH = 1_000
"""Events that are read in one transaction: a long replay holds up nobody."""
_AT_ANY_TIME = 1 << 62
_ID = re.compile(rb"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


class ReplacedJournalError(JournalError):
    """The journal was resealed, or restored from a backup, while this process had it open. Opening the store again uses the new one."""


class Sizes(NamedTuple):
    """Bytes of a journal's events, archive and baseline."""

    events: int
    archive: int
    baseline: int


class Journal:
    """Append-only, signed; made by `open_journal`. Readers need no lock, writers hold `locked`; without a key `ring` nothing is verified or written.

    `tail` is the end of what was verified; `named` and `used` are what the events up to there state about vectors and keys.
    """

    def __init__(
        self,
        database: Database,
        home: Path,
        store_id: str,
        ring: KeyRing | None,
        *,
        heads: HeadFile,
        lock_timeout_s: float,
    ) -> None:
        self.database = database
        self.path = database.path
        self.home = home
        self.store_id = store_id
        self.notices: list[str] = []
        self.lock_timeout_s = lock_timeout_s
        self.has_key = ring is not None
        self.holds_lock = False
        self._ring = ring
        self._key = ring.active if ring else None
        self._own_secret = secrets.token_bytes(32)
        self._seal_keys: dict[str, tuple[KeyHistory, SealKey]] = {}
        self._heads = heads
        self._lock = database.lock()
        self._is_adopted = False
        self._in_commit = 0
        self.appended = 0
        self._purged: frozenset[int] = frozenset()
        self._vectors: dict[str, Vectors] = {}
        self.baseline: Baseline | None = None
        self.tail = self.start
        self.named = NamedVectors()
        self.used = KeyHistory()
        self.on_refused: Callable[[JournalError], None] = lambda _error: None
        self.on_unverified: Callable[[], None] = lambda: None
        self.on_full: Callable[[], None] = lambda: None

    @property
    def head_path(self) -> Path:
        """The head file."""
        return self._heads.path

    @property
    def start(self) -> Chain:
        """The point before the first event."""
        return Chain(self.store_id)

    @property
    def base(self) -> Chain:
        """The point from which a rebuild replays the journal: the baseline's, or else the start."""
        return self.baseline.chain if self.baseline else self.start

    # keys

    @property
    def ring(self) -> KeyRing:
        """The keys of the store. Raises `KeyMissingError` if signatures are not verified."""
        if self._ring is None:
            raise KeyMissingError("the signing key of this store is missing, so the store is read-only")
        return self._ring

    @property
    def signing_key(self) -> SigningKey:
        """The key that signs what is written next. Raises `KeyMissingError` if it is missing."""
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
        """Return the seal for one purpose, with a key derived from the one that signs now; if its name changes, what was sealed before is to be made again."""
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

    # reading

    def replay(self, after: Chain | None = None, *, until: int | None = None) -> Iterator[Committed]:
        """Iterate over whole commits after a point up to the tail or an event, each verified with the key in use there, or raise a `JournalError`."""
        try:
            yield from self._walk(after or self.start, self.tail.seq if until is None else min(until, self.tail.seq))
        except JournalError as error:
            raise self._explained(error) from None

    def _walk(self, chain: Chain, until: int) -> Iterator[Committed]:
        history = self.used.until(chain.seq + 1)
        run: list[Event] = []
        commit_id: str | None = None

        def key_of(key_id: str) -> SigningKey:
            return self.ring.verifying(key_id, history.current)

        for line in self.every_line(chain.seq, until=until):
            if chain.seq == 0 and commit_id is None:
                self._warn_if_unverified()
            key = key_of if self._ring else None
            try:
                found, after = unseal_any(line, chain, key)
                if isinstance(found, PurgedHead) and not self.is_purged(found.seq):
                    raise LineError("the payload is missing and no purge names it")
            except LineError as error:
                raise self._refused(error, chain) from None
            chain = after
            if commit_id not in (None, found.commit_id):
                raise self.damaged("a commit has no end", chain.seq)
            commit_id = found.commit_id
            if isinstance(found, Event):
                history = history.after(found)
                run.append(found)
            if found.last:
                yield Committed(tuple(run), chain)
                run, commit_id = [], None
        if commit_id is not None:
            raise self.damaged("a commit has no end", chain.seq)

    def _refused(self, error: LineError, chain: Chain) -> JournalError:
        if isinstance(error, ForeignKeyError) and (chain.seq == 0 or error.missing):
            # even the first event: the key is wrong, not the journal
            return KeyMissingError(
                f"the journal in {self.path} is not this key's: {error}"
                + (f"; {self._ring.remedy}" if self._ring else ""),
                key_id=error.missing,
            )
        refused = self.damaged(str(error), chain.seq + 1)
        refused.concerns_signature = isinstance(error, SignatureError)
        refused.concerns_envelope = isinstance(error, UnknownEnvelopeError)
        return refused

    def damaged(self, reason: str, seq: int | None) -> DamagedJournalError:
        """Return the error for damage at an event."""
        return DamagedJournalError(reason, path=self.path, seq=seq)

    def verify(
        self, progress: Progress | None = None, *, also: Callable[[Committed], None] = lambda _commit: None
    ) -> int:
        """Verify every event from the first, archived ones included, and the baseline's rows; pass each commit to `also`; return the number of events."""
        self.database.check()
        self.rows_of_baseline()
        count, purged = 0, self.purged_seqs()
        for commit in self.replay():
            if came_back := [event.seq for event in commit.events if event.seq in purged]:
                raise JournalError(
                    f"event {came_back[0]} was purged and has a payload again; run `memgraph purge --complete`"
                )
            also(commit)
            count = commit.after.seq
            if progress:
                progress(count, self.tail.seq)
        if count != self.tail.seq:
            raise TruncatedJournalError(path=self.path, seq=count, head_seq=self.tail.seq, witness="this process")
        return count

    def every_line(self, after: int = 0, *, until: int | None = None) -> Iterator[Line]:
        """Iterate over the lines after an event up to the tail or another event, purged ones included; not verified."""
        end = self.tail.seq if until is None else until
        while after < end:
            with self.database.reading() as tx:
                found = tx.one("archive_after", self.database.tenant, after)
                if found is not None:
                    lines = [line for line in self._unpacked(*found) if after < line.seq <= end]
                else:
                    lines = self._stored(tx.rows("events_after", self.database.tenant, after, end, _BATCH))
            if not lines:
                return
            yield from lines
            after = lines[-1].seq

    def lines(self) -> Iterator[Line]:
        """Iterate over all lines up to the tail but purged ones. Each is what was signed, and none is missing; no payload is parsed."""
        self._warn_if_unverified()
        chain, purged = self.start, self.purged_seqs()
        for line in self.every_line():
            try:
                chain = followed(line, chain, self._keys_at(line.seq), is_purged=line.seq in purged)
            except LineError as error:
                raise self._explained(self._refused(error, chain)) from None
            if not line.is_purged:
                yield line

    def lines_of(self, *types: str, holding: bytes = b"") -> Iterator[Line]:
        """Iterate over the lines of events of some types whose payloads, as canonical JSON, hold some bytes, but purged ones, type by type."""
        self._warn_if_unverified()
        for type_ in types:
            yield from (
                line for line in self.every_line_of(type_) if line.payload is not None and holding in line.payload
            )

    def events_of(self, *types: str, holding: bytes = b"") -> list[Event]:
        """Return the events of the same lines in order, each verified on its own."""
        return [self.event(line) for line in sorted(self.lines_of(*types, holding=holding), key=lambda line: line.seq)]

    def histories(self, memory_ids: Sequence[str]) -> dict[str, list[Event]]:
        """Return the events that refer to some memories, by id; one pass for any number of ids."""
        found: dict[str, list[Event]] = {one: [] for one in memory_ids}
        needles = {one.encode(): one for one in memory_ids}
        for line in self.lines() if needles else ():
            payload = line.payload or b""
            if len(needles) == 1:
                named = [needle for needle in needles if needle in payload]
            else:
                named = list(needles.keys() & set(_ID.findall(payload)))
            for one in named:
                found[needles[one]].append(self.event(line))
        return found

    def every_line_of(self, type_: str, *, until: int | None = None) -> list[Line]:
        """Return the lines of events of a type up to the tail or another event, purged ones included."""
        with self.database.reading() as tx:
            found: list[Line] = []
            for first, _last, types in self._archives(tx):
                if type_ in types:
                    found += [line for line in self._archived(tx, first) if line.type == type_]
            rows = tx.rows("events_of_type", self.database.tenant, type_, self.tail.seq if until is None else until)
            return found + self._stored(rows)

    def _stored(self, rows: Iterable[tuple[Any, ...]]) -> list[Line]:
        lines: list[Line] = []
        for row in list(rows):
            try:
                lines.append(stored(row))
            except LineError as error:
                raise self.damaged(str(error), row[0] if isinstance(row[0], int) else None) from None
        return lines

    def _archives(self, tx: Transaction) -> Iterator[tuple[int, int, list[str]]]:
        """Iterate over the parts of the archive: first and last event, and their types."""
        for first, last, types in list(tx.rows("archives", self.database.tenant)):
            try:
                named = orjson.loads(types)
            except ValueError:
                named = None
            if not (isinstance(first, int) and isinstance(last, int) and isinstance(named, list)):
                raise self.damaged("the archive does not hold the events that it names", None)
            yield first, last, named

    def _archived(self, tx: Transaction, first: int) -> list[Line]:
        """Return the lines of the part of the archive that begins with an event."""
        found = tx.one("archive_after", self.database.tenant, first - 1)
        return self._unpacked(*found) if found else []

    def _unpacked(self, first: int, last: int, types: str, body: bytes) -> list[Line]:
        try:
            return unpacked(first, last, types, body)
        except LineError as error:
            raise self.damaged(str(error), first) from None

    def events_after(self, seq: int) -> Iterator[Event]:
        """Iterate over the events after this one, each verified on its own."""
        self._warn_if_unverified()
        for line in self.every_line(seq):
            if not line.is_purged:
                yield self.event(line)

    def event(self, line: Line) -> Event:
        """Verify one line on its own and return its event. Raises `DamagedJournalError`, or `ReplacedJournalError`."""
        try:
            return unseal_alone(line, self.store_id, self._keys_at(line.seq))
        except LineError as error:
            raise self._unless_replaced(self.damaged(str(error), line.seq)) from None

    def content(self, line: Line) -> dict[str, Any]:
        """Verify one line on its own and return its payload as it was written; no schema is applied. Raises as `event` does."""
        try:
            return content_alone(line, self.store_id, self._keys_at(line.seq))
        except LineError as error:
            raise self._unless_replaced(self.damaged(str(error), line.seq)) from None

    def _keys_at(self, seq: int) -> KeyOf | None:
        ring = self._ring
        if ring is None:
            return None
        in_use = self.used.at(seq)
        return lambda key_id: ring.verifying(key_id, in_use)

    def is_purged(self, seq: int) -> bool:
        """Return whether a ``memory.purged`` event names this event."""
        return seq in self._purged or seq in self.purged_seqs()

    def purged_seqs(self) -> frozenset[int]:
        """Return the numbers of all purged events, as the journal states now."""
        self._purged = frozenset(seq for _, purge in self.purges() for seq in purge.seqs())
        return self._purged

    def purges(self) -> Iterator[tuple[int, MemoryPurged]]:
        """Iterate over the numbers and payloads of ``memory.purged`` events, each verified on its own; also of those after the tail."""
        key: KeyOf | None = self._ring.verifying if self._ring else None
        for line in self.every_line_of(MemoryPurged.TYPE, until=_AT_ANY_TIME):
            try:
                payload = unseal_alone(line, self.store_id, key).payload
            except LineError as error:
                raise self.damaged(str(error), line.seq) from None
            if isinstance(payload, MemoryPurged):
                yield line.seq, payload

    def unpurged(self, seqs: Collection[int]) -> list[int]:
        """Return those of these events that have a payload, in order."""
        wanted = set(seqs)
        return [
            line.seq
            for line in self.every_line(min(wanted, default=1) - 1, until=max(wanted, default=0))
            if line.seq in wanted and not line.is_purged
        ]

    def erase(self, seqs: Collection[int]) -> None:
        """Remove the payloads of events, in the transaction that is open; the lock must be held."""
        with self.committing() as tx:
            tenant = self.database.tenant
            tx.many("purge_event", ((tenant, seq) for seq in sorted(seqs)))
            for first, last, _types in self._archives(tx):
                if any(first <= seq <= last for seq in seqs):
                    lines = [line.purged() if line.seq in seqs else line for line in self._archived(tx, first)]
                    tx.run("put_archive", tenant, *archive_row(lines))

    def present_baseline(self) -> Baseline | None:
        """Return the baseline as it is now, without its rows: another process may have made one."""
        with self.database.reading() as tx:
            found = tx.one("baseline_header", self.database.tenant)
        self.baseline = header_of(found[0], self.path, self.store_id, self._ring) if found else None
        return self.baseline

    def rows_of_baseline(self) -> tuple[Baseline, list[BaselineRow]] | None:
        """Return the baseline and its rows, verified, as it is now: a purge or a compaction by another process may have replaced it."""
        with self.database.reading() as tx:
            found = tx.one("baseline", self.database.tenant)
        if found is None:
            return None
        self.baseline = header_of(found[0], self.path, self.store_id, self._ring)
        return self.baseline, read_rows(self.baseline, found[1], self.path)

    def _check_baseline(self) -> None:
        """Refuse a baseline that the key in use at the journal's end has not signed: only an earlier key has."""
        if self.baseline is None or self._ring is None or self._key is None:
            return
        if self.baseline.signed_by != self._key.key_id:
            raise JournalError(
                f"the baseline in {self.path} is not signed with the key that signs the journal, {self._key.key_id}; {ADVICE}"
            )

    def put_baseline(self, tx: Transaction, baseline: Baseline, body: bytes) -> None:
        """Make a baseline the journal's, signed with the key that signs, in the transaction that is open."""
        header = signed_header(baseline, self.signing_key)
        tx.run("put_baseline", self.database.tenant, header, body)
        self.present_baseline()

    def sign_baseline(self, tx: Transaction, baseline: Baseline) -> None:
        """Sign the header of the baseline with the key that signs, in the transaction that is open."""
        header = signed_header(baseline, self.signing_key)
        tx.run("sign_baseline", header, self.database.tenant)
        self.present_baseline()

    def archived_until(self) -> int:
        """Return the number of the last archived event; 0 if there is none."""
        with self.database.reading() as tx:
            found = tx.one("archived_until", self.database.tenant)
        last = found[0] if found and found[0] is not None else 0
        if not isinstance(last, int):
            raise self.damaged("the archive does not hold the events that it names", None)
        return last

    def sizes(self) -> Sizes:
        """Return the bytes of its parts."""
        with self.database.reading() as tx:
            found = tx.one("sizes", *[self.database.tenant] * 3)
        return Sizes(*(int(one or 0) for one in found or (0, 0, 0)))

    def vectors(self, model: str, dimension: int | None = None) -> Vectors:
        """Return the vectors of a model, by default with the dimension that the events state."""
        dimension = dimension or self.named.dimension_of(model) or 0
        found = self._vectors.get(model)
        if found is None or found.dimension != dimension:
            found = self._vectors[model] = Vectors(self.database, self.home / "cache", model, dimension, self.seal)
        return found

    def remove_unnamed_vectors(self) -> None:
        """Remove the vectors that no event names: what an unfinished change of the model has made."""
        with self.committing() as tx:
            for (model,) in list(tx.rows("models", self.database.tenant)):
                tx.run("remove_vectors_from", self.database.tenant, model, self.named.rows.get(model, 0))
                tx.run("remove_made_vectors", self.database.tenant, model)

    def has_changed(self) -> bool:
        """Tell, at the cost of one look-up, whether the journal no longer ends at the tail."""
        if self.database.is_forked:
            return True  # nothing that this process knows is to be kept
        with self.database.reading() as tx:
            return self._end_in(tx) != (self.tail.seq, self.tail.signature)

    def is_replaced(self) -> bool:
        """Tell, at the cost of one look-up, whether another event has the number of the tail, or the file is another: it was resealed or restored."""
        if self.database.is_put_aside():
            return True
        if not self.tail.seq:
            return False
        with self.database.reading() as tx:
            return self._signature_in(tx, self.tail.seq) != self.tail.signature

    def refresh(self) -> None:
        """Verify and read what was appended since. Raises `ReplacedJournalError` if it is another journal by now."""
        head = self._heads.read()  # before the events: a writer may append and move it meanwhile
        with self.database.reading() as tx:
            seq, _ = self._end_in(tx)
            here = self._signature_in(tx, self.tail.seq)
        if self.database.is_put_aside():
            raise self.replaced()
        if self.tail.seq and here != self.tail.signature:
            if seq >= self.tail.seq or here is not None:
                raise self.replaced()
            witness = "this process, which has it open,"
            raise TruncatedJournalError(path=self.path, seq=None, head_seq=self.tail.seq, witness=witness)
        self._read_on(seq)
        self._compare(head)

    def read_to_end(self) -> None:
        """Verify every event from the first, whatever the head and the head file state. If one is refused, `tail` is before its commit."""
        self.tail, self.named = self.start, NamedVectors()
        self.used = KeyHistory()
        self._key = self._ring.active if self._ring else None
        self._read_on(_AT_ANY_TIME)

    def _read_on(self, until: int) -> None:
        try:
            for commit in self._walk(self.tail, until):
                self._note(commit)
        except JournalError as error:
            raise self._explained(error) from None

    def named_by_head(self) -> Head | None:
        """Return what the head file states; None if there is none."""
        return self._heads.read()

    def _compare(self, head: Head | None) -> None:
        if head is None:
            self._adopt()
            return
        if self.tail.seq < head.seq:
            with (
                self.database.beside(),
                self.database.reading() as tx,
            ):  # this thread's block of reads may not see it yet
                end, _ = self._end_in(tx)
            if end < head.seq:
                witness = f"its head file {self._heads.path}"
                raise TruncatedJournalError(path=self.path, seq=self.tail.seq, head_seq=head.seq, witness=witness)
        if head.seq and self.signature_of(head.seq) not in (head.signature, None) and not self.was_resealed_at(head):
            if self._heads.read() != head:
                raise self.replaced()  # since its head file was read
            raise DamagedJournalError(
                "the head file names a different event with this number",
                path=self.path,
                seq=head.seq,
                advice="restore the journal and its head file from one backup or, to continue with this journal, run "
                "`memgraph repair --accept-head`",
            )
        if head.seq < self.tail.seq and self.holds_lock:
            self._write_head_file()

    def was_resealed_at(self, head: Head) -> bool:
        """Return whether a resealing continues what a head file states: it was killed before the file followed."""
        for line in self.every_line_of(JournalResealed.TYPE):
            if line.seq == head.seq + 1:
                payload = self.event(line).payload
                return isinstance(payload, JournalResealed) and payload.signature == head.signature
        return False

    def signature_of(self, seq: int) -> str | None:
        """Return the signature of an event; None if it is not there."""
        if seq == self.tail.seq:
            return self.tail.signature
        with self.database.reading() as tx:
            return self._signature_in(tx, seq)

    def _signature_in(self, tx: Transaction, seq: int) -> str | None:
        found = tx.one("signature_of", self.database.tenant, seq)
        if found is not None:
            return _hex(found[0])
        header = tx.one("baseline_header", self.database.tenant)  # it may be all there is of the events before it
        baseline = header_of(header[0], self.path, self.store_id, None) if header else None
        if baseline is not None and baseline.seq == seq:
            return baseline.chain.signature
        part = tx.one("archive_after", self.database.tenant, seq - 1)  # another process may have archived it
        lines = self._unpacked(*part) if part else []
        return next((line.signature.hex() for line in lines if line.seq == seq), None)

    def load(self) -> None:
        """Load the journal: by what its head states if the key that signs vouches for that, else event by event."""
        head = self.named_by_head()
        with self.database.reading() as tx:
            found = tx.one("head", self.database.tenant)
            last = tx.one("last_event", self.database.tenant)
            self.present_baseline()
        is_known = found is not None and self._take_head(*found)
        end = self._end_of(last)
        if is_known and end != (self.tail.seq, self.tail.signature):
            reason = f"it ends with event {end[0]}, its head names event {self.tail.seq}"
            raise self.damaged(reason, min(end[0], self.tail.seq) + 1)
        if not is_known:
            self.tail, self.named = self.base, self.baseline.named if self.baseline else NamedVectors()
            self._use(self.baseline.used if self.baseline else KeyHistory())
            self._read_on(end[0])
            if found is not None and self._ring and self.tail.seq and self._key is self._ring.active:
                self._notice("the head of the journal did not match it; all events were verified")
        self._check_baseline()
        self._compare(head)

    def _end_of(self, last: tuple[Any, ...] | None) -> tuple[int, str]:
        """Return the end of the journal, whose last event in the table is given; without one, the archive's, unless the baseline is all there is."""
        if last is not None:
            return last[0], _hex(last[1])
        seq = self.archived_until()
        return (seq, self.signature_of(seq) or "") if seq > self.base.seq else (self.base.seq, self.base.signature)

    def _take_head(self, seq: int, signature: bytes, body: bytes, code: str) -> bool:
        """Begin at the stored head, unless no active key vouches for what it states; return whether it does."""
        if not self._is_vouched(seq, signature, body, code):
            return False
        stated = orjson.loads(body)
        named = NamedVectors(**stated["named"])
        used = KeyHistory(tuple(KeyUse(**use) for use in stated["used"]))
        self.tail, self.named = Chain(self.store_id, seq, signature.hex(), stated["timestamp"]), named
        self._use(used)
        return True

    def _is_vouched(self, seq: int, signature: bytes, body: bytes, code: str) -> bool:
        active = self._ring.active if self._ring else None
        if active is None or not (isinstance(signature, bytes) and isinstance(body, bytes) and isinstance(code, str)):
            return False
        return hmac.compare_digest(self._code(active, seq, signature, body).encode(), code.encode())

    def _code(self, key: SigningKey, seq: int, signature: bytes, body: bytes) -> str:
        stated = b"\x1f".join((b"memgraph head", self.store_id.encode(), str(seq).encode(), signature, body))
        return hmac.digest(key.secret, stated, "sha256").hex()

    # writing

    @property
    def is_read_only(self) -> bool:
        """Whether the journal cannot be written, because the key is missing or the system refuses it."""
        return self._key is None or self.refused_writes() is not None

    def refused_writes(self) -> str | None:
        """Return a message that names a file or folder that may not be written, and why; None if there is none."""
        return self.database.refused

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the writer lock; on entry the journal is read to its end, or `BusyError`, `JournalError`, `KeyMissingError` or `ReadOnlyError` is raised."""
        if self._ring is None:
            _ = self.signing_key
        if refused := self.refused_writes():
            raise ReadOnlyError(refused)
        self._lock.acquire(self.lock_timeout_s)
        self.holds_lock = True
        try:
            with self.database.reading():
                self.refresh()
                _ = self.signing_key  # another process may have rotated to one that is missing here
                self.present_baseline()  # a compaction or a purge by another process may have replaced it since it was read
                self._check_baseline()
                is_other_head = self.has_changed()
            if is_other_head:  # one that was not believed, of events that are verified
                with self.committing() as tx:
                    self.put_head(tx)
            yield
        finally:
            self.holds_lock = False
            self._lock.release()

    @contextmanager
    def committing(self) -> Iterator[Transaction]:
        """Write in one transaction: events, and what is made of them; if it fails, all is as before. The lock must be held. Nests."""
        if not self.holds_lock:
            raise JournalError("append needs the writer lock: call it inside `with journal.locked()`")
        before = self.tail, self.named, self.used, self._key, self.baseline, self._purged
        self._in_commit += 1
        try:
            with self.database.writing(self.lock_timeout_s) as tx:
                yield tx
        except BaseException as error:
            self.tail, self.named, self.used, self._key, self.baseline, self._purged = before
            for vectors in self._vectors.values():
                vectors.forget()  # they may have been read meanwhile
            if isinstance(error, FullDatabaseError):
                self.on_full()
            raise
        finally:
            self._in_commit -= 1
        if not self._in_commit and self.tail is not before[0]:
            self._write_head_file()

    def append(self, drafts: Sequence[CommitDraft], now: str) -> list[Committed]:
        """Append commits in one transaction, or in the one that is open; the lock must be held. Returns those that contain events."""
        drafts = [draft for draft in drafts if draft.payloads]
        with self.committing() as tx:
            # the fence: what is continued is what the database holds
            if self._end_in(tx) != (self.tail.seq, self.tail.signature):
                raise JournalError(
                    f"{self.path}: another process has written although this one has the lock; try again"
                )
            time = max(now, self.tail.timestamp)
            sealed = seal(drafts, self.tail, self.signing_key, time)
            self.appended += 1
            self.put(tx, sealed.lines)
            commits, start = [], 0
            for draft in drafts:
                events = tuple(sealed.events[start : start + len(draft.payloads)])
                commits.append(Committed(events, sealed.chain))  # they become visible together
                start += len(events)
            for commit in commits:
                self._note(commit)
            self.put_head(tx)
        return commits

    def continue_at(self, chain: Chain, used: KeyHistory) -> None:
        """Continue at the end of a chain that was signed anew, in the transaction that is open."""
        self.tail = chain
        self._use(used)

    def put(self, tx: Transaction, lines: Iterable[Line]) -> None:
        """Add lines to the table of events."""
        tenant = self.database.tenant
        tx.many(
            "add_event",
            ((tenant, line.seq, line.type, line.head, line.payload, line.salt, line.signature) for line in lines),
        )

    def put_head(self, tx: Transaction) -> None:
        """State that the journal ends at the tail."""
        signature = bytes.fromhex(self.tail.signature)
        body = canonical(
            {
                "timestamp": self.tail.timestamp,
                "named": asdict(self.named),
                "used": [asdict(use) for use in self.used.uses],
            }
        )
        code = self._code(self.signing_key, self.tail.seq, signature, body)
        tx.run("put_head", self.database.tenant, self.tail.seq, signature, body, code)

    def _end_in(self, tx: Transaction) -> tuple[int, str]:
        found = tx.one("head_of_chain", self.database.tenant)
        return (found[0], _hex(found[1])) if found and isinstance(found[0], int) else (0, self.start.signature)

    def _note(self, commit: Committed) -> None:
        self.tail = commit.after
        for event in commit.events:
            self.named = self.named.after(event.payload)
            self._use(self.used.after(event))
            if isinstance(event.payload, MemoryPurged):
                self._purged |= frozenset(event.payload.seqs())

    def _use(self, used: KeyHistory) -> None:
        """Sign with the key that the journal names from now on, whichever the provider has as its active one."""
        if used is not self.used:
            self.used = used
            self._key = self._ring.find(used.current) if self._ring and used.current else self._key

    def _write_head_file(self) -> None:
        """Update the head file. The commit is already durable, so a failure must not make it look failed."""
        try:
            self._heads.write(Head(self.tail.seq, self.tail.signature))
        except StorageError as error:
            logger.warning("store %s: %s", self.store_id, error)

    def make_head_file(self) -> None:
        """Make the head file of a new store, before its first event: else a process killed in between would leave a journal to adopt."""
        self._heads.make(Head(self.tail.seq, self.tail.signature))

    def _adopt(self) -> None:
        """Create the missing head file, and report it once."""
        if self.tail.seq == 0 or self._is_adopted:
            return
        self._is_adopted = True
        if self._key is not None:
            try:
                self.make_head_file()
            except StorageError as error:
                logger.warning("store %s: %s", self.store_id, error)
        self._notice(
            f"adopted a journal of {self.tail.seq} events that had no head file: a truncation before now would go unnoticed"
        )

    def _explained(self, error: JournalError) -> JournalError:
        """Return the error of a refused event, which is reported unless the journal was replaced."""
        found = self._unless_replaced(error)
        if found is error:
            self.on_refused(error)
        return found

    def _unless_replaced(self, error: JournalError) -> JournalError:
        """Return the error of a refused event: nobody has forged anything if the journal was replaced while it was read."""
        return self.replaced() if self.is_replaced() else error

    def replaced(self) -> ReplacedJournalError:
        """Return the error of who works on a journal that was replaced."""
        return ReplacedJournalError(
            f"the journal in {self.path} was replaced (resealed or restored from a backup) while this process had it open; "
            "open the store again"
        )

    def _warn_if_unverified(self) -> None:
        """Log an error, each time that events are read although nothing proves who wrote them."""
        if self._ring is None:
            logger.error(
                "store %s: its events are read without verifying their signatures (setting allow_unsigned_replay): they may "
                "have been forged",
                self.store_id,
            )
            self.on_unverified()

    def _notice(self, text: str) -> None:
        logger.warning("store %s: %s", self.store_id, text)
        self.notices.append(text)

    def close(self) -> None:
        """Save the caches of vectors, and close the database."""
        for vectors in self._vectors.values():
            vectors.save()
        self.database.close()


def _hex(signature: object) -> str:
    """Return a stored signature in hexadecimal; of anything else nothing that is one."""
    return signature.hex() if isinstance(signature, bytes) else ""
