"""Today's rows in the store's database: what the fold makes of the events. Every row is authenticated when it is read."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar
from uuid import uuid4

import orjson

from memgraph.disk.files import make_private_folder, write_private
from memgraph.disk.seal import Seal
from memgraph.errors import GraphError, OutdatedGraphError, StorageError
from memgraph.fold import Projection
from memgraph.graph.schema import tables
from memgraph.index.index import is_use
from memgraph.journal.sql import ConflictError, DamagedDatabaseError, Database, Transaction
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.ports import Change, Key, Row

_COUNTS_AFTER = ("count_nodes_after", "count_edges_after", "count_gone_after")
_NOTHING = [0] * 7
_MANY_ROWS = 20_000
_MAX_ID = (1 << 63) - 1
_LINKS = frozenset({*EXPLICIT_RELATIONS, "NEXT"})
T = TypeVar("T")
_Checked = Callable[..., Row]
"""Makes a row of what the database has, or raises a `GraphError`."""
BULK_FROM = 1_000
"""Number of memories or events from which a write counts as bulk."""
_TURN_S = 0.0005
_lock = threading.Lock()
_before: list[float] = []
"""The interpreter's original switch interval, one entry for each block that has shortened it."""


class _Kinds(NamedTuple):
    """The tables and their numbers in the database: their places in the DDL. Rows of another DDL have another schema version."""

    number: dict[str, int]
    name: dict[int, str]
    ends: dict[str, tuple[int, int]]


@cache
def _kinds() -> _Kinds:
    number = {name: place for place, name in enumerate(tables())}
    ends = {name: (number[table.ends[0]], number[table.ends[1]]) for name, table in tables().items() if table.ends}
    return _Kinds(number, {place: name for name, place in number.items()}, ends)


class State(NamedTuple):
    """What the rows are the state of."""

    projection: Projection
    """The event that they have reached, and their digest."""
    made: str
    """Names the rebuild that they come from: what followed other rows cannot follow these."""
    since: int
    """The event of that rebuild. What was removed before it is not known."""
    tally: list[int]
    """The numbers of nodes and edges, and sums of their kinds and ids: a row that is gone, added or moved shows."""


