"""The rows replayed from the journal to fill a new database."""

from __future__ import annotations

from memgraph.fold import EmptyRows, Projection, Workspace, fold
from memgraph.fold.fold import SCHEMA_VERSION, digest_after
from memgraph.journal.baseline import Baseline
from memgraph.journal.envelope import Chain
from memgraph.journal.journal import Journal
from memgraph.ports import Change, Progress


def beginning(journal: Journal, until: int | None = None) -> tuple[Workspace, Chain]:
    """Return the rows from which a replay up to an event begins, and the point: the baseline's, or none at the journal's start.

    A baseline of another schema does not count: its events are folded anew, from the archive.
    """
    workspace, baseline = Workspace(EmptyRows()), journal.baseline
    if baseline is None or not _counts(baseline, until):
        return workspace, journal.start
    found = journal.rows_of_baseline()
    if found is None or not _counts(found[0], until):  # another process has compacted more meanwhile
        return workspace, journal.start
    baseline, rows = found
    for table, key, row in rows:
        workspace.add(table, key, row)
    return workspace, baseline.chain


def _counts(baseline: Baseline, until: int | None) -> bool:
    return baseline.schema_version == SCHEMA_VERSION and (until is None or baseline.seq <= until)


def replayed(journal: Journal, until: int, progress: Progress | None = None) -> tuple[list[Change], Projection]:
    """Return all rows after the event of a number, and their projection. Verifies every event after the baseline."""
    workspace, base = beginning(journal, until)
    projection = Projection(journal.store_id)
    if base.seq:
        projection = projection.at(base)
    for commit in journal.replay(base):
        if commit.after.seq > until:
            break
        for event in commit.events:
            fold(workspace, event)
        projection = projection.at(commit.after)
        if progress:
            progress(projection.seq, until)
    if until == journal.tail.seq:
        projection = projection.at(journal.tail)  # an excerpt may keep nothing of the last commits
    changes = list(workspace.changes())
    return changes, projection.with_digest(digest_after(0, changes))
