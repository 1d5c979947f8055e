"""`MemGraph.curation`: corrections by a person, the history of a memory, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from memgraph.embedding import embed_query
from memgraph.index.analyser import analyse
from memgraph.model.base import checked
from memgraph.model.memory import StoredMemory, Vector
from memgraph.model.results.curation import EditResult, HistoryEntry, Origin, UndoResult
from memgraph.model.similarity import cosine_similarity
from memgraph.retrieval import MemoryRetrieval
from memgraph.store import AgentMemoryStore
from memgraph.store.curation import Edit
from memgraph.store.states import archiving, invalidating

_Depth = Annotated[int, Field(ge=0, le=20, strict=True)]
_SIMILAR = 0.5
_Most = Annotated[int, Field(ge=1, le=1_000, strict=True)]


@dataclass(frozen=True)
class Curation:
    """A person's corrections of a store. Each is one commit, recorded as made by the user, and `undo` takes it back.

    All of them raise `NotFoundError` for a memory that does not exist, `InvalidInputError` for a value that is refused or more than
    1,000 memories, and `ScopeError` for memories of different tasks. Nothing is changed then.
    """

    store: AgentMemoryStore
    retrieval: MemoryRetrieval

    def matching(self, text: str, *, limit: int = 10) -> list[StoredMemory]:
        """Return the memories of every tier that a search finds for a text and that match it closely: it is the owner who corrects.

        These contain every word of it, in any inflection, or their cosine similarity is above 0.5.
        """
        wanted, embedder = set(analyse(checked(str, text, "text"))), self.store.embedder
        vector = embed_query(embedder, text) if embedder.dimension else None
        found = self.retrieval.search_memories(text, limit=limit, embedding=vector)
        return [one.memory for one in found if _matches(one.memory, wanted, vector)]

    def edit(
        self,
        ids: str | Sequence[str],
        values: Mapping[str, Any] | None = None,
        *,
        add_tags: Sequence[str] = (),
        remove_tags: Sequence[str] = (),
        as_new: bool = False,
    ) -> EditResult:
        """Change fields of one or more memories. New content is embedded again.

        Parameters
        ----------
        values : mapping, optional
            New values by field: content, title, tags, cues, project_id, valid_at, invalid_at, privacy_tier, domain; None clears a field.
            Content and title are set for one memory at a time.
        add_tags, remove_tags : sequence of str
            Compared without case.
        as_new : bool
            Add a changed copy that supersedes the memory, instead of changing it. For one memory at a time.
        """
        edit = Edit.of(values or {}, add_tags=add_tags, remove_tags=remove_tags)
        if not as_new:
            return self.store.curation.edit(_several(ids), edit)
        return self.store.curation.new_version(checked(str, ids, "ids"), edit)

    def pin(self, ids: str | Sequence[str]) -> EditResult:
        """Pin memories: they keep their full relevance and are not collected."""
        return self._set(ids, is_pinned=True)

    def unpin(self, ids: str | Sequence[str]) -> EditResult:
        """Undo `pin`."""
        return self._set(ids, is_pinned=False)

    def tag(self, ids: str | Sequence[str], tags: Sequence[str]) -> EditResult:
        """Add tags to memories."""
        return self.edit(ids, add_tags=tags)

    def untag(self, ids: str | Sequence[str], tags: Sequence[str]) -> EditResult:
        """Remove tags from memories."""
        return self.edit(ids, remove_tags=tags)

    def forget(self, ids: str | Sequence[str]) -> EditResult:
        """Suppress memories: they are kept, but neither listed nor recalled."""
        return self._set(ids, is_suppressed=True)

    def archive(self, ids: str | Sequence[str], *, reason: str | None = None, summary: str | None = None) -> EditResult:
        """Archive memories: they are kept, but neither listed nor recalled. A given reason or summary replaces the old one."""
        changes = archiving(reason=reason, summary=summary)
        return self.store.curation.change(_several(ids), lambda _memory, row, now: changes(row, now))

    def invalidate(self, ids: str | Sequence[str], *, reason: str | None = None, at: str | None = None) -> EditResult:
        """Mark memories as no longer true.

        Parameters
        ----------
        at : str, optional
            The time from which they are invalid, ISO 8601. Default: now, or the time at which they already became invalid.
        """
        changes = invalidating(reason=reason, at=at)
        return self.store.curation.change(_several(ids), lambda _memory, row, now: changes(row, now))

    def delete(self, ids: str | Sequence[str], *, reason: str | None = None) -> EditResult:
        """Remove memories and their links from every view. Their history stays."""
        return self.store.curation.delete(_several(ids), reason=reason)

    def merge(self, ids: Sequence[str], *, keep: str | None = None) -> EditResult:
        """Merge memories into one, which supersedes the others. Their texts stay readable.

        The memory that is kept has the tags, cues (at most five), sources, builds, agents and links of all, the strictest privacy tier with its
        domain, and is pinned if one of them was. Its text does not change. Private memories of different domains are refused.

        Parameters
        ----------
        keep : str, optional
            The memory to keep. Default: the first.
        """
        return self.store.curation.merge(ids, keep=keep)

    def split(self, id: str, parts: Sequence[str]) -> EditResult:
        """Split a memory into two or more, which are derived from it and supersede it.

        The parts have its tags, times, source and other context.
        """
        return self.store.curation.split(id, parts)

    def undo(self, event: int | None = None) -> UndoResult:
        """Undo the commit that an event belongs to, by a new commit with its inverse. Undoing an undoing redoes the first one.

        Parameters
        ----------
        event : int, optional
            Sequence number of an event, as `history` returns it. Default: the last commit by a user that is not undone.

        Raises
        ------
        UndoError
            The event is not reversible, is undone already, or later events changed the same fields or links: it names them.
        NotFoundError, InvalidInputError
            No event has this number; or nothing is left to undo.
        """
        return self.store.curation.undo(event)

    def history(self, id: str) -> list[HistoryEntry]:
        """Return every event that concerns a memory, in order, even if it is deleted."""
        return self.store.curation.history(checked(str, id, "id"))

    def why(self, id: str, *, depth: int = 3, most: int = 10) -> Origin:
        """Return where a memory comes from: the memories it rests on, their sources, and the events that added them.

        Parameters
        ----------
        depth : int
            How many links away the tree ends; 0 to 20.
        most : int
            Maximum number of related memories of each memory; 1 to 1,000.
        """
        depth, most = checked(_Depth, depth, "depth"), checked(_Most, most, "most")
        return self.store.curation.why(checked(str, id, "id"), depth=depth, most=most)

    def _set(self, ids: str | Sequence[str], **values: bool) -> EditResult:
        return self.store.curation.change(_several(ids), lambda *_: values)


def _matches(memory: StoredMemory, words: set[str], vector: Vector | None) -> bool:
    if words and words <= set(analyse(" ".join([memory.content, memory.title or "", *memory.tags]))):
        return True
    if vector is None or memory.embedding is None:
        return False
    return cosine_similarity(vector, memory.embedding) > _SIMILAR


def _several(ids: str | Sequence[str]) -> Sequence[str]:
    return [ids] if isinstance(ids, str) else ids
