"""``memgraph embed``, and what the other commands say of memories without vectors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memgraph.errors import EmbeddingError
from memgraph.interfaces.cli.group import cli
from memgraph.testing import FakeEmbedder
from tests.tables import VectorTable, table

TEXTS = ["Deploy on Tuesdays only", "Use pnpm, never npm", "The staging database is read-only"]
Run = Callable[..., Result]


class Model(FakeEmbedder):
    """What stands for the packaged model: it fails on all texts, or on one."""

    works = True
    bad = ""

    def embed(self, texts: Any) -> Any:
        if not self.works or self.bad in texts:
            raise EmbeddingError("the model cannot be loaded")
        return super().embed(texts)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Model:
    from memgraph.embedding import NoEmbedder

    made = Model(64)

    def chosen(config: Any) -> Any:
        return NoEmbedder() if config.embedding_model == "none" else made

    monkeypatch.setattr("memgraph.store.store.default_embedder", chosen)
    monkeypatch.setattr("memgraph.embedding.default_embedder", chosen)
    return made


@pytest.fixture
def run(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, configured: Callable[[], Any]) -> Run:
    """Run one command; ``model`` sets ``MEMGRAPH_EMBEDDING_MODEL``."""

    def call(*args: str, model: str = "minilm") -> Result:
        monkeypatch.setenv("MEMGRAPH_EMBEDDING_MODEL", model)
        arguments = ["--home", str(tmp_path / "store"), *args]
        return CliRunner().invoke(cli, arguments, prog_name="memgraph", obj=configured())

    return call


@pytest.fixture
def waiting(run: Run) -> None:
    """Three memories without vectors."""
    for text in TEXTS:
        result = run("remember", text, model="none")
        assert (result.exit_code, result.stderr) == (0, "")


def test_what_awaits_vectors_is_embedded(run: Run, waiting: None) -> None:
    stats = run("stats")
    assert "awaiting vectors   3\n" in stats.stdout
    assert "3 memories have no vector (run `memgraph embed`)" in run("doctor").stdout

    assert run("embed").stdout == "Embedded 3 memories.\n"

    assert json.loads(run("stats", "--json").stdout)["awaiting_vectors"] == 0
    again = run("embed")
    assert (again.exit_code, again.stdout) == (0, "Every memory has a vector.\n")
    assert json.loads(run("embed", "--json").stdout) == {"embedded": 0, "awaiting": 0}
    assert "no vector" not in run("doctor").stdout
    assert run("verify").exit_code == 0


def test_text_only_mode_says_how_to_get_a_model(run: Run, waiting: None) -> None:
    refused = run("embed", model="none")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.count("\n") == 1
    assert "MEMGRAPH_EMBEDDING_MODEL=minilm" in refused.stderr
    doctor = run("doctor", model="none")
    assert doctor.exit_code == 0
    assert " none: memories are found by text alone\n" in doctor.stdout
    assert "no problem found" in doctor.stdout
    assert json.loads(run("doctor", "--json", model="none").stdout)["model"]["available"] is False


def test_a_model_that_cannot_be_loaded_is_one_line(run: Run, waiting: None, model: Model) -> None:
    model.works = False
    refused = run("embed")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr == "memgraph: the model cannot be loaded\n"
    kept = run("remember", "one more")
    assert kept.exit_code == 0
    assert "memgraph embed" in kept.stderr
    model.works = True
    assert json.loads(run("embed", "--json").stdout) == {"embedded": 4, "awaiting": 0}


def test_a_text_that_cannot_be_embedded_is_named_and_the_others_are(run: Run, waiting: None, model: Model) -> None:
    ids = {entry["content"]: entry["id"] for entry in json.loads(run("list", "--json").stdout)}
    model.bad = TEXTS[1]
    done = run("embed")
    assert done.exit_code == 0
    assert done.stdout == "Embedded 2 memories; still without a vector: 1.\n"
    assert ids[TEXTS[1]] in done.stderr
    nothing = run("embed")
    assert nothing.exit_code == 1
    assert "still without a vector: 1" in nothing.stderr


def test_forget_and_ask_in_text_only_mode(run: Run, waiting: None) -> None:
    refused = run("forget", "no such thing", model="none")
    assert refused.exit_code == 1
    assert "own words" in refused.stderr
    done = run("forget", "deploy only on tuesdays", model="none")
    assert done.exit_code == 0
    assert TEXTS[0] in done.stdout
    assert "words alone" not in run("ask", "what happened?", model="none").stdout  # there are no episodes at all


@pytest.fixture
def kept(run: Run, tmp_path: Path) -> VectorTable:
    """Three memories with vectors; their table."""
    for text in TEXTS:
        assert run("remember", text).exit_code == 0
    (model,) = {row[1] for row in table(tmp_path / "store", "vector")}
    return VectorTable(tmp_path / "store", model)


NOTICE = (
    "memgraph: 3 vectors are damaged or missing, their memories are found by text alone: run `memgraph embed --repair`"
)


def test_every_command_serves_while_the_vectors_are_missing(run: Run, kept: VectorTable, tmp_path: Path) -> None:
    entry = json.loads(run("list", "--json").stdout)[0]
    kept.remove()
    told = [
        run("list"),
        run("show", entry["id"]),
        run("recall", "deploy"),
        run("search", "deploy"),
        run("ask", "deploy?"),
        run("export", str(tmp_path / "export.json")),
        run("embed"),
        run("remember", "one more"),
    ]
    for result in told:
        assert (result.exit_code, result.stderr.splitlines().count(NOTICE)) == (0, 1), result.output
    assert TEXTS[0] in told[2].stdout
    assert [run("stats").exit_code, run("viz", "page", str(tmp_path / "page.html")).exit_code] == [0, 0]


def test_repair_makes_the_vectors_again(run: Run, kept: VectorTable) -> None:
    before = kept.rows()
    assert run("embed", "--repair").stdout == "Compared 3 vectors with the journal: all are intact.\n"
    kept.cut(1, 44)
    kept.remove(2)
    done = run("embed", "--repair")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "Compared 3 vectors with the journal: 2 damaged or missing.",
        "  2 vectors recomputed, identical to the original",
    ]
    assert kept.rows() == before
    kept.remove()
    assert json.loads(run("embed", "--repair", "--json").stdout) == {
        "checked": 3, "damaged": 3, "restored": 3, "replaced": 0, "lost": 0, "failed": 0,
    }  # fmt: skip
    assert run("verify").exit_code == 0


def test_repair_reports_the_result_for_each(run: Run, kept: VectorTable, model: Model) -> None:
    first = json.loads(run("list", "--json").stdout)[0]
    assert run("delete", first["id"]).exit_code == 0
    kept.remove()
    other = next(text for text in TEXTS if text != first["content"])
    model.bad = other
    done = run("embed", "--repair")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[1:] == [
        "  1 vector recomputed, identical to the original",
        "  1 vector that no memory uses recorded as lost",
        "  1 memory not repaired: the model fails on the text",
    ]
    refused = run("embed", "--repair")
    assert (refused.exit_code, "no memory could be embedded" in refused.stderr) == (1, True)


def test_repair_without_a_model_is_one_line_and_changes_nothing(run: Run, kept: VectorTable, model: Model) -> None:
    kept.remove()
    model.works = False
    assert run("embed", "--repair").stderr == "memgraph: the model cannot be loaded\n"
    refused = run("embed", "--repair", model="none")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "MEMGRAPH_EMBEDDING_MODEL=minilm" in refused.stderr
    assert kept.rows() == {}
