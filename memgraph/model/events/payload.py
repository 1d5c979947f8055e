"""The base of event payloads: a strict class with its name, its version, its write scopes, and the policy of its events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field

from memgraph.model.base import Strict
from memgraph.model.ids import MemoryId

WriteScope = Literal["global", "task", "system", "none"]
Actor = Literal["user", "agent", "system"]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
MAX_WHOLE = 2**53
Whole = Annotated[int, Field(ge=0, le=MAX_WHOLE)]
"""Numbers of events and of bytes, limited to integers that every JSON reader represents exactly."""

DURABLE: frozenset[WriteScope] = frozenset({"global", "task"})
ANY: frozenset[WriteScope] = frozenset({"global", "task", "system"})
SYSTEM: frozenset[WriteScope] = frozenset({"system"})

Stored = Mapping[str, Any]
"""A payload as the journal holds it, in any version of its type."""


def nothing(_content: Stored) -> list[str]:
    """Return no memory."""
    return []


def its_id(content: Stored) -> list[str]:
    """Return the memory that a payload's `id` names."""
    return [content["id"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the product does with the events of a type, in each of its versions, besides folding them."""

    carries: Callable[[Stored], list[str]]
    """The memories whose purge removes an event. Texts that belong to no memory, such as a task's, are found by their words."""
    purge: Literal["goes", "restated", "stays"] = "goes"
    """What a purge that concerns an event does: it removes it; removes it and states again what is left of the memory whose fields it
    states; or never removes it, because it holds no words and the journal itself needs it."""
    agents: Literal["never", "whole", "of_one", "of_all", "in_part"] = "never"
    """What an agent's view has of an event: nothing; all, because it has no texts of memories (counts, and ids, which mean nothing where the
    memory is missing); all, if the agent may have its one memory, or all of its memories; or what is left of it without the others."""
    irreversible: str | None
    """Why an undoing does not reverse it; None: it changes memories and their links, and nothing else."""
    is_act: bool = False
    """Whether it is no mere record of reading or of a run, although it is irreversible: an undoing without a number does not pass over it."""
    told: str | None = None
    """What the history of a memory says of it, unless that depends on the event; None: its type."""
    is_told_to_named: bool = False
    """Whether the history tells it of every memory that it names, not only of those that it changes."""
    lineage: Literal["unchanged", "changed", "by_relation"] = "unchanged"
    """Whether it says what is derived from what, or what is deleted; `by_relation`: if its link is a DERIVED_FROM."""
    has_rows: bool = True
    """Whether it changes rows: otherwise it is history, or the journal itself tracks it (which model makes the vectors)."""
    is_of_reading: bool = False
    """Whether an operation that only reads may leave it."""


UPKEEP = Policy(carries=nothing, irreversible="it records a step of the store's own upkeep")
RUN = replace(UPKEEP, agents="whole")
"""Of a completed run: counts."""
STORE = replace(UPKEEP, has_rows=False)
JOURNAL = replace(STORE, purge="stays")


class Payload(Strict):
    """Base of all payloads: the type and version of its schema, where it may be committed, and its `Policy`, which each type must have."""

    TYPE: ClassVar[str]
    VERSION: ClassVar[int]
    SCOPES: ClassVar[frozenset[WriteScope]] = DURABLE
    """Write scopes in which it may be committed."""
    BY_STORE_ALONE: ClassVar[bool] = False
    """Whether only the store itself may commit it, because only the store can know its content."""
    POLICY: ClassVar[Policy]

    def __init_subclass__(cls, *, type: str | None = None, version: int = 1, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if type is not None:
            cls.TYPE, cls.VERSION = type, version
            if not hasattr(cls, "POLICY"):
                raise TypeError(f"{cls.__name__} ({type}) has no POLICY: state what is done with its events")

    def occurred_at(self) -> str | None:
        """Return when it happened, if that differs from when it was recorded."""
        return None

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return []

    def removed_ids(self) -> list[str]:
        """Return the memories that it removes from every view."""
        return []

    def dump(self) -> dict[str, Any]:
        """Return the stored form, without None and empty lists, so that a new optional field changes no byte."""
        return sparse(vars(self))


class UpkeepPayload(Payload):
    """Base of the events of the store's own upkeep."""

    SCOPES = SYSTEM
    POLICY = UPKEEP


class RunPayload(UpkeepPayload):
    """Base of the events of completed runs. Earlier events record what a run changed, its own event how much."""

    POLICY = RUN


class JournalPayload(Payload):
    """Base of the events that the journal itself needs."""

    SCOPES = SYSTEM
    BY_STORE_ALONE = True
    POLICY = JOURNAL


class OfOneMemory(Payload):
    """Base of the events that change the memory which `id` names."""

    id: MemoryId

    def memory_ids(self) -> list[str]:
        """Return this memory."""
        return [self.id]


def sparse(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values without None and empty lists, and models as dictionaries, in nested ones too."""
    present = {name: value for name, value in values.items() if value is not None and value != []}
    return {name: value if type(value) in _PLAIN else _sparse(value) for name, value in present.items()}


_PLAIN = frozenset({str, int, float, bool})


def _sparse(value: Any) -> Any:
    if isinstance(value, list):
        return [one if type(one) in _PLAIN else _sparse(one) for one in value]
    found = vars(value) if isinstance(value, BaseModel) else value
    return sparse(found) if isinstance(found, dict) else found
