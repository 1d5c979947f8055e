"""Migration of a store to this release, with a report.

The journal is never rewritten: events of earlier versions are converted whenever they are read, by the upcasters, and are signed as they
are. What a release changes is the graph and the index. Any use of a store brings them to its schema; a migration does that on its own,
after it has verified and read every event, and says what it found.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import orjson

from memgraph.config import AgentMemoryConfig, load_config
from memgraph.disk.files import clear, make_private_folder, storage_errors, sync_folder, write_private
from memgraph.disk.folders import TemporaryFolder, remove_abandoned
from memgraph.errors import GraphError, InvalidInputError, StorageError
from memgraph.fold.fold import SCHEMA_VERSION
from memgraph.journal.envelope import CommitDraft
from memgraph.journal.head_file import HeadFile
from memgraph.journal.journal import Journal
from memgraph.journal.key_providers import configured_keys
from memgraph.journal.legacy import KEPT
from memgraph.journal.opening import Identity, add_store, id_of, identify, identity_in, is_store, opened, refuse_foreign
from memgraph.journal.sql import MOVED, Transaction
from memgraph.journal.vectors import NamedRows
from memgraph.model.base import Callback, checked
from memgraph.model.events.registry import UPCASTERS
from memgraph.model.events.store import StoreMigrated
from memgraph.model.results.maintenance import MigrationReport, MoveResult
from memgraph.ports import Clock, KeyProvider, Progress
from memgraph.store.opening import open_projector, open_store_journal, release, times_of
from memgraph.store.projector import Projector
from memgraph.store.purge.exports import FILE as EXPORTS
from memgraph.store.purge.purging import RECEIPTS
from memgraph.store.replayed import replayed


def migrate(
    config: AgentMemoryConfig | None = None,
    *,
    dry_run: bool = False,
    clock: Clock | None = None,
    keys: KeyProvider | None = None,
    progress: Progress | None = None,
) -> MigrationReport:
    """Verify and read every event of a store, and bring graph and index to this release's schema; a dry run only reports."""
    checked(Callback, progress, "progress")
    config = config or load_config()
    provider, now = keys or configured_keys(config), times_of(clock)
    started, started_at = time.perf_counter(), now()
    store_id, _ = identify(config.home, provider, keys_home=config.keys_home, server=config.server)
    with ExitStack() as stack:
        journal = stack.enter_context(closing(open_store_journal(config, provider, now, moves=not dry_run)))
        whole, versions = hashlib.sha256(), Counter[tuple[str, int]]()
        for line in journal.every_line():  # what the lines say of themselves, before any conversion
            whole.update(line.data + b"\n")
            versions[line.type, orjson.loads(line.head)["event_version"]] += 1
        journal.verify(progress)
        projector = stack.enter_context(closing(open_projector(config.engine, journal, config.home)))
        try:
            state = projector.stored.state()
            before = state.projection.schema_version if state else None
        except GraphError:
            before = None  # they cannot be read
        found = MigrationReport(
            store_id=store_id,
            release=release(),
            started_at=started_at,
            dry_run=dry_run,
            events=journal.tail.seq,
            first_seq=min(1, journal.tail.seq),
            last_seq=journal.tail.seq,
            types=dict(sorted((f"{name} {version}", number) for (name, version), number in versions.items())),
            converted=_converted(versions),
            journal_sha256=whole.hexdigest(),
            signature=journal.tail.signature,
            schema_before=before,
            schema_version=SCHEMA_VERSION,
            rebuilds=before != SCHEMA_VERSION,
            seconds=0.0,
        )
        updates = {} if dry_run else _bring_up(projector, found, now, progress)
    return found.model_copy(update={**updates, "seconds": round(time.perf_counter() - started, 3)})


def finish(config: AgentMemoryConfig | None = None) -> Path | None:
    """Remove the journal of an earlier release, which was kept after its events were moved into the database; return its path."""
    config = config or load_config()
    id_of(config.home, config.server)
    kept = config.home / KEPT
    if not kept.exists():
        return None
    with storage_errors(kept, "cannot be removed"):
        clear(kept)
    return kept


