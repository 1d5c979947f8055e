"""``memgraph config``: the file that it writes, and what it says is in force."""

from __future__ import annotations

import json
import re
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memgraph.config import (
    _ENVIRONMENT,
    OUTSIDE_THE_STORE,
    AgentMemoryConfig,
    config_path,
    default_settings,
    load_config,
)
from memgraph.errors import ConfigError
from memgraph.interfaces.cli.group import cli
from memgraph.interfaces.cli.maintenance.config import default_text

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def call(*args: str) -> Result:
        return CliRunner().invoke(cli, ["--home", str(tmp_path / "store"), "config", *args], prog_name="memgraph")

    return call


def uncommented(text: str) -> str:
    return re.sub(r"^# (?=\w+ = )", "", text, flags=re.MULTILINE)


def test_the_file_holds_every_setting_with_its_default_and_its_variable() -> None:
    text = default_text()
    stored = tomllib.loads(uncommented(text))
    names = {one.name for one in default_settings()} - {"home", "agents", *OUTSIDE_THE_STORE}
    assert stored.pop("agents") == {}  # a table for each agent
    flat = {
        f"{name}.{inner}" if isinstance(value, dict) else name: part
        for name, value in stored.items()
        for inner, part in (value if isinstance(value, dict) else {name: value}).items()
    }
    assert flat.keys() == names
    everything = AgentMemoryConfig.model_fields.keys() - {"home", "agents"}
    assert {name.partition(".")[0] for name in names} | OUTSIDE_THE_STORE == everything
    inside = {name for name, field in _ENVIRONMENT.items() if field not in {"home", *OUTSIDE_THE_STORE}}
    assert all(f"Environment: {name}\n" in text for name in inside)
    assert all(f"#   {name}: " in text for name in _ENVIRONMENT.keys() - inside)
    assert all(one.meaning and one.meaning[:20] in text for one in default_settings() if one.name != "home")
    assert max(len(line) for line in text.splitlines() if "keys_home" not in line) <= 100  # which holds a path


@pytest.mark.parametrize("change", [str, uncommented])
def test_the_file_changes_nothing_as_it_is_and_with_every_line_taken_in(tmp_path: Path, change: Any) -> None:
    plain = load_config({"home": tmp_path}, environment={})
    (tmp_path / "config.toml").write_text(change(default_text()), "utf-8")
    assert load_config({"home": tmp_path}, environment={}) == plain


