"""Migration of a store to this release, with a report.

The journal is never rewritten: events of earlier versions are converted whenever they are read, by the upcasters, and are signed as they
are. What a release changes is the graph and the index. Any use of a store brings them to its schema; a migration does that on its own,
after it has verified and read every event, and says what it found.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import orjson

from memgraph.config import AgentMemoryConfig, load_config
from memgraph.disk.files import clear
from memgraph.errors import GraphError, StorageError
from memgraph.fold.projection import SCHEMA_VERSION
from memgraph.journal.envelope import CommitDraft, Line
from memgraph.journal.journal import Journal
from memgraph.journal.keys.providers import configured_keys
from memgraph.journal.legacy import KEPT
from memgraph.journal.opening import id_of, identify
from memgraph.model.base import Callback, checked
from memgraph.model.events.earlier import UPCASTERS
from memgraph.model.events.store import StoreMigrated
from memgraph.model.results.maintenance import MigrationReport
from memgraph.model.timestamps import to_iso
from memgraph.ports import Clock, KeyProvider, Progress
from memgraph.store.opening import open_projector, open_store_journal, release, utc_now
from memgraph.store.projection.projector import Projector


def migrate(
    config: AgentMemoryConfig | None = None,
    *,
    dry_run: bool = False,
    clock: Clock | None = None,
    keys: KeyProvider | None = None,
    progress: Progress | None = None,
) -> MigrationReport:
    """Verify and read every event of a store, and bring graph and index to this release's schema.

    Parameters
    ----------
    dry_run : bool
        Verify and report; change nothing.
    progress : callable, optional
        Called with (done, total) events.

    Raises
    ------
    JournalError
        An event is not what was signed, or this release cannot read it; or the journal contradicts its head file. Nothing is changed.
    StorageError
        There is no store.
    """
    checked(Callback, progress, "progress")
    config = config or load_config()
    provider, time_of = keys or configured_keys(config), clock or utc_now
    started, started_at = time.perf_counter(), to_iso(time_of())
    store_id, _ = identify(config.home, provider, keys_home=config.keys_home)
    journal = open_store_journal(config, provider, lambda: to_iso(time_of()))
    try:
        read = _Read()
        for line in journal.every_line():
            read.take(line)
        journal.verify(progress)
        before = _schema_of(config, journal)
        found = MigrationReport(
            store_id=store_id,
            release=release(),
            started_at=started_at,
            dry_run=dry_run,
            events=journal.tail.seq,
            first_seq=min(1, journal.tail.seq),
            last_seq=journal.tail.seq,
            types=dict(sorted(read.types.items())),
            converted=read.converted(),
            journal_sha256=read.whole.hexdigest(),
            signature=journal.tail.signature,
            schema_before=before,
            schema_version=SCHEMA_VERSION,
            rebuilds=before != SCHEMA_VERSION,
            seconds=0.0,
        )
        updates = {} if dry_run else _bring_up(config, journal, found, lambda: to_iso(time_of()), progress)
    finally:
        journal.close()
    return found.model_copy(update={**updates, "seconds": round(time.perf_counter() - started, 3)})


def finish(config: AgentMemoryConfig | None = None) -> Path | None:
    """Remove the journal of an earlier release, which was kept after its events were moved into the database; return its path.

    Raises
    ------
    StorageError
        There is no store, or the system refuses.
    """
    config = config or load_config()
    id_of(config.home)
    kept = config.home / KEPT
    if not kept.exists():
        return None
    try:
        clear(kept)
    except OSError as error:
        raise StorageError(f"cannot be removed: {error.strerror}", path=kept) from None
    return kept


def _bring_up(
    config: AgentMemoryConfig,
    journal: Journal,
    found: MigrationReport,
    now: Callable[[], str],
    progress: Progress | None,
) -> dict[str, object]:
    """Make graph and index with this release's schema; record that, if they were of another one."""
    projector = open_projector(config.engine, journal, config.home)
    try:
        if found.rebuilds:
            projector.rebuild(progress)
        with projector.reading():
            digest = f"{projector.projection.digest:064x}"
        if not found.rebuilds:
            return {"digest": digest}
        record = StoreMigrated(
            seq=found.last_seq,
            signature=found.signature,
            journal_sha256=found.journal_sha256,
            schema_before=found.schema_before,
            schema_version=SCHEMA_VERSION,
            converted=sum(found.types[name] for name in found.converted),
            digest=digest,
            migrated_at=now(),
            migrated_by=f"memgraph {release()}",
        )
        with projector.writing():
            events = projector.append([CommitDraft("system", [record], actor="user")], now())
        return {"digest": digest, "recorded_as": events[-1].seq}
    finally:
        projector.close()


def _schema_of(config: AgentMemoryConfig, journal: Journal) -> str | None:
    """Return the version of the schema of the rows as they are; None if it cannot be read."""
    projector: Projector = open_projector(config.engine, journal, config.home)
    try:
        state = projector.stored.state()
        return state.projection.schema_version if state else None
    except GraphError:
        return None
    finally:
        projector.release()


class _Read:
    """Collects what the lines say of themselves, before any conversion."""

    def __init__(self) -> None:
        self.types: Counter[str] = Counter()
        self.whole = hashlib.sha256()
        self._versions: set[tuple[str, int]] = set()

    def take(self, line: Line) -> None:
        """Add a line."""
        self.whole.update(line.data + b"\n")
        version = orjson.loads(line.head)["event_version"]
        self.types[f"{line.type} {version}"] += 1
        self._versions.add((line.type, version))

    def converted(self) -> dict[str, str]:
        """Return the types and versions that are converted when they are read, and the version they become."""
        found = {}
        for type_, version in sorted(self._versions):
            newest = version
            while (type_, newest) in UPCASTERS:
                newest += 1
            if newest > version:
                found[f"{type_} {version}"] = f"{type_} {newest}"
        return found
