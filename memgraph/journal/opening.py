"""Opens a store's journal, or creates it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from memgraph.disk.files import make_private_folder, write_private
from memgraph.disk.lock import writer_lock
from memgraph.errors import DamagedJournalError, JournalError, KeyMissingError, NotAStoreError, StorageError
from memgraph.journal import swap
from memgraph.journal.baseline.archive import complete, is_incomplete
from memgraph.journal.baseline.header import read_header
from memgraph.journal.closed.files import PACKED, PLAIN, files_in
from memgraph.journal.envelope import CommitDraft
from memgraph.journal.journal import Journal
from memgraph.journal.keys import FileKeys, KeyRing
from memgraph.journal.keys.contract import (
    DEFAULT_VERIFICATION_DAYS,
    check_presence,
    check_validity,
    keys_are_missing,
    missing_keys,
)
from memgraph.journal.keys.place import key_place
from memgraph.journal.keys.use import uses_in
from memgraph.journal.segments import DEFAULT_LIMITS, JournalLimits, Segments
from memgraph.logs import logger_of, timed
from memgraph.model.events.store import StoreCreated
from memgraph.model.ids import stored_form
from memgraph.ports import KeyProvider, SigningKey

logger = logger_of(__name__)

FORMAT = 1
_MANIFEST = "manifest.json"
_BEGUN = {"lock", "lock.pid"}
"""Files that a journal folder may hold while it is being created."""
_NO_EVENTS = {"config.toml", "graph.lock", "graph.lock.pid", "journal", "past", "server"}
"""Entries that a store's directory may hold without events."""
_MADE_FROM_EVENTS = (
    "memgraph.db*",
    "graph/base-*",
    "graph/memgraph.kuzu",
    "graph/memgraph.ladybug",
    "index/index.npz",
    "journal/vectors/*.f32",
    "journal/verified.json",
)


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
    limits: JournalLimits = DEFAULT_LIMITS,
) -> Journal:
    """Open a store's journal; create it if the directory is new or empty.

    Parameters
    ----------
    now : callable
        Returns the time; called when a journal is created, and if its key was rotated.
    allow_unverified : bool
        Open read-only if a key is missing or a signature is invalid (``dev`` with the explicit setting); otherwise raise.
    verification_days : int or None
        Days for which a key verifies events after its rotation; None: for ever, as resealing needs.
    limits : JournalLimits
        Sizes at which segments and checkpoints are started.

    Raises
    ------
    NotAStoreError
        The directory holds something else.
    KeyMissingError
        The journal holds events, and its active key or one that verifies some of them is missing or has expired.
    JournalError
        The journal cannot be trusted.
    """
    folder = home / "journal"
    made = made_from_events(home)  # checked before the journal: another process may be writing its first event
    if not (folder / _MANIFEST).exists():
        refuse_foreign(home)
        make_private_folder(folder)
    store_id = read_manifest(folder / _MANIFEST) if (folder / _MANIFEST).exists() else None
    key = keys.key(store_id) if store_id else None
    if store_id is None or (key is None and _is_empty(folder)):
        if made:
            raise lost_journal(home, made)
        with writer_lock(folder).held(lock_timeout_s):  # one process creates the manifest and the key for all
            store_id = _made_manifest(folder / _MANIFEST, now)
            key = keys.key(store_id) or (keys.create(store_id) if _is_empty(folder) else None)
    ring = KeyRing(store_id, keys, FileKeys(keys_home), active=key) if key else None

    options: dict[str, Any] = {"keys_home": keys_home, "lock_timeout_s": lock_timeout_s, "limits": limits}
    try:
        if ring is None:
            raise _key_missing(home, store_id, keys)
        journal = _verified(home, store_id, ring, **options)
        check_presence(journal.used.needed_after(journal.base.chain.seq), ring)
    except (KeyMissingError, DamagedJournalError) as error:
        is_about_keys = isinstance(error, KeyMissingError) or error.concerns_signature
        if not (allow_unverified and is_about_keys):
            raise with_all_missing(error, folder, ring) from None
        journal, ring = _loaded(home, store_id, None, **options), None
    if ring is not None:
        needed = journal.used.needed_after(journal.base.chain.seq)
        check_validity(needed, ring, days=verification_days, now=now)
    if made and journal.tail.chain.seq == 0:
        raise lost_journal(home, made)
    _make_first_event(journal, key, created_by, now)
    _complete_compaction(journal)
    return journal


def identify(home: Path, keys: KeyProvider, *, keys_home: Path, lock_timeout_s: float = 10.0) -> tuple[str, KeyRing]:
    """Return the id and the keys of an existing store; create nothing. A resealing that was cut off is completed, as at every opening.

    Raises
    ------
    NotAStoreError, StorageError
        There is no store.
    KeyMissingError
        The key is missing.
    JournalError
        What a resealing prepared is damaged.
    """
    path = home / "journal" / _MANIFEST
    if not path.exists():
        refuse_foreign(home)
        raise StorageError("there is no store yet; the first `memgraph remember` creates it", path=home)
    store_id = read_manifest(path)
    key = keys.key(store_id)
    if key is None:
        raise _key_missing(home, store_id, keys)
    ring = KeyRing(store_id, keys, FileKeys(keys_home), active=key)
    swap.settle(home / "journal", store_id, ring, keys_home=keys_home, lock_timeout_s=lock_timeout_s)
    return store_id, ring


def _key_missing(home: Path, store_id: str, keys: KeyProvider) -> KeyMissingError:
    remedy = key_place(keys, store_id).remedy
    return KeyMissingError(f"the signing key of the store at {home} (id {store_id}) is missing: {remedy}")


