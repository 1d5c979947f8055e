"""``memgraph connect`` and ``disconnect``: what is written, what the user changed meanwhile, and what is left behind."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memgraph import MemGraph
from memgraph.extraction.llm.asking import cautious_tokens
from memgraph.extraction.readers import TranscriptReader
from memgraph.interfaces.agents.asking import ANSWER_TOKENS
from memgraph.interfaces.agents.connecting.change import Part
from memgraph.interfaces.agents.connecting.files import OwnFiles
from memgraph.interfaces.agents.connecting.receipt import Options, Receipt
from memgraph.interfaces.cli.group import cli
from memgraph.lifecycle.orders import MAX_ASKED
from tests.tables import break_database

INPUTS = Path(__file__).parents[1] / "fixtures" / "inputs"
FILES = [".claude-plugin/plugin.json", ".mcp.json", "hooks/hooks.json", "skills/memgraph/SKILL.md"]


@pytest.fixture
def home(isolated_environment: Path) -> Path:
    """Return the user's home, in which Claude Code has been used."""
    folder = isolated_environment / ".claude"
    (folder / "skills" / "mine").mkdir(parents=True)
    (folder / "skills" / "mine" / "SKILL.md").write_text("my own", "utf-8")
    (folder / "settings.json").write_text('{"hooks": {}}', "utf-8")
    return isolated_environment


@pytest.fixture
def plugin(home: Path) -> Path:
    return home / ".claude" / "skills" / "memgraph"


@pytest.fixture
def run(tmp_path: Path, settings: Callable[[], Any]) -> Callable[..., Result]:
    def call(*args: Any, **options: Any) -> Result:
        arguments = ["--home", str(tmp_path / "store"), *map(str, args)]
        return CliRunner().invoke(cli, arguments, prog_name="memgraph", obj=settings(), **options)

    return call


