"""Names of entities: the runs of terms that name something that memories are about, and the other names of the same thing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from memgraph.index.analyser import analyse
from memgraph.index.arrays import Multimap, Names
from memgraph.model.ids import without_title

_MOST_ALIKE = 50
"""Number of names with a common ending (``index.ts``) from which no aliases are searched."""
Group = tuple[str, str, str]
Slots = frozenset[int]
MAX_NAME_TERMS = 8
"""Maximum length of a name in terms. A longer one is a sentence, and is found by its words."""
_IN_PARENTHESES = re.compile(r"\s*\([^()]*\)\s*$")
_SLASH = re.compile(r"[/\\]")


def phrases_of(kind: str, name: str) -> list[str]:
    """Return the runs of terms that name an entity: its name, also without a disambiguation in brackets, and a file's name without folders."""
    forms = [name, _IN_PARENTHESES.sub("", name)]
    if kind == "file":
        forms.append(_SLASH.split(name.rstrip("/\\"))[-1])
    runs = [analyse(form) for form in forms]
    return list(dict.fromkeys(" ".join(run) for run in runs if 0 < len(run) <= MAX_NAME_TERMS))


class Naming:
    """Finds names in runs of terms: `phrases` may grow, `entities` maps a phrase to the entities of this name."""

    def __init__(self, phrases: Names, entities: Multimap) -> None:
        self._phrases = phrases
        self._entities = entities
        self._lengths: dict[str, list[int]] = {}
        self._seen = 0

    def named_in(
        self, terms: Sequence[str], about: Callable[[Sequence[int]], Slots]
    ) -> Iterator[tuple[Sequence[str], Slots]]:
        """Yield, for each name in the terms, its terms and the visible slots that `about` returns for its entities; nothing for a name without any.

        Of names that begin with the same term the longest is taken, and a name within another is ignored: "New York Times" is the newspaper.
        """
        self._take_in()
        seen: set[int] = set()
        at = 0
        while at < len(terms):
            length, code, slots = self._longest(terms, at, about)
            if slots and code not in seen:
                seen.add(code)
                yield terms[at : at + length], slots
            at += length

    def _longest(
        self, terms: Sequence[str], at: int, about: Callable[[Sequence[int]], Slots]
    ) -> tuple[int, int, Slots]:
        """Return the length of the longest name that begins here, its code, and the slots about it; (1, −1, no slots) if none does."""
        for length in self._lengths.get(terms[at], ()):
            if at + length <= len(terms):
                code = self._phrases.find(" ".join(terms[at : at + length]))
                if code >= 0 and (slots := about(sorted(self._entities.get(code)[0].tolist()))):
                    return length, code, slots
        return 1, -1, frozenset()

    def _take_in(self) -> None:
        for phrase in self._phrases.names[self._seen :]:
            first, *more = phrase.split(" ")
            lengths = self._lengths.setdefault(first, [])
            if len(more) + 1 not in lengths:
                lengths.append(len(more) + 1)
                lengths.sort(reverse=True)
        self._seen = len(self._phrases)


class Aliases:
    """Finds entities that are one thing under several names, given the names that memories have (`mentions`): linear in names of the same ending.

    ``session.ts`` is ``auth/session.ts`` as long as no other file of that name is known in the project; ``Smith`` is ``Anna Smith`` as long as there is no
    other Smith. Nothing is stored: a name that becomes ambiguous is separate again.
    """

    def __init__(self, entities: Names, mentions: Multimap) -> None:
        self._entities = entities
        self._mentions = mentions
        self._groups: dict[Group, list[int]] = {}
        self._parts: dict[int, tuple[str, ...]] = {}
        self._seen = 0

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
