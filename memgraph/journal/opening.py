"""Opens a store's journal, or creates it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import gettempdir
from typing import NamedTuple
from uuid import uuid4

import orjson

from memgraph.config import Server
from memgraph.disk.files import READ_ONLY, make_private_folder, refused_writes
from memgraph.disk.folders import TemporaryFolder, remove_abandoned
from memgraph.errors import DamagedJournalError, JournalError, KeyMissingError, NotAStoreError, StorageError
from memgraph.journal import legacy
from memgraph.journal.envelope import CommitDraft
from memgraph.journal.head_file import HeadFile
from memgraph.journal.journal import Journal, ReplacedJournalError
from memgraph.journal.key_providers import FileKeys
from memgraph.journal.keyring import (
    DEFAULT_VERIFICATION_DAYS,
    KeyRing,
    check_presence,
    check_validity,
    key_place,
    keys_are_missing,
    missing_keys,
    uses_in,
)
from memgraph.journal.sql import MOVED, Database, Postgres, SQLite
from memgraph.logs import logger_of, timed
from memgraph.model.events.store import StoreCreated
from memgraph.model.ids import stored_form
from memgraph.ports import KeyProvider, SigningKey

logger = logger_of(__name__)

FILE = "memgraph.db"
MOVED_COPY = "memgraph-moved-"
_TIMEOUT_S = 10.0
_NO_EVENTS = {
    "config.toml",
    "lock",
    "lock.pid",
    MOVED,
    "graph.lock",
    "graph.lock.pid",
    "graph.wanted",
    "past",
    "server",
    FILE,
    f"{FILE}-wal",
    f"{FILE}-shm",
}
"""Entries that a store's directory may hold without events."""
_MADE_FROM_EVENTS = ("graph/*.kuzu", "graph/*.ladybug", "cache/*.f32*", "index/index.npz", "journal/vectors/*.f32")


class Identity(NamedTuple):
    """A store in a database."""

    store_id: str
    copy_id: str | None = None


def open_journal(
    home: Path,
    keys: KeyProvider,
    *,
    keys_home: Path,
    now: Callable[[], str],
    created_by: str,
    lock_timeout_s: float = 10.0,
    allow_unverified: bool = False,
    verification_days: int | None = DEFAULT_VERIFICATION_DAYS,
    server: Server | None = None,
    moves: bool = True,
) -> Journal:
    """Open a store's journal; create it if the directory is new or empty, and, if it `moves`, move there what an earlier release wrote.

    With `allow_unverified` it is opened read-only if a key is missing or a signature is invalid. For `verification_days` a key verifies events after its
    rotation; None: for ever, as resealing needs.
    """
    made = made_from_events(home)  # checked before the journal: another process may be writing its first event
    if server is None and not is_store(home):
        refuse_foreign(home)
    if server is None and not (home / FILE).exists() and legacy.is_there(home):
        legacy.read_manifest(home)  # refused before anything is made
    is_moved = moves or server is not None or (home / FILE).exists()
    database = opened(home, server) if is_moved else temporary(home, "an earlier release's journal is only read")
    try:
        identity = identity_in(database)
        if identity is None and server is not None:
            if made:
                raise lost_journal(home, made, server)
            if database.refused:
                raise StorageError(f"has no store of this name, and {database.refused}", path=str(server))
        identity = identity or _identified(home, database, lock_timeout_s)
        key = keys.key(identity.store_id)
        if key is None and _is_empty(database, home):
            key = keys.create(identity.store_id)
        ring = KeyRing(identity.store_id, keys, FileKeys(keys_home), active=key) if key else None
        heads = HeadFile(keys_home, *identity)

        def loaded(ring: KeyRing | None) -> Journal:
            nonlocal database
            if ring is None and database.refused is None and identity_in(database) is None:
                database = temporary(home, "the signing key is missing")  # nothing unverified gets into the store
            journal = Journal(database, home, identity.store_id, ring, heads=heads, lock_timeout_s=lock_timeout_s)
            with timed(logger, logging.INFO, "opened the journal") as counts:
                if identity_in(database) is None:
                    _move(journal, identity)
                else:
                    try:
                        journal.load()
                    except ReplacedJournalError:
                        journal.load()  # another process has signed it anew meanwhile
                counts["events"] = journal.tail.seq
            return journal

        try:
            if ring is None:
                raise _key_missing(home, identity.store_id, keys)
            journal = loaded(ring)
            needed = journal.used.needed_after(journal.base.seq)
            check_presence(needed, ring)
        except (KeyMissingError, DamagedJournalError) as error:
            is_about_keys = isinstance(error, KeyMissingError) or error.concerns_signature
            if not (allow_unverified and is_about_keys):
                raise _with_all_missing(error, database, home, identity, ring) from None
            journal, ring = loaded(None), None
        if ring is not None:
            check_validity(needed, ring, days=verification_days, now=now)
        if made and journal.tail.seq == 0:
            raise lost_journal(home, made, server)
        _make_first_event(journal, key, created_by, now)
    except BaseException:
        database.close()
        raise
    if legacy.is_there(home) and database.refused is None:
        _finish_move(journal)
    return journal


