"""Communities of episodes that share tags, by Louvain's method.

Blondel et al., *Fast unfolding of communities in large networks*, 2008, as implemented by scikit-network; vertices are
visited in a fixed order, so equal input gives equal communities.

A generalisation needs a common topic. Louvain's communities grow with the graph (its resolution limit: Fortunato and
Barthélemy, 2007) until their members have nothing in common. So a community is divided again on its own unless most of
its episodes share two tags, at least one of them rare: a tag on a tenth of the project's episodes is not distinctive.

The graph is sparse and weighted. Two shared tags link two episodes; a shared tag weighs ``ln(1 + N/df)``, so rare tags weigh more.
Written out it is quadratic in a tag's frequency. It is kept linear:

- Episodes with the same tags are one vertex with a count; the links among them are its loop.
- Pairs of vertices are found through the *pairs of tags* that they share, rarest tag pairs first, up to a number of pairs
  that grows with the number of vertices. These pairs have their exact weight.
- The vertices of a tag pair that is too frequent for that are joined through a hub vertex, each with half the weight of the
  pairs that it replaces: the total weight is kept, and a star stays together like the clique that it replaces. A pair of
  vertices that shares three such tags counts each of them more than once: this is the price.

With up to about three hundred different sets of tags the graph is exact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy import sparse

MOST_TAGS = 12
"""Only the rarest shared tags of an episode are compared, this many at most: an episode adds at most 66 tag pairs."""
LARGE_FROM = 50
"""From this many episodes on, a tag on more than half of a project's episodes is ignored as too frequent."""
_PAIRS_PER_VERTEX = 20
_PAIRS_AT_LEAST = 50_000
_COMPARED_AT_ONCE = 100_000

_TOLERANCE = 1e-6
_RESOLUTIONS = (1.0, 2.0, 4.0, 8.0)
"""Resolutions, tried in order until one divides the graph."""
_RARE = log(1 + 10)
"""Weight of a tag on a tenth of the episodes."""
_ALWAYS_ONE = 3
"""A connected component with this few vertices is not divided."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def tag_weights(tag_sets: Iterable[Iterable[str]]) -> dict[str, float]:
    """Return the weight of each tag when two episodes of a project share it; uninformative tags are left out."""
    sets = [set(tags) for tags in tag_sets]
    frequency = Counter(tag for tags in sets for tag in tags)
    many = len(sets)
    most = many / 2 if many >= LARGE_FROM else many
    return {tag: log(1 + many / count) for tag, count in frequency.items() if count <= most}


@dataclass(frozen=True, slots=True)
class Overlap:
    """Graph whose vertices are episodes."""

    vertices: list[list[int]]
    """The places of each vertex's episodes: those with the same informative tags."""
    size: Floats
    """Number of episodes by vertex."""
    tags: Ints
    """Codes of each vertex's informative tags, shape (vertices, t), left-aligned and padded with −1."""
    weights: Floats
    """Weight by tag code."""
    matrix: sparse.csr_matrix
    """Symmetric; the first rows are `vertices`, the others hubs for frequent tag pairs. The diagonal counts each pair of one vertex's
    episodes twice, as the other entries do."""


def overlap(tag_sets: Sequence[Iterable[str]], weights: dict[str, float]) -> Overlap:
    """Return the graph of episodes that share at least two tags, given in canonical form, with the weights of `tag_weights`.

    Deterministic. Time and memory grow with the number of episodes, independent of tag frequencies.
    """
    telling, values = _telling(tag_sets, weights)
    places: dict[tuple[int, ...], list[int]] = {}
    for place, tags in enumerate(telling):
        key = tags if len(tags) > 1 else (-1 - place,)  # fewer than two tags: isolated
        places.setdefault(key, []).append(place)
    vertices = list(places.values())
    table = np.full((len(vertices), max(map(len, telling), default=0) or 1), -1, dtype=np.int64)
    for vertex, tags in enumerate(places):
        if tags[0] >= 0:
            table[vertex, : len(tags)] = tags
    size = np.array([len(vertex) for vertex in vertices], dtype=np.float64)
    return Overlap(vertices, size, table, values, _matrix(table, values, size))


