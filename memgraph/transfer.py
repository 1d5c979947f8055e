"""Export of a store as one document, and import of such a document."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from memgraph.embedding import embed_each
from memgraph.errors import DuplicateIdError, EmbeddingError, InvalidInputError
from memgraph.model.ids import new_id
from memgraph.model.link import Link
from memgraph.model.memory import AgentMemory, EpisodicMemory, StoredMemory, parse_memory
from memgraph.model.results.curation import EXPORT_VERSION, MemoryCommandResult, MemoryExport
from memgraph.ports import Progress
from memgraph.privacy import classified
from memgraph.store import AgentMemoryStore
from memgraph.store.access.visibility import INCLUDABLE, shown
from memgraph.store.commit.records import VectorModel

T = TypeVar("T")
_READ_AT_ONCE = 1_000
_EMBEDDED_AT_ONCE = 64


def export_of(store: AgentMemoryStore, *, shareable: bool = False, progress: Progress | None = None) -> MemoryExport:
    """Return every memory that is not deleted, with vectors and links; see `MemoryCommands.export_memories`."""
    store.check_graph()
    reader, model = store.reader, store.vector_model
    with reader.frozen():
        index = reader.index
        slots = np.flatnonzero(shown(reader, include=() if shareable else INCLUDABLE))
        in_order = slots[np.argsort(index.column("seq")[slots], kind="stable")]
        ids = dict.fromkeys(index.ids.names[slot] for slot in in_order.tolist())
        memories: list[StoredMemory] = []
        for portion in _portions(list(ids), _READ_AT_ONCE):
            memories += reader.read(portion)
            if progress:
                progress(len(memories), len(ids))
        links = [link for link in store.every_link() if link.source_id in ids and link.target_id in ids]
    if shareable:
        memories = [_without_others(memory, ids) for memory in memories]
    return MemoryExport(
        version=EXPORT_VERSION,
        exported_at=store.now(),
        total_memories=len(memories),
        memories=memories,
        links=links,
        embedding_model=model.name if model.dimension else None,
    )


def import_into(
    store: AgentMemoryStore, data: MemoryExport | Mapping[str, Any], *, progress: Progress | None = None
) -> MemoryCommandResult:
    """Add the memories and links of an export that the store lacks; see `MemoryCommands.import_memories`."""
    if not isinstance(data, MemoryExport | Mapping):
        raise InvalidInputError("must be an export: a mapping with version and memories", field="export", value=data)
    try:
        export = data if isinstance(data, MemoryExport) else MemoryExport.parse(_with_memories(data))
        return _import(store, export, progress)
    except (InvalidInputError, DuplicateIdError) as error:
        refused = {"imported": 0, "skipped": 0, "field": getattr(error, "field", None)}
        message = f"Nothing was imported: {error}"
        return MemoryCommandResult(command="import", success=False, message=message, data=refused)


def _import(store: AgentMemoryStore, export: MemoryExport, progress: Progress | None) -> MemoryCommandResult:
    _check(export)
    new = [memory for memory in export.memories if memory.id is None or store.get_memory(memory.id) is None]
    new = [memory.model_copy(update={"id": memory.id or new_id()}) for memory in new]
    links = _new_links(store, export)
    sources, unknown = _sources(store, export, new)
    model = store.vector_model
    bare = [_bare(memory, keep_vector=_is_from(memory, export.embedding_model, model)) for memory in new]
    store.import_memories(_embedded(store, bare, progress) if progress else bare, [*links, *sources])
    skipped = len(export.memories) - len(new)
    message = f"Imported {len(new)} memories, skipped {skipped} that already existed."
    if raised := sum(_is_raised(memory) for memory in new):
        are = "is" if raised == 1 else "are"
        message += f" {raised} {are} not public because of their domain or text; `memgraph list --tier private --tier sensitive` shows them."
    if unknown:
        ids = "supporting id" if unknown == 1 else "supporting ids"
        message += f" Left out {unknown} {ids} that no memory has."
    return MemoryCommandResult(
        command="import", success=True, message=message, data={"imported": len(new), "skipped": skipped}
    )


def _embedded(store: AgentMemoryStore, memories: Sequence[AgentMemory], progress: Progress) -> list[AgentMemory]:
    """Return the memories with their vectors, computed in portions; what fails is left to the store, which reports it."""
    memories = [store.without_secrets(memory) for memory in memories]  # the stored text is the one to embed
    lacking = [place for place, memory in enumerate(memories) if memory.embedding is None]
    if not store.embedder.dimension:
        return memories
    done = 0
    for portion in _portions(lacking, _EMBEDDED_AT_ONCE):
        try:
            vectors = embed_each(store.embedder, [memories[place].content for place in portion])
        except EmbeddingError:
            break  # the model does not work: the store says so, once
        for place, vector in zip(portion, vectors, strict=True):
            if not isinstance(vector, EmbeddingError):
                memories[place] = memories[place].model_copy(update={"embedding": vector})
        done += len(portion)
        progress(done, len(lacking))
    return memories


def _portions(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _sources(store: AgentMemoryStore, export: MemoryExport, new: Sequence[AgentMemory]) -> tuple[list[Link], int]:
    """Return the links to new memories' sources that the export names in the memory alone, and the number of unknown ids.

    Seed 0's exports have no links: a generalisation lists the ids of its episodes.
    """
    given = {_ends(link) for link in export.links}
    ids = {memory.id for memory in [*export.memories, *new]}
    made: dict[tuple[str, str, str], Link] = {}
    unknown = 0
    for memory in new:
        for source in () if isinstance(memory, EpisodicMemory) else memory.supporting_memory_ids:  # type: ignore[attr-defined]
            supports = Link.parse({"source_id": source, "relation": "SUPPORTS", "target_id": memory.id})
            derived = Link.parse({"source_id": memory.id, "relation": "DERIVED_FROM", "target_id": source})
            if _ends(supports) in given:
                continue
            if source == memory.id:
                raise InvalidInputError("names the memory itself", field="supporting_memory_ids", value=source)
            if source in ids or store.get_memory(source) is not None:
                made |= {_ends(link): link for link in (derived, supports) if _ends(link) not in given}
            else:
                unknown += 1
    return list(made.values()), unknown


def _new_links(store: AgentMemoryStore, export: MemoryExport) -> list[Link]:
    """Return the links that do not exist yet, without repetitions."""
    if not export.links:
        return []
    known = {_ends(link) for link in store.every_link()}
    ends = {memory.id for memory in export.memories}
    new = []
    for place, link in enumerate(export.links):
        for name in ("source_id", "target_id"):
            end = getattr(link, name)
            if end not in ends and store.get_memory(end) is None:
                problem = "is the end of a link, but no memory in the export or the store has this id"
                raise InvalidInputError(problem, field=f"links.{place}.{name}", value=end)
            ends.add(end)
        if _ends(link) not in known:
            known.add(_ends(link))
            new.append(link)
    return new


def _ends(link: Link) -> tuple[str, str, str]:
    return link.source_id, link.relation, link.target_id


def _without_others(memory: StoredMemory, ids: Container[str | None]) -> StoredMemory:
    """Return a memory without references to memories that are not exported with it."""
    updates: dict[str, Any] = {"previous_id": memory.previous_id if memory.previous_id in ids else None}
    if not isinstance(memory, EpisodicMemory):
        updates["supporting_memory_ids"] = [one for one in memory.supporting_memory_ids if one in ids]  # type: ignore[attr-defined]
    return memory.model_copy(update=updates)


def _with_memories(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return an export's mapping with its memories parsed by their types."""
    memories = data.get("memories")
    if not isinstance(memories, list):
        raise InvalidInputError("must be a list", field="memories", value=memories)
    parsed = []
    for place, memory in enumerate(memories):
        try:
            parsed.append(parse_memory(memory))
        except InvalidInputError as error:
            raise InvalidInputError(error.problem, field=f"memories.{place}.{error.field}", value=error.value) from None
    return {**data, "memories": parsed}


