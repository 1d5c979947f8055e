"""Vectors of texts, kept on disk between runs: embedding the sets anew costs minutes, and nothing of it is measured."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import platformdirs

from memgraph.embedding import default_embedder
from memgraph.ports import Embedder
from tests.benchmarks.data import Vector

CACHE_VARIABLE = "MEMGRAPH_BENCH_CACHE"
_LONGEST_WAIT_S = 60.0
_MOST_AT_ONCE = 500


def cache_folder(asked: str | Path | None = None) -> Path:
    """Return the folder that is asked for, else the environment's, else one in the user's cache directory."""
    return Path(asked or os.environ.get(CACHE_VARIABLE) or platformdirs.user_cache_dir("memgraph-bench"))


class CachedEmbedder:
    """An `Embedder` that asks another one only for texts it has not seen.

    What is kept is a hash of the text beside its vector, never the text: the sets' licences forbid copies of them.

    Parameters
    ----------
    inner : Embedder, optional
        Default: the one that a store has by default.
    folder : Path, optional
        Of the cache; default: `cache_folder`.
    """

    def __init__(self, inner: Embedder | None = None, *, folder: Path | None = None) -> None:
        self._inner = inner or default_embedder()
        folder = folder or cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._known: dict[str, Vector] = {}
        path = folder / f"{self._inner.name.replace('/', '_')}.sqlite"
        self._file = sqlite3.connect(path, timeout=_LONGEST_WAIT_S, check_same_thread=False)
        with self._file:
            self._file.execute("CREATE TABLE IF NOT EXISTS vector (key TEXT PRIMARY KEY, bytes BLOB) WITHOUT ROWID")

    @property
    def name(self) -> str:
        """Of the model that makes the vectors."""
        return self._inner.name

    @property
    def dimension(self) -> int:
        """Length of its vectors."""
        return self._inner.dimension

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of texts, shape (n, dimension)."""
        keys = [_key("text", text) for text in texts]
        with self._lock:
            self._look_up(keys)
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
            if missing:
                self._keep(dict(zip(missing, self._inner.embed(list(missing.values())), strict=True)))
            found = [self._known[key] for key in keys]
        return np.stack(found) if found else np.empty((0, self.dimension), dtype=np.float32)

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query, shape (dimension,)."""
        key = _key("query", text)
        with self._lock:
            self._look_up([key])
            if key not in self._known:
                self._keep({key: self._inner.embed_query(text)})
            return self._known[key]

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _look_up(self, keys: Sequence[str]) -> None:
        asked = list({key for key in keys if key not in self._known})
        for first in range(0, len(asked), _MOST_AT_ONCE):
            some = asked[first : first + _MOST_AT_ONCE]
            rows = self._file.execute(
                f"SELECT key, bytes FROM vector WHERE key IN ({', '.join('?' * len(some))})", some
            )
            self._known.update((key, np.frombuffer(value, dtype=np.float32)) for key, value in rows)

    def _keep(self, vectors: dict[str, Vector]) -> None:
        self._known |= vectors
        rows = [(key, np.asarray(vector, dtype=np.float32).tobytes()) for key, vector in vectors.items()]
        with self._file:
            self._file.executemany("INSERT OR REPLACE INTO vector VALUES (?, ?)", rows)


def _key(kind: str, text: str) -> str:
    """Return what a text is kept under: a query may be embedded in another way than a text."""
    return hashlib.sha256(f"{kind}\0{text}".encode(errors="surrogatepass")).hexdigest()
