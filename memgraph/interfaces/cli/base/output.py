"""Output: results go to stdout, everything else to stderr; memory text is never interpreted as markup."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.options import Settings
from memgraph.text.safe import visible_line

if TYPE_CHECKING:
    from rich.console import Console

    from memgraph.model.model_usage import ModelUsage
    from memgraph.model.results.maintenance import RemainingName
    from memgraph.ports import Progress

WIDTH = 80
_LEAST_WIDTH = 20


def plain(text: str) -> str:
    """Return a text as one harmless line: no control characters, no direction overrides, nothing that only a model would read."""
    return visible_line(text)


def emit(settings: Settings, document: Any, text: str | Sequence[str]) -> None:
    """Print a result: the document with ``--json``, otherwise the text."""
    if settings.as_json:
        emit_json(document)
    else:
        print_lines([text] if isinstance(text, str) else text)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines; on a terminal, through the pager if they do not fit on the screen."""
    print_text("".join(f"{line}\n" for line in lines))


def print_text(text: str) -> None:
    """Print a text that ends with a newline and may be styled; on a terminal, through the pager if it does not fit on the screen.

    The pager is ``PAGER``, else the system's; an empty ``PAGER`` and ``--no-pager`` switch it off.
    """
    if _is_paged(text):
        click.echo_via_pager(text.removesuffix("\n"), color=True)  # only what a terminal may show is styled at all
    else:
        click.echo(text, nl=False)


def _is_paged(text: str) -> bool:
    if not sys.stdout.isatty() or not sys.stdin.isatty() or os.environ.get("PAGER") == "":
        return False
    ctx = click.get_current_context(silent=True)
    settings = ctx.find_object(Settings) if ctx else None
    if settings is not None and not settings.pages:
        return False
    width, height = shutil.get_terminal_size()
    rows = (max(1, -(-len(click.unstyle(line)) // width)) for line in text.split("\n"))
    return sum(rows) > height


documents: list[bool] = []
"""One element for each JSON document that this process has printed in its command."""


def emit_json(document: Any) -> None:
    """Print a model or a JSON-compatible value as one JSON document."""
    if hasattr(document, "model_dump"):
        document = document.model_dump(mode="json")
    on_terminal = sys.stdout.isatty()  # a terminal may interpret non-ASCII characters as commands
    documents.append(True)
    click.echo(json.dumps(document, ensure_ascii=on_terminal, indent=2 if on_terminal else None))


def notice(text: str) -> None:
    """Print a notice on standard error."""
    click.echo(f"memgraph: {plain(text)}", err=True)


def stderr_line(text: str) -> None:
    """Print one line without control characters on standard error."""
    click.echo(plain(text), err=True)


def wrapped(text: str, *, indent: str = "", first: str | None = None) -> str:
    """Return a one-line text wrapped at 80 columns, or at the width of a narrower terminal."""
    narrow = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    return textwrap.fill(
        plain(text),
        max(min(WIDTH, narrow), len(indent) + _LEAST_WIDTH),
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )


def wrapped_lines(text: str, *, indent: str = "") -> list[str]:
    """Return a text with its own line breaks and indentation, each line without control characters; plain paragraphs are wrapped."""
    if "\n" not in text:
        return [wrapped(text, indent=indent)]
    lines = text.expandtabs(4).split("\n")
    return [f"{indent}{' ' * (len(line) - len(line.lstrip(' ')))}{plain(line)}".rstrip() for line in lines]


def pairs(rows: Sequence[tuple[str, str]], *, indent: str = "") -> list[str]:
    """Return a line for each name with its text, aligned; on a terminal, a text is wrapped within its own column."""
    width = max((len(name) for name, _ in rows), default=0)
    heads = [f"{indent}{name:<{width}}  " for name, _ in rows]
    if not sys.stdout.isatty():
        return [f"{head}{text}".rstrip() for head, (_, text) in zip(heads, rows, strict=True)]
    columns = max(shutil.get_terminal_size().columns, len(indent) + width + 2 + _LEAST_WIDTH)
    return [_hanging(head, text, columns) for head, (_, text) in zip(heads, rows, strict=True)]


def _hanging(head: str, text: str, columns: int) -> str:
    """Return a text after its head, wrapped beside it; a path or an id is not broken."""
    indent = " " * len(head)
    wrapped_text = textwrap.fill(
        text,
        columns,
        initial_indent=head,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapped_text or head.rstrip()


def count(number: int, singular: str, plural: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def listing(rows: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Print (text, details) rows: two lines each on a terminal, else one line with tabs, the text last."""
    if not sys.stdout.isatty():
        print_lines("\t".join(plain(cell) for cell in (*details, text)) for text, details in rows)
        return
    from rich.text import Text

    with styled() as console:
        for text, details in rows:
            console.print(Text(plain(text), style="bold"))
            console.print(Text("  " + "  ".join(plain(cell) for cell in details if cell), style="dim"))


@contextmanager
def styled() -> Iterator[Console]:
    """Give a console of the terminal's width; print what it was given when the block ends. Rich honours ``NO_COLOR``."""
    from rich.console import Console

    console = Console(highlight=False)
    with console.capture() as captured:
        yield console
    print_text(captured.get())


@contextmanager
def progress(settings: Settings, label: str) -> Iterator[Progress | None]:
    """Show a progress bar while the block runs; yield None if stderr is not a terminal."""
    if settings.as_json or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Left(TimeRemainingColumn):
        """The remaining time, once the total is known."""

        def render(self, task: Task) -> Text:
            remaining = super().render(task)
            return remaining.append(" left") if remaining.plain else remaining

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        Left(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def backup_lines() -> Iterator[str]:
    """Yield what to do about backups after a purge."""
    yield "Backups made before the purge still hold what was purged: make a full one (an incremental one is refused), then delete them."


def remaining_lines(remaining: Sequence[RemainingName] | None) -> Iterator[str]:
    """Yield what names stay and why; None: it is not known."""
    if remaining is None:
        yield "The purge was interrupted: whether the words are in names that cannot be removed is not known; `memgraph docs privacy`."
    if remaining:
        yield "These names have the words and stay, because they are signed, or the journal needs them:"
    for one in remaining or ():
        name = f" {plain(one.name)}" if one.name else ""
        yield f"  {plain(one.what)}{name} ({count(one.events, 'event')}, the first is {one.event:,})"


def usage_lines(usage: ModelUsage | None) -> list[str]:
    """Return a line with the calls, tokens and seconds, and one more if the budget was spent; nothing without a call."""
    if usage is None:
        return []
    failed = f" ({usage.failures:,} failed)" if usage.failures else ""
    tokens = f"{usage.prompt_tokens:,} prompt tokens and {usage.completion_tokens:,} completion tokens"
    called = plain(" and ".join(usage.models)) or "a model"
    lines = [f"Called {called} {count(usage.calls, 'time')}{failed}: {tokens}, {usage.seconds:.1f} s."]
    if usage.spent:
        lines.append("The model budget was spent; rules did the rest (see model_budget in `memgraph config show`).")
    return lines
