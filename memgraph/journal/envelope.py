"""The format of an event in the journal: how it is written, signed, verified and read.

An event is canonical JSON ``{head, payload, salt, signature}``, kept in columns. The head holds SHA-256(salt ‖ canonical payload), and the
signature is HMAC-SHA256(key, canonical head), so a payload can later be purged while its head still verifies. Each head contains the
previous event's signature, so the events form a chain. A purged event has neither payload nor salt.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import uuid4

import orjson

from memgraph.errors import InvalidInputError, PayloadError, ScopeError, UnknownEventError
from memgraph.model.events.payload import Actor, Payload, WriteScope
from memgraph.model.events.registry import PAYLOADS, UPCASTERS
from memgraph.model.timestamps import is_canonical
from memgraph.ports import SigningKey

ENVELOPE_VERSION = 1
"""1: canonical JSON is orjson's with sorted keys."""
SIGNATURE_VERSION = 1
"""1: HMAC-SHA256 over the canonical head."""
MAX_LINE_BYTES = 16 << 20
FIRST_SIGNATURE = "0" * 64
_HEAD_FIELDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("store_id", "commit_id", "event_id", "type", "write_scope", "actor", "key_id"), (str,)),
    **dict.fromkeys(("timestamp", "occurred_at", "prev_signature", "payload_sha256"), (str,)),
    **dict.fromkeys(("seq", "event_version", "envelope_version", "signature_version"), (int,)),
    "last": (bool,),
    "task_id": (str, type(None)),
}


@dataclass(frozen=True, slots=True)
class CommitDraft:
    """Events to be committed together, before they are numbered and signed; without a `commit_id` a random one is drawn."""

    write_scope: WriteScope
    payloads: Sequence[Payload]
    task_id: str | None = None
    actor: Actor = "agent"
    commit_id: str | None = None

    def __post_init__(self) -> None:
        if (self.write_scope == "task") != (self.task_id is not None):
            raise ScopeError(
                f"a commit of scope {self.write_scope!r} with task {self.task_id!r}: scope 'task' needs a task_id and no "
                "other scope takes one"
            )
        for payload in self.payloads:
            if self.write_scope not in payload.SCOPES:
                raise ScopeError(
                    f"{payload.TYPE} may be committed in scope {' or '.join(sorted(payload.SCOPES))}, not in "
                    f"{self.write_scope!r}; commit it separately"
                )


class Event(NamedTuple):
    """A verified event; `content` is the payload without fields that are not set, never modified, and like `payload` of the present version."""

    seq: int
    commit_id: str
    last: bool
    type: str
    payload: Payload
    content: Mapping[str, Any]
    write_scope: WriteScope
    task_id: str | None
    actor: Actor
    timestamp: str
    occurred_at: str
    signature: str
    key_id: str = ""


class Line(NamedTuple):
    """An event as it is stored, not yet verified. A purged one has neither payload nor salt."""

    seq: int
    type: str
    head: bytes
    payload: bytes | None
    salt: bytes | None
    signature: bytes

    @property
    def is_purged(self) -> bool:
        """Whether it has no payload."""
        return self.payload is None

    @property
    def data(self) -> bytes:
        """The event as one line of canonical JSON, as releases 0.1 and 0.2 stored it."""
        salt = None if self.salt is None else self.salt.hex()
        payload = b"null" if self.payload is None else self.payload
        return b'{"head":%b,"payload":%b,"salt":%b,"signature":%b}' % (
            self.head,
            payload,
            canonical(salt),
            canonical(self.signature.hex()),
        )

    def purged(self) -> Line:
        """Return it without its payload and salt."""
        return self._replace(payload=None, salt=None)


@dataclass(frozen=True, slots=True)
class Chain:
    """The end of the chain, which the next line must follow."""

    store_id: str
    seq: int = 0
    signature: str = FIRST_SIGNATURE
    timestamp: str = ""


