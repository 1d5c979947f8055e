"""Rows of a query as text: an aligned table for people, CSV for programs."""

from __future__ import annotations

import csv
import io
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.output import print_lines, print_text, styled
from memgraph.model.results.rows import json_text, jsonable
from memgraph.text.safe import is_hidden

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from memgraph.model.results.rows import Column, Rows

_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_GAP = "  "
_LONG = 40
"""Width in terminal cells above which a column is printed last and may be wrapped between words."""
_ID_CHARS = 8
_SECOND_CHARS = len("2026-02-19T08:30:00")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WHOLE = frozenset({"query_id"})
"""Columns of ids that are never shortened: `memgraph outcome` needs the whole id."""
_NUMBERS = ("INT", "UINT", "DOUBLE", "FLOAT", "DECIMAL", "SERIAL")


def print_table(rows: Rows) -> None:
    """Print rows as an aligned table, columns of long text last.

    On a terminal the table fits its width and long texts are wrapped; if the columns cannot fit, each row is a block of
    ``name: value`` lines. Elsewhere each row is one line, and only two kinds of values are shortened: a memory's id to its first
    eight characters, a time to seconds in UTC (midnight: to the day). Text is not interpreted as markup or terminal commands:
    invisible characters are printed as their codes.
    """
    columns = _columns(rows)
    if not sys.stdout.isatty():
        print_lines(_aligned(columns))
        return
    with styled() as console:
        widths = _fitted(columns, console.width)
        if widths is None:
            _print_blocks(columns, console)
        else:
            _print_fitted(columns, widths, console)


def print_csv(rows: Rows) -> None:
    """Print rows as CSV (RFC 4180, UTF-8) with a header line: null is an empty field, lists and records are JSON.

    On a terminal invisible characters are printed as their codes; elsewhere texts are unchanged.
    """
    on_terminal = sys.stdout.isatty()
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    for cells in ([column.name for column in rows.columns], *([_cell(v) for v in row.values()] for row in rows)):
        writer.writerow([visible(cell) for cell in cells] if on_terminal else cells)
    if on_terminal:
        print_text(text.getvalue())
    else:
        click.echo(text.getvalue().encode(), nl=False)


def visible(text: str) -> str:
    """Return a text as one line with control characters and direction overrides replaced by their codes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(char: str) -> str:
    if not is_hidden(char):
        return char
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _cell(value: Any) -> str:
    """Return a value as text: null as an empty string, text unchanged, times in ISO 8601, everything else as JSON."""
    if value is None:
        return ""
    own = jsonable(value)
    return own if isinstance(own, str) else json_text(own)


@dataclass(frozen=True, slots=True)
class _Column:
    """A printed column.

    Attributes
    ----------
    width : int
        Width of its longest cell or its name, in terminal cells.
    least : int
        Its minimum width: less than `width` if its text may be wrapped between words.
    """

    name: str
    cells: list[str]
    is_right: bool
    width: int
    least: int


def _columns(rows: Rows) -> list[_Column]:
    """Return the columns in order, columns of long text last."""
    columns = [
        _column(visible(column.name), column.type, [_shortened(column, _cell(row[column.name])) for row in rows])
        for column in rows.columns
    ]
    return sorted(columns, key=lambda column: column.width > _LONG)


def _column(name: str, type_: str, values: list[str]) -> _Column:
    from rich.cells import cell_len

    cells = [visible(value) for value in values]
    width = max(map(cell_len, [name, *cells]))
    words = [word for cell in cells for word in cell.split()]
    longest = max(map(cell_len, [name, *words]))
    least = min(width, max(_LONG, min(longest, 2 * _LONG)))
    return _Column(name, cells, _is_number(type_), width, least)


def _shortened(column: Column, value: str) -> str:
    """Shorten a memory's id to the prefix that commands accept, and a time to seconds; return other values unchanged."""
    if column.type == "TIMESTAMP":
        return value[:_SECOND_CHARS].replace("T", " ").removesuffix(" 00:00:00")
    is_id = column.name == "id" or column.name.endswith(("_id", ".id"))
    return value[:_ID_CHARS] if is_id and column.name not in _WHOLE and _UUID.fullmatch(value) else value


def _aligned(columns: list[_Column]) -> Iterator[str]:
    from rich.cells import cell_len

    for line in zip(*([column.name, *column.cells] for column in columns), strict=True):
        cells = []
        for cell, column in zip(line, columns, strict=True):
            gap = " " * (column.width - cell_len(cell))
            cells.append(gap + cell if column.is_right else cell + gap)
        yield _GAP.join(cells).rstrip()


def _fitted(columns: list[_Column], width: int) -> list[int] | None:
    """Return the columns' widths in a table of at most this width, or None if their minimum widths do not fit."""
    available = width - len(_GAP) * (len(columns) - 1)
    spare = available - sum(column.least for column in columns)
    if spare < 0:
        return None
    wanted = sum(column.width - column.least for column in columns)
    share = min(1.0, spare / wanted) if wanted else 0.0
    return [column.least + int((column.width - column.least) * share) for column in columns]


def _print_fitted(columns: list[_Column], widths: list[int], console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, len(_GAP), 0, 0))
    for column, width in zip(columns, widths, strict=True):
        table.add_column(
            Text(column.name), justify="right" if column.is_right else "left", width=width, overflow="fold"
        )
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(Text, cells))
    console.print(table)


def _print_blocks(columns: list[_Column], console: Console) -> None:
    """Print each row as ``name: value`` lines without empty values, and an empty line between rows."""
    from rich.table import Table
    from rich.text import Text

    for place in range(len(columns[0].cells)):
        block = Table.grid(padding=(0, 1, 0, 0))
        block.add_column(no_wrap=True, style="bold")
        block.add_column(overflow="fold")
        for column in columns:
            if column.cells[place]:
                block.add_row(Text(f"{column.name}:"), Text(column.cells[place]))
        if place:
            console.print()
        console.print(block)


def _is_number(type_: str) -> bool:
    return type_.startswith(_NUMBERS) and not type_.endswith("]")
