"""``export`` and ``import``: a store's content as one JSON document."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from memgraph.interfaces.cli.group import Refused
from memgraph.interfaces.cli.opening import opened
from memgraph.interfaces.cli.options import Command, ReadingCommand, Settings, pass_settings
from memgraph.interfaces.cli.output import count, emit, plain

MAX_IMPORT_BYTES = 1 << 30


@click.command(cls=ReadingCommand)
@click.argument("file", default="-")
@pass_settings
def export(settings: Settings, file: str) -> None:
    """Write an export, readable by its owner alone, whole or not at all."""
    with opened(settings) as memory:
        exported = memory.commands.export_memories()
    if file == "-":
        click.echo(exported.model_dump_json())
        return
    path = Path(file)
    _write(path, exported.model_dump_json().encode())
    document = {"file": str(path), "memories": exported.total_memories, "links": len(exported.links)}
    told = f"Exported {count(exported.total_memories, 'memory', 'memories')} and {count(len(exported.links), 'link')}"
    emit(settings, document, f"{told} to {plain(str(path))}.")


@click.command("import", cls=Command)
@click.argument("file")
@pass_settings
def import_(settings: Settings, file: str) -> None:
    """Read an export; '-' reads standard input."""
    document = _read(file)
    with opened(settings) as memory:
        result = memory.commands.import_memories(document)
    emit(settings, result, result.message)


def _write(path: Path, data: bytes) -> None:
    """Write to a temporary file beside the target, then rename it."""
    temporary: str | None = None
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).replace(path)
    except BaseException as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise Refused(f"{path} cannot be written: {error.strerror}") from None
        raise


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
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        why = "it ends too early" if error.pos >= len(data.rstrip()) - 1 else f"{error.msg}, line {error.lineno}"
        raise Refused(f"{file} is not a whole JSON document ({why}); export it again") from None
    if not isinstance(document, dict):
        raise Refused(f"{file} is not an export: it holds no object with version and memories")
    return document
