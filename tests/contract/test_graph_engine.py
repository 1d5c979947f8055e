"""The contract of graph engines."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from memgraph.graph.rows.writing import BulkLimits

from memgraph.errors import ClosedError, GraphError, QueryError
from memgraph.fold import EmptyRows, Workspace, fold
from memgraph.graph.schema import INTERNAL, tables
from memgraph.journal.envelope import Event
from memgraph.model.events.links import MemoryLinked
from memgraph.model.events.memories import MemoryAdded
from memgraph.model.ids import natural_id, source_id
from memgraph.model.memory import ActionStep, EncounteredError, Entity, ErrorFix, MemoryRecord
from memgraph.ports import Change, GraphEngine, Key, Row
from memgraph.testing import InMemoryEngine
from tests.engines import Engine, vendor_name

NOW = "2026-02-01T09:00:00.000Z"
STATE = {"seq": 1, "store_id": "s"}
ODD_STRINGS = [
    "", " ", " both ends ", "null", "NULL", "None", "true", "007", "1e3", "-0", "0x10", "nan", "Infinity", "2026-1-1",
    "2026-01-01T00:00:00", "[a, b]", "{x: 1}", '{"a": 1}', "a,b", "'single'", '"double"', "`back`", "\\", "\\n", "a\nb", "a\r\nb", "\t", "\x01\x7f",
    "// no comment", "/* none */", "$param", "; DROP", "Ünïcödé", "e\u0301", "数据库", "\U0001f600", "\u2028", "\u200b", "\ufeff", "x" * 8_000,
]  # fmt: skip
EXTREME_FLOATS = [
    0.0,
    -0.0,
    5e-324,
    2.2250738585072014e-308,
    1.7976931348623157e308,
    -1.7976931348623157e308,
    0.1,
    1 / 3,
    1e22,
    1e-7,
]
EXTREME_INTS = [0, 1, 2**31 - 1]
EXTREME_TIMES = [
    "0001-01-01T00:00:00.000Z",
    "1969-12-31T23:59:59.999Z",
    "1970-01-01T00:00:00.000Z",
    NOW,
    "9999-12-31T23:59:59.999Z",
]


LISTS: list[dict[str, Any]] = [
    {"entities": [Entity(name="login.py", kind="file", about=True)]},
    {"action_log": [ActionStep(t=0.5, action="a", target="t")]},
    {"errors_encountered": [EncounteredError(type="T", message="m")]},
    {"common_errors": [ErrorFix(error="e", fix="f")]},
    {"tags": ["a"], "steps": ["s", ""]},
]
EARLY = BulkLimits(new_rows=40, table_rows=30, part_rows=100)
"""Low limits, so that a few rows are already written by COPY."""


@pytest.fixture(params=["embedded", "memory"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., GraphEngine]]:
    """Make engines of one kind, each with its own rows; the options are those of embedded engines."""
    made: list[GraphEngine] = []

    def one(**options: Any) -> GraphEngine:
        folder = tmp_path / f"engine{len(made)}" / "graph"
        folder.parent.mkdir()
        made.append(Engine(folder, **options) if request.param == "embedded" else InMemoryEngine())
        return made[-1]

    yield one
    for engine in made:
        engine.close()


@pytest.fixture
def engine(make: Callable[..., GraphEngine]) -> GraphEngine:
    return make()


def memory(number: int, **fields: Any) -> MemoryRecord:
    required = {"id": source_id("tests", number), "type": "episodic", "content": f"Memory {number}"}
    times = dict.fromkeys(("created_at", "updated_at", "occurred_at", "relevance_at"), NOW)
    return MemoryRecord(**{**required, **times, **fields})


def changes_of(records: Sequence[MemoryRecord], links: Sequence[tuple[str, int, int]] = ()) -> list[Change]:
    """Return the changes of adding these memories and links between them."""
    workspace = Workspace(EmptyRows())
    payloads: list[Any] = [MemoryAdded(memory=record) for record in records]
    for relation, source, target in links:
        ends = {"source_id": records[source].id, "target_id": records[target].id}
        payloads.append(MemoryLinked(relation=relation, created_at=NOW, score=0.5, **ends))
    for seq, payload in enumerate(payloads, start=1):
        fold(
            workspace,
            Event(seq, "c", True, payload.TYPE, payload, payload.dump(), "global", None, "agent", NOW, NOW, "s"),
        )
    return list(workspace.changes())


def new(table: str, key: Key, row: Row) -> Change:
    return Change(table, key, None, row)


def node(number: int) -> Change:
    return changes_of([memory(number)])[0]


def everything(engine: GraphEngine) -> dict[str, list[tuple[Key, Row]]]:
    """Return all rows of all tables, by both kinds of scan if there are two."""
    found = {}
    with engine.open():
        for name in tables():
            if name in INTERNAL:
                continue
            found[name] = sorted(engine.scan(name), key=lambda entry: entry[0])
            columns = [(key, engine.columns(name, row)) for key, row in found[name]]
            assert sorted(engine.scan_columns(name), key=lambda entry: entry[0]) == columns, name
            for key, row in found[name][:5]:
                assert engine.get(name, key) == row
        assert sorted((key, orjson.loads(record)) for key, record in engine.records()) == found["Memory"]
        assert engine.lost() == []
    return found


def rows_of(changes: Sequence[Change]) -> dict[str, list[tuple[Key, Row]]]:
    """Return what `everything` should find after these changes to an empty engine."""
    found: dict[str, list[tuple[Key, Row]]] = {name: [] for name in tables() if name not in INTERNAL}
    for change in changes:
        if change.new is not None:
            found[change.table].append((change.key, change.new))
    return {name: sorted(rows, key=lambda entry: entry[0]) for name, rows in found.items()}


def stocked(count: int) -> list[Change]:
    """Return the changes of memories with context: about eight new rows each."""
    records = [
        memory(
            number,
            type=("episodic", "semantic", "procedural")[number % 3],
            content=ODD_STRINGS[number % len(ODD_STRINGS)][:700] + f" {number}",
            project_id=f"P{number % 3}",
            build_id=f"b{number % 7}",
            session_id=f"s{number % 5}",
            previous_id=source_id("tests", number - 1) if number else None,
            agents_involved=["MARS", f"A{number % 4}"],
            tags=[f"tag{number % 11}", ODD_STRINGS[number % len(ODD_STRINGS)].strip()[:300] or "t"],
            title=ODD_STRINGS[-1 - number % len(ODD_STRINGS)],
            confidence=EXTREME_FLOATS[number % 2] if number % 3 else 1 / 3,
            entities=[Entity(name=f"file{number % 13}.py", kind="file", about=number % 2 == 0)],
            archived_at=EXTREME_TIMES[number % len(EXTREME_TIMES)] if number % 4 == 0 else None,
        )
        for number in range(count)
    ]
    links = [("SUPPORTS", number, number - 2) for number in range(2, count, 2)]
    links += [("CONTRADICTS", number, number - 1) for number in range(1, count, 5)]
    return changes_of(records, links)


class TestEmpty:
    def test_it_has_neither_rows_nor_state(self, engine: GraphEngine) -> None:
        assert engine.state() is None
        assert engine.get("Memory", "x") is None
        assert engine.get("NEXT", ("x", "y")) is None
        assert engine.edges_at("x") == engine.links_of("x") == []
        assert all(rows == [] for rows in everything(engine).values())


class TestRows:
    @pytest.mark.parametrize("is_bulk", [False, pytest.param(True, marks=pytest.mark.long)])
    def test_every_column_round_trips(self, engine: GraphEngine, is_bulk: bool) -> None:
        fields = {
            "outcome": "negative", "outcome_word": "failure", "confidence": 1 / 3, "access_count": 7,
            "is_pinned": True, "is_suppressed": True, "privacy_tier": "private", "trust_class": "web",
            "floor": 0.1, "relevance_anchor": 4.5, "duration_seconds": 1e-7, "usage_count": 0, "success_rate": 0.5, "override_count": 3,
            "agents_involved": ["A"], "tags": ["t"], "source_event_ids": ["e"], "evidence_build_ids": ["b"],
            "alternatives_considered": ["x", ""], "constraints": ["c"], "files_involved": ["f"], "artifacts_produced": ["a"],
            "conditions": ["c"], "steps": ["one", "two"], "prerequisites": ["p"], "exit_criteria": ["e"],
            "entities": [Entity(name="E", kind="error"), Entity(name="f.py", kind="file", about=True)],
            "action_log": [ActionStep(t=0.5, action="a"), ActionStep(t=1.0, action="b", target="t", result="r", error="e")],
            "errors_encountered": [EncounteredError(type="T", message="m"), EncounteredError(type="", message="", resolution="r")],
            "common_errors": [ErrorFix(error="e", fix="f")],
            "previous_id": source_id("tests", 900), "is_solved": False, "attempt": 0, "attempts": 3, "calls": 2, "failed_calls": 1,
            "tools_called": ["look"], "worked_how": "again",
        }  # fmt: skip
        for name, field in MemoryRecord.model_fields.items():
            if name not in fields and not field.is_required():
                fields[name] = NOW if name.endswith("_at") or name == "event_date" else f"a {name}"
        changes = changes_of([memory(number, **fields) for number in range(60 if is_bulk else 1)])
        row = next(change.new for change in changes if change.table == "Memory")
        assert row is not None
        assert row.keys() >= MemoryRecord.model_fields.keys()
        engine.apply(changes, STATE)
        assert everything(engine) == rows_of(changes)

    @pytest.mark.parametrize("is_bulk", [False, True])
    def test_odd_strings(self, engine: GraphEngine, is_bulk: bool) -> None:
        records = [
            memory(
                number,
                title=text,
                location=text,
                constraints=[text],
                files_involved=[text, "", text],
                tags=[text[:300]] if text.strip() else [],
                action_log=[ActionStep(t=1.0, action=text, target=text)],
                entities=[Entity(name=text[:300], kind="concept")] if text.strip() else [],
                source_event_ids=[f"filler{filler}" for filler in range(10)],
            )
            for number, text in enumerate(ODD_STRINGS * (4 if is_bulk else 1))
        ]
        changes = changes_of(records)
        assert (len(changes) >= 400) == is_bulk
        for start in range(0, len(changes), len(changes) if is_bulk else 40):
            engine.apply(changes[start : start + (len(changes) if is_bulk else 40)], STATE)
        assert everything(engine) == rows_of(changes)

    @pytest.mark.parametrize("is_bulk", [False, pytest.param(True, marks=pytest.mark.long)])
    def test_extreme_numbers_and_times(self, engine: GraphEngine, is_bulk: bool) -> None:
        values: list[dict[str, Any]] = [{"duration_seconds": value} for value in EXTREME_FLOATS]
        values += [{"access_count": count} for count in EXTREME_INTS if count < 2**31]
        values += [{"occurred_at": time, "event_date": time} for time in EXTREME_TIMES]
        records = [memory(number, **fields) for number, fields in enumerate(values * (25 if is_bulk else 1))]
        changes = changes_of(records)
        assert (len(changes) >= 400) == is_bulk
        counts = EXTREME_INTS * (20 if is_bulk else 1)
        recalls = [new("Recall", f"r{n}", {"id": f"r{n}", "total_tokens": count}) for n, count in enumerate(counts)]
        engine.apply([*changes, *recalls], STATE)
        assert dict(engine.scan("Recall")) == {change.key: change.new for change in recalls}
        found = dict(everything(engine)["Memory"])
        for change in changes:
            assert found[change.key] == change.new  # type: ignore[index]
            assert repr(found[change.key].get("duration_seconds")) == repr((change.new or {}).get("duration_seconds"))  # type: ignore[index]

    def test_the_caller_may_change_rows_read(self, engine: GraphEngine) -> None:
        change = changes_of([memory(1, tags=["a"])])[0]
        engine.apply([change], STATE)
        row = engine.get("Memory", change.key)
        assert row is not None
        row["tags"].append("b")
        row["content"] = "changed"
        assert engine.get("Memory", change.key) == change.new

    def test_other_nodes(self, engine: GraphEngine) -> None:
        build = {
            "id": "b", "name": "build", "project_id": "P", "outcome": "failure", "started_at": NOW, "task_count": 3,
            "agents": ["A", "B"], "is_complete": False, "consumed_keys": ["k"],
        }  # fmt: skip
        changes = [new("Build", "b", build), new("Recall", "r", {"id": "r", "total_tokens": 0, "retrieved_at": NOW})]
        engine.apply(changes, STATE)
        assert engine.get("Build", "b") == build
        assert everything(engine) == rows_of(changes)


class TestUpdates:
    def test_columns_are_set_and_cleared(self, engine: GraphEngine) -> None:
        first = changes_of([memory(1, title="T", tags=["a"], location="L", entities=[Entity(name="x", kind="file")])])[
            0
        ]
        old = first.new or {}
        engine.apply([first], STATE)
        after = {name: value for name, value in old.items() if name not in {"title", "tags", "entities"}}
        after |= {"location": "M", "archived_at": NOW, "steps": ["s"], "access_count": 2}
        engine.apply([Change("Memory", first.key, old, after)], STATE)
        assert everything(engine)["Memory"] == [(first.key, after)]
        engine.apply([Change("Memory", first.key, after, old)], STATE)
        assert everything(engine)["Memory"] == [(first.key, old)]

    def test_edges_with_properties_are_set_and_removed(self, engine: GraphEngine) -> None:
        a, b = node(1), node(2)
        key = (str(a.key), str(b.key))
        link = {"score": 0.25, "reason": "why", "created_at": NOW}
        engine.apply([a, b, new("SUPPORTS", key, link), new("NEXT", key, {})], STATE)
        assert engine.get("SUPPORTS", key) == link
        assert engine.get("NEXT", key) == {}
        assert engine.get("SUPPORTS", key[::-1]) is None
        engine.apply([Change("SUPPORTS", key, link, {"score": 0.75})], STATE)
        assert engine.get("SUPPORTS", key) == {"score": 0.75}
        engine.apply([Change("SUPPORTS", key, {"score": 0.75}, None)], STATE)
        assert everything(engine) == rows_of([a, b, new("NEXT", key, {})])

    def test_many_edges_are_read_and_removed_at_once(self, engine: GraphEngine) -> None:
        changes = stocked(100)
        engine.apply(changes, STATE)
        edges = {change.key: change.new for change in changes if change.table == "SUPPORTS" and change.new is not None}
        lacking = {(target, source) for source, target in edges}
        assert engine.edges("SUPPORTS", {*edges, *lacking}) == edges
        gone = dict(list(edges.items())[:45])
        engine.apply([Change("SUPPORTS", key, row, None) for key, row in gone.items()], STATE)
        assert engine.edges("SUPPORTS", edges.keys()) == {key: row for key, row in edges.items() if key not in gone}
        assert everything(engine) == rows_of([change for change in changes if change.key not in gone])

    def test_a_node_is_removed_with_its_edges_in_one_call(self, engine: GraphEngine) -> None:
        changes = changes_of([memory(1, tags=["a"], project_id="P"), memory(2)], [("SUPPORTS", 0, 1)])
        engine.apply(changes, STATE)
        me = source_id("tests", 1)
        gone = [
            change for change in changes if change.key == me or (isinstance(change.key, tuple) and me in change.key)
        ]
        removals = [Change(change.table, change.key, change.new, None) for change in gone]
        removals.sort(key=lambda change: not isinstance(change.key, tuple))
        engine.apply(removals, STATE)
        assert everything(engine) == rows_of([change for change in changes if change not in gone])
        assert engine.edges_at(me) == []

    def test_changes_of_every_kind_in_one_call(self, engine: GraphEngine) -> None:
        before = changes_of([memory(1, tags=["a"]), memory(2, tags=["a"])])
        engine.apply(before, STATE)
        one, two = (change for change in before if change.table == "Memory")
        edges = [change for change in before if change.table == "TAGGED"]
        after = {**(one.new or {}), "content": "changed"}
        three = node(3)
        changes = [
            Change("TAGGED", edges[1].key, {}, None),
            Change("Memory", two.key, two.new, None),
            Change("Memory", one.key, one.new, after),
            three,
            new("SUPPORTS", (str(three.key), str(one.key)), {"score": 1.0}),
        ]
        engine.apply(changes, STATE)
        assert [key for key, _ in everything(engine)["Memory"]] == sorted([one.key, three.key])  # type: ignore[type-var]
        assert engine.get("Memory", one.key) == after
        assert len(engine.edges_at(str(one.key))) == 2


class TestNeighbours:
    def test_edges_and_links_of_a_memory(self, engine: GraphEngine) -> None:
        changes = changes_of(
            [
                memory(1, tags=["a"], project_id="P"),
                memory(2, previous_id=source_id("tests", 1)),
                memory(3, tags=["a"]),
            ],
            [("SUPPORTS", 0, 1), ("CONTRADICTS", 2, 0), ("SUPPORTS", 1, 2)],
        )
        recall = new("Recall", "r", {"id": "r"})
        recalled = new("RECALLED", ("r", source_id("tests", 1)), {"rank": 1, "score": 0.5, "tokens": 3})
        engine.apply([*changes, recall, recalled], STATE)
        me = source_id("tests", 1)
        expected = [(c.table, c.key, c.new) for c in [*changes, recalled] if isinstance(c.key, tuple) and me in c.key]
        assert sorted(engine.edges_at(me)) == sorted(expected)  # type: ignore[type-var]
        tag = natural_id("tag", "a")
        assert sorted(engine.sources("TAGGED", tag, 9)) == sorted([me, source_id("tests", 3)])
        assert len(engine.sources("TAGGED", tag, 1)) == 1
        assert engine.sources("TAGGED", natural_id("tag", "b"), 9) == []
        links = [edge for edge in expected if edge[0] in {"SUPPORTS", "CONTRADICTS", "NEXT"}]
        assert len(links) == 3
        assert sorted(engine.links_of(me)) == sorted(links)  # type: ignore[type-var]

    def test_a_link_to_itself_is_one_link(self, engine: GraphEngine) -> None:
        one = node(1)
        key = (str(one.key), str(one.key))
        engine.apply([one, new("RELATED_TO", key, {"score": 0.5})], STATE)
        assert engine.edges_at(key[0]) == [("RELATED_TO", key, {"score": 0.5})]
        assert engine.links_of(key[0]) == [("RELATED_TO", key, {"score": 0.5})]

    def test_what_held_at_a_moment(self, engine: GraphEngine) -> None:
        def item(key: str, seq: int, closed: int | None) -> Row:
            row: Row = {"id": key, "kind": "decision", "seq": seq, "created_at": f"2026-02-01T09:00:{seq:02}.000Z"}
            return (
                row
                if closed is None
                else {**row, "closed_seq": closed, "closed_at": f"2026-02-01T09:00:{closed:02}.000Z"}
            )

        rows = [item("a", 2, None), item("b", 3, 5), item("c", 5, None)]
        tasks = [new("Task", key, {"id": key, "name": key}) for key in ("t", "other")]
        items = [new("TaskItem", row["id"], row) for row in rows]
        edges = [new("HAS_ITEM", ("t", row["id"]), {}) for row in rows]
        engine.apply([*tasks, *items, *edges], STATE)
        for moment, expected in (
            (None, "ac"), (1, ""), (2, "a"), (4, "ab"), (5, "ac"), (9, "ac"), ("2026-02-01T09:00:02.999Z", "a"),
            ("2026-02-01T09:00:04.000Z", "ab"), ("2026-02-01T09:00:05.000Z", "ac"),
        ):  # fmt: skip
            found = sorted(engine.held("HAS_ITEM", "t", moment), key=lambda row: str(row["id"]))
            assert found == [row for row in rows if row["id"] in expected], moment
        assert engine.held("HAS_ITEM", "other", None) == engine.held("HAS_ITEM", "nowhere", 3) == []


class TestAllOrNothing:
    @pytest.mark.parametrize("is_bulk", [True, pytest.param(False, marks=pytest.mark.long)])
    def test_a_call_that_fails_changes_nothing(self, engine: GraphEngine, is_bulk: bool) -> None:
        kept = changes_of([memory(9_999, tags=["kept"])])
        engine.apply(kept, {"seq": 1})
        fresh = stocked(60 if is_bulk else 4)
        assert (len(fresh) >= 400) == is_bulk
        for bad in ([*fresh, kept[0]], [kept[0], *fresh]):
            with pytest.raises(GraphError):
                engine.apply(bad, {"seq": 2})
            assert everything(engine) == rows_of(kept)
            assert engine.state() == {"seq": 1}
        engine.apply(fresh, {"seq": 3})
        assert everything(engine) == rows_of([*kept, *fresh])
        engine.release()
        assert everything(engine) == rows_of([*kept, *fresh])

    @pytest.mark.parametrize(
        ("lacking", "count"),
        [
            (0, 1),
            (0, 40),
            *(pytest.param(*case, marks=pytest.mark.long) for case in ((-1, 1), (0, 15), (-1, 15), (-1, 40))),
        ],
    )
    def test_an_edge_without_a_node_at_its_end_fails_the_whole_call(
        self, engine: GraphEngine, lacking: int, count: int
    ) -> None:
        changes = changes_of([memory(number, tags=["a"]) for number in range(count)])
        tagged = [change for change in changes if change.table == "TAGGED"]
        source, target = tagged[lacking].key
        for bad in ((source, "nowhere"), ("nowhere", target)):
            with pytest.raises(GraphError):
                engine.apply([*changes, new("TAGGED", bad, {})], STATE)
            with pytest.raises(GraphError):
                engine.rebuild([*changes, new("TAGGED", bad, {})], STATE)
        assert engine.state() is None
        assert all(rows == [] for rows in everything(engine).values())

    def test_a_node_that_still_has_edges_stays(self, engine: GraphEngine) -> None:
        changes = changes_of([memory(1, tags=["a"]), memory(2)])
        engine.apply(changes, {"seq": 1})
        one, two = (change for change in changes if change.table == "Memory")
        with pytest.raises(GraphError):
            engine.apply(
                [Change("Memory", two.key, two.new, None), Change("Memory", one.key, one.new, None)], {"seq": 2}
            )
        assert everything(engine) == rows_of(changes)
        assert engine.state() == {"seq": 1}


class TestBulk:
    def test_many_at_once_equal_few_at_a_time(self, make: Callable[..., GraphEngine]) -> None:
        changes = stocked(50)
        assert len(changes) >= 10 * EARLY.new_rows
        at_once, bit_by_bit, rebuilt = make(bulk=EARLY), make(), make()
        at_once.apply(changes, STATE)
        for start in range(0, len(changes), 150):
            bit_by_bit.apply(changes[start : start + 150], STATE)
        rebuilt.rebuild(changes, STATE)
        assert everything(at_once) == everything(bit_by_bit) == everything(rebuilt) == rows_of(changes)

    def test_many_new_rows_beside_existing_and_changed_rows(self, make: Callable[..., GraphEngine]) -> None:
        engine, changes = make(bulk=EARLY), stocked(60)
        first, rest = changes[:150], changes[150:]
        assert len(rest) >= 8 * EARLY.new_rows
        engine.apply(first, STATE)
        old = next(change for change in first if change.table == "Memory")
        after = {**(old.new or {}), "content": "changed"}
        engine.apply([*rest, Change("Memory", old.key, old.new, after)], STATE)
        expected = [Change("Memory", old.key, None, after) if change is old else change for change in changes]
        assert everything(engine) == rows_of(expected)

    def test_in_a_large_file_nothing_is_copied_beside_changed_rows(self, make: Callable[..., GraphEngine]) -> None:
        """The engine's buffer pool is too small for both: the file could not be read afterwards."""
        engine = make(bulk=BulkLimits(new_rows=40, large_bytes=0))
        before, rest = stocked(5), stocked(50)
        engine.apply(before, STATE)
        first = next(change for change in before if change.table == "Memory")
        known = {(change.table, change.key) for change in before}
        new = [change for change in rest if (change.table, change.key) not in known]
        changed = {**(first.new or {}), "title": "other"}
        engine.apply([Change("Memory", first.key, first.new, changed), *new], STATE)
        assert len(list(engine.scan("Memory"))) == 50
        assert engine.get("Memory", first.key) == changed

    def test_a_path_with_spaces_and_quotes(self, tmp_path: Path) -> None:
        engine = Engine(tmp_path / 'it\'s a "folder", ünï' / "graph", bulk=EARLY)
        changes = stocked(35)
        engine.apply(changes, STATE)
        assert everything(engine) == rows_of(changes)
        engine.rebuild(changes, STATE)
        assert everything(engine) == rows_of(changes)
        engine.close()


