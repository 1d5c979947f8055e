"""The form of a purged line: the head and the signature of an event whose payload was removed."""

from __future__ import annotations

import re
from typing import NamedTuple

import orjson

from memgraph.journal.envelope import Chain, KeyOf, LineError, assembled, canonical, verified
from memgraph.ports import SigningKey

_PURGED = b'"},"payload":null,"salt":null,"signature":"'
"""As it stands in a purged line; text cannot imitate it, because its quotation marks are escaped."""
_SEQ = re.compile(rb'"seq":(\d{1,16}),"signature_version"')


class PurgedHead(NamedTuple):
    """What is left of a purged event."""

    seq: int
    commit_id: str
    last: bool


def unseal_purged(line: bytes, chain: Chain, key: SigningKey | KeyOf | None) -> tuple[PurgedHead, Chain]:
    """Verify a purged line against the chain. The caller knows whether a purge names it.

    Raises
    ------
    LineError
        The head is not what was signed, or does not follow the chain; or something is left of the payload.
    """
    head, content, salt, signature, _ = verified(line.rstrip(b" "), chain, key)
    if content is not None or salt is not None:
        raise LineError("a purged line holds a payload")
    after = Chain(chain.store_id, head["seq"], signature, head["timestamp"])
    return PurgedHead(head["seq"], head["commit_id"], head["last"]), after


def is_purged(line: bytes) -> bool:
    """Return whether a line has the form of a purged one."""
    return _PURGED in line


def purged_line(line: bytes) -> bytes:
    """Return a line without its payload and salt, as long as it was."""
    if is_purged(line):
        return line
    envelope = orjson.loads(line)
    return assembled(canonical(envelope["head"]), b"null", None, envelope["signature"]).ljust(len(line))


def seq_of(line: bytes) -> int:
    """Return the sequence number that stands in a line's head; 0 if there is none."""
    found = _SEQ.search(line)
    return int(found[1]) if found else 0
