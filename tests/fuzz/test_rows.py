"""Random histories written to rows in the database: after each part of one they are, row by row and edge by edge, those of the fold.

200 steps; with ``--long`` 20,000.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memgraph.disk.seal import Seal
from memgraph.fold import Projection
from memgraph.graph.schema import tables
from memgraph.journal.sql import SQLite
from memgraph.ports import Key, Row
from memgraph.store.rows import Rows
from tests.fuzz.engine.histories import History

STEPS, PART = 100, 25
State = dict[tuple[str, Key], Row]


def differences(rows: Rows, history: History, follower: State) -> Iterator[str]:
    """Yield where rows, what follows them by their changes, and the fold differ; for some memories also the edges as they are found from either end."""
    expected = {(table, key): row for table, of_it in history.rows.tables.items() for key, row in of_it.items()}
    for name, found in (
        ("rows", {(table, key): row for table in tables() for key, row in rows.scan(table)}),
        ("follower", follower),
    ):
        for one in expected.keys() | found.keys():
            if expected.get(one) != found.get(one):
                yield f"{name}: {one}: {found.get(one)!r:.200} instead of {expected.get(one)!r:.200}"
    known = list(history.rows.tables.get("Memory", {}))
    for key in history.chance.sample(known, min(20, len(known))):
        mine, right = (
            {(table, ends): row for table, ends, row in source.edges_at(str(key))} for source in (rows, history.rows)
        )
        if mine != right:
            yield f"the edges at {key}: {mine!r:.200} instead of {right!r:.200}"


@pytest.mark.parametrize("is_rebuilt", [False, True])
def test_rows_are_those_of_the_fold(tmp_path: Path, pytestconfig: pytest.Config, is_rebuilt: bool) -> None:
    total = 10_000 if pytestconfig.getoption("--long") else STEPS
    for seed in range(total // STEPS):
        database = SQLite(tmp_path / f"{seed}" / "memgraph.db", is_durable=False)
        rows, history, follower = Rows(database, Seal(b"f" * 32), timeout_s=1.0), History(seed), State()
        for step in range(1, STEPS + 1):
            rows.apply(history.step(), Projection("store", step))
            if step % PART == 0:
                before = step - PART
                changes = rows.changes_since(before) if rows.mark(before) else None
                if changes is None:
                    changes, follower = history.rows.as_changes(), State()
                for change in changes:
                    if change.new is None:  # perhaps of a row that was made since, too
                        follower.pop((change.table, change.key), None)
                    else:
                        follower[change.table, change.key] = change.new
                assert list(differences(rows, history, follower)) == [], f"seed {seed}, step {step}, {history.done}"
                if is_rebuilt:
                    rows.rebuild(history.rows.as_changes(), Projection("store", step))
        database.close()