def tree(folder: Path) -> dict[str, bytes | None]:
    """Return everything below a directory with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def test_connecting_writes_a_plugin_and_edits_no_file_of_the_user(
    run: Any, home: Path, plugin: Path, tmp_path: Path
) -> None:
    before = tree(home / ".claude")
    result = run("connect", "claude-code")
    assert result.exit_code == 0, result.output
    assert sorted(name for name, data in tree(plugin).items() if data is not None) == FILES
    after = tree(home / ".claude")
    assert {name: after[name] for name in before} == before
    assert not list(plugin.parent.glob(".*"))
    assert stat.S_IMODE(plugin.stat().st_mode) == stat.S_IMODE(plugin.parent.stat().st_mode)
    hooks = json.loads((plugin / "hooks" / "hooks.json").read_bytes())["hooks"]
    assert list(hooks) == ["SessionStart", "UserPromptSubmit", "PostToolUseFailure", "Stop", "SessionEnd"]
    for entries in hooks.values():
        (hook,) = entries[0]["hooks"]
        assert Path(hook["command"]).is_absolute()
        assert Path(hook["command"]).name == "memgraph-hook"
        assert hook["args"][0] == "claude-code"
        assert hook["args"][-2:] == ["--home", str(tmp_path / "store")]
        assert float(hook["args"][2]) < hook["timeout"], "the hook gives up before the client ends it"
    server = json.loads((plugin / ".mcp.json").read_bytes())["mcpServers"]["memgraph"]
    assert Path(server["command"]).is_absolute()
    assert (server["args"], server["alwaysLoad"]) == (["mcp", "--agent", "claude-code"], True)
    assert server["env"] == {"MEMGRAPH_HOME": str(tmp_path / "store")}
    assert (tmp_path / "store" / "memgraph.db").is_file(), "without a store the hooks would do nothing"


def test_the_default_store_is_not_named(home: Path, plugin: Path, settings: Any, monkeypatch: Any) -> None:
    monkeypatch.delenv("MEMGRAPH_HOME")
    result = CliRunner().invoke(cli, ["connect", "claude-code"], obj=settings())
    assert result.exit_code == 0, result.output
    assert "env" not in json.loads((plugin / ".mcp.json").read_bytes())["mcpServers"]["memgraph"]
    assert "--home" not in (plugin / "hooks" / "hooks.json").read_text("utf-8")


def test_disconnecting_leaves_everything_as_it_was(run: Any, home: Path, plugin: Path) -> None:
    before = tree(home)
    assert run("connect", "claude-code").exit_code == 0
    assert run("connect", "claude-code").exit_code == 0, "it is idempotent"
    shown = run("disconnect", "claude-code")
    assert shown.exit_code == 0
    assert shown.stdout.splitlines() == ["Removed 4 files of Claude Code."]
    after = {name: data for name, data in tree(home).items() if not name.startswith(("keys", "memgraph"))}
    assert after == before
    again = run("disconnect", "claude-code")
    assert (again.exit_code, again.stdout) == (0, "Claude Code was not connected.\n")


@pytest.mark.parametrize("is_empty", [True, False])
def test_the_directory_that_claude_code_makes_for_the_plugin_goes_if_it_is_empty(
    run: Any, home: Path, is_empty: bool
) -> None:
    data = home / ".claude" / "plugins" / "data" / "memgraph-skills-dir"
    run("connect", "claude-code")
    data.mkdir(parents=True)
    if not is_empty:
        (data / "mine").write_text("x", "utf-8")
    run("disconnect", "claude-code")
    assert data.exists() is not is_empty
    assert data.parent.exists()


def test_directories_that_connecting_made_go_too(run: Any, isolated_environment: Path) -> None:
    assert run("connect", "claude-code").exit_code == 0
    assert (isolated_environment / ".claude").is_dir()
    assert run("disconnect", "claude-code").exit_code == 0
    assert not (isolated_environment / ".claude").exists()


def test_what_the_user_changed_or_added_stays(run: Any, home: Path, plugin: Path) -> None:
    run("connect", "claude-code")
    skill, note = plugin / "skills" / "memgraph" / "SKILL.md", plugin / "note.md"
    skill.write_text("mine now", "utf-8")
    note.write_text("also mine", "utf-8")
    listed = json.loads(run("connect", "--json").stdout)[0]
    assert (listed["state"], listed["changed"], listed["extra"]) == ("connected" if not listed["missing"] else "incomplete", [str(skill)], [str(note)])  # fmt: skip
    assert run("connect", "claude-code").exit_code == 0
    assert skill.read_text("utf-8") == "mine now"
    shown = json.loads(run("disconnect", "claude-code", "--json").stdout)
    assert shown["kept"] == [str(skill), str(note)]
    left = {name: data for name, data in tree(plugin).items() if data is not None}
    assert left == {"skills/memgraph/SKILL.md": b"mine now", "note.md": b"also mine"}
    refused = run("connect", "claude-code")
    assert refused.exit_code == 1
    assert "was not written by `memgraph connect`" in refused.stderr
    assert {name: data for name, data in tree(plugin).items() if data is not None} == left


def test_options_are_changed_by_connecting_again(run: Any, plugin: Path, home: Path, tmp_path: Path) -> None:
    run("connect", "claude-code", "--answer-orders")
    server = json.loads((plugin / ".mcp.json").read_bytes())["mcpServers"]["memgraph"]
    assert server["args"] == ["mcp", "--agent", "claude-code", "--toolset", "full", "--answer-orders"]
    assert "asked to answer work orders" in run("connect").stdout
    assert json.loads(run("connect", "claude-code", "--json").stdout)["answer_orders"], "the choice is kept"
    run("connect", "claude-code", "--no-answer-orders")
    server = json.loads((plugin / ".mcp.json").read_bytes())["mcpServers"]["memgraph"]
    assert server["args"] == ["mcp", "--agent", "claude-code"]
    assert "asked to answer work orders" not in run("connect").stdout


@pytest.mark.parametrize("choice", ["y", "n"])
def test_a_person_is_asked_once_whether_the_agent_may_be_asked(
    run: Any, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, choice: str
) -> None:
    question = "May Claude Code be asked?"
    assert question not in run("connect", "claude-code").stderr, "nobody is there"
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
    assert run("connect", "claude-code").exit_code == 130, "there is no answer"
    assert "be asked?" not in run("connect", "copilot").stderr, "its sessions are not read"
    asked = run("connect", "claude-code", input=choice)
    assert asked.exit_code == 0, asked.output
    assert asked.stderr.index("tokens to read") < asked.stderr.index(question)
    assert ("asked to answer work orders" in asked.stdout) == (choice == "y")
    again = run("connect", "claude-code")
    assert (again.exit_code, question in again.stderr) == (0, False)
    assert json.loads(run("connect", "claude-code", "--json").stdout)["answer_orders"] == (choice == "y")


def transcript(folder: Path, session: str, turns: int) -> Path:
    """Write a session of Claude Code in which no request had more than 5,070 tokens in its context."""
    lines = []
    for number in range(turns):
        common = {"sessionId": session, "cwd": str(folder), "timestamp": f"2026-03-01T10:{number:02d}:00.000Z"}
        usage = {
            "input_tokens": 20,
            "cache_creation_input_tokens": 50,
            "cache_read_input_tokens": 5_000 - turns + number + 1,
        }
        said = f"And what about case {number} of the timetable? {'It is late. ' * 40}"
        answer = {"content": [{"type": "text", "text": f"Case {number} is like the others."}], "usage": usage}
        lines += [common | {"type": "user", "message": {"role": "user", "content": said}}]
        lines += [common | {"type": "assistant", "message": {"role": "assistant", **answer}}]
    path = folder / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, lines)) + "\n", "utf-8")
    return path


def test_the_cost_is_that_of_the_orders_which_the_users_own_sessions_would_cause(
    run: Any, home: Path, open_store: Any
) -> None:
    def cost() -> dict[str, int]:
        shown = run("connect", "claude-code", "--answer-orders", "--dry-run", "--json")
        return json.loads(shown.stdout)["cost"]

    none = cost()
    assert (none["sessions"], none["asked"], none["context"]) == (0, 0, 0)
    folder = home / ".claude" / "projects" / "shop"
    transcript(folder, "short", 4)
    assert cost() == none | {"sessions": 1}
    path = transcript(folder, "long", 59)
    transcript(folder / "long" / "subagents", "agent-1", 59)
    memory = MemGraph(open_store("other"))
    memory.ingest(TranscriptReader(path))
    orders = memory.distillation.list(limit=MAX_ASKED)
    assert len(orders) > 1
    read = sum(cautious_tokens(memory.distillation.show(one.id).prompt) for one in orders)
    written = len(orders) * ANSWER_TOKENS
    assert cost() == {"sessions": 2, "asked": 1, "read": read, "written": written, "context": 5_070}
    assert read < none["read"]
    assert f"{read:,} tokens to read" in " ".join(run("connect", "claude-code", "--answer-orders").stdout.split())
    assert json.loads(run("connect", "claude-code", "--json").stdout)["cost"] is None


def test_a_dry_run_writes_nothing(run: Any, home: Path, plugin: Path) -> None:
    before = tree(home)
    shown = run("connect", "claude-code", "--dry-run")
    assert shown.stdout.splitlines() == [f"Would write {plugin / name}" for name in FILES]
    assert json.loads(run("connect", "claude-code", "--dry-run", "--json").stdout)["is_dry_run"] is True
    assert tree(home) == before
    run("connect", "claude-code")
    connected = tree(home)
    assert run("connect", "claude-code", "--dry-run").stdout == "Nothing to write: all of it is there.\n"
    asked = run("connect", "claude-code", "--dry-run", "--answer-orders")
    assert asked.stdout.splitlines()[0] == f"Would write {plugin / '.mcp.json'}"
    assert "Would remove 4 files" in run("disconnect", "claude-code", "--dry-run").stdout
    assert tree(home) == connected


def test_all_agents_are_listed_with_where_they_were_found(run: Any, home: Path, monkeypatch: Any) -> None:
    binaries = home / "bin"
    binaries.mkdir()
    (binaries / "codex").write_text("#!/bin/sh\n", "utf-8")
    (binaries / "codex").chmod(0o755)
    monkeypatch.setenv("PATH", str(binaries))
    found = {one["name"]: one for one in json.loads(run("connect", "--json").stdout)}
    assert list(found) == ["claude-code", "codex", "copilot", "gemini", "opencode", "cursor"]
    assert (found["claude-code"]["state"], found["claude-code"]["folder"]) == ("not connected", str(home / ".claude"))
    assert (found["codex"]["state"], found["codex"]["binary"]) == ("not connected", str(binaries / "codex"))
    assert (found["cursor"]["binary"], found["cursor"]["folder"]) == (None, None)
    assert "codex        not connected; found: " in run("connect").stdout


@pytest.mark.parametrize("agent", ["claude-code", "codex", "opencode", "cursor"])
def test_an_agent_is_not_found_by_what_connecting_wrote(
    run: Any, isolated_environment: Path, monkeypatch: Any, agent: str
) -> None:
    monkeypatch.setenv("PATH", str(isolated_environment))
    assert run("connect", agent).exit_code == 0
    (line,) = (one for one in run("connect").stdout.splitlines() if one.startswith(agent) and ";" in one)
    assert line.split(maxsplit=1)[1].endswith("; not found")
    found = {one["name"]: one for one in json.loads(run("connect", "--json").stdout)}
    folder = Path(next(iter(found[agent]["written"])))
    while folder.parent not in (isolated_environment, isolated_environment / ".config"):
        folder = folder.parent
    (folder / "history.jsonl").touch()
    assert {one["name"]: one["folder"] for one in json.loads(run("connect", "--json").stdout)}[agent] == str(folder)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["connect", "claude"], 1, "must be one of claude-code, codex"),
        (["disconnect", "nobody"], 1, "must be one of"),
        (["connect", "--backfill"], 2, "name the agent"),
    ],
)
def test_wrong_uses_are_refused(run: Any, arguments: list[str], code: int, said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == code
    assert said in result.stderr


def test_a_directory_or_link_of_the_user_is_not_touched(run: Any, plugin: Path, home: Path) -> None:
    other = home / "elsewhere"
    other.mkdir()
    plugin.symlink_to(other)
    refused = run("connect", "claude-code")
    assert refused.exit_code == 1
    assert not list(other.iterdir())
    plugin.unlink()
    (plugin / "hooks").mkdir(parents=True)
    (plugin / "hooks" / "hooks.json").write_text("{}", "utf-8")
    assert run("connect", "claude-code").exit_code == 1
    assert (plugin / "hooks" / "hooks.json").read_text("utf-8") == "{}"


def test_a_lost_record_does_not_keep_from_disconnecting(run: Any, plugin: Path, settings: Any, monkeypatch: Any, home: Path) -> None:  # fmt: skip
    monkeypatch.delenv("MEMGRAPH_HOME")
    CliRunner().invoke(cli, ["connect", "claude-code"], obj=settings())
    (home / "keys" / "connected" / "claude-code.json").unlink()
    CliRunner().invoke(cli, ["disconnect", "claude-code"], obj=settings())
    assert not plugin.exists()


def test_a_store_that_cannot_be_opened_does_not_keep_from_disconnecting(
    run: Any, plugin: Path, home: Path, tmp_path: Path
) -> None:
    run("connect", "claude-code")
    break_database(tmp_path / "store")
    assert run("connect", "claude-code").exit_code == 1
    assert run("disconnect", "claude-code").exit_code == 0
    assert not plugin.exists()


def test_files_of_an_earlier_version_are_replaced_and_removed(tmp_path: Path) -> None:
    receipt = Receipt(release="1", options=Options(home="", scripts=""))
    old = OwnFiles(tmp_path / "own", {"a": b"1", "b/c": b"2", "d": b"3"})
    old.apply(receipt)
    (tmp_path / "own" / "d").write_bytes(b"mine")
    new = OwnFiles(tmp_path / "own", {"a": b"10", "d": b"30", "e/f": b"5"})
    top = tmp_path / "own"
    assert new.parts(receipt) == [
        Part(str(top / "a"), "outdated"),
        Part(str(top / "d"), "changed"),
        Part(str(top / "e" / "f"), "missing"),
        Part(str(top / "b" / "c"), "outdated"),
    ]
    new.apply(receipt)
    assert {name: data for name, data in tree(top).items() if data} == {"a": b"10", "d": b"mine", "e/f": b"5"}
    new.undo(receipt)
    assert {name: data for name, data in tree(tmp_path).items() if data is not None} == {"own/d": b"mine"}


def test_own_files_among_others_take_only_themselves_away(tmp_path: Path) -> None:
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / "other.json").write_text("{}", "utf-8")
    before = tree(tmp_path)
    receipt = Receipt(release="1", options=Options(home="", scripts=""))
    change = OwnFiles(tmp_path / "hooks", {"memgraph.json": b"{}", "deep/er/x": b"1"}, is_own_folder=False)
    change.apply(receipt)
    assert [part.state for part in change.parts(receipt)] == ["current", "current"]
    change.undo(receipt)
    assert tree(tmp_path) == before


def test_a_file_is_not_written_through_a_link_in_the_temporary_files_place(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine", "utf-8")
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks" / f".a.json.{os.getpid()}.tmp").symlink_to(other)
    receipt = Receipt(release="1", options=Options(home="", scripts=""))
    OwnFiles(tmp_path / "hooks", {"a.json": b"{}"}, is_own_folder=False).apply(receipt)
    assert other.read_text("utf-8") == "mine"
    assert (tmp_path / "hooks" / "a.json").read_bytes() == b"{}"
    assert not (tmp_path / "hooks" / "a.json").is_symlink()


@pytest.fixture
def transcripts(home: Path) -> Path:
    """Put two sessions of harbour among Claude Code's transcripts, and a file that is none."""
    folder = home / ".claude" / "projects" / "-home-ada-harbour"
    folder.mkdir(parents=True)
    for path in (INPUTS / "transcripts").glob("*.jsonl"):
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "broken.jsonl").write_text("{}\n", "utf-8")
    return folder