class Rows:
    """The rows of one store: a `RowSource` for the fold, thread-safe, whose reads give what was written, or after `on_damage` a `GraphError`.

    With `is_whole`, missing rows are damage, too: whoever closes a large store notes in a file that none was missing, so that opening need not look.
    """

    def __init__(
        self, database: Database, seal: Seal, *, timeout_s: float, is_whole: bool = True, note: Path | None = None
    ) -> None:
        self._database = database
        self._seal = seal
        self._timeout_s = timeout_s
        self._is_whole = is_whole
        self._note = note
        if note is not None:
            database.on_closed.append(self._leave_note)
        self._sealed: tuple[tuple[bytes, str, str], State] | None = None
        self.on_damage: Callable[[GraphError], None] = _refuse

    def get(self, table: str, key: Key) -> Row | None:
        """Return one row by its key (an edge: by its ends)."""
        kinds = _kinds()
        tenant, kind = self._database.tenant, kinds.number[table]

        def asked(tx: Transaction, checked: _Checked) -> Row | None:
            if isinstance(key, str):
                found = tx.one("node", tenant, kind, key)
            else:
                one, other = kinds.ends[table]
                found = tx.one("edge", tenant, one, key[0], other, key[1], kind)
            return checked(table, key, *found) if found else None

        return self._read(asked)

    def has(self, table: str, key: Key) -> bool:
        """Return whether a row exists."""
        if not isinstance(key, str):
            return self.get(table, key) is not None
        tenant, kind = self._database.tenant, _kinds().number[table]
        return self._read(lambda tx, _checked: tx.one("node_id", tenant, kind, key) is not None)

    def memories(self, memory_ids: Iterable[str]) -> list[Row]:
        """Return these memories' rows in this order, without deleted ones."""
        tenant, kind = self._database.tenant, _kinds().number["Memory"]

        def asked(tx: Transaction, checked: _Checked) -> list[Row]:
            found = ((key, tx.one("node", tenant, kind, key)) for key in memory_ids)
            return [checked("Memory", key, *row) for key, row in found if row]

        memory_ids = list(memory_ids)
        return self._read(asked) if memory_ids else []

    def scan(self, table: str) -> list[tuple[Key, Row]]:
        """Return all rows of a table."""
        tenant, kind = self._database.tenant, _kinds().number[table]

        def asked(tx: Transaction, checked: _Checked) -> list[tuple[Key, Row]]:
            if table in _kinds().ends:
                return [
                    ((one, other), checked(table, (one, other), *row))
                    for one, other, *row in tx.rows("edges", tenant, kind)
                ]
            return [(key, checked(table, key, *row)) for key, *row in tx.rows("nodes", tenant, kind)]

        return self._read(asked)

    def every(self, table: str) -> list[Row]:
        """Return all rows of a table of nodes, without their keys."""
        return [row for _, row in self.scan(table)]

    def edges_at(self, memory_id: str) -> list[tuple[str, Key, Row]]:
        """Return every edge at a memory, in both directions."""
        return self._edges_at(memory_id, _kinds().ends.keys())

    def links_of(self, memory_id: str) -> list[tuple[str, Key, Row]]:
        """Return every link between this memory and others, including NEXT, in both directions."""
        return self._edges_at(memory_id, _LINKS)

    def _edges_at(self, memory_id: str, among: Iterable[str]) -> list[tuple[str, Key, Row]]:
        kinds, wanted = _kinds(), frozenset(among)
        at = (self._database.tenant, kinds.number["Memory"], memory_id)

        def asked(tx: Transaction, checked: _Checked) -> list[tuple[str, Key, Row]]:
            found: dict[tuple[str, Key], Row] = {}
            for kind, one, other, *row in chain(tx.rows("edges_from", *at), tx.rows("edges_to", *at)):
                if (table := kinds.name.get(kind, "")) in wanted:
                    found[table, (one, other)] = checked(table, (one, other), *row)
            return [(table, key, row) for (table, key), row in found.items()]

        return self._read(asked)

    def sources(self, table: str, target: str, limit: int) -> list[str]:
        """Return at most `limit` nodes with an edge of this table to the target."""
        kinds = _kinds()
        at = (kinds.number[table], self._database.tenant, kinds.ends[table][1], target, limit)

        def asked(tx: Transaction, checked: _Checked) -> list[str]:
            found = []
            for one, other, *row in tx.rows("sources", *at):
                checked(table, (one, other), *row)
                found.append(one)
            return found

        return self._read(asked)

    def held(self, table: str, source: str, moment: int | str | None) -> list[Row]:
        """Return the nodes to which a node has edges of this table and that held at an event, at a canonical time, or (None) now."""
        kinds = _kinds()
        one, other = kinds.ends[table]
        at = (kinds.number[table], self._database.tenant, one, source)
        rows = self._read(
            lambda tx, checked: [checked(kinds.name[other], key, *row) for key, *row in tx.rows("targets", *at)]
        )
        since, until = ("created_at", "closed_at") if isinstance(moment, str) else ("seq", "closed_seq")
        if moment is None:
            return [row for row in rows if until not in row]
        return [row for row in rows if row[since] <= moment and not (until in row and row[until] <= moment)]

    @property
    def seq(self) -> int:
        """The last event in the rows."""
        state = self.state()
        return state.projection.seq if state else 0

    def count(self) -> int:
        """Return the number of nodes and edges."""
        state = self.state()
        return int(state.tally[0] + state.tally[3]) if state else 0

    def mark(self, seq: int) -> str | None:
        """Return what names the rows that were at an event, and have become these; None if what was removed since is not known."""
        state = self.state()
        return state.made if state and state.since <= seq <= state.projection.seq else None

    def changes_since(self, seq: int, most: int | None = None) -> list[Change] | None:
        """Return what changed after an event: removed rows, nodes, edges; None if more than `most`. `old` is the same row if only its use changed."""
        kinds, at = _kinds(), (self._database.tenant, seq)

        def table_of(kind: int) -> str:
            if kind not in kinds.name:
                raise GraphError("a row is of no table")
            return kinds.name[kind]

        def changed(checked: _Checked, key: Key, kind: int, row: Sequence[Any], since: int) -> Change:
            new = checked(table_of(kind), key, *row)
            if not isinstance(since, int):
                raise GraphError(f"a row of {kinds.name[kind]} is not what was written")
            return Change(kinds.name[kind], key, new if since <= seq else None, new)

        def removed(kind: int, key: str, target: str) -> Change:
            table = table_of(kind)
            if not (isinstance(key, str) and isinstance(target, str)) or bool(target) != (table in kinds.ends):
                raise GraphError(f"a removed row of {table} is not what was written")
            return Change(table, (key, target) if target else key, {}, None)

        def asked(tx: Transaction, checked: _Checked) -> list[Change] | None:
            if most is not None and sum((tx.one(name, *at) or (0,))[0] for name in _COUNTS_AFTER) > most:
                return None
            gone = [removed(*row) for row in tx.rows("gone_after", *at)]
            nodes = [changed(checked, key, kind, row, since) for kind, key, *row, since in tx.rows("nodes_after", *at)]
            edges = [
                changed(checked, (one, other), kind, row, since)
                for kind, one, other, *row, since in tx.rows("edges_after", *at)
            ]
            return [*gone, *nodes, *edges]

        return self._read(asked)

    def pinned(self) -> AbstractContextManager[None]:
        """Check the rows by the key of now in a block of this thread."""
        return self._seal.pinned()

    def state(self) -> State | None:
        """Return the state that the rows are in; None if none were ever written. A `GraphError` says that it is not what was written."""
        name, known = self._seal.name, self._sealed
        with _damage_as_graph_errors(), self._database.reading() as tx:
            found = tx.one("state", self._database.tenant)
            # once for each object: it costs a look at every row's place
            is_due = found and known is None and self._is_whole and not self._is_as_left()
            there = self._tallied(tx) if is_due else None
        if found is None:
            return None
        body, code = found
        if known is not None and known[0] == (body, code, name):
            return known[1]
        try:
            row = orjson.loads(body)
            if row["key"] != name:  # no damage: the key was rotated
                raise OutdatedGraphError("the rows were sealed with another key than the one that signs now")
            if not self._seal.fits(code, bytes(body)):
                raise GraphError("the rows' state has no valid code")
            state = State(Projection.from_row(row["projection"]), row["made"], row["since"], row["tally"])
        except (KeyError, ValueError, TypeError) as error:
            raise GraphError(f"the rows' state cannot be read ({error!r})") from None
        if there is not None and there != state.tally:
            raise GraphError("rows are missing, or there are others than were written")
        self._sealed = (body, code, name), state
        return state

    def _is_as_left(self) -> bool:
        """Whether nothing has written to the database since a process closed it that had found every row."""
        try:
            return self._note is not None and self._database.stamp() == self._seal.unsealed(self._note.read_bytes())
        except (OSError, ValueError):
            return False

    def _leave_note(self) -> None:
        if self._note is None or self._sealed is None or sum(self._sealed[1].tally[:4:3]) < _MANY_ROWS:
            return
        with suppress(OSError, StorageError):
            stamp = self._database.stamp()
            if stamp is not None and not self._is_as_left():
                make_private_folder(self._note.parent)
                write_private(self._note, self._seal.sealed(stamp))

    def _tallied(self, tx: Transaction) -> list[Any]:
        found = (tx.one(name, self._database.tenant) or () for name in ("tally_nodes", "tally_edges"))
        return list(chain.from_iterable(found))

    def apply(self, changes: Iterable[Change], projection: Projection) -> str:
        """Write changed rows and the state after them in one transaction, and return what names the rebuild that they come from."""
        with _damage_as_graph_errors(), self._database.writing(self._timeout_s) as tx:
            state = self.state()
            made, since, tally = state[1:] if state else (uuid4().hex, 0, _NOTHING)
            tally = self._write(tx, list(changes), projection.seq, tally)
            self._put_state(tx, State(projection, made, since, tally))
        return made

    def rebuild(self, changes: Iterable[Change], projection: Projection) -> str:
        """Replace all rows and the state, in one transaction, or as a part of this thread's, and return what names them."""
        made = uuid4().hex
        with self._database.writing(self._timeout_s) as tx:
            for name in ("clear_edges", "clear_nodes", "clear_gone"):
                tx.run(name, self._database.tenant)
            tally = self._write(tx, list(changes), projection.seq, _NOTHING)
            self._put_state(tx, State(projection, made, projection.seq, tally))
        return made

    def _put_state(self, tx: Transaction, state: State) -> None:
        stated = {**state._asdict(), "projection": state.projection.as_row()}
        body = orjson.dumps({**stated, "key": self._seal.name})
        code = self._seal.code(body)
        tx.run("put_state", self._database.tenant, body, code)
        if self._sealed is not None:  # else the next look counts the rows
            self._sealed = (body, code, self._seal.name), state

    def _write(self, tx: Transaction, changes: Sequence[Change], seq: int, tally: list[int]) -> list[int]:
        """Write changed rows, and return the tally with them."""
        kinds, tenant, short_code = _kinds(), self._database.tenant, self._seal.short_coder()
        ids: dict[tuple[int, str], int] = {}

        def id_of(kind: int, key: str) -> int:
            found = ids.get((kind, key))
            if found is None:
                row = tx.one("node_id", tenant, kind, key)
                if row is None:
                    raise GraphError(f"there is no node {key}")
                found = ids[kind, key] = row[0]
            return found

        def ends(change: Change) -> tuple[int, int, int]:
            one, other = kinds.ends[change.table]
            return id_of(one, change.key[0]), kinds.number[change.table], id_of(other, change.key[1])

        def place_of(change: Change) -> tuple[int, int, Key]:
            return tenant, kinds.number[change.table], change.key

        def sealed(change: Change) -> tuple[int, bytes]:
            body = orjson.dumps(change.new, option=orjson.OPT_SORT_KEYS)
            return short_code(_coded(change.table, change.key, seq, body)), body

        nodes, edges = (
            _sorted([one for one in changes if isinstance(one.key, str)]),
            _sorted([one for one in changes if not isinstance(one.key, str)]),
        )
        _all(tx, "delete_edge", [(tenant, *ends(one)) for one in edges.gone])
        for one in nodes.gone:
            place = id_of(kinds.number[one.table], str(one.key))
            if tx.one("edge_at", tenant, place, tenant, place):
                raise GraphError(f"a removed node {one.key} still has edges")
        _all(tx, "delete_node", [place_of(one) for one in nodes.gone])
        removed = [
            (tenant, kinds.number[one.table], *((one.key, "") if isinstance(one.key, str) else one.key), seq)
            for one in chain(edges.gone, nodes.gone)
        ]
        tx.many("put_gone", removed)
        _all(tx, "update_node_use", [(seq, *sealed(one), *place_of(one)) for one in nodes.used])
        _all(tx, "update_node", [(seq, seq, *sealed(one), *place_of(one)) for one in nodes.changed])
        last = (tx.one("last_node") or (0,))[0] if nodes.new else 0
        if last + len(nodes.new) > _MAX_ID:
            raise GraphError("a node has a number that none was given")
        for number, one in enumerate(nodes.new, start=last + 1):
            ids[kinds.number[one.table], str(one.key)] = number
        added = (
            (number, tenant, kinds.number[one.table], one.key, seq, seq, *sealed(one))
            for number, one in enumerate(nodes.new, start=last + 1)
        )
        _all(tx, "insert_node", added, len(nodes.new))
        _all(tx, "update_edge", [(seq, *sealed(one), tenant, *ends(one)) for one in edges.changed])
        new = sorted((ends(one), one) for one in edges.new) if edges.new else []
        _all(tx, "insert_edge", ((tenant, *at, seq, seq, *sealed(one)) for at, one in new), len(new))
        for sign, at_nodes, at_edges in ((1, nodes.new, edges.new), (-1, nodes.gone, edges.gone)):
            of_nodes = [(kinds.number[one.table], str(one.key)) for one in at_nodes]
            parts = [(1, kind, id_of(kind, key), 0, 0, 0, 0) for kind, key in of_nodes]
            parts += [(0, 0, 0, 1, kind, source, target) for source, kind, target in map(ends, at_edges)]
            sums = map(sum, zip(*parts, strict=True)) if parts else _NOTHING
            tally = [total + sign * part for total, part in zip(tally, sums, strict=True)]
        return tally

    def _read(self, asked: Callable[[Transaction, _Checked], T]) -> T:
        """Return an answer; if the rows are damaged, ask again after `on_damage`."""
        try:
            with _damage_as_graph_errors(), self._database.reading() as tx:
                return asked(tx, partial(_row, self._seal.short_coder()))
        except GraphError as error:
            if type(error) is not GraphError:
                raise
            self.on_damage(error)
        with _damage_as_graph_errors(), self._database.reading() as tx:
            return asked(tx, partial(_row, self._seal.short_coder()))


