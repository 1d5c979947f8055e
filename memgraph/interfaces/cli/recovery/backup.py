"""``backup`` and ``restore``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.opening import logs_shown, opened
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, plain, progress

if TYPE_CHECKING:
    from memgraph.model.results.maintenance import BackupResult, RestoreResult


@click.command(cls=Command)
@click.argument("file")
@click.option("--incremental", is_flag=True, help="Write only what was recorded since the last backup.")
@click.option("--base", metavar="FILE", help="Write only what was recorded since this backup.")
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@pass_settings
def backup(settings: Settings, file: str, incremental: bool, base: str | None, force: bool) -> None:
    """Back up journal, vectors and settings to FILE, which ends in .tar.gz or .tar.zst; keys are never in it."""
    _require_store(settings)
    with opened(settings) as memory, progress(settings, "verifying and copying") as bar:
        made = memory.store.backup(file, incremental=incremental, base=base, replace=force, progress=bar)
    emit(settings, made, _made(made))


@click.command(cls=Command)
@click.argument("file")
@click.option(
    "--base", "bases", metavar="FILE", multiple=True, help="A backup that FILE continues, if it is not beside it."
)
@click.option("--until", type=int, metavar="EVENT", help="Restore only the commits up to this event.")
@click.option("--dry-run", is_flag=True, help="Verify everything, and restore nothing.")
@pass_settings
def restore(settings: Settings, file: str, bases: tuple[str, ...], until: int | None, dry_run: bool) -> None:
    """Restore a store from FILE into a directory that is empty or does not exist."""
    from memgraph.store.restoring import restore

    with logs_shown(settings), progress(settings, "restoring") as bar:
        found = restore(file, settings.home, bases=bases, until=until, dry_run=dry_run, progress=bar)
    emit(settings, found, _restored(found))


def _require_store(settings: Settings) -> None:
    """Refuse where there is no store: a backup of a new, empty one would look like a backup."""
    from memgraph.config import home_of
    from memgraph.journal.opening import is_store

    home, server = home_of(settings.home)
    if not is_store(home, server):
        raise Refused(f"there is no store at {server or home}, so there is nothing to back up")


def _made(made: BackupResult) -> list[str]:
    after = f" after event {made.first_seq - 1}" if made.base_id else ""
    size = f"{made.size_bytes / 1e6:,.1f} MB"
    lines = [
        f"Backed up all events{after} up to event {made.last_seq} to {plain(made.file)} ({size}, {made.seconds:.1f} s)."
    ]
    if made.base_id:
        lines.append("It is restored together with the backup that it continues: keep both.")
    lines.append("The signing key is not in it, and it cannot be restored without: keep the key in another place.")
    return lines


def _restored(found: RestoreResult) -> list[str]:
    what = "The backup can be restored" if found.dry_run else f"Restored the store to {plain(found.home)}"
    lines = [
        f"{what}: {count(found.last_seq, 'event')}, verified in {found.seconds:.1f} s, digest {found.digest[:16]}."
    ]
    if found.last_seq < found.backup_seq:
        lines.append(f"The backup also has events {found.last_seq + 1} to {found.backup_seq}, which were left out.")
    if found.damaged_vectors:
        lines.append(
            f"{count(found.damaged_vectors, 'vector')} was damaged when the backup was made: run `memgraph embed --repair`."
            if found.damaged_vectors == 1
            else f"{found.damaged_vectors:,} vectors were damaged when the backup was made: run `memgraph embed --repair`."
        )
    if found.expired_keys:
        lines.append(
            f"{count(len(found.expired_keys), 'rotated key')} of the store expired before this restoration: it does not open until "
            "`memgraph keys rotate --only-reseal` has signed its events anew."
        )
    if found.later_events > 1:
        lines.append(
            f"The original has recorded {found.later_events:,} events after these, which this copy lacks. Any memory that was purged "
            "in that time is here again: purge it here, too."
        )
    if found.copy_id:
        lines.append(
            "The original's head file is still here, so this copy has its own: from now on they are two stores."
        )
    return lines
