"""Removes payloads from a journal's segments, and zeroes the rows of their vectors.

Every file is replaced as a whole, so it has the old content or the new, also after a power cut. A line keeps its length, so positions
in the journal stay valid for everyone who has it open. Repeating it changes nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence

from memgraph.errors import JournalError, StorageError
from memgraph.journal.closed.files import first_seq_of, read_all, remove_shadowed, replace
from memgraph.journal.envelope import is_unsigned
from memgraph.journal.purge.lines import is_purged, purged_line, seq_of
from memgraph.journal.purge.purged import PurgedSeqs
from memgraph.journal.segments import Segments
from memgraph.journal.vectors.vector_file import VectorFile
from memgraph.ports import SigningKey


def rewrite_segments(segments: Segments, seqs: set[int], key: SigningKey) -> None:
    """Remove the payloads and salts of events, and what else is left of their segments. The caller holds the writer lock.

    Parameters
    ----------
    key : SigningKey
        The journal's, which proves the new content of a condensed segment.

    Raises
    ------
    StorageError
        A file cannot be read or replaced.
    """
    remove_shadowed(segments.folder)
    for name in segments_of(segments, seqs):
        data = read_all(segments.folder, name)
        new = b"\n".join(purged_line(line) if _is_meant(line, seqs) else line for line in data.split(b"\n"))
        if new != data and segments.condensed is not None and is_unsigned(data):
            segments.condensed.replace(name, data, new, [key])
        elif new != data:
            replace(segments.folder, name, new)


def check_rewritable(segments: Segments, seqs: set[int]) -> None:
    """Refuse to rewrite segments whose unsigned lines are not proven: what is forged would be proven afterwards.

    Raises
    ------
    DamagedJournalError
        A condensed segment is not what was proven.
    StorageError
        A file cannot be read.
    """
    for name in segments_of(segments, seqs):
        if segments.condensed is not None:
            segments.condensed.check(name, read_all(segments.folder, name))


def sha256_of(segments: Segments, name: str, size: int | None = None) -> tuple[int, str]:
    """Return the size of a segment and its SHA-256, uncompressed, or those of its first bytes.

    Raises
    ------
    StorageError
        The file cannot be read.
    """
    data = read_all(segments.folder, name)[:size]
    return len(data), hashlib.sha256(data).hexdigest()


def segments_of(segments: Segments, seqs: set[int]) -> list[str]:
    """Return the names of the segments that hold some of these events."""
    names = segments.names()
    firsts = list(map(first_seq_of, names))
    ends: Sequence[float] = [*firsts[1:], float("inf")]
    return [
        name for name, first, end in zip(names, firsts, ends, strict=True) if any(first <= seq < end for seq in seqs)
    ]


def left_in(segments: Segments, seqs: set[int]) -> list[int]:
    """Return those of these events that still have a payload.

    Raises
    ------
    StorageError
        A file cannot be read.
    """
    found = []
    for name in segments_of(segments, seqs):
        lines = read_all(segments.folder, name).split(b"\n")
        found += [seq_of(line) for line in lines if _is_meant(line, seqs) and not is_purged(line)]
    return found


def check_purges(segments: Segments, purged: PurgedSeqs) -> None:
    """Check that no purged event has a payload.

    Raises
    ------
    JournalError
        A purge is incomplete, or a segment was restored from an older copy.
    """
    if left := left_in(segments, purged.read()):
        number = "1 purged event has" if len(left) == 1 else f"{len(left):,} purged events have"
        raise JournalError(
            f"{number} a payload, the first is event {left[0]}: a purge was interrupted, or a segment of the journal was restored "
            "from an older copy; run `memgraph purge --complete`"
        )


def zero_rows(file: VectorFile, rows: Iterable[int]) -> None:
    """Overwrite rows of a vector file with zeros, and sync them. Rows beyond its end are left out.

    Raises
    ------
    StorageError
        The file cannot be written.
    """
    available = file.available()
    wanted = [row for row in rows if row < available]
    if not wanted:
        return
    try:
        descriptor = os.open(file.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            for row in wanted:
                os.pwrite(descriptor, bytes(file.row_bytes), row * file.row_bytes)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StorageError(f"vectors cannot be removed: {error.strerror}", path=file.path) from None


def _is_meant(line: bytes, seqs: set[int]) -> bool:
    return bool(line) and seq_of(line) in seqs
