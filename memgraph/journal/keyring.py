"""The keys of one store: how they are recognised, which one signs, which ones verify which events, and what is derived from them."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple, Protocol, runtime_checkable

import orjson

from memgraph.disk.seal import Seal
from memgraph.errors import KeyMissingError
from memgraph.journal.envelope import Event, ForeignKeyError, Line
from memgraph.logs import logger_of
from memgraph.model.events.store import KeyRotated
from memgraph.model.timestamps import from_iso, to_iso
from memgraph.ports import KeyProvider, RotatingKeyProvider, SigningKey

logger = logger_of(__name__)

SOURCE_VARIABLE = "MEMGRAPH_KEY_SOURCE"
DEFAULT_VERIFICATION_DAYS = 30
_WARNING_DAYS = 7
_MIN_SECRET_BYTES = 32
_FORM_OF_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/@:+=-]{7,299}")
_FINGERPRINT_AT_END = re.compile(r"(?:^|[:-])([0-9a-f]{16})$")


def fingerprint(secret: bytes) -> str:
    """Return the public digest of a secret: 16 hexadecimal digits. It was the id of every key before keys could be rotated."""
    return hashlib.sha256(b"memgraph key id\x1f" + secret).hexdigest()[:16]


def key_from_secret(secret: bytes, place: str | None = None) -> SigningKey:
    """Return the key of a secret, with the id ``place:fingerprint``, or the fingerprint alone."""
    digest = fingerprint(secret)
    return SigningKey(f"{place}:{digest}" if place else digest, secret)


def is_named(key: SigningKey, key_id: str) -> bool:
    """Return whether a key is the one that an id names: by its id, or, for a key of an earlier release or moved here, by its fingerprint."""
    if key.key_id == key_id:
        return True
    found = _FINGERPRINT_AT_END.search(key_id)
    return found is not None and found[1] == fingerprint(key.secret)


def secret_of(text: object, source: str) -> bytes:
    """Parse a secret, at least 64 hexadecimal digits; the `KeyMissingError` for anything else names the source, never the text."""
    try:
        secret = bytes.fromhex(text.strip()) if isinstance(text, str) else b""
    except ValueError:
        secret = b""
    if len(secret) < _MIN_SECRET_BYTES:
        raise KeyMissingError(f"{source} must hold at least 64 hexadecimal digits (32 bytes)")
    return secret


def check_key_id(key_id: object, source: str) -> str:
    """Return a key id, ``provider:name:version``, or one of the 16 digits that earlier releases used; refuse another form."""
    if not isinstance(key_id, str) or not _FORM_OF_ID.fullmatch(key_id):
        raise KeyMissingError(f"{source} names a key by something that is no key id (provider:name:version)")
    return key_id


def seal_of(key: SigningKey, purpose: str, store_id: str) -> Seal:
    """Return the seal that a key makes for one purpose in one store."""
    return Seal(seal_key(key.secret, purpose, store_id))


def seal_key(secret: bytes, purpose: str, store_id: str) -> bytes:
    """Derive the key of a seal from a secret: 32 bytes. The secret is uniformly random, so this is HKDF without its first step."""
    return hmac.digest(secret, f"memgraph seal\x1f{purpose}\x1f{store_id}".encode(), "sha256")


class KeyPlace(NamedTuple):
    """Where a store's key is, and what to do if it is missing there."""

    where: str
    remedy: str


@runtime_checkable
class PlacedKeys(Protocol):
    """A provider that says where its keys are, without reading them."""

    def place(self, store_id: str) -> KeyPlace:
        """Return where a store's key is."""
        ...


def key_place(keys: KeyProvider, store_id: str) -> KeyPlace:
    """Return where a provider has a store's key, also if it is the user's own class and does not say."""
    if isinstance(keys, PlacedKeys):
        return keys.place(store_id)
    return KeyPlace(f"the key provider {name_of(keys)}", "restore the key there")


