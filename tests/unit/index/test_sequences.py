"""The terms of each memory, in order."""

from __future__ import annotations

from memgraph.index.sequences import Sequences


def test_replaced_lists_are_not_in_the_next_snapshot() -> None:
    sequences = Sequences()
    for slot, codes in enumerate(([1, 2, 3], [], [4, 5])):
        sequences.put(slot, codes)
    for number in range(50):
        sequences.put(0, [number, number])
    sequences.clear(2)

    data = sequences.arrays()

    assert data["codes"].tolist() == [49, 49]
    for kept in (sequences, Sequences(data)):
        assert [kept.get(slot).tolist() for slot in range(3)] == [[49, 49], [], []]
    sequences.put(2, [7])
    assert [sequences.get(slot).tolist() for slot in range(3)] == [[49, 49], [], [7]]
