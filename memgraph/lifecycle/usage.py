"""What a run asks of models' servers, whoever of its parts asks."""

from __future__ import annotations

from memgraph.model.usage import ModelUsage, UsageMeter
from memgraph.ports import Metered


class RunUsage:
    """The meters of a run's parts, each counted once: an embedder and an extractor may share one.

    Parameters
    ----------
    parts : object
        Those that are not `Metered` ask no server.
    """

    def __init__(self, *parts: object) -> None:
        self._meters: dict[int, UsageMeter] = {
            id(part.meter): part.meter for part in parts if isinstance(part, Metered)
        }

    def restart(self) -> None:
        """Begin a run: nothing is used, the budget is whole."""
        for meter in self._meters.values():
            meter.restart()

    def total(self) -> ModelUsage | None:
        """Return what the run has used; None if no server was asked, nor would have been."""
        total = sum((meter.usage for meter in self._meters.values()), ModelUsage())
        return total if total.calls or total.spent else None
