"""Checks of places: settings, the store's folder, locks, modes of files, sizes, disk space, the embedding model. None opens the store."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from memgraph.config import AgentMemoryConfig, config_path, default_settings, load_config
from memgraph.disk.lock import ProcessLock, writer_lock
from memgraph.disk.space import beyond, size_on_disk
from memgraph.embedding import embed_query, setting_of
from memgraph.errors import MemGraphError
from memgraph.health.report import Report
from memgraph.journal.head_file import HeadFile
from memgraph.journal.keys import FileKeys
from memgraph.journal.opening import read_manifest, refuse_foreign
from memgraph.journal.vectors.vector_file import NamedVectors
from memgraph.model.timestamps import to_iso
from memgraph.ports import Embedder
from memgraph.settings.diagnostics import PAGERDUTY_KEY_VARIABLE, WEBHOOK_SECRET_VARIABLE

_OTHER_VARIABLES = {"MEMGRAPH_KEY", "MEMGRAPH_LOG", PAGERDUTY_KEY_VARIABLE, WEBHOOK_SECRET_VARIABLE}
_SPARE_BYTES = 64 << 20
"""Free disk space needed in addition to the graph's own size: a rebuild writes a second copy."""
_FOR_OTHERS = 0o077


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
        report.error(
            "settings", str(error), "`memgraph config init` shows every setting; with --force it replaces the file"
        )
    named = os.environ.get("MEMGRAPH_KEYS_HOME")
    if named:
        return AgentMemoryConfig.model_construct(home=path.parent, keys_home=Path(named).expanduser().absolute())
    return AgentMemoryConfig.model_construct(home=path.parent)


def check_store(config: AgentMemoryConfig, report: Report) -> str | None:
    """Return the store's id, or None if there is no store."""
    home, store_id = config.home, None
    try:
        manifest = home / "journal" / "manifest.json"
        if manifest.exists():
            store_id = read_manifest(manifest)
        else:
            refuse_foreign(home)
    except MemGraphError as error:
        report.refused("store", error)
    except OSError as error:
        report.error("store", f"{home} cannot be read: {error.strerror}", "check its permissions")
    report.passed("store")
    report.found["store"] = {"path": str(home), "exists": home.exists(), "id": store_id}
    return store_id


def check_locks(home: Path, report: Report) -> None:
    """Report which process holds the locks."""
    report.found["locks"] = {}
    for name, lock in (
        ("journal", writer_lock(home / "journal")),
        ("graph", ProcessLock(home / "graph.lock", "the graph")),
    ):
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


def check_modes(config: AgentMemoryConfig, store_id: str, report: Report) -> None:
    """Report files that other users may read or change: keys, head files, and everything that holds memories."""
    head = HeadFile.of(config.home / "journal", config.keys_home, store_id)
    outside = [FileKeys(config.keys_home).path(store_id), head.path]
    exposed = [path for path in (*_private(config.home), *outside) if _is_open(path)]
    for path in exposed:
        mode = "0700" if path.is_dir() else "0600"
        report.error("permissions", f"other users may access {path}", f"chmod {mode} {path}")
    report.passed("permissions")


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
    needed = _SPARE_BYTES + sum(path.stat().st_size for path in (home / "graph").glob("*.kuzu"))
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
            remedy = (
                f"set embedding_model to {setting}" if setting else "open the store from Python with the former model"
            )
            report.error(
                "model",
                f"the store's vectors are {stored.model}'s with {stored.dimension} dimensions, but the model is {embedder.name} "
                f"with {embedder.dimension}",
                f"{remedy}, or switch the store's model with `memgraph reembed`",
            )
    if embedder.dimension:
        try:
            embed_query(embedder, "ready")
            model["available"] = True
        except MemGraphError as error:
            report.error("model", str(error), "until it works, memories are stored and found by text alone")
    report.passed("model")
    report.found["model"] = model