def name_of(keys: KeyProvider) -> str:
    """Return a provider's name."""
    return str(getattr(keys, "name", type(keys).__name__))


class KeyRing:
    """Finds a store's keys by the ids that its events name: with the first provider, which has the active key, then with the others."""

    def __init__(self, store_id: str, *providers: KeyProvider, active: SigningKey | None = None) -> None:
        self.store_id = store_id
        self._providers = providers
        self.active = active
        self._known: dict[str, SigningKey] = {}

    @classmethod
    def from_providers(cls, store_id: str, *providers: KeyProvider) -> KeyRing:
        """Return the ring of a store; its active key is None if the first provider has none. Raises what the provider raises."""
        return cls(store_id, *providers, active=providers[0].key(store_id))

    @property
    def remedy(self) -> str:
        """What to do if the active key is missing or another store's, for messages."""
        return key_place(self._providers[0], self.store_id).remedy if self._providers else "restore the store's own key"

    def find(self, key_id: str) -> SigningKey | None:
        """Return the key that an id names, or None. What is not known is asked for again each time: it may have been added."""
        if key_id not in self._known:
            if self.active is not None and is_named(self.active, key_id):
                return self.active
            for provider in self._providers:
                key = provider.find(self.store_id, key_id) if isinstance(provider, RotatingKeyProvider) else None
                if key is not None:
                    self._known[key_id] = key
                    break
        return self._known.get(key_id)

    def verifying(self, key_id: str, expected_id: str | None = None) -> SigningKey:
        """Return the key that must verify an event, by the id that it names and that of the key in use there, if it is known, or raise `ForeignKeyError`."""
        expected = expected_id or key_id
        in_use = self.find(expected)
        if in_use is None:
            raise ForeignKeyError(_signed_with(key_id, self.active), missing=expected)
        if not is_named(in_use, key_id):
            raise ForeignKeyError(_signed_with(key_id, in_use))
        return in_use


def _signed_with(key_id: str, other: SigningKey | None) -> str:
    if other is None:
        return f"it was signed with key {key_id}, and no key is given"
    return f"it was signed with key {key_id}, not with the key given, {other.key_id}"


@dataclass(frozen=True, slots=True)
class KeyUse:
    """The use of one key: it signs the events from `first_seq` on, until the next key does. `since` is the time of the event that began it."""

    key_id: str
    first_seq: int
    since: str


@dataclass(frozen=True, slots=True)
class KeyHistory:
    """The keys of a journal in the order of their use. The last one signs what is written next."""

    uses: tuple[KeyUse, ...] = ()

    @property
    def current(self) -> str | None:
        """The id of the key that signs; None before the first event."""
        return self.uses[-1].key_id if self.uses else None

    def at(self, seq: int) -> str | None:
        """Return the id of the key that signs an event; None if that is not known yet."""
        return next((use.key_id for use in reversed(self.uses) if use.first_seq <= seq), None)

    def needed_after(self, seq: int) -> KeyHistory:
        """Return the keys that sign events after this one."""
        ended = sum(then.first_seq <= seq + 1 for then in self.uses[1:])
        return KeyHistory(self.uses[ended:])

    def until(self, seq: int) -> KeyHistory:
        """Return the keys whose use began by an event."""
        return KeyHistory(tuple(use for use in self.uses if use.first_seq <= seq))

    def after(self, event: Event) -> KeyHistory:
        """Return the history after one more event; a rotation counts only if it is signed by the key that it replaces, so one that was resealed with a later key does not."""
        if not event.key_id:
            return self
        history = self if self.uses else KeyHistory((KeyUse(event.key_id, event.seq, event.timestamp),))
        rotated = event.payload
        if isinstance(rotated, KeyRotated) and rotated.previous_key_id == event.key_id:
            return KeyHistory((*history.uses, KeyUse(rotated.key_id, event.seq + 1, event.timestamp)))
        return history

    def expiring(self, days: int) -> dict[str, str]:
        """Return until when each earlier key verifies, by its id, given the days that it may after its rotation."""
        return {use.key_id: _later(then.since, days) for use, then in zip(self.uses, self.uses[1:], strict=False)}

    def expired(self, days: int, now: str) -> list[str]:
        """Return the ids of the earlier keys that may no longer verify at a time, given the days that they may after their rotation."""
        return [key_id for key_id, end in self.expiring(days).items() if end < now]


