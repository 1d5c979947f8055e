"""Default parts of a store: journal, engine and clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from memgraph.config import AgentMemoryConfig
from memgraph.diagnostics.quotas import report_quota
from memgraph.diagnostics.reporting import check_targets
from memgraph.diagnostics.security import reason_of, report_finding, report_security
from memgraph.disk.files import free_bytes
from memgraph.errors import InvalidInputError, JournalError, NotAStoreError, StorageError
from memgraph.graph.connection import VENDORS
from memgraph.graph.engine import EmbeddedEngine
from memgraph.journal.journal import Journal
from memgraph.journal.keys.configured import configured_keys
from memgraph.journal.opening import id_of, open_journal
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


def open_store_journal(
    config: AgentMemoryConfig,
    keys: KeyProvider | None,
    now: Callable[[], str],
    *,
    with_expired_keys: bool = False,
    moves: bool = True,
) -> Journal:
    """Open the journal named by the settings; with expired keys only in order to reseal, to compact or to restore it. What concerns its trust is reported."""
    check_targets(config)
    tell = partial(report_security, config, now=now)
    if config.is_mode_refused:
        tell("mode_invalid", store_id=None)
    try:
        journal = open_journal(
            config.home,
            keys or configured_keys(config),
            keys_home=config.keys_home,
            now=now,
            created_by=f"memgraph {release()}",
            lock_timeout_s=config.lock_timeout_s,
            allow_unverified=config.security_mode == "dev" and config.allow_unsigned_replay,
            verification_days=None if with_expired_keys else config.key_verification_days,
            moves=moves,
        )
    except JournalError as error:
        tell(reason_of(error), store_id=known_id(config.home), error=error)
        raise
    if not journal.has_key:
        tell("dev_bypass", store_id=journal.store_id)
    journal.on_refused = lambda error: report_finding(config, error, now=now, store_id=journal.store_id)
    journal.on_unverified = lambda: tell("unsigned_replay", store_id=journal.store_id)
    journal.on_full = partial(_report_full, config, journal, now)
    return journal


def _report_full(config: AgentMemoryConfig, journal: Journal, now: Callable[[], str]) -> None:
    free = free_bytes(journal.path)
    report_quota(config, "disk", now=now, store_id=journal.store_id, value=free, limit=0, unit="bytes")


def known_id(home: Path) -> str | None:
    """Return the id in a store's manifest, if it can be read."""
    try:
        return id_of(home)
    except (StorageError, JournalError, NotAStoreError):
        return None


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