def _row(short_code: Callable[[bytes], int], table: str, key: Key, seq: int, body: bytes, code: int) -> Row:
    try:
        is_genuine = isinstance(body, bytes) and code == short_code(_coded(table, key, seq, body))
    except TypeError:  # a key that is no text
        is_genuine = False
    if not is_genuine:
        raise GraphError(f"a row of {table} is not what was written")
    row: Row = orjson.loads(body)
    return row


def _coded(table: str, key: Key, seq: int, body: bytes) -> bytes:
    """Return the bytes that a row's code is of."""
    place = key if isinstance(key, str) else "\x00".join(key)
    return f"{table}\x00{place}\x00{seq}\x00".encode("utf-8", "surrogatepass") + body


class _Sorted(NamedTuple):
    new: list[Change]
    changed: list[Change]
    used: list[Change]
    gone: list[Change]


def _sorted(changes: Iterable[Change]) -> _Sorted:
    found = _Sorted([], [], [], [])
    for change in changes:
        if change.old is None:
            if change.new is not None:
                found.new.append(change)
        elif change.new is None:
            found.gone.append(change)
        else:
            (found.used if is_use(change) else found.changed).append(change)
    return found


def _all(tx: Transaction, name: str, values: Iterable[Sequence[Any]], count: int | None = None) -> None:
    """Run a statement for each of many rows, every one of which it must change."""
    if count is None:
        values = list(values)
        count = len(values)
    try:
        if count and tx.many(name, values) != count:
            raise GraphError("changed rows are not there")
    except ConflictError:
        raise GraphError("new rows are there already") from None


@contextmanager
def _damage_as_graph_errors() -> Iterator[None]:
    try:
        yield
    except DamagedDatabaseError as error:
        raise GraphError(error.loggable) from None


def _refuse(error: GraphError) -> NoReturn:
    raise error


@contextmanager
def in_bulk() -> Iterator[None]:
    """Create many rows in a block: quickly, and without blocking other threads."""
    with no_collections(), short_switch_interval():
        yield


@contextmanager
def no_collections() -> Iterator[None]:
    """Disable the cyclic garbage collector of the process for a block: it would scan all the rows, which have no cycles, again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Shorten the process's thread switch interval for a block that keeps the interpreter busy: a recall beside it takes a tenth of the time."""
    with _lock:
        _before.append(_before[0] if _before else sys.getswitchinterval())
        sys.setswitchinterval(min(_TURN_S, _before[0]))
    try:
        yield
    finally:
        with _lock:
            interval = _before.pop()
            if not _before:
                sys.setswitchinterval(interval)
