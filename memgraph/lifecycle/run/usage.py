"""Use of model servers in a run, over all of its parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from memgraph.model.model_usage import ModelUsage, UsageMeter
from memgraph.ports import Metered


class RunUsage:
    """Meters of a run's parts, each counted once: an embedder and an extractor may share one.

    Parameters
    ----------
    parts : callable
        Returns the current parts: an embedder may be changed. Parts that are not `Metered` use no server.
    """

    def __init__(self, parts: Callable[[], Sequence[object]]) -> None:
        self._parts = parts

    def restart(self) -> None:
        """Begin a new run: reset the usage and the budget."""
        for meter in self._meters():
            meter.restart()

    def begin_stage(self) -> None:
        """Begin a stage of the run, such as one of its sources; the budget continues."""
        for meter in self._meters():
            meter.begin_stage()

    def total(self) -> ModelUsage | None:
        """Return the usage of the run; None if no part uses a server."""
        return _sum(meter.usage for meter in self._meters())

    def of_stage(self) -> ModelUsage | None:
        """Return the usage of the last stage; None as for `total`."""
        return _sum(meter.of_stage for meter in self._meters())

    def _meters(self) -> list[UsageMeter]:
        return list({id(part.meter): part.meter for part in self._parts() if isinstance(part, Metered)}.values())


def _sum(used: Iterable[ModelUsage]) -> ModelUsage | None:
    total = sum(used, ModelUsage())
    return total if total.calls or total.spent else None
