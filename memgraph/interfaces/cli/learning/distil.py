"""``distil``: list work orders, show one, and store its answer, or have a program answer them."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memgraph.errors import InvalidInputError, MemGraphError, UnsupportedClaimError
from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.input import MAX_STDIN_CHARS, standard_input
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import TRUST, ReadingCommand, Settings, Subgroup, pass_settings, past_options
from memgraph.interfaces.cli.base.output import count, emit, emit_json, notice, plain, print_lines, progress, wrapped
from memgraph.text.cutting import preview

if TYPE_CHECKING:
    from memgraph.model.results.learning import AnswerResult, WorkOrder, WorkSheet

_id = click.argument("id_", metavar="ID")
_SHORT = 8
_TOO_LONG = "an answer has at most eight statements"
_TIMEOUT_S = 300
_MOST_FAILURES = 3
"""A program that failed so often in a row is not asked about the remaining orders."""
_SAID_CHARS = 200
_HEAD = re.compile(r"\[\d+\]$|\d{4}-\d\d-\d\d|(?:date|event|outcome|agent): |$")
"""Lines of an excerpt that say when and by whom, not what."""


@click.group(cls=Subgroup, invoke_without_command=True, params=past_options())
@click.pass_context
def distil(ctx: click.Context) -> None:
    """List the open work orders if no command is given."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@distil.command("list", cls=ReadingCommand)
@click.option("--project", metavar="NAME", help="Only work orders of this project.")
@click.option("--all", "all_", is_flag=True, help="Include answered and skipped ones.")
@click.option("--limit", metavar="N", type=click.IntRange(min=0), help="At most this many.")
@pass_settings
def list_(settings: Settings, project: str | None = None, all_: bool = False, limit: int | None = None) -> None:
    """List the open work orders, the most valuable first."""
    with opened(settings) as memory:
        found = memory.distillation.list(state=None if all_ else "open", project=project, limit=limit)
    if settings.as_json:
        emit_json([one.model_dump(mode="json") for one in found])
        return
    nothing = "There are no work orders." if all_ else "No work order is open."
    print_lines([_line(one) for one in found] or [nothing])


@distil.command("show", cls=ReadingCommand)
@_id
@pass_settings
def show(settings: Settings, id_: str) -> None:
    """Show a work order: what is asked, the excerpt and, with --json, the schema of an answer."""
    with opened(settings) as memory:
        sheet = memory.distillation.show(id_)
    emit(settings, sheet, _lines(sheet))


@distil.command("answer")
@_id
@click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
@click.option(
    "--by", metavar="NAME", default="agent", show_default=True, help="Name of the agent or person who answers."
)
@click.option("--trust", type=click.Choice(TRUST), default="agent", show_default=True, help="Trust in who answers.")
@pass_settings
def answer(settings: Settings, id_: str, file: str, by: str, trust: Any) -> None:
    """Store the statements in FILE (JSON; '-' reads standard input) that the excerpt supports."""
    document = _document(file)
    with opened(settings) as memory:
        try:
            result = memory.distillation.answer(id_, document, answered_by=by, trust_class=trust)
        except InvalidInputError as error:
            if settings.as_json and isinstance(error, UnsupportedClaimError):
                emit_json({"new_memory_ids": [], "merged_memory_ids": [], "problems": error.problems})
            raise Refused(f"{error}; `memgraph distil show --json {id_[:_SHORT]}` prints the schema") from error
    emit(settings, result, [_result_line(result), *(f"  {plain(problem)}" for problem in result.problems)])
    if result.notice:
        notice(result.notice)


@distil.command("run")
@click.option(
    "--with",
    "command",
    metavar="COMMAND",
    required=True,
    help="Program: reads an order as JSON, prints its answer as JSON.",
)
@click.option("--project", metavar="NAME", help="Only work orders of this project.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="At most this many.")
@click.option(
    "--timeout",
    "timeout_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=_TIMEOUT_S,
    show_default=True,
    help="End the program if one answer takes longer.",
)
@click.option("--by", metavar="NAME", help="Name of who answers.  [default: the program]")
@click.option("--trust", type=click.Choice(TRUST), default="agent", show_default=True, help="Trust in who answers.")
@pass_settings
def run(
    settings: Settings,
    command: str,
    project: str | None,
    limit: int | None,
    timeout_s: float,
    by: str | None,
    trust: Any,
) -> None:
    """Have a program answer the open work orders, one call for each.

    The program gets on standard input what `distil show --json` prints. No shell is used. Each answer is stored at once; an order
    whose answer fails stays open, and the same command goes on with it.
    """
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise Refused(f"--with: {error}") from None
    if not argv:
        raise Refused("--with names no program")
    if shutil.which(argv[0]) is None:
        raise Refused(f"--with: there is no program {argv[0]} that can be started")
    results: list[AnswerResult] = []
    failed: dict[str, str] = {}
    in_a_row = 0
    with opened(settings) as memory, progress(settings, "answering work orders") as bar:
        orders = memory.distillation.list(project=project, limit=limit)
        for number, order in enumerate(orders):
            if bar:
                bar(number, len(orders))
            try:
                sheet = memory.distillation.show(order.id).model_dump(mode="json")
                document = _object(_answered(argv, json.dumps(sheet), timeout_s), argv[0])
                results.append(
                    memory.distillation.answer(
                        order.id, document, answered_by=by or Path(argv[0]).name, trust_class=trust
                    )
                )
                in_a_row = 0
            except (MemGraphError, Refused) as error:
                failed[order.id] = plain(" ".join(str(error).split()))
                in_a_row += 1
                if in_a_row == _MOST_FAILURES:
                    break
    left = len(orders) - sum(not (one.refused and one.attempts_left) for one in results)
    document = {"answers": [one.model_dump(mode="json") for one in results], "failed": failed, "left": left}
    lines = [f"{one.order_id[:_SHORT]}  {_result_line(one)}" for one in results]
    lines += [f"{id_[:_SHORT]}  Not answered: {reason}" for id_, reason in failed.items()]
    emit(settings, document, lines or ["No work order is open."])
    if left:
        raise Refused(f"{count(left, 'work order')} stayed open; run the same command again to continue")


def _answered(argv: Sequence[str], given: str, timeout_s: float) -> str:
    """Return what a program prints that is given a text; end it, with what it started, when the time is over or on an interruption."""
    pipe = subprocess.PIPE
    try:
        with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True) as process:
            try:
                printed, said = process.communicate(given.encode(), timeout=timeout_s)
            except BaseException:  # what it started may still hold its output
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise
    except OSError as error:
        raise Refused(f"{argv[0]} cannot be started: {error.strerror or error}") from None
    except subprocess.TimeoutExpired:
        raise Refused(f"{argv[0]} took longer than {timeout_s:g} s and was ended; --timeout allows more") from None
    if process.returncode:
        last = said.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise Refused(f"{argv[0]} exited with {process.returncode}{f': {last[:_SAID_CHARS]}' if last else ''}")
    try:
        return printed.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"{argv[0]} printed no UTF-8 text (byte {error.start})") from None


