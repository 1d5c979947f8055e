"""``rebuild``, ``verify``, ``format-age``."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memgraph.errors import InvalidInputError
from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import backup_lines, count, emit, plain, progress, remaining_lines
from memgraph.interfaces.cli.maintenance.settling import settle, settled
from memgraph.model.timestamps import age, to_iso

if TYPE_CHECKING:
    from memgraph.store.maintenance.verifying import Verification


ENGINES = ("kuzu", "ladybug")


@click.command(cls=Command)
@click.option("--engine", type=click.Choice(ENGINES), help="Switch to this engine, and set it in the settings file.")
@pass_settings
def rebuild(settings: Settings, engine: str | None) -> None:
    """Replay the journal into a new graph and index."""
    given: dict[str, Any] = {} if engine is None else {"engine": engine}
    with opened(settings, **given) as memory:
        with progress(settings, "replaying") as bar:
            memory.store.rebuild(bar)
        total, digest = memory.commands.stats().total, memory.store.digest()
    place = {} if engine is None else settle(settings, "engine", engine)
    where = "" if engine is None else f" with {engine}"
    done = f"Rebuilt graph and index from the journal{where}: {count(total, 'memory', 'memories')}."
    after = settled(place, "until then the next command rebuilds the graph with the other engine") if place else []
    emit(settings, {"memories": total, "digest": digest, **place}, [done, *after])


@click.command(cls=Command)
@click.option("--deep", is_flag=True, help="Also compare every row of the graph with a replay, and verify the index.")
@click.option(
    "--receipt",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Instead, check the receipt of a purge against the journal.",
)
@pass_settings
def verify(settings: Settings, *, deep: bool, receipt: Path | None) -> None:
    """Verify the journal from its first event, and vectors and rows against it."""
    if receipt is not None:
        _verify_receipt(settings, receipt)
        return
    with opened(settings, checks=True) as memory, progress(settings, "verifying") as bar:
        found = memory.store.verification(bar, deep=deep)
    emit(settings, _document(found), _lines(found))
    if found.differing:
        more = f", first {found.first[0]}" if settings.as_json else ""
        raise Refused(f"{count(found.differing, 'difference')} from the journal{more}; {_advice(found)}")


def _verify_receipt(settings: Settings, path: Path) -> None:
    """Check a receipt, and print what it proves."""
    from memgraph.store.purge.purging import MAX_BYTES

    try:
        with path.open("rb") as file:
            document = file.read(MAX_BYTES)
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror}") from None
    with opened(settings, checks=True) as memory:
        found = memory.store.check_receipt(document)
    events = f"{count(found.events, 'event')} {'has' if found.events == 1 else 'have'} no content"
    vectors = f"{count(found.vectors, 'vector')} {'was' if found.vectors == 1 else 'were'} removed"
    done = f"The receipt is genuine: {events}, and {vectors}."
    emit(settings, found, [done, *remaining_lines(found.remaining), *backup_lines()])


def _document(found: Verification) -> dict[str, Any]:
    names = ("events", "vectors", "nodes", "edges", "indexed", "digest", "differing", "seconds")
    return {
        "deep": found.is_deep,
        **{name: getattr(found, name) for name in names},
        "first": [difference._asdict() for difference in found.first],
    }


def _lines(found: Verification) -> list[str]:
    parts = [count(found.events, "event"), count(found.vectors, "vector")]
    if found.is_deep:
        parts += [count(found.nodes, "node"), count(found.edges, "edge"), f"the index of {found.indexed:,} memories and records"]  # fmt: skip
    else:
        parts += [f"{found.nodes:,} memories and records", count(found.edges, "link")]
    lines = [f"Verified {', '.join(parts[:-1])} and {parts[-1]} in {sum(found.seconds.values()):.1f} s."]
    lines += [f"  {plain(str(difference))}" for difference in found.first]
    if found.differing > len(found.first):
        lines.append(f"  … and {found.differing - len(found.first):,} more")
    return lines


def _advice(found: Verification) -> str:
    advice = []
    if any(difference.part == "vectors" for difference in found.first):
        advice.append("`memgraph embed --repair` recomputes the vectors")
    if any(difference.part != "vectors" for difference in found.first):
        advice.append("`memgraph rebuild` rebuilds rows and index")
    return " and ".join(advice)


@click.command("format-age", cls=Command)
@click.argument("time")
@pass_settings
def format_age(settings: Settings, time: str) -> None:
    """Print an age such as ``3 days ago``."""
    try:
        text = age(to_iso(time), to_iso(datetime.now(UTC)))
    except ValueError:
        raise InvalidInputError("is not an ISO 8601 time", field="TIME", value=time) from None
    emit(settings, {"time": time, "age": text}, text)
