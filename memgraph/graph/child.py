"""The child process with the engine: writes a fresh file by COPY, or keeps a copy of one up to date and runs users' queries on it.

A query may crash the process, take all memory, or never end; the parent (`memgraph.graph.process`) then kills it. The child ends
with its parent, after a time without requests, and after a query that failed while it ran.
"""

from __future__ import annotations

import importlib.util  # noqa: F401 - the engines use it without importing it
import os
import queue
import re
import resource
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson

from memgraph.graph.wire import decoded, encoded, frame, plain, received

IDLE_S = 60.0
_BATCH_BYTES = 1 << 20
_MOST_KEPT_BYTES = 512 << 20
"""A child that has grown beyond this ends after its query; the next one starts small."""
_KIND = re.compile(r"^\w+ exception: ")
"""What the engine calls its errors: nothing to its users."""
_TABLES = re.compile(r"\._ID,\[[^\]]*\]")
"""What the engine adds to the name of the column ``label(r)``: all tables that there are."""
_ENGINE_ERRORS = (RuntimeError, IndexError, ValueError, TypeError, OverflowError, OSError, AttributeError, MemoryError)
"""Errors that an engine's binding raises."""


class _Refused(Exception):  # noqa: N818 - a regular answer, not an error of this process
    """The query is refused."""


class _Failed(_Refused):
    """The query failed while it ran, after which the engine is not trusted with another."""


class _Graph:
    """The open file."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.engine = import_module(request["engine"])
        self.path = Path(request["path"])
        database = self.engine.Database(str(self.path), auto_checkpoint=False, **request["options"])
        self.connection = self.engine.Connection(database)
        self.connection.execute("CALL force_checkpoint_on_close=false")

    def run(self, statements: list[list[Any]]) -> None:
        """Run memgraph's own statements."""
        self.connection.set_query_timeout(0)
        for query, params in statements:
            self.connection.execute(query, params)

    def load(self, table: str, types: dict[str, str], path: str) -> None:
        """Copy rows from a JSON file. Ladybug's wheel reads no JSON, so it gets them as an Arrow table."""
        if self.engine.__name__ == "kuzu":
            quoted = path.replace("\\", "\\\\").replace("'", "\\'")
            self.connection.execute(f"COPY {table} FROM '{quoted}'")
        else:
            self.connection.execute(
                f"COPY {table} FROM $rows", {"rows": _arrow(types, orjson.loads(Path(path).read_bytes()))}
            )
        Path(path).unlink()

    def close(self) -> None:
        """Close the file."""
        database = self.connection.database
        self.connection.close()
        database.close()

    def query(self, replies: int, request: dict[str, Any]) -> None:
        """Run a query and send its result."""
        with _no_file_grows():
            self.connection.execute("BEGIN TRANSACTION READ ONLY")
            self.connection.set_query_timeout(int(request["timeout_s"] * 1_000))
            try:
                result = self._result(request["query"], request["params"])
                if (count := result.get_num_tuples()) > (most := request["most_rows"]):
                    raise _Refused(f"the query has {count:,} rows, {most:,} are the most: add LIMIT {most}")
                types = result.get_column_data_types()
                names = (_TABLES.sub("", name) for name in result.get_column_names())
                _send(replies, {"columns": [list(pair) for pair in zip(names, types, strict=True)]})
                _send_rows(replies, result, types, request["most_bytes"])
            except _ENGINE_ERRORS as error:
                if str(error).startswith("Interrupted"):
                    raise _Failed(f"the query took longer than {request['timeout_s']:g} s and was stopped") from None
                raise _Failed(f"the query failed: {_shown(error)}") from None
            finally:
                with suppress(*_ENGINE_ERRORS):  # an error has ended the transaction
                    self.connection.execute("ROLLBACK")

    def _result(self, query: str, params: dict[str, Any]) -> Any:
        # Preparation refuses several statements before the first has run; `execute` would run them all.
        prepared = self.engine.PreparedStatement(self.connection, query, params)
        if not prepared.is_success():
            raise _Refused(f"the query failed: {_KIND.sub('', prepared.get_error_message(), count=1)}")
        result = self.connection.execute(prepared, params)
        if isinstance(result, list):
            raise _Refused("the query holds several statements; only one is run")
        return result


