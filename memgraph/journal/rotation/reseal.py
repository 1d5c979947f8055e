"""Resealing: the whole history is verified, and signed anew with the present key."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from memgraph.disk.files import free_bytes, make_own, sync_data, write_all
from memgraph.errors import JournalError, StorageError
from memgraph.journal import swap
from memgraph.journal.baseline.header import HEADER, header_document
from memgraph.journal.closed.closing import segments_in
from memgraph.journal.closed.condensed import NAME as CONDENSED
from memgraph.journal.closed.digest import JournalDigest
from memgraph.journal.closed.manifest import NAME as MANIFEST
from memgraph.journal.closed.manifest import manifest_document
from memgraph.journal.envelope import Chain, CommitDraft, is_unsigned, resealed, seal
from memgraph.journal.head_file import Head
from memgraph.journal.journal import Journal
from memgraph.journal.keys.ring import KeyHistory, KeyUse
from memgraph.journal.segments import RESERVE_BYTES, Line, Position
from memgraph.model.events.store import JournalResealed
from memgraph.ports import Progress


@dataclass(frozen=True, slots=True)
class Resealed:
    """What a resealing did: the event that records it, and its number."""

    event: JournalResealed
    seq: int


def reseal(
    journal: Journal,
    *,
    keys_home: Path,
    now: Callable[[], str],
    resealed_by: str,
    progress: Progress | None = None,
) -> Resealed:
    """Verify all events with the keys that signed them, and sign them anew with the present key.

    What the events say does not change: payloads, salts, numbers and times stay byte for byte. The head of the former chain is kept in a
    last event. Takes the time of two verifications, and as much disk space as the journal. A crash leaves the former
    journal or leads to the new one. Projections are built anew afterwards, and the given object can no longer be used.

    Raises
    ------
    JournalError
        The journal does not verify, or all of it is signed with the present key already.
    StorageError
        The disk has too little room, or the system refuses.
    """
    with journal.locked():
        if len(journal.used.uses) < 2:
            raise JournalError("all events of the journal are signed with the present key: there is nothing to reseal")
        key = journal.signing_key
        journal.verify(progress)
        place = swap.staging(journal.folder)
        _check_room(journal, place)
        writer = _Writer(place)
        chain, before = Chain(journal.store_id), hashlib.sha256()
        baseline = journal.baseline
        for line in journal.every_line(journal.start.position):
            before.update(line.data + b"\n")
            if line.is_proven and is_unsigned(line.data):  # it stays as it is
                data, chain = line.data + b"\n", _after(line.data)
            else:
                data, chain = resealed(line.data, chain, key)
            writer.write(line, data)
            if baseline is not None and chain.seq == baseline.seq:
                baseline = replace(baseline, chain=chain, position=writer.end)
        event = JournalResealed(
            seq=journal.tail.chain.seq,
            signature=journal.tail.chain.signature,
            sha256=before.hexdigest(),
            key_id=key.key_id,
            freed_key_ids=list(dict.fromkeys(use.key_id for use in journal.used.uses[:-1])),
            resealed_by=resealed_by,
        )
        draft = CommitDraft("system", [event], actor="user")
        last = seal([draft], chain, key, max(now(), chain.timestamp))
        writer.write(None, last.data)
        writer.close()
        closed = segments_in(writer.digest, lambda _first, _last: [key.key_id])
        files = {MANIFEST: manifest_document(journal.store_id, closed, key)}
        if (proof := journal.condensed.signed_with(key)) is not None:
            files[CONDENSED] = proof
        if baseline is not None:
            uses = (KeyUse(key.key_id, 1, baseline.chain.timestamp),)
            files[HEADER] = header_document(replace(baseline, used=KeyHistory(uses)), [key])
        head = Head(last.chain.seq, last.chain.signature)
        swap.plan(journal.folder, journal.store_id, key, head=head, files=files)
        swap.complete(journal.folder, journal.store_id, journal.ring, keys_home=keys_home)
        return Resealed(event, last.chain.seq)


def _after(line: bytes) -> Chain:
    """Return the end of the chain after a verified line that is not signed again."""
    envelope = orjson.loads(line)
    head = envelope["head"]
    return Chain(head["store_id"], head["seq"], envelope["signature"], head["timestamp"])


class _Writer:
    """Writes the new segments, divided as the former ones, each synced when it is done; none is compressed."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._name, self._size = "", 0
        self._descriptor: int | None = None
        self.digest = JournalDigest()

    def write(self, line: Line | None, data: bytes) -> None:
        """Write one line in place of a former one; without that, to the last segment."""
        try:
            if line is not None and line.start.segment != self._name:
                self.close()
                self._name, self._size = line.start.segment, 0
                self._descriptor = make_own(self._place / self._name)
            if self._descriptor is None:
                raise JournalError(f"the journal under {self._place.parent} has no events")
            write_all(self._descriptor, data)
            self._size += len(data)
            self.digest.add(self._name, data)
        except OSError as error:
            raise StorageError(
                f"nothing was resealed: {error.strerror}; free some disk space and try again", path=self._place
            ) from None

    @property
    def end(self) -> Position:
        """The end of what was written."""
        return Position(self._name, self._size)

    def close(self) -> None:
        """Sync and close the segment."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            try:
                sync_data(descriptor)
            finally:
                os.close(descriptor)


def _check_room(journal: Journal, place: Path) -> None:
    needed = sum(map(journal.segments.size, journal.segments.names())) * 5 // 4 + RESERVE_BYTES
    if (free := free_bytes(place / "file")) < needed:
        raise StorageError(
            f"nothing was resealed: there is room for {free / 1e6:,.0f} MB, and {needed / 1e6:,.0f} MB are needed; free some "
            "disk space and try again",
            path=place,
        )
