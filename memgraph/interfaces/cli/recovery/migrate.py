"""``migrate`` and ``move``: bring a store to this release, or into another database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from memgraph.interfaces.cli.base.opening import logs_shown
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, plain, progress

if TYPE_CHECKING:
    from memgraph.model.results.maintenance import MigrationReport


@click.command(cls=Command)
@click.option("--dry-run", is_flag=True, help="Verify and report; change nothing.")
@click.option(
    "--finish", is_flag=True, help="Remove the journal of an earlier release, which was kept after it was moved."
)
@click.option("--report", "file", metavar="FILE", help="Also write the report to FILE, as JSON.")
@pass_settings
def migrate(settings: Settings, dry_run: bool, finish: bool, file: str | None) -> None:
    """Verify and read every event, and bring graph and index to this release's schema."""
    from memgraph.config import load_config
    from memgraph.store.maintenance import migration

    config = load_config({"home": settings.home})
    if finish:
        removed = migration.finish(config)
        done = f"Removed {plain(str(removed))}." if removed else "No journal of an earlier release is kept here."
        emit(settings, {"removed": str(removed) if removed else None}, [done])
        return
    with logs_shown(settings), progress(settings, "reading") as bar:
        found = migration.migrate(config, dry_run=dry_run, progress=bar)
    if file is not None:
        from memgraph.viz.files import write_files

        write_files({Path(file): found.model_dump_json(indent=2).encode() + b"\n"})
    emit(settings, found, _lines(found))


@click.command(cls=Command)
@click.option("--to", required=True, metavar="PLACE", help="A new directory, or postgresql://USER@HOST/DATABASE.")
@click.option("--tenant", metavar="NAME", help="The store's name in the PostgreSQL database.")
@pass_settings
def move(settings: Settings, to: str, tenant: str | None) -> None:
    """Copy the store into another database, verify it there, and leave the old one as it is."""
    from memgraph.config import load_config
    from memgraph.store.maintenance import migration

    with logs_shown(settings), progress(settings, "verifying") as bar:
        found = migration.move(to, load_config({"home": settings.home}), tenant=tenant, progress=bar)
    lines = [
        f"Moved {count(found.events, 'event')} and {count(found.vectors, 'vector')} to {plain(found.target)}, and verified them there.",
        f"Digest of the state {found.digest}, in both.",
        f"The old store, {plain(found.source)}, is left as it is, and refused from now on: delete it once the new one is in use.",
    ]
    emit(settings, found, lines)


def _lines(found: MigrationReport) -> list[str]:
    lines = [
        f"Verified {count(found.events, 'event')}, {found.first_seq} to {found.last_seq}.",
        f"SHA-256 of the journal {found.journal_sha256}",
    ]
    for before, after in found.converted.items():
        lines.append(f"  {plain(before)}: {count(found.types[before], 'event')}, read as {plain(after)}")
    was = f"schema {found.schema_before}" if found.schema_before else "none that can be read"
    if not found.rebuilds:
        return [*lines, f"Graph and index are of {was}, which is this release's: nothing to migrate."]
    if found.dry_run:
        return [
            *lines,
            f"The graph is of {was}: it would be rebuilt with schema {found.schema_version}. Nothing was changed.",
        ]
    return [
        *lines,
        f"Rebuilt graph and index with schema {found.schema_version} (before: {was}); event {found.recorded_as} records this.",
        f"Digest of the state {found.digest}, in {found.seconds:.1f} s.",
    ]
