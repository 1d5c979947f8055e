"""`Curation`: corrections by a person, each of them one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from memgraph.errors import InvalidInputError, ScopeError
from memgraph.fold.memories import chain_of
from memgraph.index.columns import SESSION_SOURCES
from memgraph.model.base import MAX_ITEMS, Name, checked
from memgraph.model.events.memories import MemoryDeleted, MemoryDerived, MemoryLinked, MemoryRevised
from memgraph.model.events.payload import Payload
from memgraph.model.ids import canonical_name, new_id, stored_form
from memgraph.model.memory import (
    MAX_CUES,
    REASONS_OF,
    AgentMemory,
    Role,
    StoredMemory,
    Vector,
    fields_with,
    id_of,
    parse_memory,
)
from memgraph.model.results.curation import ChangedMemory, EditResult, FieldChange, HistoryEntry, Origin
from memgraph.ports import Embedder, Row
from memgraph.privacy import domain_of, known_domain, strictest
from memgraph.store.commit.records import Write, payload_and_vector, scope_of
from memgraph.store.history import Undoing, differences, field_changes, history, origin
from memgraph.store.states import Transitions

EDITABLE = ("content", "title", "tags", "cues", "project_id", "valid_at", "invalid_at", "privacy_tier", "domain")
"""Fields that a person can set. None clears one that is optional."""
OF_ONE = ("content", "title")
"""Fields that are set for one memory at a time."""
_OF_THE_PROJECT = ("session_id", "build_id", "evidence_build_ids")
_NEW_VERSION = "a new version by the user"
_MERGED = "merged by the user"
_SPLIT = "split by the user"
"""Reasons of the SUPERSEDES links that edits, merges and splits make."""
_OF_A_PART = fields_with(Role.PART)

Updates = Mapping[str, Any]
UpdatesOf = Callable[[StoredMemory, Row, str], Updates]
"""Returns the new values of a memory's fields, given the memory, its row and the time."""


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit: new values of fields, and tags to add and to remove. Tags are compared without case."""

    values: Mapping[str, Any]
    add_tags: Sequence[str] = ()
    remove_tags: Sequence[str] = ()

    @classmethod
    def of(cls, values: Mapping[str, Any], *, add_tags: Sequence[str] = (), remove_tags: Sequence[str] = ()) -> Edit:
        """Return a checked edit."""
        if wrong := sorted(values.keys() - set(EDITABLE)):
            raise InvalidInputError(f"cannot be edited; give one of {', '.join(EDITABLE)}", field=wrong[0])
        given = dict(values)
        if "content" in given:
            checked(str, given["content"], "content")
        if "tags" in given:
            given["tags"] = _tags(given["tags"], "tags")
        return cls(given, _tags(add_tags, "add_tags"), _tags(remove_tags, "remove_tags"))

    def redacted(self, redact: Callable[[Any], Any]) -> Edit:
        """Return the edit with its texts passed through a function that removes secrets."""
        return replace(self, values=redact(dict(self.values)), add_tags=redact(list(self.add_tags)))

    def of_memory(self, memory: StoredMemory) -> dict[str, Any]:
        """Return the new values of a memory's fields."""
        if "tags" not in self.values and not self.add_tags and not self.remove_tags:
            return dict(self.values)
        gone = {canonical_name(tag) for tag in self.remove_tags}
        before = self.values.get("tags", memory.tags)
        kept = {canonical_name(tag): tag for tag in before if canonical_name(tag) not in gone}
        for tag in self.add_tags:
            kept.setdefault(canonical_name(tag), tag)
        return {**self.values, "tags": list(kept.values())}


def _check_move(memory: StoredMemory, values: Mapping[str, Any]) -> None:
    """Refuse to move a memory to another project if a session, a build, or its place among episodes ties it to its own."""
    if values.get("project_id", memory.project_id) == memory.project_id:
        return
    tie = next((name for name in _OF_THE_PROJECT if getattr(memory, name)), None)
    if tie is not None:
        why = f"its {tie} belongs to its project"
    elif chain_of({"type": memory.type, "project_id": memory.project_id or "-"}) is not None:
        why = "an episode has its place among the others of its project"
    else:
        return
    problem = f"cannot be changed, because {why}; write a new version instead (--as-new)"
    raise InvalidInputError(problem, field="project_id", value=values["project_id"])


