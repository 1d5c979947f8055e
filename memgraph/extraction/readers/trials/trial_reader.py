"""Base of the readers of Reflexion's three formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memgraph.extraction.readers.documents import Part
from memgraph.extraction.readers.source import FileReader, overall, undated
from memgraph.model.build import BuildTask

AGENT = "reflexion"


class TrialReader(FileReader):
    """Base of trial readers: a path, and a project shared by all runs of a benchmark.

    Parameters
    ----------
    path : path-like
        Optionally gzipped.
    project_id : str, optional
        Default: the benchmark's name, so that later trials find the lessons of earlier ones.
    """

    kind = "trials"

    def __init__(self, path: str | Path, *, project_id: str | None = None) -> None:
        super().__init__(path, project_id=self.kind if project_id is None else project_id)


def trial_fields(
    build_id: str, project_id: str, tasks: list[BuildTask], *, first: int, last: int | None = None
) -> dict[str, Any]:
    """Return the fields of a build for trials `first` to `last` (default: `first` alone)."""
    return {
        "build_id": build_id,
        "project_id": project_id,
        "tasks": tasks,
        "build_outcome": overall(tasks),
        "started_at": undated(first),
        "completed_at": undated(first if last is None else last),
        "source": "trial",
    }


def with_unread(part: Part, place: str, data: dict[str, Any], *lists: str) -> Part:
    """Return a build's part that also reports which of these fields are not lists."""
    wrong = [name for name in lists if data.get(name) is not None and not isinstance(data[name], list)]
    return part._replace(problem=f"{place}: {', '.join(wrong)}: not a list") if wrong and part.build else part
