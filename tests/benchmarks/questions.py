"""The question sets and the harness that scores them: third-party, never copied, read from the folder that a run names."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from tests.benchmarks.corpus import Doc, System

Result = dict[str, Any]
Question = dict[str, Any]
SETS = ("locomo", "hotpot", "musique", "2wiki")
HEADLINES = {
    "locomo": (("ALL", "R@10"), ("multi-hop", "R@10")),
    "hotpot": (("ALL", "R@5"),),
    "musique": (("ALL", "R@5"),),
    "2wiki": (("ALL", "R@5"),),
}
"""Category and measure that a set is known by; the first is the one that differences are taken of."""


class Harness:
    """A folder's ``harness.py`` over the folder's data.

    Parameters
    ----------
    folder : Path
        Holds ``harness.py`` and ``data``.
    """

    def __init__(self, folder: Path) -> None:
        self._module = _imported(folder / "harness.py")
        self._module.DATA = str(folder / "data")

    def evaluate(self, system: System, name: str, half: str) -> Result:
        """Put a set's questions to a system, and score what it finds."""
        found: Result = self._module.evaluate(system, name, half)
        return found

    def report(self, result: Result) -> str:
        """Return a result as the harness prints it."""
        return str(self._module.report(result))

    def load(self, name: str, half: str) -> tuple[dict[str, list[Doc]], list[Question]]:
        """Return a set's documents by store, and its questions."""
        stores, questions = self._module.load(name, half)
        return dict(stores), list(questions)

    def difference(self, one: Result, other: Result, measure: str) -> tuple[float, float, float]:
        """Return by how many points `other` is better, and the 95 % interval of the bootstrap over the questions (seed 0)."""
        difference, low, high = (100 * float(value) for value in self._module.paired(one, other, measure))
        return difference, low, high

    def distance(self, one: Result, other: Result, measure: str) -> str:
        """Return the difference as text: ``+3.1 [2.0, 4.2]``."""
        difference, low, high = self.difference(one, other, measure)
        return f"{difference:+.1f} [{low:.1f}, {high:.1f}]"


def _imported(path: Path) -> Any:
    """Import a module by its file."""
    spec = importlib.util.spec_from_file_location("question_harness", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise SystemExit(f"{path}: no harness there; --bench names the folder of harness.py and data")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
