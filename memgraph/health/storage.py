"""Checks of the journal and of what is made from it: vectors, graph and index. They change nothing and create nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from memgraph.config import AgentMemoryConfig
from memgraph.errors import (
    BusyError,
    DamagedJournalError,
    JournalError,
    KeyMissingError,
    MemGraphError,
    MissingExtraError,
    StorageError,
)
from memgraph.health.report import Report
from memgraph.index import snapshot
from memgraph.journal.baseline.header import checked_header, unverified_place
from memgraph.journal.closed.files import file_of, names_in, opened
from memgraph.journal.head_file import HeadFile
from memgraph.journal.journal import Journal
from memgraph.journal.keys import FileKeys, KeyRing
from memgraph.journal.keys.configured import configured_keys, configured_ring
from memgraph.journal.keys.contract import check_presence, check_validity
from memgraph.journal.keys.place import key_place, name_of
from memgraph.journal.opening import lost_journal, made_from_events
from memgraph.journal.repair import Condition, as_it_is, examine
from memgraph.journal.segments import Segments
from memgraph.journal.swap import is_planned
from memgraph.model.timestamps import to_iso
from memgraph.store.maintenance.verification import Verification
from memgraph.store.maintenance.verifying import inspect
from memgraph.store.opening import open_projector
from memgraph.store.projection.place import place_of
from memgraph.store.projection.projector import Projector

_NAMES = {"head": "head file", "checkpoint": "checkpoint", "manifest": "manifest of closed segments"}
SAMPLE = 50
"""Number of memories whose rows are compared with their events."""
_TAKEN = "the graph, which another process has open"


def check_journal(config: AgentMemoryConfig, store_id: str, report: Report) -> Condition | None:
    """Verify the journal as opening does, and compare it with its witnesses outside the store."""
    head = HeadFile.of(config.home / "journal", config.keys_home, store_id)
    events, size = extent(config.home / "journal")
    path = FileKeys(config.keys_home).path(store_id)
    report.found["key"] = {"provider": config.key_provider, "place": None, "path": str(path), "present": None}
    report.found["head"] = {"path": str(head.path), "present": head.path.is_file()}
    report.found["journal"] = {"events": events, "bytes": size, "torn": None}
    try:
        keys = configured_keys(config)
        where, remedy = key_place(keys, store_id)
        report.found["key"] |= {"provider": name_of(keys), "place": where}
        ring = KeyRing.from_providers(store_id, keys, FileKeys(config.keys_home))
        report.found["key"]["present"] = ring.active is not None
    except MemGraphError as error:
        report.refused("key", error)
        return None
    try:
        if ring.active is None:
            if events:
                what = f"the signing key is missing: {where}"
                report.error("key", what, remedy)
                report.refusals.append(KeyMissingError(what))
            elif made := made_from_events(config.home):
                raise lost_journal(config.home, made)
            return None
        if is_planned(config.home / "journal"):
            report.warning(
                "journal", "a resealing is under way, or was cut off", "the next use of the store completes it"
            )
            return None
        condition = examine(config.home, store_id, ring, keys_home=config.keys_home, by_checkpoint=True)
        checked_header(Segments(config.home / "journal", 0), store_id, ring)
        _keys(condition, ring, config, report)
    except KeyMissingError as error:
        report.refused("key", error)
        return None
    except MemGraphError as error:
        report.refused("journal", error, value=size)
        return None
    report.passed("key")
    torn = {"events": condition.torn_events, "bytes": condition.torn_bytes} if condition.torn_events else None
    report.found["journal"] |= {"events": condition.seq, "torn": torn}
    _witnesses(condition, report)
    check_tail(condition.torn_events, condition.torn_bytes, size, report)
    report.passed("head")
    return condition


def _keys(condition: Condition, ring: KeyRing, config: AgentMemoryConfig, report: Report) -> None:
    """Report keys that events need and that are missing or have expired: opening refuses the store then."""
    place = unverified_place(config.home / "journal")
    needed = condition.used.needed_after(place[0] if place else 0)
    try:
        check_presence(needed, ring)
        check_validity(needed, ring, days=config.key_verification_days, now=lambda: to_iso(datetime.now(UTC)))
    except KeyMissingError as error:
        report.refused("key", error)


def check_tail(torn_events: int, torn_bytes: int, size: int, report: Report) -> None:
    """Report a final commit that a crash has cut short; `size` is that of the whole journal in bytes."""
    if torn_events:
        torn = f"{torn_events:,} events, {torn_bytes:,} bytes"
        what = f"the journal's final commit is incomplete ({torn}); it was never acknowledged"
        report.warning("journal", what, "the next write removes it", value=size)
    report.passed("journal", value=size)


def _witnesses(condition: Condition, report: Report) -> None:
    accept = "run `memgraph repair --accept-head` to accept the journal as it is"
    for witness in condition.contradicting[:1]:  # the head file before the checkpoint: accepting one settles both
        name = f"the {_NAMES[witness.kind]} {witness.path}"
        if witness.state != "missing":  # opening makes a missing one
            report.refusals.append(JournalError(f"{name} contradicts the journal"))
        if witness.state == "ahead":
            what = f"the journal ends at event {condition.seq}, but {name} names {witness.seq}: it was truncated or is an old copy"  # fmt: skip
            report.error("head", what, f"restore the journal from a backup, or {accept}")
        elif witness.state == "other" and witness.kind == "manifest":
            what = f"{name} names another content of the segment that ends with event {witness.seq}"
            report.error("head", what, f"run `memgraph purge --complete`, restore a backup, or {accept}")
        elif witness.state == "other":
            what = f"{name} names an event {witness.seq} that differs from the journal's"
            report.error("head", what, f"restore both from one backup, or {accept}")
        elif witness.state == "damaged":
            report.error("head", f"{name} is damaged", f"restore it from a backup, or {accept}")
        else:
            report.error("head", f"{name} is missing, so a truncation would go unnoticed", f"restore it, or {accept} and create it")  # fmt: skip


def extent(folder: Path) -> tuple[int, int]:
    """Return the number of lines in the journal's segments, and of bytes in their files."""
    events = size = 0
    for name in names_in(folder):
        try:
            with opened(folder, name) as stream:
                while block := stream.read(1 << 20):
                    events += block.count(b"\n")
            size += file_of(folder, name).stat().st_size
        except (OSError, DamagedJournalError, MissingExtraError):
            continue  # the verification reports why
    return events, size


