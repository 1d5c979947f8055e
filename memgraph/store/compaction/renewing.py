"""Makes a baseline anew from the events, after some of them have lost their payload."""

from __future__ import annotations

from memgraph.fold import EmptyRows, Workspace
from memgraph.journal.baseline.archive import complete
from memgraph.journal.closed.digest import JournalDigest
from memgraph.journal.journal import Journal
from memgraph.journal.vectors.vector_file import NamedVectors
from memgraph.store.compaction.state import State, adopt, baseline_of


def renew_baseline(journal: Journal, seqs: set[int], now: str) -> bool:
    """Make the baseline anew if it stands for one of some events, whose payloads were removed; return whether it was.

    Nothing is left of the former one: its file is removed. Costs a replay of the archive. Needs the writer lock. Repeatable: the caller's
    note that a purge is under way lets the next opening do it again.

    Raises
    ------
    JournalError
        An event of the archive is not what was signed, or a segment is not what the manifest names.
    StorageError
        The system refuses.
    """
    present = journal.baseline
    if present is None or not any(seq <= present.seq for seq in seqs):
        return False
    state, digest = State(Workspace(EmptyRows()), journal.start, NamedVectors()), JournalDigest()
    for commit in journal.replay(journal.start):
        if commit.after.seq > present.seq:
            break
        state.take(commit)
        digest.add(commit.after.position.segment, commit.data)
    state.named = present.named  # the rows of purged vectors stay taken
    adopt(journal, baseline_of(journal, state, now))
    assert journal.baseline is not None  # noqa: S101 - adopted
    complete(journal.segments, journal.baseline)
    if (
        digest.closed()
    ):  # the journal's own digest begins at the baseline, so nothing else names the rewritten ones again
        journal.closed.complete(digest, journal.signing_key, journal.ring.find, journal.used.between)
    return True
