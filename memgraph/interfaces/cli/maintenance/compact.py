"""``compact``: make a baseline of the journal, and archive what is before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memgraph.interfaces.cli.base.opening import logs_shown
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, progress

if TYPE_CHECKING:
    from memgraph.model.results.maintenance import CompactionResult

_NOTHING = "Nothing was recorded before then: there is nothing to compact."


@click.command(cls=Command)
@click.option("--before", metavar="DATE", help="Compact what was recorded before DATE; default: before this month.")
@click.option("--closed-tasks", is_flag=True, help="Stop before the first event of a task that is still open.")
@click.option("--dry-run", is_flag=True, help="Print what would be done, and change nothing.")
@pass_settings
def compact(settings: Settings, before: str | None, closed_tasks: bool, dry_run: bool) -> None:
    """Make a signed baseline of the journal, so that a rebuild costs what is recorded after it; archive older events.

    With the setting archive_retention_days, memories that were deleted longer ago than that are purged. There is
    no undo.
    """
    from memgraph.config import load_config
    from memgraph.store.compaction import compact

    config = load_config({"home": settings.home})
    with logs_shown(settings), progress(settings, "reading the journal") as bar:
        found = compact(config, before=before, closed_tasks=closed_tasks, dry_run=dry_run, progress=bar)
    emit(settings, found, _preview(found) if dry_run else _lines(found))


def _preview(found: CompactionResult) -> list[str]:
    if found.until is None:
        return [_NOTHING]
    if not (found.is_new or found.removed_texts):
        return [f"There is nothing more to compact: the journal has a baseline at event {found.seq}."]
    lines = [_end(found, "A baseline would end")] if found.is_new else []
    if found.archived_events:
        lines.append(f"{count(found.archived_events, 'event')} would be moved to the archive.")
    if found.removed_texts:
        lines.append(
            f"{count(found.removed_texts, 'deleted memory', 'deleted memories')} would be purged, because of archive_retention_days. "
            "There is no undo."
        )
    return [*lines, "Nothing was changed."]


def _lines(found: CompactionResult) -> list[str]:
    if found.until is None:
        return [_NOTHING]
    size = f"({count(found.rows, 'row')}, {found.baseline_bytes / 1e6:,.1f} MB)"
    begins = (
        f"Made a baseline {size}; it ends"
        if found.is_new
        else f"There is nothing more to compact: the baseline {size} ends"
    )
    lines = [_end(found, begins)]
    if found.archived_events:
        lines.append(f"Moved {count(found.archived_events, 'event')} to the archive; their history stays readable.")
    if found.removed_texts:
        lines.append(
            f"Purged {count(found.removed_texts, 'deleted memory', 'deleted memories')}, because of archive_retention_days. Make a full "
            "backup now: earlier ones still hold them."
        )
    lines.append(f"Journal {found.journal_bytes / 1e6:,.2f} MB, archive {found.archive_bytes / 1e6:,.2f} MB.")
    return lines


def _end(found: CompactionResult, begins: str) -> str:
    come = "comes" if found.events_left == 1 else "come"
    when = found.until[:10] if found.until else ""
    return f"{begins} at event {found.seq}, recorded on {when}; {count(found.events_left, 'event')} {come} after it."
