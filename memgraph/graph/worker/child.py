"""The child process with the engine: runs one user's query at a time, or probes whether a damaged file opens.

Either may crash the process, take all memory, or never end; the parent (`memgraph.graph.worker.process`) then kills it. The
child ends with its parent, and after a time without requests.
"""

from __future__ import annotations

import importlib.util  # noqa: F401 - the engines use it without importing it
import os
import queue
import resource
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
_ENGINE_ERRORS = (RuntimeError, IndexError, ValueError, TypeError, OverflowError, OSError, AttributeError, MemoryError)


class _Refused(Exception):  # noqa: N818 - a regular answer, not an error of this process
    """The query is refused."""


def main() -> None:
    """Serve requests until the parent ends."""
    requests, replies = os.dup(0), os.dup(1)
    with Path(os.devnull).open("r+b") as nothing:  # the engine's output must not mix with the frames
        for descriptor in (0, 1):
            os.dup2(nothing.fileno(), descriptor)
    with suppress(OSError):  # if the system runs out of memory, it kills this process first
        Path("/proc/self/oom_score_adj").write_text("1000")
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(requests, inbox), daemon=True).start()
    _send(replies, {"ready": True})
    loaded: str | None = None
    while True:
        try:
            request = inbox.get(timeout=IDLE_S)
        except queue.Empty:
            os._exit(0)
        if (loaded := loaded or request["engine"]) != request["engine"]:
            os._exit(0)  # two engines in one process crash it; the parent starts another child
        try:
            if "query" in request:
                _query(replies, request)
            else:
                _probe(request)
            last: dict[str, Any] = {"end": True}
        except _Refused as refusal:
            last = {"refused": str(refusal)}
        except _ENGINE_ERRORS as error:
            last = {"failed": _shown(error)}
        _send(replies, last)
        if _resident_bytes() > _MOST_KEPT_BYTES:
            os._exit(0)


def _receive(requests: int, inbox: queue.SimpleQueue[Any]) -> None:
    """Receive requests; end this process when the parent has ended, even during a query."""
    try:
        while (message := received(requests)) is not None:
            inbox.put(decoded(message))
    finally:
        os._exit(0)


def _query(replies: int, request: dict[str, Any]) -> None:
    """Run a query and send its result."""
    with _opened(request) as (engine, connection):
        connection.execute("BEGIN TRANSACTION READ ONLY")
        connection.set_query_timeout(int(request["timeout_s"] * 1_000))
        try:
            result = _result(engine, connection, request["query"], request["params"])
            if (count := result.get_num_tuples()) > request["most_rows"]:
                raise _Refused(
                    f"the query has {count:,} rows, {request['most_rows']:,} are the most: add LIMIT {request['most_rows']}"
                )
            types = result.get_column_data_types()
            _send(replies, {"columns": [list(pair) for pair in zip(result.get_column_names(), types, strict=True)]})
            _send_rows(replies, result, types, request["most_bytes"])
        except _ENGINE_ERRORS as error:
            if str(error).startswith("Interrupted"):
                raise _Refused(f"the query took longer than {request['timeout_s']:g} s and was stopped") from None
            raise _Refused(f"the query failed: {_shown(error)}") from None


def _result(engine: Any, connection: Any, query: str, params: dict[str, Any]) -> Any:
    # Preparation refuses several statements before the first has run; `execute` would run them all.
    prepared = engine.PreparedStatement(connection, query, params)
    if not prepared.is_success():
        raise _Refused(f"the query failed: {prepared.get_error_message()}")
    result = connection.execute(prepared, params)
    if isinstance(result, list):
        raise _Refused("the query holds several statements; only one is run")
    return result


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


def _probe(request: dict[str, Any]) -> None:
    """Open a file with its log, and read its state record."""
    with _opened(request) as (_, connection):
        state: Any = connection.execute("MATCH (p:Projection) RETURN p.state")
        while state.has_next():
            orjson.loads(state.get_next()[0] or "null")


@contextmanager
def _opened(request: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Open a file for reading, and yield the engine's module and the connection."""
    engine = import_module(request["engine"])
    with _no_file_grows():
        database = engine.Database(
            request["path"],
            buffer_pool_size=request["buffer_pool_bytes"],
            max_db_size=request["most_database_bytes"],
            read_only=True,
        )
        connection = engine.Connection(database)
        try:
            yield engine, connection
        finally:
            connection.close()
            database.close()


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
    return str(error).encode("utf-8", "backslashreplace").decode()


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
