"""What must be true of a store's keys before it is served."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memgraph.errors import KeyMissingError
from memgraph.journal.keys.ring import KeyRing
from memgraph.journal.keys.secret import is_named
from memgraph.journal.keys.use import KeyHistory
from memgraph.logs import logger_of
from memgraph.model.timestamps import from_iso

logger = logger_of(__name__)

DEFAULT_VERIFICATION_DAYS = 30
_WARNING_DAYS = 7


def missing_keys(history: KeyHistory, ring: KeyRing) -> list[str]:
    """Return the ids of the keys that signed events and that no provider has."""
    return [key_id for key_id in dict.fromkeys(use.key_id for use in history.uses) if ring.find(key_id) is None]


def check_presence(history: KeyHistory, ring: KeyRing) -> None:
    """Refuse a store unless every key that its events need is there.

    Raises
    ------
    KeyMissingError
        Keys are missing; the message names all of them.
    """
    if missing := missing_keys(history, ring):
        raise keys_are_missing(ring.store_id, missing)


def check_validity(history: KeyHistory, ring: KeyRing, *, days: int | None, now: Callable[[], str]) -> None:
    """Refuse a store if a key that its events need may no longer verify them; warn of what is due.

    Parameters
    ----------
    days : int or None
        Days for which a key verifies after its rotation; None: for ever.
    now : callable
        Returns the time; called only if a key was rotated.

    Raises
    ------
    KeyMissingError
        Keys have expired; the message names all of them.
    """
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
    if expired := [f"{key_id} (until {end})" for key_id, end in until.items() if end < moment]:
        raise KeyMissingError(
            f"store {ring.store_id}: events are signed with keys that were rotated and may no longer verify them: "
            f"{', '.join(expired)}; run `memgraph keys rotate --reseal` to sign them with the present key",
            key_ids=[key_id for key_id, end in until.items() if end < moment],
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


def keys_are_missing(store_id: str, missing: Sequence[str]) -> KeyMissingError:
    """Return the error for keys that events need and no provider has."""
    return KeyMissingError(
        f"store {store_id}: keys that verify its events are missing: {', '.join(missing)}; restore them, for example with "
        "`memgraph keys import`",
        key_ids=missing,
    )
