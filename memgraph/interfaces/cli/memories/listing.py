"""``list``, ``show``, ``stats``: show the store's content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memgraph.errors import NotFoundError
from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import ReadingCommand, Settings, pass_settings
from memgraph.interfaces.cli.base.output import emit, emit_json, listing, notice, plain, wrapped_lines
from memgraph.interfaces.cli.base.scoping import hint_at_projects, scoped
from memgraph.interfaces.lookups import scope_given, without_vectors
from memgraph.text.cutting import preview

if TYPE_CHECKING:
    from collections.abc import Callable

    from memgraph.model.link import Link
    from memgraph.model.memory import MemoryType, StoredMemory

_NO_MEMORY = "no memory yet: `memgraph ingest git .` reads a repository, `memgraph remember TEXT` stores one"
_TYPES = ("episodic", "semantic", "procedural")
_ORDERS = ("relevance", "created", "accessed")
_STATES = ("suppressed", "archived", "invalidated", "superseded")
_SHOWN_FIRST = ("type", "outcome", "reason", "project_id", "tags", "agents_involved", "occurred_at", "relevance_score")
_NOT_SHOWN = frozenset({"id", "content", "embedding", "relevance_anchor", "relevance_at", "supporting_memory_ids"})


@click.command("list", cls=ReadingCommand)
@click.option("--type", "kind", type=click.Choice(_TYPES), help="Only memories of this type.")
@click.option("--project", metavar="NAME", help="Only memories of this project.")
@click.option("--include-suppressed", is_flag=True, help="Include forgotten memories.")
@click.option("--state", type=click.Choice(_STATES), help="Only memories in this state.")
@click.option("--limit", type=click.IntRange(min=0), help="Maximum number.  [default: 20; with --rules: all]")
@click.option("--sort-by", type=click.Choice(_ORDERS), default="relevance", show_default=True, help="Sort order.")
@click.option("--match", metavar="TEXT", help="Only memories that match TEXT closely, of every tier.")
@click.option("--rules", is_flag=True, help="Only standing rules.")
@scoped
@pass_settings
def list_(
    settings: Settings,
    /,
    kind: MemoryType | None,
    project: str | None,
    include_suppressed: bool,
    state: Any,
    limit: int | None,
    sort_by: Any,
    match: str | None,
    rules: bool,
    **scope: Any,
) -> None:
    """List memories."""
    only = scope_given(**scope)
    from memgraph.retrieval.context.task_labels import labelled
    from memgraph.retrieval.overview import standing_rule_ids

    with opened(settings) as memory:
        if match is not None:
            only["ids"] = [one.id for one in memory.curation.matching(match, limit=1_000)]
        if rules:
            held = standing_rule_ids(memory.store)
            only["ids"] = held if match is None else [one for one in only["ids"] if one in held]
        limit = limit if limit is not None else len(held) if rules else 20
        entries = memory.commands.list(
            type=kind,
            project=project,
            include_suppressed=include_suppressed,
            state=state,
            limit=limit,
            sort_by=sort_by,
            **only,
        )
        total = memory.store.count_listed(
            type=kind, project_id=project, include_suppressed=include_suppressed, state=state, **only
        )
        whole = {one.id: one for one in memory.store.read_memories([entry.id for entry in entries])}
        times = {one.id: _time(one, sort_by, memory.commands.format_age) for one in whole.values()}
        if not total:
            notice("no memory matches" if memory.store.count_listed() else _NO_MEMORY)
        hint_at_projects(memory, project)
    if len(entries) == limit < total:
        notice(f"{limit:,} of {total:,} memories; --limit N shows more")
    if settings.as_json:
        emit_json([{**entry.model_dump(mode="json"), "content": whole[entry.id].content} for entry in entries])
        return
    listing(
        [
            (
                labelled(entry.content, whole[entry.id].trust_class),
                (
                    entry.id,
                    entry.type,
                    f"{entry.relevance_score:.2f}",
                    times[entry.id],
                    "pinned" if entry.is_pinned else "",
                    "" if entry.privacy_tier == "public" else entry.privacy_tier,
                    ", ".join(entry.states),
                ),
            )
            for entry in entries
        ]
    )


@click.command(cls=ReadingCommand)
@click.argument("id_", metavar="ID")
@pass_settings
def show(settings: Settings, id_: str) -> None:
    """Show a memory's fields, its links, and the wordings of duplicates that were merged into it."""
    with opened(settings) as memory:
        memory_id = memory.store.find_id(id_)
        found = memory.commands.show(memory_id)
        if found is None:
            raise NotFoundError("memory", id_)
        wordings = memory.commands.wordings(memory_id)
        links = memory.store.links(memory_id)
        ends = {other for link in links for other in (link.source_id, link.target_id)} - {memory_id}
        content_of = {end.id: end.content for end in memory.store.read_memories(sorted(ends))}
    document = {
        "memory": without_vectors(found),
        "links": [link.model_dump(mode="json") for link in links],
        "other_wordings": wordings,
    }
    lines = [*_fields(found), *(f"{'other_wording':<24}{plain(one)}" for one in wordings)]
    if found.task_id is not None:
        notice(f"it belongs to the task {found.task_id!r}: recall and search find it with --task or --all-tasks")
    emit(settings, document, [*lines, *(_linked(link, found, content_of) for link in links)])


