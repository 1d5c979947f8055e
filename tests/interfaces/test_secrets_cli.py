"""``secrets scan``: what a store holds of secrets that came before their kind was recognised."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph.interfaces.cli.group import cli

Run = Callable[..., Any]
TOKEN = (
    "glsa_" + "Ab3" * 10 + "Xy_0a1b2c3d"
)  # put together here, so that no scanner of this repository takes it for a real one
PASSWORD = "Blue-Horse-42"


@pytest.fixture
def run(tmp_path: Path, settings: Callable[[], Any]) -> Run:
    def call(*args: object) -> Any:
        line = ["--home", str(tmp_path / "store"), *map(str, args)]
        return CliRunner().invoke(cli, line, prog_name="memgraph", obj=settings())

    return call


@pytest.fixture
def ids(run: Run, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Memories that were stored while nothing was redacted, by what they hold."""
    monkeypatch.setenv("MEMGRAPH_REDACT_SECRETS", "false")
    texts = {
        "token": f"Read the dashboards with {TOKEN} in the nightly job",
        "tag": "Dashboards are exported as JSON before each release",
        "history": f"Everybody logs in to the staging server with password {PASSWORD}, and that is to change",
        "clean": "The staging server is called heron and runs Debian",
    }
    found = {name: json.loads(run("remember", text, "--json").stdout)["data"]["ids"][0] for name, text in texts.items()}
    assert run("tag", found["tag"], TOKEN).exit_code == 0
    assert run("edit", found["history"], "--content", "Nobody may log in to the staging server any more").exit_code == 0
    monkeypatch.delenv("MEMGRAPH_REDACT_SECRETS")
    return found


def in_files(tmp_path: Path, text: str) -> list[Path]:
    return [path for path in (tmp_path / "store").rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_a_scan_lists_what_holds_a_secret_and_never_shows_it(run: Run, ids: dict[str, str], tmp_path: Path) -> None:
    assert in_files(tmp_path, TOKEN)
    scanned, as_json = run("secrets", "scan"), run("secrets", "scan", "--json")

    assert scanned.exit_code == as_json.exit_code == 1
    for name in ("token", "tag", "history"):
        assert ids[name] in scanned.stdout
    assert ids["clean"] not in scanned.stdout
    assert "[redacted: Grafana token]" in scanned.stdout
    assert "(matched in its tags)" in scanned.stdout
    assert "(matched in an earlier version)" in scanned.stdout
    assert "secrets scan --purge --yes" in scanned.stderr
    for secret in (TOKEN, TOKEN[:20], PASSWORD):
        assert secret not in scanned.output + as_json.output
    assert {one["id"] for one in json.loads(as_json.stdout)["memories"]} == {ids["token"], ids["tag"], ids["history"]}


def test_secrets_are_purged_only_when_it_is_confirmed(run: Run, ids: dict[str, str], tmp_path: Path) -> None:
    refused = run("secrets", "scan", "--purge")
    assert (refused.exit_code, "add --yes" in refused.stderr) == (1, True)
    assert run("secrets", "scan", "--yes").exit_code == 2
    assert in_files(tmp_path, TOKEN)

    done = run("secrets", "scan", "--purge", "--yes")
    assert (done.exit_code, done.stdout.split(":")[0]) == (0, "Purged 3 memories")
    assert TOKEN not in done.output
    assert in_files(tmp_path, TOKEN) == in_files(tmp_path, PASSWORD) == []
    assert ids["clean"] in run("list", "--json").stdout
    assert run("verify").exit_code == 0


def test_a_store_without_secrets_is_clean(run: Run) -> None:
    run("remember", "The staging server is called heron")
    for options in ((), ("--purge",), ("--purge", "--yes")):
        scanned = run("secrets", "scan", *options)
        assert (scanned.exit_code, scanned.stdout) == (0, "No recognised secret is stored.\n")
    assert json.loads(run("secrets", "scan", "--json").stdout)["memories"] == []


def test_a_purge_of_every_memory_is_to_be_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMGRAPH_REDACT_SECRETS", "false")
    run("remember", f"Read the dashboards with {TOKEN}")

    refused = run("secrets", "scan", "--purge", "--yes")
    assert (refused.exit_code, "--all" in refused.stderr) == (1, True)
    assert run("secrets", "scan", "--purge", "--yes", "--all").exit_code == 0
    assert run("secrets", "scan").exit_code == 0


def test_a_secret_in_a_name_that_stays_is_reported_without_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMGRAPH_REDACT_SECRETS", "false")
    run("task", "new", "Rotate the token", "--id", TOKEN)

    scanned = run("secrets", "scan")
    assert scanned.exit_code == 1
    assert "id of a task" in scanned.stdout
    assert TOKEN not in scanned.output
    left = run("secrets", "scan", "--purge", "--yes", "--all")
    assert TOKEN not in left.output
