"""``repair`` of a journal whose own lines do not verify: what is damaged, what can be kept, and keeping it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from memgraph.errors import MemGraphError
from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.opening import logs_shown
from memgraph.interfaces.cli.base.options import Settings
from memgraph.interfaces.cli.base.output import count, emit, plain, progress

if TYPE_CHECKING:
    from memgraph.config import AgentMemoryConfig
    from memgraph.store.repair import Cut, Damage, JournalRestored

Confirm = Callable[[Sequence[str]], None]


def report(
    settings: Settings,
    config: AgentMemoryConfig,
    error: MemGraphError,
    *,
    cuts: bool,
    reason: str | None,
    confirm: Confirm,
) -> None:
    """Report the damage of a journal; cut it if that is wanted. Always ends with an error, unless nothing was lost."""
    from memgraph.store.repair import cut_journal, find_damage

    with logs_shown(settings):
        damage = find_damage(config)
    if damage is None:
        raise error
    lines = _lines(damage)
    if not cuts:
        emit(settings, _document(damage), [*lines, *_known_loss(damage), *_advice(damage)])
        raise Refused(f"{damage.problem}; nothing was changed")
    confirm([*lines, _loss(damage.lost, damage.kept.seq, are="would be")])
    with logs_shown(settings):
        found = cut_journal(damage, config, reason=reason)
    emit(settings, {**_document(damage), **_cut(found)}, _done(found))
    if found.lost:
        raise Refused(f"{_loss(found.lost, found.kept_seq)} They are kept in {found.quarantine}, as they were found.")


def replace(settings: Settings, backup: str, bases: tuple[str, ...], *, until: int | None, confirm: Confirm) -> None:
    """Restore the journal from a backup, and say what was kept and lost."""
    from memgraph.config import load_config
    from memgraph.store.repair import restore_journal

    config = load_config({"home": settings.home})
    rest = "with nothing after it" if until is not None else "and the events after it that verify"
    upto = f" up to event {until}" if until is not None else ""
    confirm([f"The journal in {plain(str(config.home))} will become that of {plain(backup)}{upto}, {rest}."])
    with logs_shown(settings), progress(settings, "restoring") as bar:
        found = restore_journal(backup, config, bases=bases, until=until, progress=bar)
    emit(settings, _restored(found), _put(found))
    if found.lost:
        raise Refused(f"{_loss(found.lost, found.kept_seq)} What was replaced is in {found.quarantine}.")


def _lines(damage: Damage) -> list[str]:
    kept = damage.kept.seq
    lines = [
        f"{plain(damage.problem)}.",
        f"The journal in {plain(str(damage.path))} verifies up to event {kept}.",
    ]
    if damage.later_events:
        events = count(damage.later_events, "event")
        lines.append(
            f"After the damage {events} still verify alone, but cannot be replayed without those that are missing."
        )
    return lines


def _known_loss(damage: Damage) -> list[str]:
    """Say what would be lost if the journal were cut at the damage."""
    known, kept = damage.known_seq, damage.kept.seq
    return [f"Event {known} is known to have been written: {known - kept:,} would be lost."] if known > kept else []


def _advice(damage: Damage) -> list[str]:
    if damage.is_later_release:
        return [
            "This is no damage that could be repaired: a later release of memgraph wrote the event. Install a newer memgraph."
        ]
    from_backup = "With a backup, `memgraph repair --from-backup FILE` takes the damaged events from it, and keeps those after it."
    if damage.is_in_history:
        return [
            from_backup,
            (
                "Nothing can be cut there: everything after it would go, too. As long as the baseline is there, lists and recalls work "
                "without these events; what reads the history is refused."
            ),
        ]
    lines = [
        from_backup,
        f"Without one, `memgraph repair --cut-tail` keeps the events up to {damage.kept.seq}.",
    ]
    return [*lines, "What is cut off is moved to quarantine/ in the store's directory, never deleted."]


def _loss(lost: int, kept: int, *, are: str = "") -> str:
    if not lost:
        return f"No event {are or 'is'} lost: the journal ends at event {kept}."
    are = are or ("is" if lost == 1 else "are")
    return f"{count(lost, 'event')} {are} lost (numbers {kept + 1} to {kept + lost})."


def _done(found: Cut) -> list[str]:
    return [
        f"Kept the events up to {found.kept_seq}; event {found.recorded_as} records this.",
        f"Moved {count(found.cut_bytes, 'byte')} to {plain(str(found.quarantine))}.",
        "The next command rebuilds rows and index.",
    ]


def _put(found: JournalRestored) -> list[str]:
    lines = [f"Restored the events up to {found.backup_seq} from the backup; event {found.recorded_as} records this."]
    if found.kept_seq > found.backup_seq:
        lines.append(
            f"Kept the events {found.backup_seq + 1} to {found.kept_seq} of the damaged journal, which verify."
        )
    if not found.lost:
        lines.append("No event is lost.")
    if found.purged_again:
        lines.append(f"Purged again {count(found.purged_again, 'event')} that the backup still had with their content.")
    return [
        *lines,
        f"What was replaced is in {plain(str(found.quarantine))}.",
        "The next command rebuilds rows and index.",
    ]


def _document(damage: Damage) -> dict[str, Any]:
    return {
        "damaged": str(damage.path),
        "problem": damage.problem,
        "verifies_up_to": damage.kept.seq,
        "later_events": damage.later_events,
        "known_event": damage.known_seq,
        "cut": None,
    }


def _cut(found: Cut) -> dict[str, Any]:
    cut = {
        "kept": found.kept_seq,
        "lost": found.lost,
        "quarantine": str(found.quarantine),
        "bytes": found.cut_bytes,
        "recorded_as": found.recorded_as,
    }
    return {"cut": cut}


def _restored(found: JournalRestored) -> dict[str, Any]:
    return {
        "from_backup": found.backup_seq,
        "kept": found.kept_seq,
        "lost": found.lost,
        "quarantine": str(found.quarantine),
        "purged_again": found.purged_again,
        "recorded_as": found.recorded_as,
    }
