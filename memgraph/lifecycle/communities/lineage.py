"""Lineage: match new communities of episodes with the existing generalisations.

A community and a generalisation are related if most of one came from, or went to, the other. If each is related to the
other alone, they are the same: grown, shrunk or unchanged. Several generalisations related to one community were
merged; several communities related to one generalisation come from a split. In both cases each community gets a new
generalisation, which supersedes the related ones. Single episodes that change sides relate nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence, Sized
from typing import NamedTuple


class Successor(NamedTuple):
    """A community and the generalisations that it succeeds, all by place.

    `is_same` means that it continues its only generalisation; otherwise it is a new one and supersedes them.
    """

    community: int
    of: tuple[int, ...]
    is_same: bool


class Succession(NamedTuple):
    """Successors in groups that must be committed together, and the generalisations without a successor."""

    groups: list[list[Successor]]
    heirless: list[int]


def are_kin(common: int, community: Sized, episodes: Sized) -> bool:
    """Return whether this many common episodes are most of a community, or most of a generalisation's."""
    return common * 2 > len(community) or common * 2 > len(episodes) > 0


def succession(communities: Sequence[Sequence[int]], generalisations: Sequence[frozenset[int]]) -> Succession:
    """Match communities with the generalisations that they succeed.

    Parameters
    ----------
    communities : sequence of sequence of int
        Disjoint lists of episodes.
    generalisations : sequence of frozenset of int
        Those of their episodes that still exist.
    """
    community_of = {episode: place for place, members in enumerate(communities) for episode in members}
    related: dict[int, list[int]] = {}
    for place, episodes in enumerate(generalisations):
        went = Counter(community_of[episode] for episode in episodes if episode in community_of)
        related[place] = [
            community for community, many in sorted(went.items()) if are_kin(many, communities[community], episodes)
        ]
    groups: dict[int, list[int]] = defaultdict(list)
    root = _joined(related.values(), len(communities))
    for community in range(len(communities)):
        groups[root[community]].append(community)
    followed: dict[int, list[int]] = defaultdict(list)
    for place, successors in related.items():
        for community in successors:
            followed[community].append(place)
    found = []
    for members in groups.values():
        involved = {place for community in members for place in followed[community]}
        is_same = len(members) == 1 and len(involved) == 1
        found.append([Successor(community, tuple(followed[community]), is_same) for community in members])
    return Succession(found, [place for place, successors in related.items() if not successors])


def _joined(sets: Iterable[list[int]], many: int) -> list[int]:
    """Return for each of `many` numbers the lowest number that it is connected with, directly or indirectly."""
    root = list(range(many))

    def find(number: int) -> int:
        while root[number] != number:
            root[number] = root[root[number]]
            number = root[number]
        return number

    for numbers in sets:
        for other in numbers[1:]:
            one, two = sorted((find(numbers[0]), find(other)))
            root[two] = one
    return [find(number) for number in range(many)]
