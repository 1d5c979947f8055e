"""The index on disk: one file of flat arrays behind one code, read at once and used as they are. One that does not match is discarded.

It begins with the name of the key and a code over the rest: a file that is damaged, of another store, or written by anything without the store's key is not
used. The file is read before it is checked, not mapped, so that nobody can change it in between or cut it short under a reader.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from memgraph.disk.files import clear_folder, make_own, open_regular
from memgraph.disk.seal import Seal
from memgraph.errors import StorageError
from memgraph.index.analyser import ANALYSER_VERSION
from memgraph.index.index import INDEX_VERSION, Index, IndexOffset
from memgraph.logs import logger_of

logger = logger_of(__name__)

_DAMAGE = (OSError, ValueError, KeyError, IndexError, TypeError)
"""Errors that reading a damaged file may raise."""
_CODE_BYTES, _MOST_NAMED = 64, 350
_REPLACED = re.compile(rb"[^\n ]{1,300} from event \d{1,20}\n|[0-9a-f]{64}PK")
"""The beginning of a snapshot that was sealed with another key of the store, or by an earlier release, which named none."""
_ALIGNED = 64
_DAMAGED = "the index snapshot %s is damaged, or another store's, and will be rebuilt"
_LEFT_AFTER_S = 3600.0
"""Age at which a half-written snapshot has no writer any more."""
_SCOPES = ("project", "session", "task", "domain", "speaker", "vector_model")
"""Columns that hold codes of scopes."""


def save(index: Index, path: Path, store_id: str, seal: Seal) -> None:
    """Write a snapshot atomically, without names and words that no live memory has. It begins with the key's name and a code over the rest."""
    arrays = index.arrays()
    header = orjson.dumps(
        {
            "store_id": store_id,
            **_versions(),
            "offset": asdict(index.offset),
            "names": _names_in_use(index.name_lists(), arrays),
            "arrays": [[name, array.dtype.str, len(array)] for name, array in arrays.items()],
        }
    )
    parts = [np.array([len(header)], dtype="<i8"), np.frombuffer(header, dtype=np.uint8), *arrays.values()]
    buffer = np.zeros(sum(_space(part.nbytes) for part in parts), dtype=np.uint8)
    place = 0
    for part in parts:
        buffer[place : place + part.nbytes] = np.ascontiguousarray(part).view(np.uint8)
        place += _space(part.nbytes)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)  # not its parents: a store that was removed is not made anew
        with os.fdopen(make_own(temporary), "wb") as file:
            file.write(_beginning(seal) + seal.code(buffer.data).encode())
            file.write(buffer.data)
        clear_folder(path)
        temporary.replace(path)
        _sweep(path)
    except OSError as error:
        with suppress(OSError):  # its folder may be none
            temporary.unlink()
        raise StorageError(f"the index cannot be saved: {error.strerror}", path=path) from None
    index.changed = 0


def _space(count: int) -> int:
    """Return how many bytes so many take: a multiple of a cache line."""
    return -(-count // _ALIGNED) * _ALIGNED


def _names_in_use(names: Mapping[str, list[str]], arrays: Mapping[str, NDArray[Any]]) -> dict[str, list[str]]:
    """Return the names with a placeholder for each that no live memory has: codes are places in these lists."""

    def keys(kind: str) -> NDArray[Any]:
        return np.flatnonzero(np.diff(arrays[f"{kind}.offsets"]))

    live, entities = arrays["column.is_live"], keys("mentions")
    phrases = np.repeat(np.arange(len(arrays["called.offsets"]) - 1), np.diff(arrays["called.offsets"]))
    used = {
        "vocabulary": [keys("postings"), keys("triggers"), arrays["sequences.codes"]],
        "entities": [entities],
        "phrases": [phrases[np.isin(arrays["called.values"], entities)]],
        "agent_names": [keys("agents")],
        "tag_names": [keys("tags")],
        "scopes": [arrays[f"column.{name}"][live] for name in _SCOPES],
    }
    return {
        kind: _without_gone(all_names, used[kind]) if kind in used else all_names for kind, all_names in names.items()
    }


def _without_gone(names: list[str], used: list[NDArray[Any]]) -> list[str]:
    gone = np.ones(len(names) + 1, dtype=bool)  # the last stands for the code -1, which is none
    gone[np.concatenate(used)] = False
    kept = names.copy()
    for code in np.flatnonzero(gone[:-1]).tolist():
        kept[code] = f"{_GONE}{code}"
    return kept


_GONE = "\x00\x1f\x1f\x00"
"""The beginning of a name that no memory can have: they contain no NUL. It has the parts of an entity's or a scope's name."""


def is_gone(name: str) -> bool:
    """Return whether a name is the placeholder of one that no live memory had when the index was saved."""
    return name.startswith(_GONE)


def _sweep(path: Path) -> None:
    """Remove temporary files of processes that were killed while saving."""
    for left in path.parent.glob(f".{path.name}.*.tmp"):
        with suppress(OSError):  # another process has just renamed it; in any case this snapshot is saved
            if left.stat().st_mtime < time.time() - _LEFT_AFTER_S:
                left.unlink(missing_ok=True)


def load(path: Path, store_id: str, seal: Seal) -> Index | None:
    """Return the snapshot's index; None if there is none, or it is damaged, or of another version or store."""
    try:
        with open_regular(path) as file:
            named = _beginning(seal)
            first = file.read(_MOST_NAMED)
            if not first.startswith(named):
                if _REPLACED.match(first):
                    logger.info("the index snapshot %s was sealed with another key, and will be built anew", path)
                else:
                    logger.warning(_DAMAGED, path)
                return None
            file.seek(len(named))
            code = file.read(_CODE_BYTES)
            data = np.fromfile(file, dtype=np.uint8)
        if not seal.fits(code.decode("ascii", "replace"), data.data):
            logger.warning(_DAMAGED, path)
            return None
        size = int(data[:8].view("<i8")[0])
        header = orjson.loads(data[_ALIGNED : _ALIGNED + size].tobytes())
        if header["store_id"] != store_id or any(header[name] != value for name, value in _versions().items()):
            return None
        place, arrays = _ALIGNED + _space(size), {}
        for name, dtype, length in header["arrays"]:
            count = np.dtype(dtype).itemsize * length
            arrays[name] = data[place : place + count].view(dtype)
            place += _space(count)
        index = Index(arrays, header["names"])
        index.offset = IndexOffset(**header["offset"])
    except FileNotFoundError:
        return None
    except _DAMAGE:
        logger.warning(_DAMAGED, path)
        return None
    return index


def _beginning(seal: Seal) -> bytes:
    """Return the line that names the key; none if it has no name."""
    return f"{seal.name}\n".encode() if seal.name else b""


def _versions() -> dict[str, int]:
    return {"index_version": INDEX_VERSION, "analyser_version": ANALYSER_VERSION}
