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
_PAIRS_AT_ONCE = 100_000

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

    vertices, tags = len(table), len(values)
    keys, owners = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for one, other in combinations(range(table.shape[1]), 2):
        owners.append(np.flatnonzero(table[:, other] >= 0))
        keys.append(table[owners[-1], one] * tags + table[owners[-1], other])
    tag_pairs, column = np.unique(np.concatenate(keys), return_inverse=True)
    have_pair = _incidence(np.concatenate(owners), column.ravel(), (vertices, len(tag_pairs)))
    frequency = np.bincount(column.ravel(), minlength=len(tag_pairs))
    longest = _longest_explicit(frequency, vertices)
    explicit = have_pair[:, (frequency > 1) & (frequency <= longest)]
    left, right = sparse.triu(explicit @ explicit.T, 1).nonzero()  # type: ignore[no-untyped-call]
    vertex, place = np.nonzero(table >= 0)
    have_tag = _incidence(vertex, table[vertex, place], (vertices, tags))
    weighted = have_tag.multiply(values).tocsr()  # type: ignore[no-untyped-call]
    weight = size[left] * size[right]
    for start in range(0, len(weight), _PAIRS_AT_ONCE):  # the rows of all pairs at once would need hundreds of MB
        part = slice(start, start + _PAIRS_AT_ONCE)
        weight[part] *= np.asarray(have_tag[left[part]].multiply(weighted[right[part]]).sum(axis=1)).ravel()
    own = np.asarray(weighted.sum(axis=1)).ravel() * size * (size - 1)
    through_hub = have_pair[:, frequency > longest]
    spoke, hub = through_hub.nonzero()
    pair_weights = (values[tag_pairs // max(tags, 1)] + values[tag_pairs % max(tags, 1)])[frequency > longest]
    stands_for = pair_weights[hub] * size[spoke] * ((through_hub.T @ size)[hub] - size[spoke]) / 2
    hub = hub + vertices
    rows = np.concatenate([left, right, np.arange(vertices), spoke, hub])
    columns = np.concatenate([right, left, np.arange(vertices), hub, spoke])
    entries = np.concatenate([weight, weight, own, stands_for, stands_for])
    kept = entries > 0
    extent = vertices + through_hub.shape[1]
    return sparse.csr_matrix((entries[kept], (rows[kept], columns[kept])), shape=(extent, extent))  # type: ignore[no-untyped-call]


def _incidence(rows: Ints, columns: Ints, shape: tuple[int, int]) -> sparse.csr_matrix:
    from scipy import sparse

    return sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)  # type: ignore[no-untyped-call]


def _longest_explicit(frequency: Ints, vertices: int) -> int:
    """Return up to how many vertices a tag pair may have whose pairs are written out: the rarest ones, within the allowed number of pairs."""
    most = _PAIRS_AT_LEAST + _PAIRS_PER_VERTEX * vertices
    by_length, counts = np.unique(frequency, return_counts=True)
    within = np.cumsum(by_length * (by_length - 1) // 2 * counts) <= most
    return int(by_length[within].max(initial=1))  # all pairs of equal frequency are treated alike


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
