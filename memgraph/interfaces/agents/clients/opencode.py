"""OpenCode: an MCP server in its ``opencode.json``. No hooks are written: it takes context only from plugins in JavaScript."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from memgraph.interfaces.agents.connecting.change import Change
from memgraph.interfaces.agents.connecting.connector import Connector
from memgraph.interfaces.agents.connecting.merged import Entry, MergedFile
from memgraph.interfaces.agents.connecting.programs import (
    is_memgraphs,
    server_command,
    server_environment,
    user_folder,
)
from memgraph.interfaces.agents.connecting.receipt import Options

NAME = "opencode"
_FILES = ("opencode.json", "opencode.jsonc")


def opencode_folder() -> Path:
    """Return the user's directory of OpenCode."""
    return user_folder("OPENCODE_CONFIG_DIR", ".config/opencode")


def changes(options: Options) -> list[Change]:
    """Return what connecting writes."""
    files = [opencode_folder() / name for name in _FILES]
    path = next((one for one in files if one.exists()), files[0])
    server = {
        "type": "local",
        "command": server_command(NAME, options),
        "environment": server_environment(options),
        "enabled": True,
    }
    return [MergedFile(path, [Entry(("mcp", "memgraph"), server)], partial(is_memgraphs, NAME))]


def connector() -> Connector:
    """Return what connects OpenCode."""
    return Connector(
        NAME,
        "OpenCode",
        ("opencode",),
        opencode_folder,
        changes,
        hint="Start a new session. The agent has to call the tools itself: OpenCode has no hooks that memgraph could use.",
    )
