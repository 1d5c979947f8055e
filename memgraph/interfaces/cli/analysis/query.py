"""``query``: run a named query or a Cypher statement on the graph."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from memgraph.errors import InvalidInputError, QueryError
from memgraph.interfaces.cli.base.completing import query_names
from memgraph.interfaces.cli.base.input import standard_input
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import ReadingCommand, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit_json, notice, plain
from memgraph.interfaces.cli.base.scoping import hint_at_projects

if TYPE_CHECKING:
    from memgraph.facade import MemGraph
    from memgraph.graph.queries import NamedQuery
    from memgraph.model.results.rows import Rows


@click.command(cls=ReadingCommand)
@click.argument("name", required=False, shell_complete=query_names)
@click.argument("misplaced", nargs=-1, metavar="")
@click.option(
    "--cypher", metavar="TEXT", help="A read-only statement instead of a query's NAME; '-' reads standard input."
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
        from memgraph.interfaces.cli.base.tables import print_csv

        print_csv(rows)
    elif rows:
        from memgraph.interfaces.cli.base.tables import print_table

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