def move(
    to: str | Path,
    config: AgentMemoryConfig | None = None,
    *,
    tenant: str | None = None,
    keys: KeyProvider | None = None,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> MoveResult:
    """Copy a store into another place, a directory or a database's address, and verify all of it in one transaction; the source is refused then."""
    checked(Callback, progress, "progress")
    config = config or load_config()
    started = time.perf_counter()
    target = load_config({"home": to, "keys_home": config.keys_home, "tenant": tenant})
    if (target.home, target.server) == (config.home, config.server):
        raise InvalidInputError("must name another place than that of the store", field="to", value=_shown(target))
    id_of(config.home, config.server)
    if is_store(target.home, target.server):
        raise StorageError("holds a store already; name another place", path=_shown(target))
    if target.server is None:
        refuse_foreign(target.home)
        if target.home.exists() and any(target.home.iterdir()):
            raise StorageError("is not empty; name a new directory", path=target.home)
    with closing(open_store_journal(config, keys, times_of(clock))) as source, source.locked():
        with _making(target) as folder:
            moved = _moved(source, config, target, folder, progress)
        with suppress(StorageError, OSError):  # a source that may not be written
            write_private(config.home / MOVED, orjson.dumps({"to": moved.target, "at": times_of(clock)()}))
    return moved.model_copy(update={"seconds": round(time.perf_counter() - started, 3)})


@contextmanager
def _making(target: AgentMemoryConfig) -> Iterator[Path]:
    """Give the folder in which a store is made. A directory gets its name once all is in it: a move that is killed can be repeated."""
    home = target.home
    if target.server is not None:
        make_private_folder(home)
        yield home
        return
    make_private_folder(home.parent)
    with storage_errors(home, "cannot be written"):
        remove_abandoned(home.parent, prefix := f".{home.name}.moving-")
        folder = TemporaryFolder(home.parent, prefix)
    try:
        yield folder.path
        with storage_errors(home, "cannot be written"):
            folder.path.rename(home)  # replaces an empty directory, nothing else
            sync_folder(home.parent)
    finally:
        folder.remove()


def _moved(
    source: Journal, config: AgentMemoryConfig, target: AgentMemoryConfig, folder: Path, progress: Progress | None
) -> MoveResult:
    """Copy a journal and its vectors in one transaction, and compare; then the settings, receipts and list of exports, before it ends."""
    digest = replayed(source, source.tail.seq, progress)[1].digest
    named = NamedRows.of_lines(source.lines())
    damaged = list(named.damaged(source.vectors))
    identity = identity_in(source.database) or Identity(source.store_id)
    with (
        closing(opened(folder, target.server)) as database,
        database.lock().held(config.lock_timeout_s),
        database.writing(config.lock_timeout_s) as tx,
    ):
        if identity_in(database) is not None:
            raise StorageError("holds a store already; name another place", path=_shown(target))
        add_store(database, *identity)
        heads = HeadFile(config.keys_home, *identity)
        journal = Journal(
            database, folder, source.store_id, source.ring, heads=heads, lock_timeout_s=config.lock_timeout_s
        )
        _copy(source, journal, tx)
        journal.read_to_end()
        journal.rows_of_baseline()
        journal.put_head(tx)
        if (
            journal.tail != source.tail
            or replayed(journal, journal.tail.seq)[1].digest != digest
            or list(named.damaged(journal.vectors)) != damaged
        ):
            raise StorageError("does not hold what was written there; nothing was moved", path=_shown(target))
        receipts = [path for kind in ("json", "begun") for path in (config.home / RECEIPTS).glob(f"*.{kind}")]
        for path in (config.home / "config.toml", config.home / EXPORTS, *receipts):
            if path.is_file():
                copy = folder / path.relative_to(config.home)
                make_private_folder(copy.parent)
                write_private(copy, path.read_bytes())
    return MoveResult(
        source=_shown(config),
        target=_shown(target),
        home=str(target.home),
        store_id=source.store_id,
        events=source.tail.seq,
        vectors=len(named),
        digest=f"{digest:064x}",
        damaged_vectors=len(damaged),
        seconds=0.0,
    )


def _copy(source: Journal, journal: Journal, tx: Transaction) -> None:
    tenant, archived = journal.database.tenant, 0
    with source.database.reading() as old:
        while part := old.one("archive_after", source.database.tenant, archived):
            archived = part[1]
            tx.run("put_archive", tenant, *part)
        if baseline := old.one("baseline", source.database.tenant):
            tx.run("put_baseline", tenant, *baseline)
        journal.put(tx, source.every_line(archived))
        for model, count in source.named.rows.items():
            vectors = old.rows("vectors_from", source.database.tenant, model, 0, count)
            tx.many("put_vector", ((tenant, model, *one) for one in vectors))


def _shown(config: AgentMemoryConfig) -> str:
    return str(config.server or config.home)


def _bring_up(
    projector: Projector, found: MigrationReport, now: Callable[[], str], progress: Progress | None
) -> dict[str, object]:
    """Make graph and index with this release's schema; record that, if they were of another one."""
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


def _converted(versions: Iterable[tuple[str, int]]) -> dict[str, str]:
    """Return the types and versions that are converted when they are read, and the version they become."""
    found = {}
    for name, version in sorted(versions):
        newest = version
        while (name, newest) in UPCASTERS:
            newest += 1
        if newest > version:
            found[f"{name} {version}"] = f"{name} {newest}"
    return found
