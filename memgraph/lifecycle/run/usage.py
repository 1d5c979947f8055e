"""What a run asks of models' servers, whoever of its parts asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from memgraph.model.model_usage import ModelUsage, UsageMeter
from memgraph.ports import Metered


class RunUsage:
    """The meters of a run's parts, each counted once: an embedder and an extractor may share one.

    Parameters
    ----------
    parts : callable
        Returns those that take part now: an embedder may be changed. Those that are not `Metered` ask no server.
    """

    def __init__(self, parts: Callable[[], Sequence[object]]) -> None:
        self._parts = parts

    def restart(self) -> None:
        """Begin a run: nothing is used, the budget is whole."""
        for meter in self._meters():
            meter.restart()

    def begin_stage(self) -> None:
        """Begin a stage of the run, such as one of its sources; the budget goes on."""
        for meter in self._meters():
            meter.begin_stage()

    def total(self) -> ModelUsage | None:
        """Return what the run has used; None if no server was asked, nor would have been."""
        return _sum(meter.usage for meter in self._meters())

    def of_stage(self) -> ModelUsage | None:
        """Return what its last stage has used; None as for `total`."""
        return _sum(meter.of_stage for meter in self._meters())

    def _meters(self) -> list[UsageMeter]:
        return list({id(part.meter): part.meter for part in self._parts() if isinstance(part, Metered)}.values())


def _sum(used: Iterable[ModelUsage]) -> ModelUsage | None:
    total = sum(used, ModelUsage())
    return total if total.calls or total.spent else None
