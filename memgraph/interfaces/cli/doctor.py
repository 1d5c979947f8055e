"""``doctor``: where everything lies and how it is, also when the store cannot be opened."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memgraph.errors import MemGraphError
from memgraph.interfaces.cli.group import Refused
from memgraph.interfaces.cli.opening import opened
from memgraph.interfaces.cli.options import Command, Settings, installed_version, pass_settings
from memgraph.interfaces.cli.output import count, emit, plain

if TYPE_CHECKING:
    from memgraph.config import AgentMemoryConfig

_MANIFEST = Path("journal") / "manifest.json"
_KEY_VARIABLE = "MEMGRAPH_KEY"


@dataclass(slots=True)
class _Report:
    """What was found, and what is wrong."""

    found: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@click.command(cls=Command)
@pass_settings
def doctor(settings: Settings) -> None:
    """Report on the store, its keys, the journal, the graph, the model and the versions."""
    report = _Report()
    report.found["versions"] = {
        "memgraph": installed_version(),
        "kuzu": installed_version("kuzu"),
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
    }
    if config := _config(settings, report):
        _store(config, report)
        if report.found["store"]["id"] and not report.problems:
            _graph(config, report)
            _open(settings, report)
    _model(report)
    document = {**report.found, "problems": report.problems, "healthy": not report.problems}
    emit(settings, document, _lines(report))
    if report.problems:
        raise Refused(f"{count(len(report.problems), 'problem')} found: {report.problems[0]}")


def _config(settings: Settings, report: _Report) -> AgentMemoryConfig | None:
    from memgraph.config import load_config

    try:
        return load_config({"home": settings.home})
    except MemGraphError as error:
        report.problems.append(str(error))
        return None


def _store(config: AgentMemoryConfig, report: _Report) -> None:
    """Look at the files, opening nothing and making nothing."""
    from memgraph.journal.heads import HeadFile
    from memgraph.journal.keys import FileKeys

    home = config.home
    store_id = _store_id(home, report)
    report.found["store"] = {"path": str(home), "exists": home.exists(), "id": store_id}
    if store_id is None:
        return
    key, head = FileKeys(config.keys_home).path(store_id), HeadFile(config.keys_home, store_id)
    from_environment = bool(os.environ.get(_KEY_VARIABLE))
    events, size = _journal_extent(home / "journal", report)
    report.found["key"] = {"path": str(key), "present": key.is_file(), "from_environment": from_environment}
    report.found["head"] = {"path": str(head.path), "present": head.path.is_file()}
    report.found["journal"] = {"events": events, "bytes": size}
    if events and not key.is_file() and not from_environment:
        report.problems.append(f"the signing key is missing: put its file back as {key}, or set {_KEY_VARIABLE}")


def _store_id(home: Path, report: _Report) -> str | None:
    import json

    try:
        stored = json.loads((home / _MANIFEST).read_bytes())
        return str(stored["store_id"])
    except FileNotFoundError:
        if home.is_dir() and any(entry.name not in {"config.toml", "journal"} for entry in home.iterdir()):
            report.problems.append(f"{home} holds files but no store; name another directory with --home")
    except OSError as error:
        report.problems.append(f"{home / _MANIFEST} cannot be read: {error.strerror}; see to its permissions")
    except (ValueError, KeyError, TypeError):
        report.problems.append(f"{home / _MANIFEST} is damaged; restore it from a backup")
    return None


def _journal_extent(folder: Path, report: _Report) -> tuple[int, int]:
    """Return how many lines and bytes the journal's segments hold."""
    events = size = 0
    try:
        for path in sorted(folder.glob("*.jsonl")):
            with path.open("rb") as stream:
                while block := stream.read(1 << 20):
                    events += block.count(b"\n")
                    size += len(block)
    except OSError as error:
        report.problems.append(f"the journal under {folder} cannot be read: {error.strerror}; see to its permissions")
    return events, size


def _graph(config: AgentMemoryConfig, report: _Report) -> None:
    """Read how far the graph is before opening the store brings it up."""
    from memgraph.graph.kuzu import KuzuEngine

    folder = config.home / "graph"
    state: Any = None
    if any(folder.glob("*.kuzu")):
        engine = KuzuEngine(folder, timeout_s=config.lock_timeout_s)
        try:
            state = engine.state()
        except MemGraphError as error:
            report.found["graph"] = {"path": str(folder), "lag_events": None, "note": str(error)}
            return
        finally:
            engine.close()
    events = report.found["journal"]["events"]
    lag = max(0, events - int((state or {}).get("seq", 0)))
    report.found["graph"] = {
        "path": str(folder),
        "lag_events": lag,
        "note": "opening the store brings it up" if lag else "",
    }


def _open(settings: Settings, report: _Report) -> None:
    try:
        with opened(settings) as memory:
            report.found["store"]["memories"] = memory.commands.stats().total
    except MemGraphError as error:
        report.problems.append(str(error))


def _model(report: _Report) -> None:
    from memgraph.embedding import default_embedder

    embedder = default_embedder()
    try:
        embedder.embed_query("ready")
        problem = None
    except MemGraphError as error:
        problem = str(error)
        report.problems.append(problem)
    report.found["model"] = {"name": embedder.name, "dimension": embedder.dimension, "available": problem is None}


def _lines(report: _Report) -> list[str]:
    found = report.found
    lines = [f"{name:<10}{value}" for name, value in found["versions"].items()]
    if store := found.get("store"):
        lines.append(f"store     {plain(store['path'])}")
        lines.append(f"          {_identity(store)}")
    for name in ("key", "head"):
        if name in found:
            present = "present" if found[name]["present"] else "missing"
            if found[name].get("from_environment"):
                present += f" (not needed: {_KEY_VARIABLE} is set)"
            lines.append(f"{name:<10}{plain(found[name]['path'])}: {present}")
    if "journal" in found:
        journal = found["journal"]
        lines.append(f"journal   {count(journal['events'], 'event')}, {journal['bytes']:,} bytes")
    if "graph" in found:
        lag = found["graph"]["lag_events"]
        state = "cannot be told" if lag is None else "none" if not lag else count(lag, "event")
        note = plain(found["graph"]["note"])
        lines.append(f"graph lag {state}{f' ({note})' if note else ''}")
    model = found["model"]
    lines.append(f"model     {model['name']}: {'available' if model['available'] else 'not available'}")
    lines += ["", *(f"problem: {plain(problem)}" for problem in report.problems)] if report.problems else ["all well"]
    return lines


def _identity(store: dict[str, Any]) -> str:
    if store["id"] is None:
        return "no store there yet: the first `memgraph remember` or `memgraph ingest` makes it"
    memories = f", {count(store['memories'], 'memory', 'memories')}" if "memories" in store else ""
    return f"id {plain(store['id'])}{memories}"
