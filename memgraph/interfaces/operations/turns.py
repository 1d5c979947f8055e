"""Operations on turns: begin_turn."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memgraph.errors import InvalidInputError
from memgraph.interfaces.operations.operation import Answer, Arguments, Call, Operation
from memgraph.model.base import Text

MAX_MESSAGE_CHARS = 1_000_000


class BeginTurn(Arguments):
    """Arguments of `begin_turn`."""

    message: Annotated[str, Field(min_length=1, max_length=MAX_MESSAGE_CHARS)] = Field(
        description="The user's message, word for word."
    )
    asked: Text | None = Field(default=None, description="What you asked the user before, if the message answers it.")


def _begin_turn(call: Call, given: BeginTurn) -> Answer:
    from memgraph.tasks.turns import turn_lines

    caller = call.caller
    if caller.session is None:
        raise InvalidInputError("is missing: a turn belongs to a session, which the door names", field="session")
    found = call.memory.tasks.begin_turn(
        caller.session,
        given.message,
        asked=given.asked,
        agent=caller.agent,
        justification=caller.justification,
        project=caller.project,
        actor="agent",
    )
    return Answer(text="\n".join(turn_lines(found)), data=found.model_dump(mode="json"))


OPERATIONS = (
    Operation(
        name="begin_turn",
        description=(
            "Call with each message of the user where work is kept in tasks: says which task it belongs to and which one the session works on, "
            "and records a plain “yes” as the user's confirmation. A line that begins with ? is a question: put it to the user with its options, "
            "and let the user run the command of the answer."
        ),
        arguments=BeginTurn,
        run=_begin_turn,
        effect="write",
    ),
)
