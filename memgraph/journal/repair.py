"""Accepts a journal that its head file, its checkpoint or the manifest of its closed segments contradicts.

Nothing else is repaired: a journal whose own lines do not verify is refused here too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from memgraph.errors import DamagedJournalError, JournalError, KeyMissingError, TruncatedJournalError
from memgraph.journal.checkpoint import Checkpoint, read_checkpoint
from memgraph.journal.envelope import CommitDraft
from memgraph.journal.head_file import Head, HeadFile
from memgraph.journal.journal import Journal
from memgraph.journal.keys.ring import KeyHistory, KeyRing
from memgraph.journal.opening import lost_journal, made_from_events, with_all_missing
from memgraph.journal.replay import Committed
from memgraph.journal.vectors.vector_file import NamedVectors
from memgraph.model.events.payload import MAX_WHOLE, Payload
from memgraph.model.events.store import AcceptedWitness, JournalRepaired, StoreCreated
from memgraph.ports import SigningKey

WitnessKind = Literal["head", "checkpoint", "manifest"]
WitnessState = Literal["agrees", "missing", "damaged", "ahead", "other"]


@dataclass(frozen=True, slots=True)
class Witness:
    """What the head file, the checkpoint or the manifest of closed segments states about the journal.

    Attributes
    ----------
    state : {"agrees", "missing", "damaged", "ahead", "other"}
        "agrees": it names the last or an earlier event of this journal; "ahead": it names an event after the journal's end;
        "other": it names a different event of the same number, or a segment that ends with this event and has other bytes.
    seq, signature : int, str, optional
        The event it names.
    """

    kind: WitnessKind
    path: Path
    state: WitnessState
    seq: int | None = None
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of a journal: its end, what its witnesses state, and a torn final commit.

    Attributes
    ----------
    seq, signature : int, str
        The last event of the last whole commit.
    torn_events, torn_bytes : int
        Size of a torn final commit after it.
    named, used : NamedVectors, KeyHistory
        What the events state about vectors, and which keys signed them.
    """

    folder: Path
    seq: int
    signature: str
    witnesses: tuple[Witness, ...]
    torn_events: int = 0
    torn_bytes: int = 0
    named: NamedVectors = field(default_factory=NamedVectors)
    used: KeyHistory = field(default_factory=KeyHistory)

    @property
    def contradicting(self) -> tuple[Witness, ...]:
        """The witnesses that an acceptance would correct."""
        return tuple(witness for witness in self.witnesses if witness.state != "agrees")

    @property
    def lost(self) -> range:
        """Numbers of the events that are known to have been written and are missing."""
        named = [witness.seq for witness in self.contradicting if witness.state == "ahead" and witness.seq is not None]
        return range(self.seq + 1, max(named, default=self.seq) + 1)


def examine(
    home: Path, store_id: str, ring: KeyRing | SigningKey, *, keys_home: Path, by_checkpoint: bool = False
) -> Condition:
    """Verify a journal regardless of its witnesses, and change nothing.

    Parameters
    ----------
    by_checkpoint : bool
        Trust a matching checkpoint, as opening does; otherwise verify every event.

    Raises
    ------
    JournalError
        The journal's own lines do not verify, or it holds no events while files made from events exist.
    """
    made = made_from_events(home)
    found = _examined(Unwitnessed(home, store_id, ring, keys_home=keys_home), by_checkpoint=by_checkpoint)
    if made and found.seq == 0 and not found.contradicting:
        raise lost_journal(home, made)
    return found


def as_it_is(home: Path, store_id: str, ring: KeyRing | SigningKey, *, keys_home: Path) -> Journal:
    """Return a journal for reading regardless of its witnesses; change nothing.

    Raises
    ------
    JournalError
        The journal's own lines do not verify.
    """
    journal = Unwitnessed(home, store_id, ring, keys_home=keys_home)
    journal.load_to_end(by_checkpoint=True)
    return journal


