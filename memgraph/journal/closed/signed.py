"""JSON documents that several keys sign: ``{"body": {"signers": […], …}, "codes": […]}``, with a code of each signer over the body."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable, Mapping
from typing import Any

from memgraph.journal.envelope import canonical
from memgraph.ports import SigningKey


def document_of(body: Mapping[str, Any], keys: Iterable[SigningKey], purpose: str) -> bytes:
    """Return a document as it is written.

    Parameters
    ----------
    body : mapping
        JSON-compatible, without the field ``signers``.
    purpose : str
        What the document is for: a code counts for no other purpose.
    """
    keys = list(keys)
    whole = {**body, "signers": [key.key_id for key in keys]}
    return json.dumps({"body": whole, "codes": [code_of(key, whole, purpose) for key in keys]}).encode()


def parts_of(data: bytes) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the body of a document, and the codes with the ids of their keys; nothing is verified.

    Raises
    ------
    ValueError, KeyError, TypeError, RecursionError
        The bytes are no such document, or not in the form in which it is written.
    """
    stored = json.loads(data)
    body = stored["body"]
    codes = list(zip(body["signers"], stored["codes"], strict=True))
    if data != json.dumps(stored).encode():
        raise ValueError("has another form")
    return body, codes


def fits(key: SigningKey, code: object, body: Mapping[str, Any], purpose: str) -> bool:
    """Return whether a code is that of a key over a body, in constant time."""
    return isinstance(code, str) and hmac.compare_digest(code_of(key, body, purpose).encode(), code.encode())


def code_of(key: SigningKey, body: Mapping[str, Any], purpose: str) -> str:
    """Return the code of a key over a body."""
    return hmac.digest(key.secret, f"memgraph {purpose}\x1f".encode() + canonical(body), "sha256").hex()
