"""Learning from the sessions before memgraph was connected: a preview of what they teach, then the reading of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from pydantic import Field

from memgraph.errors import SourceError
from memgraph.extraction.readers import TranscriptReader
from memgraph.extraction.readers.source import files_below
from memgraph.extraction.rules.extractor import RuleExtractor
from memgraph.extraction.secrets import redact_any
from memgraph.facade import MemGraph
from memgraph.interfaces.refusals import one_source
from memgraph.model.base import Count, Model
from memgraph.model.ids import natural_id
from memgraph.model.results.learning import IngestReport
from memgraph.ports import Progress
from memgraph.text.safe import visible_line

EXAMPLES = 10
_ENDINGS = frozenset({".jsonl"})
_EXAMPLES_KEPT = 20
"""Per project: the first finding of so many sessions."""


class ProjectPreview(Model):
    """What the sessions of a project would teach."""

    project: str
    transcripts: Count = 0
    findings: Count = 0


class Example(Model):
    """A finding, by the project in which it was made."""

    project: str
    text: str


class BackfillPreview(Model):
    """What the transcripts that were not read yet would teach, by the rules. Findings of the same content are merged when they are stored.

    Attributes
    ----------
    read : int
        Transcripts that were read before and have not changed.
    unreadable : list of str
        Why transcripts cannot be read.
    """

    projects: list[ProjectPreview] = Field(default_factory=list)
    examples: list[Example] = Field(default_factory=list)
    read: Count = 0
    unreadable: list[str] = Field(default_factory=list)

    @property
    def transcripts(self) -> int:
        """Number of transcripts to read."""
        return sum(one.transcripts for one in self.projects)


@dataclass
class _Project:
    transcripts: int = 0
    findings: int = 0
    examples: list[str] = field(default_factory=list)


def transcripts_below(folder: Path) -> list[Path]:
    """Return all transcripts below a directory, in order; none if there is no such directory."""
    return files_below(folder, _ENDINGS, hidden=True) if folder.is_dir() else []


def preview_backfill(memory: MemGraph, paths: Sequence[Path], *, progress: Progress | None = None) -> BackfillPreview:
    """Return what transcripts would teach, without storing anything.

    Parameters
    ----------
    progress : callable, optional
        Called with (done, total) after each transcript.
    """
    extractor = RuleExtractor()
    found: dict[str, _Project] = {}
    unreadable: list[str] = []
    read = 0
    for number, path in enumerate(paths, start=1):
        try:
            with one_source(path):
                reader = TranscriptReader(path)
                builds = [record.build for record in reader.records(_cursor(memory, reader)) if record.build]
                logs = [redact_any(build).value if memory.store.config.redact_secrets else build for build in builds]
                taught = [[one.memory.content for one in extractor.extract(log).candidates] for log in logs]
        except SourceError as error:
            unreadable.append(str(error))
            builds, taught, reader = [], [], None
        read += reader is not None and not builds
        for build, texts in zip(builds, taught, strict=True):
            project = found.setdefault(build.project_id, _Project())
            project.findings += len(texts)
            if len(project.examples) < _EXAMPLES_KEPT:
                project.examples += map(visible_line, texts[:1])
        if builds:
            found[builds[0].project_id].transcripts += 1
        if progress:
            progress(number, len(paths))
    projects = [
        ProjectPreview(project=name, transcripts=one.transcripts, findings=one.findings)
        for name, one in sorted(found.items(), key=lambda item: (-item[1].findings, item[0]))
    ]
    examples = list(islice(_in_turn({one.project: found[one.project].examples for one in projects}), EXAMPLES))
    return BackfillPreview(projects=projects, examples=examples, read=read, unreadable=unreadable)


def backfill(memory: MemGraph, paths: Sequence[Path], *, progress: Progress | None = None) -> list[IngestReport]:
    """Read transcripts, each from where the last run stopped; unreadable ones are left out."""
    reports = []
    for number, path in enumerate(paths, start=1):
        try:
            with one_source(path):
                reports.append(memory.ingest(TranscriptReader(path), compress=False))
        except SourceError:
            continue  # the preview has named it
        finally:
            if progress:
                progress(number, len(paths))
    memory.consolidation.compress_if_due()
    memory.distillation.request()
    return reports


def _cursor(memory: MemGraph, reader: TranscriptReader) -> str | None:
    source = memory.store.reader.record("Source", natural_id("source", reader.source_id)) or {}
    return source.get("cursor")


def _in_turn(texts: dict[str, list[str]]) -> Iterator[Example]:
    """Yield the first example of each project, then the second of each, and so on."""
    for place in range(_EXAMPLES_KEPT):
        for project, its in texts.items():
            if place < len(its):
                yield Example(project=project, text=its[place])
