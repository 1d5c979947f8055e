"""The DDL files are the only definition of the graph's tables."""

from __future__ import annotations

from typing import get_args

from memgraph import assets
from memgraph.graph.schema import tables
from memgraph.model.link import EXPLICIT_RELATIONS, Relation
from memgraph.model.memory import MemoryRecord

ABOUT_THE_VECTOR = {"vector_row", "vector_sha256", "seq"}
RECORDS = ("entities", "action_log", "errors_encountered", "changes", "common_errors")
"""Fields that are lists of records."""


def _columns() -> dict[str, str]:
    """Return the expected column type of each field of a memory."""
    found = {}
    for name, field in MemoryRecord.model_fields.items():
        annotation = str(field.rebuild_annotation())
        if name in RECORDS:
            model = next(kind for kind in _models(field.annotation))
            found |= {
                f"{name}_{part}": f"{_type(part, str(one.annotation))}[]" for part, one in model.model_fields.items()
            }
        elif "list" in annotation:
            found[name] = "STRING[]"
        else:
            found[name] = _type(name, annotation)
    return found


def _type(name: str, annotation: str) -> str:
    if name.endswith("_at") or name == "event_date":
        return "TIMESTAMP"
    if "bool" in annotation:
        return "BOOLEAN"
    if "float" in annotation:
        return "DOUBLE"
    return "INT64" if "int" in annotation and "str" not in annotation else "STRING"


def test_every_field_of_a_memory_has_a_column_of_its_type_and_no_column_is_without_a_field() -> None:
    columns = {name: kind for name, kind in tables()["Memory"].columns.items() if name not in ABOUT_THE_VECTOR}
    assert columns == _columns()


def test_the_schema_follows_the_rules_against_lost_values() -> None:
    """See ``schema/001_nodes.cypher``: no null in a text or a list, and only plain values and lists of them."""
    for name, table in tables().items():
        for column, kind in table.columns.items():
            assert kind.removesuffix("[]") in {"STRING", "DOUBLE", "INT64", "BOOLEAN", "TIMESTAMP"}, (name, column)
            if kind == "STRING" and column != "id":
                assert f"{column} STRING DEFAULT ''" in table.statement, (name, column)
            if kind.endswith("[]"):
                assert f"{column} {kind} DEFAULT CAST([] AS {kind})" in table.statement, (name, column)


def _models(annotation: object) -> list[type]:
    found = [annotation] if hasattr(annotation, "model_fields") else []
    return [*found, *(model for part in get_args(annotation) for model in _models(part))]  # type: ignore[list-item]


def test_every_statement_is_parsed() -> None:
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


def test_an_edge_table_is_parsed_with_its_ends() -> None:
    mentions = tables()["MENTIONS"]
    assert (mentions.ends, mentions.columns) == (("Memory", "Entity"), {"about": "BOOLEAN"})
    assert (tables()["NEXT"].ends, tables()["NEXT"].columns) == (("Memory", "Memory"), {})


def test_the_files_are_numbered() -> None:
    names = list(assets.texts("schema", ".cypher"))
    assert names == sorted(names)
    assert [int(name.split("_")[0]) for name in names] == list(range(1, len(names) + 1))
