"""Known data losses of Kùzu 0.11.3, each in the smallest history that shows it. With the schema's rules nothing is lost.

Found by the fuzz in ``tests/fuzz/engine``; the files in ``schema/`` have the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memgraph.graph.rows.writing import BulkLimits
from memgraph.graph.storage.database_file import LogLimits
from memgraph.model.ids import source_id
from memgraph.ports import Change, Row
from tests.engines import Engine
from tests.fuzz.engine.compare import differences, differences_around
from tests.fuzz.engine.histories import Rows

STATE = {"seq": 1}
_TIMES = dict.fromkeys(("created_at", "updated_at", "occurred_at", "relevance_at"), "2026-02-01T09:00:00.000Z")
LINK = {"score": 0.5, "reason": "seen", "created_at": "2026-02-01T09:00:00.000Z"}


class Lived:
    """An engine and what it must hold."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.engine = Engine(folder, idle_s=600.0, **options)
        self.rows = Rows()

    def apply(self, *changes: Change) -> None:
        self.rows.take(changes)
        self.engine.apply(changes, STATE)

    def added(self, number: int, **fields: Any) -> Change:
        key = source_id("losses", number)
        row = {"id": key, "type": "episodic", "content": f"memory {number}", "seq": number, **_TIMES, **fields}
        return Change("Memory", key, None, row)

    def updated(self, number: int, **fields: Any) -> Change:
        key = source_id("losses", number)
        old: Row = self.rows.tables["Memory"][key]
        return Change("Memory", key, old, {**old, **fields})

    def check(self) -> None:
        assert list(differences(self.engine, self.rows)) == []
        assert self.engine.lost() == []


@pytest.fixture
def lived(tmp_path: Path) -> Iterator[Lived]:
    made = Lived(tmp_path / "graph")
    yield made
    made.engine.close()


def commit(number: object) -> str:
    return f"git-0123456789ab/{source_id('commit', number).replace('-', '')}00000000"


def test_a_text_column_keeps_its_values_after_an_update_and_rows_without_a_value(lived: Lived) -> None:
    """Whole ``git_commit`` columns were lost in this way, by ingesting a repository on a busy machine."""
    lived.apply(*(lived.added(number, git_commit=commit(number)) for number in range(50)))
    lived.engine.checkpoint()
    lived.apply(lived.updated(49, git_commit=commit("new")))
    lived.engine.checkpoint()
    lived.apply(lived.added(50))
    lived.engine.checkpoint()
    lived.check()


def test_the_parts_of_records_stay_together_when_texts_are_updated(lived: Lived) -> None:
    """As lists in one STRUCT, they were mixed up between rows."""

    def thing(number: int, *, about: bool) -> list[dict[str, Any]]:
        return [{"name": f"n{number}", "kind": "commit", "about": about}]

    lived.apply(*(lived.added(number, entities=thing(number, about=True)) for number in range(40)))
    lived.apply(*(lived.added(number, entities=thing(number, about=False)) for number in range(100, 600)))
    lived.engine.rebuild(lived.rows.as_changes(), STATE)
    lived.apply(lived.updated(105, content="changed"))
    lived.apply(*(lived.added(number, entities=thing(number, about=False)) for number in range(1_000, 1_500)))
    lived.engine.checkpoint()
    lived.check()


