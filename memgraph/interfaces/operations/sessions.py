"""Operations of the session in which an agent works: what goes into its prompts, and what its answers say in tags."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from memgraph.errors import InvalidInputError
from memgraph.interfaces.operations.operation import Answer, Arguments, Call, Operation, Traced
from memgraph.model.base import Name
from memgraph.model.results.retrieval import MAX_TASK_CHARS, SECTIONS, SectionName


class Absorb(Arguments):
    """Arguments of `absorb`."""

    output: Annotated[str, Field(max_length=MAX_TASK_CHARS)] = Field(description="The whole answer, with its tags.")
    project: Name | None = Field(default=None, description="Project of the facts. Default: the one you work in.")


class Prompt(Arguments):
    """Arguments of `prompt`."""

    task: Annotated[str, Field(max_length=MAX_TASK_CHARS)] = Field(
        default="", description="What is to be done. Default: the overview of the project."
    )
    project: Name | None = Field(default=None, description="Default: the one you work in.")
    sections: list[SectionName] = Field(default_factory=lambda: list(SECTIONS), description="Default: all.")


def _prompt(call: Call, given: Prompt) -> Answer:
    caller = call.caller
    found = call.memory.tasks.prompt(
        given.task,
        session=caller.session,
        task_id=caller.task,
        agent=caller.agent,
        justification=caller.justification,
        project=call.project(given.project),
        sections=given.sections,
        with_ids=True,
    )
    return Answer(text=found.text, data=found.model_dump(mode="json"))


def _absorb(call: Call, given: Absorb) -> Answer:
    caller = call.caller
    found = call.memory.tasks.absorb(
        session_of(call), given.output, agent=caller.agent, project=call.project(given.project)
    )
    return Answer(text=found.text, data=found.model_dump(mode="json"))


def session_of(call: Call) -> str:
    """Return the session in which is called.

    Raises
    ------
    InvalidInputError
        The door named none.
    """
    if call.caller.session is None:
        problem = "is not known: connect with a session (the header Memgraph-Session of the HTTP server)"
        raise InvalidInputError(problem, field="session")
    return call.caller.session


OPERATIONS = (
    Operation(
        name="prompt",
        description=(
            "Return what of memory goes into a prompt, in sections within budgets: standing rules, what is known of the task or the project, "
            "recent notes, and what the session and its chat are about. For programs that build prompts; models call recall."
        ),
        arguments=Prompt,
        run=_prompt,
        effect="read",
        is_store_wide=True,  # a session's working memory belongs to no project
        traced=Traced(
            "search_memory", lambda data: [one for part in data["sections"] for one in part["memory_ids"]], query="task"
        ),
    ),
    Operation(
        name="absorb",
        description=(
            "Store what a model's answer says in the tags <memory>Title: fact</memory>, <chat-memory>, <working-memory> and <chat-context>, "
            "and return the answer without them. For programs that pass on answers, not for models."
        ),
        arguments=Absorb,
        run=_absorb,
        effect="write",
        is_store_wide=True,  # a session's working memory belongs to no project
        traced=Traced(
            "upsert_memory", lambda data: [one["memory_id"] for one in [*data["memories"], *data["chat_memories"]]]
        ),
    ),
)
