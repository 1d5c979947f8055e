"""Rotation: from one event on, another key signs. Resealing: the whole history is signed anew with the present key."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from memgraph.errors import JournalError, KeyMissingError
from memgraph.journal.baseline import packed
from memgraph.journal.envelope import Chain, CommitDraft, Line, resealed
from memgraph.journal.journal import Journal
from memgraph.journal.keys.providers import FileKeys
from memgraph.journal.keys.ring import KeyHistory, KeyUse, fingerprint, is_named, key_place, replaced_in
from memgraph.model.events.store import JournalResealed, KeyRotated
from memgraph.ports import KeyProvider, Progress, SigningKey


def rotate(journal: Journal, provider: KeyProvider, *, now: Callable[[], str], rotated_by: str) -> KeyRotated:
    """Let another key sign from now on, and return the event that records it.

    With key files a new key is made. Any other provider must have the new key as its active one, and still have the earlier one; else
    `KeyMissingError`. Processes that have the journal open follow when they read the event. Each step can be repeated: a key that was
    stored by a rotation that was cut off is used by the next one.
    """
    with journal.locked():
        present = journal.signing_key
        active = provider.key(journal.store_id)
        known = {use.key_id for use in journal.used.uses} | replaced_in(journal.lines_of(KeyRotated.TYPE))
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
        former = journal.ring.active
        journal.ring.active = key  # as if it were the provider's: the rotation to it is recorded, and it signs
        try:
            with journal.committing() as tx:
                journal.append([CommitDraft("system", [event], actor="user")], now())
                if (found := journal.rows_of_baseline()) is not None:
                    journal.sign_baseline(tx, found[0])
        except BaseException:
            journal.ring.active = former
            raise
        return event


def _found(active: SigningKey | None) -> str:
    """Describe an active key that cannot become the next one, before its place."""
    if active is None:
        return "there is no key in"
    return f"the active key {active.key_id} is already in use or was replaced; it is in"


def reseal(
    journal: Journal, *, now: Callable[[], str], resealed_by: str, progress: Progress | None = None
) -> JournalResealed:
    """Verify all events with the keys that signed them, and sign them anew with the present key; return the event that records it.

    It is one transaction. What the events say does not change: payloads, salts, numbers and times stay byte for byte. The head of the former chain is kept in a
    last event. What is sealed with the former key is made anew afterwards.
    """
    with journal.locked():
        if len(journal.used.uses) < 2:
            raise JournalError("all events of the journal are signed with the present key: there is nothing to reseal")
        key = journal.signing_key
        journal.verify(progress)
        before = hashlib.sha256()
        event = JournalResealed(
            seq=journal.tail.seq,
            signature=journal.tail.signature,
            sha256="0" * 64,
            key_id=key.key_id,
            freed_key_ids=list(dict.fromkeys(use.key_id for use in journal.used.uses[:-1])),
            resealed_by=resealed_by,
        )
        with journal.committing() as tx:
            tenant, chain = journal.database.tenant, journal.start
            baseline = journal.baseline
            ends: dict[int, Chain] = {}

            def signed(lines: Iterable[Line]) -> Iterator[Line]:
                nonlocal chain
                for line in lines:
                    before.update(line.data + b"\n")
                    again, chain = resealed(line, chain, key)
                    if baseline is not None and chain.seq == baseline.seq:
                        ends[chain.seq] = chain
                    yield again

            for first, last, types in list(tx.rows("archives", tenant)):
                body = packed(signed(journal.every_line(first - 1, until=last)))
                tx.run("put_archive", tenant, first, last, types, body)
            lines = journal.every_line(journal.archived_until())
            tx.many("sign_event", ((line.head, line.signature, tenant, line.seq) for line in signed(lines)))
            uses = KeyHistory((KeyUse(key.key_id, 1, journal.used.uses[0].since),))
            journal.continue_at(chain, uses)
            if baseline is not None:
                journal.sign_baseline(tx, replace(baseline, chain=ends[baseline.seq], used=uses))
            journal.put_head(tx)
            event = event.model_copy(update={"sha256": before.hexdigest()})
            journal.append([CommitDraft("system", [event], actor="user")], max(now(), chain.timestamp))
        return event
