"""The examination of a store, open or not: one set of checks for `MemGraph.health` and ``memgraph doctor``.

Nothing is repaired, brought up to date or created. Damage for which opening would send a security record has one here, too. It costs a
verification and a fold of the whole journal: for 10,000 memories about four seconds.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memgraph.config import (
    PAGERDUTY_KEY_VARIABLE,
    WEBHOOK_SECRET_VARIABLE,
    AgentMemoryConfig,
    config_path,
    default_settings,
    home_of,
    load_config,
)
from memgraph.diagnostics.reports import report_finding
from memgraph.disk.files import beyond, size_on_disk
from memgraph.disk.lock import is_running, writer_lock
from memgraph.embedding import embed_query, setting_of
from memgraph.errors import JournalError, KeyMissingError, MemGraphError, ReadOnlyError, StorageError
from memgraph.fold.tasks import WORKING
from memgraph.index import snapshot
from memgraph.index.index import RELATION_CODE, Index, superseded
from memgraph.journal import legacy
from memgraph.journal.head_file import HeadFile
from memgraph.journal.journal import Journal
from memgraph.journal.key_providers import FileKeys, configured_keys
from memgraph.journal.keyring import KeyRing, check_presence, check_validity, key_place, name_of
from memgraph.journal.opening import FILE, id_of, is_store, lost_journal, made_from_events, refuse_foreign
from memgraph.journal.sql import DamagedDatabaseError
from memgraph.journal.vectors import NamedVectors
from memgraph.lifecycle.contradictions.resolution import pairs_among
from memgraph.lifecycle.dedup.near_duplicates import (
    PHASE,
    SLEEP_OVERLAP,
    groups,
    linked,
    may_be_one,
    sharing,
    without_parts,
)
from memgraph.lifecycle.sleep import EPISODES_BETWEEN
from memgraph.model.events.records import SLEEP, phase_key
from memgraph.model.memory import MEMORY_TYPES, AgentMemory, StoredMemory
from memgraph.model.results.maintenance import Health, HealthCheck
from memgraph.model.timestamps import days_between, epoch_days, to_iso
from memgraph.ports import Embedder, Key, Row
from memgraph.store import AgentMemoryStore
from memgraph.store.maintenance.verifying import Verification, inspect
from memgraph.store.opening import open_projector, place_of, times_of
from memgraph.store.repair import QUARANTINE, Condition, Unwitnessed, as_stored, condition_of
from memgraph.store.rows import no_collections
from memgraph.store.store import PastStore

SAMPLE = 50
"""Number of memories whose rows are compared with their events."""
Tables = Mapping[str, Mapping[Key, Row]]
Mask = NDArray[np.bool_]

_RESUMED_FOR_DAYS = 1.0
"""A sleep that was interrupted longer ago than this is not continued by the next one."""
_MOST_NEW, _MOST_FOUND, _MOST_JUDGED = 1_000, 100, 64
"""Bounds on the search for near-duplicates: the newest memories, the number found, and candidates for one memory."""
_OTHER_VARIABLES = {"MEMGRAPH_KEY", "MEMGRAPH_LOG", PAGERDUTY_KEY_VARIABLE, WEBHOOK_SECRET_VARIABLE}
_SPARE_BYTES = 64 << 20
"""Free disk space needed in addition to the graph's own size: a rebuild writes a second copy."""
_FOR_OTHERS = 0o077
_FEW_EVENTS = 1_000
"""A store with fewer events may do without a backup: somebody tries it out, or it has little to lose."""
_ADVICE = (
    "run `memgraph backup FILE`, best with a FILE on another disk; `memgraph docs operations` has a crontab for it"
)


