"""Default parts of a store: journal, engine and clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from memgraph.config import AgentMemoryConfig
from memgraph.errors import InvalidInputError
from memgraph.graph.connection import VENDORS
from memgraph.graph.engine import EmbeddedEngine
from memgraph.journal.journal import Journal
from memgraph.journal.keys import default_keys
from memgraph.journal.opening import open_journal
from memgraph.model.base import Callback, checked
from memgraph.ports import GraphEngine, KeyProvider
from memgraph.store.projection.projector import Projector


def check_parts(*, embedder: object, clock: object, keys: object, annotator: object, engine: object) -> None:
    """Reject arguments that cannot be parts of a store.

    Raises
    ------
    InvalidInputError
        Names the argument.
    """
    checked(Callback, clock, "clock")
    for field, part, method in (
        ("embedder", embedder, "embed"),
        ("keys", keys, "key"),
        ("annotator", annotator, "annotate"),
        ("engine", engine, "rebuild"),
    ):
        if part is not None and not callable(getattr(part, method, None)):
            raise InvalidInputError(f"has no method `{method}`", field=field, value=part)


def open_store_journal(config: AgentMemoryConfig, keys: KeyProvider | None, now: Callable[[], str]) -> Journal:
    """Open the journal named by the settings."""
    return open_journal(
        config.home,
        keys or default_keys(config.keys_home),
        keys_home=config.keys_home,
        now=now,
        created_by=f"memgraph {release()}",
        lock_timeout_s=config.lock_timeout_s,
        allow_unverified=config.security_mode == "dev",
    )


def open_projector(
    config: AgentMemoryConfig, journal: Journal, folder: Path, engine: GraphEngine | None = None
) -> Projector:
    """Return a journal's projections, graph and index, both under `folder` unless a graph engine is given."""
    engine = engine or EmbeddedEngine(
        folder / "graph",
        journal.seal("graph"),
        VENDORS[config.engine],
        timeout_s=config.lock_timeout_s,
        idle_s=config.graph_idle_s,
    )
    return Projector(journal, engine, folder / "index" / "index.npz")


def utc_now() -> datetime:
    """Return the system time."""
    return datetime.now(UTC)


@cache
def release() -> str:
    """Return memgraph's version, read once: each reading parses the metadata of the installed package."""
    try:
        return version("memgraph-kuzu")
    except PackageNotFoundError:
        return "(source)"
