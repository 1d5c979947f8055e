"""``queries``: list the named queries, and show their parameters and Cypher."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.completing import query_names
from memgraph.interfaces.cli.base.options import Settings, Subgroup, pass_settings
from memgraph.interfaces.cli.base.output import emit, emit_json, print_lines, wrapped

if TYPE_CHECKING:
    from memgraph.graph.queries import NamedQuery, Parameter


@click.group(cls=Subgroup, invoke_without_command=True)
@click.pass_context
def queries(ctx: click.Context) -> None:
    """List the queries if no command is given."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@queries.command("list")
@pass_settings
def list_(settings: Settings) -> None:
    """List the named queries: name, parameters with their defaults, purpose."""
    from memgraph.graph.queries import named_queries

    found = list(named_queries().values())
    if settings.as_json:
        emit_json([_document(one) for one in found])
        return
    lines = [
        line
        for one in found
        for line in (" ".join([one.name, *map(_usage, one.parameters)]), wrapped(one.purpose, indent="    "))
    ]
    run = "`memgraph query NAME --param NAME=VALUE` runs a query, `memgraph queries show NAME` prints its Cypher."
    schema = "`memgraph queries schema` lists the labels, relations and properties to ask for with `memgraph query --cypher`."
    print_lines([*lines, "", run, wrapped(schema)])


@queries.command()
@click.argument("name", shell_complete=query_names)
@pass_settings
def show(settings: Settings, name: str) -> None:
    """Print a named query: its header with parameters and columns, and its Cypher."""
    from memgraph.graph.queries import named_query

    found = named_query(name)
    emit(settings, {**_document(found), "cypher": found.text}, found.text.rstrip("\n"))


@queries.command()
@pass_settings
def schema(settings: Settings) -> None:
    """Print the labels and relations of the graph, with their properties."""
    from memgraph.graph.schema import tables

    shown = tables().values()
    document = [{"name": one.name, "between": one.ends, "properties": one.columns} for one in shown]
    lines = [
        line
        for one in shown
        for line in (
            f"({one.ends[0]})-[:{one.name}]->({one.ends[1]})" if one.ends else f"(:{one.name})",
            wrapped(
                ", ".join(f"{name} {kind}" for name, kind in one.columns.items()) or "no properties", indent="    "
            ),
        )
    ]
    emit(settings, document, lines)


def _usage(parameter: Parameter) -> str:
    return parameter.name if parameter.default is None else f"[{parameter.name}={parameter.default}]"


def _document(query: NamedQuery) -> dict[str, Any]:
    return {
        "name": query.name,
        "purpose": query.purpose,
        "parameters": [_parameter(one) for one in query.parameters],
        "columns": [{**column._asdict(), "about": query.notes.get(column.name)} for column in query.columns],
        "example": query.example,
        "cost": query.cost,
    }


def _parameter(one: Parameter) -> dict[str, Any]:
    """Return a parameter as JSON; `default` is present if it has one, where ``now`` means the store's clock."""
    from memgraph.graph.queries import value_of

    fields = {"name": one.name, "type": one.type, "about": one.about, "required": one.default is None}
    if one.default is not None:
        fields["default"] = value_of(one.type, one.default.strip("'"))
    if one.one_of:
        fields["one_of"] = list(one.one_of)
    bounds = {"at_least": one.at_least, "at_most": one.at_most}
    return fields | {name: bound for name, bound in bounds.items() if bound is not None}