class TestRebuild:
    @pytest.mark.parametrize("count", [0, 60, pytest.param(3, marks=pytest.mark.long)])
    def test_it_replaces_everything(self, engine: GraphEngine, count: int) -> None:
        engine.apply(changes_of([memory(9_999, tags=["old"])]), {"seq": 1, "old": True})
        fresh = stocked(count)
        reports: list[tuple[int, int | None]] = []
        engine.rebuild(fresh, {"seq": 2}, progress=lambda done, total: reports.append((done, total)))
        assert everything(engine) == rows_of(fresh)
        assert engine.state() == {"seq": 2}
        assert all(done == total for done, total in reports[-1:])
        engine.apply([node(9_999)], {"seq": 3})
        assert engine.get("Memory", source_id("tests", 9_999)) is not None

    def test_a_failed_rebuild_keeps_the_old_rows(self, engine: GraphEngine) -> None:
        kept = changes_of([memory(1, tags=["kept"])])
        engine.apply(kept, {"seq": 1})
        with pytest.raises(GraphError):
            engine.rebuild([node(2), node(2)], {"seq": 2})
        assert everything(engine) == rows_of(kept)
        assert engine.state() == {"seq": 1}

    def test_an_iterator_is_accepted(self, engine: GraphEngine) -> None:
        engine.rebuild(iter(stocked(3)), STATE)
        assert everything(engine) == rows_of(stocked(3))


