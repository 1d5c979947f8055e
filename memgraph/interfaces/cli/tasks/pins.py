"""``pins``: texts that hold until somebody edits or removes them explicitly."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memgraph.errors import NotFoundError
from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.input import MAX_STDIN_CHARS, standard_input
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import TIERS, ReadingCommand, Settings, Subgroup, pass_settings, past_options
from memgraph.interfaces.cli.base.output import count, emit, emit_json, plain, print_lines

if TYPE_CHECKING:
    from memgraph.facade import MemGraph
    from memgraph.model.results.tasks import Pin

_KINDS = ("fact", "preference", "constraint", "temporary")
_SHORT = 8
_TOO_LONG = "a view of pins has one line for each"
_id = click.argument("id_", metavar="ID")
_of_task = click.option("--task", "task_id", metavar="ID", help="The task.  [default: none, the pins of every task]")
_until = click.option("--until", metavar="TIME", help="When a temporary pin ends.")


@click.group(cls=Subgroup, invoke_without_command=True, params=past_options())
@click.pass_context
def pins(ctx: click.Context) -> None:
    """List the pins if no command is given."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@pins.command("list", cls=ReadingCommand)
@click.option("--task", "task_id", metavar="ID", help="Also pins of this task.")
@click.option("--all-tasks", is_flag=True, help="Also pins of every task.")
@click.option("--kind", type=click.Choice(_KINDS), help="Only pins of this kind.")
@pass_settings
def list_(settings: Settings, task_id: str | None = None, all_tasks: bool = False, kind: Any = None) -> None:
    """List the pins that hold, oldest first."""
    with opened(settings) as memory:
        found = memory.tasks.pins.list(task_id=task_id, all_tasks=all_tasks, kind=kind)
    if settings.as_json:
        emit_json([one.model_dump(mode="json") for one in found])
        return
    print_lines([_line(one) for one in found] or ["There are no pins."])


@pins.command("add")
@click.argument("text")
@click.option("--kind", type=click.Choice(_KINDS), default="fact", show_default=True, help="What it is.")
@_until
@_of_task
@pass_settings
def add(settings: Settings, text: str, kind: Any, until: str | None, task_id: str | None) -> None:
    """Pin a text. One that is pinned already stays as it is."""
    with opened(settings) as memory:
        found = memory.tasks.pins.upsert(text, kind=kind, task_id=task_id, expires_at=until)
    said = "Pinned" if found.is_new else "Pinned already, and left as it is"
    emit(settings, found, f"{said}: {_line(found.pin)}")


@pins.command("edit")
@_id
@click.option("--text", metavar="TEXT", help="The new text.")
@click.option("--kind", type=click.Choice(_KINDS), help="The new kind.")
@_until
@click.option("--tier", "--privacy", "tier", type=click.Choice(TIERS), help="Its privacy tier.")
@click.option("--domain", "--context", "domain", metavar="NAME", help="Its domain, such as health; '' clears it.")
@pass_settings
def edit(
    settings: Settings, id_: str, text: str | None, kind: Any, until: str | None, tier: Any, domain: str | None
) -> None:
    """Change the text, the kind, the end, the privacy tier or the domain of a pin."""
    given = {"text": text, "kind": kind, "expires_at": until, "privacy_tier": tier, "domain": domain}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if not changes:
        raise click.UsageError("nothing to change: give --text, --kind, --until, --tier or --domain")
    with opened(settings) as memory:
        pin = memory.tasks.pins.edit(_found(memory, id_), **changes)
    emit(settings, pin, f"Edited: {_line(pin)}")


@pins.command("remove")
@_id
@pass_settings
def remove(settings: Settings, id_: str) -> None:
    """Ask to remove a pin; the command that is printed removes it, within three minutes."""
    with opened(settings) as memory:
        asked = memory.tasks.pins.request_removal(_found(memory, id_))
    ends = asked.expires_at[11:19]
    lines = [
        f"Nothing is removed yet: {_line(asked.pin)}",
        f"Until {ends} UTC: memgraph pins confirm {asked.pin.id[:_SHORT]} {asked.token}",
        f"To withdraw it: memgraph pins cancel {asked.pin.id[:_SHORT]} {asked.token}",
    ]
    emit(settings, asked, lines)


@pins.command("confirm")
@_id
@click.argument("token")
@pass_settings
def confirm(settings: Settings, id_: str, token: str) -> None:
    """Remove a pin with the token that ``remove`` gave."""
    with opened(settings) as memory:
        pin = memory.tasks.pins.confirm_removal(_found(memory, id_), token)
    emit(settings, pin, f"Removed: {_line(pin)}")


@pins.command("cancel")
@_id
@click.argument("token")
@pass_settings
def cancel(settings: Settings, id_: str, token: str) -> None:
    """Withdraw a request to remove a pin."""
    with opened(settings) as memory:
        pin = memory.tasks.pins.cancel_removal(_found(memory, id_), token)
    emit(settings, pin, f"Cancelled; the pin stays: {_line(pin)}")


@pins.command("write", cls=ReadingCommand)
@click.argument("file", metavar="[FILE]", required=False, type=click.Path(dir_okay=False, path_type=Path))
@_of_task
@pass_settings
def write(settings: Settings, file: Path | None, task_id: str | None) -> None:
    """Write the pins as Markdown to FILE or standard output; ``read`` takes it back."""
    from memgraph.store.purge.exports import note_exports
    from memgraph.tasks.pins import as_markdown

    with opened(settings) as memory:
        found = memory.tasks.pins.list(task_id=task_id)
    text = as_markdown(found, task_id=task_id)
    if file is None:
        emit(settings, {"markdown": text}, text.removesuffix("\n"))
        return
    file.write_text(text, "utf-8")
    note_exports(memory.store.config.home, "pins write", file, at=memory.store.now())
    emit(settings, {"file": str(file)}, f"Wrote {plain(str(file))}")


@pins.command("read")
@click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
@_of_task
@pass_settings
def read(settings: Settings, file: str, task_id: str | None) -> None:
    """Read Markdown that ``write`` wrote: changed lines are edits, lines without an id new pins; nothing is removed."""
    from memgraph.tasks.pins import read_markdown

    try:
        text = standard_input(_TOO_LONG) if file == "-" else Path(file).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"{file} is not UTF-8 text (byte {error.start})") from None
    if len(text) > MAX_STDIN_CHARS:
        raise Refused(f"{file} holds more than {MAX_STDIN_CHARS:,} characters; {_TOO_LONG}")
    with opened(settings) as memory:
        done = read_markdown(memory.tasks.pins, text, task_id=task_id)
    added, edited = count(len(done.added), "pin"), count(len(done.edited), "pin")
    emit(settings, done, f"{added} added, {edited} edited, {done.unchanged} left as they were")


def _found(memory: MemGraph, id_: str) -> str:
    """Return the id of a pin, whose beginning may be given."""
    try:
        return memory.store.find_id(id_)
    except NotFoundError:
        raise NotFoundError("pin", id_, listed_by="memgraph pins") from None


def _line(pin: Pin) -> str:
    task = f"  task {plain(pin.task_id)}" if pin.task_id else ""
    until = f"  until {pin.expires_at}" if pin.expires_at else ""
    return f"{pin.id[:_SHORT]}  {pin.kind}{task}{until}  {plain(pin.content)}"
