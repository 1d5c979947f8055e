"""The graph: a copy of today's rows that answers Cypher.

A *base* is a compressed file that was written by COPY only, with the number of the last event in it as its name, and a code that only this
store can compute. A query runs in a child process, on a copy of the base to which the rows changed since are applied; it is kept warm, follows
with further changes, is never checkpointed, and is thrown away. (Kùzu loses rows when it checkpoints a file that was updated.) Compressed,
because most of the engine's file is nearly empty pages: at least 256 of a hash index for each table of nodes.

Several processes may do all of this at once: files come and go by renaming and removing.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import resource
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import orjson

from memgraph.disk.files import as_graph_errors, clear, make_private_folder, require_free
from memgraph.disk.folders import TemporaryFolder, remove_abandoned
from memgraph.disk.seal import Seal
from memgraph.errors import ConfigError, DiskFullError, GraphError, MemGraphError, MissingExtraError, QueryError
from memgraph.graph.guard import check_parameters, check_read_only, explaining
from memgraph.graph.implied import NAMING, Implied, updates
from memgraph.graph.process import EndedError, EngineProcess, Limits
from memgraph.graph.schema import PART_VALUES, parts, tables, write_part
from memgraph.logs import logger_of
from memgraph.model.results.rows import Rows
from memgraph.ports import Change, Key, Row

logger = logger_of(__name__)

_BASE = re.compile(r"base-(\d+)-([0-9a-f]{64})\.\w+")
_private = partial(os.open, mode=0o600)
_FOLDER, _FORMER = "query-", "write-"
"""Prefixes of the folders of copies and of a base that is being written; earlier versions wrote one in the latter."""
_CHILDREN = (EngineProcess(), EngineProcess())
"""The second is for queries that find the first one busy with a long one."""
_LOOK_S = 0.05
_POOL_BYTES, _WRITING_POOL_BYTES = 512 << 20, 2 << 30
_WRITE_TIMEOUT_S, _CLOSE_TIMEOUT_S = 120.0, 5.0
_ATTEMPTS = 3
_MOST_THREADS = 4
_DISK_BYTES_A_JSON_BYTE = 3
_SPARE_BYTES = 8 << 20
_BLOCK_BYTES = 4 << 20
_QUIET_S = 1.0
"""After many writes, until a base is written in the background: more of them may be about to follow."""
_QUICK_ROWS = 4_000
"""Of so many rows, the next query itself writes a base within a second."""


class Vendor(NamedTuple):
    """A graph engine, Kùzu or its fork with the same interface: its name, which is that of its module, and the extra that installs it."""

    name: str
    extra: str | None = None


VENDORS = {vendor.name: vendor for vendor in (Vendor("kuzu"), Vendor("ladybug", extra="ladybug"))}


class RowSource(Protocol):
    """Today's rows, as one consistent snapshot."""

    @property
    def seq(self) -> int:
        """The last event in the rows."""
        ...

    def count(self) -> int:
        """Return the number of rows."""
        ...

    def mark(self, seq: int) -> str | None:
        """Return what tells the state after an event from any other, also after a purge; None if it is not known any more."""
        ...

    def scan(self, table: str) -> Iterable[tuple[Key, Row]]:
        """Iterate over all rows of a table, by preference in the order of their keys."""
        ...

    def changes_since(self, seq: int, most: int) -> Collection[Change] | None:
        """Return what changed after an event, each row once, with `old` if only a memory's use has changed; None if unknown or more than `most`."""
        ...


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Limits of a user's query."""

    timeout_s: float = 30.0  # the engine looks between batches of rows, so a query may end somewhat later
    rows: int = 100_000
    answer_bytes: int = 256 << 20
    grace_s: float = 2.0  # after the timeout, until the process of the query is killed
    memory_bytes: int = 2 << 30  # beyond the buffer pool
    patience_s: float = 0.2  # until a query no longer waits for the one before it, and runs beside it
    changes: int = 1_000  # rows from which a fresh base is written


@dataclass(slots=True)
class _Copy:
    """A copy of a base that a child has open: whose it is, and which state it holds."""

    owner: GraphCopy
    folder: TemporaryFolder
    seq: int
    mark: str