class TestState:
    @pytest.mark.parametrize(
        "state",
        [
            {"seq": 0},
            {
                "seq": 2**62,
                "text": "ünï 'quoted' \\ \n",
                "none": None,
                "nested": {"a": [1, 2.5, True]},
                "big": "f" * 64,
            },
        ],
    )
    def test_the_state_round_trips(self, engine: GraphEngine, state: Row) -> None:
        engine.apply([], state)
        assert engine.state() == state
        engine.release()
        assert engine.state() == state

    def test_it_is_replaced_whole(self, engine: GraphEngine) -> None:
        engine.apply([], {"seq": 1, "a": 1})
        engine.apply([], {"seq": 2, "b": 2})
        assert engine.state() == {"seq": 2, "b": 2}


class TestHolding:
    def test_the_generation_counts_acquisitions(self, engine: GraphEngine) -> None:
        first = engine.generation
        engine.state()
        taken = engine.generation
        assert taken == first + 1
        engine.apply([node(1)], STATE)
        assert engine.get("Memory", source_id("tests", 1))
        assert engine.generation == taken
        engine.release()
        assert engine.generation == taken
        assert engine.get("Memory", source_id("tests", 1))
        assert engine.generation == taken + 1

    def test_a_release_while_it_is_held_does_nothing(self, engine: GraphEngine) -> None:
        with engine.open():
            taken = engine.generation
            with engine.open():
                engine.release()
            engine.release()
            engine.state()
            assert engine.generation == taken

    @pytest.mark.parametrize(
        "fields",
        [
            {name: value for fields in LISTS for name, value in fields.items()},
            *(pytest.param(fields, marks=pytest.mark.long) for fields in LISTS),
        ],
    )
    @pytest.mark.parametrize("way", ["one", "many", "copied", "update"])
    def test_lists_survive_releases_when_the_first_rows_had_none(
        self, make: Callable[..., GraphEngine], fields: dict[str, Any], way: str
    ) -> None:
        """Some engines lose a list of structs in a table that was once written to disk without any."""
        engine = make(bulk=EARLY) if way == "copied" else make()
        plain = node(0)
        engine.apply([plain], STATE)
        engine.release()
        if way == "update":
            after = changes_of([memory(0, **fields)])[0].new
            changes = [Change("Memory", plain.key, plain.new, after)]
        else:
            records = [memory(number, **fields) for number in range(1, 60 if way in {"many", "copied"} else 2)]
            changes = [change for change in changes_of(records) if change.table == "Memory"]
        engine.apply(changes, STATE)
        engine.release()
        found = dict(engine.scan_columns("Memory"))
        assert [found[change.key] for change in changes] == [
            engine.columns("Memory", change.new or {}) for change in changes
        ]
        assert engine.lost() == []

    def test_release_is_idempotent(self, engine: GraphEngine) -> None:
        engine.release()
        engine.state()
        engine.release()
        engine.release()

    def test_rows_survive_a_release(self, engine: GraphEngine) -> None:
        changes = stocked(5)
        engine.apply(changes, STATE)
        engine.release()
        assert everything(engine) == rows_of(changes)

    def test_a_closed_engine_refuses(self, engine: GraphEngine) -> None:
        engine.apply([node(1)], STATE)
        engine.close()
        engine.close()
        with pytest.raises(ClosedError):
            engine.state()
        with pytest.raises(ClosedError):
            engine.get("Memory", "x")

    def test_an_error_inside_a_block_releases_it(self, engine: GraphEngine) -> None:
        with pytest.raises(KeyError), engine.open():
            raise KeyError("x")
        taken = engine.generation
        engine.release()
        engine.state()
        assert engine.generation == taken + 1


