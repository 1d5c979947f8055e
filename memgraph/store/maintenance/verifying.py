"""Verification: the journal against its signatures; vectors, rows and index against the journal."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from random import SystemRandom
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memgraph.errors import GraphError, OutdatedGraphError, VectorDamageError
from memgraph.fold import EmptyRows, Projection, Workspace, fold
from memgraph.fold.fold import digest_after
from memgraph.graph.schema import tables
from memgraph.index.arrays import Multimap, Names
from memgraph.index.columns import COLUMNS
from memgraph.index.index import RELATION_CODE, Index
from memgraph.journal.envelope import Committed, Event
from memgraph.journal.vectors import NamedRows
from memgraph.model.base import Callback, Count, checked
from memgraph.model.events.payload import MAX_WHOLE
from memgraph.model.events.store import BackupMade, StoreRestored
from memgraph.ports import Change, Key, Progress, Row
from memgraph.store.projector import Projector, index_of
from memgraph.store.query import StorePart

Codes = NDArray[np.int64]
MOST_SHOWN = 20
"""Maximum number of differences that are kept; all are counted."""
_STEP = 1_000  # rows between two progress reports


class Difference(NamedTuple):
    """One deviation, by its place: row, vector's model, row and memory, or the index's part and memory. "graph" are the rows, as in release 0.2."""

    part: str
    table: str
    key: str
    column: str
    problem: str

    def __str__(self) -> str:
        column = f", {self.column}" if self.column else ""
        part = "rows" if self.part == "graph" else self.part
        return f"{part}: {self.table} {self.key}{column}: {self.problem}"


class LastBackup(NamedTuple):
    """A backup that the journal names, with its last event; one without a path is that from which the store was restored."""

    at: str
    seq: int
    path: str | None


@dataclass(slots=True)
class Verification:
    """How much was compared, and the deviations found: the first ones, and their number by part; only a deep one compares the index."""

    is_deep: bool
    digest: str = ""
    events: int = 0
    vectors: int = 0
    nodes: int = 0
    edges: int = 0
    indexed: int = 0
    graph_seq: int | None = None
    """The last event in the rows; None if they cannot be read."""
    differing: int = 0
    by_part: Counter[str] = field(default_factory=Counter)
    first: list[Difference] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    rows: Mapping[str, Mapping[Key, Row]] = field(default_factory=dict, repr=False)
    """Of an inspection, as the following fields: the rows at the journal's end, by table and key."""
    began_at: str | None = None
    backup: LastBackup | None = None
    head: Path | None = None

    def note(self, difference: Difference) -> None:
        """Record a deviation."""
        self.differing += 1
        self.by_part[difference.part] += 1
        if len(self.first) < MOST_SHOWN:
            self.first.append(difference)

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Add a block's duration to the time of a part."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[part] = round(time.perf_counter() - start, 3)


@dataclass(eq=False)
class Verifying(StorePart):
    """Verifies a store, and computes the digest of its state."""

    _before: Callable[[], None]
    """Completes an interrupted purge."""

    def digest(self) -> str:
        """Digest of the state: 64 hexadecimal digits, equal for equal memories and links, whatever their history."""
        self._reader.settle()
        self._projector.catch_up()
        return f"{self._projector.projection.digest:064x}"

    def verify(self, progress: Progress | None = None, *, deep: bool = False) -> int:
        """Verify journal, vectors, memories and links, and with `deep` every row and the index; return the number of events."""
        found = self.verification(progress, deep=deep)
        refuse(found, self._projector)
        return found.events

    def verification(self, progress: Progress | None = None, *, deep: bool = False) -> Verification:
        """Verify as `verify` does, but return deviations instead of raising."""
        checked(Callback, progress, "progress")
        self._before()
        self._reader.settle()
        return verify(self._projector, deep=deep, progress=progress)

    def inspection(self, *, sample: int) -> Verification:
        """Verify without changing anything: see `inspect`."""
        checked(Count, sample, "sample")
        projector = self._projector
        with projector.guard:
            if projector.journal.has_changed():
                projector.journal.refresh()
            return inspect(projector, sample=sample)


def verify(projector: Projector, *, deep: bool = False, progress: Progress | None = None) -> Verification:
    """Verify journal, named vectors, rows and their digest, and with `deep` every row against a fold and the index; return the deviations."""
    found = Verification(deep)
    with projector.reading():
        found.graph_seq = projector.projection.seq
        recorded = Recorded(until=found.graph_seq, deep=deep)
        _journal(projector, recorded, found, progress)
        with found.timed("vectors"):
            _vectors(projector, recorded, found, _rows_in_use(projector), progress)
        with found.timed("graph"):
            expected = recorded.tables()
            if deep:
                digest = digest_after(0, recorded.changes())
                _state(projector, digest, found)
                _tables(projector, expected, found, progress)
            else:
                digest = projector.projection.digest
                _digests(projector, digest, recorded, found, progress)
        if deep:
            with found.timed("index"):
                _index(projector, recorded, found)
        found.digest = f"{digest:064x}"
    return found


