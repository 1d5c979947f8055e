"""Groups the memories that the page draws together, and labels the groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from memgraph.model.memory import StoredMemory
from memgraph.text.cutting import cut
from memgraph.viz.page.layout import Group, Places

_LABEL_CHARS = 32
_FEWEST_OF_TAG = 4


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
