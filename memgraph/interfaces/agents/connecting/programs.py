"""What the files of several programs have in common: commands of memgraph in them, and how these are recognised."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

from memgraph.interfaces.agents.connecting.receipt import Options


def user_folder(variable: str, default: str) -> Path:
    """Return the directory that an environment variable names, else a directory below the user's home."""
    named = os.environ.get(variable, "").strip() if variable else ""
    return Path(named).expanduser().absolute() if named else home_folder() / default


def home_folder() -> Path:
    """Return the user's home directory; where the system knows none, a directory that does not exist: no agent is there."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/nonexistent")


def scripts_folder() -> Path:
    """Return the directory in which this installation's commands are."""
    found = Path(sysconfig.get_path("scripts"))
    if (found / "memgraph").exists():
        return found
    called = Path(sys.argv[0]).absolute()
    named = shutil.which("memgraph")
    return called.parent if called.name == "memgraph" else Path(named).absolute().parent if named else found


def commands(options: Options) -> tuple[str, str]:
    """Return the absolute paths of ``memgraph`` and ``memgraph-hook``."""
    folder = Path(options.scripts)
    return str(folder / "memgraph"), str(folder / "memgraph-hook")


def server_command(client: str, options: Options) -> list[str]:
    """Return the command that serves the store over MCP."""
    answers = ["--toolset", "full", "--answer-orders"] if options.answer_orders else []
    return [commands(options)[0], "mcp", "--agent", client, *answers]


def server_environment(options: Options) -> dict[str, str]:
    """Return the store's place, and that of its keys, for programs that pass little of their own environment to servers."""
    keys = {"MEMGRAPH_KEYS_HOME": options.keys_home} if options.keys_home else {}
    return {"MEMGRAPH_HOME": options.home, **keys}


def hook_command(client: str, options: Options, *, budget_s: int) -> str:
    """Return the shell command of a hook."""
    home = [] if options.is_default_home else ["--home", options.home]
    return shlex.join([commands(options)[1], client, "--budget", str(budget_s), *home])


def is_memgraphs(client: str, value: Any) -> bool:
    """Return whether an entry of a program's file is one that connecting it writes: a server, a hook, or a group with such a hook.

    A server or hook of the user's own that runs another command of memgraph, or a program of the same name, is none.
    """
    if not isinstance(value, dict):
        return False
    hooks = value.get("hooks")
    if isinstance(hooks, list):
        return any(is_memgraphs(client, one) for one in hooks)
    command, arguments = value.get("command", value.get("bash")), value.get("args")
    if isinstance(command, str):
        try:
            command = [command] if isinstance(arguments, list) else shlex.split(command)
        except ValueError:
            return False
    words = [*command, *(arguments if isinstance(arguments, list) else [])] if isinstance(command, list) else []
    if not words or not isinstance(words[0], str):
        return False
    begins = {"memgraph": ["mcp", "--agent", client], "memgraph-hook": [client]}.get(Path(words[0]).name)
    return begins is not None and words[1 : 1 + len(begins)] == begins
