"""Formats a run's usage of language models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memgraph.interfaces.cli.base.output import count, plain

if TYPE_CHECKING:
    from memgraph.model.model_usage import ModelUsage


def usage_lines(usage: ModelUsage | None) -> list[str]:
    """Return a line with the calls, tokens and seconds, and one more if the budget was spent; nothing without a call."""
    if usage is None:
        return []
    failed = f" ({usage.failures:,} failed)" if usage.failures else ""
    tokens = f"{usage.prompt_tokens:,} prompt tokens and {usage.completion_tokens:,} completion tokens"
    called = plain(" and ".join(usage.models)) or "a model"
    lines = [f"Called {called} {count(usage.calls, 'time')}{failed}: {tokens}, {usage.seconds:.1f} s."]
    if usage.spent:
        lines.append("The model budget was spent; rules did the rest (see model_budget in `memgraph config show`).")
    return lines
