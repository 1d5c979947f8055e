"""Anthropic's memory tool: it says and does what Anthropic's own tool on folders does, and its files are memories."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from memgraph import MemGraph
from memgraph.interfaces.operations import Caller, perform

pytestmark = pytest.mark.skipif(find_spec("anthropic") is None, reason="the extra anthropic is missing")
# anthropic takes a second to import: it is imported in the tests, not by every process that collects them

PATHS = st.sampled_from(
    ["/memories", "/memories/a.md", "/memories/b", "/memories/b/c.md", "/memories/b/d/e.txt", "/memories/.h", "/etc/x", "/memories/../x"]
)  # fmt: skip
TEXTS = st.sampled_from(["", "one\n", "one\ntwo\nthree", "two\ntwo\n", "tw", "ä\n\n", "x" * 2_000])
COMMANDS = st.one_of(
    st.fixed_dictionaries(
        {"command": st.just("view"), "path": PATHS},
        optional={"view_range": st.sampled_from([[1, 2], [2, -1], [9, 9]])},
    ),
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries(
        {"command": st.just("str_replace"), "path": PATHS, "old_str": TEXTS.filter(bool), "new_str": TEXTS}
    ),
    st.fixed_dictionaries(
        {"command": st.just("insert"), "path": PATHS, "insert_line": st.integers(-1, 4), "insert_text": TEXTS}
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATHS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATHS, "new_path": PATHS}),
)


@pytest.fixture
def tool(memory: MemGraph) -> Any:
    from memgraph.interfaces.anthropic import MemGraphMemoryTool

    return MemGraphMemoryTool(memory)


@pytest.fixture
def refusal(tool: Any) -> type[Exception]:
    from anthropic.lib.tools import ToolError

    return ToolError


def told(tool: Any, command: dict[str, Any]) -> str:
    """Return what a tool says; of a refusal only that, and of folders not their sizes, which are those of a file system."""
    from anthropic.lib.tools import ToolError

    try:
        said = str(tool.call(command))
    except (ToolError, OSError):
        return "refused"
    if said.startswith("Here're"):
        said = re.sub(r"^[\d.]+[BKMG]\t(/memories(?:/b|/b/d)?/?)$", r"\1", said, flags=re.MULTILINE)
        names = {line.split("\t")[-1] for line in said.splitlines()}
        return "\n".join([said.splitlines()[0], *sorted(names - {"/memories/b/", "/memories/b/d/"})])
    return said


@settings(max_examples=12, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(commands=st.lists(COMMANDS, min_size=5, max_size=25))
def test_it_does_what_the_tool_on_folders_does(tool: Any, tmp_path: Path, commands: list[dict[str, Any]]) -> None:
    from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

    tool.clear_all_memory()
    other = BetaLocalFilesystemMemoryTool(str(tmp_path / "files"))
    other.clear_all_memory()
    for command in commands:
        assert told(tool, command) == told(other, command), command
        for folder in (other.memory_root / "b" / "d", other.memory_root / "b"):  # memories know no empty folders
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def test_a_file_is_recalled_by_other_doors_and_other_memories_are_files(
    tool: Any, memory: MemGraph, refusal: type[Exception]
) -> None:
    tool.call({"command": "create", "path": "/memories/shop/notes.md", "file_text": "The till needs a coin.\n"})
    assert "The till needs a coin." in perform(memory, Caller(), "recall", {"task": "the till"}).text
    perform(memory, Caller(), "save_observation", {"text": "The shop runs on port 8080."})
    assert "/memories/memgraph/semantic.md" in tool.call({"command": "view", "path": "/memories"})
    seen = tool.call({"command": "view", "path": "/memories/memgraph/semantic.md"})
    assert "     1\t- The shop runs on port 8080." in seen
    assert "till" not in seen
    for command in (
        {"command": "delete", "path": "/memories/memgraph"},
        {"command": "create", "path": "/memories/memgraph/x", "file_text": ""},
    ):
        with pytest.raises(refusal, match="read-only"):
            tool.call(command)


def test_the_tool_is_described_to_the_model_as_anthropics_own(tool: Any) -> None:
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}


def test_what_memgraph_refuses_is_said_to_the_model(tool: Any, refusal: type[Exception]) -> None:
    with pytest.raises(refusal, match="at most"):
        tool.call({"command": "create", "path": f"/memories/{'x' * 500}", "file_text": "x"})
