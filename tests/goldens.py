"""What the store answers and what its doors promise, kept as data: ``python -m tests.goldens`` writes it anew after a wanted change.

``answers.json`` has what each line of the story was answered, ``commands.json`` the shape of every command's JSON document, ``mcp.json``
the tools, and ``openapi.json`` the HTTP contract. The story is told in a process of its own: see `tests.story`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tests.story import GOLDENS

ROOT = Path(__file__).parents[1]
SERVERS = {
    "mcp": "serves on standard input until it ends",
    "serve": "serves until it is interrupted",
    "worker run": "serves until it is interrupted",
    "distil run": "runs a program of the machine",
}
"""Commands that no story can run to their end, and why."""


def told(**environment: str) -> dict[str, Any]:
    """Tell the story in a new process; return its answers and shapes."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    command = [sys.executable, "-m", "tests.story"]
    ended = subprocess.run(
        command, cwd=ROOT, env={**given, **environment}, capture_output=True, encoding="utf-8", check=False
    )
    if ended.returncode:
        raise RuntimeError(ended.stderr)
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def tools() -> dict[str, Any]:
    """Return every tool that the MCP server offers, as the official client reads it."""
    from anyio.from_thread import start_blocking_portal
    from mcp import Client

    from memgraph.interfaces.mcp.server import server_of
    from memgraph.interfaces.operations import Answer

    server = server_of(lambda name, arguments, progress: Answer(text="", data={}), toolset="full")
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(server)) as client:
        listed = portal.call(client.list_tools)
    return {
        tool.name: tool.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"name"})
        for tool in listed.tools
    }


def contract() -> dict[str, Any]:
    """Return the OpenAPI document, whatever the release is called."""
    from memgraph.interfaces.http.contract import document

    found = document(asks=True)
    found["info"]["version"] = "<release>"
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


def commands() -> Iterator[str]:
    """Yield the name of every command that takes ``--json``, those in groups after their groups' names."""
    from memgraph.interfaces.cli.group import cli

    yield from _commands(cli, "")


def _commands(command: click.Command, name: str) -> Iterator[str]:
    is_group = isinstance(command, click.Group)
    if (
        name
        and any("--json" in one.opts for one in command.params)
        and not (is_group and not command.invoke_without_command)
    ):
        yield name
    if is_group:
        context = click.Context(command)
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None
            yield from _commands(found, f"{name} {each}".strip())


def kept(name: str) -> Any:
    return json.loads((GOLDENS / f"{name}.json").read_text("utf-8"))


def keep(name: str, found: Any) -> None:
    (GOLDENS / f"{name}.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(f"Wrote {name}.json.")


if __name__ == "__main__":
    keep("mcp", tools())
    keep("openapi", contract())
    story = told()
    keep("answers", story["answers"])
    keep("commands", story["shapes"])
