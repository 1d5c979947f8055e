"""``distil``: list work orders, show one, and store its answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memgraph.errors import InvalidInputError, UnsupportedClaimError
from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.input import MAX_STDIN_CHARS, standard_input
from memgraph.interfaces.cli.base.opening import opened
from memgraph.interfaces.cli.base.options import TRUST, ReadingCommand, Settings, Subgroup, pass_settings, past_options
from memgraph.interfaces.cli.base.output import count, emit, emit_json, notice, plain, print_lines, wrapped

if TYPE_CHECKING:
    from memgraph.model.results.learning import AnswerResult, WorkOrder, WorkSheet

_id = click.argument("id_", metavar="ID")
_SHORT = 8
_TOO_LONG = "an answer has at most eight statements"


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
    return f"{one.id[:_SHORT]}{state}  {one.value:.2f}  {one.source_at[:10]}  {one.kind}{project}{about}"


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
