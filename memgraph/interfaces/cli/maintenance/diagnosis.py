"""The checks of ``doctor``. They do not open the store: nothing is repaired, caught up or created, and an error is reported."""

from __future__ import annotations

import os
import platform
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memgraph.errors import BusyError, MemGraphError, StorageError
from memgraph.interfaces.cli.base.options import installed_version

if TYPE_CHECKING:
    from memgraph.config import AgentMemoryConfig
    from memgraph.journal.journal import Journal
    from memgraph.journal.repair import Condition
    from memgraph.store.maintenance.verification import Verification
    from memgraph.store.projection.projector import Projector

KEY_VARIABLE = "MEMGRAPH_KEY"
_OTHER_VARIABLES = {"MEMGRAPH_KEY", "MEMGRAPH_LOG"}
_SPARE_BYTES = 64 << 20
"""Free disk space needed in addition to the graph's own size: a rebuild writes a second copy."""
_FOR_OTHERS = 0o077
_SAMPLE = 50
"""Number of memories whose rows are compared with their events."""
_TAKEN = "the graph, which another process has open"


@dataclass(slots=True)
class Diagnosis:
    """The findings, and the problems, each with its remedy."""

    found: dict[str, Any] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    """What could not be checked, and why."""

    def problem(self, what: str, todo: str = "") -> None:
        """Add a problem; without `todo`, its own text says what to do."""
        self.problems.append((what, todo))


def diagnose(home: str | None) -> Diagnosis:
    """Run all checks."""
    report = Diagnosis()
    report.found["versions"] = versions = {
        "memgraph": installed_version(),
        **{name: installed_version(name) for name in ("kuzu", "numpy", "onnxruntime", "pydantic")},
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
    }
    config = _settings(home, report)
    versions[config.engine] = installed_version(config.engine)
    store_id = _store(config, report)
    condition = None
    if store_id is not None:
        condition = _journal(config, store_id, report)
        _locks(config.home, report)
        _projections(config, store_id, condition, report)
        _modes(config, store_id, report)
        _size(config, report)
    _disk_space(config.home, report)
    _model(config, condition, report)
    return report


def _settings(home: str | None, report: Diagnosis) -> AgentMemoryConfig:
    """Return the settings; if they are invalid, the defaults with the configured directories."""
    from memgraph.config import AgentMemoryConfig, config_path, default_settings, load_config

    path = config_path(home)
    known = {one.variable for one in default_settings()} | _OTHER_VARIABLES
    unknown = sorted(name for name in os.environ if name.startswith("MEMGRAPH_") and name not in known)
    report.found["config"] = {"path": str(path), "present": path.is_file(), "unknown_variables": unknown}
    try:
        return load_config({"home": home})
    except MemGraphError as error:
        report.problem(str(error), "`memgraph config init` shows every setting; with --force it replaces the file")
    named = os.environ.get("MEMGRAPH_KEYS_HOME")
    if named:
        return AgentMemoryConfig.model_construct(home=path.parent, keys_home=Path(named).expanduser().absolute())
    return AgentMemoryConfig.model_construct(home=path.parent)


def _store(config: AgentMemoryConfig, report: Diagnosis) -> str | None:
    """Return the store's id, or None if there is no store."""
    from memgraph.journal.opening import read_manifest, refuse_foreign

    home, store_id = config.home, None
    try:
        manifest = home / "journal" / "manifest.json"
        if manifest.exists():
            store_id = read_manifest(manifest)
        else:
            refuse_foreign(home)
    except MemGraphError as error:
        report.problem(str(error))
    except OSError as error:
        report.problem(f"{home} cannot be read: {error.strerror}", "check its permissions")
    report.found["store"] = {"path": str(home), "exists": home.exists(), "id": store_id}
    return store_id


def _journal(config: AgentMemoryConfig, store_id: str, report: Diagnosis) -> Condition | None:
    """Verify the journal as opening does, and compare it with its witnesses outside the store."""
    from memgraph.journal.head_file import HeadFile
    from memgraph.journal.keys import FileKeys, default_keys
    from memgraph.journal.opening import lost_journal, made_from_events
    from memgraph.journal.repair import examine

    path, head = FileKeys(config.keys_home).path(store_id), HeadFile(config.keys_home, store_id)
    from_environment = bool(os.environ.get(KEY_VARIABLE))
    events, size = _extent(config.home / "journal")
    report.found["key"] = {"path": str(path), "present": path.is_file(), "from_environment": from_environment}
    report.found["head"] = {"path": str(head.path), "present": head.path.is_file()}
    report.found["journal"] = {"events": events, "bytes": size, "torn": None}
    try:
        key = default_keys(config.keys_home).key(store_id)
        if key is None:
            if events:
                report.problem(f"the signing key is missing: {path}", f"restore the file, or set {KEY_VARIABLE}")
            elif made := made_from_events(config.home):
                raise lost_journal(config.home, made)
            return None
        condition = examine(config.home, store_id, key, keys_home=config.keys_home, by_checkpoint=True)
    except MemGraphError as error:
        report.problem(str(error))
        return None
    torn = {"events": condition.torn_events, "bytes": condition.torn_bytes} if condition.torn_events else None
    report.found["journal"] |= {"events": condition.seq, "torn": torn}
    _witnesses(condition, report)
    return condition


