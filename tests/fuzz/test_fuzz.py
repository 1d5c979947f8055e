"""Hostile input at every door: refused with an error of memgraph's own, or taken and harmless; never a crash or a hang.

Each target runs a few hundred cases; with ``--long`` the numbers beside it, 50,000 and more in all.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import envelopes, formats, memories, queries, sources
from tests.fuzz.harness import SEED, Opening, Outcome, attempt, fuzz

TARGETS: dict[str, tuple[Opening, int, int]] = {
    "line": (envelopes.line_target, 600, 15_000),
    "journal": (envelopes.journal_target, 40, 3_000),
    "import": (memories.import_target, 80, 6_000),
    "memory": (memories.memory_target, 150, 10_000),
    "import-file": (memories.import_file_target, 30, 2_000),
    "builds": (sources.builds_target, 300, 8_000),
    "formats": (formats.formats_target, 400, 12_000),
    "history": (sources.history_target, 400, 10_000),
    "settings": (sources.settings_target, 300, 8_000),
    "guard": (queries.guard_target, 1_000, 30_000),
    "query": (queries.query_target, 15, 2_000),
}
FOUND = sorted((Path(__file__).parent / "found").glob("*.case"))


@pytest.mark.parametrize("name", TARGETS)
def test_nothing_but_errors_of_its_own(
    name: str, tmp_path: Path, pytestconfig: pytest.Config, outcomes: list[Outcome]
) -> None:
    opening, few, many = TARGETS[name]
    outcome = fuzz(name, opening, many if pytestconfig.getoption("--long") else few, tmp_path)
    outcomes.append(outcome)
    assert outcome.refused, "every case was accepted: the target does not refuse at all"
    if outcome.failures:
        told = "\n\n".join(outcome.failures.values())
        pytest.fail(
            f"{len(outcome.failures)} faults with seed {SEED}; put a case into tests/fuzz/found to repeat it\n{told}"
        )


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_was_found_once(path: Path, tmp_path: Path) -> None:
    opening, _, _ = TARGETS[path.stem.rsplit("-", 1)[0]]
    folder = tmp_path / "target"
    folder.mkdir()
    with opening(folder) as target:
        problem = attempt(target, path.read_bytes(), Outcome(path.stem))
    assert problem is None, problem
