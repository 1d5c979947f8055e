"""Diagnostics of lifecycle runs: a record of each run, and of the limits that it reached."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from memgraph.diagnostics.reports import RunNotes, report_quota, reported_run
from memgraph.disk.files import beyond, size_on_disk
from memgraph.model.base import Model
from memgraph.model.model_usage import ModelUsage
from memgraph.model.results.learning import OrdersResult
from memgraph.store import AgentMemoryStore


@contextmanager
def reported(store: AgentMemoryStore, run: str) -> Iterator[RunNotes]:
    """Report a block as a run, and after it the store's size if that is above ``max_memory_mb``. A step of another run is a part of it."""
    with reported_run(store.config, run, now=store.now, store_id=store.store_id) as notes:
        yield notes
    if not notes.is_step:
        _report_size(store)


def counts_of(result: Model) -> dict[str, int]:
    """Return the counts among a result's fields."""
    values = {name: getattr(result, name) for name in type(result).model_fields}
    return {name: value for name, value in values.items() if type(value) is int}


def report_budget(store: AgentMemoryStore, usage: ModelUsage | None) -> None:
    """Report a model budget that was spent, with the first of its limits that was reached."""
    if usage is None or not usage.spent:
        return
    budget = store.config.model_budget
    tokens = usage.prompt_tokens + usage.completion_tokens
    used = {"calls": (usage.calls, budget.calls), "tokens": (tokens, budget.tokens), "seconds": (usage.seconds, budget.seconds)}  # fmt: skip
    reached = [(unit, value, limit) for unit, (value, limit) in used.items() if value >= limit]
    for unit, value, limit in reached[:1] or [("calls", *used["calls"])]:
        report_quota(store.config, "model_budget", now=store.now, store_id=store.store_id, value=value, limit=limit, unit=unit)  # fmt: skip


def report_orders(store: AgentMemoryStore, found: OrdersResult) -> OrdersResult:
    """Report work orders that were not made because of ``distil_orders_a_day``; return the result."""
    if (left_out := found.candidates - found.requested) > 0:
        most = store.config.distil_orders_a_day
        report_quota(store.config, "distil_orders_a_day", now=store.now, store_id=store.store_id, value=left_out, limit=most, unit="orders")  # fmt: skip
    return found


def _report_size(store: AgentMemoryStore) -> None:
    most = store.config.max_memory_mb
    if most and beyond(size := size_on_disk(store.config.home), most):
        report_quota(store.config, "max_memory_mb", now=store.now, store_id=store.store_id, value=size, limit=most * 1_000_000, unit="bytes")  # fmt: skip