def _verified(home: Path, store_id: str, ring: KeyRing, **options: Any) -> Journal:
    """Return the journal, loaded, also if its segments are being replaced."""
    folder = home / "journal"
    to_settle = {name: options[name] for name in ("keys_home", "lock_timeout_s")}
    swap.settle(folder, store_id, ring, **to_settle)
    before = Segments(folder, 0).states()
    try:
        return _loaded(home, store_id, ring, **options)
    except JournalError:
        if Segments(folder, 0).states() == before:
            raise
        swap.settle(folder, store_id, ring, **to_settle)  # another process has replaced them while they were read
        return _loaded(home, store_id, ring, **options)


def _loaded(home: Path, store_id: str, ring: KeyRing | None, **options: Any) -> Journal:
    journal = Journal(home, store_id, ring, **options)
    with timed(logger, logging.INFO, "opened the journal") as counts:
        journal.load()
        counts["events"] = journal.tail.chain.seq
    return journal


def _complete_compaction(journal: Journal) -> None:
    """Archive what a compaction that was cut off has left, and remove what it wrote in vain; unless another process writes."""
    if journal.is_read_only or not is_incomplete(journal.segments, journal.baseline):
        return
    lock = writer_lock(journal.folder)
    try:
        if lock.try_acquire():
            try:
                present, _ = read_header(journal.folder, journal.store_id, journal.ring)
                complete(journal.segments, present)
            finally:
                lock.release()
    except (StorageError, JournalError) as error:
        logger.warning("store %s: %s", journal.store_id, error)


def with_all_missing(error: JournalError, folder: Path, ring: KeyRing | None) -> JournalError:
    """Return the error of reading a journal; if a key is missing that verifies some events, one that names all that are."""
    if ring is None or not isinstance(error, KeyMissingError) or not error.key_ids:
        return error
    history = uses_in(Segments(folder, 0).lines(Segments(folder, 0).first()))
    missing = missing_keys(history, ring)
    return keys_are_missing(ring.store_id, missing) if missing and len(history.uses) > 1 else error


def _make_first_event(journal: Journal, key: SigningKey | None, created_by: str, now: Callable[[], str]) -> None:
    if journal.tail.chain.seq == 0 and key is not None:
        with journal.locked():
            if journal.tail.chain.seq == 0:
                journal.append([CommitDraft("system", [StoreCreated(created_by=created_by)], actor="system")], now())


def _made_manifest(path: Path, now: Callable[[], str]) -> str:
    """Return the store's id; create the manifest unless another process has."""
    if not path.exists():
        body = {"format": FORMAT, "store_id": str(uuid4()), "created_at": now()}
        write_private(path, json.dumps(body).encode())
    return read_manifest(path)


def _is_empty(folder: Path) -> bool:
    return not any(path.stat().st_size for path in files_in(folder))


def read_manifest(path: Path) -> str:
    """Return the store's id.

    Raises
    ------
    StorageError, JournalError
        The file cannot be read, or is not a manifest of a known format.
    """
    try:
        stored = json.loads(path.read_bytes())
        version, store_id = stored["format"], stored["store_id"]
        if version == FORMAT and not (store_id and stored_form(store_id) == store_id):
            raise ValueError("names no store")  # a reserved file name beside the keys
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", path=path) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise JournalError(f"{path} is not a journal's manifest; restore it from a backup") from None
    if version != FORMAT:
        raise JournalError(f"{path}: journal format {version!r} is unknown to this release; install a newer memgraph")
    return str(store_id)


def made_from_events(home: Path) -> list[Path]:
    """Return the files and folders of a store's directory that prove that its journal held events.

    Raises
    ------
    StorageError
        The directory cannot be read.
    """
    try:
        found = [path for pattern in _MADE_FROM_EVENTS for path in home.glob(pattern)]
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", path=home) from None
    return list(dict.fromkeys(path if path.parent in {home, home / "journal"} else path.parent for path in found))


def lost_journal(home: Path, made: Sequence[Path]) -> JournalError:
    """Return the error for a store whose events are gone while files made from them exist."""
    names = " and ".join(map(str, made))
    were = "was" if len(made) == 1 else "were"
    return JournalError(
        f"the journal under {home / 'journal'} holds no events, but {names} {were} made from some: restore the journal "
        f"from a backup or, to start over, remove {names}"
    )


def refuse_foreign(home: Path) -> None:
    """Refuse a directory that is not empty, unless a store is being created in it at this moment.

    Raises
    ------
    NotAStoreError
        The directory holds something else.
    JournalError
        The directory is a store that has lost its journal or the journal's manifest.
    StorageError
        The path is a file, or cannot be read.
    """
    made = made_from_events(home)  # checked before the journal: another process may be creating it
    try:
        entries = {entry.name for entry in home.iterdir()}
        journal = home / "journal"
        begun = {entry.name for entry in journal.iterdir()} if "journal" in entries else set()
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise StorageError("is a file, not a directory; choose another directory for the store", path=home) from None
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", path=home) from None
    unfinished = {name for name in begun if name in _BEGUN or name.startswith(f".{_MANIFEST}.")}
    if (journal / _MANIFEST).exists():
        return  # another process has just finished it
    if any(name.endswith((PLAIN, PACKED)) for name in begun):
        raise JournalError(
            f"the journal under {journal} has no {_MANIFEST}, but it holds events; restore the file from a backup"
        )
    if made:
        raise lost_journal(home, made)
    if entries - _NO_EVENTS or begun - unfinished:
        raise NotAStoreError(home)
