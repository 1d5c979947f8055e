"""Reader of build logs as JSON (an object or an array) or JSON lines, in camelCase or snake_case."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memgraph.errors import InvalidInputError
from memgraph.extraction.readers.documents import MAX_WHOLE_BYTES, JsonSource, Part, reason
from memgraph.extraction.readers.files import MAX_LINE_BYTES
from memgraph.extraction.readers.source import (
    FileReader,
    SourceRecord,
    shortened,
    storable_text,
    without_ansi,
)
from memgraph.model.build import BuildEventLog

_MAX_TEXT_CHARS = 200_000


class BuildLogReader(FileReader):
    """Reads seed 0's build logs from a file.

    JSON lines are streamed and may grow: a later run continues after the last complete line. An array or single object
    is read as a whole. Builds without a project get the reader's; a `project_id` given here overrides theirs.

    Parameters
    ----------
    path : path-like
        A ``.json``, ``.jsonl`` or ``.ndjson`` file, optionally gzipped; for other suffixes the content decides.
    project_id : str, optional
        Default: the file's name without its suffixes.
    max_line_bytes, max_whole_bytes : int
        Longer lines are skipped, larger whole documents rejected.
    """

    kind = "builds"

    def __init__(
        self,
        path: str | Path,
        *,
        project_id: str | None = None,
        max_line_bytes: int = MAX_LINE_BYTES,
        max_whole_bytes: int = MAX_WHOLE_BYTES,
    ) -> None:
        super().__init__(path, project_id=project_id)
        self._overrides_project = project_id is not None
        self._source = JsonSource(self._path, max_line_bytes=max_line_bytes, max_whole_bytes=max_whole_bytes)

    def count(self) -> int | None:
        """Return the number of non-blank lines, or None for a document that is read as a whole."""
        return self._source.count()

    def records(self, cursor: str | None) -> Iterator[SourceRecord]:
        """Yield one record per build; see `Reader.records`."""
        return self._source.entries(cursor, self._validated, noun="build log")

    def _validated(self, data: object, place: str) -> Part:
        if not isinstance(data, dict):
            return Part(None, 1, f"{place}: not an object")
        try:
            fields: dict[str, Any] = _storable(data)
            if self._overrides_project or not ({"project_id", "projectId"} & fields.keys()):
                fields = {key: value for key, value in fields.items() if key != "projectId"}
                fields["project_id"] = self.project_id
            return Part(BuildEventLog.parse(fields))
        except (InvalidInputError, RecursionError) as error:
            return Part(None, 1, f"{place}: {reason(error)}")


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return storable_text(shortened(without_ansi(value), _MAX_TEXT_CHARS))
    if isinstance(value, list):
        return [_storable(item) for item in value]
    if isinstance(value, dict):
        return {storable_text(key): _storable(item) for key, item in value.items()}
    return value
