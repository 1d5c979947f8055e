"""Rows of a query as text: an aligned table for people, CSV for programs."""

from __future__ import annotations

import csv
import io
import sys
import unicodedata
from typing import TYPE_CHECKING, Any

import click

from memgraph.model.rows import json_text, jsonable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memgraph.model.rows import Rows

_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_JOINERS = frozenset("\u200c\u200d")
"""They are invisible, and part of words and of pictures."""
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_NUMBERS = ("INT", "UINT", "DOUBLE", "FLOAT", "DECIMAL", "SERIAL")


def print_table(rows: Rows) -> None:
    """Print rows as an aligned table: on a terminal within its width, elsewhere a line each, with nothing cut.

    Text is neither markup nor commands to the terminal: what cannot be seen stands as its code.
    """
    if sys.stdout.isatty():
        _print_wrapped(rows)
    else:
        for line in _aligned(rows):
            click.echo(line)


def print_csv(rows: Rows) -> None:
    """Print rows as CSV (RFC 4180, UTF-8) with a line of names: nothing is an empty field, lists and records are JSON.

    On a terminal what cannot be seen stands as its code; elsewhere every text is as it is.
    """
    on_terminal = sys.stdout.isatty()
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([column.name for column in rows.columns])
    for row in rows:
        cells = [_cell(value) for value in row.values()]
        writer.writerow([visible(cell) for cell in cells] if on_terminal else cells)
    click.echo(text.getvalue() if on_terminal else text.getvalue().encode(), nl=False)


def visible(text: str) -> str:
    """Return a text as one line in which control characters and direction overrides are seen as their codes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def _shown(char: str) -> str:
    if unicodedata.category(char) not in _HIDDEN or char in _JOINERS:
        return char
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _cell(value: Any) -> str:
    """Return a value as text: nothing as nothing, text as it is, times in ISO 8601, all else as JSON has it."""
    if value is None:
        return ""
    own = jsonable(value)
    return own if isinstance(own, str) else json_text(own)


def _aligned(rows: Rows) -> Iterator[str]:
    from rich.cells import cell_len

    lines = [[column.name for column in rows.columns], *([visible(_cell(v)) for v in row.values()] for row in rows)]
    widths = [max(cell_len(line[place]) for line in lines) for place in range(len(rows.columns))]
    right = [_is_number(column.type) for column in rows.columns]
    for line in lines:
        gaps = [" " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True)]
        cells = [gap + cell if is_right else cell + gap for cell, gap, is_right in zip(line, gaps, right, strict=True)]
        yield "  ".join(cells).rstrip()


def _print_wrapped(rows: Rows) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in rows.columns:
        justify = "right" if _is_number(column.type) else "left"
        table.add_column(Text(column.name), justify=justify, overflow="fold")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(visible(_cell(value))) for value in row.values()))
    Console(highlight=False).print(table)


def _is_number(type_: str) -> bool:
    return type_.startswith(_NUMBERS) and not type_.endswith("]")
