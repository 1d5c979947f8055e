"""States replayed from the journal: all rows at its end, to fill a database, and the baseline that a compaction makes of a state."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from memgraph.fold import EmptyRows, Projection, Workspace, fold
from memgraph.fold.fold import SCHEMA_VERSION, digest_after
from memgraph.journal.baseline import Baseline, packed_rows
from memgraph.journal.envelope import Chain, Committed
from memgraph.journal.journal import Journal
from memgraph.journal.keyring import KeyHistory
from memgraph.journal.sql import Transaction
from memgraph.journal.vectors import NamedVectors
from memgraph.ports import Change, Progress


def beginning(journal: Journal, until: int | None = None) -> tuple[Workspace, Chain]:
    """Return the rows from which a replay up to an event begins, and the point: the baseline's, if it is of this schema, or none at the start."""
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


@dataclass(slots=True)
class State:
    """The state at a commit: rows, and what the events up to there state about vectors."""

    workspace: Workspace
    end: Chain
    named: NamedVectors

    def take(self, commit: Committed) -> None:
        """Take in one more commit."""
        for event in commit.events:
            fold(self.workspace, event)
            self.named = self.named.after(event.payload)
        self.end = commit.after


def adopt(journal: Journal, tx: Transaction, state: State, now: str, by: str) -> None:
    """Make a state the journal's baseline, in the transaction that is open."""
    changes = [change for change in state.workspace.changes() if change.new is not None]
    body, count = packed_rows((one.table, one.key, one.new) for one in changes if one.new is not None)
    baseline = Baseline(
        chain=state.end,
        named=state.named,
        used=KeyHistory(tuple(use for use in journal.used.uses if use.first_seq <= state.end.seq + 1)),
        sha256=hashlib.sha256(body).hexdigest(),
        rows=count,
        digest=f"{digest_after(0, changes):064x}",
        schema_version=SCHEMA_VERSION,
        made_at=now,
        made_by=by,
    )
    journal.put_baseline(tx, baseline, body)


def renew_baseline(journal: Journal, tx: Transaction, seqs: Iterable[int], now: str, by: str) -> None:
    """Make the baseline anew if it stands for one of some events, whose payloads were removed. Costs a replay of the archive."""
    present = journal.present_baseline()
    if present is None or not any(seq <= present.seq for seq in seqs):
        return
    state = State(Workspace(EmptyRows()), journal.start, NamedVectors())
    for commit in journal.replay(until=present.seq):
        state.take(commit)
    state.named = present.named  # the rows of purged vectors stay taken
    adopt(journal, tx, state, now, by)