def _tags(tags: object, field: str) -> list[str]:
    given = list(tags) if isinstance(tags, tuple) else tags
    return [tag.strip() for tag in checked(list[Name], given, field)]


class Curation(Undoing):
    """A person's corrections."""

    @cached_property
    def states(self) -> Transitions:
        """Changes of states and links, recorded as made by the user."""
        return Transitions(self._projector, self._writer, self._reader, self._now, "user")

    def history(self, id: str) -> list[HistoryEntry]:
        """Return the events that concern a memory; see `memgraph.facade.Curation.history`."""
        with self._reader.frozen():
            return history(self._journal, stored_form(id))

    def why(self, id: str, *, depth: int, most: int) -> Origin:
        """Return where a memory comes from; see `memgraph.facade.Curation.why`."""
        return origin(self._journal, self._reader, stored_form(id), depth=depth, most=most)

    def change(
        self,
        ids: Sequence[str],
        updates_of: UpdatesOf,
        *,
        ready: Vector | None = None,
        made_by: Embedder | None = None,
        beside: Sequence[Payload] = (),
    ) -> EditResult:
        """Change fields of memories of one task, in one commit with the events `beside`, where they differ; `ready` is a known vector of the new content."""
        with self._writer.exclusive():
            now, writes = self._now(), []
            changed: list[ChangedMemory] = []
            unchanged: list[str] = []
            known = self._known(ids)
            for memory in known:
                row = self._reader.record("Memory", memory.id) or {}
                wanted = updates_of(memory, row, now)
                updates = {name: value for name, value in wanted.items() if getattr(memory, name) != value}
                if updates:  # stated, so that nothing raises the tier or drops the cues
                    updates |= {name: wanted[name] for name in ("privacy_tier", "cues") if name in wanted}
                write = self._writer.revision(memory.id, updates, ready=ready) if updates else None
                changes = _changes(row, payload_and_vector(write)[0]) if write is not None else []
                if write is None or not changes:
                    unchanged.append(memory.id)
                    continue
                writes.append(write)
                content = next((str(one.new) for one in changes if one.field == "content"), memory.content)
                changed.append(ChangedMemory(id=memory.id, content=content, fields=changes))
            if writes:
                writes += beside
            return self._committed(known[0], writes, changed, unchanged, made_by=made_by)

    def edit(self, ids: Sequence[str], edit: Edit) -> EditResult:
        """Change fields of memories; see `memgraph.facade.Curation.edit`."""
        several = [name for name in OF_ONE if name in edit.values and len(set(ids)) > 1]
        if several:
            problem = "can be set for one memory at a time only"
            raise InvalidInputError(problem, field=several[0], value=edit.values[several[0]])
        edit = edit.redacted(self._writer.without_secrets)

        def updates_of(memory: StoredMemory, _row: Row, _now: str) -> Updates:
            _check_move(memory, edit.values)
            return edit.of_memory(memory)

        made_by = self._writer.embedder
        ready = self._writer.embedded(edit.values.get("content"))
        return self.change(ids, updates_of, ready=ready, made_by=made_by)

    def delete(self, ids: Sequence[str], *, reason: str | None = None) -> EditResult:
        """Delete memories in one commit; see `memgraph.facade.Curation.delete`."""
        with self._writer.exclusive():
            known = self._known(ids)
            writes = [self._writer.without_secrets(MemoryDeleted(id=memory.id, reason=reason)) for memory in known]
            memories = [ChangedMemory(id=one.id, content=one.content, change="removed") for one in known]
            return self._committed(known[0], writes, memories)

    def new_version(self, id: str, edit: Edit) -> EditResult:
        """Add a changed copy of a memory, which supersedes it, in one commit."""
        edit = edit.redacted(self._writer.without_secrets)
        made_by = self._writer.embedder
        ready = self._writer.embedded(edit.values.get("content"))  # before the lock: nobody waits for the model
        with self._writer.exclusive():
            (old,) = self._known([id])
            row, now = self._reader.record("Memory", old.id) or {}, self._now()
            wanted = edit.of_memory(old)
            new = self._writer.updated(row, wanted, now)
            if all(getattr(old, name) == getattr(new, name) for name in wanted):
                return EditResult(unchanged=[old.id])
            new = new.model_copy(update=_fresh(old, new, ready if new.content != old.content else old.embedding))
            changed = {name: (getattr(old, name), getattr(new, name)) for name in wanted}
            fields = field_changes({name: pair for name, pair in changed.items() if pair[0] != pair[1]})
            memories = [
                ChangedMemory(id=str(new.id), content=new.content, change="added", fields=fields),
                ChangedMemory(id=old.id, content=old.content, change="superseded"),
            ]
            writes: list[Write] = [new, _superseding(str(new.id), old.id, _NEW_VERSION, now)]
            return self._committed(old, writes, memories, made_by=made_by)

    def merge(self, ids: Sequence[str], *, keep: str | None = None) -> EditResult:
        """Merge memories into one; see `memgraph.facade.Curation.merge`."""
        with self._writer.exclusive():
            known = self._known(ids)
            if len(known) < 2:
                raise InvalidInputError("must name at least two memories", field="ids", value=list(ids))
            wanted = self._reader.known(keep).id if keep is not None else known[0].id
            kept = next((one for one in known if one.id == wanted), None)
            if kept is None:
                raise InvalidInputError("must be one of the memories", field="keep", value=keep)
            others = [one for one in known if one is not kept]
            self.states.check_order(kept.id, [one.id for one in others])
            row, now = self._reader.record("Memory", kept.id) or {}, self._now()
            updates = {name: value for name, value in _united(kept, others).items() if getattr(kept, name) != value}
            writes: list[Write] = [self._writer.revision(kept.id, updates)] if updates else []
            changes = _changes(row, payload_and_vector(writes[0])[0]) if writes else []
            writes += self._taken_links(kept, others, now)
            writes += [_superseding(kept.id, one.id, _MERGED, now) for one in others]
            memories = [
                ChangedMemory(id=kept.id, content=kept.content, fields=changes),
                *(ChangedMemory(id=one.id, content=one.content, change="superseded") for one in others),
            ]
            return self._committed(kept, writes, memories)

    def split(self, id: str, parts: Sequence[str]) -> EditResult:
        """Split a memory into parts; see `memgraph.facade.Curation.split`."""
        texts = checked(list[str], list(parts), "parts")
        if len(texts) < 2:
            raise InvalidInputError("must be at least two texts", field="parts", value=texts)
        if len({canonical_name(text) for text in texts}) < len(texts):
            raise InvalidInputError("must be different texts", field="parts", value=texts)
        texts = self._writer.without_secrets(texts)
        made_by = self._writer.embedder
        vectors = [self._writer.embedded(text) for text in texts]
        with self._writer.exclusive():
            (old,) = self._known([id])
            row, now = self._reader.record("Memory", old.id) or {}, self._now()
            taken = {name: row[name] for name in _OF_A_PART if name in row}
            if old.type != "episodic":
                taken.pop("occurred_at", None)  # it is stated now
            made = [
                self._writer.tiers.raised(
                    parse_memory({**taken, "id": new_id(), "type": old.type, "content": text, "reason": _SPLIT})
                )
                for text in texts
            ]
            writes: list[Write] = [
                part.model_copy(update={"embedding": vector}) for part, vector in zip(made, vectors, strict=True)
            ]
            for part in made:
                writes.append(MemoryDerived(id=id_of(part), source_ids=[old.id], created_at=now))
                writes.append(_superseding(id_of(part), old.id, _SPLIT, now))
            memories = [
                *(ChangedMemory(id=id_of(part), content=part.content, change="added") for part in made),
                ChangedMemory(id=old.id, content=old.content, change="superseded"),
            ]
            return self._committed(old, writes, memories, made_by=made_by)

    def _known(self, ids: Sequence[str]) -> list[StoredMemory]:
        """Return memories, each once; refuse too many, unknown ones, and memories of different write scopes."""
        if isinstance(ids, str) or not isinstance(ids, Iterable):
            raise InvalidInputError("must be a list of ids", field="ids", value=ids)
        known = list({memory.id: memory for memory in map(self._reader.known, ids)}.values())
        if not known:
            raise InvalidInputError("names no memory", field="ids", value=[])
        if len(known) > MAX_ITEMS:
            problem = f"names {len(known):,} memories; one commit may change {MAX_ITEMS:,}"
            raise InvalidInputError(problem, field="ids")
        tasks = sorted({memory.task_id or "" for memory in known})
        if len(tasks) > 1:
            named = ", ".join(repr(task) if task else "no task" for task in tasks[:5])
            raise ScopeError(
                f"the memories belong to different tasks ({named}), and one commit has one write scope; memories "
                "of different tasks cannot be merged, and are changed task by task"
            )
        return known

    def _committed(
        self,
        memory: StoredMemory,
        writes: Sequence[Write],
        changed: list[ChangedMemory],
        unchanged: Sequence[str] = (),
        *,
        made_by: Embedder | None = None,
    ) -> EditResult:
        events = self._writer.commit(scope_of(memory), writes, task_id=memory.task_id, actor="user", made_by=made_by)
        return EditResult(event=events[0].seq if events else None, memories=changed, unchanged=list(unchanged))

    def _taken_links(self, kept: StoredMemory, others: Sequence[StoredMemory], now: str) -> list[Write]:
        """Return the links that a merged memory takes over from the others: all kinds but SUPERSEDES, which is transitive."""
        merged = {kept.id, *(one.id for one in others)}
        own = {(link.source_id, link.relation, link.target_id) for link in self._reader.links(kept.id)}
        made: dict[tuple[str, str, str], Write] = {}
        for other in others:
            for link in self._reader.links(other.id):
                far = link.target_id if link.source_id == other.id else link.source_id
                if link.relation in {"SUPERSEDES", "NEXT"} or far in merged:
                    continue
                ends = (kept.id, far) if link.source_id == other.id else (far, kept.id)
                key = (ends[0], link.relation, ends[1])
                if key not in own and key not in made:
                    fields = {"score": link.score, "reason": link.reason, "created_at": now}
                    made[key] = MemoryLinked.parse(
                        {"source_id": ends[0], "relation": link.relation, "target_id": ends[1], **fields}
                    )
        return list(made.values())


