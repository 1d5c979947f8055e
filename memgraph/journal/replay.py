"""Replay: turns lines into verified commits."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from memgraph.errors import DamagedJournalError, KeyMissingError
from memgraph.journal.closed.condensed import UNPROVEN
from memgraph.journal.envelope import (
    Chain,
    Event,
    ForeignKeyError,
    LineError,
    SignatureError,
    UnknownEnvelopeError,
    is_unsigned,
    unseal,
)
from memgraph.journal.keys.ring import KeyHistory, KeyRing
from memgraph.journal.purge.lines import is_purged, unseal_purged
from memgraph.journal.segments import Line, Position, Segments
from memgraph.ports import SigningKey


@dataclass(frozen=True, slots=True)
class Offset:
    """A point of the journal between two commits: the end of the chain there and the position in the files."""

    chain: Chain
    position: Position


@dataclass(frozen=True, slots=True)
class Committed:
    """The events of one whole commit, without purged ones, and the point after them."""

    events: tuple[Event, ...]
    after: Offset
    data: bytes = field(default=b"", repr=False)


def walk(
    segments: Segments, after: Offset, ring: KeyRing | None, history: KeyHistory, purged: Container[int]
) -> Iterator[Committed | Line]:
    """Yield whole commits after a point, then the first line of an incomplete final commit if there is one.

    Each event must be signed with the key that is in use there: a replaced key signs nothing after its replacement. An unsigned line counts
    only if its segment is proven.

    Parameters
    ----------
    ring : KeyRing or None
        If None, no signature is verified.
    history : KeyHistory
        Which key signed what, at least up to the point.
    purged : container of int
        The events that may be without their payload.

    Raises
    ------
    DamagedJournalError
        A line is not what was signed, or does not follow the chain.
    KeyMissingError
        The very first event was signed with another key, or a key that an event names by right is missing.
    """
    chain, first = after.chain, None
    whole_history, history = history, history.until(chain.seq + 1)

    def key_of(key_id: str) -> SigningKey:
        assert ring is not None  # noqa: S101 - then it is not called
        return ring.verifying(key_id, history.current)

    run: list[Event] = []
    commit_id: str | None = None
    data: list[bytes] = []
    for line in segments.lines(after.position):
        first = first or line
        if not line.whole:
            if line.end.segment != segments.last():
                raise damaged(segments, "a line has no end, and others follow", line.start, chain.seq + 1)
            yield first
            return
        event: Event | None = None
        unsigned = is_unsigned(line.data)
        key = key_of if ring and not unsigned else None
        try:
            if ring and unsigned and not line.is_proven:
                raise LineError(UNPROVEN)
            if is_purged(line.data):
                head, after_it = unseal_purged(line.data, chain, key)
                if head.seq not in purged:
                    raise LineError("the payload is missing and no purge names it")
                chain, here, is_last = after_it, head.commit_id, head.last
            else:
                event, chain = unseal(line.data, chain, key)
                here, is_last = event.commit_id, event.last
        except LineError as error:
            if isinstance(error, ForeignKeyError) and (chain.seq == 0 or error.missing):
                # even the first event: the key is wrong, not the journal
                raise KeyMissingError(
                    f"the journal at {segments.folder} is not this key's: {error}"
                    + (f"; {ring.remedy}" if ring else ""),
                    key_id=error.missing,
                ) from None
            refused = damaged(segments, str(error), line.start, chain.seq + 1)
            refused.concerns_signature = isinstance(error, SignatureError)
            refused.concerns_envelope = isinstance(error, UnknownEnvelopeError)
            raise refused from None
        if commit_id not in (None, here):
            raise damaged(segments, "a commit has no end", line.start, chain.seq)
        commit_id = here
        if unsigned:  # its rotations were verified before it was condensed
            history = whole_history.until(chain.seq + 1)
        if event is not None:
            history = history if unsigned else history.after(event)
            run.append(event)
        data.append(line.data + b"\n")
        if is_last:
            yield Committed(tuple(run), Offset(chain, line.end), b"".join(data))
            run, data, first, commit_id = [], [], None, None
    if first is not None:
        yield first


def damaged(segments: Segments, reason: str, position: Position, seq: int | None) -> DamagedJournalError:
    """Return the error for damage at a position."""
    return DamagedJournalError(reason, path=segments.path(position), offset=position.offset, seq=seq)
