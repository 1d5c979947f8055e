"""Rows of baselines in earlier forms: brought to the present one, step by step.

A release that raises `SCHEMA_VERSION` adds the step from the version before: a function of one row. While the archive of a compacted journal
is there, its events are folded anew instead; these steps are for journals whose archive was deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from memgraph.errors import JournalError
from memgraph.fold.projection import SCHEMA_VERSION
from memgraph.journal.baseline.rows import BaselineRow

FIRST_VERSION = "10"
"""The schema version of the first release that made baselines."""
Step = Callable[[BaselineRow], BaselineRow | None]
STEPS: Mapping[str, tuple[str, Step]] = {}
"""For each earlier version the one after it, and what a row becomes; None: it does not exist any more."""


def brought_up(rows: Iterable[BaselineRow], version: str) -> Iterator[BaselineRow]:
    """Return the rows of a baseline of some version in their present form.

    Raises
    ------
    JournalError
        The version is unknown to this release.
    """
    steps: list[Step] = []
    while version != SCHEMA_VERSION:
        if version not in STEPS:
            raise JournalError(
                f"the journal's baseline has rows of version {version!r}, which this release does not know; install a newer memgraph"
            )
        version, step = STEPS[version]
        steps.append(step)
    for row in rows:
        found: BaselineRow | None = row
        for step in steps:
            found = step(found) if found is not None else None
        if found is not None:
            yield found
