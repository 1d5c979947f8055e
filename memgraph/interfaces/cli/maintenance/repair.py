"""``repair``: says what keeps the store from being opened, and accepts its journal as it is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.opening import logs_shown
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, plain

if TYPE_CHECKING:
    from memgraph.journal.repair import Condition, Witness


@click.command(cls=Command)
@click.option("--accept-head", "accepts", is_flag=True, help="Take the journal as it is, and record that.")
@click.option("--reason", metavar="TEXT", help="Kept in the record: why.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@pass_settings
def repair(settings: Settings, accepts: bool, reason: str | None, yes: bool) -> None:
    """Verify the journal by itself and say what could be done; do it only when told to."""
    from memgraph.config import load_config
    from memgraph.store.maintenance.repair import repair_store

    config = load_config({"home": settings.home})
    with logs_shown(settings):
        found = repair_store(config)
    if not accepts or not found.contradicting:
        emit(settings, _document(found), [*_told(found), *_advice(found)])
        if loss := _loss(found):
            raise Refused(f"{loss}; nothing was changed")
        return
    if not yes:
        _ask(found)
    with logs_shown(settings):
        then = repair_store(config, accept_head=found, accepted_by=_user(), reason=reason)
    lines = [
        f"Accepted the journal up to event {found.seq}; event {then.seq} says so, and the head file names it.",
        "Graph and index are brought to it at the next use.",
    ]
    emit(settings, {**_document(found), "accepted": True, "recorded_as": then.seq}, lines)
    if loss := _loss(found):
        raise Refused(f"{loss}; the rest is in force")


def _ask(found: Condition) -> None:
    """Ask on a terminal; elsewhere nobody can answer, and losing events takes a word that was meant."""
    if not _is_terminal():
        raise Refused(f"{' '.join(_told(found))} To accept that without being asked, add --yes.")
    for line in _told(found):
        click.echo(line, err=True)
    if not click.confirm("Take the journal as it is?", err=True):
        raise Refused("nothing was changed")


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _told(found: Condition) -> list[str]:
    """Say how the journal is."""
    lines = [f"The journal under {plain(str(found.folder))} verifies up to event {found.seq}."]
    lines += [_sentence(witness) for witness in found.contradicting]
    if found.lost:
        lines.append(f"What was written after it is not there: {count(len(found.lost), 'event')}, {_numbers(found)}.")
    if found.torn_events:
        torn = f"{count(found.torn_events, 'event')}, {count(found.torn_bytes, 'byte')}"
        lines.append(f"Behind it lies a final commit that was cut short ({torn}); the next write drops it.")
    return lines


def _sentence(witness: Witness) -> str:
    name = f"Its {'head file' if witness.kind == 'head' else witness.kind} {plain(str(witness.path))}"
    if witness.state == "ahead":
        return f"{name} names event {witness.seq}."
    if witness.state == "other":
        return f"{name} names another event {witness.seq} than the journal's."
    return f"{name} is {witness.state}."


def _advice(found: Condition) -> list[str]:
    if not found.contradicting:
        return ["Nothing is to be repaired. If the graph or the index is wrong, `memgraph rebuild` makes them anew."]
    restore = (
        "Restore the journal and its head file from one backup if there is one that is further on. "
        if found.lost
        else ""
    )
    return [f"{restore}`memgraph repair --accept-head` takes the journal as it is, and records that."]


def _loss(found: Condition) -> str | None:
    """Say which events were written and are not there; None where no witness names such a one."""
    if found.lost:
        return f"{count(len(found.lost), 'event')} {'is' if len(found.lost) == 1 else 'are'} lost ({_numbers(found)})"
    other = next((witness for witness in found.contradicting if witness.state == "other"), None)
    if other is None:
        return None
    name = "head file" if other.kind == "head" else other.kind
    return f"the event {other.seq} that its {name} names is lost, perhaps with others"


def _numbers(found: Condition) -> str:
    first, last = found.lost[0], found.lost[-1]
    return f"number {first}" if first == last else f"numbers {first} to {last}"


def _document(found: Condition) -> dict[str, Any]:
    return {
        "journal": str(found.folder),
        "events": found.seq,
        "witnesses": [
            {"kind": witness.kind, "path": str(witness.path), "state": witness.state, "names_event": witness.seq}
            for witness in found.witnesses
        ],
        "lost": {"events": len(found.lost), "first": found.lost[0], "last": found.lost[-1]} if found.lost else None,
        "torn": {"events": found.torn_events, "bytes": found.torn_bytes},
        "accepted": False,
    }


def _user() -> str | None:
    """Return who is logged in, or None where nobody can tell."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None
