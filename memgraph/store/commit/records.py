"""What is committed: records made of user input, and their vectors, all of one model and stored bit for bit as they were given or made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from memgraph.embedding import setting_of
from memgraph.errors import InvalidInputError, ModelMismatchError
from memgraph.index.index import Index
from memgraph.journal.vectors import NamedVectors
from memgraph.model.base import Name, checked
from memgraph.model.events.memories import RecordPatch
from memgraph.model.events.payload import Actor, Payload, WriteScope, sparse
from memgraph.model.ids import new_id
from memgraph.model.memory import REASONS_OF, AgentMemory, MemoryRecord, Vector
from memgraph.model.similarity import to_vector
from memgraph.ports import Annotator, Embedder, Row, lacks_entities
from memgraph.text.cutting import summary_of

Write = Payload | tuple[Payload, Vector] | AgentMemory
"""An event; an event with the vector that it refers to; or a memory to add."""
_RECORDED = frozenset(MemoryRecord.model_fields)


def record_of(memory: AgentMemory, *, now: str, max_relevance: float, **settled: Any) -> MemoryRecord:
    """Return the record of a memory, with omitted fields filled in."""
    fields = {
        name: value for name, value in vars(memory).items() if value is not None and name in _RECORDED and value != []
    }
    anchor = memory.relevance_score if memory.relevance_anchor is None else memory.relevance_anchor
    anchor = settled.get("relevance_anchor", anchor)  # set by an update
    if anchor > max_relevance:
        raise InvalidInputError(f"must be at most {max_relevance:g}", field="relevance_score", value=anchor)
    created_at = memory.created_at or now
    event_date = getattr(memory, "event_date", None)
    filled = {
        "id": memory.id or new_id(),
        "created_at": created_at,
        "updated_at": memory.updated_at or created_at,
        "occurred_at": memory.occurred_at or event_date or created_at,
        "relevance_anchor": anchor,
        "relevance_at": memory.relevance_at or now,
        "evidence_build_ids": memory.evidence_build_ids or ([memory.build_id] if memory.build_id else []),
    }
    return MemoryRecord.parse({**fields, **filled, **settled})


def annotated(memory: AgentMemory, annotator: Annotator) -> AgentMemory:
    """Return the memory with entities, a failure fingerprint and, if it has none, tags. Given values are kept."""
    found = annotator.annotate(memory)
    updates: dict[str, Any] = {}
    if found.entities and lacks_entities(memory):
        updates["entities"] = [*found.entities, *memory.entities]
    if not memory.tags and found.tags:
        updates["tags"] = list(found.tags)
    if memory.failure_fingerprint is None and found.failure_fingerprint:
        updates["failure_fingerprint"] = found.failure_fingerprint
    return memory.model_copy(update=updates) if updates else memory


def with_its_reasons(updates: Mapping[str, Any], row: Row) -> dict[str, Any]:
    """Return the updates of a row with their consequences: what describes a state is cleared with it, a summary with the text."""
    left = [state for state in REASONS_OF if state in updates and updates[state] is None]
    gone = {name for state in left for name in REASONS_OF[state]}
    if "archive_summary" in row and row["archive_summary"] == summary_of(row["content"]):
        is_of_another = updates.get("content", row["content"]) != row["content"]
        gone = gone | {"archive_summary"} if is_of_another else gone - {"archive_summary"}
    return {**dict.fromkeys(gone), **updates}


def patch(old: Row, new: MemoryRecord) -> tuple[Any, list[str]]:
    """Return (changed, cleared): the difference between a row and a record."""
    after = sparse(vars(new))
    changed = {name: value for name, value in after.items() if old.get(name) != value}
    cleared = [name for name in MemoryRecord.model_fields if name in old and name not in after]
    return RecordPatch.parse(changed), cleared


def check_commit(write_scope: object, events: object, *, task_id: object, actor: object) -> None:
    """Reject a commit that is invalid in any scope."""
    checked(WriteScope, write_scope, "write_scope")
    checked(Name | None, task_id, "task_id")
    checked(Actor, actor, "actor")
    if isinstance(events, str | bytes | Mapping) or not isinstance(events, Iterable):
        raise InvalidInputError("must be a list of events", field="events", value=events)
    for event in events:
        if isinstance(event, AgentMemory):
            continue
        payload, _ = payload_and_vector(event)
        if payload.BY_STORE_ALONE:
            raise InvalidInputError("can only be written by the store itself", field="events", value=payload.TYPE)


def payload_and_vector(write: Write) -> tuple[Payload, Vector | None]:
    """Return the event of a write other than a memory, and its vector."""
    payload, vector = write if isinstance(write, tuple) and len(write) == 2 else (write, None)
    if not isinstance(payload, Payload):
        raise InvalidInputError("must be an event, an event and its vector, or a memory", field="events", value=write)
    return payload, vector


def with_vector(payload: Payload, vector: Vector | None) -> Write:
    """Return an event with its vector, if there is one."""
    return payload if vector is None else (payload, vector)


def scope_of(memory: MemoryRecord | AgentMemory | Row) -> WriteScope:
    """Return the write scope that a memory belongs to."""
    task_id = memory.get("task_id") if isinstance(memory, dict) else memory.task_id
    return "task" if task_id else "global"


class VectorModel(NamedTuple):
    """The model of a store's vectors; `dimension` 0 means that there is none, and no vectors are stored."""

    name: str
    dimension: int


def vector_model(named: NamedVectors, embedder: Embedder) -> VectorModel:
    """Return the model of the store's vectors: that of the first vector, or the embedder's until there is one."""
    if named.model is not None:
        return VectorModel(named.model, named.dimension)
    return VectorModel(embedder.name, embedder.dimension)


def check_is_embedder(embedder: object) -> None:
    """Reject an object that is not an embedder."""
    if not (isinstance(getattr(embedder, "name", None), str) and callable(getattr(embedder, "embed", None))):
        raise InvalidInputError("must be an embedder", field="embedder", value=embedder)


def check_model(named: NamedVectors, embedder: Embedder, *, in_use: Embedder | None = None) -> None:
    """Reject an embedder whose vectors are not comparable with the store's; one that makes none fits any store."""
    check_is_embedder(embedder)
    stored, given = vector_model(named, in_use or embedder), VectorModel(embedder.name, embedder.dimension)
    if given.dimension and stored != given:
        raise ModelMismatchError(stored=stored, given=given, setting=setting_of(stored.name))


def has_vector(row: Row, model: str | None) -> bool:
    """Return whether a memory's row has a vector of this model; vectors of other models do not count."""
    return "vector_row" in row and row.get("embedding_model") == model


def rows_in_use(index: Index) -> dict[int, str]:
    """Return the vector rows of live memories under the store's model, each with its memory's id."""
    rows = index.column("vector_row")
    slots = np.flatnonzero(index.column("is_live") & (rows >= 0))
    return {int(rows[slot]): index.ids.names[slot] for slot in slots.tolist()}


def checked_vector(vector: object, model: VectorModel) -> Vector:
    """Return a vector after validation: it has the model's dimension, and is finite and not zero."""
    try:
        kept = to_vector(vector)
    except ValueError as error:
        raise InvalidInputError(str(error), field="embedding", value=vector) from None
    shown = f"{kept.size} dimensions"
    if not model.dimension:
        problem = "cannot be stored without an embedding model; omit it, or set embedding_model to minilm"
        raise InvalidInputError(problem, field="embedding", value=shown)
    if kept.size != model.dimension:
        problem = f"must have {model.dimension} dimensions, as {model.name} has"
        raise InvalidInputError(problem, field="embedding", value=shown)
    return kept
