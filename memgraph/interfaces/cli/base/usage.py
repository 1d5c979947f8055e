"""What a run asked of models' servers, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memgraph.interfaces.cli.base.output import count

if TYPE_CHECKING:
    from memgraph.model.model_usage import ModelUsage


def usage_told(usage: ModelUsage | None) -> list[str]:
    """Return a line that says what was used, and another if the budget was spent; nothing if no server was asked."""
    if usage is None:
        return []
    failed = f", {count(usage.failures, 'failed one', 'failed ones')} among them" if usage.failures else ""
    tokens = f"{usage.prompt_tokens:,} tokens read and {usage.completion_tokens:,} written"
    lines = [f"Asked Ollama in {count(usage.calls, 'call', 'calls')}{failed}: {tokens}, {usage.seconds:.1f} s."]
    if usage.spent:
        lines.append(
            "The budget for models was spent; the rules served for the rest (see model_budget in `memgraph config show`)."
        )
    return lines
