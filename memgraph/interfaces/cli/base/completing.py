"""Completion of values in a shell: only of names that are read without opening a store, which takes most of a second."""

from __future__ import annotations

import click

RELATIONS = ("CONTRADICTS", "DERIVED_FROM", "ELABORATES", "EXAMPLE_OF", "RELATED_TO", "SUPERSEDES", "SUPPORTS")
"""The relations that a user can link with, repeated here so that completing one imports only click."""


def query_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001 - click's signature
    """Return the names of the named queries that begin like this."""
    from memgraph.assets import texts

    return [name for name in texts("queries", ".cypher") if name.startswith(incomplete)]


def topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Return the topics of the documentation that begin like this."""
    from memgraph.assets import texts

    return [name for name in texts("docs", ".md") if name.startswith(incomplete)]


def relations(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
    """Return the relations that begin like this, in any case."""
    return [name for name in RELATIONS if name.startswith(incomplete.upper())]