def opened(home: Path, server: Server | None = None, *, creates: bool = True) -> Database:
    """Open a store's database; if the directory may not be written and holds only an earlier release's journal, one in a temporary folder."""
    _require_not_moved(home)
    if server is not None:
        make_private_folder(home)
        return Postgres(server.address, server.tenant, creates=creates)
    path = home / FILE
    if not path.exists() and home.exists() and refused_writes(home):
        return temporary(home, "it may not be written")
    return SQLite(path)


def _require_not_moved(home: Path) -> None:
    try:
        moved = orjson.loads((home / MOVED).read_bytes())
        to, day = moved["to"], moved["at"][:10]
    except (OSError, ValueError, TypeError, KeyError):
        return
    advice = f"use it there, and delete what is here; if that place is gone, delete {MOVED} here"
    raise StorageError(f"the store was moved to {to} on {day}: {advice}", path=home)


def temporary(home: Path, why: str) -> SQLite:
    """Return a database in a temporary folder, for a store that is only read."""
    try:
        parent = Path(gettempdir())
        remove_abandoned(parent, MOVED_COPY)
        folder = TemporaryFolder(parent, MOVED_COPY)
        return SQLite(folder.path / FILE, refused=f"{home}: {why}: {READ_ONLY}", keeps=folder)
    except OSError as error:
        raise StorageError(
            f"is read-only, and its journal cannot be copied: {error.strerror}; set TMPDIR to a directory with free space",
            path=home,
        ) from None


def _move(journal: Journal, identity: Identity) -> None:
    database = journal.database
    with database.lock().held(journal.lock_timeout_s):
        if identity_in(database) is not None:
            journal.load()  # another process has moved it
            return
        refused, database.refused = database.refused, None
        try:
            with database.writing(journal.lock_timeout_s):
                add_store(database, *identity)
                legacy.move(journal)
        finally:
            database.refused = refused


def _finish_move(journal: Journal) -> None:
    """Put the moved folder aside, unless another process has done so."""
    with journal.database.lock().held(journal.lock_timeout_s):
        if not legacy.is_there(journal.home) or legacy.read_manifest(journal.home)[0] != journal.store_id:
            return
        if (kept := legacy.finish(journal.home)) is not None:
            journal.notices.append(
                f"the journal of an earlier release was moved into {journal.path}; {kept} is kept until `memgraph migrate --finish`"
            )


def _identified(home: Path, database: Database, lock_timeout_s: float) -> Identity:
    """Return the identity of an earlier release's journal, or else make a new store's."""
    if legacy.is_there(home):
        return Identity(*legacy.read_manifest(home))
    with database.lock().held(lock_timeout_s):  # one process creates the store and the key for all
        found = identity_in(database)
        if found is None:
            if not _is_empty(database, home):
                raise DamagedJournalError("it names no store", path=database.path)
            found = Identity(str(uuid4()))
            add_store(database, *found)
            if isinstance(database, SQLite):
                database.erase()  # into the file itself: without a damaged write-ahead log it is still known to be a store
        return found


def add_store(database: Database, store_id: str, copy_id: str | None = None) -> None:
    """Name the store of an empty database, in the transaction that is open."""
    with database.writing(_TIMEOUT_S) as tx:
        tx.run("add_tenant", database.name, store_id, copy_id)
        identity_in(database)


def identity_in(database: Database) -> Identity | None:
    """Return the identity of the store in a database; None if there is none yet. Raises `DamagedJournalError` if its ids are not of our form."""
    if not database.has_tables:
        return None
    with database.reading() as tx:
        found = tx.one("tenant_named", database.name)
    if found is None:
        return None
    database.tenant = int(found[0])
    store_id, copy_id = found[1:]  # they become names of files
    is_named = all(one and stored_form(one) == one for one in (store_id, store_id if copy_id is None else copy_id))
    if not is_named or not (database.name or database.tenant == 1):
        raise DamagedJournalError("the store's id or number is none", path=database.path)
    return Identity(store_id, copy_id)


