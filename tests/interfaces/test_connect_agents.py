"""``memgraph connect`` for the agents whose own files it merges into: what is written, what is refused, what is left behind."""

from __future__ import annotations

import json
import os
import shlex
import stat
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memgraph.interfaces.cli.group import cli

FILES = {
    "codex": [".codex/config.toml", ".codex/hooks.json"],
    "copilot": [".copilot/hooks/memgraph.json", ".copilot/mcp-config.json"],
    "gemini": [".gemini/settings.json"],
    "opencode": [".config/opencode/opencode.json"],
    "cursor": [".cursor/hooks.json", ".cursor/mcp.json"],
}
MERGED = [(agent, name) for agent, names in FILES.items() for name in names if not name.endswith("memgraph.json")]
USERS = {
    ".toml": '# mine\nmodel = "x"\t# why\r\n[mcp_servers.tides]\ncommand = "tides"\n',
    ".json": '{\n\t"version": 1, "mine": [1,2 ],\n\t"hooks": {"Stop": [ {"hooks": []} ]}\n}',
}
STAND_IN = """#!{python}
import json, sys
hooks = {hooks!r}
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "hooks/list":
        print(json.dumps({{"id": asked["id"], "result": {{"data": [{{"cwd": "/", "hooks": hooks}}]}}}}), flush=True)
    elif "id" in asked:
        print(json.dumps({{"id": asked["id"], "result": {{}}}}), flush=True)
"""
"""A program that answers as ``codex app-server`` does."""


@pytest.fixture
def home(isolated_environment: Path) -> Path:
    return isolated_environment


@pytest.fixture
def run(tmp_path: Path, settings: Callable[[], Any]) -> Callable[..., Result]:
    def call(*args: Any) -> Result:
        arguments = ["--home", str(tmp_path / "a store"), *map(str, args)]
        return CliRunner().invoke(cli, arguments, prog_name="memgraph", obj=settings())

    return call


def tree(folder: Path) -> dict[str, tuple[bytes | None, int]]:
    """Return everything below the user's home but memgraph's own, with contents and permissions."""
    return {
        str(path.relative_to(folder)): (path.read_bytes() if path.is_file() else None, path.lstat().st_mode)
        for path in folder.rglob("*")
        if path.relative_to(folder).parts[0] not in {"keys", "memgraph"}
    }


def standing(run: Any, agent: str) -> dict[str, Any]:
    return {one["name"]: one for one in json.loads(run("connect", "--json").stdout)}[agent]


@pytest.mark.parametrize("agent", FILES)
def test_what_did_not_exist_is_gone_after_disconnecting(run: Any, home: Path, agent: str) -> None:
    before = tree(home)
    assert run("connect", agent).exit_code == 0
    written = tree(home)
    assert sorted(name for name, (data, _) in written.items() if data is not None) == FILES[agent]
    assert run("connect", agent).exit_code == 0
    assert tree(home) == written, "it is idempotent"
    shown = run("disconnect", agent)
    assert shown.exit_code == 0
    assert "memgraph's entries from" in shown.stdout
    assert tree(home) == before
    assert not (home / "keys" / "connected").exists()


@pytest.mark.parametrize("agent", FILES)
def test_a_dry_run_says_what_would_be_written_and_writes_nothing(run: Any, home: Path, agent: str) -> None:
    before = tree(home)
    shown = run("connect", agent, "--dry-run")
    assert sorted(shown.stdout.splitlines()) == [f"Would write {home / name}" for name in FILES[agent]]
    assert tree(home) == before
    run("connect", agent)
    connected = tree(home)
    shown = run("disconnect", agent, "--dry-run")
    assert all(str(home / name) in shown.stdout for name in FILES[agent])
    assert tree(home) == connected


