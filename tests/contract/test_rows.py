"""The contract of the rows: what the fold made is read as it was written, or refused."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from memgraph.disk.seal import Seal
from memgraph.errors import GraphError
from memgraph.fold import EmptyRows, Projection, Workspace, fold
from memgraph.graph.schema import tables
from memgraph.journal.envelope import Event
from memgraph.journal.sql import SQLite
from memgraph.model.events.memories import MemoryAdded, MemoryLinked
from memgraph.model.ids import source_id
from memgraph.model.memory import ActionStep, EncounteredError, Entity, ErrorFix, FileChange, MemoryRecord
from memgraph.ports import Change, Key, Row
from memgraph.store.rows import Rows

SEAL = Seal(b"t" * 32)
NOW = "2026-02-01T09:00:00.000Z"
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


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[], Rows]]:
    """Make rows, each in a database of its own."""
    made: list[SQLite] = []

    def one() -> Rows:
        made.append(SQLite(tmp_path / f"rows{len(made)}" / "memgraph.db", is_durable=False))
        return Rows(made[-1], SEAL, timeout_s=1.0)

    yield one
    for database in made:
        database.close()


@pytest.fixture
def rows(make: Callable[[], Rows]) -> Rows:
    return make()


def state(seq: int) -> Projection:
    return Projection("s", seq=seq)


def state_of(rows: Rows) -> Projection | None:
    found = rows.state()
    return found.projection if found else None


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


def everything(rows: Rows) -> dict[str, list[tuple[Key, Row]]]:
    """Return all rows of all tables."""
    found = {}
    for name in tables():
        found[name] = sorted(rows.scan(name), key=lambda entry: entry[0])
        for key, row in found[name][:5]:
            assert rows.get(name, key) == row
    return found


def rows_of(changes: Sequence[Change]) -> dict[str, list[tuple[Key, Row]]]:
    """Return what `everything` should find after these changes to an empty rows."""
    found: dict[str, list[tuple[Key, Row]]] = {name: [] for name in tables()}
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
    def test_it_has_neither_rows_nor_state(self, rows: Rows) -> None:
        assert rows.state() is None
        assert rows.get("Memory", "x") is None
        assert rows.get("NEXT", ("x", "y")) is None
        assert rows.edges_at("x") == rows.links_of("x") == []
        assert all(rows == [] for rows in everything(rows).values())


class TestRows:
    @pytest.mark.parametrize("is_bulk", [False, pytest.param(True, marks=pytest.mark.long)])
    def test_every_column_round_trips(self, rows: Rows, is_bulk: bool) -> None:
        fields = {
            "outcome": "negative", "outcome_word": "failure", "confidence": 1 / 3, "access_count": 7,
            "is_pinned": True, "is_suppressed": True, "privacy_tier": "private", "trust_class": "web",
            "floor": 0.1, "relevance_anchor": 4.5, "duration_seconds": 1e-7, "usage_count": 0, "success_rate": 0.5, "override_count": 3,
            "agents_involved": ["A"], "tags": ["t"], "cues": ["c"], "source_event_ids": ["e"], "evidence_build_ids": ["b"],
            "alternatives_considered": ["x", ""], "constraints": ["c"], "files_involved": ["f"], "artifacts_produced": ["a"],
            "conditions": ["c"], "steps": ["one", "two"], "prerequisites": ["p"], "exit_criteria": ["e"],
            "entities": [Entity(name="E", kind="error"), Entity(name="f.py", kind="file", about=True)],
            "action_log": [ActionStep(t=0.5, action="a"), ActionStep(t=1.0, action="b", target="t", result="r", error="e")],
            "errors_encountered": [EncounteredError(type="T", message="m"), EncounteredError(type="", message="", resolution="r")],
            "common_errors": [ErrorFix(error="e", fix="f")],
            "previous_id": source_id("tests", 900), "is_solved": False, "attempt": 0, "attempts": 3, "calls": 2, "failed_calls": 1,
            "tools_called": ["look"], "worked_how": "again", "undoes": ["s"], "closes": ["7"],
            "changes": [FileChange(path="f", kind="R", added=3, was="g"), FileChange(path="", kind="D")],
        }  # fmt: skip
        for name, field in MemoryRecord.model_fields.items():
            if name not in fields and not field.is_required():
                fields[name] = NOW if name.endswith("_at") or name == "event_date" else f"a {name}"
        changes = changes_of([memory(number, **fields) for number in range(60 if is_bulk else 1)])
        row = next(change.new for change in changes if change.table == "Memory")
        assert row is not None
        assert row.keys() >= MemoryRecord.model_fields.keys()
        rows.apply(changes, state(1))
        assert everything(rows) == rows_of(changes)

    @pytest.mark.parametrize("is_bulk", [False, True])
    def test_odd_strings(self, rows: Rows, is_bulk: bool) -> None:
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
        for start in range(0, len(changes), len(changes) if is_bulk else 40):
            rows.apply(changes[start : start + (len(changes) if is_bulk else 40)], state(1))
        assert everything(rows) == rows_of(changes)

    @pytest.mark.parametrize("is_bulk", [False, pytest.param(True, marks=pytest.mark.long)])
    def test_extreme_numbers_and_times(self, rows: Rows, is_bulk: bool) -> None:
        values: list[dict[str, Any]] = [{"duration_seconds": value} for value in EXTREME_FLOATS]
        values += [{"access_count": count} for count in EXTREME_INTS if count < 2**31]
        values += [{"occurred_at": time, "event_date": time} for time in EXTREME_TIMES]
        records = [memory(number, **fields) for number, fields in enumerate(values * (25 if is_bulk else 1))]
        changes = changes_of(records)
        assert (len(changes) >= 400) == is_bulk
        counts = EXTREME_INTS * (20 if is_bulk else 1)
        recalls = [new("Recall", f"r{n}", {"id": f"r{n}", "total_tokens": count}) for n, count in enumerate(counts)]
        rows.apply([*changes, *recalls], state(1))
        assert dict(rows.scan("Recall")) == {change.key: change.new for change in recalls}
        found = dict(everything(rows)["Memory"])
        for change in changes:
            assert found[change.key] == change.new  # type: ignore[index]
            assert repr(found[change.key].get("duration_seconds")) == repr((change.new or {}).get("duration_seconds"))  # type: ignore[index]

    def test_the_caller_may_change_rows_read(self, rows: Rows) -> None:
        change = changes_of([memory(1, tags=["a"])])[0]
        rows.apply([change], state(1))
        row = rows.get("Memory", change.key)
        assert row is not None
        row["tags"].append("b")
        row["content"] = "changed"
        assert rows.get("Memory", change.key) == change.new

    def test_other_nodes(self, rows: Rows) -> None:
        build = {
            "id": "b", "name": "build", "project_id": "P", "outcome": "failure", "started_at": NOW, "task_count": 3,
            "agents": ["A", "B"], "is_complete": False, "consumed_keys": ["k"],
        }  # fmt: skip
        changes = [new("Build", "b", build), new("Recall", "r", {"id": "r", "total_tokens": 0, "retrieved_at": NOW})]
        rows.apply(changes, state(1))
        assert rows.get("Build", "b") == build
        assert everything(rows) == rows_of(changes)


class TestUpdates:
    def test_columns_are_set_and_cleared(self, rows: Rows) -> None:
        first = changes_of([memory(1, title="T", tags=["a"], location="L", entities=[Entity(name="x", kind="file")])])[
            0
        ]
        old = first.new or {}
        rows.apply([first], state(1))
        after = {name: value for name, value in old.items() if name not in {"title", "tags", "entities"}}
        after |= {"location": "M", "archived_at": NOW, "steps": ["s"], "access_count": 2}
        rows.apply([Change("Memory", first.key, old, after)], state(1))
        assert everything(rows)["Memory"] == [(first.key, after)]
        rows.apply([Change("Memory", first.key, after, old)], state(1))
        assert everything(rows)["Memory"] == [(first.key, old)]

    def test_edges_with_properties_are_set_and_removed(self, rows: Rows) -> None:
        a, b = node(1), node(2)
        key = (str(a.key), str(b.key))
        link = {"score": 0.25, "reason": "why", "created_at": NOW}
        rows.apply([a, b, new("SUPPORTS", key, link), new("NEXT", key, {})], state(1))
        assert rows.get("SUPPORTS", key) == link
        assert rows.get("NEXT", key) == {}
        assert rows.get("SUPPORTS", key[::-1]) is None
        rows.apply([Change("SUPPORTS", key, link, {"score": 0.75})], state(1))
        assert rows.get("SUPPORTS", key) == {"score": 0.75}
        rows.apply([Change("SUPPORTS", key, {"score": 0.75}, None)], state(1))
        assert everything(rows) == rows_of([a, b, new("NEXT", key, {})])

    def test_many_edges_are_read_and_removed_at_once(self, rows: Rows) -> None:
        changes = stocked(100)
        rows.apply(changes, state(1))
        edges = {change.key: change.new for change in changes if change.table == "SUPPORTS" and change.new is not None}
        assert dict(rows.scan("SUPPORTS")) == edges
        gone = dict(list(edges.items())[:45])
        rows.apply([Change("SUPPORTS", key, row, None) for key, row in gone.items()], state(1))
        assert dict(rows.scan("SUPPORTS")) == {key: row for key, row in edges.items() if key not in gone}
        assert everything(rows) == rows_of([change for change in changes if change.key not in gone])

    def test_a_node_is_removed_with_its_edges_in_one_call(self, rows: Rows) -> None:
        changes = changes_of([memory(1, tags=["a"], project_id="P"), memory(2)], [("SUPPORTS", 0, 1)])
        rows.apply(changes, state(1))
        me = source_id("tests", 1)
        gone = [
            change for change in changes if change.key == me or (isinstance(change.key, tuple) and me in change.key)
        ]
        removals = [Change(change.table, change.key, change.new, None) for change in gone]
        removals.sort(key=lambda change: not isinstance(change.key, tuple))
        rows.apply(removals, state(1))
        assert everything(rows) == rows_of([change for change in changes if change not in gone])
        assert rows.edges_at(me) == []

    def test_changes_of_every_kind_in_one_call(self, rows: Rows) -> None:
        before = changes_of([memory(1), memory(2)], [("SUPPORTS", 0, 1)])
        rows.apply(before, state(1))
        one, two = (change for change in before if change.table == "Memory")
        (edge,) = (change for change in before if change.table == "SUPPORTS")
        after = {**(one.new or {}), "content": "changed"}
        three = node(3)
        changes = [
            Change("SUPPORTS", edge.key, edge.new, None),
            Change("Memory", two.key, two.new, None),
            Change("Memory", one.key, one.new, after),
            three,
            new("SUPPORTS", (str(three.key), str(one.key)), {"score": 1.0}),
        ]
        rows.apply(changes, state(1))
        assert [key for key, _ in everything(rows)["Memory"]] == sorted([one.key, three.key])  # type: ignore[type-var]
        assert rows.get("Memory", one.key) == after
        assert rows.edges_at(str(one.key)) == [("SUPPORTS", (three.key, one.key), {"score": 1.0})]


class TestNeighbours:
    def test_edges_and_links_of_a_memory(self, rows: Rows) -> None:
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
        rows.apply([*changes, recall, recalled], state(1))
        me = source_id("tests", 1)
        expected = [(c.table, c.key, c.new) for c in [*changes, recalled] if isinstance(c.key, tuple) and me in c.key]
        assert sorted(rows.edges_at(me)) == sorted(expected)  # type: ignore[type-var]
        third = source_id("tests", 3)
        assert rows.sources("SUPPORTS", third, 9) == [source_id("tests", 2)]
        assert rows.sources("SUPPORTS", third, 0) == rows.sources("SUPPORTS", me, 9) == []
        links = [edge for edge in expected if edge[0] in {"SUPPORTS", "CONTRADICTS", "NEXT"}]
        assert len(links) == 3
        assert sorted(rows.links_of(me)) == sorted(links)  # type: ignore[type-var]

    def test_a_link_to_itself_is_one_link(self, rows: Rows) -> None:
        one = node(1)
        key = (str(one.key), str(one.key))
        rows.apply([one, new("RELATED_TO", key, {"score": 0.5})], state(1))
        assert rows.edges_at(key[0]) == [("RELATED_TO", key, {"score": 0.5})]
        assert rows.links_of(key[0]) == [("RELATED_TO", key, {"score": 0.5})]

    def test_what_held_at_a_moment(self, rows: Rows) -> None:
        def item(key: str, seq: int, closed: int | None) -> Row:
            row: Row = {"id": key, "kind": "decision", "seq": seq, "created_at": f"2026-02-01T09:00:{seq:02}.000Z"}
            return (
                row
                if closed is None
                else {**row, "closed_seq": closed, "closed_at": f"2026-02-01T09:00:{closed:02}.000Z"}
            )

        items_ = [item("a", 2, None), item("b", 3, 5), item("c", 5, None)]
        tasks = [new("Task", key, {"id": key, "name": key}) for key in ("t", "other")]
        items = [new("TaskItem", row["id"], row) for row in items_]
        edges = [new("HAS_ITEM", ("t", row["id"]), {}) for row in items_]
        rows.apply([*tasks, *items, *edges], state(1))
        for moment, expected in (
            (None, "ac"), (1, ""), (2, "a"), (4, "ab"), (5, "ac"), (9, "ac"), ("2026-02-01T09:00:02.999Z", "a"),
            ("2026-02-01T09:00:04.000Z", "ab"), ("2026-02-01T09:00:05.000Z", "ac"),
        ):  # fmt: skip
            found = sorted(rows.held("HAS_ITEM", "t", moment), key=lambda row: str(row["id"]))
            assert found == [row for row in items_ if row["id"] in expected], moment
        assert rows.held("HAS_ITEM", "other", None) == rows.held("HAS_ITEM", "nowhere", 3) == []


class TestAllOrNothing:
    @pytest.mark.parametrize("is_bulk", [True, pytest.param(False, marks=pytest.mark.long)])
    def test_a_call_that_fails_changes_nothing(self, rows: Rows, is_bulk: bool) -> None:
        kept = changes_of([memory(9_999, tags=["kept"])])
        rows.apply(kept, state(1))
        fresh = stocked(60 if is_bulk else 4)
        for bad in ([*fresh, kept[0]], [kept[0], *fresh]):
            with pytest.raises(GraphError):
                rows.apply(bad, state(2))
            assert everything(rows) == rows_of(kept)
            assert state_of(rows) == state(1)
        rows.apply(fresh, state(3))
        assert everything(rows) == rows_of([*kept, *fresh])

    @pytest.mark.parametrize(
        ("lacking", "count"),
        [
            (0, 1),
            (0, 40),
            *(pytest.param(*case, marks=pytest.mark.long) for case in ((-1, 1), (0, 15), (-1, 15), (-1, 40))),
        ],
    )
    def test_an_edge_without_a_node_at_its_end_fails_the_whole_call(self, rows: Rows, lacking: int, count: int) -> None:
        changes = changes_of([memory(number) for number in range(count)], [("SUPPORTS", n, n) for n in range(count)])
        links = [change for change in changes if change.table == "SUPPORTS"]
        source, target = links[lacking].key
        for bad in ((source, "nowhere"), ("nowhere", target)):
            with pytest.raises(GraphError):
                rows.apply([*changes, new("SUPPORTS", bad, {})], state(1))
            with pytest.raises(GraphError):
                rows.rebuild([*changes, new("SUPPORTS", bad, {})], state(1))
        assert rows.state() is None
        assert all(rows == [] for rows in everything(rows).values())

    def test_a_node_that_still_has_edges_stays(self, rows: Rows) -> None:
        changes = changes_of([memory(1), memory(2)], [("SUPPORTS", 0, 1)])
        rows.apply(changes, state(1))
        one, two = (change for change in changes if change.table == "Memory")
        with pytest.raises(GraphError):
            rows.apply([Change("Memory", two.key, two.new, None), Change("Memory", one.key, one.new, None)], state(2))
        assert everything(rows) == rows_of(changes)
        assert state_of(rows) == state(1)


class TestBulk:
    def test_many_at_once_equal_few_at_a_time(self, make: Callable[[], Rows]) -> None:
        changes = stocked(50)
        at_once, bit_by_bit, rebuilt = make(), make(), make()
        at_once.apply(changes, state(1))
        for start in range(0, len(changes), 150):
            bit_by_bit.apply(changes[start : start + 150], state(1))
        rebuilt.rebuild(changes, state(1))
        assert everything(at_once) == everything(bit_by_bit) == everything(rebuilt) == rows_of(changes)

    def test_many_new_rows_beside_existing_and_changed_rows(self, make: Callable[[], Rows]) -> None:
        rows, changes = make(), stocked(60)
        first, rest = changes[:150], changes[150:]
        rows.apply(first, state(1))
        old = next(change for change in first if change.table == "Memory")
        after = {**(old.new or {}), "content": "changed"}
        rows.apply([*rest, Change("Memory", old.key, old.new, after)], state(1))
        expected = [Change("Memory", old.key, None, after) if change is old else change for change in changes]
        assert everything(rows) == rows_of(expected)


class TestRebuild:
    @pytest.mark.parametrize("count", [0, 3, 60])
    def test_it_replaces_everything(self, rows: Rows, count: int) -> None:
        rows.apply(changes_of([memory(9_999, tags=["old"])]), state(1))
        rows.rebuild(stocked(count), state(2))
        assert everything(rows) == rows_of(stocked(count))
        assert state_of(rows) == state(2)
        rows.apply([node(9_999)], state(3))
        assert rows.get("Memory", source_id("tests", 9_999)) is not None

    def test_a_failed_rebuild_keeps_the_old_rows(self, rows: Rows) -> None:
        kept = changes_of([memory(1, tags=["kept"])])
        rows.apply(kept, state(1))
        with pytest.raises(GraphError):
            rows.rebuild([node(2), node(2)], state(2))
        assert everything(rows) == rows_of(kept)
        assert state_of(rows) == state(1)

    def test_an_iterator_is_accepted(self, rows: Rows) -> None:
        rows.rebuild(iter(stocked(3)), state(1))
        assert everything(rows) == rows_of(stocked(3))


class TestFollowing:
    def test_what_was_written_after_an_event_is_told(self, rows: Rows) -> None:
        before = changes_of([memory(1), memory(2), memory(3)], [("SUPPORTS", 0, 1)])
        rows.apply(before, state(1))
        one, two, three = (change for change in before if change.table == "Memory")
        used, said = {**(one.new or {}), "access_count": 3}, {**(two.new or {}), "content": "changed"}
        link = (str(two.key), str(one.key))
        rows.apply([Change("Memory", one.key, one.new, used)], state(2))
        assert rows.changes_since(1) == [Change("Memory", one.key, used, used)]  # its text is known
        rows.apply(
            [
                Change("Memory", two.key, two.new, said),
                Change("Memory", three.key, three.new, None),
                new("NEXT", link, {}),
            ],
            state(3),
        )
        assert rows.changes_since(2) == [
            Change("Memory", three.key, {}, None),
            Change("Memory", two.key, None, said),
            Change("NEXT", link, None, {}),
        ]
        assert rows.changes_since(3) == []
        assert rows.changes_since(1, most=4) == rows.changes_since(1)
        assert rows.changes_since(1, most=3) is None

    def test_a_rebuild_is_a_new_beginning(self, rows: Rows) -> None:
        rows.apply([node(1)], state(1))
        mark = rows.mark(1)
        rows.apply([node(2)], state(2))
        assert rows.mark(1) == rows.mark(2) == mark is not None
        assert rows.mark(3) is None
        rows.rebuild([node(1)], state(2))
        assert rows.mark(1) is None
        assert rows.mark(2) not in {mark, None}


class TestForgery:
    """Every byte of a row counts, and no row passes for another."""

    @pytest.fixture
    def forge(self, tmp_path: Path, rows: Rows) -> Callable[[str], None]:
        rows.apply(changes_of([memory(1, title="a longer one"), memory(2)], [("SUPPORTS", 0, 1)]), state(1))

        def forge(statement: str) -> None:
            with closing(sqlite3.connect(tmp_path / "rows0" / "memgraph.db")) as raw, raw:
                assert raw.execute(statement).rowcount > 0

        return forge

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE node SET body = replace(body, 'Memory 1', 'Memory 7')",
            "UPDATE node SET seq = seq + 1",
            "UPDATE node SET code = code + 1",
            "UPDATE node SET body = (SELECT body FROM node ORDER BY length(body) LIMIT 1)",
            "UPDATE node SET body = 'text'",
        ],
    )
    def test_a_forged_node_is_refused(self, rows: Rows, forge: Callable[[str], None], statement: str) -> None:
        forge(statement)
        with pytest.raises(GraphError, match="is not what was written"):
            rows.get("Memory", source_id("tests", 1))
        with pytest.raises(GraphError, match="is not what was written"):
            rows.scan("Memory")

    @pytest.mark.parametrize(
        "statement",
        ["UPDATE edge SET body = '{}'", "UPDATE edge SET seq = 9", "UPDATE edge SET source = target, target = source"],
    )
    def test_a_forged_edge_is_refused(self, rows: Rows, forge: Callable[[str], None], statement: str) -> None:
        forge(statement)
        with pytest.raises(GraphError, match="is not what was written"):
            rows.scan("SUPPORTS")

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            ("CAST(replace(CAST(body AS TEXT), '\"seq\":1', '\"seq\":2') AS BLOB)", "no valid code"),
            ("replace(CAST(body AS TEXT), '1', '2')", "cannot be read"),
            ("x'00'", "cannot be read"),
        ],
    )
    def test_a_forged_state_is_refused(self, rows: Rows, forge: Callable[[str], None], body: str, said: str) -> None:
        forge(f"UPDATE state SET body = {body}")
        with pytest.raises(GraphError, match=said):
            rows.state()

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE node SET key = CAST(key AS BLOB)",
            "UPDATE node SET since = 'x'",
            "UPDATE node SET kind = 'x'",
            "UPDATE edge SET kind = 99",
            "UPDATE edge SET since = x'00'",
            "INSERT INTO gone VALUES (1, 99, 'x', '', 1)",
            "INSERT INTO gone VALUES (1, 'x', 'x', '', 1)",
            "INSERT INTO gone VALUES (1, 0, x'00', '', 1)",
            "INSERT INTO gone VALUES (1, 0, 'x', x'00', 1)",
            "INSERT INTO gone VALUES (1, 0, 'x', 'y', 1)",
        ],
    )
    def test_who_follows_is_told_nothing_of_another_type(
        self, rows: Rows, forge: Callable[[str], None], statement: str
    ) -> None:
        forge(statement)
        with pytest.raises(GraphError, match=r"a row is of no table|is not what was written"):
            rows.changes_since(0)

    def test_no_row_is_written_behind_the_last_possible_number(self, rows: Rows, forge: Callable[[str], None]) -> None:
        assert rows.state() is not None
        forge("UPDATE node SET id = 9223372036854775807 WHERE id = (SELECT max(id) FROM node)")
        with pytest.raises(GraphError, match="number"):
            rows.apply([node(3)], state(2))

    def test_a_damaged_row_is_read_again_after_it_was_repaired(self, rows: Rows, forge: Callable[[str], None]) -> None:
        forge("UPDATE node SET seq = seq + 1")
        whole = changes_of([memory(1, tags=["a"])])
        rows.on_damage = lambda _error: rows.rebuild(whole, state(1))
        assert rows.get("Memory", source_id("tests", 1)) == whole[0].new
        assert everything(rows) == rows_of(whole)


def test_what_was_removed_is_in_no_file(tmp_path: Path, rows: Rows) -> None:
    secret = "an unspeakable word "
    before = changes_of([memory(number, content=secret * (number % 30 + 1)) for number in range(1, 90)])
    rows.apply(before, state(1))
    after = [Change(one.table, one.key, one.new, {**(one.new or {}), "content": "short"}) for one in before[:40]]
    rows.apply([*after, *(Change(one.table, one.key, one.new, None) for one in before[40:])], state(2))
    rows._database.erase()
    for path in (tmp_path / "rows0").iterdir():
        assert b"unspeakable" not in path.read_bytes(), path
