"""``memgraph ingest``: every kind, directories, several sources, and what is printed of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pytest_httpserver import HTTPServer

from memgraph.interfaces.agents.clients.catalogue import AGENTS
from memgraph.interfaces.cli.group import cli
from memgraph.interfaces.cli.learning.ingest import KINDS
from tests.chat_server import ChatServer
from tests.tables import raw_lines

FAILED = (
    '<testsuite name="{0}"><testcase name="{0}"><failure message="TypeError: {0} is undefined"/></testcase></testsuite>'
)
TRANSCRIPT = [
    {
        "type": "user",
        "sessionId": "s1",
        "cwd": "/home/ada/shop",
        "timestamp": "2026-03-01T10:00:00Z",
        "message": {"content": "Never deploy the shop on Fridays, because nobody is there to help"},
    }
]


@pytest.fixture
def run(tmp_path: Path, settings: Callable[[], Any]) -> Any:
    def call(*args: Any) -> Result:
        options = ["--home", str(tmp_path / "store")]
        arguments = [*options, "ingest", *map(str, args)]
        return CliRunner().invoke(cli, arguments, prog_name="memgraph", obj=settings())

    return call


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    folder = tmp_path / "reports"
    (folder / "below").mkdir(parents=True)
    (folder / "b.xml").write_text(FAILED.format("cart"), "utf-8")
    (folder / "below" / "a.xml").write_text(FAILED.format("till"), "utf-8")
    (folder / "notes.txt").write_text("no report", "utf-8")
    (folder / ".hidden.xml").write_text(FAILED.format("hidden"), "utf-8")
    (folder / "below" / "loop").symlink_to(folder)
    (folder / "below" / "link.xml").symlink_to(folder / "b.xml")
    return folder


def test_the_sessions_of_each_agent_that_has_readable_ones_are_a_kind() -> None:
    assert {one.agent for one in KINDS.values() if one.agent} == {
        one.name for one in AGENTS.values() if one.transcripts
    }


def test_every_kind_has_a_command_that_says_what_it_reads() -> None:
    told = CliRunner().invoke(cli, ["ingest", "--help"]).stdout
    for name, kind in KINDS.items():
        assert name in told
        shown = CliRunner().invoke(cli, ["ingest", name, "--help"])
        assert shown.exit_code == 0
        assert kind.about.split(":")[0] in " ".join(shown.stdout.split())


def test_a_directory_is_read_file_by_file_in_order_and_once(
    run: Any, reports: Path, settings: Callable[[], Any]
) -> None:
    told = json.loads(run("junit", reports, "--json").stdout)
    assert [report["path"] for report in told["reports"]] == [str(reports / "b.xml"), str(reports / "below" / "a.xml")]
    assert (told["total"]["builds"], told["total"]["read"], told["unreadable"]) == (2, 2, [])
    assert told["total"]["extracted"] + told["total"]["merged"] > 0
    again = json.loads(run("junit", reports, "--json").stdout)["total"]
    assert (again["read"], again["extracted"]) == (0, 0)
    arguments = ["--home", str(reports.parent / "store"), "list", "--json", "--project", "reports"]
    listed = CliRunner().invoke(cli, arguments, obj=settings())
    assert "is undefined" in listed.stdout


def test_text_has_a_line_per_source_and_a_total(run: Any, reports: Path) -> None:
    shown = run("junit", reports)
    assert shown.exit_code == 0
    first, second, total = shown.stdout.splitlines()[:3]
    assert first.startswith(f"{reports / 'b.xml'}: 1 build, ")
    assert second.startswith(f"{reports / 'below' / 'a.xml'}: 1 build, ")
    assert total.startswith("2 sources: read 2 records as 2 builds")
    assert "2 sources: nothing new." in run("junit", reports).stdout


def test_one_that_cannot_be_read_does_not_keep_the_others_from_it(run: Any, reports: Path) -> None:
    (reports / "a.xml").write_bytes(bytes(300))
    shown = run("junit", reports, "--json")
    assert shown.exit_code == 0
    told = json.loads(shown.stdout)
    assert told["total"]["builds"] == 2
    assert len(told["unreadable"]) == 1
    assert "binary" in told["unreadable"][0]
    assert f"memgraph: {reports / 'a.xml'} contains binary data" in shown.stderr


def test_a_directory_without_sources_does_not_keep_the_others_from_it(run: Any, tmp_path: Path, reports: Path) -> None:
    (tmp_path / "empty").mkdir()
    shown = run("junit", tmp_path / "empty", reports / "b.xml", "--json")
    assert shown.exit_code == 0
    told = json.loads(shown.stdout)
    assert (told["total"]["builds"], len(told["unreadable"])) == (1, 1)
    assert "contains no file for junit" in shown.stderr
    none = run("junit", tmp_path / "empty", tmp_path / "empty")
    assert (none.exit_code, none.stdout) == (1, "")
    assert "none of the 2 sources could be read" in none.stderr


def _session(module: str) -> str:
    steps = [
        {"action": "python a.py", "observation": f"ModuleNotFoundError: No module named '{module}'", "thought": "x"},
        {"action": f"pip install {module}", "observation": "ok", "thought": f"{module} is missing."},
        {"action": "python a.py", "observation": "ok", "thought": "It works."},
    ]
    return json.dumps({"trajectory": steps, "info": {"exit_status": "submitted", "submission": "diff"}})


def test_another_run_of_the_same_name_adds_and_a_copy_does_not(run: Any, tmp_path: Path) -> None:
    def extracted(folder: str, text: str) -> tuple[int, int]:
        path = tmp_path / folder / "ada__lamp-12.traj"
        path.parent.mkdir()
        path.write_text(text, "utf-8")
        os.utime(path, (1_700_000_000 + len(folder), 1_700_000_000))
        total = json.loads(run("trajectories", path, "--json").stdout)["total"]
        return total["extracted"], total["merged"]

    first = _session("lamps")
    assert extracted("a", first)[0] > 0
    assert extracted("b", _session("tills"))[0] > 0
    assert extracted("copied", first) == (0, 0)


def test_nothing_that_can_be_read_is_a_failure(run: Any, tmp_path: Path, reports: Path) -> None:
    for name in ("b.xml", "below/a.xml"):
        (reports / name).write_bytes(bytes(300))
    shown = run("junit", reports)
    assert shown.exit_code == 1
    assert "none of the 2 sources could be read" in shown.stderr
    one = run("junit", reports / "b.xml")
    assert (one.exit_code, one.stdout, one.stderr.count("\n")) == (1, "", 1)
    (tmp_path / "empty").mkdir()
    none = run("junit", tmp_path / "empty")
    assert (none.exit_code, none.stdout) == (1, "")
    assert "contains no file for junit (.xml)" in none.stderr


def test_codex_without_a_path_reads_codexs_own_sessions(
    run: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = Path(__file__).parents[1] / "fixtures" / "codex" / "session.jsonl"
    folder = tmp_path / "codex" / "sessions" / "2026" / "11" / "23"
    folder.mkdir(parents=True)
    (folder / "rollout-1.jsonl").write_bytes(recorded.read_bytes())
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    told = json.loads(run("codex", "--json").stdout)
    assert told["reports"][0]["source"] == "transcripts:019f0c3a-7d10-7c2e-9a55-20c0ffee0004"


def test_transcripts_without_a_path_are_claude_codes_own(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / ".claude"))
    folder = tmp_path / ".claude" / "projects" / "-home-ada-shop"
    folder.mkdir(parents=True)
    (folder / "s1.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in TRANSCRIPT), "utf-8")
    told = json.loads(run("transcripts", "--json").stdout)
    assert told["reports"][0]["source"] == "transcripts:s1"
    assert told["total"]["extracted"] == 1


def test_a_source_of_each_kind(run: Any, tmp_path: Path) -> None:
    sources = {
        "trajectories": ("run.traj", json.dumps({"trajectory": [{"action": "ls", "observation": "a"}]})),
        "reflexion": ("x_trial_0.json", json.dumps([{"name": "env_0", "memory": [], "is_success": True}])),
        "tau-bench": ("t.jsonl", json.dumps({"task_id": 1, "reward": 1.0, "traj": []})),
        "ci-log": ("c.log", "$ make\nok\n"),
    }
    for kind, (name, text) in sources.items():
        path = tmp_path / name
        path.write_text(text + "\n", "utf-8")
        told = json.loads(run(kind, path, "--project", "shop", "--json").stdout)
        assert told["total"]["builds"] == 1, kind


def test_several_build_logs_are_reported_like_other_sources(run: Any, tmp_path: Path) -> None:
    task = {"task_id": "t", "agent_name": "a", "description": "d", "outcome": "success"}
    for n in range(2):
        build = {"build_id": f"b{n}", "build_outcome": "success", "tasks": [task]}
        (tmp_path / f"{n}.json").write_text(
            json.dumps({**build, "started_at": "2026-01-01", "completed_at": "2026-01-02"})
        )
    told = json.loads(run("builds", tmp_path / "0.json", tmp_path / "1.json", "--json").stdout)
    assert told["total"]["builds"] == 2
    assert json.loads(run("builds", tmp_path / "0.json", "--json").stdout)["read"] == 0


def test_a_file_with_an_undecodable_name_is_reported_and_the_others_are_read(tmp_path: Path, run: Any) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in (b"a.log", b"m\xff.log", b"z.log"):
        (folder / os.fsdecode(name)).write_text(
            f"$ make {name!r}\nerror: no rule to make target {name!r}\n##[error]Process completed with exit code 2.\n"
        )
    result = run("ci-log", folder)
    assert result.exit_code == 0
    assert "has a name that is not UTF-8" in result.stderr
    assert "as 2 builds" in result.stdout


@pytest.mark.parametrize("length", range(200, 262, 7))
def test_half_a_secret_is_a_secret_too(tmp_path: Path, run: Any, length: int) -> None:
    secret = "q7" + "Zx9" * 10
    # an address ends its password with an @: without that, nobody would know it for one
    command = f"deploy {'x' * (length - 50)} postgres://bot:{secret}@shop.local --now {'y' * 300}"
    (tmp_path / "c.log").write_text(
        f"$ {command}\nerror: it failed with {'z' * 1_900} token='{secret}' and more\n##[error]Process completed with exit code 1.\n"
    )
    assert run("ci-log", tmp_path / "c.log").exit_code == 0
    kept = b"".join(raw_lines(tmp_path / "store")).decode()
    assert "error: it failed with" in kept
    assert not [part for part in (secret[at : at + 6] for at in range(len(secret) - 6)) if part in kept]


def test_a_folder_of_saved_logs_is_refused_with_the_right_command(run: Any, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "shop.log.txt").write_text("commit 0123456789abcdef0123456789abcdef01234567\n")
    said = run("git", tmp_path / "logs").stderr
    assert f"memgraph: {tmp_path / 'logs'} is not a git repository; " in said
    assert "memgraph ingest git FILE..." in said
    assert run("git", tmp_path / "none").stderr == f"memgraph: {tmp_path / 'none'} does not exist\n"
    assert "fatal" not in said


MARKDOWN = "# Notes\n\nNo transcript.\n"
NODE_TEST = "TAP version 13\n# Subtest: adds\nnot ok 1 - adds\n  ---\n  error: 'Expected 3'\n  ...\n1..1\n# fail 1\n"
UNREADABLE = {
    "markdown as a transcript": ("transcripts", "n.jsonl", MARKDOWN, "line 1: not JSON"),
    "objects as a transcript": ("transcripts", "n.jsonl", '{"foo": 1}\n', "no session entry"),
    "events as a transcript": ("transcripts", "n.jsonl", '{"type": "click"}\n', "no session entry"),
    "a node --test log": ("ci-log", "n.log", NODE_TEST, "contains no command or failure"),
    "an unknown trial": ("reflexion", "n.json", '{"trials": [1]}', "not a problem with a name and is_solved"),
    "unknown environments": ("reflexion", "n.json", '[{"id": 1}]', "not an object with is_success"),
    "trials as prose": ("reflexion", "n.txt", MARKDOWN, "none of Reflexion's formats"),
    "trials without questions": ("reflexion", "n.txt", "BEGIN TRIAL 0\nIt went well.\n", "no question"),
    "steps that are texts": ("trajectories", "n.traj", '{"trajectory": ["ls"]}', "step 0: not an object"),
    "steps of another form": ("trajectories", "n.traj", '{"trajectory": [{"tool": "ls"}]}', "step 0: has no action"),
    "other results": ("tau-bench", "n.json", '[{"score": 1}]', "not a trial with task_id, reward and traj"),
    "other builds": ("builds", "n.jsonl", '{"foo": 1}\n', "buildId: Field required"),
    "a page as a report": ("junit", "n.xml", "<html/>", "contains no <testsuite>"),
    "prose as a git log": ("git", "n.txt", MARKDOWN, "contains no line 'commit <sha>'"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_input_of_which_nothing_can_be_read_fails_each_time_and_says_why(run: Any, tmp_path: Path, case: str) -> None:
    kind, name, text, why = UNREADABLE[case]
    (tmp_path / name).write_text(text, "utf-8")
    for _ in range(2):
        shown = run(kind, tmp_path / name)
        assert shown.exit_code == 1
        assert why in shown.output
        assert "nothing new" not in shown.output.lower()


def test_when_nothing_of_several_can_be_read_all_are_told(run: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(MARKDOWN, "utf-8")
    (tmp_path / "b.jsonl").write_text('{"foo": 1}\n', "utf-8")
    shown = run("transcripts", tmp_path / "a.jsonl", tmp_path / "b.jsonl", "--json")
    told = json.loads(shown.stdout)
    assert shown.exit_code == 1
    assert shown.stderr.splitlines()[-1] == "memgraph: none of the 2 sources could be read"
    assert (told["total"]["skipped"], len(told["total"]["reasons"]), len(told["unreadable"])) == (2, 2, 1)


def test_what_could_not_be_read_of_a_readable_source_is_counted_and_told(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in [*TRANSCRIPT, {"foo": 1}, "text"]), "utf-8")
    shown = run("transcripts", path, "--json")
    told = json.loads(shown.stdout)["total"]
    assert shown.exit_code == 0
    assert (told["extracted"], told["skipped"]) == (1, 2)
    assert list(told["reasons"]) == ["line 2: no entry of a session", "line 3: not an object"]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in [*TRANSCRIPT, *[["no"]] * 300]), "utf-8")
    shown = run("transcripts", path)
    assert "Skipped 300 parts that could not be read:" in shown.stdout
    assert "… and 295 more" in shown.stdout


def test_the_called_model_is_named(run: Any, tmp_path: Path, httpserver: HTTPServer) -> None:
    server = ChatServer(httpserver)
    server.replies = ['{"memories": []}']
    config = tmp_path / "store" / "config.toml"
    config.parent.mkdir()
    config.write_text(f'extractor = "openai"\n[openai]\nbase_url = "{server.base_url}"\nmodel = "small"\n', "utf-8")
    source = tmp_path / "session.jsonl"
    source.write_text("\n".join(map(json.dumps, TRANSCRIPT)), "utf-8")
    result = run("transcripts", source)
    assert result.exit_code == 0, result.output
    assert len(server.asked) == 1
    assert "Called openai/small 1 time: 100 prompt tokens and 20 completion tokens" in result.output
