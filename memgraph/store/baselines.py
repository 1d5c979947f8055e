"""Baselines: a state becomes the beginning of the journal's replay."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from memgraph.fold import EmptyRows, Workspace, fold
from memgraph.fold.fold import SCHEMA_VERSION, digest_after
from memgraph.journal.baseline import Baseline, packed_rows
from memgraph.journal.envelope import Chain, Committed
from memgraph.journal.journal import Journal
from memgraph.journal.keys.ring import KeyHistory
from memgraph.journal.sql import Transaction
from memgraph.journal.vectors import NamedVectors
from memgraph.store.opening import release


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


def adopt(journal: Journal, tx: Transaction, state: State, now: str) -> None:
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
        made_by=f"memgraph {release()}",
    )
    journal.put_baseline(tx, baseline, body)


def renew_baseline(journal: Journal, tx: Transaction, seqs: Iterable[int], now: str) -> None:
    """Make the baseline anew if it stands for one of some events, whose payloads were removed. Costs a replay of the archive."""
    present = journal.present_baseline()
    if present is None or not any(seq <= present.seq for seq in seqs):
        return
    state = State(Workspace(EmptyRows()), journal.start, NamedVectors())
    for commit in journal.replay(until=present.seq):
        state.take(commit)
    state.named = present.named  # the rows of purged vectors stay taken
    adopt(journal, tx, state, now)
