"""``export`` and ``import``: write and read a store's content as one JSON document."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, ReadingCommand, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, emit_json, notice, plain, progress

MAX_IMPORT_BYTES = 1 << 30


@click.command(cls=ReadingCommand)
@click.argument("file", default="-")
@click.option(
    "--shareable",
    is_flag=True,
    help="For sharing: leave out suppressed, archived, sensitive and private memories, and those derived from them.",
)
@pass_settings
def export(settings: Settings, file: str, shareable: bool) -> None:
    """Write an export atomically; only its owner can read the file."""
    with opened(settings) as memory, progress(settings, "reading") as bar:
        exported = memory.commands.export_memories(shareable=shareable, progress=bar)
    if forgotten := sum(one.is_suppressed for one in exported.memories):
        included = count(forgotten, "forgotten memory", "forgotten memories")
        notice(f"this backup includes {included} and memories derived from them; --shareable leaves them out")
    if file == "-":
        click.echo(exported.model_dump_json())
        return
    from memgraph.store.purge.exports import note_exports
    from memgraph.viz.files import write_files

    path = Path(file)
    write_files({path: exported.model_dump_json().encode()})
    note_exports(memory.store.config.home, "export", path, at=memory.store.now())
    document = {"file": str(path), "memories": exported.total_memories, "links": len(exported.links)}
    exported_counts = (
        f"Exported {count(exported.total_memories, 'memory', 'memories')} and {count(len(exported.links), 'link')}"
    )
    emit(settings, document, f"{exported_counts} to {plain(str(path))}.")


@click.command("import", cls=Command)
@click.argument("file")
@pass_settings
def import_(settings: Settings, file: str) -> None:
    """Import an export, or the file of the MCP memory server; '-' reads standard input."""
    document = _read(file)
    with opened(settings) as memory, progress(settings, "embedding") as bar:
        result = memory.commands.import_memories(document, progress=bar)
    if settings.as_json:
        emit_json(result)
    if not result.success:
        raise Refused(result.message)
    if not settings.as_json:
        click.echo(plain(result.message))


def _read(file: str) -> dict[str, Any]:
    import orjson

    try:
        if file == "-":
            data = sys.stdin.buffer.read(MAX_IMPORT_BYTES + 1)
        else:
            with Path(file).open("rb") as stream:
                data = stream.read(MAX_IMPORT_BYTES + 1)
    except OSError as error:
        raise Refused(f"{file} cannot be read: {error.strerror}") from None
    if len(data) > MAX_IMPORT_BYTES:
        raise Refused(f"{file} is larger than {MAX_IMPORT_BYTES >> 20:,} MB; import it in parts")
    if export := _of_mcp_server(data):
        return export
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        why = "it is truncated" if error.pos >= len(data.rstrip()) - 1 else f"{error.msg}, line {error.lineno}"
        raise Refused(f"{file} is not a complete JSON document ({why}); export it again") from None
    if not isinstance(document, dict):
        raise Refused(
            f"{file} is not an export: it must be a JSON object with version and memories; `memgraph docs sources` says what else is read"
        )
    return document


def _of_mcp_server(data: bytes) -> dict[str, Any] | None:
    """Return an export of what the MCP memory server's file states: a line is an entity or a relation; None for another file."""
    import orjson

    from memgraph.model.ids import natural_id
    from memgraph.model.results.curation import EXPORT_VERSION

    facts: dict[str, None] = {}
    for line in filter(None, map(bytes.strip, data.splitlines())):
        try:
            entry = orjson.loads(line)
        except orjson.JSONDecodeError:
            return None
        kind = entry.get("type") if isinstance(entry, dict) else None
        if kind == "entity" and isinstance(entry.get("observations"), list):
            facts |= dict.fromkeys(f"{entry.get('name')}: {one}" for one in entry["observations"])
        elif kind == "relation":
            facts[" ".join(str(entry.get(key)) for key in ("from", "relationType", "to"))] = None
        else:
            return None
    if not facts:
        return None
    common = {"type": "semantic", "source": "mcp memory server", "trust_class": "imported"}
    memories = [{**common, "id": natural_id("imported", fact), "content": fact} for fact in facts]
    at = datetime.now(UTC).isoformat()
    return {"version": EXPORT_VERSION, "exported_at": at, "total_memories": len(memories), "memories": memories}
