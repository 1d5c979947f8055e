"""The state at a commit, and the baseline that is made of it."""

from __future__ import annotations

from dataclasses import dataclass

from memgraph.fold import Workspace, fold
from memgraph.fold.projection import SCHEMA_VERSION, digest_after
from memgraph.journal.baseline.header import Baseline, write_header
from memgraph.journal.baseline.rows import write_rows
from memgraph.journal.journal import Journal
from memgraph.journal.keys.ring import KeyHistory
from memgraph.journal.replay import Committed, Offset
from memgraph.journal.vectors.vector_file import NamedVectors
from memgraph.store.opening import release


@dataclass(slots=True)
class State:
    """The state at a commit: rows, and what the events up to there state about vectors."""

    workspace: Workspace
    end: Offset
    named: NamedVectors

    def take(self, commit: Committed) -> None:
        """Take in one more commit."""
        for event in commit.events:
            fold(self.workspace, event)
            self.named = self.named.after(event.payload)
        self.end = commit.after


def baseline_of(journal: Journal, state: State, made_at: str) -> Baseline:
    """Write the rows of a state, and return the header that makes them count. Needs the writer lock.

    Raises
    ------
    StorageError
        The system refuses.
    """
    changes = [change for change in state.workspace.changes() if change.new is not None]
    rows = ((one.table, one.key, one.new) for one in changes if one.new is not None)
    written = write_rows(journal.folder, state.end.chain.seq, rows)
    return Baseline(
        chain=state.end.chain,
        position=state.end.position,
        named=state.named,
        used=KeyHistory(tuple(use for use in journal.used.uses if use.first_seq <= state.end.chain.seq + 1)),
        file=written.file,
        sha256=written.sha256,
        size_bytes=written.size_bytes,
        rows=written.rows,
        rows_sum=written.rows_sum,
        digest=f"{digest_after(0, changes):064x}",
        schema_version=SCHEMA_VERSION,
        made_at=made_at,
        made_by=f"memgraph {release()}",
    )


def adopt(journal: Journal, baseline: Baseline) -> None:
    """Make a baseline, whose rows are written, the journal's. Needs the writer lock.

    Raises
    ------
    StorageError
        The system refuses; then the journal begins as before.
    """
    write_header(journal.folder, baseline, [journal.signing_key])
    journal.begin_at(baseline)
