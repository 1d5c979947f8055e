"""Parquet: tables for polars, pandas, DuckDB, Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from io import BytesIO
from typing import Any

import orjson

from memgraph.errors import MissingExtraError
from memgraph.viz.export.graph import EDGE_KINDS, Graph, Kind, Row, node_kinds
from memgraph.viz.series.series import Series


def graph_parquet(graph: Graph) -> tuple[bytes, bytes]:
    """Return a graph's memories and its links, as a Parquet file each.

    All columns are there, whatever is set: times are timestamps in UTC, lists of texts are lists, other records text in JSON.

    Raises
    ------
    MissingExtraError
        pyarrow is not installed.
    """
    return _table(graph.nodes, node_kinds()), _table(graph.edges, EDGE_KINDS)


def series_parquet(series: Sequence[Series]) -> bytes:
    """Return series as one Parquet file in long form: series, unit, bucket, at (a date), group, value, count.

    What each series is, is in the file's metadata, under ``definition:<series>``.

    Raises
    ------
    MissingExtraError
        pyarrow is not installed.
    """
    pa = _arrow()
    rows = [
        (one.name, one.unit, one.bucket, date.fromisoformat(point.at), point.group, point.value, point.count)
        for one in series
        for point in one.points
    ]
    names = ("series", "unit", "bucket", "at", "group", "value", "count")
    types = (pa.string(), pa.string(), pa.string(), pa.date32(), pa.string(), pa.float64(), pa.int64())
    schema = pa.schema(
        list(zip(names, types, strict=True)), {f"definition:{one.name}": one.definition for one in series}
    )
    columns = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(types)]
    return _bytes(pa.Table.from_arrays(columns, schema=schema))


def _table(rows: Sequence[Row], kinds: Mapping[str, Kind]) -> bytes:
    pa = _arrow()
    types = {
        "text": pa.string(),
        "records": pa.string(),
        "texts": pa.list_(pa.string()),
        "time": pa.timestamp("ms", tz="UTC"),
        "number": pa.float64(),
        "whole": pa.int64(),
        "flag": pa.bool_(),
    }
    columns = {
        name: pa.array([_cell(row.get(name), kind) for row in rows], types[kind]) for name, kind in kinds.items()
    }
    return _bytes(pa.table(columns))


def _cell(value: Any, kind: Kind) -> Any:
    if value is None:
        return None
    if kind == "time":
        return datetime.fromisoformat(value)
    return orjson.dumps(value).decode() if kind == "records" else value


def _bytes(table: Any) -> bytes:
    stream = BytesIO()
    _arrow().parquet.write_table(table, stream)
    return stream.getvalue()


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("Parquet files", package="pyarrow", extra="parquet") from None
    return pyarrow
