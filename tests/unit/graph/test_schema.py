"""The DDL files are the one description of the graph's tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from memgraph import assets
from memgraph.graph import kuzu as module
from tests.engines import KuzuEngine
from memgraph.graph.schema import tables
from memgraph.model.link import EXPLICIT_RELATIONS, Relation
from memgraph.model.memory import MemoryRecord

ABOUT_THE_VECTOR = {"vector_row", "vector_sha256", "seq", "record"}


def test_every_field_of_a_memory_has_a_column_and_no_column_is_without_a_field() -> None:
    assert tables()["Memory"].columns.keys() == MemoryRecord.model_fields.keys() | ABOUT_THE_VECTOR


def test_columns_have_the_types_of_their_fields() -> None:
    columns = tables()["Memory"].columns
    for name, field in MemoryRecord.model_fields.items():
        kind = columns[name]
        annotation = str(field.rebuild_annotation())
        if name.endswith("_at") or name == "event_date":
            assert kind == "TIMESTAMP", name
        elif "list" in annotation:
            assert kind.endswith(("[]", "[])")), name
        elif "bool" in annotation:
            assert kind == "BOOLEAN", name
        elif "float" in annotation:
            assert kind == "DOUBLE", name
        elif "int" in annotation and "str" not in annotation:
            assert kind == "INT64", name
        else:
            assert kind == "STRING", (name, annotation)


def test_lists_of_records_are_records_of_lists_of_the_fields_of_their_models() -> None:
    columns = tables()["Memory"].columns
    for name in ("entities", "action_log", "errors_encountered", "common_errors"):
        model = next(kind for kind in _models(MemoryRecord.model_fields[name].annotation))
        inside = columns[name].removeprefix("STRUCT(").removesuffix(")")
        assert [part.split()[0] for part in inside.split(", ")] == list(model.model_fields)
        assert all(part.endswith("[]") for part in inside.split(", "))


def test_no_column_is_a_list_of_structs() -> None:
    """The engine loses those."""
    assert not any(")[]" in kind for table in tables().values() for kind in table.columns.values())


def _models(annotation: object) -> list[type]:
    found = [annotation] if hasattr(annotation, "model_fields") else []
    return [*found, *(model for part in get_args(annotation) for model in _models(part))]  # type: ignore[list-item]


def test_every_statement_is_read() -> None:
    text = "\n".join(assets.texts("schema", ".cypher").values())
    assert text.count("CREATE NODE TABLE") + text.count("CREATE REL TABLE") == len(tables())
    for name, table in tables().items():
        assert f"TABLE {name} (" in table.statement
        assert "//" not in table.statement
        assert table.columns or table.ends


def test_nodes_come_before_the_edges_between_them() -> None:
    known: set[str] = set()
    for name, table in tables().items():
        if table.ends:
            assert set(table.ends) <= known, name
        else:
            assert table.columns["id"] == "STRING"
        known.add(name)


def test_every_relation_is_a_table_between_memories() -> None:
    for relation in get_args(Relation):
        assert tables()[relation].ends == ("Memory", "Memory")
    for relation in EXPLICIT_RELATIONS:
        assert tables()[relation].columns == {"score": "DOUBLE", "reason": "STRING", "created_at": "TIMESTAMP"}


def test_an_edge_is_read_with_its_ends() -> None:
    mentions = tables()["MENTIONS"]
    assert (mentions.ends, mentions.columns) == (("Memory", "Entity"), {"about": "BOOLEAN"})
    assert (tables()["NEXT"].ends, tables()["NEXT"].columns) == (("Memory", "Memory"), {})


def test_the_files_are_numbered() -> None:
    names = list(assets.texts("schema", ".cypher"))
    assert names == sorted(names)
    assert [int(name.split("_")[0]) for name in names] == list(range(1, len(names) + 1))


def test_what_a_graph_lacks_is_made_in_one_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So a process that is killed meanwhile leaves none of it, and a new store waits for the disk once."""
    said: list[str] = []
    real = module._run

    def run(connection: Any, query: str, *given: Any) -> Any:
        said.append(query)
        return real(connection, query, *given)

    monkeypatch.setattr(module, "_run", run)
    engine = KuzuEngine(tmp_path / "graph")
    assert engine.state() is None
    made = [query for query in said if query.startswith("CREATE")]
    assert len(made) == len(tables()) + 1  # and the row of the projection's state
    start = said.index("BEGIN TRANSACTION")
    assert said[start + 1 : said.index("COMMIT")] == made

    with engine.open(), engine._session.use() as connection:
        real(connection, "DROP TABLE RECALLED")
    engine.release()
    said.clear()
    assert list(engine.scan("RECALLED")) == []
    assert [query for query in said if query.startswith("CREATE")] == [tables()["RECALLED"].statement]
    engine.close()
