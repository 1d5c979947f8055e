"""The map: which memories are drawn in one disc, with the hub of a group in its centre, and where; a project's discs are side by side.

No simulation is needed: a disc is filled along Vogel's sunflower spiral (*A better way to construct the sunflower head*, 1979), and
discs are added one by one along the front of the packed ones (Wang et al., *Visualization of large hierarchical data by
circle packing*, CHI 2006). So 20,000 memories take a fraction of a second, and equal input yields equal positions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memgraph.model.memory import StoredMemory
from memgraph.text.cutting import cut

_LABEL_CHARS = 32
_FEWEST_OF_TAG = 4
SPACING = 10.0
"""Distance between neighbours in a disc; all lengths are in tenths of it."""
_GOLDEN_ANGLE = pi * (3.0 - sqrt(5.0))
_GAP = 9.0
_PROJECT_GAP = 40.0
_HUB_AREA = 3.0
"""Additional area of the hub in the centre of a disc, in members."""
_FLATNESS = 0.62
"""Discs are packed into an ellipse, because a page is wider than high."""

Places = NDArray[np.float64]


@dataclass(frozen=True)
class Group:
    """Numbers of memories that are drawn in one disc, the innermost first, which may be the hub that the others are evidence of."""

    members: Sequence[int]
    has_hub: bool = False
    project: str = ""


def grouped(memories: Sequence[StoredMemory], evidence: Sequence[tuple[int, int]]) -> tuple[list[Group], list[str]]:
    """Return the discs of the picture and a label for each.

    Evidence is placed around its generalisation with the most evidence; every other memory is grouped with those that share its
    project's most frequent tag, ignoring tags that more than half of them have.
    """
    weight = Counter(target for _, target in evidence)
    hub_of: dict[int, int] = {}
    for source, target in evidence:
        best = hub_of.get(source)
        if best is None or (weight[target], -target) > (weight[best], -best):
            hub_of[source] = target
    members: dict[int, list[int]] = {hub: [hub] for hub in sorted(weight) if hub not in hub_of}
    for place in range(len(memories)):
        hub = hub_of.get(place)
        if hub is not None:
            members.setdefault(hub, [hub]).append(place)
    for hub, own in list(members.items()):  # a hub that is itself evidence of another hub keeps its own group
        if hub in hub_of and len(own) > 1:
            members[hub_of[hub]].remove(hub)
    inside = {place for own in members.values() if len(own) > 1 for place in own}
    groups = [
        Group(own, has_hub=True, project=memories[hub].project_id or "") for hub, own in members.items() if len(own) > 1
    ]
    labels = [_label(memories[group.members[0]]) for group in groups]
    rest: dict[str, list[int]] = {}
    for place, memory in enumerate(memories):
        if place not in inside:
            rest.setdefault(memory.project_id or "", []).append(place)
    for project, places in rest.items():
        for tag, tagged in _by_tag(memories, places).items():
            groups.append(Group(tagged, project=project))
            labels.append(_clipped(tag or _common_tag(memories, tagged) or ("other" if len(groups) > 1 else "")))
    return groups, labels


def _by_tag(memories: Sequence[StoredMemory], places: Sequence[int]) -> dict[str, list[int]]:
    counts = Counter(tag for place in places for tag in memories[place].tags)
    telling = {tag: many for tag, many in counts.items() if _FEWEST_OF_TAG <= many <= len(places) / 2}
    found: dict[str, list[int]] = {}
    for place in places:
        tags = [tag for tag in memories[place].tags if tag in telling]
        found.setdefault(min(tags, key=lambda tag: (-telling[tag], tag), default=""), []).append(place)
    few = [tag for tag, tagged in found.items() if tag and len(tagged) < _FEWEST_OF_TAG]
    for tag in few:
        found.setdefault("", []).extend(found.pop(tag))
    return found


def _common_tag(memories: Sequence[StoredMemory], places: Sequence[int]) -> str:
    """Return the tag that most memories have; empty where half of them or more have none in common."""
    counts = Counter(tag for place in places for tag in memories[place].tags)
    tag, many = min(counts.items(), key=lambda item: (-item[1], item[0]), default=("", 0))
    return tag if 2 * many > len(places) else ""


def _label(memory: StoredMemory) -> str:
    """Return a few words for what a generalisation is about."""
    named = [entity for entity in memory.entities if entity.kind not in ("commit", "url")]
    about = [entity.name for entity in named if entity.about] or [entity.name for entity in named]
    name = memory.title or (about[0] if about else " · ".join(memory.tags[:2]))
    return _clipped(name.rstrip("/").rpartition("/")[2] or name)


def _clipped(name: str) -> str:
    return cut(name, _LABEL_CHARS, keep_space=True)


def areas(groups: Sequence[Group], discs: Places) -> list[list[Any]]:
    """Return the label position of each project if there are several: centre x, top y, name, width."""
    by_project: dict[str, list[int]] = {}
    for number, group in enumerate(groups):
        by_project.setdefault(group.project, []).append(number)
    if len(by_project) < 2:
        return []
    found = []
    for project, numbers in by_project.items():
        own = discs[numbers]
        low, high = (own[:, 0] - own[:, 2]).min(), (own[:, 0] + own[:, 2]).max()
        top = (own[:, 1] - own[:, 2]).min()
        found.append(
            [
                *(round(float(one)) for one in ((low + high) / 2, top)),
                _clipped(project) or "no project",
                round(float(high - low)),
            ]
        )
    return sorted(found, key=lambda area: -area[3])


@dataclass(frozen=True)
class Layout:
    """Positions of the memories, shape (n, 2), and the discs as x, y, radius, shape (groups, 3), in the order of the groups."""

    places: Places
    discs: Places


def lay_out(groups: Sequence[Group], count: int) -> Layout:
    """Return the positions of `count` memories, each a member of one group, centred on the origin.

    Costs O(n) for the memories and about O(g · √g) for g groups; deterministic.
    """
    places = np.zeros((count, 2))
    discs = np.zeros((len(groups), 3))
    by_project: dict[str, list[int]] = {}
    for number, group in enumerate(groups):
        by_project.setdefault(group.project, []).append(number)
        discs[number, 2] = _radius(len(group.members), has_hub=group.has_hub)
    outlines = []
    for numbers in by_project.values():
        numbers.sort(key=lambda number: (-discs[number, 2], number))
        discs[numbers, :2] = packed(discs[numbers, 2] + _GAP / 2, flatness=_FLATNESS if len(by_project) == 1 else 1.0)
        outlines.append(float(np.max(np.hypot(*discs[numbers, :2].T) + discs[numbers, 2])))
    order = np.argsort(-np.array(outlines), kind="stable")
    centres = np.zeros((len(outlines), 2))
    if len(outlines) > 1:
        centres[order] = packed(np.array(outlines)[order] + _PROJECT_GAP / 2, flatness=_FLATNESS)
    for centre, numbers in zip(centres, by_project.values(), strict=True):
        discs[numbers, :2] += centre
    if len(discs):
        low = (discs[:, :2] - discs[:, 2:]).min(axis=0)
        high = (discs[:, :2] + discs[:, 2:]).max(axis=0)
        discs[:, :2] -= (low + high) / 2
    for number, group in enumerate(groups):
        places[list(group.members)] = discs[number, :2] + _sunflower(len(group.members), has_hub=group.has_hub)
    return Layout(places, discs)


def _radius(size: int, *, has_hub: bool) -> float:
    return SPACING * (sqrt(size + _HUB_AREA * has_hub) + 0.4)


def _sunflower(size: int, *, has_hub: bool) -> Places:
    number = np.arange(size)
    distance = SPACING * np.sqrt(number + (_HUB_AREA if has_hub else 0.3))
    if has_hub or size == 1:
        distance[0] = 0.0
    angle = number * _GOLDEN_ANGLE
    return np.stack([distance * np.cos(angle), distance * np.sin(angle)], axis=1)


def packed(radii: Sequence[float] | Places, *, flatness: float = 1.0) -> Places:
    """Return centres of circles that touch but do not overlap, shape (n, 2), around the origin.

    The front is a ring of circles that touch their neighbours. A new circle is placed next to the pair of neighbours nearest to
    the origin; if it would overlap another circle of the front, the circles between them leave the front. Descending radii pack best; with
    a flatness below 1, the result is wider than high.
    """
    sizes = [float(radius) for radius in radii]
    x, y = [0.0] * len(sizes), [0.0] * len(sizes)
    if len(sizes) > 1:
        x[0], x[1] = -sizes[1], sizes[0]
    following, before = list(range(len(sizes))), list(range(len(sizes)))

    def join(left: int, right: int) -> None:
        following[left], before[right] = right, left

    def farness(at: int) -> float:
        """Return the distance from the origin to the point where a circle of the front touches the next."""
        other = following[at]
        share = sizes[at] / (sizes[at] + sizes[other])
        across, down = x[at] + (x[other] - x[at]) * share, y[at] + (y[other] - y[at]) * share
        return hypot(across * flatness, down)

    def place_beside(left: int, right: int, new: int) -> None:
        """Let a circle touch two others, on the outer side of the front."""
        dx, dy = x[right] - x[left], y[right] - y[left]
        between = hypot(dx, dy)
        to_left, to_right = sizes[left] + sizes[new], sizes[right] + sizes[new]
        along = (between * between + to_left * to_left - to_right * to_right) / (2.0 * between)
        aside = sqrt(max(0.0, to_left * to_left - along * along))
        x[new], y[new] = x[left] + (dx * along + dy * aside) / between, y[left] + (dy * along - dx * aside) / between

    def overlaps(other: int, new: int) -> bool:
        reach = sizes[new] + sizes[other] - 1e-6
        dx, dy = x[other] - x[new], y[other] - y[new]
        return dx * dx + dy * dy < reach * reach

    def first_hit(left: int, right: int, new: int) -> tuple[bool, int] | None:
        """Return whether the circle of the front that a new one overlaps is ahead, and which: the nearest along the front."""
        ahead, behind = following[right], before[left]
        gone_ahead, gone_behind = sizes[right], sizes[left]
        while True:
            is_ahead = gone_ahead <= gone_behind
            other = ahead if is_ahead else behind
            if other == (left if is_ahead else right):
                return None
            if overlaps(other, new):
                return is_ahead, other
            if ahead == behind:
                return None
            if is_ahead:
                gone_ahead, ahead = gone_ahead + sizes[other], following[other]
            else:
                gone_behind, behind = gone_behind + sizes[other], before[other]

    left, right = 0, 1
    for new in range(2, len(sizes)):
        if new == 2:
            join(0, 1)
            join(1, 0)
        while True:
            place_beside(left, right, new)
            hit = first_hit(left, right, new)
            if hit is None:
                break
            is_ahead, other = hit
            left, right = (left, other) if is_ahead else (other, right)
            join(left, right)
        join(left, new)
        join(new, right)
        best, nearest = new, farness(new)
        at = following[new]
        while at != new:
            distance = farness(at)
            if distance < nearest - 1e-9:
                best, nearest = at, distance
            at = following[at]
        left, right = best, following[best]
    return np.array([x, y]).T.reshape(len(sizes), 2)