@no_collections()
def examine_home(home: str | None) -> Report:
    """Examine the store in a directory, by its files."""
    from memgraph.embedding import default_embedder

    report = Report()
    config = check_settings(home, report)
    now = times_of()
    named, found = None, None
    with ExitStack() as stack:
        store_id = check_store(config, report)
        if store_id is not None:
            journal = check_journal(config, store_id, report, stack)
            check_locks(config, journal, report)
            if journal is not None:
                named, found = journal.named, check_projections(config, journal, report)
            check_modes(config, journal.head_path if journal else None, store_id, report)
            check_size(config, report)
            if found is not None:
                check_backups(found, config, now(), report)
                check_memories(found.rows, config, now(), report)
            else:
                report.unseen.append("the memories and backups, because the journal cannot be read")
    check_disk_space(config.home, report)
    check_model(default_embedder(config), named, report)
    _tell(report, config, store_id, now)
    return report


@no_collections()
def health_of(store: AgentMemoryStore) -> Health:
    """Examine an open store. Its key and its journal's head were verified when it was opened."""
    if isinstance(store, PastStore):
        raise ReadOnlyError("a view has no health of its own; ask the store itself")
    config, report = store.config, Report()
    check_store(config, report)
    report.found["graph"] = {}
    found = check_inspection(lambda: store.inspection(sample=SAMPLE), config, report)
    check_modes(config, found.head if found else None, store.store_id, report)
    check_size(config, report)
    check_disk_space(config.home, report)
    check_model(store.embedder, None, report)
    if found is not None:
        report.passed("journal", value=sum(store.sizes()))
        check_backups(found, config, store.now(), report)
        check_memories(found.rows, config, store.now(), report)
    _tell(report, config, store.store_id, store.now)
    return report.health()


def _tell(report: Report, config: AgentMemoryConfig, store_id: str | None, now: Callable[[], str]) -> None:
    for error in report.refusals:
        report_finding(config, error, now=now, store_id=store_id)


def check_backups(found: Verification, config: AgentMemoryConfig, now: str, report: Report) -> None:
    """Warn if the last backup is too old and lacks events, or if a store that is neither young nor small has none."""
    limit, last = config.health.backup_days, found.backup
    if last is None:
        report.found["backup"] = {"at": None, "path": None, "present": None, "events_since": None}
        age = days_between(found.began_at, now) if found.began_at else 0.0
        if limit and age > limit and found.events >= _FEW_EVENTS:
            what = f"this store of {found.events:,} events was never backed up; its first event is {age:,.0f} days old"
            report.warning("backups", what, _ADVICE, value=age, limit=limit)
        report.passed("backups", limit=limit or None)
        return
    age = max(0.0, days_between(last.at, now))
    since = max(0, found.events - last.seq - 1)  # the event after its last one records the backup itself
    is_there = os.path.exists(last.path) if last.path else None  # noqa: PTH110 - it answers no where it may not look
    report.found["backup"] = {"at": last.at, "path": last.path, "present": is_there, "events_since": since}
    if limit and age > limit and since:
        events = "1 event was" if since == 1 else f"{since:,} events were"
        file = last.path or "from which the store was restored"
        what = f"the last backup, {file}, is {age:,.0f} days old ({last.at[:16]}), and {events} recorded since"
        report.warning("backups", what, _ADVICE, value=age, limit=limit)
    report.passed("backups", value=age, limit=limit or None)


def check_settings(home: str | None, report: Report) -> AgentMemoryConfig:
    """Return the settings; if they are invalid, the defaults with the configured directories."""
    path = config_path(home)
    known = {one.variable for one in default_settings()} | _OTHER_VARIABLES
    unknown = sorted(name for name in os.environ if name.startswith("MEMGRAPH_") and name not in known)
    report.found["config"] = {"path": str(path), "present": path.is_file(), "unknown_variables": unknown}
    report.found["config"]["engine"] = AgentMemoryConfig.model_fields["engine"].default
    try:
        config = load_config({"home": home})
        report.passed("settings")
        report.found["config"]["engine"] = config.engine
        return config
    except MemGraphError as error:
        advice = "`memgraph config init` shows every setting; with --force it replaces the file"
        report.error("settings", str(error), advice)
    folder, server = home_of(home)
    known_by_place: dict[str, Any] = {"home": folder}
    if server is not None:
        known_by_place |= {"database": server.address, "tenant": server.tenant}
    if named := os.environ.get("MEMGRAPH_KEYS_HOME"):
        known_by_place["keys_home"] = Path(named).expanduser().absolute()
    return AgentMemoryConfig.model_construct(**known_by_place)


