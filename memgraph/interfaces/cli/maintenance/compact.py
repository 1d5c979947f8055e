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
    """Make a signed baseline of the journal, so that opening costs what is recorded after it; archive older segments.

    With the setting archive_retention_days, archived segments of that age lose their signatures and the texts of
    memories that were deleted by then. There is no undo.
    """
    from memgraph.config import load_config
    from memgraph.store.compaction.compacting import compact, preview_compaction

    config = load_config({"home": settings.home})
    run = preview_compaction if dry_run else compact
    with logs_shown(settings), progress(settings, "reading the journal") as bar:
        found = run(config, before=before, closed_tasks=closed_tasks, progress=bar)
    emit(settings, found, _preview(found) if dry_run else _lines(found))


def _preview(found: CompactionResult) -> list[str]:
    if found.until is None:
        return [_NOTHING]
    if not (found.is_new or found.archived_segments or found.condensed_segments):
        return [f"There is nothing more to compact: the journal has a baseline at event {found.seq}."]
    lines = [_end(found, "A baseline would end")] if found.is_new else []
    if found.archived_segments:
        lines.append(f"{count(found.archived_segments, 'segment')} would be moved to journal/archive.")
    if found.condensed_segments:
        lines.append(
            f"{count(found.condensed_segments, 'archived segment')} would be condensed, because of archive_retention_days: "
            f"{_texts(found, 'would be removed')} There is no undo."
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
    if not found.is_new and found.condensed_segments:
        begins = f"The baseline {size} is up to date; it ends"
    lines = [_end(found, begins)]
    if found.archived_segments:
        lines.append(
            f"Moved {count(found.archived_segments, 'segment')} to journal/archive; their history stays readable."
        )
    if found.condensed_segments:
        lines.append(
            f"Condensed {count(found.condensed_segments, 'archived segment')}: {_texts(found, 'were removed')} Make a full backup now: "
            "incremental ones cannot follow earlier ones."
        )
    lines.append(f"Journal {found.journal_bytes / 1e6:,.2f} MB, archive {found.archive_bytes / 1e6:,.2f} MB.")
    return lines


def _end(found: CompactionResult, begins: str) -> str:
    come = "comes" if found.events_left == 1 else "come"
    when = found.until[:10] if found.until else ""
    return f"{begins} at event {found.seq}, recorded on {when}; {count(found.events_left, 'event')} {come} after it."


def _texts(found: CompactionResult, were: str) -> str:
    if not found.removed_texts:
        return f"their signatures {were}; no deleted memory has a text left in them."
    return f"their signatures, and the texts of {count(found.removed_texts, 'deleted memory', 'deleted memories')}, {were}."
