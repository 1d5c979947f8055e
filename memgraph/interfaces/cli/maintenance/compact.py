"""``compact``: make a baseline of the journal, and archive what is before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memgraph.interfaces.cli.base.opening import logs_shown
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, progress

if TYPE_CHECKING:
    from memgraph.model.results.maintenance import CompactionResult


@click.command(cls=Command)
@click.option("--before", metavar="DATE", help="Compact what was recorded before DATE; default: before this month.")
@click.option("--closed-tasks", is_flag=True, help="Stop before the first event of a task that is still open.")
@pass_settings
def compact(settings: Settings, before: str | None, closed_tasks: bool) -> None:
    """Make a signed baseline of the journal, so that opening costs what is recorded after it; archive older segments."""
    from memgraph.config import load_config
    from memgraph.store.compaction.compacting import compact

    config = load_config({"home": settings.home})
    with logs_shown(settings), progress(settings, "reading the journal") as bar:
        found = compact(config, before=before, closed_tasks=closed_tasks, progress=bar)
    emit(settings, found, _lines(found))


def _lines(found: CompactionResult) -> list[str]:
    if found.until is None:
        return ["Nothing was recorded before then: there is nothing to compact."]
    begins = "The journal has" if found.is_new else "There is nothing more to compact: the journal has"
    lines = [
        (
            f"{begins} a baseline of {count(found.rows, 'row')} ({found.baseline_bytes / 1e6:,.1f} MB) at event {found.seq}, "
            f"recorded on {found.until[:10]}; {count(found.events_left, 'event')} come after it."
        )
    ]
    if found.archived_segments:
        lines.append(
            f"Moved {count(found.archived_segments, 'segment')} to journal/archive; their history stays readable."
        )
    lines.append(f"Journal {found.journal_bytes / 1e6:,.1f} MB, archive {found.archive_bytes / 1e6:,.1f} MB.")
    return lines
