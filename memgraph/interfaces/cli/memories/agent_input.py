"""``observe``, ``episode``, ``feedback``, ``outcome``: let an agent record its work from a shell or a hook."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, Settings, pass_settings
from memgraph.interfaces.cli.base.output import emit, notice, plain

if TYPE_CHECKING:
    from memgraph.facade import MemGraph

_project = click.option(
    "--project", metavar="NAME", help="The project it belongs to.  [default: none, shared knowledge]"
)
context = click.option(
    "--context", "--domain", "context", metavar="DOMAIN", help="The domain it belongs to, such as travel or testing."
)
_session = click.option("--session", "session_id", metavar="NAME", help="The session it belongs to.")
tier = click.option(
    "--tier", "--privacy", "privacy_tier", type=click.Choice(["public", "sensitive", "private"]), help="Who may see it."
)
_tags = click.option("--tag", "tags", metavar="TAG", multiple=True, help="A tag; repeatable.")
_OUTCOMES = click.Choice(["success", "failure", "partial", "pending"])


def _belonging(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for a memory's project, domain, session, privacy tier and tags."""
    for option in (_tags, tier, _session, context, _project):
        command = option(command)
    return command


@click.command(cls=Command)
@click.argument("text")
@_belonging
@click.option("--agent", "agent", metavar="NAME", help="The agent that observed it.")
@click.option(
    "--confidence", type=click.FloatRange(0, 1), default=0.7, show_default=True, help="How certain it is, 0 to 1."
)
@click.option("--outcome", type=_OUTCOMES, help="The outcome it reports: failure for something that does not work.")
@click.option("--valid-at", metavar="TIME", help="Since when it is true, ISO 8601.  [default: now]")
@click.option("--episode", "episode_id", metavar="ID", help="The episode it was learned from.")
@pass_settings
def observe(settings: Settings, /, text: str, episode_id: str | None, **given: Any) -> None:
    """Store an observation, or merge it into the memory that says the same."""
    with opened(settings) as memory:
        episode_id = memory.store.find_id(episode_id) if episode_id is not None else None
        saved = memory.save_observation(text, episode_id=episode_id, **_given(given))
    if saved.notice:
        notice(saved.notice)
    said = {"created": f"Observed: {saved.memory_id}", "consolidated": f"Already known, confirmed: {saved.memory_id}"}
    emit(settings, saved, said.get(saved.action, []))


@click.command(cls=Command)
@click.argument("situation")
@click.option("--reasoning", required=True, metavar="TEXT", help="How it was approached, and why.")
@click.option("--action", required=True, metavar="TEXT", help="What was done.")
@click.option("--outcome", required=True, type=_OUTCOMES, help="The outcome.")
@_belonging
@click.option("--feedback", "user_feedback", metavar="TEXT", help="The user's comment on it.")
@click.option("--agent", "agent_name", metavar="NAME", help="The agent that did it.")
@click.option("--mission", "mission_id", metavar="NAME", help="The mission it was part of.")
@click.option(
    "--task",
    "task_id",
    metavar="NAME",
    help="The task it belongs to: it is recalled only with --task NAME or --all-tasks.",
)
@click.option("--build", "build_id", metavar="NAME", help="The build it was part of.")
@pass_settings
def episode(settings: Settings, /, situation: str, **given: Any) -> None:
    """Record an episode: situation, reasoning, action and outcome."""
    with opened(settings) as memory:
        saved = memory.save_episode(situation, **_given(given))
    if saved.notice:
        notice(saved.notice)
    later = f"add the user's feedback with: memgraph feedback {saved.episode_id} love|like|meh"
    if task := given["task_id"]:
        notice(f"it belongs to the task {task!r}: it is recalled only with --task {shlex.quote(task)} or --all-tasks")
    emit(settings, saved, f"Recorded: {saved.episode_id}; {later}")


@click.command(cls=Command)
@click.argument("id_", metavar="ID")
@click.argument("word", metavar="love|like|meh", type=click.Choice(["love", "like", "meh"]))
@click.option("--comment", metavar="TEXT", help="The user's comment.")
@click.option("--agent", metavar="NAME", help="The agent that passes it on: only on episodes that it may have.")
@pass_settings
def feedback(settings: Settings, id_: str, word: str, comment: str | None, agent: str | None) -> None:
    """Record the user's feedback on an episode."""
    with opened(settings) as memory:
        found = memory.update_episode_with_feedback(memory.store.find_id(id_), word, comment=comment, agent=agent)
    what = found.content if found.privacy_tier == "public" else f"{found.privacy_tier} episode {found.id}"
    document = {"episode_id": found.id, "outcome": found.outcome, "user_feedback": found.user_feedback}
    emit(settings, document, plain(f"Outcome is now {found.outcome}: {what}"))


@click.command(cls=Command)
@click.argument("query_id", metavar="QUERY_ID")
@click.argument("word", metavar="success|failure|partial|pending|love|like|meh")
@click.option("--used", metavar="ID", multiple=True, help="A memory of that recall that was used; repeatable.")
@click.option(
    "--overridden",
    metavar="ID",
    multiple=True,
    help="A memory of that recall that was deliberately not followed; repeatable.",
)
@pass_settings
def outcome(settings: Settings, query_id: str, word: str, used: tuple[str, ...], overridden: tuple[str, ...]) -> None:
    """Record the outcome of a recall; `recall --json` and `recall --explain` print its query id."""
    with opened(settings) as memory:
        ids = {"used": _ids(memory, used), "overridden": _ids(memory, overridden)}
        memory.record_outcome(query_id, word, **ids)
    document = {"query_id": query_id, "outcome": word, **ids}
    emit(settings, document, plain(f"Recorded: {word}, {len(ids['used'])} used, {len(ids['overridden'])} overridden"))


def _ids(memory: MemGraph, beginnings: tuple[str, ...]) -> list[str]:
    return [memory.store.find_id(one) for one in beginnings]


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that were given."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    return given | ({"tags": list(given["tags"])} if "tags" in given else {})
