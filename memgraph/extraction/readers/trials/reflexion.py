"""Detection of Reflexion's three result formats."""

from __future__ import annotations

from pathlib import Path

from memgraph.extraction.readers.files import opened
from memgraph.extraction.readers.source import Reader
from memgraph.extraction.readers.trials.alfworld import AlfworldReader
from memgraph.extraction.readers.trials.hotpotqa import HotpotqaReader
from memgraph.extraction.readers.trials.mbpp import MbppReader


def reflexion_reader(path: str | Path, *, project_id: str | None = None) -> Reader:
    """Return the reader for a Reflexion file: ALFWorld (an array), MBPP (objects), HotPotQA (text).

    Raises
    ------
    SourceError
        The file cannot be read.
    """
    with opened(Path(path).absolute()) as (stream, _):
        first = stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if first == b"[":
        return AlfworldReader(path, project_id=project_id)
    return (MbppReader if first == b"{" else HotpotqaReader)(path, project_id=project_id)
