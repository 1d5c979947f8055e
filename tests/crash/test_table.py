"""The table of failures, memgraph's reactions and messages: a test for every row, and a copy in the README."""

from __future__ import annotations

from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
README = HERE.parents[1] / "README.md"
TABLE = (HERE / "table.md").read_text("utf-8")
TESTS = "\n".join(path.read_text("utf-8") for path in HERE.glob("test_*.py") if path.name != Path(__file__).name)


def test_every_row_is_backed_by_a_test(rows: dict[str, Any]) -> None:
    assert [what for what in rows if f'"{what}"' not in TESTS] == []


def test_no_row_is_repeated(rows: dict[str, Any]) -> None:
    assert len(rows) == len(TABLE.strip().splitlines()) - 2


def test_it_is_in_the_readme() -> None:
    text = README.read_text("utf-8")
    first = TABLE.splitlines()[0]
    assert first in text
    assert [line for line in TABLE.splitlines() if line not in text] == []
    begin = text.index(first)
    held = text[begin:].split("\n\n", 1)[0].splitlines()
    assert held == TABLE.splitlines()
