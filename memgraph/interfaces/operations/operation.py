"""What an operation is: its name, description, arguments and effects, and who calls it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar, Union, get_args, get_origin

from pydantic import model_validator

from memgraph.errors import InvalidInputError, NotFoundError, PermissionDeniedError
from memgraph.model.agent_input import UNNAMED
from memgraph.model.base import Model, Name, Text
from memgraph.model.memory import StoredMemory

if TYPE_CHECKING:  # a door lists its operations before it needs a store, whose import takes a second
    from memgraph.facade import MemGraph
    from memgraph.ports import Progress
    from memgraph.privacy import Access
    from memgraph.store.listing import Listings

Toolset = Literal["core", "full"]
Effect = Literal["read", "write", "maintain"]
"""What an operation needs a right to: reading, storing and correcting memories, or maintenance of the whole store."""

SpanName = Literal["create_memory", "update_memory", "upsert_memory", "delete_memory", "search_memory"]
"""What OpenTelemetry calls an operation on memories (semantic conventions for generative AI)."""

_SCOPES = ("project", "session", "task")
_BRACKETS = {"[": list, "{": dict}
A = TypeVar("A", bound="Arguments")


class Arguments(Model):
    """Base of the arguments of operations. Unknown ones are refused.

    Accepts what some clients send: a list or record as JSON text, and an empty project, session or task for none.
    """

    @model_validator(mode="before")
    @classmethod
    def _as_meant(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        meant = {name: value for name, value in given.items() if not (name in _SCOPES and value == "")}
        names = {field.alias or name: name for name, field in cls.model_fields.items()}
        for name, value in meant.items():
            field = cls.model_fields.get(names.get(name, name))
            if field is not None and isinstance(value, str) and value[:1] in _BRACKETS:
                kinds = _kinds(field.annotation)
                if _BRACKETS[value[:1]] in kinds and str not in kinds:
                    with suppress(ValueError, RecursionError):  # then the field's own validation says what is wrong
                        meant[name] = json.loads(value)
        return meant


def _kinds(annotation: Any) -> set[Any]:
    """Return the types that a field takes: for ``list[str] | None`` list and None."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _kinds(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return set().union(*map(_kinds, get_args(annotation)))
    return {origin or annotation}


class Caller(Model):
    """Who calls, and from where. A door states it; an agent cannot.

    Attributes
    ----------
    agent : str
        The agent for which the door acts, with its permissions from the settings. No door acts for the owner.
    justification : str or None
        Why a named agent needs sensitive memories.
    project, session, task : str or None
        Where it calls from: the default project, and the session and task whose own memories it may have.
    is_project_fixed : bool
        The caller may have memories of `project` and of no project, and change those of `project` alone.
    """

    agent: Name = UNNAMED
    justification: Text | None = None
    project: Name | None = None
    session: Name | None = None
    task: Name | None = None
    is_project_fixed: bool = False

    def chosen_project(self, given: str | None) -> str | None:
        """Return the project of a call: the given one, else the caller's.

        Raises
        ------
        PermissionDeniedError
            The caller's project is fixed, and another one was given.
        """
        if given and self.is_project_fixed and given != self.project:
            problem = f"this caller is for project {self.project!r} alone; leave the project out"
            raise PermissionDeniedError(problem, agent=self.agent)
        return given or self.project

    def may_have(self, project: str | None) -> bool:
        """Return whether memories of this project are within the caller's project."""
        return not self.is_project_fixed or project in (None, self.project)


class Answer(Model):
    """What an operation answers.

    Attributes
    ----------
    text : str
        For a language model or a person.
    data : dict
        The same for a program: JSON values.
    """

    text: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A call of an operation: the store, who calls, and where progress is reported."""

    memory: MemGraph
    caller: Caller = field(default_factory=Caller)
    progress: Progress | None = None

    @property
    def access(self) -> Access:
        """What the caller may have."""
        return self.memory.store.access_of(self.caller.agent, self.caller.justification)

    @property
    def listings(self) -> Listings:
        """The store's memories, counts and lists, as the caller may read them."""
        from memgraph.store.listing import listings_for

        return listings_for(self.memory.store.reader, self.access, self.memory.store.auditing)

    def project(self, given: str | None) -> str | None:
        """Return the project that an operation is about; see `Caller.chosen_project`."""
        return self.caller.chosen_project(given)

    def readable(self, beginning: str, *, recalled_as: str | None = None) -> StoredMemory:
        """Return the memory with this id, or with this unique prefix of it, if the caller may read it.

        Parameters
        ----------
        recalled_as : str, optional
            A recall's id: what it returned may be of another task than the one that the session works on since.

        Raises
        ------
        NotFoundError
            It does not exist, or the caller may not have it: the error is the same.
        InvalidInputError
            The prefix is too short or ambiguous.
        """
        from memgraph.store.listing import only_id

        listings = self.listings
        with suppress(NotFoundError):
            known = only_id(beginning, lambda given: self._readable_among(listings.ids_from(given), recalled_as))
            if self._readable_among([known], recalled_as) and (found := listings.get_memory(known)) is not None:
                return found
        raise NotFoundError("memory", beginning, listed_by="search_memories")

    def may_read(self, memory_ids: Sequence[str]) -> bool:
        """Return whether all these memories exist and the caller may read them."""
        return len(self._readable_among(memory_ids)) == len(memory_ids)

    def _readable_among(self, memory_ids: Sequence[str], recalled_as: str | None = None) -> list[str]:
        """Return those of some memories that the caller may read: by its permissions, in its project, and where it calls from."""
        from memgraph.store.access.scope import of_or_none, tasks_read_by, told_in
        from memgraph.store.access.visibility import visible

        caller, reader = self.caller, self.memory.store.reader
        access = self.access  # refusing the access is recorded, so not in a block of reads
        tasks = tasks_read_by(reader, caller.task, caller.session)
        recalled = {one for one in memory_ids if recalled_as and reader.record("RECALLED", (recalled_as, one))}
        with reader.frozen():
            may, slot_of = visible(reader, access, "read"), reader.index.slot
            if caller.is_project_fixed:
                may = may & of_or_none(reader.index, "project", caller.project)
            told = told_in(reader.index, caller.session, tasks)
            slots = [(one, slot_of(one)) for one in memory_ids]
            return [one for one, slot in slots if slot >= 0 and may[slot] and (told[slot] or one in recalled)]


