"""``collect``: put away what has faded, or say what would go and which recalls it would have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, plain, progress

if TYPE_CHECKING:
    from memgraph.model.results.maintenance import CollectionPreview, CollectionResult

_SHOWN = 10


@click.command(cls=Command)
@click.option("--preview", is_flag=True, help="Only say what would go, and which recalls it would have changed.")
@pass_settings
def collect(settings: Settings, preview: bool) -> None:
    """Put faded memories away; see to the floors of landmarks and the summaries of what is long not used."""
    with opened(settings) as memory:
        if preview:
            from memgraph.lifecycle import foresee_collection

            foreseen = foresee_collection(memory.store)
            emit(settings, foreseen, _foreseen(foreseen))
            return
        with progress(settings, "collecting") as bar:
            result = memory.maintenance.collect(progress=bar)
    back = ["`memgraph unarchive ID` brings one back; `memgraph list --state archived` lists them."]
    if result.deleted:
        back = ["`memgraph undelete ID` brings one back; its history stays."]
    emit(settings, result, [*_told(result), *(back if result.archived + result.deleted else [])])


def _told(result: CollectionResult, *, would: str = "") -> list[str]:
    done = [f"{would}{_memories(result.archived)} archived"]
    if result.deleted:
        done.append(f"{_memories(result.deleted)} deleted")
    done.append(f"{count(result.summarised, 'episode')} summarised")
    lines = [f"{', '.join(done)}."]
    share = f"{result.landmark_share:.0%} of {count(result.negatives, 'negative memory', 'negative memories')}"
    lines.append(
        f"{count(result.landmarks, 'landmark')} ({share}): {result.floors_set:,} new, {result.floors_cleared:,} no longer."
    )
    if result.last_traces:
        lines.append(f"{_memories(result.last_traces)} kept that have faded, but are what is left of their sources.")
    return lines


def _foreseen(foreseen: CollectionPreview) -> list[str]:
    lines = _told(foreseen, would="Would be: ")
    for memory in foreseen.memories[:_SHOWN]:
        used = count(memory.access_count, "use")
        lines.append(f"  {memory.id}  {memory.relevance:.3f}  {used:<6}  {memory.type:<10}  {plain(memory.content)}")
    if len(foreseen.memory_ids) > _SHOWN:
        lines.append(f"  … and {len(foreseen.memory_ids) - _SHOWN:,} more; --json names them all")
    since = foreseen.recalls_since[:10]
    changed = f"{len(foreseen.recalls):,} of {count(foreseen.recalls_in_all, 'recall')} since {since}"
    lines.append(f"{changed} had returned one of these{':' if foreseen.recalls else '.'}")
    for recall in foreseen.recalls[:_SHOWN]:
        who = " ".join(filter(None, [recall.agent_name, recall.project_id]))
        scores = ", ".join(f"{memory_id[:8]} (score {score:.3f})" for memory_id, score in recall.scores.items())
        lines.append(f"  {recall.retrieved_at[:16]}  {plain(who)}  {scores}")
    if len(foreseen.recalls) > _SHOWN:
        lines.append(f"  … and {len(foreseen.recalls) - _SHOWN:,} more; --json names them all")
    return lines


def _memories(number: int) -> str:
    return count(number, "memory", "memories")
