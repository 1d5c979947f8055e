"""Replaces all segments of a journal at once, so that a crash leaves the old ones or leads to the new ones.

The new segments are prepared in a folder of their own. A signed plan, written last, makes the replacement final: from then on whoever opens the
journal completes it, and every step of that can be repeated. Without a plan the folder is a leftover, which the next replacement removes.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from memgraph.disk.files import clear, make_private_folder, sync_folder, write_private
from memgraph.disk.lock import writer_lock
from memgraph.errors import JournalError, KeyMissingError, StorageError
from memgraph.journal.closed.files import ARCHIVE, files_in
from memgraph.journal.closed.manifest import NAME as MANIFEST
from memgraph.journal.envelope import canonical
from memgraph.journal.head_file import Head, HeadFile
from memgraph.journal.keys.ring import KeyRing
from memgraph.logs import logger_of
from memgraph.ports import SigningKey

logger = logger_of(__name__)

_FOLDER = "replacement"
_PLAN = "plan.json"
_BLOCK_BYTES = 1 << 20


class ReplacedJournalError(JournalError):
    """The journal was resealed, condensed where this process had stopped reading, or restored from a backup, while this process had it open. Opening the store again uses the new one."""


def replaced(folder: Path) -> ReplacedJournalError:
    """Return the error for a process that has the former journal open."""
    return ReplacedJournalError(
        f"the journal under {folder} was replaced (resealed, condensed or restored from a backup) while this process had it open; open the store "
        "again"
    )


def staging(folder: Path) -> Path:
    """Return the empty folder in which the new segments of a journal are prepared. Needs the writer lock.

    Raises
    ------
    StorageError
        The system refuses.
    """
    place = folder / _FOLDER
    try:
        clear(place)
    except OSError as error:
        raise StorageError(f"cannot be removed: {error.strerror}", path=place) from None
    make_private_folder(place)
    return place


def clean(folder: Path) -> None:
    """Remove what a replacement that did not become final has left. Needs the writer lock."""
    if (folder / _FOLDER).exists() and not is_planned(folder):
        with suppress(OSError):  # the next replacement removes it
            clear(folder / _FOLDER)


def has_leftovers(folder: Path) -> bool:
    """Return whether a replacement is prepared, final or a leftover."""
    return (folder / _FOLDER).exists()


def is_planned(folder: Path) -> bool:
    """Return whether a replacement is final but not complete."""
    return (folder / _FOLDER / _PLAN).exists()


def plan(folder: Path, store_id: str, key: SigningKey, *, head: Head, files: Mapping[str, bytes]) -> None:
    """Make the replacement by what was prepared final. Needs the writer lock.

    Parameters
    ----------
    head : Head
        Last event of the new segments.
    files : mapping of str to bytes
        Other files of the journal's folder to be replaced, and their content.

    Raises
    ------
    StorageError
        The system refuses; then nothing is replaced.
    """
    place = folder / _FOLDER
    for name, data in files.items():
        write_private(place / name, data)
    try:
        digests = {path.name: _digest(path) for path in sorted(place.iterdir())}
        sync_folder(place)
        sync_folder(folder)  # which names it: without this a power cut could lose the folder with the plan in it
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", path=place) from None
    named = {"seq": head.seq, "signature": head.signature}
    body = {"store_id": store_id, "key_id": key.key_id, "head": named, "files": digests}
    document = {"body": body, "hmac": _code(key, body)}
    write_private(place / _PLAN, json.dumps(document).encode())


def complete(folder: Path, store_id: str, ring: KeyRing, *, keys_home: Path) -> None:
    """Carry out a final replacement. Idempotent. Needs the writer lock.

    Raises
    ------
    JournalError
        The plan is not this store's, or a prepared file is missing or differs.
    StorageError
        The system refuses; the next call continues.
    """
    place = folder / _FOLDER
    try:
        stored = json.loads((place / _PLAN).read_bytes())
        body, code = stored["body"], stored["hmac"]
        key_id = str(body["key_id"])
        key = ring.find(key_id)
        if key is None:
            raise KeyMissingError(
                f"{place / _PLAN}, which completes a resealing, needs the key {key_id}, which is missing; restore it, for example "
                "with `memgraph keys import`",
                key_id=key_id,
            )
        if not hmac.compare_digest(_code(key, body), code) or body["store_id"] != store_id:
            raise ValueError("is not this store's")
        head = Head(body["head"]["seq"], body["head"]["signature"])
        digests: dict[str, str] = body["files"]
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", path=place / _PLAN) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _damaged(place / _PLAN) from None
    try:
        for name, digest in digests.items():
            prepared, target = place / name, folder / name
            if _digest(prepared if prepared.exists() else target) != digest:
                raise _damaged(prepared)
        for name in digests:  # all were compared before the first is replaced
            if (place / name).exists():
                (place / name).replace(folder / name)
        for path in (*files_in(folder), folder / MANIFEST):
            if path.name not in digests:
                path.unlink(missing_ok=True)
        clear(folder / ARCHIVE)  # what was archived is among the new segments: the next opening archives that
        (folder / "verified.json").unlink(missing_ok=True)  # it speaks of the segments that were replaced
        sync_folder(folder)
        HeadFile.of(folder, keys_home, store_id).replace(head)  # a restored copy has one of its own
        (place / _PLAN).unlink()
        sync_folder(place)
        clear(place)
    except OSError as error:
        raise StorageError(
            f"the segments cannot be replaced: {error.strerror}; free the cause, and the next command continues",
            path=folder,
        ) from None


def settle(folder: Path, store_id: str, ring: KeyRing, *, keys_home: Path, lock_timeout_s: float) -> None:
    """Complete a final replacement that was cut off, or remove what another one left. Takes the writer lock if there is something.

    Raises
    ------
    JournalError, StorageError
        As `complete`.
    BusyError
        Another process held the writer lock for too long.
    """
    if not has_leftovers(folder):
        return
    lock = writer_lock(folder)
    if not is_planned(folder):
        with suppress(StorageError):  # a read-only store keeps it, and opens
            if lock.try_acquire():  # else it is being prepared
                try:
                    clean(folder)
                finally:
                    lock.release()
        return
    with lock.held(lock_timeout_s):
        complete_if_planned(folder, store_id, ring, keys_home=keys_home)


def complete_if_planned(folder: Path, store_id: str, ring: KeyRing, *, keys_home: Path) -> bool:
    """Carry out a final replacement if there is one, and return whether there was. Needs the writer lock.

    Raises
    ------
    JournalError, StorageError
        As `complete`.
    """
    if not is_planned(folder):
        return False
    complete(folder, store_id, ring, keys_home=keys_home)
    logger.warning("store %s: completed a resealing that was cut off", store_id)
    return True


def set_plan_aside(folder: Path, place: Path) -> None:
    """Move a replacement whose plan is damaged to another folder, so that it is never completed. Needs the writer lock.

    Raises
    ------
    OSError
        The system refuses.
    """
    if has_leftovers(folder):
        (folder / _FOLDER).replace(place / _FOLDER)
        sync_folder(folder)


def _damaged(path: Path) -> JournalError:
    return JournalError(
        f"{path} is not what `memgraph keys rotate --reseal` prepared; `memgraph repair --from-backup FILE` restores the journal from a "
        f"backup. Without one, move {path.parent} elsewhere and run `memgraph repair`: it says what verifies"
    )


def _code(key: SigningKey, body: Mapping[str, Any]) -> str:
    return hmac.digest(key.secret, b"memgraph replacement\x1f" + canonical(body), "sha256").hex()


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
