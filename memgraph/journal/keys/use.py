"""Which key signed which part of a journal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson

from memgraph.journal.envelope import Event, Line
from memgraph.model.events.store import KeyRotated
from memgraph.model.timestamps import from_iso, to_iso


@dataclass(frozen=True, slots=True)
class KeyUse:
    """The use of one key: it signs the events from `first_seq` on, until the next key does.

    Attributes
    ----------
    since : str
        Canonical time of the event that began it.
    """

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

    def between(self, first: int, last: int) -> set[str]:
        """Return the ids of the keys that sign the events from one number to another."""
        uses = [use.key_id for use in self.uses if first < use.first_seq <= last]
        return {*uses, *filter(None, [self.at(first)])}

    def after(self, event: Event) -> KeyHistory:
        """Return the history after one more event.

        A rotation counts only if the key that it replaces signed it: in a journal that was resealed, earlier rotations are signed
        with a later key. An unsigned event begins no use.
        """
        if not event.key_id:
            return self
        history = self if self.uses else KeyHistory((KeyUse(event.key_id, event.seq, event.timestamp),))
        rotated = event.payload
        if isinstance(rotated, KeyRotated) and rotated.previous_key_id == event.key_id:
            return KeyHistory((*history.uses, KeyUse(rotated.key_id, event.seq + 1, event.timestamp)))
        return history

    def retired(self) -> dict[str, str]:
        """Return when each earlier key was replaced, by its id."""
        return {use.key_id: after.since for use, after in zip(self.uses, self.uses[1:], strict=False)}

    def expiring(self, days: int) -> dict[str, str]:
        """Return until when each earlier key verifies, by its id, given the days that it may after its rotation."""
        return {key_id: _later(since, days) for key_id, since in self.retired().items()}

    def expired(self, days: int, now: str) -> list[str]:
        """Return the ids of the earlier keys that may no longer verify at a time, given the days that they may after their rotation."""
        return [key_id for key_id, end in self.expiring(days).items() if end < now]


def _later(moment: str, days: int) -> str:
    try:
        return to_iso(from_iso(moment) + timedelta(days=days))
    except OverflowError:
        return "9999-12-31T23:59:59.999Z"


def replaced_in(lines: Iterable[Line]) -> set[str]:
    """Return the ids of all keys that rotations replaced, also of those that a resealing has freed since."""
    return {found["previous_key_id"] for line in lines if (found := _rotation_in(line))}


def _rotation_in(line: Line) -> dict[str, Any] | None:
    """Return the payload of a rotation, without verifying it."""
    return _object(line.payload) if line.type == KeyRotated.TYPE and line.payload else None


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
        rotated = _rotation_in(line)
        if rotated is not None and rotated.get("previous_key_id") == key_id:
            uses.append(KeyUse(str(rotated.get("key_id")), line.seq + 1, moment))
    return KeyHistory(tuple(uses))
