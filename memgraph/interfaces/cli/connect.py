"""``connect`` and ``disconnect``: give an agent program its memory, and take it away again."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import Command, Settings, installed_version, pass_settings
from memgraph.interfaces.cli.base.output import count, emit, pairs, plain, progress, stderr_line, wrapped
from memgraph.text.cutting import cut

if TYPE_CHECKING:
    from memgraph.facade import MemGraph
    from memgraph.interfaces.agents.asking import AskingCost
    from memgraph.interfaces.agents.backfill import BackfillPreview
    from memgraph.interfaces.agents.connecting.connector import Standing
    from memgraph.interfaces.agents.connecting.receipt import Options

_WIDTH = 100

_STATES = {"needs approval": "is connected and needs your approval"}


@click.command(cls=Command)
@click.argument("agent", required=False)
@click.option("--dry-run", is_flag=True, help="Only say what would be written.")
@click.option("--backfill", "fills", is_flag=True, help="Also learn from all earlier sessions, after a preview.")
@click.option(
    "--answer-orders/--no-answer-orders",
    "answers",
    default=None,
    help="Whether the agent is asked, once in a session, to answer the work orders that the session caused.  [default: ask, once, at a terminal]",
)
@click.option("--yes", "-y", is_flag=True, help="With --backfill: do not ask for confirmation.")
@pass_settings
def connect(settings: Settings, agent: str | None, dry_run: bool, fills: bool, answers: bool | None, yes: bool) -> None:
    """Connect AGENT, or list the agents with how each stands."""
    from memgraph.config import load_config

    config = load_config({"home": settings.home})
    if agent is None:
        if dry_run or fills or answers is not None or yes:
            raise click.UsageError("name the agent to connect, such as claude-code")
        _list(settings, config.home, config.keys_home)
        return
    if config.server:
        raise Refused(
            f"the store is on a server, {config.server}, whose address may be secret and is written into no program's settings: connect "
            "a store in a directory, or set MEMGRAPH_HOME and MEMGRAPH_TENANT where the agent runs and add `memgraph mcp` there yourself"
        )
    from memgraph.interfaces.agents.clients.catalogue import AGENTS, connector_of, transcripts_of
    from memgraph.interfaces.agents.connecting.connector import connect as connect_program
    from memgraph.interfaces.agents.connecting.receipt import read_receipt

    release = installed_version()
    connector = connector_of(agent, release)
    readable = AGENTS[agent].transcripts
    sessions = transcripts_of(agent) if fills else None  # refused before anything is written
    receipt = read_receipt(config.keys_home, agent)
    chosen = receipt.options if receipt else _options(config.home)
    is_settled = chosen.answer_orders or chosen.was_asked or answers is not None
    is_put = not (is_settled or dry_run or yes or settings.as_json) and readable is not None and sys.stdin.isatty()
    cost = _cost(readable and readable()) if answers or is_put else None
    if cost and is_put:
        click.echo(_cost_text(cost, connector.title), err=True)
        answers = click.confirm(f"May {connector.title} be asked?", err=True)
    options = _options(
        config.home,
        answer_orders=chosen.answer_orders if answers is None else answers,
        was_asked=chosen.was_asked or answers is not None,
    )
    if dry_run:
        stands = connect_program(connector, config.keys_home, options, release=release, dry_run=True)
        document = {**stands.model_dump(mode="json"), "is_dry_run": True}
        lines = [f"Would write {plain(path)}" for path in stands.written] or ["Nothing to write: all of it is there."]
    else:
        with opened(settings):
            pass  # hooks do nothing without a store: connecting creates it
        stands = connect_program(connector, config.keys_home, options, release=release)
        document = stands.model_dump(mode="json")
        lines = [
            f"{stands.title} {_STATES.get(stands.state, f'is {stands.state}')}.",
            *_remarks(stands),
            connector.hint,
        ]
    if cost and not is_put:
        lines.append(_cost_text(cost, connector.title))
    document["cost"] = cost.model_dump(mode="json") if cost else None
    if sessions is None:
        emit(settings, document, lines)
        return
    if not settings.as_json:
        emit(settings, document, lines)
    with opened(settings) as memory:
        filled = _backfill(settings, memory, sessions, is_preview=dry_run, yes=yes)
    if settings.as_json:
        emit(settings, {**document, "backfill": filled}, "")


@click.command(cls=Command)
@click.argument("agent")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@pass_settings
def disconnect(settings: Settings, agent: str, dry_run: bool) -> None:
    """Remove what `connect` wrote for AGENT."""
    from memgraph.config import load_config
    from memgraph.interfaces.agents.clients.catalogue import connector_of
    from memgraph.interfaces.agents.connecting.connector import disconnect as disconnect_program

    config = load_config({"home": settings.home})
    connector = connector_of(agent, installed_version())
    stands = disconnect_program(connector, config.keys_home, _options(config.home), dry_run=dry_run)
    removed = [path for path in stands.written if path not in stands.missing]
    kept = [*stands.changed, *stands.extra]
    document = {
        "agent": agent,
        "removed": removed,
        "kept": kept,
        "in_the_way": stands.in_the_way,
        "is_dry_run": dry_run,
    }
    if stands.state == "not connected":
        lines = [f"{stands.title} was not connected."]
    else:
        own = [path for path in removed if path not in stands.merged]
        lines = (
            [f"{'Would remove' if dry_run else 'Removed'} {count(len(own), 'file')} of {stands.title}."] if own else []
        )
        lines += [f"  {plain(path)}" for path in own] if dry_run else []
        taken = [path for path in removed if path in stands.merged]
        lines += [f"{'Would remove' if dry_run else 'Removed'} memgraph's entries from {plain(path)}" for path in taken]
    lines += [f"Kept, because you changed or added it: {plain(path)}" for path in kept]
    lines += [f"Not written by this installation, so it stays: {plain(path)}" for path in stands.in_the_way]
    emit(settings, document, lines)


def _cost(folder: Path | None) -> AskingCost:
    from memgraph.interfaces.agents.asking import cost_of_asking
    from memgraph.interfaces.agents.backfill import transcripts_below

    return cost_of_asking(transcripts_below(folder) if folder else [])


def _cost_text(cost: AskingCost, title: str) -> str:
    if cost.asked:
        measured = (
            f"That is measured on your latest sessions, of which {cost.asked} of {cost.sessions} were long enough."
        )
    else:
        measured = "There is no long session yet to measure it on: that is the most."
    context = f" (up to {cost.context:,} tokens)" if cost.context else ""
    return wrapped(
        f"Rules find only a part of what a session taught. {title} can be asked for the rest: once in a long session, at the end of a turn, "
        f"up to three questions. That costs some {cost.read:,} tokens to read and {cost.written:,} to write, in three requests or more, each of "
        f"which also reads the session's context{context} again, most of it at the price of cached tokens. {measured}"
    )


def _options(home: Path, **choice: bool) -> Options:
    from memgraph.config import DEFAULT_HOME
    from memgraph.interfaces.agents.connecting.programs import home_folder, scripts_folder
    from memgraph.interfaces.agents.connecting.receipt import Options

    return Options(
        home=str(home),
        is_default_home=home == home_folder() / Path(DEFAULT_HOME).name,
        keys_home=os.environ.get("MEMGRAPH_KEYS_HOME", ""),
        scripts=str(scripts_folder()),
        **choice,
    )


def _list(settings: Settings, home: Path, place: Path) -> None:
    from memgraph.interfaces.agents.clients.catalogue import connectors
    from memgraph.interfaces.agents.connecting.connector import standing

    found = [standing(connector, place) for connector in connectors(installed_version())]
    rows = []
    for one in found:
        where = one.binary or one.folder
        state = f"{one.state}; found: {plain(where)}" if where else f"{one.state}; not found"
        if one.home not in {None, str(home)}:
            state += f"; with another store: {plain(str(one.home))}"
        rows.append((one.name, state))
    lines = pairs(rows)
    lines += [f"  {one.name}: {line.strip()}" for one in found for line in _remarks(one)]
    emit(
        settings, [one.model_dump(mode="json") for one in found], [*lines, "", "`memgraph connect AGENT` connects one."]
    )


def _remarks(stands: Standing) -> list[str]:
    again = f"`memgraph connect {stands.name}`"
    lines = []
    lines += [f"  missing: {plain(path)}; {again} writes it, or reinstall memgraph-kuzu" for path in stands.missing]
    lines += [
        f"  missing: {extra}: hooks work without it, the agent's tools do not; {plain(sys.executable)} -m pip install '{extra}'"
        for extra in stands.missing_extras
    ]
    lines += [f"  changed by you, and left as it is: {plain(path)}" for path in (*stands.changed, *stands.edited)]
    lines += [f"  not written by `memgraph connect`: {plain(path)}" for path in (*stands.extra, *stands.in_the_way)]
    if stands.state == "outdated":
        lines.append(f"  written by an earlier version, or with other options; {again} brings it up to date")
    if stands.problem:
        lines.append(f"  {plain(stands.problem)}")
    if stands.unapproved is None:
        lines.append(f"  did not say whether the user has approved its hooks; {stands.how_to_approve} if not")
    elif stands.unapproved:
        lines.append(f"  skips the hooks {', '.join(stands.unapproved)}: {stands.how_to_approve}")
    if stands.answer_orders:
        lines.append("  the agent is asked to answer work orders")
    return lines


def _backfill(settings: Settings, memory: MemGraph, folder: Path, *, is_preview: bool, yes: bool) -> dict[str, Any]:
    """Preview all earlier sessions and, once confirmed, read them; return the JSON document."""
    from memgraph.interfaces.agents.backfill import backfill, preview_backfill, transcripts_below

    paths = transcripts_below(folder)
    with progress(settings, "looking through sessions") as bar:
        preview = preview_backfill(memory, paths, progress=bar)
    document: dict[str, Any] = {"preview": preview.model_dump(mode="json"), "report": None}
    if not settings.as_json:
        emit(settings, None, _preview_lines(preview, folder))
    if is_preview or not preview.transcripts:
        return document
    if not yes:
        _confirm(settings, preview)
    with progress(settings, "reading sessions") as bar:
        reports = backfill(memory, paths, progress=bar)
    total = {
        "transcripts": sum(bool(one.read) for one in reports),
        "added": sum(one.extracted for one in reports),
        "merged": sum(one.merged for one in reports),
        "secrets_redacted": sum(one.secrets_redacted for one in reports),
    }
    added = count(total["added"], "memory", "memories")
    if not settings.as_json:
        read = count(total["transcripts"], "transcript")
        emit(settings, None, f"Read {read}: {added} added, {total['merged']:,} merged into existing ones.")
    return {**document, "report": total}


def _preview_lines(preview: BackfillPreview, folder: Path) -> list[str]:
    if not preview.transcripts:
        return [f"There are no sessions to learn from in {plain(str(folder))}."]
    rows = [
        (plain(one.project), f"{count(one.findings, 'finding')} in {count(one.transcripts, 'transcript')}")
        for one in preview.projects
    ]
    lines = ["Earlier sessions would teach:", *pairs(rows, indent="  "), "For example:"]
    lines += [f"  {plain(one.project)}: {cut(plain(one.text), _WIDTH)}" for one in preview.examples]
    if preview.unreadable:
        lines.append(f"{count(len(preview.unreadable), 'transcript')} cannot be read.")
    return lines


def _confirm(settings: Settings, preview: BackfillPreview) -> None:
    if settings.as_json or not sys.stdin.isatty():
        raise Refused("nothing was learned yet: to learn this, add --yes")
    if not click.confirm(f"Learn from {count(preview.transcripts, 'transcript')}?", err=True):
        stderr_line("Nothing was learned.")
        raise click.exceptions.Exit(1)
