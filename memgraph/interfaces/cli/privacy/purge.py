"""``purge`` and ``secrets``: remove memories and their words, or what holds a secret, for good."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, Settings, Subgroup, pass_settings
from memgraph.interfaces.cli.base.output import backup_lines, count, emit, plain, progress, remaining_lines

if TYPE_CHECKING:
    from memgraph.facade import MemGraph
    from memgraph.model.results.maintenance import KnownExport, PurgedMemory, PurgePreview, PurgeReceipt

_SHOWN = 10
_WHY = {
    "asked": "{} asked for:",
    "derived": "{} derived from those; sleep derives again what the rest supports:",
    "copied": "{} with the same words (--keep-copies keeps them):",
    "restated": "{} that stays without its history, which contains the words:",
    "kept": "{} with the same words, which stays:",
}
_PLACES = {
    "content": "text, further on",
    "project_id": "project",
    "session_id": "session",
    "task_id": "task",
    "build_id": "build",
    "evidence_build_ids": "builds",
    "agents_involved": "agents",
}
"""What a person calls fields; others are called by their names."""


@click.command(cls=Command)
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--match", metavar="TEXT", help="Everything that contains TEXT, in whatever case, deleted memories included."
)
@click.option("--project", metavar="NAME", help="Everything of a project.")
@click.option(
    "--source",
    metavar="SOURCE",
    help="Everything that rests on a source: as `memgraph show` names it, or the id, kind or place of one that was read.",
)
@click.option("--keep-copies", is_flag=True, help="Keep memories that only repeat words of the others.")
@click.option("--all", "everything", is_flag=True, help="Also if no memory would be left.")
@click.option("--yes", is_flag=True, help="Purge; without it, only list what would go.")
@click.option("--complete", is_flag=True, help="Remove again what came back, such as with a part of a backup.")
@click.option(
    "--receipt",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write the receipt to FILE. It is in the store's directory in any case.",
)
@pass_settings
def purge(
    settings: Settings,
    ids: Sequence[str],
    match: str | None,
    project: str | None,
    source: str | None,
    *,
    keep_copies: bool,
    everything: bool,
    yes: bool,
    complete: bool,
    receipt: Path | None,
) -> None:
    """Remove memories, what was derived from them and their words for good: there is no way back."""
    if complete:
        with opened(settings) as memory:
            memory.store.complete_purges()
        emit(settings, {"complete": True}, "Every purge is complete.")
        return
    if sum(value is not None for value in (ids or None, match, project, source)) != 1:
        raise click.UsageError("give one of ID, --match TEXT, --project NAME or --source SOURCE")
    with opened(settings) as memory:
        selection: dict[str, Any] = {
            "ids": _complete(memory, ids), "match": match, "project": project, "source": source, "keep_copies": keep_copies,
        }  # fmt: skip
        if not yes:
            with progress(settings, "searching the journal"):
                found = memory.store.preview_purge(**selection)
            emit(settings, found, list(_preview_lines(found)))
            raise _not_purged(found, everything=everything)
        _purge(settings, memory, receipt, everything=everything, **selection)


@click.group(cls=Subgroup)
def secrets() -> None:
    """List what holds a secret, or purge it."""


@secrets.command(cls=Command)
@click.option(
    "--purge", "purges", is_flag=True, help="Remove for good what holds a secret; without --yes nothing is removed."
)
@click.option("--all", "everything", is_flag=True, help="With --purge: also if no memory would be left.")
@click.option("--yes", is_flag=True, help="With --purge: purge; without it, only list what would go.")
@pass_settings
def scan(settings: Settings, *, purges: bool, everything: bool, yes: bool) -> None:
    """List what holds a secret of a kind that is redacted today, without showing it. Exit code 1 if anything does.

    Secrets are stored if they came before memgraph recognised their kind, or with redact_secrets switched off.
    """
    if not purges and (everything or yes):
        raise click.UsageError("--all and --yes belong to --purge")
    with opened(settings) as memory:
        with progress(settings, "searching the journal"):
            found = memory.store.preview_purge(secrets=True)
        if purges and yes and found.events:
            _purge(settings, memory, None, everything=everything, secrets=True)
            return
    if not (found.events or found.remaining):
        emit(settings, found, "No recognised secret is stored.")
        return
    emit(settings, found, list(_preview_lines(found)))
    if purges and found.events:
        raise _not_purged(found, everything=everything)
    every = " --all" if found.is_everything else ""
    raise Refused(
        f"secrets are stored: revoke them where they are valid, then run `memgraph secrets scan --purge{every} --yes`"
    )


def _not_purged(found: PurgePreview, *, everything: bool) -> Refused:
    alone = "" if not found.is_everything or everything else "--all, because no memory would be left, and "
    return Refused(f"nothing was purged; add {alone}--yes to purge this for good")


def _purge(settings: Settings, memory: MemGraph, receipt: Path | None, **selection: Any) -> None:
    from memgraph.store.purge.purging import RECEIPTS

    with progress(settings, "purging"):
        done = memory.store.purge(**selection)
    if receipt is not None and done.code:
        from memgraph.viz.files import write_files

        write_files({receipt: done.model_dump_json(indent=2).encode()})
    kept = memory.store.config.home / RECEIPTS / f"{done.event:012d}.json"
    emit(settings, done, list(_lines(done, ((done.code and receipt) or kept).absolute())))
    if not done.code:
        raise Refused("the purge is recorded, but not complete: a read that began before it still goes on")


def _complete(memory: MemGraph, ids: Sequence[str]) -> list[str]:
    """Return the complete ids, of deleted memories too."""
    from memgraph.errors import NotFoundError

    found = []
    for one in ids:
        try:
            found.append(memory.store.find_id(one))
        except NotFoundError:
            found.append(memory.store.find_id(one, deleted=True))
    return list(dict.fromkeys(found))


def _preview_lines(found: PurgePreview) -> Iterator[str]:
    for why, heading in _WHY.items():
        memories = [one for one in found.memories if one.why == why]
        if memories:
            yield heading.format(count(len(memories), "memory", "memories"))
        for one in memories[:_SHOWN]:
            yield f"  {one.id}  {plain(one.content)}{_remark(one)}"
        if len(memories) > _SHOWN:
            yield f"  … and {len(memories) - _SHOWN:,} more; --json names them all"
    others = ", ".join(f"{number:,} {name}" for name, number in sorted(found.others.items()))
    yield f"{count(found.events, 'event')} of the journal would lose {'its' if found.events == 1 else 'their'} content{f' (also {others})' if others else ''}."
    if found.lost_tasks:
        yield f"{count(len(found.lost_tasks), 'task')} whose title has the words would be lost, with everything that was said in it:"
    for task in found.lost_tasks:
        yield f"  {plain(task.id)}  {plain(task.title)} ({count(task.items, 'item')})"
    yield from remaining_lines(found.remaining)
    yield from _export_lines(found.exports)


def _remark(one: PurgedMemory) -> str:
    """Say that a memory was deleted, and why it is listed if its text does not show that."""
    remarks = ["deleted"] if one.is_deleted else []
    if one.matched_in == ["history"]:
        remarks.append("matched in an earlier version")
    elif one.matched_in:
        *others, last = [_PLACES.get(name, name.replace("_", " ")) for name in one.matched_in]
        remarks.append(f"matched in its {', '.join(others)}{' and ' if others else ''}{last}")
    return f" ({'; '.join(remarks)})" if remarks else ""


def _lines(done: PurgeReceipt, file: Path) -> Iterator[str]:
    gone = len(done.ids) + len(done.derived_ids) + len(done.copied_ids)
    events = sum(last - first + 1 for first, last in done.ranges)
    yield f"Purged {count(gone, 'memory', 'memories')}: {count(events, 'event')} of the journal {'has' if events == 1 else 'have'} no content any more."
    if done.derived_ids:
        derived = count(len(done.derived_ids), "derived memory", "derived memories")
        yield f"{derived} went with them; `memgraph sleep` derives again what the rest supports."
    if done.kept_ids:
        yield f"{count(len(done.kept_ids), 'memory', 'memories')} with the same words stayed, because of --keep-copies."
    if done.lost_tasks:
        yield f"{count(len(done.lost_tasks), 'task')} whose title had the words went with everything that was said in them."
    yield from remaining_lines(done.remaining)
    yield from _export_lines(done.exports)
    yield from backup_lines()
    if done.code:
        yield f"Receipt: {plain(str(file))}; `memgraph verify --receipt FILE` checks it."
        return
    yield "Another process reads the store as it was, so the files of its database still hold the words. The next command after that completes the purge."
    yield f"The receipt will be {plain(str(file))}."


def _export_lines(exports: Sequence[KnownExport]) -> Iterator[str]:
    there = [one for one in exports if one.is_there]
    if there:
        yield "These files were written from the store and may still hold it; delete them, and copies of the store:"
    for one in there:
        yield f"  {plain(one.path)} ({plain(one.kind)}, {one.at[:10]})"
