"""Finds entities of the index that are one thing under several names, given the present names.

``session.ts`` is ``auth/session.ts`` as long as no other file of that name is known in the project; ``Smith`` is ``Dr. Smith``, and both
are ``Anna Smith`` as long as there is no other Smith. Nothing is stored: a name that becomes ambiguous is separate again.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from memgraph.index.arrays import Multimap, Names
from memgraph.model.ids import without_title

_MOST_ALIKE = 50
"""Number of names with a common ending (``index.ts``) from which no aliases are searched."""
Group = tuple[str, str, str]


class Aliases:
    """Finds the other names of an entity. Linear in the number of names with the same ending.

    Parameters
    ----------
    entities : Names
        As `entity_name` writes them; may grow.
    mentions : Multimap
        Entity → memories: an entity that no memory names any more makes nothing ambiguous.
    """

    def __init__(self, entities: Names, mentions: Multimap) -> None:
        self._entities = entities
        self._mentions = mentions
        self._groups: dict[Group, list[int]] = {}
        self._parts: dict[int, tuple[str, ...]] = {}
        self._seen = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> Aliases:
        other = Aliases(deepcopy(self._entities, memo), deepcopy(self._mentions, memo))
        other._groups = {group: codes.copy() for group, codes in self._groups.items()}
        other._parts, other._seen = self._parts.copy(), self._seen
        return other

    def same(self, entity: int) -> list[int]:
        """Return the codes of all names of the thing that `entity` names, including itself, in order."""
        self._take_in()
        group = self._group(entity)
        known = self._groups.get(group, []) if group else []
        if not 1 < len(known) <= _MOST_ALIKE:
            return [entity]
        live = [code for code in known if code == entity or code in self._mentions]
        whole = self._whole(entity, live)
        return [code for code in live if self._whole(code, live) == whole]

    def _whole(self, entity: int, live: list[int]) -> tuple[str, ...]:
        """Return the longest name that ends with this one, if it is unique; else the name itself."""
        mine = self._parts[entity]
        longer = {parts for code in live if len(parts := self._parts[code]) > len(mine) and parts[-len(mine) :] == mine}
        longest = {
            one for one in longer if not any(len(other) > len(one) and other[-len(one) :] == one for other in longer)
        }
        return longest.pop() if len(longest) == 1 else mine

    def _take_in(self) -> None:
        for code in range(self._seen, len(self._entities)):
            if group := self._group(code):
                self._groups.setdefault(group, []).append(code)
        self._seen = len(self._entities)

    def _group(self, entity: int) -> Group | None:
        """Return what all names of one thing share: kind, project and ending; None for an entity without aliases."""
        kind, project, name = self._entities.names[entity].split("\x1f", 2)
        if kind == "file":
            parts = tuple(part for part in name.split("/") if part not in {"", "."})
        elif kind == "person" or (kind == "concept" and without_title(name) != name):
            kind, parts = "person", tuple(without_title(name).split())
        else:
            return None
        if not parts:
            return None
        self._parts[entity] = parts
        return kind, project, parts[-1]
