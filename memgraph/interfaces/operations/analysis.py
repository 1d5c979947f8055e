"""Operations for analysts: guarded Cypher, named queries, and counts, on what the caller may have."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, JsonValue

from memgraph.errors import InvalidInputError
from memgraph.interfaces.operations.operation import Answer, Arguments, Call, Operation
from memgraph.model.base import Name
from memgraph.model.results.rows import jsonable
from memgraph.text.safe import visible_json

MAX_ROWS = 1_000


class Query(Arguments):
    """Arguments of `query`."""

    cypher: Annotated[str, Field(max_length=20_000)] | None = Field(default=None, description="A reading Cypher query.")
    name: Name | None = Field(default=None, description="A named query instead.")
    params: dict[str, JsonValue] = Field(default_factory=dict)
    limit: Annotated[int, Field(ge=1, le=MAX_ROWS)] = 100


class Stats(Arguments):
    """Arguments of `stats`: none."""


def _query(call: Call, given: Query) -> Answer:
    if (given.cypher is None) == (given.name is None):
        raise InvalidInputError("give either cypher or the name of a query", field="cypher")
    caller = call.caller
    with call.memory.as_agent(caller.agent, justification=caller.justification, progress=call.progress) as view:
        if given.name is not None:
            rows = list(view.store.query(given.name, **given.params))
        else:
            rows = list(view.store.cypher(str(given.cypher), **given.params))
    shown: Any = jsonable(rows[: given.limit])
    lines = [visible_json(row) for row in shown]
    more = [f"{len(rows) - given.limit} more rows"] if len(rows) > given.limit else []
    data = {"rows": shown, "total": len(rows)}
    return Answer(text="\n".join([*lines, *more]) or "The query returned no rows.", data=data)


def _stats(call: Call, _given: Stats) -> Answer:
    caller = call.caller
    counted = call.listings.get_stats(only_project=caller.project if caller.is_project_fixed else None)
    found = counted.model_dump(mode="json", exclude={"db_size_bytes"})  # which changes with what others store
    return Answer(text="\n".join(f"{name}: {value}" for name, value in found.items()), data=found)


OPERATIONS = (
    Operation(
        name="query",
        description=(
            "Run a reading Cypher query, or a named query, over the memory graph. Memories are nodes labelled Memory with "
            "id, type, content, outcome, project_id; edges are SUPPORTS, DERIVED_FROM, SUPERSEDES, CONTRADICTS and others."
        ),
        arguments=Query,
        run=_query,
        effect="read",
        is_store_wide=True,
        is_idempotent=True,
    ),
    Operation(
        name="stats",
        description="Return the counts of the memories that you may read.",
        arguments=Stats,
        run=_stats,
        effect="read",
        is_idempotent=True,
    ),
)
