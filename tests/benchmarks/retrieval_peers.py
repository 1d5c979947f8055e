"""What memgraph's recall is measured beside: two plain baselines, and the peers that are installed. All without a model.

All are given the same parts of documents in the same order, as one text with date and title, and where they take vectors the
ones that memgraph has.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.benchmarks.corpus import Part, Search, System
from tests.benchmarks.embeddings import CachedEmbedder
from tests.benchmarks.peers import Peer, opened

_WORD = re.compile(r"\w+")
_K1, _B = 1.2, 0.75


class Bm25(System):
    """Okapi BM25 over lower-case words as they stand, with the usual parameters (Robertson and Zaragoza 2009)."""

    def fill(self, parts: Sequence[Part]) -> Search:
        counts = [Counter(_words(part.told)) for part in parts]
        lengths = np.array([sum(count.values()) for count in counts], dtype=np.float64)
        norms = _K1 * (1.0 - _B + _B * lengths / lengths.mean())
        postings = defaultdict[str, list[tuple[int, int]]](list)
        for place, count in enumerate(counts):
            for word, occurrences in count.items():
                postings[word].append((place, occurrences))

        def search(query: str, k: int) -> Sequence[int]:
            scores = np.zeros(len(parts))
            for word in set(_words(query)) & postings.keys():
                places, occurrences = map(np.array, zip(*postings[word], strict=True))
                idf = np.log1p((len(parts) - len(places) + 0.5) / (len(places) + 0.5))
                scores[places] += idf * occurrences * (_K1 + 1.0) / (occurrences + norms[places])
            return _best(scores, k)

        return search


class Dense(System):
    """Cosines with all vectors: what a store of vectors finds that approximates nothing.

    Parameters
    ----------
    told : bool
        Embed the text with its date and title; else the text as given, as memgraph does.
    """

    def __init__(self, embedder: CachedEmbedder, *, told: bool = False) -> None:
        super().__init__()
        self._embedder = embedder
        self._is_told = told

    def fill(self, parts: Sequence[Part]) -> Search:
        matrix = self._embedder.embed([part.told if self._is_told else part.text for part in parts])
        return lambda query, k: _best(matrix @ self._embedder.embed_query(query), k)


class Stored(System):
    """A peer of ``tests/benchmarks/peers``, a folder of its own for each store."""

    def __init__(self, name: str, embedder: CachedEmbedder) -> None:
        super().__init__()
        self._name = name
        self._embedder = embedder
        self._folder = tempfile.TemporaryDirectory(prefix="memgraph-bench-")
        self._peers: list[Peer] = []

    def fill(self, parts: Sequence[Part]) -> Search:
        folder = Path(self._folder.name) / str(len(self._peers))
        folder.mkdir()
        peer = opened(self._name, folder)
        self._peers.append(peer)
        vectors = self._embedder.embed([part.text for part in parts])
        memories = [{**_metadata(part), "embedding": vector} for part, vector in zip(parts, vectors, strict=True)]
        place_of = {found: place for place, found in enumerate(peer.insert(memories))}

        def search(query: str, k: int) -> Sequence[int]:
            return [place_of[found] for found in peer.query(query, self._embedder.embed_query(query), k)]

        return search

    def close(self) -> None:
        super().close()
        for peer in self._peers:
            peer.close()
        self._folder.cleanup()


def _metadata(part: Part) -> dict[str, object]:
    told = {"title": part.title, "speaker": part.speaker, "session_id": part.session, "date": part.date}
    return {"content": part.told, "entities": [], **{name: value for name, value in told.items() if value is not None}}


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _best(scores: np.ndarray, k: int) -> list[int]:
    """Return the places of the best scores; equal ones in their order."""
    places: list[int] = np.argsort(-scores, kind="stable")[:k].tolist()
    return places