def check_store(config: AgentMemoryConfig, report: Report) -> str | None:
    """Return the store's id, or None if there is no store."""
    home, store_id = config.home, None
    try:
        if config.server or is_store(home):
            store_id = id_of(home, config.server) if is_store(home, config.server) else None
        else:
            refuse_foreign(home)
    except DamagedDatabaseError as error:
        report.error("store", str(error), "run `memgraph repair --from-backup FILE`")
    except MemGraphError as error:
        report.refused("store", error)
    except OSError as error:
        report.error("store", f"{home} cannot be read: {error.strerror}", "check its permissions")
    report.passed("store")
    exists = store_id is not None if config.server else home.exists()
    report.found["store"] = {"path": str(config.server or home), "exists": exists, "id": store_id}
    return store_id


def check_locks(config: AgentMemoryConfig, journal: Journal | None, report: Report) -> None:
    """Report which process holds the writer lock."""
    lock = journal.database.lock() if journal else writer_lock(config.home)
    report.found["locks"] = {"journal": {"held": False}}
    if lock.is_held():
        pid, taken_at = lock.holder(), lock.taken_at()
        since = to_iso(datetime.fromtimestamp(taken_at, UTC)) if taken_at else None
        report.found["locks"]["journal"] = {
            "held": True,
            "pid": pid,
            "alive": is_running(pid) if pid else None,
            "since": since,
        }


def check_modes(config: AgentMemoryConfig, head: Path | None, store_id: str, report: Report) -> None:
    """Report files that other users may read or change: keys, head files, and everything that holds memories."""
    outside = [FileKeys(config.keys_home).path(store_id), *([head] if head else [])]
    exposed = [path for path in (*_private(config.home), *outside) if _is_open(path)]
    for path in exposed:
        mode = "0700" if path.is_dir() else "0600"
        report.error("permissions", f"other users may access {path}", f"chmod {mode} {path}")
    report.passed("permissions")


def _private(home: Path) -> Iterator[Path]:
    """Yield the database and the accessible folders that hold memories, with their files; a folder closed to others protects its files."""
    yield from [path for path in (home / FILE, home / f"{FILE}-wal") if _is_open(path)][:1]
    for name in ("cache", "graph", "index", "past", QUARANTINE, legacy.FOLDER, legacy.KEPT):
        folder = home / name
        if folder.is_dir() and _is_open(folder):
            yield folder
            yield from sorted(path for path in folder.rglob("*") if path.is_file())


def _is_open(path: Path) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    return bool(stat.S_IMODE(found.st_mode) & _FOR_OTHERS)


def check_size(config: AgentMemoryConfig, report: Report) -> None:
    """Compare the store's size with the limit that the user has set."""
    report.found["store"]["bytes"] = size = size_on_disk(config.home)
    limit = config.max_memory_mb * 1_000_000 or None
    if too_much := beyond(size, config.max_memory_mb):
        todo = "raise max_memory_mb, or use another store for other work: the journal keeps every event"
        report.error("quota", too_much, todo, value=size, limit=limit)
    report.passed("quota", value=size, limit=limit)


def check_disk_space(home: Path, report: Report) -> None:
    """Compare the free disk space with what a rebuild needs."""
    there = next((path for path in (home, *home.parents) if path.is_dir()), None)
    if there is None:
        return
    free = shutil.disk_usage(there).free
    copied = (*home.glob(FILE), *(home / "graph").glob("base-*"))
    needed = _SPARE_BYTES + sum(path.stat().st_size for path in copied)
    report.found["disk"] = {"free_bytes": free, "needed_bytes": needed}
    if free < needed:
        what = f"{there} has {free:,} bytes free, but rebuilding the graph may need {needed:,}"
        report.error("disk", what, "free some disk space", value=free, limit=needed)
    report.passed("disk", value=free, limit=needed)


