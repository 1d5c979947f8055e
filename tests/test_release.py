"""What is released: the wheel, the entry for the registry of MCP servers, and the bundle for desktop clients."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import tomllib
import zipfile
from configparser import ConfigParser
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from memgraph.assets import folder
from memgraph.interfaces.operations import offered

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
MCPB = os.environ.get("MEMGRAPH_TEST_MCPB") or shutil.which("mcpb")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    builder = pytest.importorskip("hatchling.builders.wheel", reason="hatchling is missing").WheelBuilder(str(ROOT))
    [path] = builder.build(directory=str(tmp_path_factory.mktemp("dist")), versions=["standard"])
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def bundler() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bundle", ROOT / "tests" / "release" / "bundle.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_wheel_holds_what_connects_agents_and_every_other_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    plugin = "memgraph/interfaces/agents/templates/claude-code/"
    parts = [".claude-plugin/plugin.json", ".mcp.json", "hooks/hooks.json", "skills/memgraph/SKILL.md"]
    held = {name: wheel.read(name) for name in wheel.namelist()}
    assert {plugin + part for part in parts} <= held.keys()
    ignored = {"__pycache__", ".DS_Store"}
    files = [path for path in (ROOT / "memgraph").rglob("*") if path.is_file() and not ignored & set(path.parts)]
    assert [path for path in files if held.get(path.relative_to(ROOT).as_posix()) != path.read_bytes()] == []
    for name in ("schema", "queries"):
        inside = {entry.removeprefix(f"memgraph/_assets/{name}/") for entry in held if f"_assets/{name}/" in entry}
        assert {item.name for item in folder(name).iterdir() if item.is_file()} <= inside
    assert [name for name in held if name.startswith(("tests", "release", "memgraph/_assets/.", ".ci"))] == []


def test_the_wheel_installs_the_commands(wheel: zipfile.ZipFile) -> None:
    """Without an own name, `uvx` runs the command that has the package's."""
    parser = ConfigParser()
    parser.read_string(wheel.read(f"memgraph_kuzu-{PROJECT['version']}.dist-info/entry_points.txt").decode())
    found = dict(parser["console_scripts"])
    assert found.keys() == {"memgraph", "memgraph-hook", PROJECT["name"]}
    assert found[PROJECT["name"]] == found["memgraph"]


def test_the_registry_entry_is_that_of_this_release() -> None:
    entry = json.loads((ROOT / "tests" / "release" / "server.json").read_bytes())
    [package] = entry["packages"]
    assert entry["$schema"] == "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
    assert 1 <= len(entry["description"]) <= 100
    assert (entry["version"], package["version"]) == (PROJECT["version"], PROJECT["version"])
    assert (package["registryType"], package["identifier"]) == ("pypi", PROJECT["name"])
    assert [one["value"] for one in package["runtimeArguments"]] == PROJECT["optional-dependencies"]["mcp"]
    assert [one["value"] for one in package["packageArguments"]] == ["mcp"]
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "mcp-name:" not in readme or f"mcp-name: {entry['name']}" in readme


def test_the_bundle_starts_the_same_release_with_uv(bundler: ModuleType, tmp_path: Path) -> None:
    one, other = (bundler.build(tmp_path / name, PROJECT) for name in ("one", "other"))
    assert one.name == f"memgraph-{PROJECT['version']}.mcpb"
    assert one.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(one) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        project = tomllib.loads(archive.read("pyproject.toml").decode())["project"]
        assert manifest["server"]["entry_point"] in archive.namelist()
    assert (manifest["manifest_version"], manifest["server"]["type"]) == ("0.4", "uv")
    assert project["dependencies"] == [f"memgraph-kuzu[mcp]=={PROJECT['version']}"]
    assert project["requires-python"] == PROJECT["requires-python"]
    assert [tool["name"] for tool in manifest["tools"]] == [one.name for one in offered("core")]


@pytest.mark.long
@pytest.mark.skipif(not MCPB, reason="mcpb is not installed (npm install @anthropic-ai/mcpb; MEMGRAPH_TEST_MCPB)")
def test_the_bundle_is_valid_for_the_tool_of_its_format(bundler: ModuleType, tmp_path: Path) -> None:
    assert MCPB
    bundle = bundler.build(tmp_path, PROJECT)
    for arguments in (["unpack", str(bundle), str(tmp_path / "in")], ["validate", str(tmp_path / "in/manifest.json")]):
        done = subprocess.run([MCPB, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
