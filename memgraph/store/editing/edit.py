"""The fields that a person can edit, and the new values that an edit gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memgraph.errors import InvalidInputError
from memgraph.fold.memories import chain_of
from memgraph.model.base import Name, checked
from memgraph.model.ids import canonical_name
from memgraph.model.memory import StoredMemory

EDITABLE = ("content", "title", "tags", "project_id", "valid_at", "invalid_at", "privacy_tier", "domain")
"""Fields that a person can set. None clears one that is optional."""
OF_ONE = ("content", "title")
"""Fields that are set for one memory at a time."""
_OF_THE_PROJECT = ("session_id", "build_id", "evidence_build_ids")


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit: new values of fields, and tags to add and to remove. Tags are compared without case."""

    values: Mapping[str, Any]
    add_tags: Sequence[str] = ()
    remove_tags: Sequence[str] = ()

    @classmethod
    def of(cls, values: Mapping[str, Any], *, add_tags: Sequence[str] = (), remove_tags: Sequence[str] = ()) -> Edit:
        """Return a checked edit.

        Raises
        ------
        InvalidInputError
            A field cannot be edited, or a tag is invalid.
        """
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


def check_move(memory: StoredMemory, values: Mapping[str, Any]) -> None:
    """Refuse to move a memory to another project if a session, a build, or its place among episodes ties it to its own.

    Raises
    ------
    InvalidInputError
    """
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
