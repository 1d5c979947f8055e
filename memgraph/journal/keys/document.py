"""The document that holds the keys of a store: the active one and, after rotations, the earlier ones.

``{"key_id": ID, "secret": HEX, "store_id": ID, "earlier": [{"key_id": ID, "secret": HEX}, …]}``. The key files, `keys export`, the
provider ``json`` and what a key command prints have this form.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from memgraph.errors import KeyMissingError
from memgraph.journal.keys.secret import MAX_KEYS, check_key_id, is_named, secret_of
from memgraph.model.ids import stored_form
from memgraph.ports import SigningKey

MAX_DOCUMENT_BYTES = 256 << 10


def keys_in(
    data: bytes, source: str, store_id: str, *, advice: str = "correct what is stored there, or name another source"
) -> list[SigningKey]:
    """Parse a document and return its keys, the active one first.

    Parameters
    ----------
    source : str
        Where the document is, for messages.
    advice : str
        What to do if it is not the document of this store's keys, for messages. A backup is no help: it never holds keys.

    Raises
    ------
    KeyMissingError
        The document is no such one, is another store's, or names two keys alike. The message never quotes it.
    """
    try:
        stored: Any = json.loads(data) if len(data) <= MAX_DOCUMENT_BYTES else None
        entries = [stored, *stored.get("earlier", [])]
        named = [(entry["key_id"], entry["secret"]) for entry in entries]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise KeyMissingError(f"{source} contains no key; {advice}") from None
    if stored.get("store_id", store_id) != store_id:
        raise KeyMissingError(f"{source} contains the keys of another store, not of {store_id}; {advice}")
    keys = []
    for key_id, secret in named:
        try:
            key = SigningKey(check_key_id(key_id, source), secret_of(secret, source))
        except KeyMissingError:
            raise KeyMissingError(f"{source} contains a damaged key; {advice}") from None
        if _is_damaged(key):
            raise KeyMissingError(f"{source} contains a damaged key; {advice}", key_id=key.key_id)
        keys.append(key)
    if len(keys) > MAX_KEYS or len({key.key_id for key in keys}) < len(keys):
        raise KeyMissingError(f"{source} names two keys alike, or more than {MAX_KEYS}; {advice}")
    return keys


def store_named_in(data: bytes) -> str | None:
    """Return the id of the store whose keys a document holds, or None if it names none."""
    try:
        stored: Any = json.loads(data) if len(data) <= MAX_DOCUMENT_BYTES else None
        store_id = stored["store_id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return store_id if store_id and stored_form(store_id) == store_id else None  # it becomes the name of a file


def document_of(keys: Sequence[SigningKey], store_id: str) -> bytes:
    """Return the document of these keys, the active one first."""
    active, *earlier = ({"key_id": key.key_id, "secret": key.secret.hex()} for key in keys)
    document: dict[str, Any] = {**active, "store_id": store_id}
    if earlier:
        document["earlier"] = earlier
    return json.dumps(document).encode()


def _is_damaged(key: SigningKey) -> bool:
    """Return whether an id that memgraph made, which ends with a fingerprint, ends with that of another secret."""
    is_made_here = key.key_id.startswith("file:") or ":" not in key.key_id
    return is_made_here and not is_named(SigningKey("", key.secret), key.key_id)
