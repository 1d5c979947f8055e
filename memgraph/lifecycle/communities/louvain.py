"""Communities of episodes in the graph of shared tags, by Louvain's method.

Blondel et al., *Fast unfolding of communities in large networks*, 2008, as implemented by scikit-network; vertices are
visited in a fixed order, so equal input gives equal communities.

A generalisation needs a common topic. Louvain's communities grow with the graph (its resolution limit: Fortunato and
Barthélemy, 2007) until their members have nothing in common. So a community is divided again on its own unless most of
its episodes share two tags, at least one of them rare: a tag on a tenth of the project's episodes is not distinctive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import log
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memgraph.lifecycle.communities.tag_overlap import Overlap, overlap

if TYPE_CHECKING:
    from scipy import sparse

_TOLERANCE = 1e-6
_RESOLUTIONS = (1.0, 2.0, 4.0, 8.0)
"""Resolutions, tried in order until one divides the graph."""
_RARE, _RARE_ENOUGH = log(1 + 10), log(1 + 5)
"""Weight of a tag on a tenth of the episodes, and on a fifth: the lower limit holds for settled groups."""
_ALWAYS_ONE = 3
"""A connected component with this few vertices is not divided."""

Ints = NDArray[np.int64]


def communities(
    tag_sets: Sequence[Iterable[str]],
    weights: dict[str, float],
    *,
    is_large: bool = False,
    settled: Sequence[Sequence[int]] = (),
) -> list[list[int]]:
    """Return the communities of episodes as ascending places in `tag_sets`, singletons included.

    Each connected component is divided on its own, so a change in one component does not move communities in another.

    Parameters
    ----------
    weights : dict of str to float
        As returned by `tag_weights`.
    is_large : bool
        Whether the project has enough episodes to tell rare tags from frequent ones.
    settled : sequence of sequence of int
        Episodes that already form groups. A group stays together while it has a common topic, and is merged with others
        only if the merged group shares all that it had in common: small gains in modularity do not change groups.
    """
    from scipy.sparse import csgraph  # imported here because few commands compress

    if not tag_sets:
        return []
    graph = overlap(tag_sets, weights)
    least, least_settled = (_RARE, _RARE_ENOUGH) if is_large else (0.0, 0.0)
    units, is_core, matrix = _contracted(graph, _cores(graph, settled, least_settled))
    _, of_part = csgraph.connected_components(matrix, directed=False)
    found: list[list[int]] = []
    waiting = list(_split(np.arange(len(units)), matrix, of_part.astype(np.int64)))
    while waiting:
        inside, matrix = waiting.pop()
        vertices = np.concatenate([units[unit] for unit in inside.tolist()])
        own = vertices[vertices < len(graph.vertices)]  # the other units are hubs for tag pairs
        cores = np.flatnonzero(is_core[inside])
        said = [units[unit] for unit in inside[cores].tolist()]
        labels = None
        if len(inside) > 1 and not _is_one(graph, own, said, least):
            topics = _topics(graph, said)
            if topics.max(initial=0) > 0:
                labels = _by_core(matrix, cores, topics)
            elif len(cores) or len(inside) > _ALWAYS_ONE:
                labels = _divided(matrix)
            if labels is None and len(cores):
                labels = _by_core(matrix, cores, np.arange(len(cores)))
        if labels is None:
            found.append(sorted(place for vertex in own.tolist() for place in graph.vertices[vertex]))
        else:
            waiting.extend(_split(inside, matrix, labels))
    return sorted(filter(None, found))


def _common(graph: Overlap, own: Ints) -> Ints:
    """Return the tags of more than half of the episodes."""
    tags, size = graph.tags[own], graph.size[own]
    has = tags >= 0
    codes, place = np.unique(tags[has], return_inverse=True)
    counts = np.bincount(place, weights=np.repeat(size, has.sum(axis=1)), minlength=len(codes))
    common: Ints = codes[counts * 2 > size.sum()]
    return common


def _says_something(graph: Overlap, own: Ints, least_weight: float) -> bool:
    """Return whether most episodes share two tags, the weightiest of which weighs enough."""
    if len(own) <= 1:
        return True
    common = _common(graph, own)
    return len(common) > 1 and float(graph.weights[common].max()) >= least_weight


def _is_one(graph: Overlap, own: Ints, cores: Sequence[Ints], least_weight: float) -> bool:
    """Return whether vertices have a common topic that keeps everything the cores among them share."""
    if not _says_something(graph, own, least_weight):
        return False
    common = _common(graph, own) if len(cores) > 1 else np.zeros(0, dtype=np.int64)
    return len(cores) < 2 or all(bool(np.isin(_common(graph, core), common).all()) for core in cores)


def _cores(graph: Overlap, settled: Sequence[Sequence[int]], least_weight: float) -> list[Ints]:
    """Return the vertices of each group that still has a common topic, without those that left it.

    A vertex that shares half of the topic stays while two tags link it with one that shares it all: this avoids
    rewriting stable generalisations on each run.
    """
    vertex_of = {place: vertex for vertex, places in enumerate(graph.vertices) for place in places} if settled else {}
    cores = []
    for group in filter(len, settled):
        own = np.unique(np.array([vertex_of[place] for place in group], dtype=np.int64))
        if _says_something(graph, own, least_weight):
            shared = np.isin(graph.tags[own], _common(graph, own)).sum(axis=1)
            core, near = own[shared > 1], own[shared == 1]
            cores.append(np.union1d(core, near[_overlap_any(graph, near, core)]))
    return [core for core in cores if len(core)]


def _overlap_any(graph: Overlap, some: Ints, others: Ints) -> NDArray[np.bool_]:
    """Return which vertices share two tags with any of the others."""
    codes = np.unique(graph.tags[some])
    codes = codes[codes >= 0]
    both = _incidence(graph.tags[some], codes) @ _incidence(graph.tags[others], codes).T
    return np.asarray((both > 1).any(axis=1))


def _incidence(tags: Ints, codes: Ints) -> NDArray[np.float32]:
    """Return the incidence matrix of vertices and ascending tag codes: shape (vertices, codes), 0 or 1."""
    found = np.zeros((len(tags), len(codes)), dtype=np.float32)
    if len(codes):
        place = np.searchsorted(codes, tags).clip(max=len(codes) - 1)
        vertex, column = np.nonzero(codes[place] == tags)
        found[vertex, place[vertex, column]] = 1
    return found


def _contracted(graph: Overlap, cores: Sequence[Ints]) -> tuple[list[Ints], NDArray[np.bool_], sparse.csr_matrix]:
    """Return the graph with each core contracted to one unit: vertices by unit, which units are cores, the units' matrix."""
    from scipy import sparse
    from scipy.sparse import csgraph

    extent = graph.matrix.shape[0]
    in_core = np.zeros(extent, dtype=np.bool_)
    for core in cores:
        in_core[core] = True
    pairs = np.array([(core[0], other) for core in cores for other in core[1:]], dtype=np.int64).reshape(-1, 2)
    if not len(pairs):
        return list(np.arange(extent)[:, None]), in_core, graph.matrix
    joins = sparse.csr_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(extent, extent))  # type: ignore[no-untyped-call]
    many, unit_of = csgraph.connected_components(joins, directed=False)
    belongs = sparse.csr_matrix((np.ones(extent), (np.arange(extent), unit_of)), shape=(extent, many))  # type: ignore[no-untyped-call]
    order = np.argsort(unit_of, kind="stable")
    units = np.split(order, np.cumsum(np.bincount(unit_of))[:-1])
    is_core = np.bincount(unit_of, weights=in_core) > 0
    return units, is_core, sparse.csr_matrix(belongs.T @ graph.matrix @ belongs)  # type: ignore[no-untyped-call]


def _topics(graph: Overlap, cores: Sequence[Ints]) -> Ints:
    """Return a topic number for each core; cores with the same topic share it."""
    said = [tuple(_common(graph, core).tolist()) for core in cores]
    number = {tags: place for place, tags in enumerate(dict.fromkeys(said))}
    return np.array([number[tags] for tags in said], dtype=np.int64)


def _by_core(matrix: sparse.csr_matrix, cores: Ints, topics: Ints) -> Ints:
    """Return for each unit the topic of the core that it is linked with most; units without a link form a group."""
    rest = int(topics.max()) + 1
    labels: Ints = np.full(matrix.shape[0], rest, dtype=np.int64)
    if rest > 1:  # a single one has no common topic
        weight = matrix[:, cores]
        linked = np.asarray(weight.max(axis=1).todense()).ravel() > 0
        labels[linked] = topics[np.asarray(weight.argmax(axis=1)).ravel()[linked]]
    labels[cores] = topics
    return labels


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