@click.command(cls=ReadingCommand)
@click.option("--prometheus", is_flag=True, help="Print the store's metrics in Prometheus' text format.")
@pass_settings
def stats(settings: Settings, prometheus: bool) -> None:
    """Print counts of memories that are neither archived nor deleted, and of records, likewise."""
    if prometheus:
        _metrics(settings)
        return
    with opened(settings) as memory:
        counts = memory.commands.stats()
        waiting, listed = memory.store.awaiting_vectors(), memory.store.count_listed()
    by_type = ", ".join(f"{number:,} {kind}" for kind, number in counts.by_type.items())
    lines = [
        f"memories           {counts.total:,} ({by_type})",
        f"listed             {listed:,} of them are shown by `memgraph list`",
        f"records            {counts.records:,}, which are no memories",
        f"pinned             {counts.pinned_count:,}",
        f"suppressed         {counts.suppressed_count:,}",
        f"average relevance  {counts.avg_relevance:.2f}",
        f"awaiting vectors   {waiting:,}",
        f"size on disk       {counts.db_size_bytes / 1e6:,.1f} MB",
    ]
    emit(settings, {**counts.model_dump(mode="json"), "listed": listed, "awaiting_vectors": waiting}, lines)


def _time(memory: StoredMemory, sort_by: str, age: Callable[[str], str]) -> str:
    """Return how long ago a memory happened, or the time by which it is sorted."""
    if sort_by == "accessed":
        return f"used {age(memory.last_accessed_at)}" if memory.last_accessed_at else "never used"
    return f"recorded {age(memory.created_at)}" if sort_by == "created" else age(memory.occurred_at)


def _metrics(settings: Settings) -> None:
    """Print what a monitoring system watches: the format is fixed, and it concerns the store, not what was or what an agent may have."""
    if settings.as_json or settings.as_of is not None or settings.agent is not None:
        raise click.UsageError(
            "--prometheus is a format of its own, of the store as it is: leave out --json, --as-of and --agent"
        )
    from memgraph.config import home_of
    from memgraph.journal.opening import is_store

    home, server = home_of(settings.home)
    if not is_store(home, server):
        raise Refused(f"there is no store at {server or home}, so there is nothing to measure")
    with opened(settings) as memory:
        from memgraph.health.metrics import exposition, metrics_of

        text = exposition(metrics_of(memory.store))
    click.echo(text, nl=False)


def _fields(memory: StoredMemory) -> list[str]:
    """Return the content, then every field that says something."""
    values = without_vectors(memory)
    names = [*_SHOWN_FIRST, *sorted(values.keys() - set(_SHOWN_FIRST) - _NOT_SHOWN)]
    lines = [f"{memory.id}", *wrapped_lines(memory.content, indent="  "), ""]
    lines += [f"{name:<24}{_shown(values[name])}" for name in names if values.get(name) not in (None, [], "", False)]
    return lines


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return plain(", ".join(dict.fromkeys(str(_of(item)) for item in value)))
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.3g}" if isinstance(value, float) else plain(str(value))


def _of(item: Any) -> Any:
    """Return the first field of a small record."""
    return next(iter(item.values()), "") if isinstance(item, dict) else item


def _linked(link: Link, memory: StoredMemory, content_of: dict[str, str]) -> str:
    outward = link.source_id == memory.id
    other = link.target_id if outward else link.source_id
    arrow = f"—{link.relation}→" if outward else f"←{link.relation}—"
    return f"{arrow} {other}  {plain(preview(content_of.get(other, '')))}"
