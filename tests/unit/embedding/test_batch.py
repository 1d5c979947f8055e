"""One bad text or vector does not affect the others; a model that does not work at all fails at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from memgraph.embedding import NoEmbedder, embed_each, embed_query
from memgraph.errors import EmbeddingError
from memgraph.testing import FakeEmbedder

DIMENSION = 64
Made = Callable[[Any, Sequence[str]], Any]


class Distorted(FakeEmbedder):
    """A fake with altered answers."""

    def __init__(self, distort: Made) -> None:
        super().__init__(DIMENSION)
        self._distort = distort

    def embed(self, texts: Sequence[str]) -> Any:
        return self._distort(super().embed(texts), texts)

    def embed_query(self, text: str) -> Any:
        return self._distort(super().embed([text]), [text])[0]


def refuse(made: Any, texts: Sequence[str]) -> Any:
    if any("bad" in text for text in texts):
        raise EmbeddingError("cannot be read")
    return made


def with_row(row: Any) -> Made:
    def distort(made: Any, texts: Sequence[str]) -> Any:
        rows: list[Any] = list(made)
        for place, text in enumerate(texts):
            if "bad" in text:
                rows[place] = row
        return rows

    return distort


def one_less(made: Any, texts: Sequence[str]) -> Any:
    return made[:-1] if any("bad" in text for text in texts) else made


FAULTS: dict[str, Made] = {
    "refused": refuse,
    "NaN": with_row(np.full(DIMENSION, np.nan, dtype=np.float32)),
    "infinite": with_row(np.full(DIMENSION, np.inf)),
    "zero": with_row(np.zeros(DIMENSION, dtype=np.float32)),
    "too short": with_row(np.ones(3, dtype=np.float32)),
    "no vector": with_row(None),
    "one vector less": one_less,
}
TEXTS = ["one", "two", "a bad one", "three", "four", "another bad one", "five"]


@pytest.mark.parametrize("distort", FAULTS.values(), ids=FAULTS)
def test_failing_texts_are_found_and_the_others_get_vectors(distort: Made) -> None:
    found = embed_each(Distorted(distort), TEXTS)

    expected = FakeEmbedder(DIMENSION).embed(TEXTS)
    for text, vector, right in zip(TEXTS, found, expected, strict=True):
        if "bad" in text:
            assert isinstance(vector, EmbeddingError)
        else:
            assert not isinstance(vector, EmbeddingError)
            assert vector.tobytes() == right.tobytes()
            assert not vector.flags.writeable


@pytest.mark.parametrize("distort", FAULTS.values(), ids=FAULTS)
def test_a_single_failing_text_is_not_blamed_on_the_model(distort: Made) -> None:
    (found,) = embed_each(Distorted(distort), ["a bad one"])
    assert isinstance(found, EmbeddingError)


@pytest.mark.parametrize("distort", FAULTS.values(), ids=FAULTS)
def test_a_query_gets_a_usable_vector_or_an_error(distort: Made) -> None:
    embedder = Distorted(distort)
    assert embed_query(embedder, "good").tobytes() == FakeEmbedder(DIMENSION).embed_query("good").tobytes()
    if distort is not one_less:
        with pytest.raises(EmbeddingError):
            embed_query(embedder, "bad")


@pytest.mark.parametrize("answer", [np.nan, 0.0], ids=["NaN", "zero"])
def test_a_model_with_only_invalid_vectors_is_at_fault(answer: float) -> None:
    with pytest.raises(EmbeddingError, match="fake"):
        embed_each(Distorted(lambda made, _texts: np.full_like(made, answer)), TEXTS)


def test_an_unavailable_model_is_not_tried_with_every_text() -> None:
    asked = []

    def fail(_made: Any, texts: Sequence[str]) -> Any:
        asked.append(len(texts))
        raise EmbeddingError("the model is not installed")

    with pytest.raises(EmbeddingError, match="not installed"):
        embed_each(Distorted(fail), ["text"] * 64)
    assert len(asked) == 2


def test_no_texts_cause_no_call() -> None:
    embedder = FakeEmbedder(DIMENSION)
    assert embed_each(embedder, []) == []
    assert embedder.calls == []
    assert embed_each(NoEmbedder(), []) == []


def test_the_error_of_text_only_mode_names_the_setting() -> None:
    with pytest.raises(EmbeddingError, match="embedding_model"):
        embed_each(NoEmbedder(), ["text"])
