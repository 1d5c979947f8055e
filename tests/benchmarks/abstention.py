"""Whether a recall knows that it does not know: questions put to their own store and to another one."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from memgraph import RetrievalResult
from tests.benchmarks.corpus import Doc
from tests.benchmarks.data import SEED
from tests.benchmarks.memgraph_system import MemGraphSystem
from tests.benchmarks.questions import Harness
from tests.benchmarks.tables import table

_SET = "locomo"
UNANSWERABLE = "adversarial"
_MASK = "they"
_WORDS = ("high", "medium", "low", "none")
_RESAMPLES = 1_000
_SAMPLE = 20
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Answers:
    """What the questions' own stores and the others answered, in the order of the questions."""

    own: list[RetrievalResult]
    foreign: list[RetrievalResult]


def measure(system: MemGraphSystem, harness: Harness, half: str, say: Say) -> list[dict[str, Any]]:
    """Put each answerable question to its own conversation and to another; print and return how well certainty tells them apart.

    The names of all speakers are masked, so that nobody is known by a name alone; then once more as they stand. Recall is the
    public `retrieve`, which records accesses; certainty must not depend on them, and a sample is asked again to see that.
    """
    stores, questions = harness.load(_SET, half)
    answerable = [question for question in questions if question["cat"] != UNANSWERABLE]
    names = {str(doc["speaker"]) for docs in stores.values() for doc in docs}
    found, rows = [], []
    for how in ("masked", "as they stand"):
        texts = [masked(one["text"], names) if how == "masked" else str(one["text"]) for one in answerable]
        answers = _asked(system, stores, [str(one["store"]) for one in answerable], texts)
        figures = {"names": how, "questions": len(answerable), **_figures(answers)}
        found.append(figures)
        rows += [[f"names {how}, {kind} store", *_cells(figures, kind)] for kind in ("own", "foreign")]
        interval = ", ".join(f"{bound:.3f}" for bound in figures["interval"])
        say(f"names {how}: {len(answerable)} questions, AUROC {figures['auroc']:.3f} [{interval}]")
    for line in table(["certainty, % of the questions", *_WORDS], rows):
        say(line)
    return found


def auroc(own: ArrayLike, foreign: ArrayLike) -> float:
    """Return how often an own score is above a foreign one, ties counted half: the area under the ROC curve."""
    others = np.sort(np.asarray(foreign))
    below, up_to = (np.searchsorted(others, np.asarray(own), side=side) for side in ("left", "right"))
    return float((below + up_to).mean() / 2 / len(others))


def masked(text: str, names: set[str]) -> str:
    """Return a question without names, so that no store knows it by a name alone."""
    alternatives = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.sub(rf"\b(?:{alternatives})\b", _MASK, text)


def _asked(system: MemGraphSystem, stores: dict[str, list[Doc]], own: Sequence[str], texts: Sequence[str]) -> Answers:
    chance = random.Random(SEED)
    foreign = [chance.choice([store for store in stores if store != name]) for name in own]
    answers = Answers(
        [_ask(system, stores[name], text) for name, text in zip(own, texts, strict=True)],
        [_ask(system, stores[name], text) for name, text in zip(foreign, texts, strict=True)],
    )
    for name, text, before in list(zip(own, texts, answers.own, strict=True))[:_SAMPLE]:
        if _ask(system, stores[name], text).certainty_score != before.certainty_score:
            raise RuntimeError(f"access records have moved the certainty of {text!r}")
    return answers


def _ask(system: MemGraphSystem, docs: Sequence[Doc], text: str) -> RetrievalResult:
    return system.graph_of(docs).recall(text)


def _figures(answers: Answers) -> dict[str, Any]:
    own, foreign = (np.array([one.certainty_score for one in kind]) for kind in (answers.own, answers.foreign))
    chance = np.random.default_rng(SEED)
    drawn = (chance.integers(len(own), size=len(own)) for _ in range(_RESAMPLES))  # a question with both its answers
    areas = [auroc(own[places], foreign[places]) for places in drawn]
    return {
        "auroc": auroc(own, foreign),
        "interval": [float(bound) for bound in np.percentile(areas, (2.5, 97.5))],
        "own": _shares(answers.own),
        "foreign": _shares(answers.foreign),
    }


def _shares(answers: Sequence[RetrievalResult]) -> dict[str, float]:
    counts = Counter(one.certainty for one in answers)
    return {word: counts[word] / len(answers) for word in _WORDS}


def _cells(figures: dict[str, Any], kind: str) -> list[str]:
    return [f"{100 * figures[kind][word]:.1f}" for word in _WORDS]
