"""Anthropic's memory tool: files and folders under ``/memories`` as a view on memories. Needs the extra ``anthropic``.

A file is an item (`memgraph.items`), so its text is recalled through every other door. The read-only folder ``/memories/memgraph`` shows
what was stored elsewhere. Secrets in a file are redacted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from memgraph.errors import MemGraphError
from memgraph.facade import MemGraph
from memgraph.interfaces.refusals import message_of, needing
from memgraph.items import MEMORIES, Items, Put
from memgraph.model.agent_input import UNNAMED
from memgraph.model.memory import MEMORY_TYPES
from memgraph.text.safe import visible_line

with needing("anthropic", extra="anthropic"):
    from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError
    from anthropic.types.beta import (
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )

ROOT = "memories"
_MOST_SHOWN = 200
_DEPTH = 2
_WIDTH = 6
_AROUND = 2
_UNITS = ("B", "K", "M", "G")

Path = tuple[str, ...]
C = TypeVar("C")


def _said(method: Callable[[MemGraphMemoryTool, C], str]) -> Callable[[MemGraphMemoryTool, C], str]:
    """Convert memgraph's errors to the tool's, whose messages the model reads."""

    @wraps(method)
    def tell(tool: MemGraphMemoryTool, command: C) -> str:
        try:
            return method(tool, command)
        except MemGraphError as error:
            raise ToolError(message_of(error)) from error

    return tell


class MemGraphMemoryTool(BetaAbstractMemoryTool):
    """The memory tool on a memgraph store, for ``client.beta.messages.tool_runner(tools=[MemGraphMemoryTool(memory)], …)``.

    Parameters
    ----------
    memory : MemGraph
        Stays open as long as the tool is used.
    agent, justification, project, domain : str, optional
        As those of `memgraph.items.Items`.
    cache_control : dict, optional
        As that of Anthropic's base class.
    """

    def __init__(
        self,
        memory: MemGraph,
        *,
        agent: str = UNNAMED,
        justification: str | None = None,
        project: str | None = None,
        domain: str | None = None,
        cache_control: Any = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._store = memory.store
        self._items = Items(memory.store, agent=agent, justification=justification, project=project, domain=domain)

    @_said
    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Return a file with line numbers, or the names and sizes in a folder."""
        path = _parsed(command.path)
        text = self._text(path)
        if text is None:
            return self._listing(path, command.path)
        lines, first = text.split("\n"), 1
        if command.view_range and len(command.view_range) == 2:
            first, last = max(1, command.view_range[0]), command.view_range[1]
            lines = lines[first - 1 : None if last == -1 else last]
        return f"Here's the content of {command.path} with line numbers:\n{_numbered(lines, first)}"

    @_said
    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file."""
        path = self._writable(command.path)
        with self._store.exclusive():
            if self._exists(path):
                raise ToolError(f"File {command.path} already exists")
            self._check_folder(path)
            self._items.apply([_written(path, command.file_text)])
        return f"File created successfully at: {command.path}"

    @_said
    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs exactly once in a file."""
        path, old = self._writable(command.path), command.old_str
        with self._store.exclusive():
            text = self._file(path, command.path)
            places = _places(text, old)
            if not places:
                raise ToolError(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}."
                )
            if len(places) > 1:
                lines = ", ".join(str(text[:place].count("\n") + 1) for place in places)
                said = f"Multiple occurrences of old_str `{old}` in lines: {lines}. Please ensure it is unique"
                raise ToolError(f"No replacement was performed. {said}")
            changed = text[: places[0]] + (command.new_str or "") + text[places[0] + len(old) :]
            self._items.apply([_written(path, changed)])
        line = text[: places[0]].count("\n")
        start = max(0, line - _AROUND)
        shown = _numbered(changed.split("\n")[start : line + _AROUND + 1], start + 1)
        return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{shown}"

    @_said
    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert a text after a line of a file; 0 stands for its beginning."""
        path = self._writable(command.path)
        with self._store.exclusive():
            lines = self._file(path, command.path).split("\n")
            if lines[-1] == "":
                lines.pop()
            if not 0 <= command.insert_line <= len(lines):
                said = f"It should be within the range [0, {len(lines)}]."
                raise ToolError(f"Invalid `insert_line` parameter: {command.insert_line}. {said}")
            lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
            changed = "\n".join(lines)
            self._items.apply([_written(path, changed if changed.endswith("\n") else f"{changed}\n")])
        return f"The file {command.path} has been edited."

    @_said
    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a folder with all files in it."""
        path = self._writable(command.path)
        with self._store.exclusive():
            gone = self._under(path)
            if not gone:
                raise ToolError(f"The path {command.path} does not exist")
            self._items.apply([Put(*_place(one), None) for one in gone])
        return f"Successfully deleted {command.path}"

    @_said
    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file, or a folder with all files in it."""
        old, new = self._writable(command.old_path), self._writable(command.new_path)
        with self._store.exclusive():
            if self._exists(new):
                raise ToolError(f"The destination {command.new_path} already exists")
            moved = self._under(old)
            if not moved:
                raise ToolError(f"The path {command.old_path} does not exist")
            if new[: len(old)] == old:
                raise ToolError(f"The path {command.old_path} cannot be moved into itself")
            self._check_folder(new)
            puts = [Put(*_place(one), None) for one in moved]
            puts += [_written((*new, *one[len(old) :]), text) for one, text in moved.items()]
            self._items.apply(puts)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        """Delete all files."""
        self._items.apply([Put(*_place(one), None) for one in self._under((ROOT,))])
        return "All memory cleared"

    # -- files: paths and texts

    def _text(self, path: Path) -> str | None:
        """Return the text of a file; None if there is no such file."""
        if path[:2] == (ROOT, MEMORIES):
            return next((self._memories(kind) for kind in MEMORY_TYPES if path[2:] == (f"{kind}.md",)), None)
        if len(path) < 2:
            return None
        item = self._items.get(*_place(path))
        return None if item is None else str(item.value.get("text", ""))

    def _memories(self, kind: str) -> str:
        found = self._items.search_memories((MEMORIES, kind), limit=_MOST_SHOWN)
        return "\n".join(f"- {visible_line(one.item.value['text'])}" for one in found)

    def _file(self, path: Path, name: str) -> str:
        text = self._text(path)
        if text is not None:
            return text
        if self._exists(path):
            raise ToolError(f"The path {name} is not a file.")
        raise ToolError(f"The path {name} does not exist. Please provide a valid path.")

    def _under(self, path: Path) -> dict[Path, str]:
        """Return a file, or all files in a folder, by path."""
        text = self._text(path)
        if text is not None:
            return {path: text}
        found = (one.item for one in self._items.search(path, limit=2**31))
        return {(*item.namespace, item.key): str(item.value.get("text", "")) for item in found}

    def _exists(self, path: Path) -> bool:
        return path == (ROOT,) or bool(self._under(path))

    def _check_folder(self, path: Path) -> None:
        for end in range(2, len(path)):
            if self._text(path[:end]) is not None:
                raise ToolError(f"The path /{'/'.join(path[:end])} is a file, not a folder")

    def _writable(self, name: str) -> Path:
        path = _parsed(name)
        if path == (ROOT,):
            raise ToolError("The /memories directory itself cannot be created, changed, renamed or deleted")
        if path[1] == MEMORIES:
            raise ToolError(f"/{ROOT}/{MEMORIES} is read-only: it shows memories that were stored elsewhere")
        return path

    def _listing(self, path: Path, name: str) -> str:
        files = self._under(path)
        if path == (ROOT,) or path == (ROOT, MEMORIES):
            files |= {(ROOT, MEMORIES, f"{kind}.md"): text for kind in MEMORY_TYPES if (text := self._memories(kind))}
        if not files and path != (ROOT,):
            raise ToolError(f"The path {name} does not exist. Please provide a valid path.")
        sizes: dict[Path, int] = {}
        for file, text in files.items():
            for end in range(len(path), len(file) + 1):
                sizes[file[:end]] = sizes.get(file[:end], 0) + len(text.encode())
        rows = [f"{_size(sizes.get(path, 0))}\t{name}"]
        for one in sorted(sizes):
            rest = one[len(path) :]
            if 0 < len(rest) <= _DEPTH and not any(label.startswith(".") for label in rest):
                rows.append(f"{_size(sizes[one])}\t{name}/{'/'.join(rest)}{'' if one in files else '/'}")
        header = f"Here're the files and directories up to 2 levels deep in {name}, excluding hidden items:"
        return "\n".join([header, *rows])


def _parsed(name: str) -> Path:
    """Return the parts of a path; reject one that is not below ``/memories``."""
    parts = tuple(part for part in name.split("/") if part)
    if not name.startswith("/") or parts[:1] != (ROOT,):
        raise ToolError(f"Path must start with /memories, got: {name}")
    if any(part in (".", "..") for part in parts):
        raise ToolError(f"Path {name} would escape /memories directory")
    return parts


def _place(path: Path) -> tuple[Path, str]:
    return path[:-1], path[-1]


def _written(path: Path, text: str) -> Put:
    namespace, key = _place(path)
    return Put(namespace, key, {"text": text}, texts=[f"{'/'.join(path[1:])}: {text}"])


def _places(text: str, part: str) -> list[int]:
    return [place for place in range(len(text)) if text.startswith(part, place)] if part else []


def _numbered(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _size(size: int) -> str:
    power = min((size.bit_length() - 1) // 10, len(_UNITS) - 1) if size else 0
    number = size / 1024**power
    return f"{int(number)}{_UNITS[power]}" if number == int(number) else f"{number:.1f}{_UNITS[power]}"
