"""What becomes of the generalisations that there are when the communities of episodes have moved.

A community and a generalisation are kin if most of the one came from, or went to, the other. Kin of one each are the same: grown,
shrunk or unchanged. Where several generalisations are kin of one community they were joined, where several communities are kin
of one generalisation it was split: then each community has a new one, which supersedes those that it is kin of. Single
episodes that change sides make nobody kin.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence, Sized
from typing import NamedTuple


class Heir(NamedTuple):
    """A community, by place, and the generalisations that it follows, by place.

    `is_same` says that it goes on as the only one of these; else it is a new one, and supersedes them.
    """

    community: int
    of: tuple[int, ...]
    is_same: bool


class Succession(NamedTuple):
    """Heirs in groups that must be committed together, and the generalisations that are kin of nobody."""

    groups: list[list[Heir]]
    heirless: list[int]


def are_kin(common: int, community: Sized, episodes: Sized) -> bool:
    """Whether so many common episodes are most of a community, or most of those of a generalisation."""
    return common * 2 > len(community) or common * 2 > len(episodes) > 0


def succession(communities: Sequence[Sequence[int]], generalisations: Sequence[frozenset[int]]) -> Succession:
    """Tell which community follows which generalisation.

    Parameters
    ----------
    communities : sequence of sequence of int
        Episodes of each, disjoint.
    generalisations : sequence of frozenset of int
        Those of their episodes that are still there.
    """
    community_of = {episode: place for place, members in enumerate(communities) for episode in members}
    kin: dict[int, list[int]] = {}
    for place, episodes in enumerate(generalisations):
        went = Counter(community_of[episode] for episode in episodes if episode in community_of)
        kin[place] = [
            community for community, many in sorted(went.items()) if are_kin(many, communities[community], episodes)
        ]
    groups: dict[int, list[int]] = defaultdict(list)
    root = _joined(kin.values(), len(communities))
    for community in range(len(communities)):
        groups[root[community]].append(community)
    followed: dict[int, list[int]] = defaultdict(list)
    for place, heirs in kin.items():
        for community in heirs:
            followed[community].append(place)
    found = []
    for members in groups.values():
        involved = {place for community in members for place in followed[community]}
        is_same = len(members) == 1 and len(involved) == 1
        found.append([Heir(community, tuple(followed[community]), is_same) for community in members])
    return Succession(found, [place for place, heirs in kin.items() if not heirs])


def _joined(sets: Iterable[list[int]], many: int) -> list[int]:
    """Return for each of `many` numbers the lowest one that it is joined with, directly or through others."""
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
