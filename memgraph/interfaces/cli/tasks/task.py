"""``task``: register tasks, switch between them, and record what is decided and open in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    past_options,
    with_reason,
)
from memgraph.interfaces.cli.base.output import emit, emit_json, plain, print_lines
from memgraph.interfaces.cli.tasks.lines import snapshot_lines, task_line

if TYPE_CHECKING:
    from memgraph.facade import MemGraph
    from memgraph.model.results.tasks import SessionTasks, Task

STATUSES = ("active", "suspended", "archived", "closed")
_KINDS = ("title", "goal", "decision", "constraint", "question", "action", "artifact", "confirmation")
_SHORT = 8

_id = click.argument("id_", metavar="ID")
_of_task = click.option("--task", "task_id", metavar="ID", help="The task.  [default: the session's]")


@click.group(cls=Subgroup, invoke_without_command=True, params=past_options())
@click.pass_context
def task(ctx: click.Context) -> None:
    """List the tasks if no command is given."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@task.command("new")
@click.argument("title")
@click.option("--id", "id_", metavar="ID", help="Its id.  [default: made from the title]")
@click.option("--project", metavar="NAME", help="Its project.")
@click.option("--switch", "switches", is_flag=True, help="Also work on it from now on.")
@of_session
@pass_settings
def new(settings: Settings, title: str, id_: str | None, project: str | None, switches: bool, session: str) -> None:
    """Register a task."""
    with opened(settings) as memory:
        made = memory.tasks.upsert(title, task_id=id_, project=project)
        if switches:
            memory.tasks.sessions.switch(session, made.id)
    lines = [f"Task {plain(made.id)}: {plain(made.title)}{' (current)' if switches else ''}"]
    if not switches:
        lines.append(f"`memgraph task switch {plain(made.id)}` works on it.")
    emit(settings, made, lines)


@task.command("switch")
@_id
@click.option("--push", is_flag=True, help="Interrupt the current task; `resume` returns to it.")
@of_session
@pass_settings
def switch(settings: Settings, id_: str, push: bool, session: str) -> None:
    """Work on a task from now on."""
    with opened(settings) as memory:
        known = memory.tasks.sessions.switch(session, id_, push=push)
    _report(settings, known)


@task.command("resume")
@click.argument("id_", metavar="[ID]", required=False)
@of_session
@pass_settings
def resume(settings: Settings, id_: str | None, session: str) -> None:
    """Return to the interrupted task; with ID, make that task active again and work on it."""
    with opened(settings) as memory:
        if id_ is None:
            known = memory.tasks.sessions.resume(session)
        else:
            if memory.tasks.get(id_).status == "closed":
                raise Refused(f"the task {id_} is closed; `memgraph task status {id_} active` opens it again")
            memory.tasks.set_status(id_, "active")
            known = memory.tasks.sessions.switch(session, id_)
    _report(settings, known)


@task.command("list", cls=ReadingCommand)
@click.option("--status", "statuses", type=click.Choice(STATUSES), multiple=True, help="Only this status; repeatable.")
@click.option("--project", metavar="NAME", help="Only tasks of this project.")
@click.option("--all", "all_", is_flag=True, help="Include archived and closed ones.")
@of_session
@pass_settings
def list_(
    settings: Settings,
    statuses: Sequence[str] = (),
    project: str | None = None,
    all_: bool = False,
    session: str = "shell",
) -> None:
    """List tasks, the last touched first; an asterisk marks the session's."""
    chosen: Any = statuses or (None if all_ else ("active", "suspended"))
    with opened(settings) as memory:
        found = memory.tasks.list(status=chosen, project=project)
        current = memory.tasks.sessions.get(session).active
    if settings.as_json:
        emit_json([one.model_dump(mode="json") for one in found])
        return
    print_lines([task_line(one, is_current=one.id == current) for one in found] or ["There are no tasks."])


@task.command("show", cls=ReadingCommand)
@click.argument("id_", metavar="[ID]", required=False)
@click.option("--at", metavar="MOMENT", help="As it was at an event (its number) or a time.")
@click.option("--related", is_flag=True, help="Also what holds in the tasks that it is linked to.")
@of_session
@pass_settings
def show(settings: Settings, id_: str | None, at: str | None, related: bool, session: str) -> None:
    """Show what holds in a task: goal, decisions, constraints, open questions, next actions, artifacts, state, links."""
    with opened(settings) as memory:
        name = id_ or _current(memory, session)
        as_of = int(at) if at and at.isdecimal() else at
        found = memory.tasks.snapshot(name, as_of=as_of)
        others = memory.tasks.related(name, as_of=as_of) if related else []
    document = found.model_dump(mode="json")
    if related:
        document["related"] = [one.model_dump(mode="json") for one in others]
    from memgraph.retrieval.context.task_labels import related_label

    labelled = [f"{related_label(one.task_id)} {line}" for one in others for line in snapshot_lines(one)]
    emit(settings, document, [*snapshot_lines(found), *labelled])


@task.command("link")
@_id
@click.argument("other", metavar="OTHER_ID")
@pass_settings
def link(settings: Settings, id_: str, other: str) -> None:
    """Let a task read another one, without writing there."""
    with opened(settings) as memory:
        found = memory.tasks.link(id_, other)
    emit(settings, found, f"{plain(id_)} may read {', '.join(map(plain, found.links))}")