@pytest.mark.parametrize(("agent", "name"), MERGED)
def test_a_users_file_keeps_its_text_permissions_and_place(run: Any, home: Path, agent: str, name: str) -> None:
    real = home / "dotfiles" / Path(name).name
    real.parent.mkdir()
    real.write_bytes(USERS[real.suffix].encode())
    real.chmod(0o640)
    link = home / name
    link.parent.mkdir(parents=True)
    link.symlink_to(real)
    before = tree(home)
    assert run("connect", agent).exit_code == 0
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert real.read_bytes() != before[f"dotfiles/{real.name}"][0]
    assert not list(real.parent.glob(".*"))
    assert run("disconnect", agent).exit_code == 0
    assert tree(home) == before


@pytest.mark.parametrize(("agent", "name"), MERGED)
@pytest.mark.parametrize(
    "broken", [b"[mcp_servers\n{", b'{"hooks": ', b"\xff\xfe", b"[]", b'{"mcpServers": 7, "hooks": 7, "mcp": 7}']
)
def test_a_broken_file_is_refused_and_left(run: Any, home: Path, agent: str, name: str, broken: bytes) -> None:
    path = home / name
    path.parent.mkdir(parents=True)
    path.write_bytes(broken)
    before = tree(home)
    refused = run("connect", agent)
    assert refused.exit_code == 1, refused.output
    assert str(path) in refused.stderr
    assert "nothing was changed" in refused.stderr
    assert tree(home) == before
    listed = standing(run, agent)
    assert listed["state"] == "broken"
    assert str(path) in listed["problem"]


def test_a_file_that_was_broken_since_is_left_until_it_is_repaired(run: Any, home: Path) -> None:
    run("connect", "codex")
    path = home / ".codex" / "config.toml"
    good = path.read_bytes()
    path.write_bytes(b"x = = 1\n" + good)
    assert standing(run, "codex")["state"] == "broken"
    assert run("disconnect", "codex").exit_code == 1
    assert path.read_bytes() == b"x = = 1\n" + good
    path.write_bytes(b"x = 1\n" + good)
    assert run("disconnect", "codex").exit_code == 0
    assert path.read_bytes() == b"x = 1\n"


def test_an_entry_of_the_users_own_is_not_touched(run: Any, home: Path) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text('[mcp_servers.memgraph]\ncommand = "mine"\n', "utf-8")
    refused = run("connect", "codex")
    assert refused.exit_code == 1
    assert "was not written by `memgraph connect`" in refused.stderr
    assert list(path.parent.iterdir()) == [path]
    assert path.read_text("utf-8") == '[mcp_servers.memgraph]\ncommand = "mine"\n'