def inspect(projector: Projector, *, sample: int, with_rows: bool = True) -> Verification:
    """Verify as `verify` does, but leave the rows as they are, compared with the fold at their own event: some, drawn at random, in every column."""
    found = Verification(is_deep=False)
    projection, drawn = None, frozenset[str]()
    with projector.database.reading() if with_rows else nullcontext():
        if with_rows:
            try:
                state = projector.stored.state()
                projection = state.projection if state else Projection(projector.journal.store_id)
                found.graph_seq = projection.seq
                if projection.seq > projector.journal.tail.seq:
                    projection = None
                else:
                    drawn = _drawn(projector, sample)
            except OutdatedGraphError:  # of another key or release: the next use builds it anew
                found.graph_seq = projection = None
            except GraphError as error:
                found.note(Difference("graph", "all", "tables", "", error.loggable))
                projection = None
        recorded = Folded(projection.seq if projection else 0, drawn)
        _journal(projector, recorded, found, None)
        with found.timed("vectors"):
            _vectors(projector, recorded, found, None, None)
        if projection is not None:
            with found.timed("graph"):
                _digests(projector, recorded.digest, recorded, found, None)
                for key in drawn:
                    row = projector.stored.get("Memory", key) or {}
                    _compare("Memory", key, row, recorded.sample.get(key, {}), found)
    found.rows, found.began_at, found.backup = recorded.tables(), recorded.began_at, recorded.backup
    found.head = projector.journal.head_path
    return found


def _rows_in_use(projector: Projector) -> frozenset[int]:
    """Return the vector rows that memories use. The index says the same, but rows that deviate are rebuilt before it is made of them."""
    model, ignored = projector.named.model, Verification(is_deep=False)
    rows = (row for _, row in _readable(projector, "Memory", ignored) if row.get("embedding_model") == model)
    return frozenset(row["vector_row"] for row in rows if "vector_row" in row)


def _drawn(projector: Projector, sample: int) -> frozenset[str]:
    keys = sorted(str(key) for key, _ in projector.stored.scan("Memory"))
    return frozenset(SystemRandom().sample(keys, min(sample, len(keys))))


def _journal(projector: Projector, recorded: Recorded, found: Verification, progress: Progress | None) -> None:
    with found.timed("journal"):
        found.events = projector.journal.verify(progress, also=recorded.take)


def refuse(found: Verification, projector: Projector) -> None:
    """Raise an error for the deviations found, if any: a `VectorDamageError` if the first one is in a vector."""
    if not found.first:
        return
    first = found.first[0]
    if first.part == "vectors":
        raise VectorDamageError(path=projector.journal.path, row=int(first.key), memory_id=first.column)
    how_many = f"{found.differing:,} things differ" if found.differing > 1 else "one thing differs"
    raise GraphError(f"{how_many} from the journal; first {first}; run `memgraph rebuild`")


def _vectors(
    projector: Projector,
    recorded: Recorded,
    found: Verification,
    used: Collection[int] | None,
    progress: Progress | None,
) -> None:
    """Compare each named row with its SHA-256, and note which deviating ones are in use, if that is known."""
    found.vectors = len(recorded.named)
    for one in recorded.named.damaged(projector.journal.vectors, progress):
        is_used = used is None or (one.row in used and one.model == projector.named.model)
        unused = "" if is_used else "; no memory uses it"
        found.note(Difference("vectors", one.model, str(one.row), one.memory_id, one.problem + unused))


def _digests(
    projector: Projector, expected: int, recorded: Recorded, found: Verification, progress: Progress | None
) -> None:
    """Compare the digest of the memories and links with the state's, and the places of their vectors."""
    digest = 0
    for key, row in _readable(projector, "Memory", found):
        digest = digest_after(digest, [Change("Memory", key, None, row)])
        found.nodes += 1
        if "vector_row" in row and not recorded.names(row):
            found.note(Difference("graph", "Memory", str(key), "vector_row", "no event says so"))
        if progress and found.nodes % _STEP == 0:
            progress(found.nodes, None)
    for table in RELATION_CODE:
        for key, row in _readable(projector, table, found):
            digest = digest_after(digest, [Change(table, key, None, row)])
            found.edges += 1
    if digest != expected:
        problem = "the digest differs from the journal's; `memgraph verify --deep` lists the rows"
        found.note(Difference("graph", "Memory", "and links", "", problem))