@dataclass(frozen=True, slots=True)
class Committed:
    """The events of one whole commit, without purged ones, and the end of the chain after it."""

    events: tuple[Event, ...]
    after: Chain


class Sealed(NamedTuple):
    """Lines ready to be appended, their events, and the end of the chain after them."""

    lines: list[Line]
    events: list[Event]
    chain: Chain


class LineError(ValueError):
    """A line is not what was signed. The journal adds the position."""


class UnknownEnvelopeError(LineError):
    """A line's envelope has a version that this release does not know."""


class SignatureError(LineError):
    """A line's signature is not that of the key that it names."""


class ForeignKeyError(SignatureError):
    """A line was signed with another key, or with one that is missing: `missing` is its id."""

    def __init__(self, message: str, *, missing: str | None = None) -> None:
        self.missing = missing
        super().__init__(message)


KeyOf = Callable[[str], SigningKey]
"""Returns the key of the id that a line names, or raises a `ForeignKeyError`."""


def canonical(value: object) -> bytes:
    """Canonical JSON: UTF-8, sorted keys, no white space, shortest round-trip numbers."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def seal(drafts: Sequence[CommitDraft], chain: Chain, key: SigningKey, now: str) -> Sealed:
    """Assign numbers and timestamps to the events of these commits, and sign them. Raises `PayloadError` for an event that is too large."""
    lines: list[Line] = []
    events: list[Event] = []
    seq, signature = chain.seq, chain.signature
    for draft in drafts:
        commit_id = draft.commit_id or str(uuid4())
        for index, payload in enumerate(draft.payloads):
            seq += 1
            content = payload.dump()
            salt = os.urandom(16)
            last = index == len(draft.payloads) - 1
            head = {
                "store_id": chain.store_id,
                "seq": seq,
                "commit_id": commit_id,
                "last": last,
                "event_id": str(uuid4()),
                "type": payload.TYPE,
                "event_version": payload.VERSION,
                "write_scope": draft.write_scope,
                "task_id": draft.task_id,
                "actor": draft.actor,
                "timestamp": now,
                "occurred_at": payload.occurred_at() or now,
                "envelope_version": ENVELOPE_VERSION,
                "signature_version": SIGNATURE_VERSION,
                "key_id": key.key_id,
                "prev_signature": signature,
                "payload_sha256": hashlib.sha256(salt + (body := canonical(content))).hexdigest(),
            }
            signature = _sign(key, front := canonical(head))
            if (size := len(front) + len(body)) >= MAX_LINE_BYTES:
                raise PayloadError(
                    f"{payload.TYPE} takes {size:,} bytes, the limit is {MAX_LINE_BYTES:,}; shorten its lists"
                )
            lines.append(Line(seq, payload.TYPE, front, body, salt, bytes.fromhex(signature)))
            events.append(_event(head, payload, content, signature))
    return Sealed(lines, events, Chain(chain.store_id, seq, signature, now))


def resealed(line: Line, chain: Chain, key: SigningKey) -> tuple[Line, Chain]:
    """Return a verified line, signed anew with a key in another chain, and the end of that chain after it."""
    head = {**orjson.loads(line.head), "key_id": key.key_id, "prev_signature": chain.signature}
    signature = _sign(key, front := canonical(head))
    again = line._replace(head=front, signature=bytes.fromhex(signature))
    return again, Chain(chain.store_id, line.seq, signature, head["timestamp"])


def unseal(line: Line, chain: Chain, key: SigningKey | KeyOf | None) -> tuple[Event, Chain]:
    """Verify one line against the chain, all but its signature if there is no key, and return its event; else raise `LineError`, or `PayloadError` if it is authentic."""
    head, signature = verified(line, chain, key)
    payload, content = _payload(head, _content(line, head))
    event = _event(head, payload, content, signature)
    return event, Chain(chain.store_id, event.seq, signature, event.timestamp)


def followed(line: Line, chain: Chain, key: SigningKey | KeyOf | None, *, is_purged: bool) -> Chain:
    """Verify one line against the chain without parsing its payload, which a purge may have removed; return the end of the chain after it."""
    head, signature = verified(line, chain, key)
    if not (is_purged and line.is_purged):
        _signed_payload(line, head)
    return Chain(chain.store_id, line.seq, signature, head["timestamp"])


def _content(line: Line, head: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line's payload, parsed, if it is the one that its head names."""
    payload = _signed_payload(line, head)
    try:
        content = orjson.loads(payload)
        if not isinstance(content, dict) or canonical(content) != payload:
            raise LineError("the bytes are not in canonical form")
    except orjson.JSONDecodeError:
        raise LineError("the payload is not JSON") from None
    except orjson.JSONEncodeError:
        raise LineError("the line is nested too deeply") from None
    return content


