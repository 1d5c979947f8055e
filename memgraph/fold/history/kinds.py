"""Kinds of memories in charts: the types, with semantic memories split into generalisations and stated facts."""

from __future__ import annotations

from memgraph.model.memory import MemoryType

KINDS = ("episodic", "generalisation", "procedural", "fact")
"""A generalisation was made from other memories; a fact was stated, such as a rule to remember."""


def kind_of(type_: MemoryType | str, *, is_made: bool) -> str:
    """Return the kind of a memory, given its type and whether it was made from others."""
    if type_ != "semantic":
        return type_
    return "generalisation" if is_made else "fact"


def type_of(kind: str) -> MemoryType:
    """Return the type of the memories of a kind."""
    return "episodic" if kind == "episodic" else "procedural" if kind == "procedural" else "semantic"
