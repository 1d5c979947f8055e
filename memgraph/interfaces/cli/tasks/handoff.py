"""``handoff``: hand a task over to another agent; ``continuity``: the page from which an agent continues."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import (
    ReadingCommand,
    Settings,
    Subgroup,
    of_session,
    pass_settings,
    with_reason,
)
from memgraph.interfaces.cli.base.output import count, emit, emit_json, plain, print_lines
from memgraph.interfaces.cli.tasks.lines import full_ids, git_lines

if TYPE_CHECKING:
    from memgraph.model.results.tasks import Handoff

_STATES = ("open", "accepted", "withdrawn")
_SHORT = 8
_MEMORY_TOKENS, _PAGE_TOKENS = 800, 2_000
_id = click.argument("id_", metavar="ID")
_page_tokens = click.option(
    "--max-tokens", type=click.IntRange(min=200), default=_PAGE_TOKENS, show_default=True, help="Budget of the page."
)


@click.group(cls=Subgroup)
def handoff() -> None:
    """Hand a task over to another agent."""


@handoff.command("create")
@click.argument("done", metavar="WHAT_WAS_DONE")
@click.option("--from", "from_agent", metavar="AGENT", required=True, help="Who hands over.")
@click.option("--to", "to_agent", metavar="AGENT", help="Who may accept.  [default: any other agent]")
@click.option("--task", "task_id", metavar="ID", help="The task.  [default: the session's]")
@click.option("--artifact", "artifacts", metavar="TEXT", multiple=True, help="What was made; repeatable.")
@click.option("--test", "needs_testing", metavar="TEXT", multiple=True, help="What needs testing; repeatable.")
@click.option("--issue", "known_issues", metavar="TEXT", multiple=True, help="A known issue; repeatable.")
@click.option("--work-tree", metavar="DIR", help="Record branch, commit and changed files of this git work tree.")
@click.option(
    "--memory", "memories", metavar="ID", multiple=True, help="Carry this memory instead of chosen ones; repeatable."
)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=200),
    default=_MEMORY_TOKENS,
    show_default=True,
    help="Budget of the memories that are chosen.",
)
@of_session
@pass_settings
def create(
    settings: Settings,
    /,
    done: str,
    task_id: str | None,
    session: str,
    memories: Sequence[str],
    **given: Any,
) -> None:
    """Hand a task over in its present state, with the memories that matter."""
    with opened(settings) as memory:
        name = task_id or memory.tasks.sessions.get(session).active
        if name is None:
            raise Refused(f"the session {session} works on no task: name one with --task")
        chosen = full_ids(memory, memories) if memories else None
        found = memory.tasks.handoffs.create(name, done, memories=chosen, actor="user", **given)
    accepts = f"memgraph handoff accept {found.id[:_SHORT]} --agent {plain(shlex.quote(found.to_agent or 'NAME'))}"
    emit(settings, found, [*_lines(found), f"Accept it: {accepts}"])


@handoff.command("list", cls=ReadingCommand)
@click.option("--task", "task_id", metavar="ID", help="Only of this task.")
@click.option("--state", type=click.Choice(_STATES), help="Only in this state.")
@pass_settings
def list_(settings: Settings, task_id: str | None, state: Any) -> None:
    """List handoffs, the latest first; with --agent, those from or for that agent, or for any."""
    with opened(settings, asks=True) as memory:
        found = memory.tasks.handoffs.list(task_id=task_id, agent=settings.agent, state=state)
    if settings.as_json:
        emit_json([one.model_dump(mode="json") for one in found])
        return
    print_lines([_line(one) for one in found] or ["There are no handoffs."])


@handoff.command("show", cls=ReadingCommand)
@_id
@pass_settings
def show(settings: Settings, id_: str) -> None:
    """Show a handoff; `memgraph continuity --handoff ID` prints the page for who accepts it."""
    with opened(settings, asks=True) as memory:
        found = memory.tasks.handoffs.get(id_, agent=settings.agent, justification=settings.justification)
    emit(settings, found, _lines(found))


@handoff.command("accept")
@_id
@click.option("--agent", metavar="NAME", required=True, help="Who accepts.")
@click.option("--justification", metavar="TEXT", help="Why that agent needs sensitive memories.")
@click.option("--switch", "switches", is_flag=True, help="Also switch the session to the task.")
@_page_tokens
@of_session
@pass_settings
def accept(
    settings: Settings,
    id_: str,
    agent: str,
    justification: str | None,
    switches: bool,
    max_tokens: int,
    session: str,
) -> None:
    """Take a task over, and print the page from which to continue it."""
    with opened(settings) as memory:
        found = memory.tasks.handoffs.accept(
            id_, agent, justification=justification, max_tokens=max_tokens, actor="user"
        )
        if switches:
            memory.tasks.sessions.switch(session, found.handoff.task_id)
    if settings.as_json:
        emit_json({**found.model_dump(mode="json"), "switched": session if switches else None})
        return
    following = f"{plain(session)} works on it now." if switches else f"Work on it: {plain(found.command)}"
    print_lines([*found.page.text.split("\n"), "", f"Accepted. {following}"])


@handoff.command("withdraw")
@_id
@click.option("--agent", metavar="NAME", help="Who withdraws it: the agent that created it.  [default: the owner]")
@with_reason
@pass_settings
def withdraw(settings: Settings, id_: str, agent: str | None, reason: str | None) -> None:
    """Withdraw a handoff that was not accepted."""
    with opened(settings) as memory:
        found = memory.tasks.handoffs.withdraw(id_, agent=agent, reason=reason)
    emit(settings, found, _line(found))


@click.command(cls=ReadingCommand)
@click.option("--task", "task_id", metavar="ID", help="The task.  [default: the session's]")
@click.option("--handoff", "handoff_id", metavar="ID", help="The task of this handoff, as it was handed over.")
@_page_tokens
@of_session
@pass_settings
def continuity(settings: Settings, task_id: str | None, handoff_id: str | None, max_tokens: int, session: str) -> None:
    """Print the page in Markdown; with --agent, only what that agent may have."""
    if task_id is not None and handoff_id is not None:
        raise click.UsageError("--task and --handoff exclude each other: a handoff is of one task")
    reader: dict[str, Any] = {
        "agent": settings.agent,
        "justification": settings.justification,
        "max_tokens": max_tokens,
    }
    with opened(settings, asks=True) as memory:
        if handoff_id is not None:
            page = memory.tasks.handoffs.page(handoff_id, **reader)
        else:
            name = task_id or memory.tasks.sessions.get(session).active
            if name is None:
                raise Refused(f"the session {session} works on no task: name one with --task, or give --handoff")
            page = memory.tasks.continuity(name, **reader)
    emit(settings, page, page.text.split("\n"))


def _line(one: Handoff) -> str:
    to = plain(one.to_agent) if one.to_agent else "any agent"
    state = f"accepted by {plain(one.accepted_by)}" if one.accepted_by else one.state
    return f"{one.id[:_SHORT]}  {one.created_at[:10]}  {plain(one.task_id)}  {plain(one.from_agent)} to {to}  {state}  {plain(one.what_was_done)}"


def _lines(one: Handoff) -> list[str]:
    lines = [_line(one)]
    for label, texts in (
        ("Artifact", one.artifacts),
        ("Needs testing", one.needs_testing),
        ("Known issue", one.known_issues),
    ):
        lines += [f"{label}: {plain(text)}" for text in texts]
    if one.git_state is not None:
        lines += git_lines(one.git_state)
    carried = f": {', '.join(memory_id[:_SHORT] for memory_id in one.memory_ids)}" if one.memory_ids else ""
    lines.append(f"Carries {count(len(one.memory_ids), 'memory', 'memories')}{carried}")
    if one.reason:
        lines.append(f"Withdrawn because: {plain(one.reason)}")
    return lines