def _signed_payload(line: Line, head: Mapping[str, Any]) -> bytes:
    """Return a line's payload if it is the one that its head names."""
    if line.payload is None or line.salt is None:
        raise LineError("the payload is missing and no purge names it")
    if hashlib.sha256(line.salt + line.payload).hexdigest() != head["payload_sha256"]:
        raise LineError("the payload is not the one that was signed")
    return line.payload


class PurgedHead(NamedTuple):
    """What is left of a purged event."""

    seq: int
    commit_id: str
    last: bool


def unseal_purged(line: Line, chain: Chain, key: SigningKey | KeyOf | None) -> tuple[PurgedHead, Chain]:
    """Verify a purged line against the chain. The caller knows whether a purge names it."""
    head, signature = verified(line, chain, key)
    if line.payload is not None or line.salt is not None:
        raise LineError("a purged line holds a payload")
    after = Chain(chain.store_id, head["seq"], signature, head["timestamp"])
    return PurgedHead(head["seq"], head["commit_id"], head["last"]), after


def unseal_any(line: Line, chain: Chain, key: SigningKey | KeyOf | None) -> tuple[Event | PurgedHead, Chain]:
    """Verify one line, purged or not, against the chain, and return what it holds. Raises as `unseal` does."""
    return unseal_purged(line, chain, key) if line.is_purged else unseal(line, chain, key)


def unseal_alone(line: Line, store_id: str, key: SigningKey | KeyOf | None) -> Event:
    """Verify one line without the line before it, and return its event. Raises as `unseal` does."""
    return unseal(line, _before(line, store_id), key)[0]


def content_alone(line: Line, store_id: str, key: SigningKey | KeyOf | None) -> dict[str, Any]:
    """Verify one line without the line before it, and return its payload as it was written, in whatever version; no schema is applied."""
    return _content(line, verified(line, _before(line, store_id), key)[0])


