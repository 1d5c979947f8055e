"""Where a memory comes from: the memories it rests on, the event that added it, and the places in sources."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from memgraph.journal.journal import Journal
from memgraph.journal.search import histories
from memgraph.model.events.memories import MemoryAdded, MemoryUndeleted
from memgraph.model.events.records import BuildConsolidated, SourceRead
from memgraph.model.link import Link
from memgraph.model.memory import StoredMemory
from memgraph.model.results.curation import HistoryEntry, Origin, Relation, SourcePlace
from memgraph.store.editing.commits import recorded_commits
from memgraph.store.editing.history import described, entry_of
from memgraph.store.query import Reader

MOST_PLACES = 20
_FACTS = (
    "source",
    "speaker",
    "trust_class",
    "project_id",
    "session_id",
    "task_id",
    "build_id",
    "git_commit",
    "location",
)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SAID = "user@"


@dataclass(slots=True)
class _Node:
    """A memory in the tree, before the journal has been searched for the events that added it."""

    memory: StoredMemory
    parent: str | None = None
    is_repeated: bool = False
    below: list[tuple[str, str | None, _Node]] = field(default_factory=list)
    more: int = 0


def origin(journal: Journal, reader: Reader, memory_id: str, *, depth: int, most: int) -> Origin:
    """Return where a memory comes from. Two passes over the journal.

    Parameters
    ----------
    depth : int
        How many links away from the memory the tree ends.
    most : int
        Maximum number of related memories of each.

    Raises
    ------
    NotFoundError
        The memory does not exist.
    """
    with reader.frozen():
        root = _Node(reader.known(memory_id))
        nodes = {root.memory.id: root}
        level = [root]
        for _ in range(depth):
            level = [node for one in level for node in _grow(reader, one, nodes, most)]
        for one in level:
            one.more = len([relation for relation in _related(reader, one.memory.id) if relation[2] not in nodes])
    made = _made(journal, list(nodes))
    builds = {build for node in nodes.values() for build in node.memory.evidence_build_ids}
    return _origin(root, made, _sources_of(journal, builds))


def _grow(reader: Reader, node: _Node, nodes: dict[str, _Node], most: int) -> list[_Node]:
    """Add the related memories of a memory to the tree, and return those that the tree continues from."""
    related = [relation for relation in _related(reader, node.memory.id) if relation[2] != node.parent]
    node.more = max(0, len(related) - most)
    shown = related[:most]
    memories = {memory.id: memory for memory in reader.read([other for _, _, other in shown])}
    growing = []
    for relation, reason, other in shown:
        if other not in memories:
            continue
        below = _Node(memories[other], parent=node.memory.id, is_repeated=other in nodes)
        node.below.append((relation, reason, below))
        if other not in nodes:
            nodes[other] = below
            if relation not in {"contradicts", "superseded by"}:
                growing.append(below)
    return growing


def _related(reader: Reader, memory_id: str) -> list[tuple[str, str | None, str]]:
    """Return (relation, reason, other memory) for each link that explains a memory; evidence is named once."""
    found: dict[str, tuple[str, str | None, str]] = {}
    for link in sorted(reader.links(memory_id), key=_order):
        outward = link.source_id == memory_id
        other = link.target_id if outward else link.source_id
        relation = {
            ("DERIVED_FROM", True): "derived from",
            ("SUPPORTS", False): "supported by",
            ("SUPERSEDES", True): "supersedes",
            ("SUPERSEDES", False): "superseded by",
            ("CONTRADICTS", True): "contradicts",
            ("CONTRADICTS", False): "contradicts",
        }.get((link.relation, outward))
        if relation is not None:
            found.setdefault(other, (relation, link.reason, other))
    return list(found.values())


def _order(link: Link) -> tuple[int, str, str]:
    first = ("DERIVED_FROM", "SUPPORTS", "SUPERSEDES", "CONTRADICTS")
    return (first.index(link.relation) if link.relation in first else len(first), link.source_id, link.target_id)


def _made(journal: Journal, ids: list[str]) -> dict[str, HistoryEntry]:
    """Return the events that added memories, by memory."""
    found: dict[str, HistoryEntry] = {}
    for memory_id, events in histories(journal, ids).items():
        for event in events:
            if (
                isinstance(event.payload, MemoryAdded | MemoryUndeleted)
                and memory_id not in found
                and event.payload.memory.id == memory_id
            ):
                found[memory_id] = entry_of(event, described(event, memory_id, {}) or event.type)
    return found


def _sources_of(journal: Journal, builds: Collection[str]) -> dict[str, str]:
    """Return where builds were read from, by build: the source that the same commit records. One pass over the journal."""
    found: dict[str, str] = {}
    if not builds:
        return found
    for commit in recorded_commits(journal):
        if SourceRead.TYPE not in commit.types or BuildConsolidated.TYPE not in commit.types:
            continue
        waiting: list[str] = []
        for event in commit.events(journal):
            if isinstance(event.payload, BuildConsolidated) and event.payload.build_id in builds:
                waiting.append(event.payload.build_id)
            elif isinstance(event.payload, SourceRead):
                found.update(dict.fromkeys(waiting, f"{event.payload.kind} {event.payload.locator}"))
                waiting = []
    return found


def _origin(node: _Node, made: Mapping[str, HistoryEntry], sources: Mapping[str, str]) -> Origin:
    memory = node.memory
    places = list(_places(memory, sources))
    return Origin(
        id=memory.id,
        type=memory.type,
        content=memory.content,
        why=memory.reason,
        made=made.get(memory.id),
        facts={name: str(value) for name in _FACTS if (value := getattr(memory, name, None))},
        places=places[:MOST_PLACES],
        more_places=max(0, len(places) - MOST_PLACES),
        relations=[
            Relation(relation=relation, reason=reason, memory=_origin(below, made, sources))
            for relation, reason, below in node.below
        ],
        is_repeated=node.is_repeated,
        more=node.more,
    )


def _places(memory: StoredMemory, sources: Mapping[str, str]) -> Iterable[SourcePlace]:
    """Yield the places in sources that a memory names; other memories are shown as relations."""
    for reference in memory.source_event_ids:
        if _UUID.fullmatch(reference):
            continue
        build = next((one for one in memory.evidence_build_ids if reference.startswith(f"{one}/")), None)
        part = reference.removeprefix(f"{build}/") if build else reference
        if _COMMIT.fullmatch(part):
            place = f"commit {part}"
        elif part.startswith(_SAID):
            place = f"what the user said at {part.removeprefix(_SAID)}"
        else:
            place = part
        yield SourcePlace(reference=reference, source=sources.get(build or reference), place=place)
