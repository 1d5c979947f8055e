"""``contradictions``: list memories that cannot both be true, and let the user resolve or dismiss the contradiction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import ReadingCommand, Settings, Subgroup, pass_settings, past_options
from memgraph.interfaces.cli.base.output import (
    count,
    emit,
    emit_json,
    plain,
    print_lines,
    progress,
    wrapped,
)
from memgraph.interfaces.cli.base.scoping import hint_at_projects
from memgraph.interfaces.lookups import without_vectors

if TYPE_CHECKING:
    from memgraph.model.link import Link
    from memgraph.model.memory import StoredMemory
    from memgraph.model.results.learning import Contradiction, ContradictionResult

_one = click.argument("one", metavar="ID")
_other = click.argument("other", metavar="OTHER")
_reason = click.option("--reason", metavar="TEXT", help="Why; stored with the decision.")
_SHORT = 8
_DAY = 10


@click.group(cls=Subgroup, invoke_without_command=True, params=past_options())
@click.pass_context
def contradictions(ctx: click.Context) -> None:
    """List the open contradictions if no command is given."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@contradictions.command("list", cls=ReadingCommand)
@click.option("--project", metavar="NAME", help="Only memories of this project.")
@click.option(
    "--decided", is_flag=True, help="List resolved contradictions instead, in which one memory replaces the other."
)
@pass_settings
def list_(settings: Settings, project: str | None = None, decided: bool = False) -> None:
    """List the pairs of valid memories that contradict each other, the most certain first."""
    with opened(settings) as memory:
        found = memory.contradictions.list(project=project, decided=decided)
        asked = [] if decided else memory.distillation.list(project=project)
        hint_at_projects(memory, project)
    if settings.as_json:
        emit_json([_document(one) for one in found])
        return
    lines = [line for one in found for line in _lines(one)]
    if not found:
        lines = ["No contradiction was resolved." if decided else "No contradictions."]
    elif not decided:
        lines.append(
            "`memgraph contradictions resolve ID OTHER --keep ID` resolves a contradiction; `dismiss ID OTHER` dismisses it."
        )
    if many := sum(order.kind == "contradiction" for order in asked):
        lines.append(f"{count(many, 'open question')} about contradictions: `memgraph distil` lists what to answer.")
    print_lines(lines)


@contradictions.command("find")
@pass_settings
def find(settings: Settings) -> None:
    """Compare the memories added since the last search with all valid ones."""
    with opened(settings) as memory, progress(settings, "comparing") as bar:
        result = memory.contradictions.find(progress=bar)
    emit(settings, result, _summary(result))


@contradictions.command("resolve")
@_one
@_other
@click.option("--keep", required=True, metavar="ID", help="The memory that is true.")
@_reason
@pass_settings
def resolve(settings: Settings, one: str, other: str, keep: str, reason: str | None) -> None:
    """Resolve a contradiction: the memory to keep replaces the other."""
    with opened(settings) as memory:
        ids = [memory.store.find_id(given) for given in (one, other, keep)]
        link = memory.contradictions.resolve(*ids[:2], keep=ids[2], reason=reason)
        kept, gone = memory.store.read_memories([link.source_id, link.target_id])
    undo = f"unsupersede {gone.id} --by {kept.id}"
    message = f"'{_preview(kept)}' replaces '{_preview(gone)}'; undo: memgraph {undo}"
    _answer(settings, "contradictions resolve", message, {"kept": kept.id, "superseded": gone.id})


@contradictions.command("dismiss")
@_one
@_other
@_reason
@pass_settings
def dismiss(settings: Settings, one: str, other: str, reason: str | None) -> None:
    """Record that two memories do not contradict each other; they are not reported again."""
    with opened(settings) as memory:
        ids = [memory.store.find_id(given) for given in (one, other)]
        with memory.store.exclusive():
            decided = any(
                link.relation == "SUPERSEDES" and ids[1] in _ends(link) for link in memory.store.links(ids[0])
            )
            link = memory.contradictions.dismiss(*ids, reason=reason)
            event = memory.store.reader.index.offset.seq
        source, target = memory.store.read_memories([link.source_id, link.target_id])
    holds = ", so both hold again" if decided else ""
    message = f"No contradiction{holds}: '{_preview(source)}' and '{_preview(target)}'; undo: memgraph undo {event}"
    _answer(settings, "contradictions dismiss", message, {"ids": [source.id, target.id]})


def _ends(link: Link) -> tuple[str, str]:
    return link.source_id, link.target_id


def _lines(one: Contradiction) -> list[str]:
    lines = [plain(f"{one.reason or 'linked by a user'}")]
    for memory in (one.newer, one.older):
        since = (memory.valid_at or memory.occurred_at or "")[:_DAY]
        lines.append(wrapped(memory.content, first=f"  {(memory.id or '')[:_SHORT]}  {since}  ", indent=" " * 22))
    return lines


def _document(one: Contradiction) -> dict[str, Any]:
    fields: dict[str, Any] = one.model_dump(mode="json", exclude={"newer", "older"})
    return {**fields, "newer": without_vectors(one.newer), "older": without_vectors(one.older)}


def _summary(result: ContradictionResult) -> list[str]:
    lines = [f"Compared {count(result.looked_at, 'memory', 'memories')} with the valid ones."]
    if result.found:
        found = count(result.found, "contradiction")
        lines.append(f"{found} found; in {result.superseded:,} the newer memory replaces the older one.")
    if result.replaced:
        replaced = count(result.replaced, "memory", "memories")
        lines.append(f"{replaced} replaced by a later one about the same thing; undo: memgraph undo.")
    return lines


def _preview(memory: StoredMemory) -> str:
    from memgraph.text.cutting import preview

    return preview(memory.content)


def _answer(settings: Settings, command: str, message: str, data: dict[str, Any]) -> None:
    from memgraph.model.results.curation import MemoryCommandResult

    emit(settings, MemoryCommandResult(command=command, success=True, message=message, data=data), plain(message))
