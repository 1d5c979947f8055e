"""Which events of a journal are purged, by its own ``memory.purged`` events.

A line without a payload that none of them names is damage.
"""

from __future__ import annotations

from collections.abc import Iterator

from memgraph.errors import StorageError
from memgraph.journal.closed.files import held
from memgraph.journal.envelope import BEGINNING_BYTES, Event, KeyOf, is_unsigned
from memgraph.journal.segments import Line, Position, Segments, event_of
from memgraph.model.events.store import MemoryPurged

_MARK = b'"type":"%b","write_scope"' % MemoryPurged.TYPE.encode()
"""As it stands in a line's head; text in a payload cannot imitate it, because its quotation marks are escaped."""


class PurgedSeqs:
    """The sequence numbers of the purged events. The files are searched when an unknown one is asked for."""

    def __init__(self, segments: Segments, store_id: str, key: KeyOf | None) -> None:
        self._segments = segments
        self._store_id = store_id
        self._key = key
        self._seqs: set[int] = set()

    def __contains__(self, seq: object) -> bool:
        """Return whether a ``memory.purged`` event names this event.

        Raises
        ------
        LineError
            A ``memory.purged`` event is not what was signed.
        """
        return seq in self._seqs or seq in self.read()

    def read(self) -> set[int]:
        """Return all of them, as the files state now."""
        self._seqs = {one for event in self.events() for one in event.payload.seqs()}  # type: ignore[attr-defined]
        return self._seqs

    def events(self) -> Iterator[Event]:
        """Iterate over the ``memory.purged`` events, each verified on its own."""
        for name in self._segments.names():
            for line in _marked(self._segments, name):
                event = event_of(line, self._store_id, self._key)
                if isinstance(event.payload, MemoryPurged):
                    yield event


def _marked(segments: Segments, name: str) -> Iterator[Line]:
    """Yield the whole lines of a segment that have the mark."""
    try:
        with held(segments.folder, name) as data:
            at = data.find(_MARK)
            if at >= 0 and is_unsigned(data[:BEGINNING_BYTES]):  # a condensed segment, which is proven as a whole
                yield from (line for line in segments.lines_in(name) if _MARK in line.data)
                return
            while at >= 0:
                start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
                if end < 0:
                    return  # the line is being written, or torn
                yield Line(data[start:end], Position(name, start), Position(name, end + 1), whole=True)
                at = data.find(_MARK, end)
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", path=segments.path(Position(name, 0))) from None
