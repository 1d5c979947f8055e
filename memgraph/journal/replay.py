"""Replay: turns lines into verified commits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from memgraph.errors import DamagedJournalError, KeyMissingError
from memgraph.journal.envelope import Chain, Event, ForeignKeyError, LineError, unseal
from memgraph.journal.segments import Line, Position, Segments
from memgraph.ports import SigningKey


@dataclass(frozen=True, slots=True)
class Offset:
    """A point of the journal between two commits: the end of the chain there and the position in the files."""

    chain: Chain
    position: Position


@dataclass(frozen=True, slots=True)
class Committed:
    """The events of one whole commit, and the point after them."""

    events: tuple[Event, ...]
    after: Offset
    data: bytes = field(default=b"", repr=False)


def walk(segments: Segments, after: Offset, key: SigningKey | None) -> Iterator[Committed | Line]:
    """Yield whole commits after a point, then the first line of an incomplete final commit if there is one.

    Raises
    ------
    DamagedJournalError
        A line is not what was signed, or does not follow the chain.
    KeyMissingError
        The very first event was signed with another key.
    """
    chain, first = after.chain, None
    run: list[Event] = []
    data: list[bytes] = []
    for line in segments.lines(after.position):
        first = first or line
        if not line.whole:
            if line.end.segment != segments.last():
                raise damaged(segments, "a line has no end, and others follow", line.start, chain.seq + 1)
            yield first
            return
        try:
            event, chain = unseal(line.data, chain, key)
        except LineError as error:
            if isinstance(error, ForeignKeyError) and chain.seq == 0:
                # even the first event: the key is wrong, not the journal
                raise KeyMissingError(
                    f"the journal at {segments.folder} is not this key's: {error}; restore the store's own key, or set "
                    "MEMGRAPH_KEY to it"
                ) from None
            raise damaged(segments, str(error), line.start, chain.seq + 1) from None
        if run and event.commit_id != run[0].commit_id:
            raise damaged(segments, "a commit has no end", line.start, event.seq)
        run.append(event)
        data.append(line.data + b"\n")
        if event.last:
            yield Committed(tuple(run), Offset(chain, line.end), b"".join(data))
            run, data, first = [], [], None
    if first is not None:
        yield first


def damaged(segments: Segments, reason: str, position: Position, seq: int | None) -> DamagedJournalError:
    """Return the error for damage at a position."""
    return DamagedJournalError(reason, path=segments.path(position), offset=position.offset, seq=seq)