def test_init_writes_it_once(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "store" / "config.toml"
    assert run("init").exit_code == 0
    assert path.read_text("utf-8") == default_text()
    assert (stat.S_IMODE(path.stat().st_mode), stat.S_IMODE(path.parent.stat().st_mode)) == (0o600, 0o700)
    path.write_text("mine", "utf-8")
    again = run("init")
    assert (again.exit_code, path.read_text("utf-8")) == (1, "mine")
    assert "--force" in again.stderr
    assert json.loads(run("init", "--force", "--json").stdout) == {"path": str(path)}
    assert path.read_text("utf-8") == default_text()


def test_a_store_can_be_made_where_only_settings_are(run: Run, tmp_path: Path, open_store: Any) -> None:
    assert run("init").exit_code == 0
    assert open_store().get_stats().total == 0
    assert run("init", "--force").exit_code == 0


def test_init_writes_into_no_other_directory(run: Run, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "thesis.doc").write_text("mine", "utf-8")
    refused = run("init", "--force")
    assert refused.exit_code == 1
    assert "not a memgraph store" in refused.stderr
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["thesis.doc"]


def test_show_names_the_origin_of_each_value(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "config.toml").write_text(
        "archiveRetentionDays = 3\nlock_timeout_s = 1\n[retrieval_budget]\nmaxTokens = 500\n", "utf-8"
    )
    monkeypatch.setenv("MEMGRAPH_LOCK_TIMEOUT_S", "7")
    monkeypatch.setenv("MEMGRAPH_KEY", "5ec2e7" * 16)
    monkeypatch.setenv("MEMGRAPH_OPENAI_KEY", "5ec2e7")
    shown = run("show", "--json")
    document = json.loads(shown.stdout)
    told = {name: (one["value"], one["source"]) for name, one in document["settings"].items()}
    assert told["home"] == (str(tmp_path / "store"), "argument")
    assert told["lock_timeout_s"] == (7.0, "environment")
    assert told["archive_retention_days"] == (3, "file")
    assert told["retrieval_budget.max_tokens"] == (500, "file")
    assert told["retrieval_budget.episodic"] == (5, "default")
    assert told["security_mode"] == ("prod", "default")
    assert told.keys() == {one.name for one in default_settings()}
    others = ("MEMGRAPH_SESSION", "MEMGRAPH_LOG", "MEMGRAPH_WORKER", "MEMGRAPH_WORKER_IDLE_S", "MEMGRAPH_WORKER_DIR")
    secrets = {"MEMGRAPH_KEY": "set", "MEMGRAPH_OPENAI_KEY": "set"}
    assert document["environment"] == {**secrets, **dict.fromkeys(others)}
    text = run("show").stdout
    assert "MEMGRAPH_LOCK_TIMEOUT_S" in text
    assert "5ec2e7" not in text + shown.stdout
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == ["config.toml"]


def test_show_prints_the_permissions_of_agents(run: Run, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    given = '[agents.coach]\ndomain = "health"\nwrite = ["health"]\n[agents."odd name"]\nsearch = []\n'
    (tmp_path / "store" / "config.toml").write_text(given, "utf-8")
    shown = run("show", "--json")
    assert shown.exit_code == 0, shown.output
    agents = json.loads(shown.stdout)["settings"]["agents"]
    assert agents["source"] == "file"
    assert agents["value"] == {
        "coach": {"domain": "health", "read": ["*"], "search": ["*"], "write": ["health"]},
        "odd name": {"domain": None, "read": ["*"], "search": [], "write": ["*"]},
    }
    (line,) = [line for line in run("show").stdout.splitlines() if line.startswith("agents ")]
    text = line.removeprefix("agents").strip().removesuffix("(file)")
    parsed = tomllib.loads(f"agents = {text}")["agents"]
    assert parsed["coach"] == {"domain": "health", "read": ["*"], "search": ["*"], "write": ["health"]}
    assert parsed["odd name"]["search"] == []


def test_show_makes_nothing(run: Run, tmp_path: Path) -> None:
    assert run("show").exit_code == 0
    assert not (tmp_path / "store").exists()


def test_show_refuses_what_loading_refuses_and_init_mends_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "config.toml").write_text("graph_idel_s = 3\n", "utf-8")
    refused = run("show")
    assert refused.exit_code == 1
    assert "graph_idel_s" in refused.stderr
    assert run("init", "--force").exit_code == 0
    assert run("show").exit_code == 0


def test_a_table_given_goes_before_the_files_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[retrieval_budget]\nepisodic = 1\nsemantic = 9\n", "utf-8")
    assert load_config({"home": tmp_path}).retrieval_budget.semantic == 9
    budget = load_config({"home": tmp_path, "retrieval_budget": {"episodic": 2}}).retrieval_budget
    assert (budget.episodic, budget.semantic) == (2, 3)


@pytest.mark.parametrize(
    ("variable", "value"), [("MEMGRAPH_ARCHIVE_RETENTION_DAYS", "soon"), ("MEMGRAPH_LOCK_TIMEOUT_S", "-1")]
)
def test_a_wrong_variable_is_refused_by_its_setting(tmp_path: Path, variable: str, value: str) -> None:
    with pytest.raises(ConfigError, match=_ENVIRONMENT[variable]):
        load_config({"home": tmp_path}, environment={variable: value})


def test_an_empty_variable_is_none(tmp_path: Path) -> None:
    assert load_config({"home": tmp_path}, environment=dict.fromkeys(_ENVIRONMENT, "")).lock_timeout_s == 10.0


def test_every_setting_of_one_value_has_a_variable() -> None:
    """A new setting cannot be forgotten in the environment."""
    of_one_value = {one.name for one in default_settings() if "." not in one.name} - {"agents", "database"}
    assert of_one_value == set(_ENVIRONMENT.values())


def test_the_path_is_known_without_reading_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("no toml", "utf-8")
    assert (
        config_path(tmp_path) == config_path(environment={"MEMGRAPH_HOME": str(tmp_path)}) == tmp_path / "config.toml"
    )
    with pytest.raises(ConfigError, match="home"):
        config_path("\udcff")
