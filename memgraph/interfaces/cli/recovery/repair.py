"""``repair``: report why the store cannot be opened, and repair its journal on request."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.opening import logs_shown
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, plain

if TYPE_CHECKING:
    from memgraph.store.repair import Condition, Witness


@click.command(cls=Command)
@click.option("--accept-head", "accepts", is_flag=True, help="Accept a whole journal as it is, and record that.")
@click.option(
    "--cut-tail", "cuts", is_flag=True, help="Keep the events before the damage; move the rest to quarantine."
)
@click.option(
    "--from-backup", "backup", metavar="FILE", help="Restore the journal from a backup, and keep what follows it."
)
@click.option(
    "--base", "bases", metavar="FILE", multiple=True, help="A backup that FILE continues, if it is not beside it."
)
@click.option(
    "--until", type=int, metavar="EVENT", help="With --from-backup: restore only the commits up to this event."
)
@click.option(
    "--drop-baseline",
    "drops",
    is_flag=True,
    help="Verify every event, and do without a damaged baseline; loses nothing.",
)
@click.option("--reason", metavar="TEXT", help="Why; stored in the record.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
@pass_settings
def repair(
    settings: Settings,
    accepts: bool,
    cuts: bool,
    backup: str | None,
    bases: tuple[str, ...],
    until: int | None,
    drops: bool,
    reason: str | None,
    yes: bool,
) -> None:
    """Verify the journal alone and report what could be done; change it only on request."""
    if sum((accepts, drops, cuts, backup is not None)) > 1:
        raise click.UsageError("give one of --accept-head, --cut-tail, --from-backup, and --drop-baseline")
    if (bases or until is not None) and backup is None:
        raise click.UsageError("--base and --until need --from-backup FILE")
    if backup is not None:
        from memgraph.interfaces.cli.recovery.damage import replace

        replace(
            settings, backup, bases, until=until, confirm=lambda lines: None if yes else _confirm(lines, "Replace it?")
        )
        return
    from memgraph.config import load_config
    from memgraph.errors import DamagedJournalError, StorageError
    from memgraph.store.repair import baseline_problem, drop_baseline, repair_store

    config = load_config({"home": settings.home})
    try:
        with logs_shown(settings):
            problem = baseline_problem(config)
            if drops:
                seq = drop_baseline(config)
                done = f"Verified {count(seq, 'event')}; the journal has no baseline any more: the next command verifies them again, once."
                emit(settings, {"events": seq, "dropped": True}, [done, "`memgraph compact` makes a new one."])
                return
            found = repair_store(config)
    except (DamagedJournalError, StorageError) as error:
        from memgraph.interfaces.cli.recovery.damage import report

        def confirm(lines: Sequence[str]) -> None:
            if not yes:
                _confirm(lines, "Cut the journal there?")

        report(settings, config, error, cuts=cuts, reason=reason, confirm=confirm)
        return
    if problem is not None and not accepts:
        advice = (
            "`memgraph repair --drop-baseline` verifies every event and does without the baseline; it loses nothing."
        )
        emit(settings, {**_document(found), "baseline": problem}, [*_lines(found), plain(problem), advice])
        raise Refused("the baseline cannot be used; nothing was changed")
    if not accepts or not found.is_contradicted:
        emit(settings, _document(found), [*_lines(found), *_advice(found)])
        if loss := _loss(found):
            raise Refused(f"{loss}; nothing was changed")
        return
    if not yes:
        _confirm(_lines(found), "Accept the journal as it is?")
    with logs_shown(settings):
        then = repair_store(config, accept_head=found, accepted_by=_user(), reason=reason)
    lines = [
        f"Accepted the journal up to event {found.seq}; event {then.seq} records this, and the head file names it.",
        "The next command brings the index up to date.",
    ]
    emit(settings, {**_document(found), "accepted": True, "recorded_as": then.seq}, lines)
    if loss := _loss(found):
        raise Refused(f"{loss}; the remaining events are accepted")


def _confirm(lines: Sequence[str], question: str) -> None:
    """Ask for confirmation on a terminal; refuse elsewhere, because losing events must be confirmed."""
    if not _is_terminal():
        raise Refused(f"{' '.join(lines)} To do this without confirmation, add --yes.")
    for line in lines:
        click.echo(line, err=True)
    if not click.confirm(question, err=True):
        raise Refused("nothing was changed")


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _lines(found: Condition) -> list[str]:
    """Describe the journal's condition."""
    lines = [f"The journal in {plain(str(found.path))} verifies up to event {found.seq}."]
    lines += [_sentence(one, found) for one in found.contradicting]
    if found.lost:
        lines.append(f"The events written after it are missing: {count(len(found.lost), 'event')}, {_numbers(found)}.")
    return lines


def _sentence(witness: Witness, found: Condition) -> str:
    name = f"Its head file {plain(str(witness.path))}" if witness is found.head else "The head in its database"
    if witness.state in ("ahead", "behind"):
        return f"{name} names event {witness.seq}."
    if witness.state == "other":
        return f"{name} names an event {witness.seq} that differs from the journal's."
    return f"{name} is {witness.state}."


def _advice(found: Condition) -> list[str]:
    if not found.is_contradicted:
        return ["Nothing needs repair. If rows, graph or index are wrong, `memgraph rebuild` rebuilds them."]
    restore = (
        "If you have a backup with more events, restore the journal and its head file from it. " if found.lost else ""
    )
    return [f"{restore}`memgraph repair --accept-head` accepts the journal as it is, and records that."]


def _loss(found: Condition) -> str | None:
    """Describe the events that were written but are missing, or return None if no head names any."""
    if found.lost:
        return f"{count(len(found.lost), 'event')} {'is' if len(found.lost) == 1 else 'are'} lost ({_numbers(found)})"
    for one in found.contradicting:
        if one.state == "other":
            name = "its head file" if one is found.head else "the head in its database"
            return f"the event {one.seq} that {name} names is lost, and possibly others"
    return None


def _numbers(found: Condition) -> str:
    first, last = found.lost[0], found.lost[-1]
    return f"number {first}" if first == last else f"numbers {first} to {last}"


def _document(found: Condition) -> dict[str, Any]:
    witnesses = [("head", found.head), *([("database", found.row)] if found.row else [])]
    return {
        "journal": str(found.path),
        "events": found.seq,
        "witnesses": [
            {"kind": kind, "path": str(one.path), "state": one.state, "names_event": one.seq} for kind, one in witnesses
        ],
        "lost": {"events": len(found.lost), "first": found.lost[0], "last": found.lost[-1]} if found.lost else None,
        "accepted": False,
    }


def _user() -> str | None:
    """Return the name of the logged-in user, or None if it is unknown."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return None