def _witnesses(condition: Condition, report: Diagnosis) -> None:
    accept = "run `memgraph repair --accept-head` to accept the journal as it is"
    for witness in condition.contradicting[:1]:  # the head file before the checkpoint: accepting one settles both
        name = f"the {'head file' if witness.kind == 'head' else witness.kind} {witness.path}"
        if witness.state == "ahead":
            what = f"the journal ends at event {condition.seq}, but {name} names {witness.seq}: it was truncated or is an old copy"  # fmt: skip
            report.problem(what, f"restore the journal from a backup, or {accept}")
        elif witness.state == "other":
            what = f"{name} names an event {witness.seq} that differs from the journal's"
            report.problem(what, f"restore both from one backup, or {accept}")
        elif witness.state == "damaged":
            report.problem(f"{name} is damaged", f"restore it from a backup, or {accept}")
        else:
            report.problem(f"{name} is missing, so a truncation would go unnoticed", f"restore it, or {accept} and create it")  # fmt: skip


def _extent(folder: Path) -> tuple[int, int]:
    """Return the number of lines and bytes in the journal's segments."""
    events = size = 0
    for path in sorted(folder.glob("*.jsonl")):
        try:
            with path.open("rb") as stream:
                while block := stream.read(1 << 20):
                    events += block.count(b"\n")
                    size += len(block)
        except OSError:
            continue  # the verification reports why
    return events, size


def _locks(home: Path, report: Diagnosis) -> None:
    from datetime import UTC, datetime

    from memgraph.disk.lock import ProcessLock
    from memgraph.model.timestamps import to_iso

    report.found["locks"] = {}
    for name, path in (("journal", home / "journal" / "lock"), ("graph", home / "graph.lock")):
        lock = ProcessLock(path, name)
        if not lock.is_held():
            report.found["locks"][name] = {"held": False}
            continue
        pid, taken_at = lock.holder(), lock.taken_at()
        since = to_iso(datetime.fromtimestamp(taken_at, UTC)) if taken_at else None
        report.found["locks"][name] = {"held": True, "pid": pid, "alive": _is_alive(pid), "since": since}


def _is_alive(pid: int | None) -> bool | None:
    if pid is None:
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # the process belongs to another user
    return True


def _projections(config: AgentMemoryConfig, store_id: str, condition: Condition | None, report: Diagnosis) -> None:
    """Verify vectors, graph and index as they are on disk; report how far graph and index lag behind the journal."""
    missing = {"lag_events": None, "note": "created when next needed"}
    report.found |= {"graph": {"path": str(config.home / "graph"), **missing}, "index": missing}
    if condition is None:
        return
    from memgraph.journal.keys import default_keys
    from memgraph.journal.repair import as_it_is

    key = default_keys(config.keys_home).key(store_id)
    if key is None:
        return
    journal = as_it_is(config.home, store_id, key, keys_home=config.keys_home)
    _index(config, journal, report)
    _graph(config, journal, report)


def _index(config: AgentMemoryConfig, journal: Journal, report: Diagnosis) -> None:
    from memgraph.index import snapshot

    index = snapshot.load(config.home / "index" / "index.npz", journal.store_id, journal.seal("index"))
    # an index ahead of the journal was built from events that no longer exist
    if index is not None and index.offset.seq <= journal.tail.chain.seq:
        index.use_vectors_of(journal.named.model)
        live = index.column("is_live")
        waiting = int((live & (index.column("vector_row") < 0)).sum())
        report.found["index"] = {"lag_events": journal.tail.chain.seq - index.offset.seq, "note": ""}
        report.found["store"] |= {"memories": int(live.sum()), "awaiting_vectors": waiting}


def _graph(config: AgentMemoryConfig, journal: Journal, report: Diagnosis) -> None:
    from memgraph.store.maintenance.verifying import inspect
    from memgraph.store.opening import open_projector
    from memgraph.store.projection.place import place_of

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
        report.problem(str(error))
        return
    report.found["store"]["refused_writes"] = journal.refused_writes() or place.refused or None
    projector = open_projector(settings, journal, place.folder)
    try:
        _upkeep(projector, report)
        found = inspect(projector, sample=_SAMPLE, with_graph=is_there and not is_taken)
        _verified(found, journal, report)
    except BusyError:
        report.unseen.append(_TAKEN)
        graph["note"] = "another process has it open"
    except StorageError as error:
        report.problem(str(error), "check its permissions")
    except MemGraphError as error:
        report.problem(str(error))
    finally:
        projector.engine.close()