def _telling(tag_sets: Sequence[Iterable[str]], weights: dict[str, float]) -> tuple[list[tuple[int, ...]], Floats]:
    """Return each episode's tags that another episode has too, as ascending codes, and the codes' weights."""
    sets = [{tag for tag in tags if tag in weights} for tags in tag_sets]
    frequency = Counter(tag for tags in sets for tag in tags)
    shared = sorted(tag for tag, count in frequency.items() if count > 1)
    codes = {tag: code for code, tag in enumerate(shared)}
    values = np.array([weights[tag] for tag in shared], dtype=np.float64)
    found = []
    for tags in sets:
        own = sorted(codes[tag] for tag in tags if tag in codes)
        if len(own) > MOST_TAGS:
            own = sorted(sorted(own, key=lambda code: (-values[code], code))[:MOST_TAGS])
        found.append(tuple(own))
    return found, values


def _matrix(table: Ints, values: Floats, size: Floats) -> sparse.csr_matrix:
    from scipy import sparse  # imported here because few commands compress

    vertices = len(table)
    owners, starts, lengths, first, second = _by_tag_pair(table, len(values))
    explicit = _affordable(lengths, vertices)
    left, right = _pairs(owners, starts[explicit], lengths[explicit], vertices)
    weight = _shared_weight(table, values, left, right) * size[left] * size[right]
    own = _shared_weight(table, values, np.arange(vertices), np.arange(vertices)) * size * (size - 1)
    hub_rows, hub_columns, hub_weight, hubs = _hubs(
        owners, starts[~explicit], lengths[~explicit], (values[first] + values[second])[~explicit], size
    )
    rows = np.concatenate([left, right, np.arange(vertices), hub_rows, hub_columns])
    columns = np.concatenate([right, left, np.arange(vertices), hub_columns, hub_rows])
    entries = np.concatenate([weight, weight, own, hub_weight, hub_weight])
    kept = entries > 0
    extent = vertices + hubs
    return sparse.csr_matrix((entries[kept], (rows[kept], columns[kept])), shape=(extent, extent))  # type: ignore[no-untyped-call]