def _is_raised(memory: AgentMemory) -> bool:
    """Return whether the store gives a memory a stricter privacy tier than public, since the export names none."""
    return "privacy_tier" not in memory.model_fields_set and classified(memory).privacy_tier != "public"


def _is_from(memory: AgentMemory, embedding_model: str | None, model: VectorModel) -> bool:
    """Return whether an imported vector is one of the store's model; without the model's name, its length decides."""
    if memory.embedding is None or not model.dimension:
        return False
    return model.name == embedding_model or (embedding_model is None and len(memory.embedding) == model.dimension)


def _bare(memory: AgentMemory, *, keep_vector: bool) -> AgentMemory:
    """Return a memory without the fields that links express, and without another model's vector."""
    updates: dict[str, Any] = {} if keep_vector else {"embedding": None}
    if not isinstance(memory, EpisodicMemory):
        updates["supporting_memory_ids"] = []
    return memory.model_copy(update=updates)


def _check(export: MemoryExport) -> None:
    if export.version != EXPORT_VERSION:
        raise InvalidInputError(f"must be {EXPORT_VERSION}", field="version", value=export.version)
    if export.total_memories != len(export.memories):
        raise InvalidInputError(
            f"does not fit the {len(export.memories)} memories: the file may be cut off",
            field="total_memories",
            value=export.total_memories,
        )
    seen: set[str] = set()
    for memory in export.memories:
        if memory.id is None:
            continue
        if memory.id in seen:
            raise DuplicateIdError(memory.id, where="in the export twice")
        seen.add(memory.id)
