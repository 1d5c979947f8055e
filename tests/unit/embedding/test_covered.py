"""Which texts the packaged model has words for."""

from __future__ import annotations

import pytest

from memgraph.embedding.onnx import is_covered


@pytest.mark.parametrize(
    "text",
    [
        "fix the build with CMake on an old compiler",
        "write a Dockerfile for the scheduler",
        "nested routers lose the fallback handler, fix",
        "How do I descale an espresso machine with citric acid?",
        "NullPointerException in UserServiceImpl.getUserById",
        "fix the café page",
        "",
    ],
)
def test_english_is_covered(text: str) -> None:
    assert is_covered(text)


@pytest.mark.parametrize(
    "text",
    [
        "Erkläre mir die Regeln von Schach",
        "Repariere den Fehler im Parser",
        "Quel vin choisir avec du poisson grillé",
        "Escribe un poema sobre el otoño para mi abuela",
        "Hoe bak ik een zuurdesembrood",
        "Napisz wiersz o jesieni dla mojej babci",
        "写一首关于秋天的诗",
        "秋についての詩を書いてください",
        "Как испечь хлеб на закваске",
        "اكتب قصيدة عن الخريف",
    ],
)
def test_other_languages_are_not(text: str) -> None:
    assert not is_covered(text)


@pytest.mark.parametrize("text", ["404", "#90417", "fix #90417", "GHSA-2024-27182", "close BOX-9"])
def test_ids_with_hardly_a_word_are_not(text: str) -> None:
    assert not is_covered(text)
    assert is_covered(f"why does the page of the shop not load since {text}")


def test_a_long_text_costs_a_glance() -> None:
    assert is_covered("the same words again " * 100_000)