def check_model(embedder: Embedder, stored: NamedVectors | None, report: Report) -> None:
    """Compare the embedding model with that of the store's vectors, and use it once."""
    model = {"name": embedder.name, "dimension": embedder.dimension, "available": False, "stored": None}
    if stored and stored.model is not None:
        model["stored"] = {"name": stored.model, "dimension": stored.dimension}
        if embedder.dimension and (stored.model, stored.dimension) != (embedder.name, embedder.dimension):
            setting = setting_of(stored.model)
            own = f"set embedding_model to {setting}" if setting else "open the store from Python with the former model"
            what = (
                f"the store's vectors are {stored.model}'s with {stored.dimension} dimensions, but the model is {embedder.name} "
                f"with {embedder.dimension}"
            )
            report.error("model", what, f"{own}, or switch the store's model with `memgraph reembed`")
    if embedder.dimension:
        try:
            embed_query(embedder, "ready")
            model["available"] = True
        except MemGraphError as error:
            report.error("model", str(error), "until it works, memories are stored and found by text alone")
    report.passed("model")
    report.found["model"] = model


def check_memories(tables: Tables, config: AgentMemoryConfig, now: str, report: Report) -> None:
    """Check what the rows of the journal's fold hold: working memories, size, sleep, near-duplicates, contradictions."""
    rows = sorted(tables.get("Memory", {}).values(), key=lambda row: row["seq"])
    index = Index()
    index.build(rows, ((table, key) for table in RELATION_CODE for key in tables.get(table, {})))
    by_id = {row["id"]: row for row in rows}
    listed = index.memories() & ~index.column("is_archived") & ~index.column("is_suppressed")
    listed &= index.column("invalid_days") > epoch_days(now)
    in_force: Mask = listed & ~superseded(index, listed)
    runs = tables.get("LifecycleRun", {})
    days = config.working_memory_days
    stale = sum(days_between(row["updated_at"], now) > days for row in tables.get(WORKING, {}).values())
    what = f"{stale:,} working memories are older than {days:,} days, so they are void"
    advice = "`memgraph session prune` removes them"
    report.compare("working memory", stale, config.health.stale_working_memories, what, advice)
    _long_term(index, by_id, in_force, config, report)
    _sleep(runs.get(SLEEP, {}), rows, config, now, report)
    since = runs.get(phase_key(PHASE), {}).get("seq", 0)
    repeated = len(list(islice(_repeated(index, by_id, in_force, since, config, now), _MOST_FOUND)))
    at_least = "at least " if repeated == _MOST_FOUND else ""
    what = f"{at_least}{repeated:,} memories repeat another one in other words or in the same"
    report.compare("near-duplicates", repeated, config.health.near_duplicates, what, "`memgraph sleep` merges them")
    number = len(pairs_among(index, in_force))
    what = f"{number:,} contradictions are undecided"
    advice = "`memgraph contradictions` lists them; resolve or dismiss each"
    report.compare("contradictions", number, config.health.open_contradictions, what, advice)


def _long_term(
    index: Index, by_id: Mapping[str, Row], in_force: Mask, config: AgentMemoryConfig, report: Report
) -> None:
    mask = in_force & (index.column("type") != MEMORY_TYPES.index("episodic"))
    size = sum(len(by_id[index.ids.names[slot]]["content"].encode()) for slot in np.flatnonzero(mask).tolist())
    limit = config.health.long_term_mb * 1e6
    what = f"facts and procedures take {size / 1e6:,.1f} MB, more than health.long_term_mb = {config.health.long_term_mb:g}"
    advice = "`memgraph sleep` merges and collects; `memgraph list` shows what to forget; or raise the limit"
    report.compare("long-term memory", size, limit or float("inf"), what, advice)


