"""Read operations: rows from the database, order and filters from the index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memgraph.disk.files import size_on_disk
from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.index.index import Index, scope_name, superseded
from memgraph.index.vectors import VectorSearch
from memgraph.journal.envelope import Event
from memgraph.journal.journal import Journal
from memgraph.logs import logger_of
from memgraph.model.base import checked
from memgraph.model.ids import stored_form
from memgraph.model.link import EXPLICIT_RELATIONS, Link
from memgraph.model.memory import MEMORY_TYPES, AgentMemory, MemoryType, StoredMemory, Vector
from memgraph.model.relevance import ForgettingCurveConfig
from memgraph.model.results.curation import MemoryStats
from memgraph.model.timestamps import epoch_days
from memgraph.ports import Key, Row
from memgraph.store.commit.access import Mark
from memgraph.store.commit.records import check_model, has_vector
from memgraph.store.commit.writer import Writer
from memgraph.store.deletions import (
    Deleted,
    DeletedSources,
    Disclosures,
    Lineage,
    deleted,
    deleted_of,
)
from memgraph.store.projector import Projector

logger = logger_of(__name__)

Mask = NDArray[np.bool_]
ORDERS = ("relevance", "created", "accessed")
STATES = ("suppressed", "archived", "invalidated", "superseded")


@dataclass(eq=False)
class StorePart:
    """A part of an open store, with what all parts work on."""

    _projector: Projector
    _writer: Writer
    _reader: Reader
    _now: Callable[[], str]

    @property
    def _journal(self) -> Journal:
        return self._projector.journal


@dataclass(eq=False)
class Reader:
    """Reads the current memories."""

    _projector: Projector
    _writer: Writer
    _now: Callable[[], str]
    _curve: ForgettingCurveConfig
    tells_damage: bool
    """Damaged vectors are logged once, unless it is a view's."""
    today: Callable[[], Disclosures | None] = lambda: None
    """For a view of the past: what may be shown today. None if this is not a view."""
    on_read: Callable[[Sequence[Row]], None] = lambda _rows: None
    _search: VectorSearch | None = None
    _touched: tuple[Index, Mark] | None = None

    def __post_init__(self) -> None:
        self._has_told_damage = not self.tells_damage
        self._pending = self._writer.pending
        self._deleted_sources = DeletedSources(self._projector.journal)

    @property
    def index(self) -> Index:
        """The index at the journal's end, including uncommitted accesses."""
        with self.frozen():
            index = self._projector.index
            known, mark = self._touched or (None, None)
            since = mark if known is index else None
            self._touched = index, self._pending.touch(index, self._projector.rows.memories, since)
        return index

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Freeze the store for a block of reads, as of the last completed commit, without waiting for a writer. Nests."""
        with self._projector.reading():
            yield

    def lineage(self) -> Lineage:
        """Return what was derived from memories that are deleted by now."""
        today = self.today()
        return self._deleted_sources.lineage() if today is None else today.lineage

    def rejected(self) -> frozenset[str]:
        """Return the ids of memories that somebody deleted one by one and did not restore."""
        return self._deleted_sources.rejected()

    def settle(self) -> None:
        """Commit pending uses of memories, if the system allows it: reading works even on a full disk."""
        self._pending.settle()

    def get(self, memory_id: str) -> StoredMemory | None:
        """Return a memory unless it is deleted."""
        return next(iter(self.read([stored_form(checked(str, memory_id, "id"))])), None)

    def known(self, memory_id: str) -> StoredMemory:
        """Return a memory; raise `NotFoundError` if it does not exist or is deleted."""
        memory = self.get(memory_id)
        if memory is None:
            raise NotFoundError("memory", memory_id)
        return memory

    def read(self, memory_ids: Sequence[str]) -> list[StoredMemory]:
        """Return these memories in this order, without deleted ones."""
        with self._projector.reading():
            now = self._now()
            return [self._memory(row, now) for row in self.rows(memory_ids)]

    def record(self, table: str, key: Key) -> Row | None:
        """Return one row of the graph, such as that of a Build or a Source."""
        with self._projector.reading():
            return self._projector.rows.get(table, key)

    def builds(self, project_id: str | None) -> list[Row]:
        """Return the rows of a project's builds, in the order of their ends."""
        with self._projector.reading():
            rows = [row for row in self._projector.rows.every("Build") if row.get("project_id") == project_id]
        return sorted(rows, key=lambda row: (row.get("completed_at", ""), row["id"]))

    def every_record(self, table: str) -> list[Row]:
        """Return all rows of a small table of the graph, in the order of their keys."""
        with self._projector.reading():
            return [row for _, row in sorted(self._projector.rows.scan(table))]

    def sources(self, table: str, target: str, *, limit: int) -> list[str]:
        """Return at most `limit` nodes that have an edge of this table to a node."""
        with self._projector.reading():
            return self._projector.rows.sources(table, target, limit)

    def held(self, table: str, source: str, moment: int | str | None) -> list[Row]:
        """Return the nodes to which a node has edges of this table and that held at an event or a time; None: now."""
        with self._projector.reading():
            return self._projector.rows.held(table, source, moment)

    def rows(self, memory_ids: Sequence[str]) -> list[Row]:
        """Return these memories' rows in this order, without deleted ones: for bulk reading. Do not modify them."""
        with self._projector.reading():
            rows = self._projector.memories(memory_ids)
            self.on_read(rows)
            return rows

    def events_after(self, seq: int) -> Iterator[Event]:
        """Iterate over the journal's events after this one."""
        yield from self._projector.journal.events_after(seq)

    def deleted_of(self, source: str) -> list[Deleted]:
        """Return the deleted memories of this source, in id order, with the reasons given. Reads the whole journal."""
        return deleted_of(self._projector.journal, source, lambda memory_id: self.index.slot(memory_id) >= 0)

    def deleted(self, memory_ids: Sequence[str]) -> list[Deleted]:
        """Return the last state of some deleted memories, with the reasons given. Reads the whole journal."""
        return deleted(self._projector.journal, memory_ids)

    def history(self, memory_id: str) -> list[Event]:
        """Return the events that refer to a memory. Reads the whole journal."""
        return self.histories([memory_id])[memory_id]

    def histories(self, memory_ids: Sequence[str]) -> dict[str, list[Event]]:
        """Return the events that refer to some memories, by id. Reads the whole journal once, if any ids are given."""
        return self._projector.journal.histories(memory_ids)

    def every(self) -> Iterator[StoredMemory]:
        """Iterate over all memories that are not deleted, in any state, in the order of recording."""
        with self.frozen():
            index = self.index
            live = np.flatnonzero(index.column("is_live"))
            order = live[np.argsort(index.column("seq")[live], kind="stable")]
            memories = self.read([index.ids.names[slot] for slot in order])
        yield from memories

    def every_link(self) -> list[Link]:
        """Return all links except NEXT, in a fixed order."""
        with self._projector.reading():
            rows = self._projector.rows
            found = [(table, *entry) for table in EXPLICIT_RELATIONS for entry in rows.scan(table)]
        return [_link(table, key, row) for table, key, row in sorted(found, key=lambda entry: entry[:2])]

    def links(self, id: str) -> list[Link]:
        """Return the links of a memory, in both directions, NEXT included."""
        with self._projector.reading():
            memory_id = stored_form(id)
            if self._projector.rows.get("Memory", memory_id) is None:
                raise NotFoundError("memory", memory_id)
            found = sorted(self._projector.rows.links_of(memory_id), key=lambda link: link[:2])
        return [_link(table, key, row) for table, key, row in found]

    def listed(
        self,
        *,
        type: MemoryType | None = None,
        project_id: str | None = None,
        include_suppressed: bool = False,
        state: str | None = None,
    ) -> Mask:
        """Return which slots a listing shows: those in a state, or those neither archived nor invalidated nor, by default, suppressed."""
        if type is not None and type not in MEMORY_TYPES:
            raise InvalidInputError(f"must be one of {', '.join(MEMORY_TYPES)}", field="type", value=type)
        checked(str | None, project_id, "project_id")
        index = self.index
        if state is None:
            mask = self._current(index) & (index.column("invalid_days") > self.now_days())
            if not include_suppressed:
                mask &= ~index.column("is_suppressed")
        else:
            mask = self._in_state(index, state)
        if type is not None:
            mask &= index.column("type") == MEMORY_TYPES.index(type)
        if project_id is not None:
            code = index.scopes.find(scope_name("project", project_id))
            mask &= (index.column("project") == code) & (code >= 0)
        return mask

    def superseded(self) -> Mask:
        """Return which slots are superseded by a listed memory, of any type and project."""
        return superseded(self.index, self.listed())

    def _in_state(self, index: Index, state: str) -> Mask:
        if state not in STATES:
            raise InvalidInputError(f"must be one of {', '.join(STATES)}", field="state", value=state)
        live: Mask = index.memories()
        if state == "superseded":
            return live & self.superseded()
        if state == "invalidated":
            return live & (index.column("invalid_days") <= self.now_days())
        out: Mask = live & index.column(f"is_{state}")
        return out

    def ids_from(self, beginning: str) -> list[str]:
        """Return the ids with this prefix of memories that are not deleted; one pass over all."""
        with self.frozen():
            index = self.index
            return [one for one in index.ids.names if one.startswith(beginning) and index.slot(one) >= 0]

    def ranked_ids(self, mask: Mask, *, by: str = "relevance", limit: int | None = None) -> list[str]:
        """Return the ids of masked slots by relevance, creation or last access, highest first, ties in id order."""
        if by not in ORDERS:
            raise InvalidInputError(f"must be one of {', '.join(ORDERS)}", field="by", value=by)
        if limit is not None and (not isinstance(limit, int) or limit < 0):
            raise InvalidInputError("must be an integer of at least 0", field="limit", value=limit)
        order = self.relevance() if by == "relevance" else self.index.column(f"{by}_days")
        return self.index.live_ids(mask, np.round(order, 9), limit)

    def relevance(
        self, slots: NDArray[Any] | slice = slice(None), *, without_floor: float | None = None
    ) -> NDArray[np.float64]:
        """Return the current relevance of these slots; by default of all. A floor of this height does not count."""
        index, floor = self.index, self.index.column("floor")[slots]
        days = np.maximum(0.0, self.now_days() - index.column("anchored_days")[slots])
        rates = np.array([self._curve.rate(kind) for kind in MEMORY_TYPES])[index.column("type")[slots]]
        floor = np.where(floor == without_floor, 0.0, floor) if without_floor is not None else floor
        faded = np.maximum(floor, index.column("anchor")[slots] * np.exp(-rates * days))
        return np.where(index.column("is_pinned")[slots], 1.0, faded)

    def cosines(self, query: Vector, slots: NDArray[Any] | slice, *, only_near: bool = False) -> NDArray[np.float64]:
        """Return the cosine of a query with each slot's vector, 0 where it has none; with `only_near`, estimates for those in the middle.

        Raises `ModelMismatchError` if the store has another model than it was opened with: the query is not comparable.
        """
        index = self.index
        check_model(self._projector.named, self._writer.embedder)
        rows = index.column("vector_row")[slots]
        search, with_vector = self._vector_search(), rows >= 0
        if search is None:
            return np.zeros(len(rows))
        cosines = search.near_cosines if only_near else search.cosines
        if with_vector.all():
            return cosines(query, rows, self._row_count(search))
        result = np.zeros(len(rows))
        result[with_vector] = cosines(query, rows[with_vector], self._row_count(search))
        return result

    def has_vector(self, slots: NDArray[Any] | slice = slice(None)) -> Mask:
        """Return which of these slots, by default of all, have a comparable vector. A damaged one counts as none."""
        rows = self.index.column("vector_row")[slots]
        search, found = self._vector_search(), rows >= 0
        if search is not None:
            fit = search.has_vector(rows[found], self._row_count(search))
            if not fit.all():
                found[found] = fit
                if not self._has_told_damage:
                    self.damaged_vectors()
        return found

    def vectors(self, slots: NDArray[Any]) -> NDArray[np.float32]:
        """Return the stored vectors of slots that have one: shape (n, d), float32, a copy."""
        rows = self.index.column("vector_row")[slots]
        if (search := self._vector_search()) is None or not len(rows):
            return np.zeros((len(rows), 1), dtype=np.float32)
        return search.vectors(rows, self._row_count(search))

    def damaged_vectors(self) -> int:
        """Count the memories whose vector is missing, all zeros or not finite in its file."""
        if (search := self._vector_search()) is None:
            return 0
        search.look_again()
        with self.frozen():
            index = self.index
            rows = index.column("vector_row")[index.column("is_live")]
            count = int(np.count_nonzero(~search.has_vector(rows[rows >= 0], self._row_count(search))))
        if count and not self._has_told_damage:
            self._has_told_damage = True
            logger.warning("%s", *damage_notice(count))
        return count

    def refresh_vectors(self) -> None:
        """Drop cached facts about the vector file, which this process has repaired."""
        if (search := self._search) is not None:
            search.look_again()

    def stats(self, among: Mask) -> MemoryStats:
        """Count the masked memories that are neither archived nor deleted. Call it in a frozen block."""
        index = self.index
        mask, types = self._current(index) & among, index.column("type")
        total = int(mask.sum())
        return MemoryStats(
            total=total,
            by_type={kind: int((mask & (types == code)).sum()) for code, kind in enumerate(MEMORY_TYPES)},
            avg_relevance=float(self.relevance()[mask].mean()) if total else 0.0,
            pinned_count=int((mask & index.column("is_pinned")).sum()),
            suppressed_count=int((mask & index.column("is_suppressed")).sum()),
            db_size_bytes=size_on_disk(self._projector.journal.home),
            records=int(
                (index.column("is_live") & index.column("is_record") & ~index.column("is_archived") & among).sum()
            ),
        )

    def _current(self, index: Index) -> Mask:
        mask: Mask = index.memories() & ~index.column("is_archived")
        return mask

    def _memory(self, row: Row, now: str) -> StoredMemory:
        row = self._pending.over(row)
        filled: dict[str, Any] = {"embedding": self._vector(row)}
        if filled["embedding"] is None and "vector_row" in row:  # of another model, so it awaits a new one
            row = {name: value for name, value in row.items() if name not in ("embedding_model", "embedded_at")}
        if row["type"] != "episodic":
            filled["supporting_memory_ids"] = self._supporting_ids(row["id"])
        return AgentMemory.from_row(row, now=now, curve=self._curve, **filled)

    def _supporting_ids(self, memory_id: str) -> list[str]:
        index = self._projector.loaded_index
        if index is None:
            links = self._projector.rows.links_of(memory_id)
            return sorted(key[0] for table, key, _ in links if table == "SUPPORTS" and key[1] == memory_id)
        return index.supporting_ids(memory_id)

    def _vector(self, row: Row) -> Vector | None:
        if (search := self._vector_search()) is None or not has_vector(row, search.file.model):
            return None
        found = search.vector(row["vector_row"], self._row_count(search))
        if found is None and not self._has_told_damage:
            self.damaged_vectors()
        return found

    def _row_count(self, search: VectorSearch) -> int:
        """Return how many rows of a model's file events refer to."""
        return self._projector.named.rows.get(search.file.model, 0)

    def _vector_search(self) -> VectorSearch | None:
        named = self._projector.named
        if named.model is None:
            return None
        search = self._search
        if search is None or search.file.model != named.model:
            search = self._search = VectorSearch(self._projector.journal.vectors(named.model, named.dimension))
        return search

    def now_days(self) -> float:
        """Return the clock's time in days, as in the index."""
        return epoch_days(self._now())


def damage_notice(count: int) -> list[str]:
    """Return the notice for a number of damaged vectors."""
    if not count:
        return []
    many = f"{count:,} vectors are damaged or missing, their memories are found by text alone"
    one = "a vector is damaged or missing, its memory is found by text alone"
    return [f"{one if count == 1 else many}: run `memgraph embed --repair`"]


def _link(table: str, key: Key, row: Row) -> Link:
    return Link.parse({"source_id": key[0], "relation": table, "target_id": key[1], **row})