def identify(home: Path, keys: KeyProvider, *, keys_home: Path, server: Server | None = None) -> tuple[str, KeyRing]:
    """Return the id and the keys of an existing store; create nothing. Raises as `id_of` does, and `KeyMissingError`."""
    store_id = id_of(home, server)
    key = keys.key(store_id)
    if key is None:
        raise _key_missing(home, store_id, keys)
    return store_id, KeyRing(store_id, keys, FileKeys(keys_home), active=key)


def id_of(home: Path, server: Server | None = None) -> str:
    """Return the id of an existing store; create nothing. Raises `NotAStoreError` or `StorageError` if there is none."""
    found = _stored_identity(home, server) if server is not None or (home / FILE).exists() else None
    if found is not None:
        return found.store_id
    if server is None and legacy.is_there(home):
        return legacy.read_manifest(home)[0]
    refuse_foreign(home, server)
    place = home if server is None else str(server)
    raise StorageError("there is no store yet; the first `memgraph remember` creates it", path=place)


def is_store(home: Path, server: Server | None = None) -> bool:
    """Return whether there is a store, of this or an earlier release, in a directory or on a server."""
    if server is None:
        return (home / FILE).exists() or legacy.is_there(home)
    return _stored_identity(home, server) is not None


def _stored_identity(home: Path, server: Server | None) -> Identity | None:
    database = opened(home, server, creates=False)
    try:
        return identity_in(database)
    finally:
        database.close()


def _key_missing(home: Path, store_id: str, keys: KeyProvider) -> KeyMissingError:
    remedy = key_place(keys, store_id).remedy
    return KeyMissingError(f"the signing key of the store at {home} (id {store_id}) is missing: {remedy}")


def _is_empty(database: Database, home: Path) -> bool:
    if legacy.is_there(home):
        return not any(path.stat().st_size for path in legacy.segments(home))
    with database.reading() as tx:
        return tx.one("last_event", database.tenant) is None and tx.one("baseline_header", database.tenant) is None


def _with_all_missing(
    error: JournalError, database: Database, home: Path, identity: Identity, ring: KeyRing | None
) -> JournalError:
    """Return the error of reading a journal; if a key is missing that verifies some events, one that names all that are."""
    if ring is None or not isinstance(error, KeyMissingError) or not error.key_ids:
        return error
    journal = Journal(
        database, home, identity.store_id, None, heads=HeadFile(home, identity.store_id), lock_timeout_s=0.0
    )
    history = uses_in(journal.every_line(until=1 << 62))
    missing = missing_keys(history, ring)
    return keys_are_missing(ring.store_id, missing) if missing and len(history.uses) > 1 else error


def _make_first_event(journal: Journal, key: SigningKey | None, created_by: str, now: Callable[[], str]) -> None:
    if journal.tail.seq == 0 and key is not None:
        with journal.locked():
            if journal.tail.seq == 0:
                journal.make_head_file()
                journal.append([CommitDraft("system", [StoreCreated(created_by=created_by)], actor="system")], now())


def made_from_events(home: Path) -> list[Path]:
    """Return the folders of a store's directory that prove that its journal held events."""
    try:
        found = [path for pattern in _MADE_FROM_EVENTS for path in home.glob(pattern)]
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", path=home) from None
    return list(dict.fromkeys(path.parent for path in found))


def lost_journal(home: Path, made: Sequence[Path], server: Server | None = None) -> JournalError:
    """Return the error for a store whose events are gone while files made from them exist."""
    names = " and ".join(map(str, made))
    were = "was" if len(made) == 1 else "were"
    return JournalError(
        f"the journal in {server or home / FILE} holds no events, but {names} {were} made from some: restore the journal "
        f"from a backup or, to start over, remove {names}"
    )


def refuse_foreign(home: Path, server: Server | None = None) -> None:
    """Refuse a directory that is not empty, unless a store is being created in it now; that of a store on a `server` if it has lost its journal."""
    made = made_from_events(home)  # checked before the journal: another process may be creating it
    if server is not None:
        if made:
            raise lost_journal(home, made, server)
        return
    try:
        entries = {entry.name for entry in home.iterdir()}
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise StorageError("is a file, not a directory; choose another directory for the store", path=home) from None
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", path=home) from None
    if is_store(home):
        return  # another process has just finished it
    if any((home / legacy.FOLDER).glob("*.jsonl*")):
        raise JournalError(
            f"the journal under {home / legacy.FOLDER} has no manifest.json, but it holds events; restore the file from a backup"
        )
    if made:
        raise lost_journal(home, made)
    for entry in entries - _NO_EVENTS:
        if not (
            entry.lstrip(".").startswith(f"{FILE}.") and entry.endswith(".tmp")
        ):  # left by a kill while it was made
            raise NotAStoreError(home)
