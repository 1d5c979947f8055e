"""``memgraph reembed``: the store changes, and the setting with it, in one line of the user's file."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memgraph.errors import EmbeddingError
from memgraph.interfaces.cli.group import cli
from memgraph.interfaces.cli.maintenance.settling import with_setting
from memgraph.testing import FakeEmbedder

TEXTS = ["Deploy on Tuesdays only", "Use pnpm, never npm", "The staging database is read-only"]
Run = Callable[..., Result]
TARGET = "ollama:other"


class Model(FakeEmbedder):
    """What stands for a model, which somebody may stop."""

    stops = False
    bad = ""

    def embed(self, texts: Any) -> Any:
        if self.stops:
            raise KeyboardInterrupt
        if self.bad in texts:
            raise EmbeddingError("it chokes on that")
        return super().embed(texts)


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    from memgraph.embedding import NoEmbedder

    made = {"minilm": Model(64, "all-MiniLM-L6-v2-int8"), TARGET: Model(32, "ollama/other"), "none": NoEmbedder()}
    for place in ("memgraph.store.store", "memgraph.embedding"):
        monkeypatch.setattr(f"{place}.default_embedder", lambda config: made[config.embedding_model])
    return made


@pytest.fixture
def run(models: Any, tmp_path: Path, configured: Callable[[], Any]) -> Run:
    def call(*args: str) -> Result:
        arguments = ["--home", str(tmp_path / "store"), *args]
        return CliRunner().invoke(cli, arguments, prog_name="memgraph", obj=configured())

    for text in TEXTS:
        assert call("remember", text).exit_code == 0
    return call


def test_a_store_and_its_setting_change(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "store" / "config.toml"
    path.write_text('# mine\nembedding_model = "minilm"  # packaged\n[retrieval_budget]\nepisodic = 4\n')
    path.chmod(0o640)

    done = run("reembed", TARGET)

    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == f"Embedded 3 memories with ollama/other.\nSet embedding_model to {TARGET} in {path}.\n"
    assert path.read_text() == f'# mine\nembedding_model = "{TARGET}"  # packaged\n[retrieval_budget]\nepisodic = 4\n'
    assert path.stat().st_mode & 0o777 == 0o640
    assert TEXTS[1] in run("recall", "pnpm or npm?").stdout
    assert "no problem found" in run("doctor").stdout
    again = run("reembed", TARGET)
    assert again.stdout == "The store already uses ollama/other: nothing to do.\n"
    back = json.loads(run("reembed", "minilm", "--json").stdout)
    assert back == {
        "model": "all-MiniLM-L6-v2-int8", "dimension": 64, "embedded": 3, "reused": 0, "awaiting": 0,
        "embedding_model": "minilm", "written": str(path), "to_set": None,
    }  # fmt: skip
    assert run("verify", "--deep").exit_code == 0


def test_without_a_settings_file_one_is_made(run: Run, tmp_path: Path) -> None:
    run("reembed", TARGET)
    path = tmp_path / "store" / "config.toml"
    assert path.read_text() == f'embedding_model = "{TARGET}"\n'
    assert path.stat().st_mode & 0o777 == 0o600
    assert run("stats").exit_code == 0


def test_where_the_environment_decides_it_says_so(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMGRAPH_EMBEDDING_MODEL", "minilm")
    done = run("reembed", TARGET)
    assert done.exit_code == 0
    assert f"Now set MEMGRAPH_EMBEDDING_MODEL={TARGET}: until then" in done.stdout
    assert not (tmp_path / "store" / "config.toml").exists()
    refused = run("recall", "pnpm")
    assert refused.exit_code == 1
    assert f"set embedding_model to {TARGET}, or switch" in refused.stderr
    doctor = run("doctor")
    assert f"set embedding_model to {TARGET}, or switch" in doctor.stdout + doctor.stderr
    monkeypatch.setenv("MEMGRAPH_EMBEDDING_MODEL", TARGET)
    assert run("recall", "pnpm").exit_code == 0
    assert run("reembed", "minilm").exit_code == 0


def test_stopped_it_says_how_to_go_on_and_nothing_is_changed(run: Run, models: Any, tmp_path: Path) -> None:
    models[TARGET].stops = True
    stopped = run("reembed", TARGET)
    assert stopped.exit_code == 130
    assert "run the same command again to continue" in stopped.stderr
    assert not (tmp_path / "store" / "config.toml").exists()
    assert run("recall", "pnpm").exit_code == 0


def test_what_the_model_refuses_waits_everywhere(run: Run, models: Any) -> None:
    models[TARGET].bad = TEXTS[1]
    done = run("reembed", TARGET)
    assert done.exit_code == 0
    assert "Embedded 2 memories with ollama/other; still without a vector: 1 (run `memgraph embed`).\n" in done.stdout
    assert "cannot be embedded" in done.stderr
    assert "1 memory has no vector" in run("doctor").stdout
    assert json.loads(run("stats", "--json").stdout)["awaiting_vectors"] == 1
    assert TEXTS[1] in run("recall", "pnpm or npm?").stdout
    models[TARGET].bad = ""
    assert run("embed").stdout == "Embedded 1 memory.\n"


@pytest.mark.parametrize(("model", "problem"), [("none", "none is not a model"), ("word2vec", "embedding_model")])
def test_what_is_no_model_is_refused(run: Run, model: str, problem: str) -> None:
    refused = run("reembed", model)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert problem in refused.stderr


def test_a_home_without_a_store_stays_as_it_is(models: Any, tmp_path: Path) -> None:
    refused = CliRunner().invoke(cli, ["--home", str(tmp_path / "mistyped"), "reembed", TARGET], prog_name="memgraph")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "there is no store yet" in refused.stderr
    assert not (tmp_path / "mistyped").exists()


def test_an_empty_store_does_not_change_to_a_model_that_is_not_there(
    models: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, configured: Callable[[], Any]
) -> None:
    def call(*args: str) -> Result:
        arguments = ["--home", str(tmp_path / "store"), *args]
        return CliRunner().invoke(cli, arguments, prog_name="memgraph", obj=configured())

    assert call("contradictions", "find").exit_code == 0

    def away(_texts: Any) -> Any:
        raise EmbeddingError("there is no such model")

    monkeypatch.setattr(models[TARGET], "embed", away)
    refused = call("reembed", TARGET)
    assert refused.exit_code == 1
    assert "there is no such model" in refused.stderr
    assert not (tmp_path / "store" / "config.toml").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", 'embedding_model = "m"\n'),
        ("a = 1", 'a = 1\nembedding_model = "m"\n'),
        ("a = 1\r\n\r\n[t]\r\nb = 2\r\n", 'a = 1\r\n\r\nembedding_model = "m"\r\n[t]\r\nb = 2\r\n'),
        ('# embedding_model = "x"\n', '# embedding_model = "x"\nembedding_model = "m"\n'),
        ("  embedding_model='x' # y\na = 1\n", '  embedding_model="m" # y\na = 1\n'),
        ('[t]\nembedding_model = "x"\n', 'embedding_model = "m"\n[t]\nembedding_model = "x"\n'),
        ('"embedding_model" = "x"\n', None),
        ('a = """\nembedding_model = "x"\n"""\n', None),
        ("not toml", None),
        ("\udcff", None),
    ],
)
def test_one_line_of_the_file_is_changed_or_none(old: str, new: str | None) -> None:
    text = old.encode("utf-8", "surrogateescape")
    made = with_setting(text, "embedding_model", "m")
    assert made == (new.encode() if new is not None else None)
    if made is not None:
        assert tomllib.loads(made.decode()) == {**tomllib.loads(old), "embedding_model": "m"}