def _before(line: Line, store_id: str) -> Chain:
    try:
        head = orjson.loads(line.head)
        return Chain(store_id, head["seq"] - 1, head["prev_signature"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise LineError("the line is not an envelope with a head") from None


def stored(row: Sequence[Any]) -> Line:
    """Return the event of a row of the table, not verified; raise `LineError` if a column has another type."""
    seq, type_, head, payload, salt, signature = row
    if not (
        isinstance(seq, int)
        and isinstance(type_, str)
        and isinstance(head, bytes)
        and (payload is None or isinstance(payload, bytes))
        and (salt is None or isinstance(salt, bytes))
        and isinstance(signature, bytes)
    ):
        raise LineError("the bytes are not in canonical form")
    return Line(seq, type_, head, payload, salt, signature)


def parsed(data: bytes) -> Line:
    """Return the parts of an event that is one canonical line of JSON, not verified, or raise `LineError`; spaces after a purged one are ignored."""
    try:
        envelope = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise LineError("the line is not JSON") from None
    if not isinstance(envelope, dict) or envelope.keys() != {"head", "payload", "salt", "signature"}:
        raise LineError("the line is not an envelope with head, payload, salt and signature")
    head, content, salt, signature = (envelope[name] for name in ("head", "payload", "salt", "signature"))
    try:
        raw_salt = None if salt is None else bytes.fromhex(salt)
        payload = None if content is None else canonical(content)
        line = Line(head["seq"], head["type"], canonical(head), payload, raw_salt, bytes.fromhex(signature))
        if not (isinstance(line.seq, int) and isinstance(line.type, str)):
            raise TypeError("a number or a type is none")
        if line.data != (data.rstrip(b" ") if payload is None else data):
            raise LineError("the bytes are not in canonical form")
    except orjson.JSONEncodeError:
        raise LineError("the line is nested too deeply") from None
    except (ValueError, KeyError, TypeError) as error:
        raise error if isinstance(error, LineError) else LineError("the line is not an envelope with a head") from None
    return line


def verified(line: Line, chain: Chain, key: SigningKey | KeyOf | None) -> tuple[dict[str, Any], str]:
    """Verify the form of a line's head and its signature; return the head and the signature in hexadecimal."""
    try:
        head = orjson.loads(line.head)
    except orjson.JSONDecodeError:
        raise LineError("the head is not JSON") from None
    if not isinstance(head, dict) or head.keys() != _HEAD_FIELDS.keys():
        raise LineError("the head's fields are not those of an event")
    for name, value in head.items():
        if type(value) not in _HEAD_FIELDS[name]:
            raise LineError(f"the head's {name} has the wrong type")
    if not is_canonical(head["timestamp"]):
        raise LineError("the head's timestamp is not a valid time")
    if canonical(head) != line.head or (head["seq"], head["type"]) != (line.seq, line.type):
        raise LineError("the bytes are not in canonical form")
    if head["envelope_version"] != ENVELOPE_VERSION or head["signature_version"] != SIGNATURE_VERSION:
        raise UnknownEnvelopeError(
            f"envelope version {head['envelope_version']}, signature version {head['signature_version']} are unknown "
            "to this release"
        )
    if key is not None:
        if not isinstance(key, SigningKey):
            key = key(head["key_id"])
        elif head["key_id"] != key.key_id:
            raise ForeignKeyError(f"it was signed with key {head['key_id']}, not with the key given, {key.key_id}")
        if not hmac.compare_digest(hmac.digest(key.secret, line.head, "sha256"), line.signature):
            raise SignatureError("the signature is invalid")
    if head["store_id"] != chain.store_id:
        raise LineError(f"the event belongs to store {head['store_id']}")
    if head["seq"] != chain.seq + 1 or head["prev_signature"] != chain.signature:
        raise LineError(f"event {head['seq']} does not follow event {chain.seq}")
    return head, line.signature.hex()


def _payload(head: Mapping[str, Any], content: Mapping[str, Any]) -> tuple[Payload, Mapping[str, Any]]:
    """Return a verified payload, and what the journal would hold of it, both of the present version."""
    kind = PAYLOADS.get((head["type"], head["event_version"]))
    if kind is None:
        raise UnknownEventError(
            f"event {head['seq']} is of type {head['type']!r}, version {head['event_version']}, which this release of "
            "memgraph does not know; install a newer one"
        )
    version = head["event_version"]
    try:
        payload = kind.parse(content)
        while upcast := UPCASTERS.get((kind.TYPE, version)):
            content, version = upcast(content), version + 1
            payload = PAYLOADS[kind.TYPE, version].parse(content)
        return payload, content
    except InvalidInputError as error:
        raise PayloadError(
            f"event {head['seq']} ({head['type']}) does not fit its schema: {error.field}: {error.problem}"
        ) from None


def _event(head: Mapping[str, Any], payload: Payload, content: Mapping[str, Any], signature: str) -> Event:
    return Event(
        head["seq"],
        head["commit_id"],
        head["last"],
        head["type"],
        payload,
        content,
        head["write_scope"],
        head["task_id"],
        head["actor"],
        head["timestamp"],
        head["occurred_at"],
        signature,
        head["key_id"],
    )


def _sign(key: SigningKey, head: bytes) -> str:
    return hmac.digest(key.secret, head, "sha256").hex()
