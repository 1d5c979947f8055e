"""Pins: texts that hold until somebody edits or removes them explicitly.

A pin is a pinned memory with its kind as a tag, so a constraint is what recall already puts before everything else, in its task and project
alone. The record of the pin beside it makes it immutable: no other event may change its text or hide it.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.fold.tasks import PIN, REMOVAL, check_writable, is_pin
from memgraph.index.columns import PIN_SOURCE
from memgraph.model.base import Content, Name, QueryText, checked
from memgraph.model.events.payload import Actor, Payload
from memgraph.model.events.tasks import PinAdded, PinEdited, PinRemoveCancelled, PinRemoved, PinRemoveRequested
from memgraph.model.ids import canonical_name, natural_id, new_id, stored_form
from memgraph.model.memory import PrivacyTier, SemanticMemory, StoredMemory
from memgraph.model.results.tasks import PIN_KINDS, Pin, PinKind, PinRemoval, PinsRead, PinUpsert
from memgraph.model.timestamps import from_iso, to_iso
from memgraph.ports import Row
from memgraph.store import AgentMemoryStore
from memgraph.store.past import When, moment_of
from memgraph.tasks.sessions import find_task

TOKEN_LIFE_S = 180
"""How long a request to remove a pin can be confirmed."""
_REMOVED = "the pin was removed"


@dataclass(frozen=True)
class Pins:
    """The pins of a store."""

    store: AgentMemoryStore
    uptime_s: Callable[[], float] = time.monotonic
    """The machine's monotonic time in seconds: setting the clock back does not prolong a token's life."""

    def upsert(
        self,
        text: str,
        *,
        kind: PinKind = "fact",
        task_id: str | None = None,
        expires_at: When | None = None,
        actor: Actor = "user",
    ) -> PinUpsert:
        """Pin a text, or return the pin of the same task that has it already, unchanged.

        Texts have at most 800 characters, and are compared without case and white space.

        Parameters
        ----------
        kind : {"fact", "preference", "constraint", "temporary"}
        task_id : str, optional
            Default: it holds for every task.
        expires_at : str, date or datetime, optional
            When a temporary pin ends. Other kinds have no end.
        """
        text = checked(Content, text, "text").strip()
        ends = self._end(kind, expires_at)
        with self.store.exclusive():
            name = None if task_id is None else find_task(self.store, task_id).id
            known = self._with_text(name, self.store.without_secrets(text))
            if known is not None:
                return PinUpsert(pin=known, is_new=False)
            pin_id = new_id()
            memory = SemanticMemory(
                id=pin_id,
                content=text,
                tags=[kind],
                outcome="positive",
                is_pinned=True,
                trust_class="agent" if actor == "agent" else "user",
                task_id=name,
                source=PIN_SOURCE,
                reason=f"pinned as {kind}",
                invalid_at=ends,
            )
            event = PinAdded(id=pin_id, kind=kind, expires_at=ends)
            self.store.commit("task" if name else "global", [memory, event], task_id=name, actor=actor)
            return PinUpsert(pin=self.get(pin_id), is_new=True)

    def get(self, pin_id: str) -> Pin:
        """Return a pin, also one that has ended or was removed."""
        row = self.store.reader.record(PIN, stored_form(pin_id))
        memory = self.store.reader.get(pin_id) if row is not None else None
        if row is None or memory is None:
            raise NotFoundError("pin", str(pin_id), listed_by="memgraph pins")
        return _pin(row, memory)

    def list(self, *, task_id: str | None = None, all_tasks: bool = False, kind: PinKind | None = None) -> list[Pin]:
        """Return the pins that hold, oldest first: the global ones and those of a task, or of every task."""
        name = None if task_id is None else find_task(self.store, task_id).id
        checked(PinKind | None, kind, "kind")
        pins = [one for one in self._held() if all_tasks or one.task_id in (None, name)]
        return [one for one in pins if kind in (None, one.kind)]

    def edit(
        self,
        pin_id: str,
        *,
        text: str | None = None,
        kind: PinKind | None = None,
        expires_at: When | None = None,
        privacy_tier: PrivacyTier | None = None,
        domain: str | None = None,
    ) -> Pin:
        """Change a pin explicitly. What is omitted stays, and equal values change nothing.

        Parameters
        ----------
        expires_at : str, date or datetime, optional
            When a temporary pin ends.
        privacy_tier : {"public", "sensitive", "private"}, optional
        domain : str, optional
            An empty one clears it.
        """
        privacy: dict[str, Any] = {}
        if privacy_tier is not None:
            privacy["privacy_tier"] = checked(PrivacyTier, privacy_tier, "privacy_tier")
        if domain is not None:
            privacy["domain"] = checked(Name, domain, "domain") if domain != "" else None
        with self.store.exclusive():
            known = self._holding(pin_id)
            new_kind = known.kind if kind is None else checked(PinKind, kind, "kind")
            given = known.expires_at if expires_at is None and new_kind == "temporary" else expires_at
            is_same = (new_kind, given) == (known.kind, known.expires_at)
            ends = known.expires_at if is_same else self._end(new_kind, given)
            content = known.content if text is None else checked(Content, text, "text").strip()
            twin = self._with_text(known.task_id, content)
            if twin is not None and twin.id != known.id:
                raise InvalidInputError(f"is that of the pin {twin.id} already", field="text", value=content)
            self.store.curation.change(
                [known.id],
                lambda memory, _row, _now: {
                    "content": self.store.without_secrets(content),
                    "invalid_at": ends,
                    "tags": [new_kind, *(tag for tag in memory.tags if tag not in (known.kind, new_kind))],
                    **privacy,
                },
                beside=[PinEdited(id=known.id, kind=new_kind, expires_at=ends)],
            )
            return self.get(known.id)

    def request_removal(self, pin_id: str, *, actor: Actor = "user") -> PinRemoval:
        """Ask to remove a pin. Nothing changes until the token is confirmed, within three minutes."""
        with self.store.exclusive():
            pin = self._holding(pin_id)
            token = secrets.token_hex(8)  # an argument of a command: it must not begin with a dash
            ends = to_iso(from_iso(self.store.now()) + timedelta(seconds=TOKEN_LIFE_S))
            uptime_ms = int(1_000 * self.uptime_s())
            asked = {"request_id": self._request_id(token), "expires_at": ends, "uptime_ms": uptime_ms}
            self._commit(pin, PinRemoveRequested.parse({"id": pin.id, **asked}), actor)
            return PinRemoval(pin=pin, token=token, expires_at=ends)

    def confirm_removal(self, pin_id: str, token: str) -> Pin:
        """Remove a pin. Confirming again changes nothing."""
        with self.store.exclusive():
            pin, request = self._requested(pin_id, token)
            if request["state"] == "confirmed":
                return pin
            if request["state"] == "cancelled":
                raise InvalidInputError("was cancelled; ask for the removal again", field="token")
            if self._has_expired(request):
                raise InvalidInputError(
                    f"has expired, after {TOKEN_LIFE_S // 60} minutes; ask for the removal again", field="token"
                )
            self._remove(self._holding(pin.id), request["id"])
            return self.get(pin.id)

    def cancel_removal(self, pin_id: str, token: str, *, actor: Actor = "user") -> Pin:
        """Withdraw a request to remove a pin. Cancelling again changes nothing."""
        with self.store.exclusive():
            pin, request = self._requested(pin_id, token)
            if request["state"] == "confirmed":
                raise InvalidInputError("was confirmed: the pin is removed", field="token")
            if request["state"] == "open" and pin.removed_at is None:
                self._commit(pin, PinRemoveCancelled(id=pin.id, request_id=request["id"]), actor)
            return pin

    def forget(self, memory_ids: Iterable[str]) -> Sequence[str]:
        """Remove those of these memories that are pins, at once; return their ids. ``memgraph forget --pins`` calls it."""
        with self.store.exclusive():
            rows = [self.store.reader.record(PIN, stored_form(one)) for one in dict.fromkeys(memory_ids)]
            pins = [self.get(row["id"]) for row in rows if row is not None and is_pin(row)]
            for task in {one.task_id for one in pins if one.task_id is not None}:
                check_writable(task, find_task(self.store, task).status)  # before the first one is removed
            for pin in pins:
                self._remove(pin, None)
        return [pin.id for pin in pins]

    def _remove(self, pin: Pin, request_id: str | None) -> None:
        now = self.store.now()
        changes = {"is_pinned": False, "archived_at": now, "archive_reason": _REMOVED}
        event = PinRemoved(id=pin.id, request_id=request_id)
        self.store.curation.change([pin.id], lambda *_: changes, beside=[event])

    def _requested(self, pin_id: str, token: str) -> tuple[Pin, Row]:
        pin, known = self.get(pin_id), checked(Name, token, "token").strip()
        request = self.store.reader.record(REMOVAL, self._request_id(known))
        if request is None or request["pin_id"] != pin.id:
            raise InvalidInputError("is none of this pin; `memgraph pins remove ID` gives one", field="token")
        return pin, request

    def _has_expired(self, request: Row) -> bool:
        """Return whether a token's life is over, by the clock or by the machine's uptime, so that none outlives a restart."""
        passed_ms = 1_000 * self.uptime_s() - request["uptime_ms"]
        return bool(self.store.now() > request["expires_at"] or not -1 <= passed_ms <= 1_000 * TOKEN_LIFE_S)

    def _request_id(self, token: str) -> str:
        return natural_id("pin removal", self.store.hmac_of(token))

    def _commit(self, pin: Pin, event: Payload, actor: Actor) -> None:
        self.store.commit("task" if pin.task_id else "global", [event], task_id=pin.task_id, actor=actor)

    def _holding(self, pin_id: str) -> Pin:
        pin = self.get(pin_id)
        if pin.removed_at is not None:
            raise InvalidInputError(f"names a pin that was removed, at {pin.removed_at}", field="pin_id", value=pin.id)
        return pin

    def _with_text(self, task_id: str | None, text: str) -> Pin | None:
        """Return the pin of a task, or of none, that has a text already, whatever its case and white space."""
        wanted = canonical_name(text)
        of_task = (one for one in self._held() if one.task_id == task_id)
        return next((one for one in of_task if canonical_name(one.content) == wanted), None)

    def _held(self) -> Sequence[Pin]:
        now = self.store.now()
        rows = [row for row in self.store.reader.every_record(PIN) if is_pin(row)]
        rows = sorted((row for row in rows if row.get("expires_at", now) >= now), key=lambda row: int(row["seq"]))
        memories = {memory.id: memory for memory in self.store.read_memories([row["id"] for row in rows])}
        return [_pin(row, memories[row["id"]]) for row in rows if row["id"] in memories]

    def _end(self, kind: PinKind, expires_at: When | None) -> str | None:
        """Return the end of a pin in canonical form; refuse a temporary one without end, and any other one with one."""
        checked(PinKind, kind, "kind")
        if kind != "temporary":
            if expires_at is not None:
                raise InvalidInputError(f"has no meaning for a {kind}: only temporary pins end", field="expires_at")
            return None
        if expires_at is None:
            raise InvalidInputError("is missing: when does the temporary pin end?", field="expires_at")
        ends = moment_of(expires_at, field="expires_at")
        if ends <= self.store.now():
            raise InvalidInputError("is in the past", field="expires_at", value=expires_at)
        return ends


def _pin(row: Row, memory: StoredMemory) -> Pin:
    return Pin.of_row(row, content=memory.content, removed_at=row.get("closed_at"))


_LINE = re.compile(
    r"- \[(?P<kind>\w+)(?: until (?P<until>[^\]]+))?\] (?P<text>.*?)(?: <!-- pin (?P<id>[0-9a-f-]{36}) -->)?", re.ASCII
)
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "<": "\\<"}
_BACK = {escaped: char for char, escaped in _ESCAPES.items()}
_UNSAFE = re.compile("[\\\\<\x01-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]")
"""What could end a line, begin a comment or tag, or is not seen by who edits the list."""
_ESCAPED = re.compile(r"\\(?:[\\nr<]|u\{(?P<code>[0-9a-f]{1,5})\})")


def as_markdown(pins: Iterable[Pin], *, task_id: str | None = None) -> str:
    """Return pins as Markdown: a line for each, with its kind, its text and its id in a comment."""
    lines = [f"# Pins of the task {_escaped(task_id)}" if task_id is not None else "# Pins", ""]
    lines += [_line(pin) for pin in pins if pin.task_id == task_id]
    return "\n".join(lines) + "\n"


def read_markdown(pins: Pins, text: str, *, task_id: str | None = None) -> PinsRead:
    """Edit the pins whose lines have changed, and add those of lines without an id. A pin without a line stays: `remove` it."""
    lines = [
        _parsed(pins, number, line, task_id)
        for number, line in enumerate(checked(QueryText, text, "text").split("\n"), start=1)
        if line.startswith("- ")
    ]
    ids: dict[str, list[str]] = {"added": [], "edited": []}
    unchanged = 0
    for before, content, given in lines:
        if before is None:
            made = pins.upsert(content, task_id=task_id, **given)
            changed = "added" if made.is_new else ""
            pin = made.pin
        else:
            pin = pins.edit(before.id, text=content, **given)
            changed = "edited" if pin != before else ""
        if changed:
            ids[changed].append(pin.id)
        unchanged += not changed
    return PinsRead(unchanged=unchanged, **ids)


def _parsed(pins: Pins, number: int, line: str, task_id: str | None) -> tuple[Pin | None, str, dict[str, Any]]:
    """Return the pin that a line names, its text, and its kind and end."""
    match = _LINE.fullmatch(line.rstrip())
    if match is None or match["kind"] not in PIN_KINDS:
        problem = f"is no pin in line {number}; a pin is `- [KIND] TEXT`, KIND one of {', '.join(PIN_KINDS)}"
        raise InvalidInputError(problem, field="text", value=line)
    content = _ESCAPED.sub(lambda one: chr(int(one["code"], 16)) if one["code"] else _BACK[one[0]], match["text"])
    before = pins.get(match["id"]) if match["id"] is not None else None
    if before is not None and before.task_id != task_id:
        problem = f"names a pin of {f'the task {before.task_id}' if before.task_id else 'no task'} in line {number}"
        raise InvalidInputError(problem, field="text", value=line)
    return before, content, {"kind": match["kind"], "expires_at": match["until"]}


def _line(pin: Pin) -> str:
    until = f" until {pin.expires_at}" if pin.expires_at else ""
    return f"- [{pin.kind}{until}] {_escaped(pin.content)} <!-- pin {pin.id} -->"


def _escaped(text: str) -> str:
    return _UNSAFE.sub(lambda found: _ESCAPES.get(found[0], f"\\u{{{ord(found[0]):x}}}"), text)
