"""Output: results go to stdout, everything else to stderr; memory text is never interpreted as markup."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.options import Settings
from memgraph.text.safe import one_line

if TYPE_CHECKING:
    from memgraph.ports import Progress

WIDTH = 80
_BARE = {"embedding"}


def plain(text: str) -> str:
    """Return a text as one harmless line: no control characters, no direction overrides."""
    return one_line(text)


def emit(settings: Settings, document: Any, text: str | Sequence[str]) -> None:
    """Print a result: the document with ``--json``, otherwise the text."""
    if settings.as_json:
        emit_json(document)
    else:
        for line in [text] if isinstance(text, str) else text:
            click.echo(line)


def emit_json(document: Any) -> None:
    """Print a model or a JSON-compatible value as one JSON document."""
    if hasattr(document, "model_dump"):
        document = document.model_dump(mode="json")
    on_terminal = sys.stdout.isatty()  # a terminal may interpret non-ASCII characters as commands
    click.echo(json.dumps(document, ensure_ascii=on_terminal, indent=2 if on_terminal else None))


def without_vectors(memory: Any) -> dict[str, Any]:
    """Return a memory's JSON fields without its embedding."""
    fields: dict[str, Any] = memory.model_dump(mode="json", exclude=_BARE)
    return fields


def notice(text: str) -> None:
    """Print a notice on standard error."""
    click.echo(f"memgraph: {plain(text)}", err=True)


def stderr_line(text: str) -> None:
    """Print one line without control characters on standard error."""
    click.echo(plain(text), err=True)


def wrapped(text: str, *, indent: str = "", first: str | None = None) -> str:
    """Return a one-line text wrapped at 80 columns."""
    return textwrap.fill(
        plain(text),
        WIDTH,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


def count(number: int, singular: str, plural: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def listing(rows: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Print (text, details) rows: two lines each on a terminal, else one line with tabs, the text last."""
    if not sys.stdout.isatty():
        for text, details in rows:
            click.echo("\t".join(plain(cell) for cell in (*details, text)))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for text, details in rows:
        console.print(Text(plain(text), style="bold"))
        console.print(Text("  " + "  ".join(plain(cell) for cell in details if cell), style="dim"))


@contextmanager
def progress(settings: Settings, label: str) -> Iterator[Progress | None]:
    """Show a progress bar while the block runs; yield None if stderr is not a terminal."""
    if settings.as_json or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
