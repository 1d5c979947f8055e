"""The keys of a store: which there are, which are needed, their rotation, export and import, and signing the history anew (resealing)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

import orjson

from memgraph.config import AgentMemoryConfig, load_config
from memgraph.disk.files import make_private_file
from memgraph.errors import JournalError, KeyMissingError, StorageError
from memgraph.journal import legacy
from memgraph.journal.baseline import packed
from memgraph.journal.envelope import Chain, CommitDraft, Line, resealed
from memgraph.journal.head_file import HeadFile
from memgraph.journal.journal import Journal
from memgraph.journal.key_providers import (
    MAX_DOCUMENT_BYTES,
    FileKeys,
    configured_keys,
    document_of,
    keys_in,
    store_named_in,
)
from memgraph.journal.keyring import (
    SOURCE_VARIABLE,
    KeyHistory,
    KeyRing,
    KeyUse,
    fingerprint,
    is_named,
    key_place,
    name_of,
    uses_in,
)
from memgraph.journal.opening import id_of, identity_in, is_store, opened, refuse_foreign
from memgraph.model.events.payload import MAX_WHOLE
from memgraph.model.events.store import JournalResealed, KeyRotated
from memgraph.ports import Clock, KeyProvider, Progress, SigningKey
from memgraph.store.opening import open_store_journal, release, times_of

KeyState = Literal["signs", "next", "verifies", "expired", "missing", "archived", "not needed"]


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """One key of a store: the events that it signed, until when it verifies them, and whether it is active, next, rotated, expired, missing or not needed."""

    key_id: str
    state: KeyState
    first_seq: int | None = None
    last_seq: int | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class KeyReport:
    """The keys of a store, in the order of their use, and what is wrong with them."""

    store_id: str
    provider: str
    keys: tuple[KeyEntry, ...]
    problems: tuple[str, ...] = ()


def list_keys(
    config: AgentMemoryConfig | None = None, *, keys: KeyProvider | None = None, clock: Clock | None = None
) -> KeyReport:
    """Return the keys of a store and their states. The journal is read but not verified, so that a store that is refused can be examined."""
    config = config or load_config()
    store_id = id_of(config.home, config.server)
    every, archived_until = _history(config, store_id)
    history = every.needed_after(archived_until)
    provider = keys or configured_keys(config)
    local = FileKeys(config.keys_home)
    problems: list[str] = []
    try:
        ring = KeyRing.from_providers(store_id, provider, local)
    except (KeyMissingError, StorageError) as error:
        problems.append(str(error))
        ring = KeyRing(store_id, local)
    used = _used(history, ring, config.key_verification_days, times_of(clock)())
    entries = [*_not_needed(every, history), *used]
    if not problems and ring.active is None:
        problems.append(f"the signing key is missing: {key_place(provider, store_id).remedy}")
    by_state = {state: [one.key_id for one in entries if one.state == state] for state in ("missing", "expired")}
    if by_state["missing"]:
        problems.append(f"keys that events need are missing: {', '.join(by_state['missing'])}")
    if by_state["expired"]:
        problems.append(
            f"keys that events need have expired: {', '.join(by_state['expired'])}; run `memgraph keys rotate --reseal`"
        )
    if ring.active and not any(is_named(ring.active, one.key_id) for one in entries):
        entries.append(KeyEntry(ring.active.key_id, "next" if history.uses else "signs"))
    for key in local.keys(store_id) if ring.active else ():
        if not any(is_named(key, one.key_id) for one in entries):
            entries.append(KeyEntry(key.key_id, "not needed"))
    return KeyReport(store_id, name_of(provider), tuple(entries), tuple(problems))


def _history(config: AgentMemoryConfig, store_id: str) -> tuple[KeyHistory, int]:
    """Return which keys the events name, and the last event that a baseline stands for."""
    with closing(opened(config.home, config.server)) as database:
        heads = HeadFile(config.keys_home, store_id)
        journal = Journal(database, config.home, store_id, None, heads=heads, lock_timeout_s=config.lock_timeout_s)
        if identity_in(database) is None:
            return uses_in(legacy.lines(config.home)), 0
        return uses_in(journal.every_line(until=MAX_WHOLE)), journal.archived_until()


def _not_needed(every: KeyHistory, needed: KeyHistory) -> list[KeyEntry]:
    ids = {use.key_id for use in needed.uses}
    return [
        KeyEntry(use.key_id, "archived", use.first_seq, then.first_seq - 1)
        for use, then in pairwise(every.uses)
        if use.key_id not in ids
    ]


def _used(history: KeyHistory, ring: KeyRing, days: int, now: str) -> list[KeyEntry]:
    until, entries = history.expiring(days), []
    for number, use in enumerate(history.uses):
        is_last = number == len(history.uses) - 1
        last_seq = None if is_last else history.uses[number + 1].first_seq - 1
        end = None if is_last else until[use.key_id]
        state: KeyState = "signs" if is_last else "expired" if end is not None and end < now else "verifies"
        if ring.find(use.key_id) is None:
            state = "missing"
        entries.append(KeyEntry(use.key_id, state, use.first_seq, last_seq, end))
    return entries


def rotate_key(
    config: AgentMemoryConfig | None = None,
    *,
    rotated_by: str | None = None,
    keys: KeyProvider | None = None,
    clock: Clock | None = None,
) -> KeyRotated:
    """Change the key that signs a store, and return the event that records it."""
    config = config or load_config()
    id_of(config.home, config.server)
    provider, now = keys or configured_keys(config), times_of(clock)
    with closing(open_store_journal(config, provider, now)) as journal:
        return rotate(journal, provider, now=now, rotated_by=rotated_by or f"memgraph {release()}")


def reseal_store(
    config: AgentMemoryConfig | None = None,
    *,
    resealed_by: str | None = None,
    keys: KeyProvider | None = None,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> JournalResealed:
    """Sign all events of a store anew with its present key, and return the event that records it."""
    config = config or load_config()
    id_of(config.home, config.server)
    now = times_of(clock)
    with closing(open_store_journal(config, keys, now, with_expired_keys=True)) as journal:
        return reseal(journal, now=now, resealed_by=resealed_by or f"memgraph {release()}", progress=progress)


def export_keys(path: Path, config: AgentMemoryConfig | None = None, *, keys: KeyProvider | None = None) -> list[str]:
    """Write the keys of a store to a new private file, in the form of the provider ``json``, and return their ids. All of them, or none."""
    config = config or load_config()
    provider = keys or configured_keys(config)
    report = list_keys(config, keys=provider)
    ring = KeyRing.from_providers(report.store_id, provider, FileKeys(config.keys_home))
    found: list[SigningKey] = []
    for entry in report.keys:
        key = ring.find(entry.key_id)
        if key is None and entry.state != "not needed":
            raise KeyMissingError(f"the key {entry.key_id} is missing; nothing was exported", key_id=entry.key_id)
        if key is not None:
            found.append(SigningKey(entry.key_id, key.secret))
    if ring.active is None:
        remedy = key_place(provider, report.store_id).remedy
        raise KeyMissingError(f"the signing key is missing, so nothing was exported: {remedy}")
    secret = ring.active.secret
    found.sort(key=lambda key: key.secret != secret)
    data = document_of(found, report.store_id)
    if not make_private_file(path, data):
        raise StorageError("exists already; the keys were not written: name a new file", path=path)
    return [key.key_id for key in found]


def import_keys(path: Path, config: AgentMemoryConfig | None = None) -> list[str]:
    """Add the keys of an exported document to the key file of the store, or of the one it names if there is none; return the new ids."""
    config = config or load_config()
    try:
        with path.open("rb") as file:
            data = file.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise StorageError(f"the keys cannot be read: {error.strerror}", path=path) from None
    store_id: str | None
    if is_store(config.home, config.server):
        store_id = id_of(config.home, config.server)
    else:
        refuse_foreign(config.home, config.server)
        store_id = store_named_in(data)
    if store_id is None:
        raise StorageError(
            f"names no store, and there is no store at {config.server or config.home}: import a file that `memgraph keys export` wrote, or name the "
            f"store with --home; to restore with these keys, set {SOURCE_VARIABLE} to this file and MEMGRAPH_KEY_PROVIDER to json",
            path=path,
        )
    local = FileKeys(config.keys_home)
    given = keys_in(data, str(path), store_id, advice="name the file that `memgraph keys export` wrote for this store")
    known = {key.key_id: key.secret for key in local.keys(store_id)}
    new = [key for key in given if known.get(key.key_id) != key.secret]
    local.add(store_id, *new, is_active=not known)
    return [key.key_id for key in new]


def rotate(journal: Journal, provider: KeyProvider, *, now: Callable[[], str], rotated_by: str) -> KeyRotated:
    """Let another key sign from now on, a new one of the key files, or the provider's active one, and return the event that records it. Repeatable."""
    with journal.locked():
        present = journal.signing_key
        active = provider.key(journal.store_id)
        # also keys that a resealing has freed since
        # not verified: the key of an archived rotation may be gone, which is no damage
        rotations = (orjson.loads(line.payload or b"{}") for line in journal.lines_of(KeyRotated.TYPE))
        replaced = {one["previous_key_id"] for one in rotations}
        known = {use.key_id for use in journal.used.uses} | replaced
        is_used = active is None or any(is_named(active, key_id) for key_id in known)
        if is_used and isinstance(provider, FileKeys):
            key = provider.made_next(journal.store_id)
        elif active is None or is_used:
            what = (
                f"the active key {active.key_id} is already in use or was replaced; it is"
                if active
                else "there is no key"
            )
            raise KeyMissingError(
                f"{what} in {key_place(provider, journal.store_id).where}: add a new version of the key there as the active one, "
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


def reseal(
    journal: Journal, *, now: Callable[[], str], resealed_by: str, progress: Progress | None = None
) -> JournalResealed:
    """Verify all events and sign them anew with the present key, in one transaction; payloads stay byte for byte. Return the event that records it."""
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
