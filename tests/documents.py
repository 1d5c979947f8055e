"""The documentation as data: its pages, its code blocks, and the tables that are generated from the code.

``python -m tests.documents`` writes the generated tables into the pages.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from memgraph.config import OUTSIDE_THE_STORE, default_settings
from memgraph.extraction.secrets import FORMATS
from memgraph.interfaces.cli.base.commands import GROUPS
from memgraph.interfaces.cli.docs import topics
from memgraph.interfaces.cli.group import COMMANDS
from memgraph.interfaces.cli.maintenance.config import _ELSEWHERE
from memgraph.interfaces.operations import OPERATIONS, offered
from tests.crash.failures import FAILURES
from tests.test_architecture import LAYERS, OUTSIDE, PACKAGE, ROOMS

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "memgraph" / "docs"
PAGES = (README, *sorted(DOCS.glob("*.md")))
_BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>.*?) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
_GENERATED = re.compile(r"(?P<begin><!-- generated: (?P<name>\w+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL)
_PLACES = {"home": "`~/.memgraph`", "keys_home": "`memgraph/` in the user's configuration directory"}
"""Defaults that are paths of whoever asks."""


class Block(NamedTuple):
    """A fenced block: its language, its text, and the reason why it is not run, if it is marked with one."""

    language: str
    text: str
    reason: str | None


def blocks(page: Path, *languages: str) -> list[Block]:
    """Return the blocks of a page, in order; of these languages only, if any are named."""
    found = [
        Block(match["language"], match["text"], match["reason"]) for match in _BLOCK.finditer(page.read_text("utf-8"))
    ]
    return [block for block in found if not languages or block.language in languages]


def with_tables(text: str) -> str:
    """Return a page with its generated tables as the code says that they are."""
    return _GENERATED.sub(lambda match: f"{match['begin']}{TABLES[match['name']]()}{match['end']}", text)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def failures() -> str:
    """Return what the crash tests cause, what memgraph does then, and what it says."""
    rows = [(one.what, one.does, f"``{_padded(one.says)}``" if one.says else one.note) for one in FAILURES]
    return table(("what happens", "what memgraph does", "what it says"), rows)


def settings() -> str:
    """Return the settings, from their model."""
    rows = [
        (
            "" if one.name in OUTSIDE_THE_STORE else f"`{one.name}`",
            f"`{one.variable}`" if one.variable else "",
            _default(one.name, one.default),
            one.meaning,
        )
        for one in default_settings()
    ]
    return table(("`config.toml`", "environment", "default", "meaning"), rows)


def environment() -> str:
    """Return the variables that are no settings of the file."""
    rows = [(f"`{name}`", meaning) for name, meaning in _ELSEWHERE.items() if name != "MEMGRAPH_HOME"]
    return table(("environment", "meaning"), rows)


def commands() -> str:
    """Return the commands with their help."""
    rows = [
        (f"`{name}`", entry.help, group) for group in GROUPS for name, entry in COMMANDS.items() if entry.group == group
    ]
    return table(("command", "what it does", "group"), rows)


def operations() -> str:
    """Return the operations with their descriptions, those of the core first."""
    core = offered("core")
    others = [one for one in OPERATIONS.values() if one not in core]
    rows = [(f"`{one.name}`", one.toolset, one.description) for one in (*core, *others)]
    return table(("tool", "toolset", "what it does"), rows)


def secrets() -> str:
    """Return the kinds of secrets with the beginnings of their forms and where their issuers publish them."""
    rows = [(one.kind, f"``{re.sub(r'<.*?>', '…', one.forms)}``", one.source) for one in FORMATS]
    return table(("kind", "forms", "as published at"), rows)


def links() -> str:
    """Return the topics with their summaries, each linked to its page."""
    rows = [(f"[{one.name}](memgraph/docs/{one.name}.md)", one.summary) for one in topics().values()]
    return table(("topic", "what it covers"), rows)


def folders() -> str:
    """Return the modules and folders of the package in the order of their layers, with the first lines of their docstrings."""
    parts = [*" ".join(map(" ".join, LAYERS)).split(), *sorted(OUTSIDE)]
    rows = [row for part in parts for row in _with_subfolders(part)]
    return table(("folder or module", "what it contains"), rows)


def _with_subfolders(part: str) -> Iterator[tuple[str, str]]:
    path = PACKAGE / part.replace(".", "/")
    if not path.is_dir():
        module = path.with_suffix(".py")
        if module.exists():
            yield f"`memgraph/{module.relative_to(PACKAGE)}`", _summary(module)
        return
    yield f"`memgraph/{path.relative_to(PACKAGE)}`", _summary(path / "__init__.py")
    for name in " ".join(ROOMS.get(part, ())).split():
        if (path / name / "__init__.py").exists():
            yield from _with_subfolders(f"{part}.{name}")


def _summary(module: Path) -> str:
    """Return the first line of a module's docstring, with references as code in Markdown."""
    docstring = ast.get_docstring(ast.parse(module.read_text("utf-8"))) or ""
    return docstring.partition("\n")[0].replace("``", "`")


TABLES: dict[str, Callable[[], str]] = {
    "commands": commands,
    "environment": environment,
    "failures": failures,
    "folders": folders,
    "operations": operations,
    "secrets": secrets,
    "settings": settings,
    "topics": links,
}


def _default(name: str, value: Any) -> str:
    if name in _PLACES:
        return _PLACES[name]
    return f"`{json.dumps(value)}`" if value != "" else ""


def _padded(text: str) -> str:
    """Return a text as it may stand between backticks: one that ends with a backtick needs a space there."""
    return f"{text} " if text.endswith("`") else text


def stale() -> Iterator[tuple[Path, str]]:
    """Yield each page whose tables are not those of the code, with the text that it should have."""
    for page in PAGES:
        text = page.read_text("utf-8")
        if (wanted := with_tables(text)) != text:
            yield page, wanted


if __name__ == "__main__":
    for path, text in list(stale()):
        path.write_text(text, "utf-8")
        print(f"Wrote {path.relative_to(ROOT)}.")
