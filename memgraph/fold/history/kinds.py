"""What kinds of memories pictures tell apart: as their types, but of semantic ones what was learned of others from what was stated."""

from __future__ import annotations

from memgraph.model.memory import MemoryType

KINDS = ("episodic", "generalisation", "procedural", "fact")
"""A generalisation was made of other memories; a fact is what somebody stated, such as a rule to be remembered."""


def kind_of(type_: MemoryType | str, *, is_made: bool) -> str:
    """Return the kind of a memory, given its type and whether it was made of others."""
    if type_ != "semantic":
        return type_
    return "generalisation" if is_made else "fact"


def type_of(kind: str) -> MemoryType:
    """Return the type of the memories of a kind."""
    return "episodic" if kind == "episodic" else "procedural" if kind == "procedural" else "semantic"