def test_what_is_written_for_codex(run: Any, home: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setenv("MEMGRAPH_KEYS_HOME", str(home / "keys"))
    assert "approve the hooks in /hooks" in run("connect", "codex").stdout
    server = tomllib.loads((tmp_path / "codex" / "config.toml").read_text("utf-8"))["mcp_servers"]["memgraph"]
    assert Path(server["command"]).is_absolute()
    assert server["args"] == ["mcp", "--agent", "codex", "--project", "."]
    assert server["env"] == {"MEMGRAPH_HOME": str(tmp_path / "a store"), "MEMGRAPH_KEYS_HOME": str(home / "keys")}
    assert server["required"] is True
    hooks = json.loads((tmp_path / "codex" / "hooks.json").read_bytes())["hooks"]
    assert list(hooks) == ["SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"]
    for event, groups in hooks.items():
        (hook,) = groups[0]["hooks"]
        words = shlex.split(hook["command"])
        assert Path(words[0]).name == "memgraph-hook"
        assert words[1] == "codex"
        assert words[-2:] == ["--home", str(tmp_path / "a store")]
        assert float(words[3]) + 0.5 < hook["timeout"], "the hook gives up before Codex ends it"
        assert event != "SessionEnd" or hook["timeout"] <= 3, "Codex gives it no more"
    assert not (home / ".codex").exists()


def test_what_is_written_for_the_others(run: Any, home: Path, tmp_path: Path) -> None:
    for agent in ("copilot", "gemini", "opencode", "cursor"):
        assert run("connect", agent).exit_code == 0

    def read(name: str) -> Any:
        return json.loads((home / name).read_bytes())

    copilot = read(".copilot/mcp-config.json")["mcpServers"]["memgraph"]
    assert (copilot["type"], copilot["tools"], copilot["args"]) == ("local", ["*"], ["mcp", "--agent", "copilot"])
    own = read(".copilot/hooks/memgraph.json")
    assert (own["version"], list(own["hooks"])) == (
        1,
        ["sessionStart", "userPromptSubmitted", "postToolUse", "postToolUseFailure"],
    )
    gemini = read(".gemini/settings.json")
    assert list(gemini["hooks"]) == ["SessionStart", "BeforeAgent", "AfterTool"]
    assert gemini["hooks"]["BeforeAgent"][0]["hooks"][0]["timeout"] == 5_000
    opencode = read(".config/opencode/opencode.json")["mcp"]["memgraph"]
    assert (opencode["type"], opencode["command"][1:]) == ("local", ["mcp", "--agent", "opencode"])
    assert opencode["environment"]["MEMGRAPH_HOME"] == str(tmp_path / "a store")
    cursor = read(".cursor/hooks.json")
    assert (cursor["version"], list(cursor["hooks"])) == (1, ["sessionStart"])
    assert read(".cursor/mcp.json")["mcpServers"]["memgraph"]["args"] == ["mcp", "--agent", "cursor"]


def test_opencodes_settings_with_comments_are_taken_where_they_are(run: Any, home: Path) -> None:
    path = home / ".config" / "opencode" / "opencode.jsonc"
    path.parent.mkdir(parents=True)
    path.write_text('{\n  // mine\n  "theme": "dark",\n}\n', "utf-8")
    run("connect", "opencode")
    assert path.read_text("utf-8").startswith('{\n  // mine\n  "theme": "dark",\n  "mcp": {\n    "memgraph": {')
    assert [one.name for one in path.parent.iterdir()] == ["opencode.jsonc"]
    run("disconnect", "opencode")
    assert path.read_text("utf-8") == '{\n  // mine\n  "theme": "dark",\n}\n'


def test_entries_of_an_earlier_version_are_replaced(run: Any, home: Path) -> None:
    """Options change the entries as a new version would."""
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text('model = "x"\n', "utf-8")
    run("connect", "codex")
    settings = home / ".codex" / "config.toml"
    settings.write_text(settings.read_text("utf-8") + "\n[projects.x]\ny = 1\n", "utf-8")
    run("connect", "codex", "--answer-orders")
    found = tomllib.loads(settings.read_text("utf-8"))
    assert found["mcp_servers"]["memgraph"]["args"][3:5] == ["--toolset", "full"]
    assert settings.read_text("utf-8").count("[mcp_servers.memgraph]") == 1
    run("connect", "codex", "--no-answer-orders")
    run("disconnect", "codex")
    assert settings.read_text("utf-8") == 'model = "x"\n\n[projects.x]\ny = 1\n'
    assert [one.name for one in (home / ".codex").iterdir()] == ["config.toml"]


def test_an_entry_that_the_user_changed_is_left_by_connecting_and_removed_by_disconnecting(
    run: Any, home: Path
) -> None:
    run("connect", "gemini")
    path = home / ".gemini" / "settings.json"
    document = json.loads(path.read_bytes())
    document["mcpServers"]["memgraph"]["trust"] = True
    document["hooks"]["BeforeAgent"][0]["hooks"][0]["timeout"] = 9_000
    document["theme"] = "dark"
    path.write_text(json.dumps(document), "utf-8")
    changed = path.read_bytes()
    assert run("connect", "gemini").exit_code == 0
    assert path.read_bytes() == changed
    assert standing(run, "gemini")["edited"] == [str(path)]
    shown = json.loads(run("disconnect", "gemini", "--json").stdout)
    assert shown["kept"] == []
    assert json.loads(path.read_bytes()) == {"theme": "dark"}


def codex_with(home: Path, monkeypatch: Any, text: str) -> None:
    """Put a program called codex on PATH, for a user who has used it."""
    (home / "bin").mkdir()
    (home / "bin" / "codex").write_text(text, "utf-8")
    (home / "bin" / "codex").chmod(0o755)
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{os.environ['PATH']}")
    (home / ".codex").mkdir(exist_ok=True)
    (home / ".codex" / "installation_id").write_text("1", "utf-8")


@pytest.mark.parametrize(
    ("trust", "state"), [("trusted", "connected"), ("untrusted", "needs approval"), ("modified", "needs approval")]
)
def test_codex_is_asked_which_hooks_the_user_has_approved(
    run: Any, home: Path, monkeypatch: Any, trust: str, state: str
) -> None:
    hooks = [
        {"eventName": "stop", "command": "/opt/memgraph-hook codex", "trustStatus": trust, "enabled": True},
        {"eventName": "preToolUse", "command": "say hi", "trustStatus": "untrusted", "enabled": True},
    ]
    codex_with(home, monkeypatch, STAND_IN.format(python=sys.executable, hooks=hooks).replace("true", "True"))
    run("connect", "codex")
    before = tree(home)
    listed = standing(run, "codex")
    assert listed["unapproved"] == ([] if state == "connected" else ["Stop"])
    assert listed["state"] in {state, "incomplete"}, "without the extra for MCP it is incomplete"
    shown = run("connect").stdout
    assert ("skips the hooks Stop: approve them in /hooks of Codex" in shown) is (state != "connected")
    assert tree(home) == before, "its trust is read, never written"


@pytest.mark.parametrize(
    "text", ["#!/bin/sh\nexit 1\n", "#!/bin/sh\necho nonsense\n", '#!/bin/sh\necho \'{"id": 1, "result": 7}\'\n']
)
def test_a_codex_that_does_not_answer_is_reported_so(run: Any, home: Path, monkeypatch: Any, text: str) -> None:
    codex_with(home, monkeypatch, text)
    run("connect", "codex")
    assert standing(run, "codex")["unapproved"] is None
    assert "did not say whether the user has approved its hooks" in run("connect").stdout


def test_a_lost_record_does_not_keep_from_disconnecting(home: Path, settings: Any, monkeypatch: Any) -> None:
    monkeypatch.delenv("MEMGRAPH_HOME")
    (home / ".gemini").mkdir()
    path = home / ".gemini" / "settings.json"
    path.write_text('{"theme": "dark"}', "utf-8")
    CliRunner().invoke(cli, ["connect", "gemini"], obj=settings())
    assert "memgraph" in path.read_text("utf-8")
    (home / "keys" / "connected" / "gemini.json").unlink()
    CliRunner().invoke(cli, ["disconnect", "gemini"], obj=settings())
    assert json.loads(path.read_bytes()).get("theme") == "dark"
    assert "memgraph" not in path.read_text("utf-8")


@pytest.mark.parametrize("agent", ["claude-code", *FILES])
def test_a_damaged_record_is_reported_and_without_it_what_is_recognised_goes(run: Any, home: Path, agent: str) -> None:
    assert run("connect", agent, "--answer-orders").exit_code == 0
    record = home / "keys" / "connected" / f"{agent}.json"
    record.write_bytes(record.read_bytes()[:100])
    written = tree(home)
    assert standing(run, agent)["state"] == "broken"
    for command in ("connect", "disconnect"):
        refused = run(command, agent)
        assert refused.exit_code == 1
        assert f"{record}: is damaged: move it away" in refused.stderr
    assert tree(home) == written
    record.unlink()
    assert run("disconnect", agent).exit_code == 0
    assert not [name for name, (data, _) in tree(home).items() if data and b"memgraph" in data]


OWN_SERVERS = {
    "opencode": (".config/opencode/opencode.json", {"mcp": {"memgraph": {"type": "local", "command": ["/opt/db/memgraph", "--bolt-port", "7687"], "enabled": True}}}),
    "cursor": (".cursor/mcp.json", {"mcpServers": {"memgraph": {"command": "memgraph", "args": ["mcp", "--project", "shop"]}}}),
}  # fmt: skip


@pytest.mark.parametrize("agent", OWN_SERVERS)
def test_a_server_of_the_users_own_with_our_name_stays(run: Any, home: Path, agent: str) -> None:
    name, document = OWN_SERVERS[agent]
    path = home / name
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(document), "utf-8")
    before = tree(home)
    refused = run("connect", agent)
    assert refused.exit_code == 1
    assert "move it away" in refused.stderr
    run("disconnect", agent)
    assert {one: there for one, there in tree(home).items() if there[0]} == {
        one: there for one, there in before.items() if there[0]
    }


