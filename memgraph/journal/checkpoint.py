"""The checkpoint: an authenticated SHA-256 of the verified part of the journal, so that opening costs no more than hashing."""

from __future__ import annotations

import hmac
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from memgraph.disk.files import write_private
from memgraph.journal.envelope import Chain, canonical
from memgraph.journal.keys.ring import KeyHistory, KeyUse
from memgraph.journal.segments import Position
from memgraph.journal.vectors.vector_file import NamedVectors
from memgraph.ports import SigningKey


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The position up to which the journal was verified, and the digest of all bytes before it (`JournalDigest`).

    Attributes
    ----------
    base_seq : int
        The baseline's event; the digest begins with the segment in which it ends. 0: with the journal.
    """

    chain: Chain
    position: Position
    digest: str
    named: NamedVectors
    used: KeyHistory
    base_seq: int = 0


def write_checkpoint(path: Path, checkpoint: Checkpoint, key: SigningKey) -> None:
    """Write the checkpoint atomically."""
    body = asdict(checkpoint)
    write_private(path, json.dumps({"body": body, "hmac": _mac(key, body)}).encode())


def read_checkpoint(path: Path, key: SigningKey, store_id: str) -> Checkpoint | None:
    """Return the checkpoint, or None (then everything is verified again) if this key made none for this store.

    Only the active key counts: a checkpoint stands in for the verification of all events before it, so one that an earlier key
    made, which may have leaked, proves nothing.
    """
    try:
        stored = json.loads(path.read_bytes())
        body, mac = stored["body"], stored["hmac"]
        if not hmac.compare_digest(_mac(key, body), mac) or body["chain"]["store_id"] != store_id:
            return None
        position, named = Position(**body["position"]), NamedVectors(**body["named"])
        used = KeyHistory(tuple(KeyUse(**use) for use in body["used"]["uses"]))
        return Checkpoint(Chain(**body["chain"]), position, body["digest"], named, used, body.get("base_seq", 0))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _mac(key: SigningKey, body: dict[str, object]) -> str:
    return hmac.digest(key.secret, b"memgraph checkpoint\x1f" + canonical(body), "sha256").hex()