def test_earlier_sessions_are_learned_after_a_preview(run: Any, transcripts: Path) -> None:
    shown = run("connect", "claude-code", "--backfill")
    assert shown.exit_code == 1
    assert "harbour" in shown.stdout
    assert "board.tmpl" in shown.stdout
    assert "1 transcript cannot be read." in shown.stdout
    assert "add --yes" in shown.stderr
    assert json.loads(run("list", "--json").stdout) == []
    told = json.loads(run("connect", "claude-code", "--backfill", "--yes", "--json").stdout)["backfill"]
    (project,) = told["preview"]["projects"]
    assert (project["project"], project["transcripts"]) == ("harbour", 2)
    assert 0 < len(told["preview"]["examples"]) <= 10
    assert told["report"]["transcripts"] == 2
    assert 0 < told["report"]["added"] <= project["findings"]
    assert "board.tmpl" in run("list", "--json").stdout
    again = json.loads(run("connect", "claude-code", "--backfill", "--yes", "--json").stdout)["backfill"]
    assert (again["preview"]["read"], again["preview"]["projects"], again["report"]) == (2, [], None)


@pytest.mark.parametrize("agent", ["copilot", "gemini", "opencode", "cursor"])
def test_an_agent_without_readable_sessions_is_refused_before_anything_is_written(
    run: Any, home: Path, tmp_path: Path, agent: str
) -> None:
    before = tree(home)
    refused = run("connect", agent, "--backfill", "--yes")
    assert refused.exit_code == 1
    assert "has no sessions that can be read; only claude-code and codex have" in refused.stderr
    assert tree(home) == before
    assert not (tmp_path / "store").exists()


def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    run: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "my [files]"))
    monkeypatch.setitem(sys.modules, "mcp", None)
    run("connect", "claude-code")
    file = home / "my [files]" / "skills" / "memgraph" / ".mcp.json"
    file.unlink()
    listed = json.loads(run("connect", "--json").stdout)[0]
    assert (listed["missing"], listed["missing_extras"]) == ([str(file)], ["memgraph-kuzu[mcp]"])
    shown = run("connect").stdout
    assert f"missing: {file}; `memgraph connect claude-code` writes it" in shown
    assert f"{sys.executable} -m pip install 'memgraph-kuzu[mcp]'" in shown


def test_a_backfill_without_sessions_says_so(run: Any, home: Path) -> None:
    shown = run("connect", "claude-code", "--backfill")
    assert shown.exit_code == 0
    assert "There are no sessions to learn from" in shown.stdout