def _by_tag_pair(table: Ints, tags: int) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Return the vertices by the tag pairs that at least two of them have: vertices, begin, length, both tags of each pair."""
    keys, owners = [], []
    for one, other in combinations(range(table.shape[1]), 2):
        has = np.flatnonzero(table[:, other] >= 0)
        keys.append(table[has, one] * tags + table[has, other])
        owners.append(has)
    key = np.concatenate(keys) if keys else np.zeros(0, dtype=np.int64)
    owner = np.concatenate(owners) if owners else np.zeros(0, dtype=np.int64)
    order = np.lexsort((owner, key))
    key, owner = key[order], owner[order]
    starts = _changes(key)
    lengths = np.diff(np.append(starts, len(key)))
    shared = lengths > 1
    starts, lengths = starts[shared], lengths[shared]
    names = key[starts]
    return owner, starts, lengths, names // max(tags, 1), names % max(tags, 1)


def _affordable(lengths: Ints, vertices: int) -> NDArray[np.bool_]:
    """Return which tag pairs are expanded to pairs of vertices: the rarest ones, within the allowed number of pairs."""
    most = _PAIRS_AT_LEAST + _PAIRS_PER_VERTEX * vertices
    by_length, counts = np.unique(lengths, return_counts=True)
    within = np.cumsum(by_length * (by_length - 1) // 2 * counts) <= most
    longest = by_length[within].max(initial=0)  # all pairs of equal frequency are treated alike
    affordable: NDArray[np.bool_] = lengths <= longest
    return affordable


def _pairs(owners: Ints, starts: Ints, lengths: Ints, vertices: int) -> tuple[Ints, Ints]:
    """Return each pair of vertices once, the lower one first."""
    found = [np.zeros(0, dtype=np.int64)]
    for length in np.unique(lengths):
        lists = owners[starts[lengths == length][:, None] + np.arange(length)]
        one, other = np.triu_indices(int(length), 1)
        found.append((lists[:, one] * vertices + lists[:, other]).ravel())
    keys = np.sort(np.concatenate(found))
    keys = keys[_changes(keys)]
    return keys // max(vertices, 1), keys % max(vertices, 1)


def _changes(values: Ints) -> Ints:
    """Return where sorted values change, the beginning included: ten times as fast as `numpy.unique`."""
    return np.flatnonzero(np.append(True, values[1:] != values[:-1])[: len(values)])


def _shared_weight(table: Ints, values: Floats, left: Ints, right: Ints) -> Floats:
    """Return for pairs of vertices the total weight of the tags that both have."""
    padded = np.append(values, 0.0)  # the target of code −1
    result = np.zeros(len(left))
    for start in range(0, len(left), _COMPARED_AT_ONCE):
        part = slice(start, start + _COMPARED_AT_ONCE)
        one, other = table[left[part]], table[right[part]]
        for column in range(table.shape[1]):
            has = (one[:, column, None] == other).any(axis=1)
            result[part] += np.where(has, padded[one[:, column]], 0.0)
    return result


def _hubs(owners: Ints, starts: Ints, lengths: Ints, weights: Floats, size: Floats) -> tuple[Ints, Ints, Floats, int]:
    """Return the edges between vertices and hubs for frequent tag pairs, and the number of hubs."""
    hub = np.repeat(np.arange(len(lengths)), lengths)
    within = np.arange(len(hub)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    vertex = owners[starts[hub] + within]
    total = np.bincount(hub, weights=size[vertex], minlength=len(lengths))
    stands_for = weights[hub] * size[vertex] * (total[hub] - size[vertex]) / 2
    return vertex, hub + len(size), stands_for, len(lengths)


def communities(
    tag_sets: Sequence[Iterable[str]], weights: dict[str, float], *, is_large: bool = False
) -> list[list[int]]:
    """Return the communities of episodes as ascending places in `tag_sets`, singletons included.

    Each connected component is divided on its own, so a change in one does not move communities in another. In a large project rare tags
    can be told from frequent ones.
    """
    from scipy.sparse import csgraph  # imported here because few commands compress

    if not tag_sets:
        return []
    graph = overlap(tag_sets, weights)
    least = _RARE if is_large else 0.0
    _, of_part = csgraph.connected_components(graph.matrix, directed=False)
    found: list[list[int]] = []
    waiting = list(_split(np.arange(graph.matrix.shape[0]), graph.matrix, of_part.astype(np.int64)))
    while waiting:
        inside, matrix = waiting.pop()
        own = inside[inside < len(graph.vertices)]  # the others are hubs for tag pairs
        is_one = len(inside) <= _ALWAYS_ONE or _says_something(graph, own, least)
        labels = None if is_one else _divided(matrix)
        if labels is None:
            found.append(sorted(place for vertex in own.tolist() for place in graph.vertices[vertex]))
        else:
            waiting.extend(_split(inside, matrix, labels))
    return sorted(filter(None, found))


def _says_something(graph: Overlap, own: Ints, least_weight: float) -> bool:
    """Return whether most episodes share two tags, the weightiest of which weighs enough."""
    if len(own) <= 1:
        return True
    tags, size = graph.tags[own], graph.size[own]
    has = tags >= 0
    codes, place = np.unique(tags[has], return_inverse=True)
    counts = np.bincount(place, weights=np.repeat(size, has.sum(axis=1)), minlength=len(codes))
    common = codes[counts * 2 > size.sum()]
    return len(common) > 1 and float(graph.weights[common].max()) >= least_weight


def _divided(matrix: sparse.csr_matrix) -> Ints | None:
    """Return the community number of each unit; None if the graph is not divided."""
    if not matrix.nnz:  # no shared tags
        return np.arange(matrix.shape[0])
    from sknetwork.clustering.louvain import Louvain

    for resolution in _RESOLUTIONS:
        louvain = Louvain(resolution, tol_optimization=_TOLERANCE, tol_aggregation=_TOLERANCE, random_state=0)
        labels = np.asarray(louvain.fit_predict(matrix), dtype=np.int64)
        if labels.max() > 0:
            return labels
    return None


def _split(units: Ints, matrix: sparse.csr_matrix, labels: Ints) -> Iterator[tuple[Ints, sparse.csr_matrix]]:
    """Yield each label's units and their submatrix."""
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(np.bincount(labels))
    sorted_matrix = matrix[order][:, order]
    for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        yield units[order[start:end]], sorted_matrix[start:end, start:end]
