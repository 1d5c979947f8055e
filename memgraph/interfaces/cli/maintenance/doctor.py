"""``doctor``: report where everything is and in what condition, even if the store cannot be opened."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.opening import logs_shown
from memgraph.interfaces.cli.base.options import Command, Settings, installed_version, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, plain

if TYPE_CHECKING:
    from memgraph.health.examination import Report


_LIBRARIES = ("kuzu", "numpy", "onnxruntime", "pydantic")
_HEADS = {"error": "problem", "warning": "warning"}


@click.command(cls=Command)
@pass_settings
def doctor(settings: Settings) -> None:
    """Report the condition of the store, its keys, journal, locks, graph and index, what it holds, the model, the disk and the versions."""
    with logs_shown(settings):
        from memgraph.health.examination import examine_home

        report = examine_home(settings.home)
    report.found = {"versions": _versions(report.found["config"]["engine"]), **report.found}
    health = report.health()
    document = {**report.found, **health.model_dump(mode="json"), "not_looked_at": report.unseen}
    emit(settings, document, list(_lines(report)))
    if health.errors:
        raise Refused(f"{count(len(health.errors), 'problem')} found")


def _versions(engine: str) -> dict[str, str]:
    packages = {name: installed_version(name) for name in (*_LIBRARIES, engine)}
    system = {"python": platform.python_version(), "platform": platform.platform(terse=True)}
    return {"memgraph": installed_version(), **packages, **system}


def _lines(report: Report) -> Iterator[str]:
    found = report.found
    yield from (f"{name:<12}{value}" for name, value in found["versions"].items())
    config = found["config"]
    yield f"config      {plain(config['path'])}: {'present' if config['present'] else 'none, so the defaults apply'}"
    if unknown := config["unknown_variables"]:
        yield f"            not settings of memgraph: {plain(', '.join(unknown))}"
    yield f"store       {plain(found['store']['path'])}"
    yield f"            {_identity(found['store'])}"
    if refused := found["store"].get("refused_writes"):
        yield f"            read-only: {plain(refused)}"
    if "journal" in found:
        yield from _of_the_store(found)
    if "backup" in found:
        yield f"backup      {_backup(found['backup'])}"
    if "disk" in found:
        yield f"disk        {found['disk']['free_bytes'] >> 20:,} MiB free"
    yield from _of_the_model(found)
    poor = [check for check in report.checks if check.status != "ok"]
    if len(poor) < len(report.checks):
        yield f"passed      {', '.join(check.name for check in report.checks if check.status == 'ok')}"
    if all(check.status == "warning" for check in poor):
        nothing = "no problem found"
        yield f"{nothing}; not checked: {', '.join(report.unseen)}" if report.unseen else nothing
    for check in sorted(poor, key=lambda check: check.status != "warning"):
        yield ""
        yield f"{_HEADS[check.status]}: {plain(check.message)}"
        if check.advice:
            yield f"  to do: {plain(check.advice)}"


def _identity(store: dict[str, Any]) -> str:
    if store["id"] is None:
        return "no store yet: the first `memgraph remember` or `memgraph ingest` creates it"
    memories = f", {store['memories']:,} memories and records" if "memories" in store else ""
    return f"id {plain(store['id'])}{memories}"


def _of_the_store(found: dict[str, Any]) -> Iterator[str]:
    key, head = found["key"], found["head"]
    for name, place, is_there in (("key", key["place"], key["present"]), ("head", head["path"], head["present"])):
        state = {True: "present", False: "missing", None: "cannot be read"}[is_there]
        yield f"{name:<12}{plain(place or 'unknown')}: {state}"
    journal = found["journal"]
    yield f"journal     {count(journal['events'], 'event')}, {journal['bytes']:,} bytes"
    if baseline := journal["baseline"]:
        yield f"            compacted: {count(journal['archived_events'], 'event')} archived, baseline of {baseline['made_at'][:10]}"
    if journal["kept"]:
        yield f"            {plain(journal['kept'])} is kept; `memgraph migrate --finish` removes it"
    for place, (name, lock) in enumerate(found["locks"].items()):
        yield f"{'' if place else 'locks':<12}{name} {_holder(lock)}"
    if vectors := found.get("vectors"):
        state = f"{vectors['damaged']:,} damaged" if vectors["damaged"] else "verified"
        yield f"vectors     {vectors['named']:,}, {state}"
    if "bytes" in found["graph"]:
        yield f"graph       {found['graph']['bytes'] / 1e6:,.0f} MB"
    for name, shown in (("graph", "rows"), ("index", "index")):
        lag, note = found[name]["lag_events"], plain(found[name]["note"])
        state = "unknown" if lag is None else "none" if not lag else count(lag, "event")
        yield f"{f'{shown} lag':<12}{state}{f' ({note})' if note else ''}"


def _backup(last: dict[str, Any]) -> str:
    if last["at"] is None:
        return "none"
    gone = " (not there any more)" if last["present"] is False else ""
    return f"{last['at'][:16]}, {plain(last['path'] or 'from which the store was restored')}{gone}"


def _holder(lock: dict[str, Any]) -> str:
    if not lock["held"]:
        return "free"
    alive = {True: "alive", False: "no longer alive: another process holds it now", None: "unknown"}[lock["alive"]]
    return f"held by process {lock['pid']} ({alive}) since {lock['since']}"


def _of_the_model(found: dict[str, Any]) -> Iterator[str]:
    model = found["model"]
    state = (
        "available"
        if model["available"]
        else "not available"
        if model["dimension"]
        else "memories are found by text alone"
    )
    dimension = f", {count(model['dimension'], 'dimension')}" if model["dimension"] else ""
    yield f"model       {model['name']}{dimension}: {state}"
    if waiting := found["store"].get("awaiting_vectors"):
        todo = "run `memgraph embed`" if model["dimension"] else "set embedding_model to minilm to embed them"
        yield f"            {count(waiting, 'memory has', 'memories have')} no vector ({todo})"
