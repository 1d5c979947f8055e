"""Build the MCP bundle: a file that desktop clients install with a click (https://github.com/modelcontextprotocol/mcpb).

``python tests/release/bundle.py dist`` writes ``dist/memgraph-VERSION.mcpb``. The bundle holds no code of memgraph: its client has uv install the release
of the same version from the package index. The same commit gives the same bytes. Needs memgraph itself, for the list of tools.
"""

from __future__ import annotations

import json
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

from memgraph.interfaces.operations import offered

ROOT = Path(__file__).resolve().parents[2]
_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the archive: the earliest that the format knows."""


def build(folder: Path, project: dict[str, Any]) -> Path:
    """Write the bundle of a project's table in ``pyproject.toml`` into a folder, and return its path."""
    files = {
        "manifest.json": json.dumps(manifest(project), indent=2, ensure_ascii=False) + "\n",
        "pyproject.toml": _pyproject(project),
        "server.py": (Path(__file__).parent / "mcpb" / "server.py").read_text("utf-8"),
        "LICENSE": (ROOT / "LICENSE").read_text("utf-8"),
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"memgraph-{project['version']}.mcpb"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name, _EARLIEST), text, zipfile.ZIP_DEFLATED)
    return path


def manifest(project: dict[str, Any]) -> dict[str, Any]:
    """Return the bundle's manifest, of version 0.4 of the format."""
    return {
        "manifest_version": "0.4",
        "name": "memgraph",
        "display_name": "memgraph",
        "version": project["version"],
        "description": project["description"],
        "long_description": "Recalls what earlier sessions taught, and keeps what this one teaches. The memories stay on this computer.",
        "author": {"name": project["authors"][0]["name"]},
        "license": project["license"],
        "keywords": project["keywords"],
        "server": {
            "type": "uv",
            "entry_point": "server.py",
            "mcp_config": {
                "command": "uv",
                # not --directory: the server finds the project by the directory that it is started in
                "args": ["run", "--project", "${__dirname}", "${__dirname}/server.py"],
                "env": {"MEMGRAPH_HOME": "${user_config.home}"},
            },
        },
        "user_config": {
            "home": {
                "type": "directory",
                "title": "Directory of the store",
                "description": "Where memories are kept. The command line and other agents use the same one.",
                "default": "${HOME}/.memgraph",
                "required": False,
            }
        },
        "tools": [{"name": one.name, "description": one.description} for one in offered("core")],
        "prompts_generated": True,
        "compatibility": {"platforms": ["darwin", "linux"], "runtimes": {"python": project["requires-python"]}},
    }


def _pyproject(project: dict[str, Any]) -> str:
    return (
        "[project]\n"
        'name = "memgraph-bundle"\n'
        f'version = "{project["version"]}"\n'
        f'requires-python = "{project["requires-python"]}"\n'
        f'dependencies = ["{project["name"]}[mcp]=={project["version"]}"]\n'
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tests/release/bundle.py FOLDER")
    print(build(Path(sys.argv[1]), tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]))
