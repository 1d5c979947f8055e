"""``memgraph viz``: series, charts and exports from the shell, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import polars as pl
import pytest
from click.testing import CliRunner

from memgraph import MemGraph
from memgraph.interfaces.cli.group import cli
from memgraph.testing import FakeClock, FakeEmbedder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a store of three memories, one of them private, and return where it lies."""
    folder = tmp_path_factory.mktemp("viz")
    clock = FakeClock("2026-02-02T09:00:00.000Z")
    with MemGraph.open(
        folder / "store", keys_home=folder / "keys", embedder=FakeEmbedder(dimension=64), clock=clock
    ) as memory:
        base = {"type": "episodic", "project_id": "shop", "tags": ["t"]}
        first = memory.store.insert_memory({**base, "content": "The import failed"})
        clock.advance(days=1)
        second = memory.store.insert_memory({**base, "content": "The import went well"})
        memory.store.insert_memory({**base, "content": "A secret", "privacy_tier": "private"})
        memory.store.link(first.id, "RELATED_TO", second.id)
    return folder


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, place: Path, settings: Callable[[], Any]) -> Callable[..., Any]:
    monkeypatch.setenv("MEMGRAPH_KEYS_HOME", str(place / "keys"))

    def call(*args: object, home: object = place / "store") -> Any:
        return CliRunner().invoke(
            cli,
            ["--home", str(home), "viz", *map(str, args)],
            prog_name="memgraph",
            obj=settings(),
        )

    return call


@pytest.fixture
def done(run: Callable[..., Any]) -> Callable[..., str]:
    """Run a command that must succeed, and return what it printed on stdout."""

    def call(*args: object, **given: Any) -> str:
        result = run(*args, **given)
        assert result.exit_code == 0, result.output
        return str(result.stdout)

    return call


def test_series_are_json_unless_a_table_is_asked_for(done: Callable[..., str], tmp_path: Path) -> None:
    told = {one["name"]: one for one in json.loads(done("series", "--project", "shop", "--bucket", "day"))}
    assert len(told) == 12
    assert [point["value"] for point in told["live_memories"]["points"]] == [1, 3]
    assert told["recalls_served"]["points"] == []

    path = tmp_path / "series.parquet"
    assert done("series", "--parquet", path).startswith(f"Wrote 8 rows of 4 series to {path}")
    assert pl.read_parquet(path).filter(series="live_memories")["value"].to_list() == [1.0, 3.0]


def test_series_as_of_a_day_end_there(done: Callable[..., str]) -> None:
    (live, *_) = json.loads(done("series", "--as-of", "2026-02-02"))
    assert [point["value"] for point in live["points"]] == [1]


def test_a_store_of_nothing_has_series_of_nothing(
    done: Callable[..., str], run: Callable[..., Any], tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    assert all(one["points"] == [] for one in json.loads(done("series", home=empty)))
    refused = run("charts", tmp_path / "out", home=empty)
    assert (refused.exit_code, "nothing to draw" in refused.output) == (1, True)
    assert not (tmp_path / "out").exists()
    assert done("export", tmp_path / "g.graphml", home=empty).startswith(
        "Wrote 0 memories, 0 things that they name, 0 links and 0 steps"
    )


def test_charts_are_drawn_into_a_folder_and_what_has_no_data_is_named(done: Callable[..., str], tmp_path: Path) -> None:
    told = json.loads(done("charts", tmp_path / "a" / "b", "--json", "--until", "2026-02-02"))
    drawn = {"overview", "live_memories", "memories_added", "tags", "survival"}
    assert set(told["files"]) == {f"{name}.{kind}" for name in drawn for kind in ("png", "svg")}
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == told["files"]
    assert {"churn", "recalls_helped"} <= set(told["left_out"])


@pytest.mark.parametrize("suffix", ["json", "graphml", "gexf", "parquet"])
def test_the_ending_says_what_is_exported(done: Callable[..., str], tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"graph.{suffix}"
    told = json.loads(done("export", path, "--json"))
    assert (told["memories"], told["things"] > 0, told["next"]) == (2, True, 1)
    told = json.loads(done("export", path, "--json", "--memories-only"))
    assert (told["memories"], told["things"], told["links"], told["next"]) == (2, 0, 1, 1)
    assert [Path(one).exists() for one in told["files"]] == [True] * len(told["files"])
    if suffix == "json":
        read = nx.node_link_graph(json.loads(path.read_bytes()), edges="edges")
        assert {data["content"] for _, data in read.nodes(data=True)} == {"The import failed", "The import went well"}
        assert "Wrote 3 memories" in done("export", path, "--include", "private", "--project", "shop")
        only = ("--limit", "1", "--memories-only")
        assert "Wrote 1 memory, 0 things that they name, 0 links and 0 steps to" in done("export", path, *only)


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("export", "graph.txt"), 2, ".json, .graphml, .gexf, .parquet"),
        (("export", "graph.json", "--include", "secrets"), 2, "secrets"),
        (("export", "/nowhere/graph.json"), 1, "/nowhere/graph.json: cannot be written"),
        (("series", "--since", "2026-03-01", "--until", "2026-02-01"), 1, "is after until"),
        (("series", "--parquet", "/nowhere/s.parquet"), 1, "cannot be written"),
        (("charts", "/dev/null/charts", "--until", "2026-02-02"), 1, "cannot be written"),
        (("series", "--parquet", ""), 1, "must name a file"),
        (("charts", ""), 2, "OUTDIR is empty"),
        (("series", "--bucket", "day", "--since", "0001-01-01", "--until", "soon"), 1, "until: is not a date"),
        (("nothing",), 2, "No such command"),
    ],
)
def test_what_cannot_be_done_is_refused(
    run: Callable[..., Any], args: tuple[str, ...], code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memgraph.viz.charts.charts", lambda *_, **__: {"overview.png": b""})
    result = run(*args)
    assert (result.exit_code, said in result.output) == (code, True), result.output
    assert len(result.output.strip().splitlines()) <= 4


def test_its_help_imports_nothing_heavy() -> None:
    code = "import sys; from memgraph.interfaces.cli.viz.viz import viz; viz(['--help'], standalone_mode=False); print(*sys.modules, sep='\\n')"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "pydantic", "kuzu", "matplotlib", "pyarrow"} & set(ended.stdout.splitlines())
    assert all(name in ended.stdout for name in ("series", "charts", "export"))
