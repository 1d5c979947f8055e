"""State of a graph, and the rows replayed from the journal to fill a new one."""

from __future__ import annotations

from memgraph.errors import GraphError, OutdatedGraphError
from memgraph.fold import EmptyRows, Projection, Workspace, fold
from memgraph.fold.projection import SCHEMA_VERSION, digest_after
from memgraph.journal.journal import Journal
from memgraph.ports import Change, GraphEngine, Progress


def replayed(journal: Journal, until: int, progress: Progress | None = None) -> tuple[list[Change], Projection]:
    """Return all rows after the event of a number, and their projection. Verifies every event.

    Raises
    ------
    JournalError
        An event does not match its signature.
    """
    workspace = Workspace(EmptyRows())
    projection = Projection(journal.store_id)
    for commit in journal.replay():
        if commit.after.chain.seq > until:
            break
        for event in commit.events:
            fold(workspace, event)
        projection = projection.at(commit.after)
        if progress:
            progress(projection.seq, until)
    changes = list(workspace.changes())
    return changes, projection.with_digest(digest_after(0, changes))


def stored(engine: GraphEngine, store_id: str) -> Projection:
    """Return the state that a graph records for itself, whatever the journal's.

    Raises
    ------
    GraphError
        The state cannot be read.
    """
    row = engine.state()
    if row is None:  # a new graph
        return Projection(store_id)
    try:
        return Projection.from_row(row)
    except (KeyError, ValueError, TypeError) as error:
        raise GraphError(f"its state cannot be read ({error!r})") from None


def resumable(engine: GraphEngine, journal: Journal) -> Projection:
    """Return the state that a graph records for itself, which the journal can bring up to date.

    Raises
    ------
    GraphError
        It cannot.
    """
    state, tail = stored(engine, journal.store_id), journal.tail.chain
    if state.store_id != journal.store_id or state.schema_version != SCHEMA_VERSION:
        raise OutdatedGraphError("it belongs to another store or schema")
    if state.seq > tail.seq or (state.seq == tail.seq and state.signature != tail.signature):
        raise OutdatedGraphError("it is ahead of the journal")
    return state
