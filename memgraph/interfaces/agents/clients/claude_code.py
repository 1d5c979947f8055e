"""Claude Code: a plugin directory among the user's skills, which it loads by itself (from 2.1.157 on)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from memgraph.assets import tree
from memgraph.interfaces.agents.connecting.connector import Connector
from memgraph.interfaces.agents.connecting.files import OwnFiles
from memgraph.interfaces.agents.connecting.programs import commands, server_command, user_folder
from memgraph.interfaces.agents.connecting.receipt import Options

_TEMPLATES = "claude-code"


def claude_folder() -> Path:
    """Return the user's directory of Claude Code."""
    return user_folder("CLAUDE_CONFIG_DIR", ".claude")


def transcripts_folder() -> Path:
    """Return the directory of all transcripts."""
    return claude_folder() / "projects"


def plugin(options: Options, *, release: str) -> OwnFiles:
    """Return the plugin directory with the commands of this installation."""
    files = {name: text.encode() for name, text in tree("agents", _TEMPLATES).items()}
    for name, fill in ((".claude-plugin/plugin.json", _manifest), (".mcp.json", _mcp), ("hooks/hooks.json", _hooks)):
        document = json.loads(files[name])
        fill(document, options, release)
        files[name] = (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()
    data = claude_folder() / "plugins" / "data" / "memgraph-skills-dir"
    return OwnFiles(claude_folder() / "skills" / "memgraph", files, made_by_program=(data,))


def _manifest(document: dict[str, Any], _options: Options, release: str) -> None:
    document["version"] = release


def _mcp(document: dict[str, Any], options: Options, _release: str) -> None:
    server = document["mcpServers"]["memgraph"]
    server["command"], *server["args"] = server_command("claude-code", options)
    if not options.is_default_home:
        server["env"] = {"MEMGRAPH_HOME": options.home}


def _hooks(document: dict[str, Any], options: Options, _release: str) -> None:
    for entries in document["hooks"].values():
        for hook in (hook for entry in entries for hook in entry["hooks"]):
            hook["command"] = commands(options)[1]
            if not options.is_default_home:
                hook["args"] += ["--home", options.home]


def connector(release: str) -> Connector:
    """Return what connects Claude Code."""
    return Connector(
        name="claude-code",
        title="Claude Code",
        binaries=("claude",),
        folder=claude_folder,
        changes=lambda options: [plugin(options, release=release)],
        hint="Start a new session, or run /reload-plugins in an open one.",
    )