@task.command("unlink")
@_id
@click.argument("other", metavar="OTHER_ID")
@pass_settings
def unlink(settings: Settings, id_: str, other: str) -> None:
    """Undo ``link``."""
    with opened(settings) as memory:
        found = memory.tasks.unlink(id_, other)
    emit(settings, found, f"{plain(id_)} may read {', '.join(map(plain, found.links)) or 'no other task'}")


@task.command("archive")
@_id
@with_reason
@of_session
@pass_settings
def archive(settings: Settings, id_: str, reason: str | None, session: str) -> None:
    """Archive a task: it does not change until it is resumed."""
    _end(settings, id_, "archived", reason, session)


@task.command("close")
@_id
@with_reason
@of_session
@pass_settings
def close(settings: Settings, id_: str, reason: str | None, session: str) -> None:
    """Close a task: it does not change any more."""
    _end(settings, id_, "closed", reason, session)


@task.command("status")
@_id
@click.argument("status_", metavar="[STATUS]", type=click.Choice(STATUSES), required=False)
@with_reason
@pass_settings
def status(settings: Settings, id_: str, status_: Any, reason: str | None) -> None:
    """Print the status of a task, or set it: active, suspended, archived or closed."""
    with opened(settings, reads=status_ is None) as memory:
        found = memory.tasks.set_status(id_, status_, reason=reason) if status_ else memory.tasks.get(id_)
    emit(settings, found, task_line(found))


@task.command("add")
@click.argument("kind", type=click.Choice(_KINDS))
@click.argument("text")
@click.option("--note", metavar="TEXT", help="A decision's reason, an artifact's title, or what was confirmed.")
@_of_task
@of_session
@pass_settings
def add(settings: Settings, kind: str, text: str, note: str | None, task_id: str | None, session: str) -> None:
    """Record something in a task."""
    if note is not None and kind not in {"decision", "artifact", "confirmation"}:
        raise click.UsageError(f"--note has no meaning for a {kind}")
    with opened(settings) as memory:
        name = task_id or _current(memory, session)
        made = _adder(memory, kind)(name, text, note)
    emit(settings, made, f"Recorded in {plain(name)}: {kind} {plain(text)}")


@task.command("done")
@click.argument("item", metavar="ITEM_ID")
@click.option("--note", metavar="TEXT", help="Why it no longer holds, the answer, or the result.")
@_of_task
@of_session
@pass_settings
def done(settings: Settings, item: str, note: str | None, task_id: str | None, session: str) -> None:
    """Close an item: revert a decision, lift a constraint, resolve a question, complete a next action."""
    with opened(settings) as memory:
        closed = memory.tasks.close_item(task_id or _current(memory, session), item, note=note)
    emit(settings, closed, f"Closed: {closed.kind.replace('_', ' ')} {plain(closed.content)}")


@task.command("set")
@click.argument("values", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--remove", "removed", metavar="NAME", multiple=True, help="Remove this value; repeatable.")
@_of_task
@of_session
@pass_settings
def set_(settings: Settings, values: Sequence[str], removed: Sequence[str], task_id: str | None, session: str) -> None:
    """Set named values of a task's state."""
    pairs = [value.partition("=") for value in values]
    if wrong := next((name for name, equals, _ in pairs if not equals), None):
        raise click.UsageError(f"{wrong!r} is not NAME=VALUE")
    with opened(settings) as memory:
        name = task_id or _current(memory, session)
        found = memory.tasks.patch_state(name, {one: value for one, _, value in pairs}, removed=removed)
    emit(settings, found, snapshot_lines(found))


def _end(settings: Settings, id_: str, status: Any, reason: str | None, session: str) -> None:
    with opened(settings) as memory:
        found: Task = memory.tasks.set_status(id_, status, reason=reason)
        memory.tasks.sessions.leave(session, found.id)
    emit(settings, found, f"{task_line(found)}; undo: memgraph task status {plain(id_)} active")


def _adder(memory: MemGraph, kind: str) -> Callable[[str, str, str | None], Any]:
    tasks = memory.tasks
    adders: dict[str, Callable[[str, str, str | None], Any]] = {
        "title": lambda name, text, _note: tasks.upsert(text, task_id=tasks.get(name).id),
        "goal": lambda name, text, _note: tasks.set_goal(name, text),
        "decision": lambda name, text, note: tasks.decide(name, text, reason=note),
        "constraint": lambda name, text, _note: tasks.constrain(name, text),
        "question": lambda name, text, _note: tasks.ask(name, text),
        "action": lambda name, text, _note: tasks.plan(name, text),
        "artifact": lambda name, text, note: tasks.add_artifact(name, text, title=note),
        "confirmation": lambda name, text, note: tasks.confirm(name, text, confirmed=note),
    }
    return adders[kind]


def _current(memory: MemGraph, session: str) -> str:
    active = memory.tasks.sessions.get(session).active
    if active is None:
        raise Refused(f"the session {session} works on no task: name one, or `memgraph task switch ID` first")
    return active


def _report(settings: Settings, known: SessionTasks) -> None:
    below = [plain(one) for one in reversed(known.stack[:-1])]
    interrupted = f"; interrupted: {', '.join(below)}" if below else ""
    emit(settings, known, f"{plain(known.session_id)} works on {plain(known.active or '')}{interrupted}")
