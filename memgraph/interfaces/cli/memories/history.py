"""``history``, ``why``, ``undo``: what happened to a memory, where it comes from, and taking a change back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from memgraph.errors import NotFoundError
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, ReadingCommand, Settings, pass_settings
from memgraph.interfaces.cli.base.output import emit, emit_json, plain
from memgraph.interfaces.cli.memories.changes import changed_lines, difference, heading
from memgraph.text.cutting import preview

if TYPE_CHECKING:
    from memgraph.facade import MemGraph
    from memgraph.model.results.curation import HistoryEntry, Origin

_MINUTE_CHARS = len("2026-02-19T08:30")
_INDENT = " " * len("   123  2026-02-19 08:30  system  ")


@click.command(cls=ReadingCommand)
@click.argument("id_", metavar="ID")
@pass_settings
def history(settings: Settings, id_: str) -> None:
    """List the events that concern a memory."""
    with opened(settings) as memory:
        entries = memory.curation.history(_known_or_deleted(memory, id_))
    if settings.as_json:
        emit_json([entry.model_dump(mode="json") for entry in entries])
        return
    for entry in entries:
        for line in _event_lines(entry):
            click.echo(line)


@click.command(cls=ReadingCommand)
@click.argument("id_", metavar="ID")
@click.option("--depth", type=click.IntRange(0, 20), default=3, show_default=True, help="How many links to follow.")
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000),
    default=10,
    show_default=True,
    help="Maximum number of links of each memory.",
)
@pass_settings
def why(settings: Settings, id_: str, depth: int, limit: int) -> None:
    """Show where a memory comes from."""
    with opened(settings) as memory:
        found = memory.curation.why(memory.store.find_id(id_), depth=depth, most=limit)
    emit(settings, found, [_heading(found), *_branches(found, "")])


@click.command(cls=Command)
@click.argument("event", type=click.IntRange(min=1), required=False)
@pass_settings
def undo(settings: Settings, event: int | None) -> None:
    """Undo the commit of an event, by default the last change by a user."""
    from memgraph.model.results.curation import MemoryCommandResult

    with opened(settings) as memory:
        result = memory.curation.undo(event)
    through = f" to {result.undone_through}" if result.undone_through != result.undone else ""
    events = f"event{'s' if through else ''} {result.undone}{through}"
    back = "undo" if result.is_redo else "redo"
    more = f" and {len(result.what) - 1:,} more" if len(result.what) > 1 else ""
    what = f", which had {result.what[0]}{more}" if result.what and not result.is_redo else ""
    done = "Redid what was undone by" if result.is_redo else "Undid"
    message = plain(f"{done} {events}{what}; {back}: memgraph undo {result.event}")
    document = MemoryCommandResult(command="undo", success=True, message=message, data=result.model_dump(mode="json"))
    first = [heading(one) for one in result.memories] if len(result.memories) == 1 else []
    emit(settings, document, [*first, *changed_lines(result.memories), *result.links, message])


def _known_or_deleted(memory: MemGraph, beginning: str) -> str:
    try:
        return memory.store.find_id(beginning)
    except NotFoundError:
        return memory.store.find_id(beginning, deleted=True)


def _event_lines(entry: HistoryEntry) -> Iterator[str]:
    when = entry.at[:_MINUTE_CHARS].replace("T", " ")
    undone = f"  (undone by event {entry.undone_by})" if entry.undone_by else ""
    undoes = f"  (undoes event {entry.undoes})" if entry.undoes else ""
    yield f"{entry.event:>6}  {when}  {entry.by:<6}  {plain(entry.what)}{undoes}{undone}"
    if entry.reason:
        yield f"{_INDENT}why: {plain(entry.reason)}"
    for change in entry.changes:
        yield from (f"{_INDENT}{line}" for line in difference(change))


def _heading(found: Origin) -> str:
    return f"{found.id[:8]}  {found.type}  “{plain(preview(found.content))}”{'  (shown above)' if found.is_repeated else ''}"


def _branches(found: Origin, indent: str) -> Iterator[str]:
    """Yield the lines below a memory."""
    if found.is_repeated:
        return
    leaves = list(_leaves(found))
    total = len(leaves) + len(found.relations) + bool(found.more)
    for place, leaf in enumerate(leaves, start=1):
        yield f"{indent}{'└─' if place == total else '├─'} {plain(leaf)}"
    for place, relation in enumerate(found.relations, start=len(leaves) + 1):
        is_last = place == total
        why_linked = f" ({relation.reason})" if relation.reason else ""
        yield f"{indent}{'└─' if is_last else '├─'} {plain(relation.relation + why_linked)}:  {_heading(relation.memory)}"
        yield from _branches(relation.memory, indent + ("   " if is_last else "│  "))
    if found.more:
        yield f"{indent}└─ {found.more:,} more; see --depth and --limit"


def _leaves(found: Origin) -> Iterator[str]:
    if found.made is not None:
        when = found.made.at[:_MINUTE_CHARS].replace("T", " ")
        reason = f": {found.made.reason}" if found.made.reason else ""
        yield f"added by {found.made.by}, event {found.made.event}, {when}{reason}"
    if found.why and (found.made is None or found.why != found.made.reason):
        yield f"kept because: {found.why}"
    for place in found.places:
        yield f"from {place.source}: {place.place}" if place.source else f"from {place.place}"
    if found.more_places:
        yield f"and from {found.more_places:,} more places"
    if found.facts:
        yield ", ".join(f"{name}: {value}" for name, value in found.facts.items())
