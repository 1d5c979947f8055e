"""Parts of the archive: consecutive events before the baseline, compressed into one row."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence

import orjson

from memgraph.journal.envelope import Line, LineError, parsed


def archive_row(lines: Sequence[Line]) -> tuple[int, int, str, bytes]:
    """Return the row of a part: first and last event, their types, and their lines."""
    return lines[0].seq, lines[-1].seq, orjson.dumps(_types(lines)).decode(), packed(lines)


def packed(lines: Iterable[Line]) -> bytes:
    """Return events as an archive holds them: lines of canonical JSON, compressed."""
    return zlib.compress(b"".join(line.data + b"\n" for line in lines), 6)


def unpacked(first: int, last: int, types: str, body: bytes) -> list[Line]:
    """Return the lines of a part, which must be what its row says. Raises `LineError`."""
    try:
        lines = [parsed(data) for data in zlib.decompress(body).splitlines()]
        said = first, last, orjson.loads(types)
    except (zlib.error, LineError, TypeError, ValueError) as error:
        raise LineError(f"an archived event cannot be read: {error}") from None
    if not lines or said != (lines[0].seq, lines[-1].seq, _types(lines)):
        raise LineError("the archive does not hold the events that it names")
    return lines


def _types(lines: Iterable[Line]) -> list[str]:
    return sorted({line.type for line in lines})