def _sleep(run: Row, rows: list[Row], config: AgentMemoryConfig, now: str, report: Report) -> None:
    again = "run `memgraph sleep`"
    if "failed_at" in run:
        what = f"the last sleep failed in its phase {run['failed_phase']} ({run['failed_at'][:16]}): {run['error']}"
        report.warning("sleep", what, f"{again} again")
    elif run.get("phases_left") and days_between(run["started_at"], now) > _RESUMED_FOR_DAYS:
        what = f"the sleep of {run['started_at'][:10]} was not completed; left: {', '.join(run['phases_left'])}"
        report.warning("sleep", what, again)
    waiting = [row["created_at"] for row in rows if row["type"] == "episodic" and row["seq"] > run.get("seq", 0)]
    limit = config.health.sleep_overdue_days
    if limit and len(waiting) >= EPISODES_BETWEEN:
        days = days_between(min(waiting), now)
        what = f"{len(waiting):,} episodes wait for a sleep, the first for {days:,.0f} days"
        if days > limit:
            report.warning("sleep", what, f"{again}, or set sleep_trigger to auto", value=days, limit=limit)
    report.passed("sleep", limit=limit or None)


def _repeated(
    index: Index, by_id: Mapping[str, Row], in_force: Mask, since: int, config: AgentMemoryConfig, now: str
) -> Iterator[int]:
    """Yield slots after an event that say what an earlier one says: by their words, within the groups in which sleep compares."""
    slots = np.flatnonzero(without_parts(index, in_force))
    slots = slots[np.argsort(index.column("seq")[slots], kind="stable")]
    new = {slot for slot in slots[-_MOST_NEW:].tolist() if index.column("seq")[slot] > since}
    if not new:
        return
    opposed = linked(index, "CONTRADICTS")

    def memory(slot: int) -> StoredMemory:
        kept: StoredMemory = AgentMemory.from_row(by_id[index.ids.names[slot]], now=now, curve=config.forgetting_curve)
        return kept

    for places in groups(index, slots):
        members = slots[places].tolist()
        if new.isdisjoint(members):
            continue
        for place, slot in enumerate(members):
            if slot in new:
                others = np.array(members[:place], dtype=np.int64)
                earlier = sharing(index, slot, others, share=SLEEP_OVERLAP, of_smaller=False, most=_MOST_JUDGED)
                if any(may_be_one(opposed, memory(one), memory(slot)) for one in sorted(earlier)[:_MOST_JUDGED]):
                    yield slot


def check_journal(config: AgentMemoryConfig, store_id: str, report: Report, stack: ExitStack) -> Unwitnessed | None:
    """Verify the journal as opening does, and compare it with its head file; return it, open until the stack is closed, if it can be read."""
    path, head = FileKeys(config.keys_home).path(store_id), HeadFile(config.keys_home, store_id).path
    report.found["key"] = {"provider": config.key_provider, "place": None, "path": str(path), "present": None}
    report.found["head"] = {"path": str(head), "present": head.is_file()}
    report.found["journal"] = {"events": 0, "bytes": 0, "archived_events": 0, "baseline": None, "kept": None}
    missing = {"lag_events": None, "note": "created when next needed"}
    report.found |= {"graph": {"path": str(config.home / "graph"), **missing}, "index": {**missing}}
    try:
        keys = configured_keys(config)
        where, remedy = key_place(keys, store_id)
        report.found["key"] |= {"provider": name_of(keys), "place": where}
        ring = KeyRing.from_providers(store_id, keys, FileKeys(config.keys_home))
        report.found["key"]["present"] = ring.active is not None
    except MemGraphError as error:
        report.refused("key", error)
        return None
    size = 0
    try:
        if config.server is None and not (config.home / FILE).exists():
            what = f"{config.home / legacy.FOLDER} is the journal of an earlier release, which was not moved into the database yet"
            report.warning("journal", what, "the next use of the store moves it")
            return None
        journal = stack.enter_context(as_stored(config, store_id, ring if ring.active else None))
        size = sum(journal.sizes())
        report.found["journal"] |= {"events": journal.stored_events(), "bytes": size}
        report.found["head"] = {"path": str(journal.head_path), "present": journal.head_path.is_file()}
        if ring.active is None:
            if journal.stored_events():
                what = f"the signing key is missing: {where}"
                report.error("key", what, remedy)
                report.refusals.append(KeyMissingError(what))
            elif made := made_from_events(config.home):
                raise lost_journal(config.home, made, config.server)
            return None
        named = journal.named_by_head()
        journal.load()
        condition = condition_of(journal, named)
        _keys(journal, ring, config, report)
    except KeyMissingError as error:
        report.refused("key", error)
        return None
    except MemGraphError as error:
        report.refused("journal", error, value=size)
        return None
    report.passed("key")
    kept, baseline = config.home / legacy.KEPT, journal.baseline
    report.found["journal"] |= {
        "events": condition.seq,
        "archived_events": journal.archived_until(),
        "baseline": {"seq": baseline.seq, "made_at": baseline.made_at} if baseline else None,
        "kept": str(kept) if kept.exists() else None,
    }
    _head(condition, report)
    report.passed("journal", value=size)
    return journal


