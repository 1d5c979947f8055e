"""Secrets as text, and the fingerprints by which keys are recognised."""

from __future__ import annotations

import hashlib
import re

from memgraph.errors import KeyMissingError
from memgraph.ports import SigningKey

MIN_SECRET_BYTES = 32
MAX_KEYS = 64
"""Most keys that one source may hold."""
_KEY_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/@:+=-]{7,299}")
_FINGERPRINT_AT_END = re.compile(r"(?:^|[:-])([0-9a-f]{16})$")


def fingerprint(secret: bytes) -> str:
    """Return the public digest of a secret: 16 hexadecimal digits. It was the id of every key before keys could be rotated."""
    return hashlib.sha256(b"memgraph key id\x1f" + secret).hexdigest()[:16]


def key_from_secret(secret: bytes, place: str | None = None) -> SigningKey:
    """Return the key of a secret, with the id ``place:fingerprint``, or the fingerprint alone."""
    digest = fingerprint(secret)
    return SigningKey(f"{place}:{digest}" if place else digest, secret)


def is_named(key: SigningKey, key_id: str) -> bool:
    """Return whether a key is the one that an id names: it has this id, or the id ends with its fingerprint.

    The second holds for ids of earlier releases, which were fingerprints, and for a key that was moved to another provider.
    """
    if key.key_id == key_id:
        return True
    found = _FINGERPRINT_AT_END.search(key_id)
    return found is not None and found[1] == fingerprint(key.secret)


def secret_of(text: object, source: str) -> bytes:
    """Parse a secret: at least 64 hexadecimal digits. White space around it is ignored.

    Raises
    ------
    KeyMissingError
        The text is something else. The message names the source and never quotes the text.
    """
    try:
        secret = bytes.fromhex(text.strip()) if isinstance(text, str) else b""
    except ValueError:
        secret = b""
    if len(secret) < MIN_SECRET_BYTES:
        raise KeyMissingError(f"{source} must hold at least 64 hexadecimal digits (32 bytes)")
    return secret


def check_key_id(key_id: object, source: str) -> str:
    """Return a key id, ``provider:name:version``, or one of the 16 digits that earlier releases used.

    Raises
    ------
    KeyMissingError
        It has another form.
    """
    if not isinstance(key_id, str) or not _KEY_ID.fullmatch(key_id):
        raise KeyMissingError(f"{source} names a key by something that is no key id (provider:name:version)")
    return key_id