def test_another_directory_of_the_program_is_disconnected_where_it_is(run: Any, home: Path, monkeypatch: Any) -> None:
    before = {name for name, (data, _) in tree(home).items() if data}
    monkeypatch.setenv("CODEX_HOME", str(home / "other codex"))
    run("connect", "codex")
    monkeypatch.delenv("CODEX_HOME")
    refused = run("disconnect", "codex")
    assert refused.exit_code == 1
    assert f"{home / 'other codex'}" in refused.stderr
    monkeypatch.setenv("CODEX_HOME", str(home / "other codex"))
    assert run("disconnect", "codex").exit_code == 0
    assert not (home / "other codex").exists()
    assert before <= tree(home).keys()


HOOK_FILES = {"gemini": ".gemini/settings.json", "codex": ".codex/hooks.json"}


@pytest.mark.parametrize("agent", HOOK_FILES)
def test_hooks_of_the_users_own_stay_beside_ours_and_in_our_group(run: Any, home: Path, agent: str) -> None:
    path = home / HOOK_FILES[agent]
    path.parent.mkdir()
    own = {"hooks": [{"type": "command", "command": "memgraph stats"}]}
    path.write_text(json.dumps({"hooks": {"SessionStart": [own]}}), "utf-8")
    assert run("connect", agent).exit_code == 0
    document = json.loads(path.read_bytes())
    assert document["hooks"]["SessionStart"][0] == own
    added = {"type": "command", "command": "/usr/bin/notify-me"}
    [group] = document["hooks"]["SessionStart"][1:]
    group["hooks"].append(added)
    path.write_text(json.dumps(document, indent=1), "utf-8")
    assert run("disconnect", agent).exit_code == 0
    kept = json.loads(path.read_bytes())["hooks"]
    assert kept == {"SessionStart": [own, {**group, "hooks": [added]}]}