def _state(projector: Projector, digest: int, found: Verification) -> None:
    """Compare the rows' own state with the journal."""
    expected = projector.projection.at(projector.journal.tail).with_digest(digest).as_row()
    state = projector.stored.state()
    said = state.projection.as_row() if state else {}
    for column, value in expected.items():
        if said.get(column) != value:
            found.note(Difference("graph", "Projection", "projection", column, "differs"))


def _tables(
    projector: Projector, expected: Mapping[str, Mapping[Key, Row]], found: Verification, progress: Progress | None
) -> None:
    total = sum(map(len, expected.values()))
    for name, table in tables().items():
        wanted, seen = expected.get(name, {}), set[Key]()
        for key, row in _readable(projector, name, found):
            seen.add(key)
            _compare(name, key, row, wanted.get(key), found)
            if progress and len(seen) % _STEP == 0:
                progress(found.nodes + found.edges + len(seen), total)
        for key in wanted:
            if key not in seen:
                found.note(Difference("graph", name, _shown(key), "", "missing"))
        if table.ends:
            found.edges += len(seen)
        else:
            found.nodes += len(seen)


def _readable(projector: Projector, table: str, found: Verification) -> Iterator[tuple[Key, Row]]:
    try:
        yield from projector.stored.scan(table)
    except GraphError as error:
        found.note(Difference("graph", table, "rows", "", error.loggable))


def _compare(table: str, key: Key, row: Row, expected: Row | None, found: Verification) -> None:
    if expected is None:
        found.note(Difference("graph", table, _shown(key), "", "not in the journal"))
        return
    if row == expected:
        return
    for column in sorted(row.keys() | expected.keys()):
        if row.get(column) != expected.get(column):
            found.note(Difference("graph", table, _shown(key), column, "differs"))


def _index(projector: Projector, recorded: Recorded, found: Verification) -> None:
    built = index_of(recorded.changes())
    built.use_vectors_of(projector.journal.named.model)
    found.indexed = len(built)
    for memory_id, part, problem in differences(projector.index, built):
        found.note(Difference("index", part, memory_id, "", problem))


def _shown(key: Key) -> str:
    return key if isinstance(key, str) else " → ".join(key)


class Recorded:
    """The journal's content for vectors and, if deep, for the rows after one event."""

    def __init__(self, *, until: int, deep: bool = False) -> None:
        self.named = NamedRows()
        self._until = until
        self._workspace = Workspace(EmptyRows()) if deep else None

    def take(self, commit: Committed) -> None:
        """Take over the events of a commit."""
        for event in commit.events:
            self.named.take(event.type, event.content)
            if self._workspace is not None and event.seq <= self._until:
                fold(self._workspace, event)

    def changes(self) -> Iterator[Change]:
        """Iterate over the rows that there should be, as changes from none."""
        return self._workspace.changes() if self._workspace else iter(())

    def tables(self) -> dict[str, dict[Key, Row]]:
        """Return the same rows by table and key."""
        rows: dict[str, dict[Key, Row]] = defaultdict(dict)
        for change in self.changes():
            if change.new is not None:
                rows[change.table][change.key] = change.new
        return rows

    def names(self, row: Row) -> bool:
        """Return whether an event has recorded this memory's vector at the place in the row."""
        return self.named.has(row.get("embedding_model", ""), row["vector_row"], row["id"], row.get("vector_sha256"))


class Folded(Recorded):
    """The journal's content up to its end, its beginning and last backup, and the digest and some memories' rows at an earlier event."""

    def __init__(self, at: int, drawn: frozenset[str]) -> None:
        super().__init__(until=MAX_WHOLE, deep=True)
        self._at = at
        self._drawn = drawn
        self.digest = 0
        self.sample: dict[Key, Row] = {}
        self.began_at: str | None = None
        self.backup: LastBackup | None = None

    def take(self, commit: Committed) -> None:
        """Take over the events of a commit, and note the state if it ends at the event."""
        super().take(commit)
        for event in commit.events:
            self.began_at = self.began_at or event.timestamp
            found = _backup_of(event)
            if found is not None and (self.backup is None or found.at >= self.backup.at):
                self.backup = found
        if commit.after.seq == self._at and self._workspace is not None:
            self.digest = digest_after(0, self._workspace.changes())
            rows = {one: self._workspace.get("Memory", one) for one in self._drawn}
            self.sample = {one: row for one, row in rows.items() if row is not None}


def _backup_of(event: Event) -> LastBackup | None:
    """Return the backup that an event records: one that was made, or the one from which the store was restored."""
    said = event.payload
    if isinstance(said, BackupMade):
        return LastBackup(event.timestamp, said.seq, said.path)
    return LastBackup(said.made_at, said.seq, None) if isinstance(said, StoreRestored) else None


