"""The archive: closed segments whose events a baseline stands for, in ``journal/archive/``.

While they are there, everything that reads history reads them as before; only opening and rebuilding do without them.
"""

from __future__ import annotations

from pathlib import Path

from memgraph.disk.files import clear, make_private_folder, sync_folder
from memgraph.errors import StorageError
from memgraph.journal.baseline.header import FOLDER, HEADER, Baseline
from memgraph.journal.baseline.rows import remove_unused, unused_files
from memgraph.journal.closed.files import ARCHIVE, files_in, name_of
from memgraph.journal.segments import Segments


def unarchived(segments: Segments, baseline: Baseline | None) -> list[Path]:
    """Return the files of segments that the baseline stands for and that are not in the archive yet."""
    return [path for path in files_in(segments.folder) if baseline and name_of(path) < baseline.position.segment]


def is_incomplete(segments: Segments, baseline: Baseline | None) -> bool:
    """Return whether a compaction has left something to do."""
    return bool(unarchived(segments, baseline) or unused_files(segments.folder, baseline))


def complete(segments: Segments, baseline: Baseline | None) -> list[str]:
    """Archive the segments that the baseline stands for, and remove rows of others. Idempotent. Needs the writer lock.

    Returns
    -------
    list of str
        Names of the segments that were moved.

    Raises
    ------
    StorageError
        The system refuses; the next call continues.
    """
    moved = archive_segments(segments, baseline)
    remove_unused(segments.folder, baseline)
    return moved


def remove_baseline(folder: Path) -> None:
    """Bring the archived segments back, and remove the baseline. Idempotent. Needs the writer lock, and a journal that verifies whole.

    Raises
    ------
    StorageError
        The system refuses; the next call continues.
    """
    try:
        for path in files_in(folder / ARCHIVE):
            path.replace(folder / path.name)
        sync_folder(folder)
        (folder / "verified.json").unlink(missing_ok=True)  # its digest begins at the baseline
        clear(folder / ARCHIVE)
        (folder / HEADER).unlink(missing_ok=True)
        clear(folder / FOLDER)
        sync_folder(folder)
    except OSError as error:
        raise StorageError(f"the baseline cannot be removed: {error.strerror}; try again", path=folder) from None


def archive_segments(segments: Segments, baseline: Baseline | None) -> list[str]:
    """Move the segments that the baseline stands for to the archive, and return their names. Idempotent. Needs the writer lock.

    Raises
    ------
    StorageError
        The system refuses; the next call continues.
    """
    paths, place = unarchived(segments, baseline), segments.folder / ARCHIVE
    if not paths:
        return []
    make_private_folder(place)
    try:
        for path in paths:
            path.replace(place / path.name)
        sync_folder(place)
        sync_folder(segments.folder)
    except OSError as error:
        raise StorageError(
            f"segments cannot be archived: {error.strerror}; the next opening continues", path=place
        ) from None
    return sorted({name_of(path) for path in paths})
