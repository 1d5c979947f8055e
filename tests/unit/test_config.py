"""Settings come from arguments, then the environment, then the store's file, then the defaults."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from memgraph.config import AgentMemoryConfig, ConsolidationConfig, load_config, settings_in_force
from memgraph.errors import ConfigError, InvalidInputError, MemGraphError
from memgraph.store import AgentMemoryStore


def written(home: Path, text: str) -> Path:
    home.mkdir()
    (home / "config.toml").write_text(text, "utf-8")
    return home


def test_each_source_yields_to_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = written(
        tmp_path / "store", "lock_timeout_s = 1.0\narchive_retention_days = 1\ncompression_cycle_interval = 7\n"
    )
    monkeypatch.setenv("MEMGRAPH_LOCK_TIMEOUT_S", "2")
    monkeypatch.setenv("MEMGRAPH_ARCHIVE_RETENTION_DAYS", "2")
    monkeypatch.setenv("MEMGRAPH_KEYS_HOME", str(tmp_path / "keys"))

    settings = AgentMemoryConfig(home=home, archive_retention_days=3)

    assert (settings.archive_retention_days, settings.lock_timeout_s, settings.compression_cycle_interval) == (
        3,
        2.0,
        7,
    )
    assert settings.keys_home == tmp_path / "keys"
    assert settings.garbage_collection == "archive"


def test_both_spellings_are_one_setting(tmp_path: Path) -> None:
    home = written(tmp_path / "store", "archiveRetentionDays = 1\n")

    settings = AgentMemoryConfig.parse({"home": str(home), "keysHome": str(tmp_path / "given")})

    assert (settings.keys_home, settings.archive_retention_days) == (tmp_path / "given", 1)


def test_an_environment_given_takes_the_place_of_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMGRAPH_ARCHIVE_RETENTION_DAYS", "9")

    assert load_config({"home": tmp_path}, environment={}).archive_retention_days == 0
    assert (
        load_config({"home": tmp_path}, environment={"MEMGRAPH_ARCHIVE_RETENTION_DAYS": "4"}).archive_retention_days
        == 4
    )
    assert AgentMemoryConfig(home=tmp_path).archive_retention_days == 9


@pytest.mark.parametrize("text", ['home = "/elsewhere"\n', "lock_timeout_s = \n", "\ufeff= 1"])
def test_a_file_that_cannot_serve_is_named(tmp_path: Path, text: str) -> None:
    home = written(tmp_path / "store", text)

    for made in (lambda: AgentMemoryConfig(home=home), lambda: load_config({"home": home})):
        with pytest.raises(ConfigError, match=r"config\.toml"):
            made()


def test_a_wrong_setting_is_named(tmp_path: Path) -> None:
    home = written(tmp_path / "store", 'garbage_collection = "burn"\n')

    with pytest.raises(InvalidInputError, match="garbage_collection"):
        AgentMemoryConfig(home=home)
    with pytest.raises(ConfigError, match="garbage_collection"):
        load_config({"home": home})


def test_a_removed_setting_of_a_file_is_left_out_with_a_notice(tmp_path: Path, caplog: Any) -> None:
    home = written(
        tmp_path / "store",
        "journal_segment_days = 7\njournal_compression = false\ngraphIdleS = 2\nlock_timeout_s = 3\n",
    )
    assert load_config({"home": home}).lock_timeout_s == 3.0
    assert "journal_compression, which has no effect any more" in caplog.text
    assert "journal_segment_days, which has no effect any more" in caplog.text
    assert "graphIdleS, which has no effect any more" in caplog.text


@pytest.mark.parametrize("kind", ["device", "file", "loop"])
def test_a_home_that_is_no_directory_is_the_stores_matter(tmp_path: Path, kind: str, embedder: Any) -> None:
    home = Path(os.devnull)
    if kind == "file":
        home = tmp_path / "file"
        home.write_text("mine")
    elif kind == "loop":
        home = tmp_path / "loop"
        home.symlink_to(home)

    with pytest.raises(MemGraphError) as caught:
        AgentMemoryStore(load_config({"home": home}), embedder=embedder)

    assert str(home) in str(caught.value)
    assert "toml" not in str(caught.value).lower()


@pytest.mark.parametrize("home", ["a\x00b", "/tmp/\udcff", "~no-such-user-here/x", 7, None])
def test_a_home_that_names_no_place_is_refused(home: Any) -> None:
    with pytest.raises(InvalidInputError, match="home"):
        AgentMemoryConfig(home=home)


def test_a_relative_home_needs_a_directory_to_start_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    with pytest.raises(ConfigError, match="current directory"):
        load_config({"home": "store"})


ADDRESS = "https://anna:s3cr3t@models.example.org/v1"


@pytest.mark.parametrize(
    ("text", "variables", "setting"),
    [
        (f'[openai]\nbase_url = "{ADDRESS}"\n', {}, "openai.base_url"),
        (f'ollama_host = "{ADDRESS}"\n', {}, "ollama_host"),
        (f'ollama_host = "{ADDRESS}"\n[openai]\nbase_url = "{ADDRESS}"\n', {}, "base_url"),
        ("", {"MEMGRAPH_OLLAMA_HOST": ADDRESS}, "ollama_host"),
    ],
)
def test_a_password_in_an_address_is_refused_and_not_repeated(
    tmp_path: Path, text: str, variables: dict[str, str], setting: str
) -> None:
    home = written(tmp_path / "store", text)

    with pytest.raises(ConfigError, match="must not contain a user name or password") as refused:
        settings_in_force({"home": home}, environment=variables)

    assert setting in str(refused.value)
    assert "s3cr3t" not in str(refused.value)
    assert "anna" not in str(refused.value)


def test_seed_0s_limit_of_a_consolidation_is_accepted() -> None:
    seed_0 = {"maxDurationMs": 60_000, "maxMemoryMb": 128}
    assert ConsolidationConfig.parse(seed_0) == ConsolidationConfig()


def test_a_refused_mode_is_noted_for_its_own_settings_alone(tmp_path: Path) -> None:
    """Also if other settings beside it are refused, so that they are never made."""
    with pytest.raises(ConfigError):
        load_config({"home": tmp_path, "security_mode": "banana", "lock_timeout_s": "no"})
    assert not load_config({"home": tmp_path, "security_mode": "prod"}).is_mode_refused
    refused = load_config({"home": tmp_path, "security_mode": "banana"})
    assert refused.is_mode_refused
    assert refused.model_copy(update={"lock_timeout_s": 1.0}).is_mode_refused
    assert not load_config({"home": tmp_path}).is_mode_refused