def check_projections(
    config: AgentMemoryConfig, store_id: str, condition: Condition | None, report: Report
) -> Verification | None:
    """Verify vectors, graph and index as they are on disk, and fold the journal; report how far graph and index lag behind it."""
    missing = {"lag_events": None, "note": "created when next needed"}
    report.found |= {"graph": {"path": str(config.home / "graph"), **missing}, "index": missing}
    ring = configured_ring(config, store_id) if condition is not None else None
    if ring is None:
        return None
    journal = as_it_is(config.home, store_id, ring, keys_home=config.keys_home)
    _index(config, journal, report)
    graph = report.found["graph"]
    is_there = any((config.home / "graph").glob(f"*.{config.engine}"))
    is_taken = report.found["locks"]["graph"]["held"]
    if is_taken:
        report.unseen.append(_TAKEN)
        graph["note"] = "another process has it open"
    elif not is_there:
        graph |= {"lag_events": journal.tail.chain.seq, "note": "created at the next use"}
    settings = config.model_copy(update={"lock_timeout_s": 0.0, "graph_idle_s": 0.0})
    try:
        place = place_of(config.home)
    except StorageError as error:
        report.error("store", str(error))
        return None
    report.found["store"]["refused_writes"] = journal.refused_writes() or place.refused or None
    projector = open_projector(settings, journal, place.folder)
    try:
        _upkeep(projector, report)
        with_graph = is_there and not is_taken
        return check_inspection(lambda: inspect(projector, sample=SAMPLE, with_graph=with_graph), config, report)
    finally:
        projector.engine.close()


def check_inspection(
    inspected: Callable[[], Verification], config: AgentMemoryConfig, report: Report
) -> Verification | None:
    """Verify vectors and graph, and fold the journal, without updating the graph; None if that is impossible."""
    try:
        found = inspected()
    except BusyError:  # another process was faster
        report.unseen.append(_TAKEN)
        report.found["graph"]["note"] = "another process has it open"
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
    if index is not None and index.offset.seq <= journal.tail.chain.seq:
        index.use_vectors_of(journal.named.model)
        live = index.column("is_live")
        waiting = int((live & (index.column("vector_row") < 0)).sum())
        report.found["index"] = {"lag_events": journal.tail.chain.seq - index.offset.seq, "note": ""}
        report.found["store"] |= {"memories": int(live.sum()), "awaiting_vectors": waiting}


def _upkeep(projector: Projector, report: Report) -> None:
    """Report the graph's size, and how often it was found damaged."""
    upkeep = projector.upkeep.read()
    graph = report.found["graph"]
    graph["bytes"], graph["damages"] = projector.engine.size_bytes(), upkeep.damages
    graph["last_damage"] = upkeep.rebuilds[-1] if upkeep.rebuilds else None


def _verified(found: Verification, config: AgentMemoryConfig, report: Report) -> None:
    """Report the differences that `verify` would find, and the graph's lag."""
    graph, vectors = report.found["graph"], found.by_part["vectors"]
    report.found["vectors"] = {"named": found.vectors, "damaged": vectors}
    if vectors:
        what = f"{vectors:,} of {found.vectors:,} vectors under {config.home / 'journal' / 'vectors'} are damaged or missing"
        report.error("vectors", what, "run `memgraph embed --repair` to recompute them; until then their memories are found by text alone")  # fmt: skip
    report.passed("vectors", value=vectors, limit=0)
    if found.graph_seq is not None:
        graph["lag_events"] = lag = found.events - found.graph_seq
        graph["note"] = "rebuilt at the next use" if lag < 0 else "caught up at the next use" if lag else ""
        if lag >= 0:
            report.found["store"]["memories"] = found.nodes
        _lag(lag, config.health.graph_lag_events, report)
    if differing := found.by_part["graph"]:
        first = next((one for one in found.first if one.part == "graph"), None)
        what = f"the graph differs from the journal ({differing:,} differences{f', first {first}' if first else ''})"
        report.error("graph", what, "run `memgraph rebuild`" if found.graph_seq is not None else "the next use rebuilds it")  # fmt: skip
    if found.graph_seq is not None:
        report.passed("graph", value=differing, limit=0)


def _lag(lag: int, limit: int, report: Report) -> None:
    if lag < 0:
        what = "the graph is ahead of the journal, of which it is made"
        report.warning("graph lag", what, "the next use rebuilds it", value=lag, limit=limit)
    what = f"the graph is {lag:,} events behind the journal"
    advice = "the next use brings it up to date; `memgraph verify` does so now"
    report.compare("graph lag", lag, limit, what, advice)
