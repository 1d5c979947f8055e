"""Ways out of the views, and back: suppress, archive, invalidate, supersede, unlink, delete.

A memory is seen by `get_memory`, lists, recall, deduplication and statistics where *every* state that it is in allows it
(✓ still seen by):

============ === ==== ====== ===== =====
state        get list recall dedup stats
============ === ==== ====== ===== =====
suppressed    ✓   ✗     ✗      ✗     ✓
archived      ✓   ✗     ✗      ✗     ✗
invalidated   ✓   ✗     ✗      ✗     ✓
superseded    ✓   ✓     ✗      ✗     ✓
deleted       ✗   ✗     ✗      ✗     ✗
============ === ==== ====== ===== =====

To be pinned overrides none of them. A memory is superseded while one that replaces it, or replaces that one, is itself in
force: forget the newer one, and the older one counts again. Each way is one commit in the memory's own write scope, and doing
what is done already records nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.journal.journal import Journal
from memgraph.model.base import checked
from memgraph.model.events.links import MemoryLinked, MemoryUnlinked
from memgraph.model.events.memories import MemoryDeleted
from memgraph.model.ids import stored_form
from memgraph.model.link import Link, oriented
from memgraph.model.memory import AgentMemory
from memgraph.model.timestamps import to_iso
from memgraph.ports import Row
from memgraph.store.commit.records import scope_of
from memgraph.store.commit.writer import Writer
from memgraph.store.query import Reader
from memgraph.store.undeletion import deleted_ids, undeletion

MIN_ID_CHARS = 8
"""So much of an id may stand for it."""
_SHOWN_IDS = 5


class Ways:
    """What a store does to let memories out of its views and back in."""

    _check_open: Callable[[], None]
    _journal: Journal
    _known: Callable[[str], AgentMemory]
    _reader: Reader
    _writer: Writer
    now: Callable[[], str]

    def suppress(self, id: str) -> AgentMemory:
        """Forget a memory: it is kept, but neither listed nor recalled.

        Raises
        ------
        NotFoundError
            There is no such memory. This holds for every way but `delete_memory`.
        """
        return self._set(id, lambda _row, _now: {"is_suppressed": True})

    def unsuppress(self, id: str) -> AgentMemory:
        """Take back `suppress`."""
        return self._set(id, lambda _row, _now: {"is_suppressed": False})

    def archive(self, id: str, *, reason: str | None = None, summary: str | None = None) -> AgentMemory:
        """Put a memory away. Of one that is archived already, a reason or summary that is given replaces the old one."""
        said = _given(archive_reason=reason, archive_summary=summary)
        return self._set(id, lambda row, now: {"archived_at": row.get("archived_at", now), **said})

    def unarchive(self, id: str) -> AgentMemory:
        """Take back `archive`; reason and summary go with it."""
        return self._set(id, lambda _row, _now: {"archived_at": None})

    def invalidate(self, id: str, *, reason: str | None = None, at: str | None = None) -> AgentMemory:
        """Say that a memory is no longer true.

        Parameters
        ----------
        at : str, optional
            From when on, ISO 8601; until a time in the future it is still valid. Default: now, or when it already became
            invalid.
        """
        said = _given(invalidation_reason=reason)

        def changes(row: Row, now: str) -> dict[str, Any]:
            since = _time(at, "at") if at is not None else min(now, row.get("invalid_at", now))
            return {"invalid_at": since, **said}

        return self._set(id, changes)

    def revalidate(self, id: str) -> AgentMemory:
        """Take back `invalidate`; the reason goes with it."""
        return self._set(id, lambda _row, _now: {"invalid_at": None})

    def supersede(self, older_id: str, *, by: str, reason: str | None = None, score: float | None = None) -> Link:
        """Say that a memory is replaced by a newer one, which takes its place at recall; `unsupersede` takes it back.

        Raises
        ------
        NotFoundError
            One of them is missing.
        InvalidInputError
            The newer one is itself superseded by the older one, directly or through others.
        """
        self._check_open()
        with self._writer.exclusive():
            older, newer = self._known(older_id).id or "", self._known(by).id or ""
            if older != newer and older in self._newer_than(newer):
                raise InvalidInputError("is itself superseded by that memory; undo that first", field="by", value=by)
            known = self._reader.record("SUPERSEDES", (newer, older)) or {}
            said = {**known, **_given(reason=reason, score=score)}
            if known == said and known:
                return Link.parse({"source_id": newer, "relation": "SUPERSEDES", "target_id": older, **known})
            return self.link(newer, "SUPERSEDES", older, **said)

    def unsupersede(self, older_id: str, *, by: str | None = None) -> list[str]:
        """Take back `supersede`, by one memory or (None) by every one; return the ids of those that no longer replace it."""
        self._check_open()
        with self._writer.exclusive():
            newer = self._superseding(self._known(older_id).id or "")
            if by is not None:
                wanted = self._known(by).id
                newer = [one for one in newer if one == wanted]
            return [one for one in newer if self.unlink(one, "SUPERSEDES", older_id)]

    def link(self, source_id: str, relation: str, target_id: str, **properties: Any) -> Link:
        """Link two memories, or set an existing link's properties (`score`, `reason`).

        Raises
        ------
        NotFoundError
            An end is missing.
        InvalidInputError
            The relation or a property is unknown.
        """
        self._check_open()
        source, name, target = oriented(source_id, relation, target_id)
        link = Link.parse(
            {"created_at": self.now(), **properties, "source_id": source, "relation": name, "target_id": target}
        )
        if link.source_id == link.target_id:
            raise InvalidInputError("is the memory itself", field="target_id", value=target_id)
        fields = link.model_dump()
        self._writer.append_about(link.source_id, lambda _row, _now: MemoryLinked(**fields))
        return link

    def unlink(self, source_id: str, relation: str, target_id: str) -> bool:
        """Remove a link that `link`, `supersede` or a derivation made, and tell whether it was there.

        Raises
        ------
        NotFoundError
            An end is missing.
        InvalidInputError
            The relation is unknown, or is NEXT, which follows from the order of memories.
        """
        self._check_open()
        source, name, target = oriented(source_id, relation, target_id)
        with self._writer.exclusive():
            source, target = self._known(source).id or "", self._known(target).id or ""
            if self._reader.record(name, (source, target)) is None:
                return False
            gone = MemoryUnlinked.parse({"source_id": source, "relation": name, "target_id": target})
            self._writer.append_about(source, lambda _row, _now: gone)
        return True

    def delete_memory(self, id: str, *, reason: str | None = None) -> bool:
        """Remove a memory and its links from every view, and tell whether it was there. Its history stays: see `undelete`."""
        self._check_open()
        checked(str, id, "id")
        try:
            self._writer.append_about(id, lambda row, _now: MemoryDeleted(id=row["id"], reason=reason))
        except NotFoundError:
            return False
        return True

    def undelete(self, id: str) -> AgentMemory:
        """Bring a deleted memory back, with its vector, its place among the others, and its links to those that are there.

        A vector that is damaged stays behind: the memory awaits a new one.

        Raises
        ------
        NotFoundError
            There never was such a memory.
        """
        self._check_open()
        memory_id = stored_form(id)
        with self._writer.exclusive():
            if not self._is_there(memory_id):
                back, links = undeletion(self._journal, memory_id, self._is_there, model=self._writer.model)
                self._writer.commit(scope_of(back.memory), [back, *links], task_id=back.memory.task_id)
        return self._known(memory_id)

    def find_id(self, beginning: str, *, deleted: bool = False) -> str:
        """Return the id that begins so: a whole one as it is, else the only one that fits.

        Parameters
        ----------
        deleted : bool
            Look among deleted memories.

        Raises
        ------
        NotFoundError
            None begins so.
        InvalidInputError
            Too short, or several begin so.
        """
        self._check_open()
        given = checked(str, beginning, "id").strip().lower()
        if whole := stored_form(given):
            return whole
        if len(given) < MIN_ID_CHARS:
            problem = f"must be an id, or at least its first {MIN_ID_CHARS} characters"
            raise InvalidInputError(problem, field="id", value=beginning)
        with self._reader.frozen():
            if deleted:
                found = [one for one in deleted_ids(self._journal, given) if not self._is_there(one)]
            else:
                found = self._reader.ids_from(given)
        if not found:
            raise NotFoundError("memory", beginning)
        if len(found) > 1:
            shown = ", ".join(sorted(found)[:_SHOWN_IDS]) + (", …" if len(found) > _SHOWN_IDS else "")
            raise InvalidInputError(
                f"matches {len(found)} ids ({shown}); give more characters", field="id", value=beginning
            )
        return found[0]

    def _set(self, id: str, changes: Callable[[Row, str], Mapping[str, Any]]) -> AgentMemory:
        """Change the fields that differ, if any."""
        self._check_open()
        with self._writer.exclusive():
            known = self._known(id)
            row = self._reader.record("Memory", known.id or "") or {}
            wanted = changes(row, self.now())
            updates = {name: value for name, value in wanted.items() if getattr(known, name) != value}
            if updates:
                self._writer.update(known.id or "", updates)
        return self._known(id)

    def _superseding(self, memory_id: str) -> list[str]:
        links = self._reader.links(memory_id)
        return [link.source_id for link in links if link.relation == "SUPERSEDES" and link.target_id == memory_id]

    def _newer_than(self, memory_id: str) -> set[str]:
        """Return every memory that supersedes this one, directly or through others."""
        found: set[str] = set()
        waiting = [memory_id]
        while waiting:
            new = set(self._superseding(waiting.pop())) - found
            found |= new
            waiting += new
        return found

    def _is_there(self, memory_id: str) -> bool:
        return self._reader.record("Memory", memory_id) is not None


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _time(text: str, field: str) -> str:
    try:
        return to_iso(text)
    except ValueError:
        raise InvalidInputError("is not an ISO 8601 time", field=field, value=text) from None
