"""Compares an engine cell by cell with the rows that it must hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from memgraph.graph.columns import visible
from memgraph.graph.schema import INTERNAL, tables
from memgraph.ports import Change, GraphEngine, Key, Row
from tests.fuzz.engine.histories import Rows


def differences(engine: GraphEngine, expected: Rows) -> Iterator[str]:
    """Yield what the engine holds otherwise: table, key, column and both values."""
    with engine.open():
        for name, table in tables().items():
            if name in INTERNAL:
                continue
            rows = expected.tables.get(name, {})
            columns = {key: visible(table, row) for key, row in rows.items()}
            yield from _compared(f"{name}, columns", engine.scan_columns(name), columns)
            if name == "Memory":
                yield from _compared(f"{name}, rows", engine.scan(name), rows)


def differences_around(engine: GraphEngine, expected: Rows, memory_ids: Iterable[str]) -> Iterator[str]:
    """Yield what the engine holds otherwise of the edges at memories, as they are found from either end."""
    for memory_id in memory_ids:
        found = sorted((table, key) for table, key, _ in engine.edges_at(memory_id))
        right = sorted((table, key) for table, key, _ in expected.edges_at(memory_id))
        if found != right:
            yield f"the edges at {memory_id} are {found!r:.200} instead of {right!r:.200}"


def touched_differences(engine: GraphEngine, expected: Rows, changes: Iterable[Change]) -> Iterator[str]:
    """Yield what the engine holds otherwise of the rows that changes have touched, as they are read by their keys."""
    with engine.open():
        for table, key in {(change.table, change.key) for change in changes}:
            row, right = engine.get(table, key), expected.get(table, key)
            if row != (right if right is None or table == "Memory" else visible(tables()[table], right)):
                yield f"{table} {key}: {row!r:.200} instead of {right!r:.200}"


def _compared(table: str, found: Any, expected: dict[Key, Row]) -> Iterator[str]:
    seen: set[Key] = set()
    for key, row in found:
        if key in seen:
            yield f"{table} {key}: twice"
        seen.add(key)
        if key not in expected:
            yield f"{table} {key}: not expected"
        elif row != expected[key]:
            for column in sorted(row.keys() | expected[key].keys()):
                mine, right = row.get(column), expected[key].get(column)
                if mine != right:
                    yield f"{table} {key}, {column}: {mine!r:.80} instead of {right!r:.80}"
    for key in expected.keys() - seen:
        yield f"{table} {key}: missing"
