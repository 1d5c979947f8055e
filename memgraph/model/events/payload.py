"""The base of event payloads: a strict class with its name, its version and the scopes in which it may be committed."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from memgraph.model.base import Strict

WriteScope = Literal["global", "task", "system", "none"]
Actor = Literal["user", "agent", "system"]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
MAX_WHOLE = 2**53
Whole = Annotated[int, Field(ge=0, le=MAX_WHOLE)]
"""Numbers of events and of bytes, limited to integers that every JSON reader represents exactly."""

DURABLE: frozenset[WriteScope] = frozenset({"global", "task"})
ANY: frozenset[WriteScope] = frozenset({"global", "task", "system"})
SYSTEM: frozenset[WriteScope] = frozenset({"system"})


class Payload(Strict):
    """Base of all payloads.

    Attributes
    ----------
    TYPE, VERSION : str, int
        The event's name and schema version.
    SCOPES : frozenset of str
        Write scopes in which it may be committed.
    BY_STORE_ALONE : bool
        Whether only the store itself may commit it, because only the store can know its content.
    """

    TYPE: ClassVar[str]
    VERSION: ClassVar[int] = 1
    SCOPES: ClassVar[frozenset[WriteScope]] = DURABLE
    BY_STORE_ALONE: ClassVar[bool] = False

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
        return sparse(self.model_dump(exclude_none=True))


def sparse(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values without None and empty lists, in nested dictionaries too."""
    kept: dict[str, Any] = {}
    for name, value in values.items():
        if value is None:
            continue
        kind = type(value)
        if kind is dict:
            kept[name] = sparse(value)
        elif kind is not list:
            kept[name] = value
        elif value:
            kept[name] = [sparse(item) if type(item) is dict else item for item in value]
    return kept