class GraphCopy:
    """The graph of one store, in a folder that need not exist. Thread-safe. The seal authenticates its files."""

    def __init__(
        self,
        folder: Path,
        vendor: Vendor,
        seal: Seal,
        snapshot: Callable[[], AbstractContextManager[RowSource]],
        *,
        limits: QueryLimits | None = None,
    ) -> None:
        self._folder = folder.absolute()
        self._vendor = vendor
        self._seal = seal
        self._snapshot = snapshot
        self._limits = limits or QueryLimits()
        self._writing = threading.Lock()
        self._is_swept = False
        self._soon = threading.Timer(_QUIET_S, self._write_ahead)

    def query(self, query: str, params: Mapping[str, Any]) -> Rows:
        """Run a user's read-only query on the present rows, in another process; raise a `QueryError`, or a `GraphError` if the graph cannot be written."""
        check_parameters(checked := check_read_only(query), params)
        limits = self._limits
        request = {
            "query": checked,
            "params": dict(params),
            "timeout_s": limits.timeout_s,
            "most_rows": limits.rows,
            "most_bytes": limits.answer_bytes,
        }
        with explaining(), _some_child(limits.patience_s) as child:
            self._follow(child)
            folder = child.copy.folder.path
            try:
                return child.query(request, self._child_limits(limits.timeout_s + limits.grace_s))
            except EndedError as error:
                if error.is_crash:
                    raise
            except QueryError:
                raise
            except GraphError:
                if folder.exists():
                    raise
            self._follow(child)  # it had ended by itself, or a purge removed its copy
            with _explaining_removal(child.copy.folder):
                return child.query(request, self._child_limits(limits.timeout_s + limits.grace_s))

    @contextmanager
    def written_after(self) -> Iterator[None]:
        """Have a base written soon after a block of many writes, in the background or by `write_due`: who has queried will query again."""
        self._soon.cancel()
        try:
            yield
        finally:
            self._soon.cancel()
            self._soon = threading.Timer(_QUIET_S, self._write_ahead)
            self._soon.daemon = True
            self._soon.start()

    def write_due(self) -> None:
        """Write the base that the background would write soon, or wait until it is written."""
        if self._soon.is_alive():
            self._soon.cancel()
            self._write_ahead()

    def _write_ahead(self) -> None:
        try:
            if not any(self._folder.glob("base-*")):
                return
            with self._snapshot() as rows:
                is_quick = rows.count() <= _QUICK_ROWS
            if not is_quick:
                self.write_base(unless_recent=True)
        except MemGraphError as error:  # the next query will write it, or raise what is wrong
            logger.warning("the graph was not written in the background: %s", error.loggable)

    def write_base(self, reader: EngineProcess | None = None, *, unless_recent: bool = False) -> None:
        """Write a base of the rows as they are now, and remove the others. A child that will read it next keeps the file open as its copy."""
        began = time.monotonic()
        with self._writing, as_graph_errors(self._folder):
            self._sweep()
            if unless_recent:
                with self._snapshot() as rows:
                    if any(self._recent_bases(rows)):
                        return
            # the folder before the snapshot: so `forget` finds the folder of everybody who knows rows of before
            folder = TemporaryFolder(self._folder, _FOLDER)
            writer = reader or EngineProcess()
            writer.stop()  # a fresh one: the engine writes pages of which it has not filled every byte
            try:
                path = folder.path / "graph"
                with _explaining_removal(folder):
                    with self._snapshot() as rows:
                        seq, mark = rows.seq, rows.mark(rows.seq)
                        writer.ask(self._writing_of(rows, path), self._child_limits(_WRITE_TIMEOUT_S))
                    with (
                        open(packed := folder.path / "base", "xb", opener=_private) as base,
                        ThreadPoolExecutor(_threads()) as pool,
                    ):
                        starts = range(0, path.stat().st_size, _BLOCK_BYTES)
                        base.writelines(pool.map(partial(_compressed, path), starts))
                    name = f"base-{seq}-{self._code(packed, seq, mark or '')}.{self._vendor.name}"
                    packed.replace(self._folder / name)
                if reader is not None:
                    reader.copy = _Copy(self, folder, seq, mark or "")
            finally:
                if writer.copy is None:
                    writer.stop()
                    folder.remove()
            for other in self._folder.glob("base-*"):
                if other.name != name:
                    clear(other)
        logger.info("wrote the graph up to event %d in %.1f s", seq, time.monotonic() - began)

    def forget(self) -> None:
        """Remove every file of the graph and end the processes that have it open, after rows were purged. Waits for a running query."""
        for child in _CHILDREN:
            with child.turn:
                if _is_owner(child, self):
                    child.stop()
        with self._writing, as_graph_errors(self._folder):
            # a copy begins with a base and a base with a folder, so in this order none is missed
            for pattern in ("base-*", f"{_FOLDER}*", f"{_FORMER}*", "base-*"):
                for path in self._folder.glob(pattern):
                    clear(path)

    def close(self) -> None:
        """Remove the copies of this process. Idempotent."""
        self._soon.cancel()
        for child in _CHILDREN:
            with child.turn:
                if _is_owner(child, self) and child.is_alive:
                    with suppress(GraphError):
                        child.ask([orjson.dumps({"close": True})], self._child_limits(_CLOSE_TIMEOUT_S))
                    child.copy = None

    def _follow(self, child: EngineProcess) -> None:
        """Let a child have a copy open that holds the rows as they are now."""
        is_refused = False
        for attempt in range(_ATTEMPTS):
            try:
                if is_refused:
                    self.write_base(child)
                    is_refused = False
                if self._has_followed(child):
                    return
                self.write_base(child, unless_recent=True)  # another thread may have written one meanwhile
            except GraphError as error:
                if attempt == _ATTEMPTS - 1 or isinstance(error, ConfigError | DiskFullError):
                    if isinstance(error, EndedError):
                        raise GraphError("the graph cannot be opened", engine_says=str(error)) from None
                    raise
                if not isinstance(error, EndedError) or error.is_crash:
                    logger.warning("the graph is written anew: %s", error.loggable)
                    is_refused = True
        raise GraphError("the graph cannot be written as fast as it changes")

    def _has_followed(self, child: EngineProcess) -> bool:
        """Bring the child's copy up to date, or open one; return False if no base is recent enough."""
        most = self._limits.changes
        opening: list[bytes] = []
        with self._snapshot() as rows:
            seq, mark = rows.seq, rows.mark(rows.seq) or ""
            copy = child.copy if _is_owner(child, self) and child.is_alive else None
            changes = rows.changes_since(copy.seq, most) if copy and rows.mark(copy.seq) == copy.mark else None
            if changes is None:
                child.copy = copy = None
                for path, base_seq, base_mark, code, since in self._recent_bases(rows):
                    if folder := self._copied(path, base_seq, base_mark, code):
                        copy, changes = _Copy(self, folder, base_seq, base_mark), since
                        opening = [self._opening(folder.path / "graph", _POOL_BYTES)]
                        break
        if copy is None:
            return False
        statements = [[query, params] for query, params in updates(changes or (), copy.seq)]
        if statements or opening:
            updating = orjson.dumps({"run": [["BEGIN TRANSACTION", {}], *statements, ["COMMIT", {}]]})
            with _explaining_removal(copy.folder):
                child.ask([*opening, updating], self._child_limits(_WRITE_TIMEOUT_S))
        child.copy = copy
        copy.seq, copy.mark = seq, mark
        return True

    def _recent_bases(self, rows: RowSource) -> Iterator[tuple[Path, int, str, str, Collection[Change]]]:
        """Yield the bases since which few enough rows have changed, newest first: path, last event, its mark, code, and those rows."""
        self._sweep()
        found = ((path, _BASE.fullmatch(path.name)) for path in self._folder.glob(f"base-*.{self._vendor.name}"))
        for seq, path, code in sorted(
            ((int(match[1]), path, match[2]) for path, match in found if match), reverse=True
        ):
            mark = rows.mark(seq) if seq <= rows.seq else None
            changes = None if mark is None else rows.changes_since(seq, self._limits.changes)
            if mark is not None and changes is not None:
                yield path, seq, mark, code, changes

    def _copied(self, path: Path, seq: int, mark: str, code: str) -> TemporaryFolder | None:
        """Unpack a base into a temporary folder; return None if it is not one that this store wrote, or is gone."""
        with as_graph_errors(self._folder):
            folder = TemporaryFolder(self._folder, _FOLDER)
            try:
                shutil.copyfile(path, packed := folder.path / "base", follow_symlinks=False)
                if self._code(packed, seq, mark) == code:
                    with gzip.open(packed) as base, open(folder.path / "graph", "xb", opener=_private) as file:
                        shutil.copyfileobj(base, file)
                    packed.unlink()
                    return folder
                logger.warning("%s is not as this store wrote it; it is written anew", path)
                clear(path)
            except FileNotFoundError:
                pass
            except BaseException:
                folder.remove()
                raise
            folder.remove()
            return None

    def _code(self, path: Path, seq: int, mark: str) -> str:
        content = self._seal.code_of_file(path)
        return self._seal.code(orjson.dumps([self._vendor.name, _schema_digest(), seq, mark, content]))

    def _writing_of(self, rows: RowSource, path: Path) -> Iterator[bytes]:
        """Yield the requests that write a base."""
        yield self._opening(path, _WRITING_POOL_BYTES)
        created = [[table.statement, {}] for table in tables().values()]
        # with several threads a COPY takes more time in all, and this process needs the other core to make what is copied
        yield orjson.dumps({"run": [["CALL threads=1", {}], ["BEGIN TRANSACTION", {}], *created]})
        implied = Implied()
        for name, table in tables().items():
            found = implied.of(name, rows.scan(name))
            for number, some in enumerate(parts(table, found, PART_VALUES)):
                columns = write_part(table, some, part := path.with_name(f"{name}-{number}.json"))
                require_free(path, part.stat().st_size * _DISK_BYTES_A_JSON_BYTE + _SPARE_BYTES)
                types = {column: table.columns.get(column, "STRING") for column in columns}
                target = name if table.ends else f"{name}({', '.join(columns)})"
                yield orjson.dumps({"load": {"table": target, "types": types, "path": str(part)}})
                if name in NAMING:  # while the child copies
                    for key, row in some:
                        implied.gather(str(key), row, source_table=name)
        # what is changed after this checkpoint is never saved
        yield orjson.dumps({"run": [["COMMIT", {}], ["CHECKPOINT", {}], [f"CALL threads={_threads()}", {}]]})

    def _opening(self, path: Path, pool_bytes: int) -> bytes:
        most = _most_database_bytes()
        options = {"buffer_pool_size": pool_bytes, "max_db_size": most, "max_num_threads": _threads()}
        return orjson.dumps({"engine": self._vendor.name, "path": str(path), "options": options})

    def _child_limits(self, silence_s: float) -> Limits:
        return Limits(silence_s, _WRITING_POOL_BYTES + self._limits.memory_bytes)

    def _sweep(self) -> None:
        """Make the folder, and remove what killed processes left in it."""
        make_private_folder(self._folder)
        if not self._is_swept:
            if self._vendor.extra and find_spec(self._vendor.name) is None:
                what = f'Graphs of the engine "{self._vendor.name}"'
                raise MissingExtraError(what, package=self._vendor.name, extra=self._vendor.extra)
            if any(char in str(self._folder) for char in "*?["):
                raise ConfigError(
                    f"{self._folder}: Kùzu interprets *, ? and [ in a path as patterns; move the store to another directory"
                )
            for prefix in (_FOLDER, _FORMER):
                remove_abandoned(self._folder, prefix)
            self._is_swept = True


