"""Operations that read: recall, search_memories, get_memory, ask, list_memories."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from memgraph.interfaces.operations.operation import Answer, Arguments, Call, Operation, Traced
from memgraph.model.base import Name
from memgraph.model.ids import MIN_ID_CHARS
from memgraph.model.memory import MemoryType, StoredMemory, TrustClass
from memgraph.model.results.retrieval import MAX_TASK_CHARS, WANTED_PHRASES, Phrases, Rules
from memgraph.text.safe import visible_line

_VECTOR = {"embedding"}
_TOLD = {"query_id", "certainty", "notice", "total_tokens_used", "task_id", "labels", "related_ids", "task_items"}
MAX_RESULTS = 100
MAX_OFFSET = 1_000_000
Few = Annotated[int, Field(ge=1, le=MAX_RESULTS)]
Words = Annotated[str, Field(min_length=1, max_length=MAX_TASK_CHARS)]
_Tokens = Annotated[int, Field(ge=1, le=100_000)]


class Recall(Arguments):
    """Arguments of `recall`."""

    task: Words = Field(
        description="What you are about to do, in one or two sentences; an error message if something failed."
    )
    also: Phrases = Field(
        default_factory=list,
        description="Three phrases, five at most, in the words that past messages would have used.",
    )
    project: Name | None = Field(default=None, description="Default: the project you work in.")
    max_tokens: _Tokens | None = Field(default=None, description="Maximum number of tokens of content.")
    min_trust: TrustClass | None = Field(default=None, description="Only memories of this trust class or a higher one.")
    rules: Rules = Field(
        default="all",
        description="Standing rules to give: all, those that match the task, or none but the pinned constraints.",
    )


class Search(Arguments):
    """Arguments of `search_memories`."""

    query: Words = Field(description="What to look for, in a few words.")
    type: MemoryType | None = Field(default=None, description="Only memories of this type.")
    project: Name | None = Field(
        default=None, description="Default: the project you work in; memories of no project are always included."
    )
    limit: Few = 10


class Get(Arguments):
    """Arguments of `get_memory`."""

    id: Name = Field(description=f"The id, or its first {MIN_ID_CHARS} characters.")


class Ask(Arguments):
    """Arguments of `ask`."""

    question: Words
    project: Name | None = None


class List(Arguments):
    """Arguments of `list_memories`."""

    type: MemoryType | None = None
    project: Name | None = None
    limit: Few = 20
    offset: Annotated[int, Field(ge=0, le=MAX_OFFSET)] = Field(
        default=0, description="How many to leave out: next_offset of the page before."
    )


def _recall(call: Call, given: Recall) -> Answer:
    caller = call.caller
    query: dict[str, Any] = {"session_id": caller.session, "task_id": caller.task, "max_tokens": given.max_tokens}
    if given.min_trust:
        from memgraph.store.access.scope import trusted

        query["trust_classes"] = trusted(given.min_trust)
    found = call.memory.recall(
        given.task,
        given.also,
        agent=caller.agent,
        justification=caller.justification,
        project=call.project(given.project),
        rules=given.rules,
        **query,
    )
    text = call.memory.format_context_for_prompt(found, format="notes", with_ids=True)
    data = found.model_dump(mode="json", include=_TOLD)
    data |= {"memories": [fields_of(memory) for memory in found.memories], "formatted": text}
    data |= {"rules": [fields_of(memory) for memory in found.rules or []], "rules_left_out": found.rules_left_out}
    return Answer(text=f"{text}\n\nquery_id: {found.query_id}".lstrip(), data=data)


def _search(call: Call, given: Search) -> Answer:
    from memgraph.retrieval.context.task_labels import before

    caller = call.caller
    found = call.memory.search_memories(
        given.query,
        limit=given.limit,
        types=[given.type] if given.type else None,
        agent=caller.agent,
        justification=caller.justification,
        project_id=call.project(given.project),
        session_id=caller.session,
        task_id=caller.task,
    )
    lines = [
        line_of(one.memory, "" if one.has_evidence else "only similar", before(one.label, one.task_item))
        for one in found
    ]
    rows = [{"memory": fields_of(one.memory), **one.model_dump(mode="json", exclude={"memory"})} for one in found]
    return Answer(text="\n".join(lines) or "No memory is similar to this.", data={"results": rows})


def _get(call: Call, given: Get) -> Answer:
    from memgraph.retrieval.context.task_labels import labelled

    memory = call.readable(given.id)
    shown = {name: value for name, value in fields_of(memory).items() if value not in (None, [], "", False)}
    lines = [f"{name}: {visible_line(str(value))}" for name, value in shown.items() if name != "content"]
    said = labelled(memory.content, memory.trust_class)
    return Answer(text="\n".join([said, "", *lines]), data={"memory": fields_of(memory)})


def _ask(call: Call, given: Ask) -> Answer:
    caller = call.caller
    found = call.memory.commands.ask(
        given.question,
        agent=caller.agent,
        justification=caller.justification,
        project_id=call.project(given.project),
        session_id=caller.session,
        task_id=caller.task,
    )
    return Answer(text=found.message, data=found.data or {})


def _list(call: Call, given: List) -> Answer:
    from memgraph.store.access.scope import task_of

    caller, project = call.caller, call.project(given.project)
    found, has_more = call.listings.page(
        type=given.type,
        project_id=project,
        session=caller.session,
        task_id=task_of(call.memory.store.reader, caller.task, caller.session),
        offset=given.offset,
        limit=given.limit,
    )
    lines, rows = [line_of(one) for one in found], [fields_of(one) for one in found]
    following = given.offset + given.limit if has_more else None
    if following is not None:
        lines.append(f"next_offset: {following}")
    return Answer(
        text="\n".join(lines) or "There are no such memories.", data={"memories": rows, "next_offset": following}
    )


def fields_of(memory: StoredMemory) -> dict[str, Any]:
    """Return a memory's JSON fields without its vector."""
    return memory.model_dump(mode="json", exclude=_VECTOR)