def _keys(journal: Journal, ring: KeyRing, config: AgentMemoryConfig, report: Report) -> None:
    """Report keys that events need and that are missing or have expired: opening refuses the store then."""
    needed = journal.used.needed_after(journal.base.seq)
    try:
        check_presence(needed, ring)
        check_validity(needed, ring, days=config.key_verification_days, now=times_of())
    except KeyMissingError as error:
        report.refused("key", error)


def _head(condition: Condition, report: Report) -> None:
    """Report what contradicts the head file; opening makes a missing one."""
    head, accept = condition.head, "run `memgraph repair --accept-head` to accept the journal as it is"
    name = f"the head file {head.path}"
    if head.state == "missing":
        what = f"{name} is missing, so a truncation would go unnoticed"
        report.error("head", what, f"restore it, or {accept} and create it")
    elif head.state != "agrees":
        report.refusals.append(JournalError(f"{name} contradicts the journal"))
    if head.state == "ahead":
        what = f"the journal ends at event {condition.seq}, but {name} names {head.seq}: it was truncated or is an old copy"
        report.error("head", what, f"restore the journal from a backup, or {accept}")
    elif head.state == "other":
        what = f"{name} names an event {head.seq} that differs from the journal's"
        report.error("head", what, f"restore both from one backup, or {accept}")
    elif head.state == "damaged":
        report.error("head", f"{name} is damaged", f"restore it from a backup, or {accept}")
    report.passed("head")


def check_projections(config: AgentMemoryConfig, journal: Journal, report: Report) -> Verification | None:
    """Verify vectors, rows and index as they are on disk, and fold the journal; report how far rows and index lag behind it."""
    _index(config, journal, report)
    graph = report.found["graph"]
    try:
        place = place_of(config.home)
    except StorageError as error:
        report.error("store", str(error))
        return None
    report.found["store"]["refused_writes"] = journal.refused_writes() or place.refused or None
    projector = open_projector(config.engine, journal, place.folder)
    try:
        is_there = projector.has_rows()
        if is_there:
            graph["bytes"] = projector.database.size_bytes() + size_on_disk(config.home / "graph")
        else:
            graph |= {"lag_events": journal.tail.seq, "note": "created at the next use"}
        return check_inspection(lambda: inspect(projector, sample=SAMPLE, with_rows=is_there), config, report)
    finally:
        projector.release()


def check_inspection(
    inspected: Callable[[], Verification], config: AgentMemoryConfig, report: Report
) -> Verification | None:
    """Verify vectors and rows, and fold the journal, without updating the rows; None if that is impossible."""
    try:
        found = inspected()
    except StorageError as error:
        report.error("graph", str(error), "check its permissions")
    except JournalError as error:
        report.refused("journal", error)
    except MemGraphError as error:
        report.error("graph", str(error))
    else:
        _verified(found, config, report)
        return found
    return None


