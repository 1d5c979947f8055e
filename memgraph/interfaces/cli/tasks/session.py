"""``session`` and ``turn``: what a session is doing, texts that are kept for a while, and which task a message belongs to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.input import standard_input, text_of
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import (
    Command,
    ReadingCommand,
    Settings,
    Subgroup,
    of_session,
    pass_settings,
    past_options,
)
from memgraph.interfaces.cli.base.output import count, emit, emit_json, notice, plain, print_lines

if TYPE_CHECKING:
    from memgraph.model.results.tasks import ChatContext, SessionTasks, TransientItem, WorkingMemory

_SHOWN_CHARS = 60
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION = re.compile(r"(\d{1,6})([smhd])", re.ASCII)


@click.group(cls=Subgroup, invoke_without_command=True, params=past_options())
@click.pass_context
def session(ctx: click.Context) -> None:
    """Show the session if no command is given."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(show)


@session.command("show", cls=ReadingCommand)
@of_session
@pass_settings
def show(settings: Settings, session: str = "shell") -> None:
    """Show what a session is doing: its tasks, its working memory and what its chat is about."""
    with opened(settings) as memory:
        tasks, working = memory.tasks.sessions.get(session), memory.tasks.working.get(session)
        context = memory.tasks.working.context(session)
    document = {
        "tasks": tasks.model_dump(mode="json"),
        "working_memory": working and working.model_dump(mode="json"),
        "context": context and context.model_dump(mode="json"),
    }
    emit(settings, document, _lines(tasks, working, context))


@session.command("set")
@click.option("--doing", "task", metavar="TEXT", help="What the session is doing.")
@click.option("--context", metavar="TEXT", multiple=True, help="What matters for it; repeatable.")
@click.option("--pending", metavar="TEXT", multiple=True, help="What is still to be done; repeatable.")
@click.option("--notes", metavar="TEXT", help="Anything else.")
@of_session
@pass_settings
def set_(settings: Settings, /, session: str, **fields: Any) -> None:
    """Replace the working memory of a session as a whole."""
    with opened(settings) as memory:
        found = memory.tasks.working.replace(session, **fields, actor="user")
    emit(settings, found, _working_lines(found))


@session.command("clear")
@of_session
@pass_settings
def clear(settings: Settings, session: str) -> None:
    """Remove the working memory of a session."""
    with opened(settings) as memory:
        was_there = memory.tasks.working.clear(session, actor="user")
    emit(settings, {"cleared": was_there}, "Cleared." if was_there else "There was no working memory.")


@session.command("about")
@click.argument("text")
@of_session
@pass_settings
def about(settings: Settings, text: str, session: str) -> None:
    """State what the chat of a session is about, instead of what was stated before."""
    with opened(settings) as memory:
        found = memory.tasks.working.set_context(session, text, actor="user")
    emit(settings, found, f"{plain(session)} is about {plain(found.context)}")


@session.command("absorb")
@click.argument("file", type=click.Path(), default="-")
@click.option("--project", metavar="NAME", help="Project of the facts.  [default: that of the session's task]")
@click.option("--agent", metavar="NAME", help="The agent whose answer it is: its permissions apply.")
@of_session
@pass_settings
def absorb(settings: Settings, file: str, project: str | None, agent: str | None, session: str) -> None:
    """Store what a model's answer in FILE, or on standard input, says in tags, and print the answer without them."""
    output = text_of(file)
    with opened(settings, embeds=True) as memory:
        found = memory.tasks.absorb(session, output, agent=agent, project=project)
    for one in found.left_out:
        notice(f"<{one.tag}> was not stored: {one.reason}: {plain(one.content[:_SHOWN_CHARS])}")
    if settings.as_json:
        emit_json(found)
    elif found.text:
        click.echo(found.text)


@session.command("keep")
@click.argument("name")
@click.argument("text")
@click.option("--for", "duration", metavar="TIME", default="1h", show_default=True, help="Such as 30s, 10m, 2h or 1d.")
@click.option("--task", "task_id", metavar="ID", help="The task that it belongs to.")
@pass_settings
def keep(settings: Settings, name: str, text: str, duration: str, task_id: str | None) -> None:
    """Keep a text for a while under a name; it is not recalled unless it is promoted."""
    match = _DURATION.fullmatch(duration)
    if match is None:
        raise click.UsageError(f"--for {duration!r} is no time such as 30s, 10m, 2h or 1d")
    with opened(settings) as memory:
        ttl_s = int(match[1]) * _SECONDS[match[2]]
        found = memory.tasks.working.keep(name, text, ttl_s=ttl_s, task_id=task_id, actor="user")
    emit(settings, found, f"Kept until {found.expires_at}: {plain(found.content)}")