_SCOPED = ("project", "session", "task", "domain", "speaker", "vector_model")
_LINKED = ("previous", "following")
"""Columns that hold codes of names, and those that hold slots."""
_MULTIMAPS = {
    "postings": ("vocabulary", "slots"),
    "mentions": ("entities", "slots"),
    "agents": ("agent_names", "slots"),
    "tags": ("tag_names", "slots"),
    "triggers": ("vocabulary", "slots"),
    "named": ("slots", "entities"),
    "tagged": ("slots", "tag_names"),
    "links": ("slots", "slots"),
}
"""What the keys and the values of each multimap are: slots, or codes of the names in an attribute of the index."""


def differences(given: Index, built: Index) -> Iterator[tuple[str, str, str]]:
    """Yield (memory id, part, problem) for every difference: of a column, a multimap, or the ``sequences`` of words. Linear in the size of both."""
    ours, theirs = _live(given), _live(built)
    yield from ((memory_id, "memory", "missing") for memory_id in theirs if memory_id not in ours)
    yield from ((memory_id, "memory", "not in the journal") for memory_id in ours if memory_id not in theirs)
    common = [memory_id for memory_id in theirs if memory_id in ours]
    own = np.array([ours[memory_id] for memory_id in common], dtype=np.int64)
    other = np.array([theirs[memory_id] for memory_id in common], dtype=np.int64)
    slots = np.full(len(given) + 1, -1, dtype=np.int64)  # slots of `built` by slot of `given`; the last entry is for −1
    slots[own] = other
    live = np.full(len(built) + 1, -1, dtype=np.int64)
    live[other] = other
    codes = {"slots": (slots, live)}
    for names in ("scopes", "vocabulary", "entities", "agent_names", "tag_names"):
        codes[names] = _common_codes(getattr(given, names), getattr(built, names))
    for name in COLUMNS:
        mine, right = given.column(name)[own], built.column(name)[other]
        if name in _SCOPED + _LINKED:
            our_codes, their_codes = codes["scopes" if name in _SCOPED else "slots"]
            mine, right = our_codes[mine], their_codes[right]
        yield from ((common[place], name, "differs") for place in np.flatnonzero(mine != right).tolist())
    id_of = dict(zip(other.tolist(), common, strict=True))
    for kind, (keys, values) in _MULTIMAPS.items():
        mine = _pairs(getattr(given, kind), codes[keys][0], codes[values][0])
        right = _pairs(getattr(built, kind), codes[keys][1], codes[values][1])
        uneven = _only_in_one(mine, right)[:, 0 if keys == "slots" else 1]
        yield from ((id_of[slot], kind, "differs") for slot in uneven.tolist())
    words = codes["vocabulary"][0]
    for memory_id, mine_at, right_at in zip(common, own.tolist(), other.tolist(), strict=True):
        if not np.array_equal(words[given.sequences.get(mine_at)], built.sequences.get(right_at)):
            yield memory_id, "sequences", "differs"


def _live(index: Index) -> dict[str, int]:
    return {index.ids.names[slot]: slot for slot in np.flatnonzero(index.column("is_live")).tolist()}


def _common_codes(given: Names, built: Names) -> tuple[Codes, Codes]:
    """Return, for each code of `given` and of `built`, that of the name in `built`, or a higher one; −1 stays −1."""
    codes = [built.find(name) for name in given.names]
    mine = [code if code >= 0 else len(built) + own for own, code in enumerate(codes)]
    return np.array([*mine, -1], dtype=np.int64), np.array([*range(len(built)), -1], dtype=np.int64)


def _pairs(pairs: Multimap, keys: Codes, values: Codes) -> Codes:
    """Return (key, value, weight) rows, translated to the given codes, without those of dead slots."""
    held_keys, held_values, weights = pairs.every()
    table: Codes = np.stack([keys[held_keys], values[held_values], weights.astype(np.int64)], axis=1)
    alive: Codes = table[(table[:, 0] >= 0) & (table[:, 1] >= 0)]
    return alive


def _only_in_one(mine: Codes, right: Codes) -> Codes:
    """Return, once each, the rows whose multiplicity differs."""
    if len(mine) == len(right):
        order = [np.lexsort(table.T) for table in (mine, right)]
        if np.array_equal(mine[order[0]], right[order[1]]):
            return mine[:0]
    rows, inverse = np.unique(np.concatenate([mine, right]), axis=0, return_inverse=True)
    signs = np.concatenate([np.ones(len(mine), dtype=np.int64), -np.ones(len(right), dtype=np.int64)])
    uneven: Codes = rows[np.bincount(inverse.ravel(), weights=signs, minlength=len(rows)) != 0]
    return uneven
