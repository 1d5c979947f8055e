"""Events about links between memories."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from memgraph.model.base import MAX_ITEMS, Finite, Text, Timestamp
from memgraph.model.events.payload import Payload, Policy, Stored, nothing
from memgraph.model.ids import MemoryId


def its_ends(content: Stored) -> list[str]:
    """Return the two memories of a link."""
    return [content["source_id"], content["target_id"]]


class _Between(Payload):
    source_id: MemoryId
    relation: Literal["DERIVED_FROM", "SUPPORTS", "SUPERSEDES", "CONTRADICTS", "RELATED_TO", "ELABORATES", "EXAMPLE_OF"]
    target_id: MemoryId

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [self.source_id, self.target_id]


class MemoryLinked(_Between):
    """A link was created, or its properties were set."""

    TYPE = "memory.linked"
    POLICY = Policy(
        carries=its_ends,  # it states why
        is_reduced=True,
        agents="of_all",
        irreversible=None,
        lineage="by_relation",
    )

    score: Finite | None = None
    reason: Text | None = None
    created_at: Timestamp


class MemoryUnlinked(_Between):
    """A link was removed."""

    TYPE = "memory.unlinked"
    POLICY = Policy(carries=nothing, agents="of_all", irreversible=None, lineage="by_relation")


class MemoryDerived(Payload):
    """A memory was distilled from others: DERIVED_FROM to each, and SUPPORTS from each."""

    TYPE = "memory.derived"
    POLICY = Policy(carries=nothing, agents="in_part", irreversible=None, lineage="changed")

    id: MemoryId
    source_ids: Annotated[list[MemoryId], Field(min_length=1, max_length=MAX_ITEMS)]
    created_at: Timestamp

    def memory_ids(self) -> list[str]:
        """Return the memories whose row or links it changes."""
        return [self.id, *self.source_ids]
