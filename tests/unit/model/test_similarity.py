"""Cosine similarity at its edges."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph.errors import InvalidInputError
from memgraph.model.similarity import cosine_similarity


@pytest.mark.parametrize(
    "wrong", [[1.0, float("nan")], [1.0, float("inf")], ["a", "b"], "ab", [1j, 1], [[1.0, 2.0]], None, [None, 1.0]]
)
def test_an_invalid_vector_is_refused_by_name(wrong: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        cosine_similarity([1.0, 2.0], wrong)

    assert caught.value.field == "b"


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_large_and_small_numbers_are_handled(scale: float) -> None:
    assert cosine_similarity([scale, scale], [scale, scale]) == pytest.approx(1.0)
    assert cosine_similarity([scale, 0.0], [0.0, scale]) == 0.0