def _later(moment: str, days: int) -> str:
    try:
        return to_iso(from_iso(moment) + timedelta(days=days))
    except OverflowError:
        return "9999-12-31T23:59:59.999Z"


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:  # damaged
        return None
    return found if isinstance(found, dict) else None


def uses_in(lines: Iterable[Line]) -> KeyHistory:
    """Return which keys the lines name, without verifying them: for reports on a journal that does not open."""
    uses: list[KeyUse] = []
    for line in lines:
        head = _object(line.head) or {}
        key_id, moment = str(head.get("key_id", "")), str(head.get("timestamp", ""))
        if not key_id:
            continue
        if not uses or uses[-1].key_id != key_id:
            uses.append(KeyUse(key_id, line.seq, moment))
        rotated = _object(line.payload or b"null") if line.type == KeyRotated.TYPE else None
        if rotated is not None and rotated.get("previous_key_id") == key_id:
            uses.append(KeyUse(str(rotated.get("key_id")), line.seq + 1, moment))
    return KeyHistory(tuple(uses))


def missing_keys(history: KeyHistory, ring: KeyRing) -> list[str]:
    """Return the ids of the keys that signed events and that no provider has."""
    return [key_id for key_id in dict.fromkeys(use.key_id for use in history.uses) if ring.find(key_id) is None]


def keys_are_missing(store_id: str, missing: Sequence[str]) -> KeyMissingError:
    """Return the error for keys that events need and no provider has."""
    return KeyMissingError(
        f"store {store_id}: keys that verify its events are missing: {', '.join(missing)}; restore them, for example with "
        "`memgraph keys import`",
        key_ids=missing,
    )


def check_presence(history: KeyHistory, ring: KeyRing) -> None:
    """Refuse a store unless every key that its events need is there; the error names all that are missing."""
    if missing := missing_keys(history, ring):
        raise keys_are_missing(ring.store_id, missing)


def check_validity(history: KeyHistory, ring: KeyRing, *, days: int | None, now: Callable[[], str]) -> None:
    """Refuse a store if a key that its events need was rotated more than some days ago (None: never); warn of what is due."""
    current = ring.find(history.current) if history.current else None
    if current and ring.active and not is_named(ring.active, current.key_id):
        logger.warning(
            "store %s: the key provider's active key %s does not sign this store yet; %srun `memgraph keys rotate` to change "
            "to it",
            ring.store_id,
            ring.active.key_id,
            "MEMGRAPH_KEY may be another store's: then correct or unset it; else "
            if ring.active.key_id.startswith("env:")
            else "",
        )
    if days is None or len(history.uses) < 2:
        return
    moment, until = now(), history.expiring(days)
    if expired := history.expired(days, moment):
        raise KeyMissingError(
            f"store {ring.store_id}: events are signed with keys that were rotated and may no longer verify them: "
            f"{', '.join(f'{key_id} (until {until[key_id]})' for key_id in expired)}; run `memgraph keys rotate --reseal` to sign "
            "them with the present key",
            key_ids=expired,
        )
    for key_id, end in until.items():
        if (days_left := (from_iso(end) - from_iso(moment)).days) < min(_WARNING_DAYS, days):
            logger.warning(
                "store %s: the rotated key %s verifies events for %d more days; run `memgraph keys rotate --reseal` before "
                "that",
                ring.store_id,
                key_id,
                days_left,
            )
