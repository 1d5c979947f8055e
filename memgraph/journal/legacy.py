"""Journals of releases 0.1 and 0.2: lines in ``journal/*.jsonl`` and vectors in ``journal/vectors/*.f32``. They are moved into the database once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from memgraph.errors import DamagedJournalError, JournalError, StorageError
from memgraph.journal.envelope import MAX_LINE_BYTES, Line, LineError, parsed
from memgraph.journal.journal import Journal
from memgraph.journal.vectors import Vectors, file_name
from memgraph.logs import logger_of
from memgraph.model.ids import stored_form

logger = logger_of(__name__)

FOLDER = "journal"
KEPT = "journal-0.2"
"""What the folder is called after its events are in the database, until `memgraph migrate --finish` removes it."""
_FORMAT = 1
_ROWS = 10_000


def is_there(home: Path) -> bool:
    """Return whether a store's directory holds a journal of an earlier release."""
    return (home / FOLDER / "manifest.json").exists()


def read_manifest(home: Path) -> tuple[str, str | None]:
    """Return a store's id, and the id of the copy if it is a restored one."""
    path = home / FOLDER / "manifest.json"
    try:
        stored = json.loads(path.read_bytes())
        version, store_id, copy_id = stored["format"], stored["store_id"], stored.get("copy")
        if version == _FORMAT and not all(one and stored_form(one) == one for one in (store_id, copy_id or store_id)):
            raise ValueError("names no store")  # a reserved file name beside the keys
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", path=path) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise JournalError(f"{path} is not a journal's manifest; restore it from a backup") from None
    if version != _FORMAT:
        raise JournalError(f"{path}: journal format {version!r} is unknown to this release; install a newer memgraph")
    return str(store_id), copy_id


def move(journal: Journal) -> None:
    """Write every event of an earlier release's journal, verified, and its vectors into the database, in one transaction; a torn final commit is left out."""
    database, journal.path = journal.path, journal.home / FOLDER
    try:
        with journal.database.writing(journal.lock_timeout_s) as tx:
            journal.put(tx, _whole_commits(journal.home))
            journal.load()
            for model, count in journal.named.rows.items():
                _move_vectors(journal.home, journal.vectors(model), count)
            if journal.has_key:
                journal.put_head(tx)
    finally:
        journal.path = database
    logger.info("moved %d events of an earlier release into %s", journal.tail.seq, journal.path)


def finish(home: Path) -> Path | None:
    """Give a moved journal's folder the name under which it is kept; return it, or None if that is taken."""
    kept = home / KEPT
    try:
        (home / FOLDER).rename(kept)
    except OSError as error:
        logger.warning(
            "%s was moved into the database and is not used any more, but cannot be renamed: %s",
            home / FOLDER,
            error.strerror,
        )
        return None
    return kept


def lines(home: Path) -> Iterator[Line]:
    """Iterate over the lines in order, not verified. Raises `DamagedJournalError` if one cannot be read, or is missing."""
    seq = 0
    for path in segments(home):
        for offset, line in _lines(path):
            if line.seq != seq + 1:
                raise DamagedJournalError(
                    f"byte {offset}: event {line.seq} does not follow event {seq}", path=path, seq=seq + 1
                )
            seq = line.seq
            yield line


def readable(home: Path) -> Iterator[Line]:
    """Iterate over the lines up to the first that cannot be read."""
    with suppress(DamagedJournalError):
        yield from lines(home)


def _whole_commits(home: Path) -> Iterator[Line]:
    run: list[Line] = []
    for line in lines(home):
        run.append(line)
        if b'"last":true' in line.head:
            yield from run
            run = []
    if run:
        logger.warning("dropped a torn final commit of %d events", len(run))


def segments(home: Path) -> list[Path]:
    """Return the files of lines, in order. Raises `JournalError` if a version between releases wrote them."""
    folder = home / FOLDER
    if (folder / "baseline.json").exists() or (folder / "archive").exists() or any(folder.glob("*.jsonl.zst")):
        raise JournalError(
            f"{folder} was compacted or compressed by a development version, which this release does not read; restore a backup, or export "
            "the store with the version that wrote it"
        )
    return sorted(folder.glob("*.jsonl"))


def _lines(path: Path) -> Iterator[tuple[int, Line]]:
    offset = 0
    try:
        with path.open("rb") as file:
            while data := file.readline(MAX_LINE_BYTES + 1):
                if not data.endswith(b"\n"):
                    return  # torn
                try:
                    yield offset, parsed(data[:-1])
                except LineError as error:
                    raise DamagedJournalError(f"byte {offset}: {error}", path=path) from None
                offset += len(data)
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", path=path) from None


def _move_vectors(home: Path, vectors: Vectors, count: int) -> None:
    path = home / FOLDER / "vectors" / f"{file_name(vectors.model)}.f32"
    try:
        data = np.fromfile(path, dtype="<f4")
    except FileNotFoundError:
        return  # reported as damaged vectors
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", path=path) from None
    whole = data[: len(data) // vectors.dimension * vectors.dimension].reshape(-1, vectors.dimension)[:count]
    for first in range(0, len(whole), _ROWS):
        rows = whole[first : first + _ROWS]
        vectors.restore({first + at: row for at, row in enumerate(rows) if row.any()})  # what was purged is zeros
