"""Access records: visible in the process at once, durable a moment later.

They wait here until the next commit, for a second, or for the store's close. A kill loses at most that second of them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

from memgraph.errors import MemGraphError
from memgraph.model.events import AccessEffect, AccessRecorded, Payload
from memgraph.model.memory import AgentMemory
from memgraph.model.relevance import ForgettingCurveConfig
from memgraph.ports import Row

logger = logging.getLogger("memgraph.store")

FLUSH_AFTER_S = 1.0


class PendingAccess:
    """What is not yet committed: the newest effect for each memory, and the retrievals it came from."""

    def __init__(self, flush: Callable[[], None]) -> None:
        self._flush = flush
        self._effects: dict[str, AccessEffect] = {}
        self._others: list[Payload] = []
        self._timer: threading.Timer | None = None

    def __bool__(self) -> bool:
        return bool(self._effects or self._others)

    def add(self, effects: Iterable[AccessEffect] = (), payload: Payload | None = None) -> None:
        """Note effects, and the event that says what happened."""
        self._effects.update((effect.id, effect) for effect in effects)
        if payload is not None:
            self._others.append(payload)
        if self._timer is None:
            self._timer = threading.Timer(FLUSH_AFTER_S, self._on_time)
            self._timer.daemon = True
            self._timer.start()

    def effects(self) -> list[AccessEffect]:
        """Return the effects that are pending."""
        return list(self._effects.values())

    def over(self, row: Row) -> Row:
        """Return a row with what is pending for it."""
        effect = self._effects.get(row["id"])
        return {**row, **effect.model_dump()} if effect else row

    def drain(self, is_live: Callable[[str], bool]) -> list[Payload]:
        """Return the events to commit, without effects on memories that are gone, and forget them."""
        effects = [effect for effect in self._effects.values() if is_live(effect.id)]
        payloads = [*self._others, *([AccessRecorded(accesses=effects)] if effects else [])]
        self._effects, self._others = {}, []
        self.stop()
        return payloads

    def put_back(self, payloads: Iterable[Payload]) -> None:
        """Take drained events back: their commit failed."""
        for payload in payloads:
            if isinstance(payload, AccessRecorded):
                self.add({effect.id: effect for effect in payload.accesses}.values())
            else:
                self.add(payload=payload)

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_time(self) -> None:
        self._timer = None
        try:
            self._flush()
        except MemGraphError as error:
            logger.warning("access records are kept for later: %s", error)


def effect_of(memory: AgentMemory, now: str, curve: ForgettingCurveConfig, *, reinforced: bool) -> AccessEffect:
    """Return what one use does to a memory: it is counted and, where asked, reinforced."""
    anchor, at = memory.relevance_anchor or 0.0, memory.relevance_at or now
    if reinforced:
        anchor, at = min(memory.relevance_score + curve.reinforcement_boost, curve.max_relevance), now
    return AccessEffect(
        id=memory.id or "",
        access_count=memory.access_count + 1,
        last_accessed_at=now,
        relevance_anchor=anchor,
        relevance_at=at,
    )