def _upkeep(projector: Projector, report: Diagnosis) -> None:
    """Report the graph's size, and how often it was found damaged."""
    upkeep = projector.upkeep.read()
    graph = report.found["graph"]
    graph["bytes"], graph["damages"] = projector.engine.size_bytes(), upkeep.damages
    graph["last_damage"] = upkeep.rebuilds[-1] if upkeep.rebuilds else None


def _verified(found: Verification, journal: Journal, report: Diagnosis) -> None:
    """Report the differences that `verify` would find, and the graph's lag."""
    graph, vectors = report.found["graph"], found.by_part["vectors"]
    report.found["vectors"] = {"named": found.vectors, "damaged": vectors}
    if vectors:
        what = f"{vectors:,} of {found.vectors:,} vectors under {journal.folder / 'vectors'} are damaged or missing"
        report.problem(what, "run `memgraph embed --repair` to recompute them; until then their memories are found by text alone")  # fmt: skip
    if found.graph_seq is not None:
        graph["lag_events"] = lag = journal.tail.chain.seq - found.graph_seq
        graph["note"] = "rebuilt at the next use" if lag < 0 else "caught up at the next use" if lag else ""
        if lag >= 0:
            report.found["store"]["memories"] = found.nodes
    if differing := found.by_part["graph"]:
        first = next((one for one in found.first if one.part == "graph"), None)
        what = f"the graph differs from the journal ({differing:,} differences{f', first {first}' if first else ''})"
        report.problem(what, "run `memgraph rebuild`" if found.graph_seq is not None else "the next use rebuilds it")  # fmt: skip


def _modes(config: AgentMemoryConfig, store_id: str, report: Diagnosis) -> None:
    """Report files that other users may read or change: keys, head files, and everything that holds memories."""
    from memgraph.journal.head_file import HeadFile
    from memgraph.journal.keys import FileKeys

    outside = [FileKeys(config.keys_home).path(store_id), HeadFile(config.keys_home, store_id).path]
    exposed = [path for path in (*_private(config.home), *outside) if _is_open(path)]
    for path in exposed:
        mode = "0700" if path.is_dir() else "0600"
        report.problem(f"other users may access {path}", f"chmod {mode} {path}")


def _private(home: Path) -> Iterator[Path]:
    """Yield the accessible folders that hold memories, with their files; a folder closed to others protects its files."""
    for name in ("journal", "graph", "index", "past"):
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


def _size(config: AgentMemoryConfig, report: Diagnosis) -> None:
    """Compare the store's size with the limit that the user has set."""
    from memgraph.disk.space import beyond, size_on_disk

    report.found["store"]["bytes"] = size = size_on_disk(config.home)
    if too_much := beyond(size, config.max_memory_mb):
        todo = "raise max_memory_mb, or use another store for other work: the journal keeps every event"
        report.problem(too_much, todo)


def _disk_space(home: Path, report: Diagnosis) -> None:
    """Compare the free disk space with what a rebuild needs."""
    there = next((path for path in (home, *home.parents) if path.is_dir()), None)
    if there is None:
        return
    free = shutil.disk_usage(there).free
    needed = _SPARE_BYTES + sum(path.stat().st_size for path in (home / "graph").glob("*.kuzu"))
    report.found["disk"] = {"free_bytes": free, "needed_bytes": needed}
    if free < needed:
        report.problem(
            f"{there} has {free:,} bytes free, but rebuilding the graph may need {needed:,}", "free some disk space"
        )


def _model(config: AgentMemoryConfig, condition: Condition | None, report: Diagnosis) -> None:
    from memgraph.embedding import default_embedder, embed_query, setting_of

    embedder = default_embedder(config)
    stored = condition.named if condition else None
    model = {"name": embedder.name, "dimension": embedder.dimension, "available": False, "stored": None}
    if stored and stored.model is not None:
        model["stored"] = {"name": stored.model, "dimension": stored.dimension}
        if embedder.dimension and (stored.model, stored.dimension) != (embedder.name, embedder.dimension):
            setting = setting_of(stored.model)
            remedy = (
                f"set embedding_model to {setting}" if setting else "open the store from Python with the former model"
            )
            report.problem(
                f"the store's vectors are {stored.model}'s with {stored.dimension} dimensions, but the model is {embedder.name} "
                f"with {embedder.dimension}",
                f"{remedy}, or switch the store's model with `memgraph reembed`",
            )
    if embedder.dimension:
        try:
            embed_query(embedder, "ready")
            model["available"] = True
        except MemGraphError as error:
            report.problem(str(error), "until it works, memories are stored and found by text alone")
    report.found["model"] = model
