"""Rotation: from one event on, another key signs."""

from __future__ import annotations

from collections.abc import Callable

from memgraph.errors import KeyMissingError
from memgraph.journal.baseline.header import sign_again
from memgraph.journal.envelope import CommitDraft
from memgraph.journal.journal import Journal
from memgraph.journal.keys.providers import FileKeys
from memgraph.journal.keys.ring import fingerprint, is_named, key_place, replaced_in
from memgraph.model.events.store import KeyRotated
from memgraph.ports import KeyProvider, SigningKey


def rotate(journal: Journal, provider: KeyProvider, *, now: Callable[[], str], rotated_by: str) -> KeyRotated:
    """Let another key sign from now on, and return the event that records it.

    With key files a new key is made. Any other provider must have the new key as its active one, and still have the earlier one.
    Processes that have the journal open follow when they read the event; graph and index, which the earlier key has sealed, are then
    built anew. Each step can be repeated: a key that was stored by a rotation that was cut off is used by the next one.

    Raises
    ------
    KeyMissingError
        The provider has no new key, or the present one is missing.
    JournalError
        The baseline is not what was signed; nothing is changed.
    """
    with journal.locked():
        present = journal.signing_key
        active = provider.key(journal.store_id)
        known = {use.key_id for use in journal.used.uses} | replaced_in(journal.lines())
        is_used = active is None or any(is_named(active, key_id) for key_id in known)
        if is_used and isinstance(provider, FileKeys):
            key = provider.made_next(journal.store_id)
        elif active is None or is_used:
            raise KeyMissingError(
                f"{_found(active)} {key_place(provider, journal.store_id).where}: add a new version of the key there as the active one, "
                "keep the present one, and run `memgraph keys rotate` again"
            )
        else:
            key = active
        sign_again(journal.folder, journal.store_id, journal.ring, (present, key))
        journal.condensed.sign_again((present, key))
        if isinstance(provider, FileKeys):
            if provider.find(journal.store_id, present.key_id) is None:  # it was another provider's: events need it
                provider.add(journal.store_id, present)
            provider.add(journal.store_id, key)
        event = KeyRotated(
            key_id=key.key_id,
            previous_key_id=present.key_id,
            fingerprint=fingerprint(key.secret),
            rotated_by=rotated_by,
        )
        journal.append([CommitDraft("system", [event], actor="user")], now())
        journal.activate(key)
        journal.checkpoint()  # the last one was made with the earlier key, which no longer counts
        for name in ("sealing.json", "former_seals.json"):  # of an unreleased version
            (journal.folder / name).unlink(missing_ok=True)
        return event


def _found(active: SigningKey | None) -> str:
    """Describe an active key that cannot become the next one, before its place."""
    if active is None:
        return "there is no key in"
    return f"the active key {active.key_id} is already in use or was replaced; it is in"
