"""Operations of handoffs: an agent hands the task of its session over, and accepts what was handed over to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.interfaces.operations.operation import Answer, Arguments, Call, Operation
from memgraph.model.base import Content, Name, Prose
from memgraph.model.ids import MIN_ID_CHARS
from memgraph.text.cutting import preview
from memgraph.text.safe import visible_line

if TYPE_CHECKING:
    from memgraph.model.results.tasks import Handoff

_Lines = Annotated[list[Content], Field(max_length=100)]
_Tokens = Annotated[int, Field(ge=200, le=100_000)]
_PAGE_TOKENS = 2_000
_ID = f"The id, or its first {MIN_ID_CHARS} characters."


class CreateHandoff(Arguments):
    """Arguments of `create_handoff`."""

    what_was_done: Prose = Field(description="What you did, so that another agent can continue.")
    to_agent: Name | None = Field(default=None, description="The agent that may accept. Default: any other one.")
    artifacts: _Lines = Field(default_factory=list, description="Paths or addresses of what was made.")
    needs_testing: _Lines = Field(default_factory=list)
    known_issues: _Lines = Field(default_factory=list)


class ListHandoffs(Arguments):
    """Arguments of `list_handoffs`."""

    include_closed: bool = Field(default=False, description="Also those that were accepted or withdrawn.")


class ShowHandoff(Arguments):
    """Arguments of `show_handoff`."""

    id: Name = Field(description=_ID)
    max_tokens: _Tokens = _PAGE_TOKENS


class AcceptHandoff(Arguments):
    """Arguments of `accept_handoff`."""

    id: Name = Field(description=_ID)
    max_tokens: _Tokens = _PAGE_TOKENS


def _create(call: Call, given: CreateHandoff) -> Answer:
    caller, tasks = call.caller, call.memory.tasks
    task = caller.task or (tasks.sessions.get(caller.session).active if caller.session else None)
    if task is None:
        problem = "is missing: this caller's session works on no task; `memgraph task switch ID --session NAME` sets it"
        raise InvalidInputError(problem, field="task")
    if not caller.may_have(tasks.get(task).project_id):
        raise NotFoundError("task", task, listed_by="memgraph task list")
    call.memory.check_may_write(caller.agent, None)
    found = tasks.handoffs.create(
        task,
        given.what_was_done,
        from_agent=caller.agent,
        to_agent=given.to_agent,
        artifacts=given.artifacts,
        needs_testing=given.needs_testing,
        known_issues=given.known_issues,
        justification=caller.justification,
        project_id=_project(call),
    )
    shown = tasks.handoffs.get(
        found.id, agent=caller.agent, justification=caller.justification, project_id=_project(call)
    )
    return Answer(text=f"Handed over: {_line(shown)}", data={"handoff": shown.model_dump(mode="json")})


def _list(call: Call, given: ListHandoffs) -> Answer:
    call.access.check_justification()
    found = call.memory.tasks.handoffs.list(agent=call.caller.agent, state=None if given.include_closed else "open")
    found = [one for one in found if _is_within(call, one)]
    rows = [one.model_dump(mode="json", exclude={"memory_ids"}) for one in found]
    return Answer(text="\n".join(map(_line, found)) or "There are no handoffs.", data={"handoffs": rows})


def _show(call: Call, given: ShowHandoff) -> Answer:
    page = call.memory.tasks.handoffs.page(
        _known(call, given.id).id, **_reader(call), max_tokens=given.max_tokens, project_id=_project(call)
    )
    return Answer(text=page.text, data=page.model_dump(mode="json"))


def _accept(call: Call, given: AcceptHandoff) -> Answer:
    reader = _reader(call)
    found = call.memory.tasks.handoffs.accept(
        _known(call, given.id).id,
        reader["agent"],
        justification=reader["justification"],
        max_tokens=given.max_tokens,
        project_id=_project(call),
    )
    text = f"{found.page.text}\n\nAccepted. No session was switched: `{visible_line(found.command)}` does that."
    return Answer(text=text, data=found.model_dump(mode="json"))


def _known(call: Call, beginning: str) -> Handoff:
    """Return a handoff that exists for the caller: from it, for it or for any agent, of a task within its project.

    Raises
    ------
    NotFoundError
        It does not exist, or not for the caller: the error is the same.
    """
    found = call.memory.tasks.handoffs.get(beginning, **_reader(call))
    if not _is_within(call, found):
        raise NotFoundError("handoff", beginning, listed_by="memgraph handoff list")
    return found


def _reader(call: Call) -> dict[str, Any]:
    return {"agent": call.caller.agent, "justification": call.caller.justification}


def _project(call: Call) -> str | None:
    return call.caller.project if call.caller.is_project_fixed else None


def _is_within(call: Call, handoff: Handoff) -> bool:
    return call.caller.may_have(call.memory.tasks.get(handoff.task_id).project_id)


def _line(one: Handoff) -> str:
    to = visible_line(one.to_agent) if one.to_agent else "any agent"
    who = f"{visible_line(one.from_agent)} to {to}"
    return f"[{one.id[:MIN_ID_CHARS]}] {visible_line(one.task_id)}, {who} ({one.state}): {preview(one.what_was_done)}"


OPERATIONS = (
    Operation(
        name="create_handoff",
        description=(
            "Hand the task of your session over to another agent when you stop before it is done: says what was done, what needs "
            "testing and what is known to be wrong. The state of the task and the memories that matter go with it."
        ),
        arguments=CreateHandoff,
        run=_create,
        effect="write",
        is_one_commit=True,
    ),
    Operation(
        name="list_handoffs",
        description="List the handoffs from you, for you, and for any agent, the latest first.",
        arguments=ListHandoffs,
        run=_list,
        effect="read",
        is_idempotent=True,
    ),
    Operation(
        name="show_handoff",
        description=(
            "Return the page from which to continue a task that was handed over: constraints, what was done, the state of the task, "
            "relevant memories, mistakes to avoid. Accept the handoff before you continue."
        ),
        arguments=ShowHandoff,
        run=_show,
        effect="read",
        is_idempotent=True,
    ),
    Operation(
        name="accept_handoff",
        description="Take over a task that was handed over to you or to any agent; returns the page from which to continue it.",
        arguments=AcceptHandoff,
        run=_accept,
        effect="write",
        is_idempotent=True,
        is_one_commit=True,
    ),
)