@session.command("kept", cls=ReadingCommand)
@click.option("--task", "task_id", metavar="ID", help="Texts of this task instead of those of none.")
@pass_settings
def kept(settings: Settings, task_id: str | None) -> None:
    """List the texts that are kept and have not expired."""
    with opened(settings) as memory:
        found = memory.tasks.working.kept(task_id=task_id)
    if settings.as_json:
        emit_json([one.model_dump(mode="json") for one in found])
        return
    print_lines([_kept_line(one) for one in found] or ["Nothing is kept."])


@session.command("autoswitch")
@click.argument("state", type=click.Choice(("on", "off", "status")))
@of_session
@pass_settings
def autoswitch(settings: Settings, state: str, session: str) -> None:
    """Allow turns to switch the task of a session by themselves, or not; off unless you switch it on."""
    with opened(settings, reads=state == "status") as memory:
        sessions = memory.tasks.sessions
        known = sessions.get(session) if state == "status" else sessions.control(session, autoswitch=state == "on")
    emit(settings, known, f"autoswitch of {plain(session)}: {'on' if known.autoswitch else 'off'}")


@session.command("mode")
@click.argument("mode", type=click.Choice(("minimal", "supportive", "status")))
@of_session
@pass_settings
def mode(settings: Settings, mode: Any, session: str) -> None:
    """Set how much turns ask: minimal, about conflicts and ambiguity; supportive, also about other topics."""
    with opened(settings, reads=mode == "status") as memory:
        sessions = memory.tasks.sessions
        known = sessions.get(session) if mode == "status" else sessions.control(session, guidance=mode)
    emit(settings, known, f"mode of {plain(session)}: {known.guidance}")


@session.command("promote")
@click.argument("name")
@pass_settings
def promote(settings: Settings, name: str) -> None:
    """Store a text that is kept as a memory."""
    with opened(settings) as memory:
        found = memory.tasks.working.promote(name)
    emit(settings, {"id": found.id, "content": found.content}, f"Stored as {found.id}: {plain(found.content)}")


@session.command("prune")
@pass_settings
def prune(settings: Settings) -> None:
    """Remove the texts that have expired, and working memories that are void."""
    with opened(settings) as memory:
        number = memory.tasks.working.prune(actor="user")
    emit(settings, {"removed": number}, f"{count(number, 'text')} removed")


def _lines(tasks: SessionTasks, working: WorkingMemory | None, context: ChatContext | None) -> list[str]:
    below = f" (interrupted: {', '.join(map(plain, reversed(tasks.stack[:-1])))})" if tasks.stack[:-1] else ""
    lines = [f"{plain(tasks.session_id)} works on {plain(tasks.active)}{below}" if tasks.active else "No task."]
    if tasks.autoswitch or tasks.guidance != "minimal":
        lines.append(f"Autoswitch: {'on' if tasks.autoswitch else 'off'}; mode: {tasks.guidance}")
    if context is not None:
        lines.append(f"About: {plain(context.context)}")
    return [*lines, *(_working_lines(working) if working is not None else ["No working memory."])]


def _working_lines(working: WorkingMemory) -> list[str]:
    def bullets(heading: str, texts: Sequence[str]) -> list[str]:
        return [heading, *(f"  {plain(text)}" for text in texts)] if texts else []

    lines = [f"Doing: {plain(working.task)}"] if working.task else []
    lines += [*bullets("Context:", working.context), *bullets("Pending:", working.pending)]
    lines += [f"Notes: {plain(working.notes)}"] if working.notes else []
    return [*lines, f"Updated: {working.updated_at[:16].replace('T', ' ')} UTC"]


def _kept_line(item: TransientItem) -> str:
    return f"{plain(item.id)}  until {item.expires_at[:19]}  {plain(item.content)}"


@click.command(cls=Command)
@click.argument("message")
@of_session
@click.option("--asked", metavar="TEXT", help="What the user was asked instead of what the last turn asked.")
@click.option("--project", metavar="NAME", help="Only tasks of this project and of none.")
@pass_settings
def turn(settings: Settings, message: str, session: str, asked: str | None, project: str | None) -> None:
    """Print the task that MESSAGE belongs to, and what to ask; '-' reads standard input, up to 1,000,000 characters."""
    from memgraph.tasks.turns import turn_lines

    text = standard_input("its beginning decides, so pass that") if message == "-" else message
    with opened(settings) as memory:
        found = memory.tasks.begin_turn(session, text, asked=asked, project=project)
    emit(settings, found, turn_lines(found))