def _index(config: AgentMemoryConfig, journal: Journal, report: Report) -> None:
    index = snapshot.load(config.home / "index" / "index.npz", journal.store_id, journal.seal("index"))
    # an index ahead of the journal was built from events that no longer exist
    if index is not None and index.offset.seq <= journal.tail.seq:
        index.use_vectors_of(journal.named.model)
        live = index.column("is_live")
        waiting = int((live & (index.column("vector_row") < 0)).sum())
        report.found["index"] = {"lag_events": journal.tail.seq - index.offset.seq, "note": ""}
        report.found["store"] |= {"memories": int(live.sum()), "awaiting_vectors": waiting}


def _verified(found: Verification, config: AgentMemoryConfig, report: Report) -> None:
    """Report the differences that `verify` would find, and the rows' lag. The checks have the names that release 0.2 gave them."""
    graph, vectors = report.found["graph"], found.by_part["vectors"]
    report.found["vectors"] = {"named": found.vectors, "damaged": vectors}
    if vectors:
        place = config.server or config.home / FILE
        what = f"{vectors:,} of {found.vectors:,} vectors in {place} are damaged or missing"
        report.error("vectors", what, "run `memgraph embed --repair` to recompute them; until then their memories are found by text alone")  # fmt: skip
    report.passed("vectors", value=vectors, limit=0)
    if found.graph_seq is not None:
        graph["lag_events"] = lag = found.events - found.graph_seq
        graph["note"] = "rebuilt at the next use" if lag < 0 else "caught up at the next use" if lag else ""
        if lag >= 0:
            report.found["store"]["memories"] = found.nodes
        limit = config.health.graph_lag_events
        if lag < 0:
            what = "the rows are ahead of the journal, of which they are made"
            report.warning("graph lag", what, "the next use rebuilds them", value=lag, limit=limit)
        what = f"the rows are {lag:,} events behind the journal"
        advice = "the next use brings them up to date; `memgraph verify` does so now"
        report.compare("graph lag", lag, limit, what, advice)
    if differing := found.by_part["graph"]:
        first = next((one for one in found.first if one.part == "graph"), None)
        what = f"the rows differ from the journal ({differing:,} differences{f', first {first}' if first else ''})"
        report.error("graph", what, "run `memgraph rebuild`" if found.graph_seq is not None else "the next use rebuilds them")  # fmt: skip
    if found.graph_seq is not None:
        report.passed("graph", value=differing, limit=0)


@dataclass(slots=True)
class Report:
    """The facts by part, the checks, what could not be checked, and `refusals`: why opening would refuse the store, or has."""

    found: dict[str, Any] = field(default_factory=dict)
    checks: list[HealthCheck] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    refusals: list[JournalError] = field(default_factory=list)

    def error(self, name: str, message: str, advice: str = "", **measured: float | None) -> None:
        """Add an error; without advice, its message says what to do."""
        self.checks.append(HealthCheck(name=name, status="error", message=message, advice=advice, **measured))

    def refused(self, name: str, error: MemGraphError, *, value: float | None = None) -> None:
        """Add an error that was raised; one of the journal is also a refusal."""
        self.error(name, str(error), value=value)
        if isinstance(error, JournalError):
            self.refusals.append(error)

    def warning(self, name: str, message: str, advice: str = "", **measured: float | None) -> None:
        """Add a warning."""
        self.checks.append(HealthCheck(name=name, status="warning", message=message, advice=advice, **measured))

    def passed(self, name: str, *, value: float | None = None, limit: float | None = None) -> None:
        """Add a check that found nothing, unless this one has found something."""
        if all(check.name != name for check in self.checks):
            self.checks.append(HealthCheck(name=name, value=value, limit=limit))

    def compare(self, name: str, value: float, limit: float, message: str, advice: str) -> None:
        """Warn if a value is above its limit."""
        if value > limit:
            self.warning(name, message, advice, value=value, limit=limit)
        self.passed(name, value=value, limit=limit)

    def health(self) -> Health:
        """Return the checks as a result."""
        said = {status: [one.message for one in self.checks if one.status == status] for status in ("warning", "error")}
        return Health(healthy=not said["error"], checks=self.checks, warnings=said["warning"], errors=said["error"])