def test_rows_are_stored_on_disk(tmp_path: Path) -> None:
    changes = stocked(5)
    first = Engine(tmp_path / "graph")
    first.apply(changes, STATE)
    first.close()
    second = Engine(tmp_path / "graph")
    assert everything(second) == rows_of(changes)
    assert second.state() == STATE
    second.close()


@pytest.mark.parametrize("what", ["noise behind the header", "a folder", pytest.param("noise", marks=pytest.mark.long)])
def test_an_embedded_engine_reports_a_damaged_file(tmp_path: Path, what: str) -> None:
    engine = Engine(tmp_path / "graph")
    engine.apply(stocked(5), STATE)
    engine.close()
    path = tmp_path / "graph" / f"memgraph.{vendor_name()}"
    data = path.read_bytes()
    if what == "a folder":
        path.unlink()
        path.mkdir()
    else:
        kept = 4096 if what == "noise behind the header" else 0
        path.write_bytes(data[:kept] + bytes(range(255, -1, -1)) * ((len(data) - kept) // 256))
    again = Engine(tmp_path / "graph")
    with pytest.raises(GraphError):
        again.state()
    again.rebuild(stocked(2), STATE)
    assert everything(again) == rows_of(stocked(2))
    again.close()


def test_an_embedded_engine_reports_a_path_that_is_not_text(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(bytes(tmp_path) + b"/\xff"))
    folder.mkdir()
    engine = Engine(folder / "graph")
    with pytest.raises(GraphError) as refused:
        engine.state()
    assert str(refused.value).encode()
    with pytest.raises(GraphError):
        engine.rebuild([], STATE)
    engine.close()


@pytest.mark.parametrize("way", ["apply", "rebuild"])
def test_an_embedded_engine_reports_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    def full(*args: Any, **options: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    engine = Engine(tmp_path / "graph", bulk=EARLY)
    engine.apply(stocked(3), STATE)
    monkeypatch.setattr("memgraph.graph.rows.writing.TemporaryDirectory", full)
    with pytest.raises(GraphError, match="No space"):
        getattr(engine, way)(stocked(150)[len(stocked(3)) :] if way == "apply" else stocked(150), {"seq": 2})
    assert everything(engine) == rows_of(stocked(3))
    assert engine.state() == STATE
    engine.close()


def test_the_fake_stores_rows_and_has_no_cypher() -> None:
    engine = InMemoryEngine()
    changes = stocked(2)
    engine.apply(changes, STATE)
    engine.rebuild([], STATE)
    assert engine.calls == [changes, []]
    with pytest.raises(QueryError, match="no Cypher"):
        engine.cypher("RETURN 1", {})


@pytest.mark.parametrize(
    "change",
    [
        Change("Memory", "missing", {"id": "missing"}, None),
        Change("Memory", "missing", {"id": "missing"}, {"id": "missing", "title": "x"}),
        Change("NEXT", ("missing", "too"), None, {}),
    ],
)
def test_the_fake_refuses_changes_that_no_fold_makes(change: Change) -> None:
    with pytest.raises(GraphError):
        InMemoryEngine().apply([change], STATE)
