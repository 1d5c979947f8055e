"""The benchmark runs from end to end, measures what it says, and compares what it should."""

from __future__ import annotations

import graphlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.figures import AIMS, MEANINGS, made_of
from tests.benchmarks.report import PeerResult, Report
from tests.test_architecture import imports

ROOT = Path(__file__).parents[1]
BENCHMARKS = "tests.benchmarks"
AT_LARGE_ONLY = {"bulk_last_call"}
ON_LINUX_ONLY = {"resident_now", "resident_own", "writer_now"}


@pytest.mark.long
def test_a_quick_run_measures_everything(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [
        sys.executable,
        str(ROOT / "tests" / "benchmarks" / "store.py"),
        "--quick",
        "--no-peers",
        "--memories",
        "60",
        "--json",
    ]
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path, env={"TMPDIR": str(temporary)}
    )
    assert ran.returncode == 0, ran.stderr + ran.stdout
    document = json.loads(ran.stdout)
    assert document["failures"] == []
    measured = {(figure["figure"], figure["statistic"]) for figure in document["figures"]}
    optional = AT_LARGE_ONLY | (set() if sys.platform == "linux" else ON_LINUX_ONLY)
    wanted = {(name, statistic) for name, meaning in MEANINGS.items() for statistic in meaning.statistics}
    assert {pair for pair in wanted - measured if pair[0] not in optional} == set()
    assert all(figure["value"] > 0 and figure["unit"] for figure in document["figures"])
    assert len(document["aims"]) == len(AIMS)
    assert list(temporary.iterdir()) == [], "the run left something behind"


@pytest.fixture
def report() -> Report:
    return Report(as_json=False)


def test_a_cost_is_compared_the_right_way_round(report: Report) -> None:
    report.measured(10, {"single": [8.0], "bulk": [6_000.0]})
    report.measured(100, {"single": [12.0], "bulk": [3_000.0]})
    costs = {cost["figure"]: cost["ratio"] for cost in report.costs([10, 100])}
    assert costs == {"single": 1.5, "bulk": 2.0}, "a rate that halves is a cost that doubles"
    met = {aim["what"]: aim["is_met"] for aim in report.aims(100)}
    assert met == {"insert": False, "bulk insert": False}


def test_a_ratio_is_memgraphs_figure_over_the_peers(report: Report, capsys: pytest.CaptureFixture[str]) -> None:
    for system, rate in (("memgraph", 500.0), ("sqlite", 2_000.0)):
        figures = list(made_of("bulk", MEANINGS["bulk"], [rate], memories=10, system=system))
        report.peers.append(PeerResult(system, 10, figures))
    assert report.ratios() == [{"peer": "sqlite", "memories": 10, "bulk": 0.25}]
    report.compare_peers()
    assert "0.250×" in capsys.readouterr().out


def test_percentiles_are_named_and_counted() -> None:
    p50, p95 = made_of("single", MEANINGS["single"], [float(n) for n in range(1, 101)], memories=10)
    assert (p50.statistic, p50.value, p50.of, p50.low, p50.high) == ("p50", 50.5, 100, 1.0, 100.0)
    assert (p95.statistic, round(p95.value, 2)) == ("p95", 95.05)


def import_graph(sources: dict[str, str]) -> dict[str, set[str]]:
    """Map each module to those of the same set that it imports, anywhere in its text."""
    graph = {}
    for module, source in sources.items():
        names = [name for _, name in imports(source, module)]
        known = {one for name in names for one in (name, name.rpartition(".")[0]) if one in sources}
        graph[module] = known - {module}
    return graph


def test_no_import_goes_in_a_circle() -> None:
    sources = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path.read_text("utf-8")
        for path in (ROOT / "tests" / "benchmarks").rglob("*.py")
    }
    graph = import_graph(sources)
    assert {f"{BENCHMARKS}.ablation", f"{BENCHMARKS}.memgraph_system"} <= graph[f"{BENCHMARKS}.retrieval"]
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError


def test_a_circle_of_imports_would_be_noticed() -> None:
    graph = import_graph({"a.b": "def late():\n    from a.c import name", "a.c": "from a import b"})
    with pytest.raises(graphlib.CycleError):
        graphlib.TopologicalSorter(graph).prepare()
