"""The secret from which the seals of projections are derived; it outlives the rotation of the key that signs.

Until the first rotation it is the secret of the store's only key. From then on ``journal/sealing.json`` holds it, encrypted under the
keys before and after the rotation, so that graph and index stay valid, and processes that have the store open agree on it. Resealing draws
a new one; ``journal/former_seals.json`` then holds the keys that had signed receipts, encrypted under the new secret.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memgraph.disk.files import write_private
from memgraph.errors import JournalError, StorageError
from memgraph.journal.keys.ring import KeyRing, fingerprint
from memgraph.ports import SigningKey

_FILE = "sealing.json"
FORMER_FILE = "former_seals.json"
RECEIPTS = "purge receipt"
"""Purpose of the seal that signs receipts of purges. Unlike projections they cannot be made again, so its former keys are kept."""
_NONCE_BYTES = 16
_MOST_KEYS = 2
"""Number of keys that open a sealing secret: those before and after a rotation."""


def sealing_secret(folder: Path, key: SigningKey) -> bytes:
    """Return the sealing secret of the journal in a folder, given the key that signs.

    Without a file, or with one that this key does not open, it is the key's own secret: then the projections, whose seals do not
    match, are rebuilt.
    """
    try:
        return _opened(json.loads((folder / _FILE).read_bytes()), key)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return key.secret


def check_sealing_secret(folder: Path, key: SigningKey, ring: KeyRing) -> None:
    """Refuse to replace a sealing secret that no key of the store opens: receipts of purges would never verify again.

    One that other keys of the store open is no damage: a copy restored up to an event before two rotations has one.

    Parameters
    ----------
    key : SigningKey
        The key that signs.

    Raises
    ------
    JournalError
        The file is damaged, or not this store's.
    StorageError
        The file cannot be read.
    """
    if (document := _stored(folder / _FILE)) is None:
        return
    own = fingerprint(key.secret)
    names = [own] if own in document else list(document)[:_MOST_KEYS]
    if not any(_opens(document, ring.find(str(name)) or key) for name in names):
        raise _closed(folder / _FILE)


def check_former_keys(folder: Path, secret: bytes) -> None:
    """Refuse to replace former keys of receipts that the sealing secret does not open: those receipts would never verify again.

    Raises
    ------
    JournalError
        The file is damaged, or was made with another sealing secret.
    StorageError
        The file cannot be read.
    """
    documents, sealing = _stored(folder / FORMER_FILE), SigningKey("", secret)
    if documents is not None and not (documents and all(_opens(one, sealing) for one in documents)):
        raise _closed(folder / FORMER_FILE)


def _stored(path: Path) -> Any:
    """Return what a file of seals holds; None if there is none, ``[]`` if it is damaged."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", path=path) from None
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, dict | list) else []


def _opens(document: Any, key: SigningKey) -> bool:
    try:
        _opened(document, key)
    except (ValueError, KeyError, TypeError):
        return False
    return True


def _closed(path: Path) -> JournalError:
    return JournalError(
        f"{path} cannot be opened with the keys of the store, and would be replaced; nothing was changed: restore the file from a backup or, "
        "if there is none, move it elsewhere: receipts of earlier purges may then no longer verify"
    )


def keep_sealing_secret(folder: Path, secret: bytes, *keys: SigningKey) -> None:
    """Store the sealing secret so that each of these keys opens it, in place of what was stored.

    Raises
    ------
    StorageError
        The system refuses.
    """
    write_private(folder / _FILE, sealing_document(secret, *keys))


def sealing_document(secret: bytes, *keys: SigningKey) -> bytes:
    """Return what `keep_sealing_secret` stores."""
    document = {}
    for key in keys:
        nonce = os.urandom(_NONCE_BYTES)
        encrypted = _xor(secret, _pad(key, nonce, len(secret)))
        entry = {"nonce": nonce.hex(), "encrypted": encrypted.hex(), "hmac": _code(key, nonce, encrypted)}
        document[fingerprint(key.secret)] = entry
    return json.dumps(document).encode()


def former_keys(folder: Path, secret: bytes) -> list[bytes]:
    """Return the keys that signed receipts before the journal was resealed, given the sealing secret; none if they cannot be read."""
    try:
        documents = json.loads((folder / FORMER_FILE).read_bytes())
        return [_opened(one, SigningKey("", secret)) for one in documents]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def former_document(keys: Sequence[bytes], secret: bytes) -> bytes:
    """Return what `FORMER_FILE` holds so that a sealing secret opens it."""
    return json.dumps([json.loads(sealing_document(one, SigningKey("", secret))) for one in keys]).encode()


def _opened(document: Mapping[str, Any], key: SigningKey) -> bytes:
    """Return the secret of a sealing document.

    Raises
    ------
    ValueError, KeyError, TypeError
        The key does not open it.
    """
    stored = document[fingerprint(key.secret)]
    nonce, encrypted = bytes.fromhex(stored["nonce"]), bytes.fromhex(stored["encrypted"])
    if not hmac.compare_digest(_code(key, nonce, encrypted), stored["hmac"]):
        raise ValueError("is not what was stored")
    return _xor(encrypted, _pad(key, nonce, len(encrypted)))


def _pad(key: SigningKey, nonce: bytes, size: int) -> bytes:
    """Return a one-time pad: HMAC-SHA256 of the nonce and a counter, as in HKDF-Expand (RFC 5869, section 2.3)."""
    blocks = (
        hmac.digest(key.secret, b"memgraph sealing pad\x1f" + nonce + number.to_bytes(4), "sha256")
        for number in range(size // 32 + 1)
    )
    return b"".join(blocks)[:size]


def _code(key: SigningKey, nonce: bytes, encrypted: bytes) -> str:
    return hmac.digest(key.secret, b"memgraph sealing code\x1f" + nonce + encrypted, "sha256").hex()


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))