@dataclass(frozen=True)
class Traced:
    """How an operation appears in traces.

    Attributes
    ----------
    name : str
    ids : callable
        Returns the ids of the memories that the operation stored, changed or returned, from its answer's data.
    query : str or None
        The argument that is searched for.
    """

    name: SpanName
    ids: Callable[[dict[str, Any]], Sequence[str]]
    query: str | None = None


@dataclass(frozen=True)
class Operation(Generic[A]):
    """An operation on a store.

    Attributes
    ----------
    description : str
        What it does and when to call it, for a language model: at most 2,048 characters, which is where clients cut.
    effect : {"read", "write", "maintain"}
        One that reads can write nothing but records of what was read: `perform` sees to it.
    is_destructive : bool
        Whether it takes memories out of force.
    is_idempotent : bool
        Whether calling it twice with equal arguments changes no more than calling it once.
    toolset : {"core", "full"}
        ``core`` operations are always offered to agents.
    is_one_commit : bool
        All that it stores is in one commit: it is stored whole or not at all.
    is_store_wide : bool
        It cannot be kept to one project, and is refused to callers whose project is fixed.
    traced : Traced or None
        None: it is no operation on memories that OpenTelemetry has a name for.
    """

    name: str
    description: str
    arguments: type[A]
    run: Callable[[Call, A], Answer]
    effect: Effect
    is_destructive: bool = False
    is_idempotent: bool = False
    toolset: Toolset = "full"
    is_one_commit: bool = False
    is_store_wide: bool = False
    traced: Traced | None = None

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the arguments, as short as it can be: it is in every prompt of an agent that has the operation.

        It has no titles, patterns or nulls (an optional argument is left out), and no references, which some clients cannot follow.
        """
        found = self.arguments.model_json_schema(by_alias=False)
        properties = {name: _short(one) for name, one in found["properties"].items()}
        kept: dict[str, Any] = {name: found[name] for name in ("required", "additionalProperties") if name in found}
        return {"type": "object", "properties": properties, **kept}

    def perform(self, call: Call, arguments: object) -> Answer:
        """Check the arguments and run the operation.

        Raises
        ------
        MemGraphError
            An argument is unknown or invalid, or the operation refuses. Nothing is changed then.
        """
        if isinstance(arguments, Mapping):
            for name in arguments:
                if name not in self._names:
                    problem = (
                        f"{self.name} has no such argument; it has {', '.join(self.arguments.model_fields) or 'none'}"
                    )
                    raise InvalidInputError(problem, field=str(name))
        given = self.arguments.parse(arguments)
        if self.is_store_wide and call.caller.is_project_fixed:
            problem = (
                f"{self.name} concerns the whole store, and this caller is for project {call.caller.project!r} alone"
            )
            raise PermissionDeniedError(problem, agent=call.caller.agent)
        if self.effect != "read":
            return self.run(call, given)
        from memgraph.store.commit.writer import reading_only

        with reading_only():
            return self.run(call, given)

    @property
    def _names(self) -> set[str]:
        """The names of the arguments, which may be written in camel case."""
        return {*self.arguments.model_fields, *(str(one.alias) for one in self.arguments.model_fields.values())}


def _short(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a value without what only a validator needs."""
    if "$ref" in schema:  # only `JsonValue`, which is any value
        return {}
    kept = {name: value for name, value in schema.items() if name not in {"title", "pattern", "anyOf"}}
    if kept.get("default", ...) is None:
        del kept["default"]
    for one in schema.get("anyOf", ()):
        if one.get("type") != "null":
            kept |= _short(one)
    for name in ("items", "additionalProperties"):
        if isinstance(kept.get(name), dict):
            kept[name] = _short(kept[name])
    return kept