def _superseding(newer: str, older: str, reason: str, now: str) -> MemoryLinked:
    return MemoryLinked(source_id=newer, relation="SUPERSEDES", target_id=older, reason=reason, created_at=now)


def _changes(row: Row, payload: object) -> list[FieldChange]:
    if not isinstance(payload, MemoryRevised):
        return []
    return field_changes(differences(row, payload.row_after(row)))


def _fresh(old: StoredMemory, new: AgentMemory, vector: Vector | None) -> dict[str, Any]:
    """Return the fields in which a new version differs from an edited memory."""
    fresh: dict[str, Any] = {
        **dict.fromkeys(fields_with(Role.STORE | Role.USE | Role.VECTOR)),
        **dict.fromkeys(("archived_at", *REASONS_OF["archived_at"])),
        "id": new_id(),
        "embedding": vector,
        "access_count": 0,
        "is_suppressed": False,
        "relevance_score": 1.0,
        "floor": 0.0,
    }
    if old.type != "episodic":
        fresh["occurred_at"] = None  # it is stated now
    if hasattr(old, "supporting_memory_ids"):
        fresh["supporting_memory_ids"] = old.supporting_memory_ids
    if new.project_id != old.project_id:
        fresh |= {"build_id": None, "evidence_build_ids": []}
        if old.source not in SESSION_SOURCES:  # what was only told in its session stays bound to it
            fresh["session_id"] = None
    return fresh


def _united(kept: StoredMemory, others: Sequence[StoredMemory]) -> dict[str, Any]:
    """Return the fields of a merged memory: lists are united, the strictest privacy tier holds, with its domain, and a pin stays."""
    every = [kept, *others]
    private = {known_domain(one.domain): one.domain for one in every if one.privacy_tier == "private"}
    if len(private) > 1:
        named = " and ".join(repr(one) if one else "no domain" for one in private.values())
        problem = (
            f"are private memories of {named}: merged, the agents of one would get the tags and sources of the other"
        )
        raise InvalidInputError(problem, field="ids", value=[one.id for one in every])
    lists = ("tags", "source_event_ids", "evidence_build_ids", "agents_involved")
    united = {name: list(dict.fromkeys(one for each in every for one in getattr(each, name))) for name in lists}
    return {
        **{name: values[-MAX_ITEMS:] for name, values in united.items()},
        "cues": list(dict.fromkeys(cue for each in every for cue in each.cues))[:MAX_CUES],
        "privacy_tier": strictest(*(one.privacy_tier for one in every)),
        "domain": domain_of(*((one.privacy_tier, one.domain) for one in every)),
        "is_pinned": any(one.is_pinned for one in every),
    }