def _ids_of_memories(data: dict[str, Any]) -> list[str]:
    return [one["id"] for one in data["memories"]]


def line_of(memory: StoredMemory, mark: str = "", before: str = "") -> str:
    """Return a memory as one line: the beginning of its id, its type, a mark, what stands before its text, its text."""
    from memgraph.retrieval.context.context import commit_of
    from memgraph.retrieval.context.task_labels import labelled

    tier = "" if memory.privacy_tier == "public" else memory.privacy_tier
    kinds = ", ".join(filter(None, (memory.type, commit_of(memory), mark, tier)))
    return f"[{memory.id[:MIN_ID_CHARS]}] ({kinds}) {labelled(memory.content, memory.trust_class, before)}"


OPERATIONS = (
    Operation(
        name="recall",
        description=(
            "Call FIRST, before planning or editing, and again when something fails. Returns the standing rules of the user and the project, "
            "then what is known from earlier work that concerns the task: what to do, what to avoid, facts, and what happened, with the beginning of "
            f"each memory's id. Give {WANTED_PHRASES}, in `also`: they find what the words of the task do not. "
            "It may be nothing. The last line is the query_id for record_outcome."
        ),
        arguments=Recall,
        run=_recall,
        effect="read",
        toolset="core",
        traced=Traced("search_memory", _ids_of_memories, query="task"),
    ),
    Operation(
        name="search_memories",
        description=(
            "Search the memories of the project, and those of no project, for a few words, best first. Unlike recall it also returns what is only similar, marked so. "
            "Use it to look something up or to find the id of a memory."
        ),
        arguments=Search,
        run=_search,
        effect="read",
        is_idempotent=True,
        toolset="core",
        traced=Traced("search_memory", lambda data: [one["memory"]["id"] for one in data["results"]], query="query"),
    ),
    Operation(
        name="get_memory",
        description="Return one memory with all its fields: times, outcome, trust, tags, source.",
        arguments=Get,
        run=_get,
        effect="read",
        is_idempotent=True,
        toolset="core",
        traced=Traced("search_memory", lambda data: [data["memory"]["id"]]),
    ),
    Operation(
        name="ask",
        description="Return up to five episodes that match a question, each with its age and how clear the memory is.",
        arguments=Ask,
        run=_ask,
        effect="read",
        is_idempotent=True,
        traced=Traced("search_memory", lambda data: data.get("ids", []), query="question"),
    ),
    Operation(
        name="list_memories",
        description="List memories by relevance, without a search: of the task of your session and of none.",
        arguments=List,
        run=_list,
        effect="read",
        is_idempotent=True,
        traced=Traced("search_memory", _ids_of_memories),
    ),
)