@contextmanager
def _explaining_removal(folder: TemporaryFolder) -> Iterator[None]:
    """Say of what fails in a folder that is gone that a purge removed it."""
    try:
        yield
    except (GraphError, OSError) as error:
        if folder.path.exists():
            raise
        raise GraphError("the graph was removed while it was written, as a purge does; try again") from error


@contextmanager
def _some_child(patience_s: float) -> Iterator[EngineProcess]:
    """Take a child that is free: the first, or after a time any."""
    first, _ = _CHILDREN
    child = first if first.turn.acquire(timeout=patience_s) else None
    while child is None:
        child = next((one for one in _CHILDREN if one.turn.acquire(timeout=_LOOK_S)), None)
    try:
        yield child
    finally:
        child.turn.release()


def _is_owner(child: EngineProcess, owner: GraphCopy) -> bool:
    return isinstance(child.copy, _Copy) and child.copy.owner is owner


@cache
def _schema_digest() -> str:
    return hashlib.sha256("\n".join(table.statement for table in tables().values()).encode()).hexdigest()


def _compressed(path: Path, start: int) -> bytes:
    """Return a block of a file as one member of a gzip file."""
    with path.open("rb") as file:
        file.seek(start)
        return gzip.compress(file.read(_BLOCK_BYTES), compresslevel=1)


def _threads() -> int:
    return min(_MOST_THREADS, os.cpu_count() or 1)


def _most_database_bytes() -> int:
    """Return how large a database may become, which the engine reserves: 64 GiB, or a quarter of the address space (``ulimit -v``)."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return 1 << 36 if limit == resource.RLIM_INFINITY else min(1 << 36, 1 << max(24, limit.bit_length() - 3))
