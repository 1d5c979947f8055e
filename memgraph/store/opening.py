"""Opening the parts of a store: its journal, and what is made of it: in its own directory or, if that is read-only, in a temporary copy."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import gettempdir
from typing import NamedTuple

from memgraph.config import AgentMemoryConfig
from memgraph.diagnostics.delivery import check_targets
from memgraph.diagnostics.reports import reason_of, report_finding, report_quota, report_security
from memgraph.disk.files import clear, free_bytes, make_private_folder, refused_writes
from memgraph.disk.folders import TemporaryFolder, remove_abandoned
from memgraph.errors import InvalidInputError, JournalError, NotAStoreError, StorageError
from memgraph.graph.copy import VENDORS
from memgraph.journal.excerpt import Excerpt
from memgraph.journal.journal import Journal
from memgraph.journal.key_providers import configured_keys
from memgraph.journal.opening import FILE, id_of, open_journal
from memgraph.journal.sql import DamagedDatabaseError, Database, SQLite
from memgraph.logs import logger_of
from memgraph.model.base import Callback, checked
from memgraph.model.timestamps import to_iso
from memgraph.ports import Clock, KeyProvider
from memgraph.store.projector import Projector

logger = logger_of(__name__)

READ_ONLY_COPY = "memgraph-read-only-"


def check_parts(*, embedder: object, clock: object, keys: object, annotator: object) -> None:
    """Reject arguments that cannot be parts of a store."""
    checked(Callback, clock, "clock")
    for field, part, method in (
        ("embedder", embedder, "embed"),
        ("keys", keys, "key"),
        ("annotator", annotator, "annotate"),
    ):
        if part is not None and not callable(getattr(part, method, None)):
            raise InvalidInputError(f"has no method `{method}`", field=field, value=part)


def open_store_journal(
    config: AgentMemoryConfig,
    keys: KeyProvider | None,
    now: Callable[[], str],
    *,
    with_expired_keys: bool = False,
    moves: bool = True,
) -> Journal:
    """Open the journal named by the settings; with expired keys only in order to reseal, to compact or to restore it. What concerns its trust is reported."""
    check_targets(config)
    tell = partial(report_security, config, now=now)
    if config.is_mode_refused:
        tell("mode_invalid", store_id=None)
    try:
        journal = open_journal(
            config.home,
            keys or configured_keys(config),
            keys_home=config.keys_home,
            now=now,
            created_by=f"memgraph {release()}",
            lock_timeout_s=config.lock_timeout_s,
            allow_unverified=config.security_mode == "dev" and config.allow_unsigned_replay,
            verification_days=None if with_expired_keys else config.key_verification_days,
            server=config.server,
            moves=moves,
        )
    except JournalError as error:
        tell(reason_of(error), store_id=known_id(config), error=error)
        raise
    if not journal.has_key:
        tell("dev_bypass", store_id=journal.store_id)
    journal.on_refused = lambda error: report_finding(config, error, now=now, store_id=journal.store_id)
    journal.on_unverified = lambda: tell("unsigned_replay", store_id=journal.store_id)
    journal.on_full = lambda: report_quota(
        config, "disk", now=now, store_id=journal.store_id, value=free_bytes(config.home), limit=0, unit="bytes"
    )
    return journal


def known_id(config: AgentMemoryConfig) -> str | None:
    """Return a store's id, if it can be read."""
    try:
        return id_of(config.home, config.server)
    except (StorageError, JournalError, NotAStoreError):
        return None


class Place(NamedTuple):
    """Where the database and the folder ``index`` of a store can be used: if in a copy, what is not writable, and why, in words."""

    folder: Path
    copy: TemporaryFolder | None = None
    refused: str = ""


def place_of(home: Path, *, has_key: bool = True) -> Place:
    """Return where a store's rows and index can be used: a verified copy if the database may not be written, fresh ones without the store's key."""
    database = list(home.glob(f"{FILE}*"))
    refused = refused_writes(home, *database)
    if refused is None and has_key:
        return Place(home)
    refused = refused or "the store's key is missing"
    try:
        parent = Path(gettempdir())
        remove_abandoned(parent, READ_ONLY_COPY)
        copy = TemporaryFolder(parent, READ_ONLY_COPY)
        for path in (*database, home / "index" / "index.npz") if has_key else ():
            # what is missing is rebuilt from the journal
            if path.is_file() and os.access(path, os.R_OK) and path.suffix != ".db-shm":
                place = copy.path / path.relative_to(home)
                make_private_folder(place.parent)
                shutil.copyfile(path, place)
    except OSError as error:
        problem = (
            f"is read-only, and its rows cannot be copied: {error.strerror}; set TMPDIR to a directory with free space"
        )
        raise StorageError(problem, path=home) from None
    logger.info("%s: using a copy of rows and index at %s", refused, copy.path)
    return Place(copy.path, copy, refused)


def open_projector(engine: str, journal: Journal, folder: Path) -> Projector:
    """Return what is made of a journal: its rows, in its own database or, elsewhere than at home, in one under `folder`; there the index and an engine's graph."""
    database: Database = journal.database
    if folder != journal.home or isinstance(journal, Excerpt):
        path = folder / FILE
        places = [path.with_name(f"{path.name}{suffix}") for suffix in ("", "-wal", "-shm")]
        for place in places:
            if os.path.lexists(place) and not is_own_file(place):  # else SQLite would write through a link
                clear(place)
        try:
            database = SQLite(path, is_durable=False)  # the journal holds what a power failure takes
        except DamagedDatabaseError:
            for place in places:
                place.unlink(missing_ok=True)
            database = SQLite(path, is_durable=False)
    return Projector(journal, database, folder, VENDORS[engine])


def is_own_file(path: Path) -> bool:
    """Return whether a path is a file with this one name."""
    found = path.lstat()
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1


def utc_now() -> datetime:
    """Return the system time."""
    return datetime.now(UTC)


def times_of(clock: Clock | None = None) -> Callable[[], str]:
    """Return what tells the time of a clock, by default the system's, in ISO 8601."""
    time = clock or utc_now
    return lambda: to_iso(time())


@cache
def release() -> str:
    """Return memgraph's version, read once: each reading parses the metadata of the installed package."""
    try:
        return version("memgraph-kuzu")
    except PackageNotFoundError:
        return "(source)"
