"""The manifest of closed segments: ``segments.json`` in the journal's folder, authenticated by the store's key.

A segment is closed when another one follows it. The manifest says what it was then; a compressed file is named with its own hash, so that
it can be checked without being unpacked. A manifest may be behind: what it does not name yet, the next writer adds, from bytes that
were verified.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from memgraph.disk.files import read_own, write_private
from memgraph.errors import DamagedJournalError, StorageError
from memgraph.journal.closed.digest import Extent
from memgraph.journal.envelope import canonical
from memgraph.ports import SigningKey

NAME = "segments.json"
MAX_BYTES = 64 << 20
ADVICE = (
    "`memgraph repair` says what the journal itself contains, and `memgraph repair --accept-head` accepts that and writes "
    "this file anew"
)


@dataclass(frozen=True, slots=True)
class ClosedSegment:
    """A closed segment.

    Attributes
    ----------
    name : str
        The name of its plain file.
    first_seq, last_seq, events : int
        Its first and its last event, and their number.
    size_bytes, sha256 : int, str
        Of its content, uncompressed.
    key_ids : tuple of str
        The keys that signed its events.
    packed : Extent or None
        Size and SHA-256 of its compressed file; None for a plain one.
    """

    name: str
    first_seq: int
    last_seq: int
    events: int
    size_bytes: int
    sha256: str
    key_ids: tuple[str, ...]
    packed: Extent | None = None

    @property
    def extent(self) -> Extent:
        """Size and SHA-256 of its content."""
        return Extent(self.size_bytes, self.sha256)


@dataclass(frozen=True, slots=True)
class SegmentManifest:
    """What a manifest says, and the key that signed it."""

    key_id: str | None = None
    segments: tuple[ClosedSegment, ...] = ()

    def named(self) -> dict[str, ClosedSegment]:
        """Return the segments by name."""
        return {one.name: one for one in self.segments}


def write_manifest(folder: Path, store_id: str, segments: Iterable[ClosedSegment], key: SigningKey) -> SegmentManifest:
    """Write the manifest of a folder atomically, mode 0600, and return it.

    Raises
    ------
    StorageError
        The system refuses.
    """
    manifest = SegmentManifest(key.key_id, tuple(sorted(segments, key=lambda one: one.name)))
    write_private(folder / NAME, manifest_document(store_id, manifest.segments, key))
    return manifest


def manifest_document(store_id: str, segments: Iterable[ClosedSegment], key: SigningKey) -> bytes:
    """Return a manifest as it is written."""
    stated = [{**asdict(one), "packed": one.packed._asdict() if one.packed else None} for one in segments]
    body = {"format": 1, "store_id": store_id, "key_id": key.key_id, "segments": stated}
    body = json.loads(json.dumps(body))  # lists for tuples
    return json.dumps({"body": body, "hmac": _code(key, body)}).encode()


def read_manifest(folder: Path, store_id: str, find: Callable[[str], SigningKey | None]) -> SegmentManifest:
    """Return the manifest of a folder; one without segments if there is none.

    Raises
    ------
    DamagedJournalError
        It is not what a key of this store signed, or larger than `MAX_BYTES`.
    StorageError
        It cannot be read.
    """
    path = folder / NAME
    try:
        data = read_own(path, MAX_BYTES + 1)
    except FileNotFoundError:
        return SegmentManifest()
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", path=path) from None
    if len(data) > MAX_BYTES:
        raise damaged(folder, f"it is larger than {MAX_BYTES:,} bytes")
    try:
        stored = json.loads(data)
        body, code = stored["body"], stored["hmac"]
        key = find(body["key_id"])
        if key is None or not hmac.compare_digest(_code(key, body), code) or body["store_id"] != store_id:
            raise ValueError("is not this store's")
        if data != json.dumps(stored).encode():
            raise ValueError("has another form")
        segments = tuple(_segment(one) for one in body["segments"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise damaged(folder, "it is not what this store's key signed") from None
    return SegmentManifest(body["key_id"], segments)


def damaged(folder: Path, reason: str) -> DamagedJournalError:
    """Return the error for a manifest that cannot be trusted."""
    return DamagedJournalError(reason, path=folder / NAME, offset=0, advice=ADVICE)


def _segment(stated: dict[str, object]) -> ClosedSegment:
    packed, key_ids = stated.pop("packed"), stated.pop("key_ids")
    return ClosedSegment(**stated, key_ids=tuple(key_ids), packed=Extent(**packed) if packed else None)  # type: ignore[arg-type]


def _code(key: SigningKey, body: dict[str, object]) -> str:
    return hmac.digest(key.secret, b"memgraph segments\x1f" + canonical(body), "sha256").hex()