def test_without_a_record_a_part_of_what_was_written_goes_too(run: Any, home: Path) -> None:
    run("connect", "codex")
    (home / "keys" / "connected" / "codex.json").unlink()
    (home / ".codex" / "config.toml").write_text('model = "x"\n', "utf-8")
    told = json.loads(run("disconnect", "codex", "--json").stdout)
    assert told["removed"] == [str(home / ".codex" / "hooks.json")]
    assert "memgraph" not in (home / ".codex" / "hooks.json").read_text("utf-8")
    assert (home / ".codex" / "config.toml").read_text("utf-8") == 'model = "x"\n'
    assert "was not connected" in run("disconnect", "codex").stdout


def test_sessions_of_codex_are_learned_on_request(run: Any, home: Path) -> None:
    recorded = Path(__file__).parents[1] / "fixtures" / "codex" / "session.jsonl"
    folder = home / ".codex" / "sessions" / "2026" / "11" / "23"
    folder.mkdir(parents=True)
    (folder / "rollout-1.jsonl").write_bytes(recorded.read_bytes())
    told = json.loads(run("ingest", "codex", "--json").stdout)
    assert told["reports"][0]["source"] == "transcripts:019f0c3a-7d10-7c2e-9a55-20c0ffee0004"
    filled = json.loads(run("connect", "codex", "--backfill", "--yes", "--json").stdout)["backfill"]
    assert filled["preview"]["read"] == 1
