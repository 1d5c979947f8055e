"""``collect``: archive faded memories, or preview which would go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memgraph.disk.files import beyond, size_on_disk
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, notice, plain, progress

if TYPE_CHECKING:
    from memgraph.model.results.maintenance import CollectionPreview, CollectionResult

_SHOWN = 10


@click.command(cls=Command)
@click.option("--preview", is_flag=True, help="Only print what would be archived, and how often it was used.")
@pass_settings
def collect(settings: Settings, preview: bool) -> None:
    """Archive faded memories, update the floors of landmarks, and summarise long-unused episodes."""
    with opened(settings) as memory:
        if preview:
            from memgraph.lifecycle import preview_collection

            with progress(settings, "previewing"):
                previewed = preview_collection(memory.store)
            emit(settings, previewed, _preview_lines(previewed))
            return
        with progress(settings, "collecting") as bar:
            result = memory.maintenance.collect(progress=bar)
        too_much = beyond(size_on_disk(memory.store.config.home), memory.store.config.max_memory_mb)
    if too_much:
        notice(f"{too_much}; collecting shortens lists and recalls, but the journal keeps every event")
    undo = ["`memgraph unarchive ID` restores a memory; `memgraph list --state archived` lists them."]
    if result.deleted:
        undo = ["`memgraph undelete ID` restores a memory; its history stays."]
    emit(settings, result, [*_lines(result), *(undo if result.archived + result.deleted else [])])


def _lines(result: CollectionResult, *, would: str = "") -> list[str]:
    done = [f"{would}{_memories(result.archived)} archived"]
    if result.deleted:
        done.append(f"{_memories(result.deleted)} deleted")
    done.append(f"{count(result.summarised, 'episode')} summarised")
    lines = [f"{', '.join(done)}."]
    share = f"{result.landmark_share:.0%} of {count(result.negatives, 'negative memory', 'negative memories')}"
    lines.append(
        f"{count(result.landmarks, 'landmark')} ({share}): {result.floors_set:,} added, {result.floors_cleared:,} removed."
    )
    if result.last_traces:
        lines.append(f"{_memories(result.last_traces)} have faded, but were kept as the last trace of their sources.")
    return lines


def _preview_lines(previewed: CollectionPreview) -> list[str]:
    lines = _lines(previewed, would="Would be: ")
    for memory in previewed.memories[:_SHOWN]:
        used = count(memory.access_count, "use")
        lines.append(f"  {memory.id}  {memory.relevance:.3f}  {used:<6}  {memory.type:<10}  {plain(memory.content)}")
    if len(previewed.memory_ids) > _SHOWN:
        lines.append(f"  … and {len(previewed.memory_ids) - _SHOWN:,} more; --json names them all")
    return lines


def _memories(number: int) -> str:
    return count(number, "memory", "memories")
