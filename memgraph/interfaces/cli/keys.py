"""``keys``: the keys that sign a store: list, check, rotate, export, import."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.opening import logs_shown
from memgraph.interfaces.cli.base.options import Command, Settings, Subgroup, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, plain, progress

if TYPE_CHECKING:
    from memgraph.store.maintenance.keys import KeyEntry


@click.group(cls=Subgroup)
def keys() -> None:
    """List, check, rotate, export or import the keys that sign the store."""


@keys.command("list", cls=Command)
@pass_settings
def list_(settings: Settings) -> None:
    """List the store's keys with the events that each signed; secrets are never shown."""
    from memgraph.config import load_config
    from memgraph.store.maintenance.keys import list_keys

    with logs_shown(settings):
        report = list_keys(load_config({"home": settings.home}))
    document = {"store_id": report.store_id, "provider": report.provider, "keys": [asdict(one) for one in report.keys]}
    emit(settings, document, [plain(_line(one)) for one in report.keys] or ["There are no keys."])
    for problem in report.problems:
        raise Refused(problem)


@keys.command(cls=Command)
@pass_settings
def check(settings: Settings) -> None:
    """Check that the key provider answers, and that every key that events need is there and may verify them."""
    from memgraph.config import load_config
    from memgraph.store.maintenance.keys import list_keys

    with logs_shown(settings):
        report = list_keys(load_config({"home": settings.home}))
    needed = [one for one in report.keys if one.state in {"signs", "verifies", "expired", "missing"}]
    document = {"provider": report.provider, "needed": [one.key_id for one in needed], "problems": report.problems}
    lines = [f"problem: {plain(problem)}" for problem in report.problems]
    emit(
        settings, document, lines or [f"{count(len(needed), 'key')} needed, all present (provider {report.provider})."]
    )
    if report.problems:
        raise Refused(f"{count(len(report.problems), 'problem')} found")


@keys.command(cls=Command)
@click.option(
    "--reseal", "reseals", is_flag=True, help="Sign all earlier events anew, so that no earlier key is needed."
)
@click.option(
    "--only-reseal", is_flag=True, help="Do not change the key: sign all earlier events anew with the present one."
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation of a resealing.")
@pass_settings
def rotate(settings: Settings, reseals: bool, only_reseal: bool, yes: bool) -> None:
    """Let a new key sign from now on. Earlier keys verify earlier events for key_verification_days."""
    from memgraph.config import load_config
    from memgraph.store.maintenance.keys import list_keys, reseal_store, rotate_key

    config = load_config({"home": settings.home})
    reseals = reseals or only_reseal
    if reseals and not yes:
        _confirm()
    document: dict[str, object] = {"rotated": None, "resealed": None}
    lines: list[str] = []
    with logs_shown(settings):
        expired = [one.key_id for one in list_keys(config).keys if one.state == "expired"]
        if not only_reseal and not (reseals and expired):
            rotated = rotate_key(config, rotated_by=_user())
            document["rotated"] = rotated.model_dump(mode="json")
            days = count(config.key_verification_days, "day")
            verifies = "" if reseals else f"; {rotated.previous_key_id} verifies earlier events for {days}"
            lines.append(f"{rotated.key_id} signs from now on{verifies}.")
            if rotated.key_id.startswith("file:"):
                lines.append(
                    "Keep a copy of it in another place, since backups made from now on need it: `memgraph keys export FILE`."
                )
        if reseals:
            _end_worker(settings)
            with progress(settings, "verifying events") as bar:
                resealed = reseal_store(config, resealed_by=_user(), progress=bar)
            document["resealed"] = resealed.model_dump(mode="json")
            freed = ", ".join(resealed.freed_key_ids)
            lines.append(
                f"{count(resealed.seq, 'event')} signed anew with {resealed.key_id}; no longer needed: {freed}."
            )
            lines.append(
                "The next command builds graph and index anew. Other processes that use the store reopen it at their next use."
            )
    emit(settings, document, [plain(line) for line in lines])


@keys.command(cls=Command)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@pass_settings
def export(settings: Settings, file: Path) -> None:
    """Write the store's keys, unencrypted, to a new FILE that only you may read; it is also a document for key_provider json."""
    from memgraph.config import load_config
    from memgraph.store.maintenance.keys import export_keys

    with logs_shown(settings):
        found = export_keys(file.absolute(), load_config({"home": settings.home}))
    emit(settings, {"path": str(file), "key_ids": found}, f"Wrote {count(len(found), 'key')} to {plain(str(file))}.")


@keys.command("import", cls=Command)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@pass_settings
def import_(settings: Settings, file: Path) -> None:
    """Add the keys of an exported FILE to the store's key file, also before the store is restored."""
    from memgraph.config import load_config
    from memgraph.journal.opening import is_store
    from memgraph.store.maintenance.keys import import_keys

    with logs_shown(settings):
        config = load_config({"home": settings.home})
        added = import_keys(file, config)
    lines = [f"Added {plain(one)}." for one in added] or ["The key file has all of them."]
    if not is_store(config.home, config.server):
        lines.append(
            f"There is no store at {plain(str(config.server or config.home))} yet; `memgraph restore FILE` restores one with these keys."
        )
    emit(settings, {"added": added}, lines)


def _end_worker(settings: Settings) -> None:
    """End the store's worker: it would be refused until it opens the store again."""
    from memgraph.interfaces.cli.maintenance.worker import end_worker
    from memgraph.interfaces.worker.place import place_of

    place = place_of(settings.home)
    if place is not None:
        end_worker(place)


def _confirm() -> None:
    what = "Resealing signs every event anew and cannot be undone; make a backup of the store and its keys before."
    if not sys.stdin.isatty():
        raise Refused(f"{what} To reseal without confirmation, add --yes.")
    click.echo(what, err=True)
    if not click.confirm("Reseal the journal?", err=True):
        raise Refused("nothing was changed")


def _line(one: KeyEntry) -> str:
    parts = [] if one.until is None else [f"until {one.until}"]
    if one.first_seq is not None and (one.last_seq is None or one.last_seq >= one.first_seq):
        ended = f"events {one.first_seq} to {one.last_seq}"
        parts.insert(0, f"from event {one.first_seq}" if one.last_seq is None else ended)
    return f"{one.key_id}: {one.state}" + (f" ({', '.join(parts)})" if parts else "")


def _user() -> str | None:
    """Return the name of the logged-in user, or None if it is unknown."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None