def accept(
    home: Path,
    store_id: str,
    ring: KeyRing | SigningKey,
    *,
    keys_home: Path,
    expected: Condition,
    now: Callable[[], str],
    accepted_by: str,
    reason: str | None = None,
    lock_timeout_s: float = 10.0,
) -> Condition:
    """Record that the journal is accepted as it is, update its witnesses to its end, and return its new condition.

    The record is written first: after a crash between the two steps the journal is refused as before, and the same call
    accepts it.

    Parameters
    ----------
    expected : Condition
        What `examine` found before; if the journal has changed since, nothing is done.

    Raises
    ------
    JournalError
        The journal's own lines do not verify, or its condition is not the expected one.
    """
    journal = Unwitnessed(home, store_id, ring, keys_home=keys_home, lock_timeout_s=lock_timeout_s)
    found = _examined(journal)
    if found != expected:
        raise _changed(journal)
    if not found.contradicting:
        raise JournalError(f"the journal under {journal.folder} matches its head file: there is nothing to accept")
    with journal.locked():  # which also removes a torn final commit
        if journal.tail.chain.seq != found.seq or journal.witnesses() != found.witnesses:
            raise _changed(journal)
        time = max(now(), journal.tail.chain.timestamp)
        record = record_of(found, time, accepted_by, reason)
        first: list[Payload] = [] if found.seq else [StoreCreated(created_by=accepted_by)]
        journal.append([CommitDraft("system", [*first, record], actor="user")], time)
        end = journal.tail.chain
        journal.head_file.replace(Head(end.seq, end.signature))
        settle(journal, found)
        return journal.condition()


def settle(journal: Unwitnessed, found: Condition) -> None:
    """Remove a checkpoint that contradicts the journal, and write the manifest of its closed segments anew. Needs the lock."""
    for witness in found.contradicting:
        if witness.kind == "checkpoint":
            witness.path.unlink(missing_ok=True)  # the next opening verifies everything and writes another
    journal.name_closed_anew()


class _NoHead(HeadFile):
    """A head file that is neither read nor written."""

    def read(self) -> Head | None:
        return None

    def write(self, head: Head) -> None:
        """Write nothing."""


