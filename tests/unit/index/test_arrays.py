"""The flat parts of the index, compared with plain dictionaries and lists."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memgraph.index import arrays
from memgraph.index.arrays import GrowingArray, Multimap, Names, Sequences

keys = st.integers(0, 6)
values = st.integers(0, 6)
weights = st.sampled_from([-3, -1, 1, 2, 7])
pairs = st.tuples(keys, values, weights)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), pairs),
        st.tuples(st.just("remove_value"), values),
        st.tuples(st.just("remove_key"), keys),
        st.tuples(st.just("remove"), pairs),
        st.tuples(st.just("remove_all"), pairs),
        st.tuples(st.just("get"), keys),
        st.tuples(st.just("snapshot"), st.none()),
    ),
    max_size=30,
)


class Model:
    """A dict of lists of (value, weight)."""

    def __init__(self) -> None:
        self.lists: dict[int, list[tuple[int, int]]] = defaultdict(list)

    def add(self, key: int, value: int, weight: int) -> None:
        self.lists[key].append((value, weight))

    def keep(self, wanted: Any) -> None:
        for key, entries in self.lists.items():
            self.lists[key] = [entry for entry in entries if wanted(key, *entry)]


def content(multimap: Multimap, key: int) -> list[tuple[int, int]]:
    found, weighed = multimap.get(key)
    return list(zip(found.tolist(), weighed.tolist(), strict=True))


@settings(max_examples=200)
@given(steps=steps, floor=st.sampled_from([0, 3, 1_000]))
def test_a_multimap_behaves_like_a_dict_of_lists(steps: list[tuple[str, Any]], floor: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(arrays, "_SHORT_TAIL", floor)
        multimap, model = Multimap(), Model()
        for step, given_ in steps:
            if step == "add":
                multimap.add(*given_)
                model.add(*given_)
            elif step == "remove_value":
                multimap.remove_value(given_)
                model.keep(lambda _key, value, _weight, gone=given_: value != gone)
            elif step == "remove_key":
                multimap.remove_key(given_)
                model.keep(lambda key, _value, _weight, gone=given_: key != gone)
            elif step == "remove_all":
                multimap.remove(*given_[:2])
                model.keep(lambda key, value, _weight, gone=given_: (key, value) != gone[:2])
            elif step == "remove":
                multimap.remove(*given_)
                model.keep(lambda key, value, weight, gone=given_: (key, value, weight) != gone)
            elif step == "get":
                assert content(multimap, given_) == model.lists[given_]
            else:
                multimap = Multimap(multimap.arrays())
        for key in range(9):
            assert content(multimap, key) == model.lists[key]
        for weight in (-3, -1, 1, 2, 7):
            expected = sorted(
                (key, value) for key, entries in model.lists.items() for value, w in entries if w == weight
            )
            found = multimap.pairs(weight)
            assert sorted(zip(found[0].tolist(), found[1].tolist(), strict=True)) == expected
            expected = [pair for pair in expected if pair[1] in {2, 5}]
            found = multimap.pairs(weight, to=np.isin(np.arange(7), [2, 5]))
            assert sorted(zip(found[0].tolist(), found[1].tolist(), strict=True)) == expected
        every = sorted((key, *entry) for key, entries in model.lists.items() for entry in entries)
        assert sorted(zip(*(part.tolist() for part in multimap.every()), strict=True)) == every
        stored = multimap.arrays()
        assert stored["offsets"][-1] == len(stored["values"]) == len(stored["weights"]) == len(every)
        assert np.all(stored["weights"] != 0)


def test_an_unknown_key_has_no_values() -> None:
    multimap = Multimap()
    assert content(multimap, 5) == content(multimap, -1) == []
    multimap.add(2, 1, 1)
    multimap.arrays()
    multimap.add(2, 2, 1)
    assert content(multimap, -1) == content(multimap, 3) == content(multimap, 10**6) == []


@given(parts=st.lists(st.lists(st.integers(-5, 5), max_size=200), max_size=6))
def test_a_growing_array_behaves_like_a_list(parts: list[list[int]]) -> None:
    array, model = GrowingArray(np.int64), []
    for part in parts:
        array.extend(np.array(part, dtype=np.int64))
        model.extend(part)
        assert array.values.tolist() == model
        assert len(array) == len(model)
    again = GrowingArray(np.int64, array.values)
    again.extend(np.array([1]))
    assert array.values.tolist() == model


def test_elements_can_be_assigned() -> None:
    array = GrowingArray(np.float64)
    array.extend(np.array([1.0]))
    array.values[0] = 2.5
    assert array.values.tolist() == [2.5]


def test_names_get_codes_in_the_order_of_first_use() -> None:
    names = Names()
    assert [names.code(name) for name in ("b", "a", "b", "")] == [0, 1, 0, 2]
    assert (names.find("a"), names.find("x"), names.find(None)) == (1, -1, -1)
    assert len(names) == 3
    assert Names(names.names).code("a") == 1


def put(sequences: Sequences, slot: int, codes: list[int]) -> None:
    sequences.put(*(np.array(one, dtype=np.int32) for one in ([slot], [len(codes)], codes)))


def test_replaced_lists_are_not_in_the_next_snapshot() -> None:
    sequences = Sequences()
    for slot, codes in enumerate(([1, 2, 3], [], [4, 5])):
        put(sequences, slot, codes)
    for number in range(50):
        put(sequences, 0, [number, number])
    sequences.clear(2)

    data = sequences.arrays()

    assert data["codes"].tolist() == [49, 49]
    for kept in (sequences, Sequences(data)):
        assert [kept.get(slot).tolist() for slot in range(3)] == [[49, 49], [], []]
    put(sequences, 2, [7])
    assert [sequences.get(slot).tolist() for slot in range(3)] == [[49, 49], [], [7]]
