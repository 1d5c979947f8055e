"""Commands that hide memories and their inverses: ``archive`` and ``unarchive``, ``delete`` and ``undelete``, and so on.

Each prints the command that undoes it. An id may be shortened to its first eight characters or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.completing import relations
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings, with_reason
from memgraph.interfaces.cli.base.output import emit, emit_json, plain
from memgraph.interfaces.cli.memories.changes import report
from memgraph.interfaces.cli.memories.selection import Selection, check_named, selecting

if TYPE_CHECKING:
    from memgraph.facade import MemGraph
    from memgraph.model.memory import StoredMemory

_id = click.argument("id_", metavar="ID")
_ids = click.argument("ids", nargs=-1, metavar="[ID]...")


@click.command(cls=Command)
@click.argument("query", metavar="ID-OR-TEXT")
@pass_settings
def unforget(settings: Settings, query: str) -> None:
    """Undo ``forget``."""
    with opened(settings) as memory:
        result = memory.commands.unforget(query)
        still = _still(memory, result.data["id"]) if result.success else ""
    if settings.as_json:
        emit_json(result)
    if not result.success:
        raise Refused(result.message)
    if not settings.as_json:
        click.echo(plain(result.message + still))


@click.command(cls=Command)
@_ids
@with_reason
@click.option("--summary", metavar="TEXT", help="A summary to keep in its place.")
@selecting
@pass_settings
def archive(
    settings: Settings, ids: Sequence[str], selection: Selection, reason: str | None, summary: str | None
) -> None:
    """Archive memories."""
    check_named(ids, selection)
    with opened(settings) as memory:
        chosen = selection.ids(memory, ids, what="to archive them")
        result = memory.curation.archive(chosen, reason=reason, summary=summary)
        known = memory.store.read_memories(chosen)
    if len(known) > 1:
        report(settings, "archive", "Archived", result)
        return
    _report(settings, "archive", known[0], "Archived", f"unarchive {known[0].id}", event=result.event)


@click.command(cls=Command)
@_id
@pass_settings
def unarchive(settings: Settings, id_: str) -> None:
    """Undo ``archive``."""
    with opened(settings) as memory:
        found = memory.store.curation.states.unarchive(memory.store.find_id(id_))
        still = _still(memory, found.id)
    _report(settings, "unarchive", found, "No longer archived", f"archive {found.id}", still)


@click.command(cls=Command)
@_ids
@with_reason
@click.option("--at", metavar="TIME", help="Since when they are no longer true, ISO 8601.  [default: now]")
@selecting
@pass_settings
def invalidate(
    settings: Settings, ids: Sequence[str], selection: Selection, reason: str | None, at: str | None
) -> None:
    """Mark memories as no longer true."""
    check_named(ids, selection)
    with opened(settings) as memory:
        chosen = selection.ids(memory, ids, what="to mark them as invalid")
        result = memory.curation.invalidate(chosen, reason=reason, at=at)
        known = memory.store.read_memories(chosen)
    if len(known) > 1:
        report(settings, "invalidate", "Marked as invalid", result)
        return
    (found,) = known
    done = f"Invalid from {found.invalid_at}"
    _report(settings, "invalidate", found, done, f"revalidate {found.id}", event=result.event)


@click.command(cls=Command)
@_id
@pass_settings
def revalidate(settings: Settings, id_: str) -> None:
    """Undo ``invalidate``."""
    with opened(settings) as memory:
        found = memory.store.curation.states.revalidate(memory.store.find_id(id_))
        still = _still(memory, found.id)
    _report(settings, "revalidate", found, "Valid again", f"invalidate {found.id}", still)


@click.command(cls=Command)
@click.argument("older", metavar="OLDER")
@click.option("--by", required=True, metavar="NEWER", help="The memory that replaces it.")
@with_reason
@pass_settings
def supersede(settings: Settings, older: str, by: str, reason: str | None) -> None:
    """Mark a memory as replaced by a newer one."""
    with opened(settings) as memory:
        link = memory.store.curation.states.supersede(
            memory.store.find_id(older), by=memory.store.find_id(by), reason=reason
        )
        (found,) = memory.store.read_memories([link.target_id])
    undo = f"unsupersede {link.target_id} --by {link.source_id}"
    _report(settings, "supersede", found, f"Superseded by {link.source_id}", undo, by=link.source_id)


@click.command(cls=Command)
@click.argument("older", metavar="OLDER")
@click.option("--by", metavar="NEWER", help="Undo only the replacement by this memory.  [default: all]")
@pass_settings
def unsupersede(settings: Settings, older: str, by: str | None) -> None:
    """Undo ``supersede``."""
    with opened(settings) as memory:
        older_id = memory.store.find_id(older)
        newer = memory.store.curation.states.unsupersede(
            older_id, by=memory.store.find_id(by) if by is not None else None
        )
        (found,) = memory.store.read_memories([older_id])
        still = _still(memory, found.id)
    if not newer:
        raise Refused(f"memory {older_id} is not superseded{' by that memory' if by else ''}")
    undo = "; memgraph ".join(f"supersede {older_id} --by {one}" for one in newer)
    _report(settings, "unsupersede", found, "No longer superseded", undo, still, by=newer)


@click.command(cls=Command)
@_ids
@with_reason
@selecting
@pass_settings
def delete(settings: Settings, ids: Sequence[str], selection: Selection, reason: str | None) -> None:
    """Remove memories and their links from every view; the journal keeps them."""
    check_named(ids, selection)
    with opened(settings) as memory:
        chosen = selection.ids(memory, ids, what="to delete them")
        known = memory.store.read_memories(chosen)
        result = memory.curation.delete(chosen, reason=reason)
    if len(known) > 1:
        report(settings, "delete", "Deleted", result)
        return
    _report(settings, "delete", known[0], "Deleted", f"undelete {known[0].id}", event=result.event)


@click.command(cls=Command)
@_id
@pass_settings
def undelete(settings: Settings, id_: str) -> None:
    """Restore a deleted memory, and its links to memories that still exist."""
    with opened(settings) as memory:
        found = memory.store.curation.states.undelete(memory.store.find_id(id_, deleted=True))
        still = _still(memory, found.id)
    _report(settings, "undelete", found, "Restored", f"delete {found.id}", still)


@click.command(cls=Command)
@click.argument("source")
@click.argument("relation", shell_complete=relations)
@click.argument("target")
@with_reason
@pass_settings
def link(settings: Settings, source: str, relation: str, target: str, reason: str | None) -> None:
    """Link two memories."""
    with opened(settings) as memory:
        given = {} if reason is None else {"reason": reason}
        made = memory.store.curation.states.link(
            memory.store.find_id(source), relation, memory.store.find_id(target), **given
        )
    ends = f"{made.source_id} {made.relation} {made.target_id}"
    _answer(settings, "link", f"Linked: {ends}; undo: memgraph unlink {ends}", made.model_dump(mode="json"))


@click.command(cls=Command)
@click.argument("source")
@click.argument("relation", shell_complete=relations)
@click.argument("target")
@pass_settings
def unlink(settings: Settings, source: str, relation: str, target: str) -> None:
    """Remove a link."""
    with opened(settings) as memory:
        ids = [memory.store.find_id(source), memory.store.find_id(target)]
        if not memory.store.curation.states.unlink(ids[0], relation, ids[1]):
            raise Refused(
                f"there is no link {ids[0]} {relation.upper()} {ids[1]}; `memgraph show` lists a memory's links"
            )
    ends = f"{ids[0]} {relation.upper()} {ids[1]}"
    data = {"source_id": ids[0], "relation": relation.upper(), "target_id": ids[1]}
    _answer(settings, "unlink", f"Unlinked: {ends}; undo: memgraph link {ends}", data)


def _report(
    settings: Settings, command: str, memory: StoredMemory, done: str, undo: str, still: str = "", **data: Any
) -> None:
    from memgraph.text.cutting import preview

    message = f"{done}: '{preview(memory.content)}'; undo: memgraph {undo}{still}"
    _answer(settings, command, message, {"id": memory.id, **data})


def _answer(settings: Settings, command: str, message: str, data: dict[str, Any]) -> None:
    from memgraph.model.results.curation import MemoryCommandResult

    emit(settings, MemoryCommandResult(command=command, success=True, message=message, data=data), plain(message))


def _still(memory: MemGraph, memory_id: str | None) -> str:
    """Return the other states that still hide a restored memory, and the commands that undo them."""
    (found,) = memory.store.read_memories([memory_id or ""])
    is_invalid = found.invalid_at is not None and found.invalid_at <= memory.store.now()
    states = (
        (found.is_suppressed, "forgotten", "unforget"),
        (found.archived_at is not None, "archived", "unarchive"),
        (is_invalid, "invalid", "revalidate"),
    )
    return "".join(f". It is still {state}: memgraph {back} {found.id}" for holds, state, back in states if holds)