def main() -> None:
    """Serve requests until the parent ends."""
    os.umask(0o077)  # the engine's files are private
    requests, replies = os.dup(0), os.dup(1)
    with Path(os.devnull).open("r+b") as nothing:  # the engine's output must not mix with the frames
        for descriptor in (0, 1):
            os.dup2(nothing.fileno(), descriptor)
    with suppress(OSError):  # if the system runs out of memory, it kills this process first
        Path("/proc/self/oom_score_adj").write_text("1000")
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(requests, inbox), daemon=True).start()
    _send(replies, {"ready": True})
    graph: _Graph | None = None
    engine: str | None = None
    while True:
        try:
            request = inbox.get(timeout=IDLE_S)
        except queue.Empty:
            if graph is not None:
                shutil.rmtree(graph.path.parent, ignore_errors=True)
            os._exit(0)
        if (engine := engine or request.get("engine")) != request.get("engine", engine):
            os._exit(0)  # two engines in one process crash it; the parent starts another child
        ends = False
        try:
            graph = _answered(graph, replies, request)
            last: dict[str, Any] = {"end": True}
        except _Refused as refusal:
            last, ends = {"refused": str(refusal)}, isinstance(refusal, _Failed)
        except _ENGINE_ERRORS as error:
            last = {"failed": _shown(error)}
        _send(replies, last)
        if ends or ("query" in request and _has_grown()):
            os._exit(0)


def _answered(graph: _Graph | None, replies: int, request: dict[str, Any]) -> _Graph | None:
    """Do what a request says, and return the graph that is then open."""
    if "path" in request:
        if graph is not None:
            graph.close()
        return _Graph(request)
    if graph is None:
        os._exit(0)  # the process that had it open has just ended by itself; the parent opens another copy
    if "load" in request:
        graph.load(**request["load"])
    elif "run" in request:
        graph.run(request["run"])
    elif "query" in request:
        graph.query(replies, request)
    else:
        graph.close()
        return None
    return graph


def _receive(requests: int, inbox: queue.SimpleQueue[Any]) -> None:
    """Receive requests; end this process when the parent has ended, even during a query."""
    try:
        while (message := received(requests)) is not None:
            inbox.put(decoded(message))
    finally:
        os._exit(0)


def _send_rows(replies: int, result: Any, types: list[str], most_bytes: int) -> None:
    large = [place for place, type_ in enumerate(types) if type_ == "INT128"]  # such as every sum: sent as decimals
    rows: list[bytes] = []
    waiting = total = 0
    while result.has_next():
        row = plain(result.get_next())
        for place in large:
            row[place] = None if row[place] is None else int(row[place])
        rows.append(encoded(row))
        waiting += len(rows[-1])
        total += len(rows[-1])
        if total > most_bytes:
            raise _Refused(f"the answer is larger than {most_bytes >> 20} MB: ask for fewer rows, or for less of each")
        if waiting > _BATCH_BYTES:
            _write(replies, b'{"rows":[' + b",".join(rows) + b"]}")
            rows, waiting = [], 0
    _write(replies, b'{"rows":[' + b",".join(rows) + b"]}")
    result.close()


def _arrow(types: dict[str, str], rows: list[dict[str, Any]]) -> Any:
    pa = import_module("pyarrow")
    scalars = {
        "STRING": pa.string(),
        "BOOLEAN": pa.bool_(),
        "INT64": pa.int64(),
        "DOUBLE": pa.float64(),
        "TIMESTAMP": pa.string(),
    }
    arrays = {}
    for name, kind in types.items():
        own = scalars[kind.removesuffix("[]")]
        array = pa.array([row.get(name) for row in rows], type=pa.list_(own) if kind.endswith("[]") else own)
        # naive: the engine keeps UTC
        is_time = kind == "TIMESTAMP"
        arrays[name] = array.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us")) if is_time else array
    return pa.table(arrays)


@contextmanager
def _no_file_grows() -> Iterator[None]:
    """Forbid this process to write to files, as a last defence against a query that tries to."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def _shown(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "it ran out of memory"
    return _KIND.sub("", str(error).encode("utf-8", "backslashreplace").decode(), count=1)


def _has_grown() -> bool:
    if _resident_bytes() > _MOST_KEPT_BYTES:
        import ctypes

        with suppress(AttributeError):  # glibc keeps what the engine has freed after it wrote a file
            ctypes.CDLL(None).malloc_trim(0)
    return _resident_bytes() > _MOST_KEPT_BYTES


def _resident_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:  # not Linux: the peak instead
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _send(replies: int, message: dict[str, Any]) -> None:
    _write(replies, encoded(message))


def _write(replies: int, message: bytes) -> None:
    view = memoryview(frame(message))
    while view:
        view = view[os.write(replies, view) :]


if __name__ == "__main__":
    main()
