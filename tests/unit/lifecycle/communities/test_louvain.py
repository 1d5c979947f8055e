"""Overlap and communities: exact against networkx where the graph is written out, linear where it is not."""

from __future__ import annotations

import random
from itertools import combinations
from math import log

import networkx as nx
import numpy as np
import pytest

from memgraph.lifecycle.communities import LARGE_FROM, MOST_TAGS, communities, overlap, tag_weights
from tests.growth import assert_grows_linearly


def written_out(tag_sets: list[list[str]], weights: dict[str, float]) -> nx.Graph:
    """Return the overlap as design §5 says it, pair by pair."""
    graph = nx.Graph()
    graph.add_nodes_from(range(len(tag_sets)))
    for one, other in combinations(range(len(tag_sets)), 2):
        shared = set(tag_sets[one]) & set(tag_sets[other]) & weights.keys()
        if len(shared) > 1:
            graph.add_edge(one, other, weight=sum(weights[tag] for tag in shared))
    return graph


def drawn(number: int, *, seed: int = 0, tags: int = 60) -> list[list[str]]:
    """Draw tags as they are used: a few of them often, most of them rarely."""
    chance = random.Random(seed)
    names, weights = [f"t{n}" for n in range(tags)], [1 / (n + 1) for n in range(tags)]
    return [sorted(set(chance.choices(names, weights, k=chance.randint(1, 6)))) for _ in range(number)]


def test_rarer_shared_tags_weigh_more() -> None:
    weights = tag_weights([["a", "b"], ["a", "c"], ["a"], ["a", "b"]])
    assert weights == pytest.approx({"a": log(2), "b": log(3), "c": log(5)})


@pytest.mark.parametrize(("many", "is_left_out"), [(LARGE_FROM - 1, False), (LARGE_FROM, True)])
def test_in_a_large_project_a_tag_on_most_episodes_is_ignored(many: int, is_left_out: bool) -> None:
    weights = tag_weights([["all", f"t{n % 2}"] for n in range(many)])
    assert ("all" not in weights) is is_left_out
    assert "t1" in weights  # on half of them, and no more


@pytest.mark.parametrize("seed", range(4))
def test_the_sparse_graph_equals_the_explicit_one(seed: int) -> None:
    tag_sets = drawn(120, seed=seed)
    weights = tag_weights(tag_sets)
    graph, expected = overlap(tag_sets, weights), written_out(tag_sets, weights)
    assert graph.matrix.shape[0] == len(graph.vertices)  # no vertex stands for a pair of tags
    dense = graph.matrix.toarray()
    for (one, left), (other, right) in combinations(enumerate(graph.vertices), 2):
        total = sum(expected.get_edge_data(a, b, {"weight": 0})["weight"] for a in left for b in right)
        assert dense[one, other] == dense[other, one] == pytest.approx(total)
    for vertex, places in enumerate(graph.vertices):
        inside = sum(expected.get_edge_data(a, b, {"weight": 0})["weight"] for a, b in combinations(places, 2))
        assert dense[vertex, vertex] == pytest.approx(2 * inside)


def test_only_the_rarest_tags_of_an_episode_are_compared() -> None:
    many = [f"m{n}" for n in range(MOST_TAGS + 8)]
    tag_sets = [[*many, "rare", "rarer"], ["rare", "rarer"], *([many[n % 20]] for n in range(40))]
    graph = overlap(tag_sets, tag_weights(tag_sets))
    assert graph.matrix[0, 1] > 0
    assert graph.tags.shape[1] == MOST_TAGS


@pytest.mark.parametrize("seed", range(3))
def test_components_are_divided_as_well_as_by_networkx(seed: int) -> None:
    """Before it is divided further for want of something to say, a part has no less modularity than networkx's best."""
    chance = random.Random(seed)
    topics = [[f"{topic}{n}" for n in range(5)] for topic in "abcdefgh"]
    tag_sets = [[*chance.sample(topics[n % 8], 3), *chance.sample(topics[(n + 1) % 8], n % 2)] for n in range(160)]
    weights = tag_weights(tag_sets)
    found = communities(tag_sets, weights)
    expected = written_out(tag_sets, weights)
    best = max(nx.community.modularity(expected, nx.community.louvain_communities(expected, seed=n)) for n in range(5))
    assert nx.community.modularity(expected, found) > best - 0.02
    assert sum(len(members) > 1 for members in found) == 8


def test_episodes_that_share_fewer_than_two_tags_are_singletons() -> None:
    tag_sets = [["a", "b"], ["a", "c"], ["b", "c"], [], ["a"]]
    assert communities(tag_sets, tag_weights(tag_sets)) == [[0], [1], [2], [3], [4]]


def test_communities_partition_the_episodes_whatever_the_order() -> None:
    tag_sets = drawn(300)
    weights = tag_weights(tag_sets)
    found = communities(tag_sets, weights)
    assert sorted(place for members in found for place in members) == list(range(300))
    assert communities(tag_sets, weights) == found


def test_a_community_has_a_common_topic() -> None:
    """Most of its episodes have two tags in common, one of them a rare one; what is small cannot be divided."""
    tag_sets = drawn(2_000, tags=300)
    for members in communities(tag_sets, tag_weights(tag_sets), is_large=True):
        common = sorted(
            (sum(tag in tag_sets[place] for place in members) for tag in {t for m in members for t in tag_sets[m]}),
            reverse=True,
        )
        assert len({tuple(tag_sets[place]) for place in members}) <= 6 or common[1] * 2 > len(members)


def test_the_same_two_tags_on_everything_are_one_community() -> None:
    tag_sets = [["a", "b", f"own{n}"] for n in range(2_000)]
    assert len(communities(tag_sets, {"a": 0.7, "b": 0.7})) == 1


def test_frequent_tags_cost_no_quadratic_time() -> None:
    """Ten thousand episodes of five tags with the same two among them: written out, that is fifty million pairs."""
    chance = random.Random(1)
    tag_sets = [["a", "b", *(f"t{chance.randrange(500)}" for _ in range(3))] for _ in range(10_000)]
    weights = dict.fromkeys({tag for tags in tag_sets for tag in tags}, 1.0)
    graph = overlap(tag_sets, weights)
    assert graph.matrix.nnz < 120 * len(tag_sets)
    extent = len(graph.vertices)
    assert graph.matrix.shape[0] > extent  # the frequent pair has a vertex of its own
    pairs = extent * (extent - 1) / 2 * 2.0
    hub = graph.matrix[extent:, :].sum(axis=1).max()
    assert hub == pytest.approx(pairs, rel=0.01)  # which weighs what the pairs do


@pytest.mark.long
def test_a_hundred_thousand_episodes() -> None:
    chance = np.random.default_rng(0)
    rank = np.arange(1, 2_001)
    share = (1 / rank**1.07) / (1 / rank**1.07).sum()
    tag_sets = [
        [f"t{code}" for code in set(chance.choice(2_000, size=chance.integers(2, 7), p=share).tolist())]
        for _ in range(100_000)
    ]
    assert_grows_linearly(
        lambda many: communities(tag_sets[:many], tag_weights(tag_sets[:many]), is_large=True), len(tag_sets)
    )


def test_leftovers_that_share_nothing_are_singletons() -> None:
    tags = ["abe", "bd", "bc", "ade", "be", "bcd", "ad", "ab", "acd", "ade"]
    found = communities([list(one) for one in tags], tag_weights(tags))
    assert sorted(place for members in found for place in members) == list(range(len(tags)))
