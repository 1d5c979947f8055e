"""The index on disk: flat arrays that are loaded, not parsed. A snapshot that does not fit is thrown away."""

from __future__ import annotations

import os
import struct
import time
import zipfile
import zlib
from contextlib import suppress
from dataclasses import asdict
from io import BytesIO
from pathlib import Path

import numpy as np
import orjson

from memgraph.disk.files import clear_folder, make_own, make_private_folder, read_own
from memgraph.disk.seal import Seal
from memgraph.errors import StorageError
from memgraph.index.analyser import ANALYSER_VERSION
from memgraph.index.index import INDEX_VERSION, Index, IndexOffset
from memgraph.logs import logger_of

logger = logger_of(__name__)

_DAMAGE = (
    OSError, ValueError, KeyError, IndexError, TypeError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error,
    struct.error,
)  # fmt: skip
"""What reading a file that is not what was written may raise."""
_CODE_BYTES = 64
_DAMAGED = "the index snapshot %s is damaged, or another store's, and will be rebuilt"
_LEFT_AFTER_S = 3600.0
"""A half-written snapshot this old has no writer any more."""


def save(index: Index, path: Path, store_id: str, seal: Seal) -> None:
    """Write a snapshot atomically; it begins with a code over all that follows."""
    header = {"store_id": store_id, **_versions(), "offset": asdict(index.offset), "names": index.name_lists()}
    make_private_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        buffer = BytesIO()
        np.savez(buffer, header=np.frombuffer(orjson.dumps(header), dtype=np.uint8), **index.arrays())  # type: ignore[arg-type]
        with os.fdopen(make_own(temporary), "wb") as file:
            file.write(seal.code(buffer.getbuffer()).encode())
            file.write(buffer.getbuffer())
        clear_folder(path)
        temporary.replace(path)
        _sweep(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StorageError(f"the index cannot be saved: {error.strerror}", path=path) from None
    index.changed = 0


def _sweep(path: Path) -> None:
    """Remove what processes left that were killed while they saved."""
    for left in path.parent.glob(f".{path.name}.*.tmp"):
        with suppress(OSError):  # another process has just given it its name; whatever it is, this snapshot is saved
            if left.stat().st_mtime < time.time() - _LEFT_AFTER_S:
                left.unlink(missing_ok=True)


def load(path: Path, store_id: str, seal: Seal) -> Index | None:
    """Return the snapshot's index; None if there is none, or it is damaged, of another version, or not of this store."""
    try:
        sealed = read_own(path)
        code, snapshot = sealed[:_CODE_BYTES], memoryview(sealed)[_CODE_BYTES:]
        if not seal.fits(code.decode("ascii", "replace"), snapshot):
            logger.warning(_DAMAGED, path)
            return None
        with np.load(BytesIO(snapshot), allow_pickle=False) as file:
            data = {name: file[name] for name in file.files}
        header = orjson.loads(data.pop("header").tobytes())
        if header["store_id"] != store_id or any(header[name] != value for name, value in _versions().items()):
            return None
        index = Index(data, header["names"])
        index.offset = IndexOffset(**header["offset"])
    except FileNotFoundError:
        return None
    except _DAMAGE:
        logger.warning(_DAMAGED, path)
        return None
    return index


def _versions() -> dict[str, int]:
    return {"index_version": INDEX_VERSION, "analyser_version": ANALYSER_VERSION}