@distil.command("skip")
@_id
@click.option("--reason", metavar="TEXT", help="Why; stored with the work order.")
@pass_settings
def skip(settings: Settings, id_: str, reason: str | None) -> None:
    """Close a work order without an answer: it is not made again."""
    with opened(settings) as memory:
        order = memory.distillation.skip(id_, reason=reason)
    emit(settings, order, f"Skipped the work order {order.id}.")


def _document(file: str) -> dict[str, Any]:
    """Return the JSON object in a file."""
    name = "standard input" if file == "-" else file
    if file == "-":
        text = standard_input(_TOO_LONG)
    else:
        try:
            with Path(file).open(encoding="utf-8") as opened_file:
                text = opened_file.read(MAX_STDIN_CHARS + 1)
        except UnicodeDecodeError as error:
            raise Refused(f"{file} is not UTF-8 text (byte {error.start})") from None
        if len(text) > MAX_STDIN_CHARS:
            raise Refused(f"{file} holds more than {MAX_STDIN_CHARS:,} characters; {_TOO_LONG}")
    return _object(text, name)


def _object(text: str, name: str) -> dict[str, Any]:
    """Return the JSON object that a text is, or that stands in its only block of code."""
    if not text.lstrip().startswith("{") and text.count("```") == 2:
        text = text.split("```")[1].removeprefix("json")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{name} is not JSON ({error}); `memgraph distil show --json ID` prints the schema") from None
    if not isinstance(found, dict):
        raise Refused(f'{name} must hold a JSON object such as {{"statements": []}}')
    return found


def _line(one: WorkOrder) -> str:
    state = f" ({one.state})" if one.state != "open" else " (answered in part)" if one.attempts else ""
    project = f", {plain(one.project_id)}" if one.project_id else ""
    about = f": {count(len(one.subject_ids), 'memory', 'memories')}" if one.subject_ids else ""
    first = next((line for line in one.excerpt.split("\n") if not _HEAD.match(line)), "")
    return f"{one.id[:_SHORT]}{state}  {one.value:.2f}  {one.source_at[:10]}  {one.kind}{project}{about}, “{preview(first)}”"


def _lines(sheet: WorkSheet) -> list[str]:
    """Return a work order as text. The excerpt is printed line by line, without control characters."""
    excerpt = [plain(line) for line in sheet.fenced_excerpt.split("\n")]
    instructions = [wrapped(line) if line else "" for line in sheet.instructions.split("\n")]
    return [_line(sheet.order), "", *instructions, "", *excerpt]


def _next_step(result: AnswerResult) -> str:
    if not result.attempts_left:
        return " (the order is closed)"
    return f" (send corrections of {'it' if result.refused == 1 else 'them'}; attempts left: {result.attempts_left})"


def _result_line(result: AnswerResult) -> str:
    if result.already_answered:
        return f"The work order was answered before, by {plain(result.answered_by)}; nothing was changed."
    parts = [f"{count(len(result.new_memory_ids), 'memory', 'memories')} added"]
    if result.merged_memory_ids:
        parts.append(f"{len(result.merged_memory_ids)} merged into existing ones")
    if result.forgotten:
        parts.append(f"{result.forgotten} left out because they repeat what was forgotten or replaced")
    if result.refused:
        parts.append(f"{count(result.refused, 'statement')} refused{_next_step(result)}")
    if result.secrets_redacted:
        parts.append(f"{count(result.secrets_redacted, 'secret')} redacted")
    answered = f"Answered: {', '.join(parts)}"
    return f"{answered}; {result.decision}" if result.decision else f"{answered}."
