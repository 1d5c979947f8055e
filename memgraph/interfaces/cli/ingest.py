"""``ingest``: a source's history becomes memories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from memgraph.errors import SourceError
from memgraph.interfaces.cli.opening import opened
from memgraph.interfaces.cli.options import Command, Settings, Subgroup, pass_settings
from memgraph.interfaces.cli.output import count, emit, notice, plain, progress

if TYPE_CHECKING:
    from memgraph.extraction.readers import Reader
    from memgraph.model.results import IngestReport

_REASONS_SHOWN = 5
_project = click.option("--project", metavar="NAME", help="The memories' project (else the source's name).")


@click.group(cls=Subgroup)
def ingest() -> None:
    """Turn a source into memories. Run again, it goes on where it stopped."""


@ingest.command("git", cls=Command)
@click.argument("path")
@_project
@pass_settings
def git(settings: Settings, path: str, project: str | None) -> None:
    """Read a repository, or the saved text of ``git log --name-status``."""
    run(settings, history_reader(Path(path), project))


@ingest.command("builds", cls=Command)
@click.argument("path")
@_project
@pass_settings
def builds(settings: Settings, path: str, project: str | None) -> None:
    """Read build logs: a JSON object or array, or JSON lines."""
    from memgraph.extraction.readers import BuildLogReader

    run(settings, BuildLogReader(path, project_id=project))


def history_reader(path: Path, project: str | None = None) -> Reader:
    """Return the reader of a history: a directory is a repository, a file the saved text of a log."""
    from memgraph.extraction.readers import GitReader, SavedGitLogReader

    if path.is_file():
        return SavedGitLogReader(path, project_id=project)
    return GitReader(path, project_id=project)


def run(settings: Settings, reader: Reader) -> None:
    """Ingest a source and print what came of it."""
    with opened(settings) as memory:
        with progress(settings, f"reading {plain(reader.project_id)}") as bar:
            report = memory.ingest(reader, progress=bar)
        emit(settings, report, told(report))
    if report.notice:
        notice(report.notice)
    if report.skipped and not report.builds:
        raise SourceError("holds nothing that can be read", path=Path(reader.locator))


def told(report: IngestReport) -> list[str]:
    """Return a report in words."""
    if not report.read:
        return ["Nothing new to read."]
    merged = f", {count(report.merged, 'merged into a known one', 'merged into known ones')}" if report.merged else ""
    source = f"{count(report.read, 'record')} as {count(report.builds, 'build')}"
    lines = [f"Read {source} in {report.seconds:.1f} s: {count(report.extracted, 'memory', 'memories')} added{merged}."]
    if report.forgotten:
        lines.append(f"Left out {count(report.forgotten, 'memory', 'memories')} that say again what was forgotten.")
    if report.skipped:
        lines.append(f"Skipped {count(report.skipped, 'record')} that could not be read:")
        lines += [f"  {plain(reason)}" for reason in list(report.reasons)[:_REASONS_SHOWN]]
        if len(report.reasons) > _REASONS_SHOWN:
            lines.append(f"  … and {len(report.reasons) - _REASONS_SHOWN} more")
    return lines
