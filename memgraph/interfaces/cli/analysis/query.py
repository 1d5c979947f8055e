"""``query``: run a named query or a Cypher statement on the graph."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from memgraph.errors import InvalidInputError, QueryError
from memgraph.interfaces.cli.base.completing import query_names
from memgraph.interfaces.cli.base.input import standard_input
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import ReadingCommand, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit_json, notice, plain, print_lines, print_text, styled
from memgraph.interfaces.cli.base.scoping import hint_at_projects
from memgraph.model.results.rows import json_text, jsonable
from memgraph.text.safe import is_hidden

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from memgraph.facade import MemGraph
    from memgraph.graph.queries import NamedQuery
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


@click.command(cls=ReadingCommand)
@click.argument("name", required=False, shell_complete=query_names)
@click.argument("misplaced", nargs=-1, metavar="")
@click.option(
    "--cypher",
    metavar="TEXT",
    help="A read-only statement ('-': standard input) over what `memgraph queries schema` lists.",
)
@click.option(
    "--param",
    "-p",
    "params",
    metavar="NAME=VALUE",
    multiple=True,
    help="A parameter; repeatable. With --cypher, numbers, true, false and null are typed, everything else is text.",
)
@click.option(
    "--csv",
    "as_csv",
    is_flag=True,
    help="CSV: UTF-8, lists as JSON, times as ISO 8601 in UTC. Texts are not escaped, so a cell may begin with '=': "
    "import them as text, not as formulas.",
)
@click.option(
    "--parquet",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the rows to a Parquet file.",
)
@pass_settings
def query(
    settings: Settings,
    name: str | None,
    misplaced: Sequence[str],
    cypher: str | None,
    params: Sequence[str],
    as_csv: bool,
    parquet: Path | None,
) -> None:
    """Print the rows as a table, or in the requested format."""
    if misplaced:
        raise click.UsageError(_hint(misplaced[0]))
    if name is None and cypher is None:
        raise click.UsageError("name a query, or give --cypher TEXT; `memgraph queries` lists the queries")
    if name is not None and cypher is not None:
        raise click.UsageError(f"{plain(name)!a} and --cypher cannot be combined: name a query, or give --cypher TEXT")
    if settings.as_json + as_csv + (parquet is not None) > 1:
        raise click.UsageError("--json, --csv and --parquet cannot be combined")
    if parquet is not None and not parquet.name:
        raise click.BadParameter("must name a file", param_hint="--parquet")
    given = _given(params)
    ask = _named(name, given) if name is not None else _ad_hoc(str(cypher), given)
    with opened(settings) as memory:
        rows = ask(memory)
        if not rows and name is not None:
            hint_at_projects(memory, given.get("project") or None)
    if parquet is not None:
        from memgraph.store.purge.exports import note_exports

        _write(rows, parquet)
        note_exports(memory.store.config.home, "query", parquet, at=memory.store.now())
        return
    if settings.as_json:
        _print_json(rows)
    elif as_csv:
        print_csv(rows)
    elif rows:
        print_table(rows)
    if not rows:
        notice("the query returned no rows")


def _hint(misplaced: str) -> str:
    shown = plain(misplaced)
    name, equals, _ = misplaced.partition("=")
    if name and equals:
        return f"unexpected argument {shown!a}; give a parameter as --param {shown}"
    return f"unexpected argument {shown!a}; give a parameter as --param NAME=VALUE"


def _given(params: Sequence[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for param in params:
        name, equals, value = param.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{plain(param)!a} is not NAME=VALUE", param_hint="--param")
        if name in given:
            raise click.BadParameter(f"{plain(name)!a} is given twice", param_hint="--param")
        given[name] = value
    return given


def _named(name: str, given: dict[str, str]) -> Callable[[MemGraph], Rows]:
    """Return a function that runs a named query; invalid parameters are refused before the store is opened."""
    from memgraph.graph.queries import REQUIRED, named_query

    found = named_query(name)
    for one in found.parameters:
        if one.default is REQUIRED and one.name not in given:
            raise QueryError(f"the query {name} needs {one.name} ({one.about}): give --param {one.name}=…")
    values = _values(found, given)
    found.values(values, now="2000-01-01T00:00:00.000Z")
    return lambda memory: memory.store.query(name, **values)


def _values(found: NamedQuery, given: dict[str, str]) -> dict[str, Any]:
    """Convert texts to the types that the query's header names; the query itself refuses unknown names."""
    from memgraph.graph.queries import value_of

    types = {one.name: one.type for one in found.parameters}
    values: dict[str, Any] = {}
    for name, text in given.items():
        try:
            values[name] = value_of(types.get(name, "STRING"), text)
        except ValueError as error:
            raise InvalidInputError(str(error), field=name, value=text) from None
    return values


def _ad_hoc(cypher: str, given: dict[str, str]) -> Callable[[MemGraph], Rows]:
    from memgraph.graph.guard import check_parameters, check_read_only, check_values

    text = standard_input("a query may have at most 20,000") if cypher == "-" else cypher
    values = {name: _scalar(value) for name, value in given.items()}
    try:
        text.encode()
    except UnicodeEncodeError:
        raise QueryError("the query is not UTF-8 text") from None
    check_parameters(check_read_only(text), values)
    check_values(values)
    return lambda memory: memory.store.cypher(text, **values)


def _scalar(text: str) -> Any:
    """Return the value of a JSON number, boolean, null or string, and any other text unchanged."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, list | dict) else value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _print_json(rows: Rows) -> None:
    from memgraph.model.results.rows import jsonable

    emit_json(jsonable(list(rows)))


def _write(rows: Rows, path: Path) -> None:
    """Write a Parquet file atomically."""
    from io import BytesIO

    from memgraph.viz.files import write_files

    table, buffer = rows.arrow(), BytesIO()
    import_module("pyarrow.parquet").write_table(table, buffer)
    write_files({path: buffer.getvalue()})
    click.echo(f"Wrote {count(len(rows), 'row')} to {plain(str(path))}.")


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
    """Print rows as CSV (RFC 4180 with plain newlines, UTF-8) with a header line: null is an empty field, lists and records are JSON.

    On a terminal invisible characters are printed as their codes; elsewhere texts are unchanged.
    """
    on_terminal = sys.stdout.isatty()
    lines: list[str] = []
    for cells in ([column.name for column in rows.columns], *([_cell(v) for v in row.values()] for row in rows)):
        line = io.StringIO(newline="")
        csv.writer(line).writerow(map(visible, cells) if on_terminal else cells)
        # replaced afterwards, because the writer quotes only the characters of its own newline
        lines.append(line.getvalue().removesuffix("\r\n") + "\n")
    if on_terminal:
        print_text("".join(lines))
    else:
        click.echo("".join(lines).encode(), nl=False)


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