def test_an_updated_list_is_kept_when_rows_are_added(lived: Lived) -> None:
    """If a list is SET and rows are created before the next CHECKPOINT, rows get the lists of others, from about 700 rows."""
    first = 0
    for count in (140, 121, 72, 82, 80, 73, 62, 83):  # exactly these counts are needed
        new = [lived.added(number, source_event_ids=[commit(number)]) for number in range(first, first + count)]
        older = [lived.updated(first // 2, source_event_ids=[commit(first // 2), commit("more")])] if first else []
        lived.apply(*new, *older)
        first += count
        lived.engine.checkpoint()
    lived.check()


@pytest.mark.parametrize("is_read_after", ["at once", "from the log", "from the file"])
def test_edges_of_a_recreated_node_are_counted_once(lived: Lived, is_read_after: str) -> None:
    """DETACH DELETE leaves edges without a node at one end, which only counting shows."""
    lived.apply(*(lived.added(number, tags=["a"]) for number in range(5)))
    for number in range(4):
        ends = (source_id("losses", number), source_id("losses", number + 1))
        lived.apply(Change("NEXT", ends, None, {}))
        lived.apply(lived.updated(number + 1, tags=[f"b{number}"]))
        lived.apply(lived.updated(number, tags=[f"c{number}"]))
    if is_read_after == "from the file":
        lived.engine.checkpoint()
    if is_read_after != "at once":
        lived.engine.release()
    lived.check()
    assert lived.engine.cypher("MATCH (:Memory)-[e:NEXT]->(:Memory) RETURN count(e) AS edges", {}) == [{"edges": 4}]


@pytest.mark.parametrize("log_of", ["this process", "one before"])
def test_a_table_survives_the_deletion_of_all_its_new_edges(lived: Lived, log_of: str) -> None:
    """Without the rule, the next reader of the table after the CHECKPOINT would crash this process."""
    lived.apply(*(lived.added(number) for number in range(4)))
    ends = [(source_id("losses", number), source_id("losses", number + 1)) for number in range(3)]
    lived.apply(Change("SUPPORTS", ends[0], None, LINK))
    lived.engine.checkpoint()
    lived.apply(Change("SUPPORTS", ends[1], None, LINK))
    lived.apply(Change("SUPPORTS", ends[2], None, LINK))
    if log_of == "one before":
        lived.engine.release()
    lived.apply(Change("SUPPORTS", ends[1], LINK, None))
    lived.apply(Change("SUPPORTS", ends[2], LINK, None))
    lived.engine.checkpoint()
    lived.check()  # not cypher(), which reopens the file and is therefore safe


@pytest.mark.parametrize(
    ("is_backward", "merged"),
    [
        (False, "by a checkpoint"),
        (True, "after the log of one before"),
        pytest.param(True, "by a checkpoint", marks=pytest.mark.long),
        pytest.param(False, "at close", marks=pytest.mark.long),
        pytest.param(True, "at close", marks=pytest.mark.long),
        pytest.param(False, "after the log of one before", marks=pytest.mark.long),
    ],
)
def test_edges_survive_the_deletion_of_all_edges_at_distant_nodes(
    tmp_path: Path, is_backward: bool, merged: str
) -> None:
    """If the 1,024 nodes around a deleted edge keep no edge, a checkpoint would drop the edges of 131,072 nodes."""
    lived = Lived(tmp_path / "graph", log=LogLimits(short_bytes=0 if merged == "at close" else 1 << 20))
    lived.rows.take(lived.added(number) for number in range(2_500))
    lived.engine.rebuild(lived.rows.as_changes(), STATE)
    keys = [(source_id("losses", a), source_id("losses", b)) for a, b in ((1, 2), (3, 4), (2_400, 5))]
    ends = [key[::-1] if is_backward else key for key in keys]
    lived.apply(*(Change("SUPPORTS", end, None, LINK) for end in ends))
    lived.engine.checkpoint()
    lived.apply(Change("SUPPORTS", ends[2], LINK, None))
    if merged != "by a checkpoint":
        lived.engine.release()
    if merged != "at close":
        lived.engine.checkpoint()
    lived.check()
    assert list(differences_around(lived.engine, lived.rows, ends[0])) == []
    lived.engine.close()


def test_edges_survive_a_deletion_beside_a_copy(tmp_path: Path) -> None:
    """The COMMIT of a COPY is a checkpoint too."""
    lived = Lived(tmp_path / "graph", bulk=BulkLimits(new_rows=20, table_rows=5))
    lived.rows.take(lived.added(number) for number in range(2_500))
    lived.engine.rebuild(lived.rows.as_changes(), STATE)
    ends = [(source_id("losses", a), source_id("losses", b)) for a, b in ((1, 2), (3, 4), (2_400, 2_401))]
    lived.apply(*(Change("SUPPORTS", end, None, LINK) for end in ends))
    lived.engine.checkpoint()
    new = [lived.added(number) for number in range(3_000, 3_050)]
    lived.apply(Change("SUPPORTS", ends[2], LINK, None), *new)
    lived.check()
    again = {**LINK, "score": 0.25}
    new = [lived.added(number) for number in range(4_000, 4_050)]
    lived.apply(Change("SUPPORTS", ends[0], LINK, None), Change("SUPPORTS", ends[1], LINK, again), *new)
    lived.check()
    lived.engine.close()


def test_edges_to_nodes_of_another_table_survive_too(lived: Lived) -> None:
    tags = [Change("Tag", f"t{number}", None, {"id": f"t{number}", "name": f"t{number}"}) for number in range(1_500)]
    lived.rows.take([*tags, *(lived.added(number) for number in range(3))])
    lived.engine.rebuild(lived.rows.as_changes(), STATE)
    ends = [(source_id("losses", number), f"t{tag}") for number, tag in ((0, 1), (1, 2), (2, 1_400))]
    lived.apply(*(Change("TAGGED", end, None, {}) for end in ends))
    lived.engine.checkpoint()
    lived.apply(Change("TAGGED", ends[2], {}, None))
    lived.engine.checkpoint()
    lived.check()


def test_a_table_whose_edges_are_all_deleted_can_be_filled_again(lived: Lived) -> None:
    lived.apply(*(lived.added(number) for number in range(4)))
    ends = [(source_id("losses", number), source_id("losses", number + 1)) for number in range(3)]
    lived.apply(Change("SUPPORTS", ends[0], None, LINK))
    lived.engine.checkpoint()
    lived.apply(Change("SUPPORTS", ends[1], None, LINK))
    lived.apply(*(Change("SUPPORTS", end, LINK, None) for end in ends[:2]))
    lived.engine.checkpoint()
    lived.check()
    lived.apply(Change("SUPPORTS", ends[2], None, LINK))
    lived.engine.checkpoint()
    lived.check()


def test_filtering_a_list_uses_each_rows_own_list(lived: Lived) -> None:
    """list_filter() gives rows the answers of others where a list is null."""
    lived.apply(*(lived.added(number, **({"tags": [f"t{number}", "x"]} if number % 3 else {})) for number in range(60)))
    found = lived.engine.cypher(
        "MATCH (m:Memory) RETURN m.tags AS tags, list_filter(m.tags, t -> t <> 'x') AS kept", {}
    )
    assert len(found) == 60
    assert all(row["kept"] == [tag for tag in row["tags"] if tag != "x"] for row in found)


def test_a_text_of_a_memory_that_changes_often_does_not_make_the_file_grow(lived: Lived) -> None:
    """After a SET in a STRING column the engine writes the whole column again, and never frees the space."""
    long = "x" * 700
    lived.apply(*(lived.added(number, content=f"{number} {long}", title="t") for number in range(1_500)))
    lived.engine.rebuild(lived.rows.as_changes(), STATE)
    before = lived.engine.size_bytes()
    for turn in range(12):
        lived.apply(lived.updated(turn, content=f"{turn} again {long}"))
        lived.engine.checkpoint()
    lived.check()
    assert lived.engine.size_bytes() < before + (12 << 20)


@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("CREATE (:Tag {id: 'foreign'})", "Tag"),
        ("MATCH (m:Memory) WITH m LIMIT 1 CREATE (m)-[:SUPPORTS]->(m)", "SUPPORTS"),
    ],
)
def test_a_row_in_a_table_that_must_be_empty_is_reported(lived: Lived, statement: str, table: str) -> None:
    lived.apply(lived.added(1))
    lived.check()
    with lived.engine._session.use() as connection:
        connection.run(statement)
    assert lived.engine.lost() == [f"{table} has 1 rows instead of 0"]