class Unwitnessed(Journal):
    """A journal opened regardless of its head file and checkpoint, which are compared but neither trusted nor written."""

    def __init__(
        self,
        home: Path,
        store_id: str,
        ring: KeyRing | SigningKey,
        *,
        keys_home: Path,
        lock_timeout_s: float = 10.0,
    ) -> None:
        ring = KeyRing.of(ring) if isinstance(ring, SigningKey) else ring
        super().__init__(home, store_id, ring, keys_home=keys_home, lock_timeout_s=lock_timeout_s)
        self.head_file = self._heads
        self._heads = _NoHead(keys_home, store_id)
        self._active_key = ring.active
        self._signatures: dict[int, str] = {}
        self._before: tuple[Head | None, Checkpoint | None] = None, None
        """What the witnesses said before the journal was read."""
        self._wanted: set[int] = set()

    def checkpoint(self) -> None:
        """Write nothing."""

    def name_closed(self) -> None:
        """Write nothing."""

    def name_closed_anew(self) -> None:
        """Write the manifest of closed segments as the journal was verified, whatever it says; the lock must be held."""
        self.closed.renew(self._digest, self.signing_key, self.used.between)

    def load_to_end(self, *, by_checkpoint: bool) -> None:
        """Verify everything up to the end, keeping the signatures of the events that the witnesses name."""
        # before the lines: a writer may append and move them meanwhile
        head, checkpoint = self._before = self._named_by_head(), self._named_by_checkpoint()
        self.closed.read(self.ring.find)
        self._wanted = {head.seq if head else 0, checkpoint.chain.seq if checkpoint else 0}
        try:
            if by_checkpoint and checkpoint is not None and head is not None and head.can_follow(checkpoint.chain):
                self._signatures[checkpoint.chain.seq] = checkpoint.chain.signature
                with suppress(TruncatedJournalError):  # the checkpoint is ahead: the comparison reports it
                    self.load()
            else:
                self.refresh()
                self.condensed.contents()  # now it is known which key must have signed the proof
        except KeyMissingError as error:
            raise with_all_missing(error, self.folder, self.ring) from None

    def condition(self) -> Condition:
        """Return the journal's condition."""
        end = self.tail.chain
        self._signatures[end.seq] = end.signature
        return Condition(
            self.folder, end.seq, end.signature, self.witnesses(), *self.torn_tail(), self.named, self.used
        )

    def witnesses(self) -> tuple[Witness, ...]:
        """Compare the witnesses with the journal up to its tail: as they were before it was read or, with the lock held, as they are."""
        head, checkpoint = self._before
        if self.holds_lock:
            head, checkpoint = self._named_by_head(), self._named_by_checkpoint()
            self.closed.read(self.ring.find)
        stated = Head(checkpoint.chain.seq, checkpoint.chain.signature) if checkpoint else None
        found = [self._compared("head", self.head_file.path, head)]
        if stated is not None:  # a missing checkpoint proves nothing and loses nothing
            found.append(self._compared("checkpoint", self._checkpoint_path, stated))
        if self.closed.path.exists():  # a missing one is completed
            found.append(self._compared_manifest())
        return tuple(found)

    def _adopt(self) -> None:
        """Do nothing: no head file is created."""

    def _take_over_baseline(self) -> None:
        """Do nothing: all events are read, whatever a baseline says."""

    def _check_closed(self) -> None:
        """Do nothing: the manifest is one of the witnesses."""

    def _compared_manifest(self) -> Witness:
        end, path = self.tail.chain.seq, self.closed.path
        try:
            differing = self.closed.check(self._digest, end)
        except TruncatedJournalError as error:
            return Witness("manifest", path, "ahead", error.head_seq)
        except DamagedJournalError:
            return Witness("manifest", path, "damaged")
        if differing:
            return Witness("manifest", path, "other", self.closed.manifest.named()[differing[0]].last_seq)
        return Witness("manifest", path, "agrees")

    def _named_by_checkpoint(self) -> Checkpoint | None:
        return read_checkpoint(self._checkpoint_path, self._active_key, self.store_id) if self._active_key else None

    def _named_by_head(self) -> Head | None:
        try:
            head = self.head_file.read()
        except JournalError:
            return None
        return head if head is None or head.seq <= MAX_WHOLE else None

    def _compared(self, kind: WitnessKind, path: Path, named: Head | None) -> Witness:
        if named is None:
            if self.tail.chain.seq == 0 and not path.exists():
                return Witness(kind, path, "agrees")
            return Witness(kind, path, "damaged" if path.exists() else "missing")
        signature = bytes.fromhex(named.signature).hex()
        if named.seq > self.tail.chain.seq:
            state: WitnessState = "ahead"
        else:
            state = "agrees" if named.seq == 0 or self._signatures.get(named.seq) == signature else "other"
        return Witness(kind, path, state, named.seq, signature)

    def _take(self, commit: Committed, head: Head | None) -> None:
        self._signatures |= {event.seq: event.signature for event in commit.events if event.seq in self._wanted}
        end = commit.after.chain  # its last event may be purged
        self._signatures |= {end.seq: end.signature} if end.seq in self._wanted else {}
        super()._take(commit, head)


def _examined(journal: Unwitnessed, *, by_checkpoint: bool = False) -> Condition:
    journal.load_to_end(by_checkpoint=by_checkpoint)
    return journal.condition()


def _changed(journal: Journal) -> JournalError:
    return JournalError(f"the journal under {journal.folder} has changed in the meantime; run `memgraph repair` again")


def record_of(found: Condition, now: str, accepted_by: str, reason: str | None) -> JournalRepaired:
    """Return the record of an acceptance."""
    return JournalRepaired(
        seq=found.seq,
        signature=found.signature,
        witnesses=[
            AcceptedWitness(kind=witness.kind, state=witness.state, seq=witness.seq, signature=witness.signature)
            for witness in found.contradicting
            if witness.state != "agrees"
        ],
        events_lost=len(found.lost),
        dropped_bytes=found.torn_bytes,
        repaired_at=now,
        repaired_by=accepted_by,
        reason=reason,
    )
