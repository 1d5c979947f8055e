"""What each part of a recall earns: the same questions with one part switched off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from memgraph import RetrievalConfig
from tests.benchmarks.memgraph_system import MemGraphSystem
from tests.benchmarks.questions import HEADLINES, Harness
from tests.benchmarks.tables import table

WITHOUT: dict[str, dict[str, Any]] = {
    "vectors": {"dense_weight": 0.0},
    "text": {"dense_weight": 1.0},
    "scores in the fusion (RRF instead)": {"fusion": "rrf"},
    "length correction": {"length_constant_words": 1e-6},
    "speakers named": {"speaker_weight": 0.0},
    "things named": {"name_weight": 0.0},
    "tags named": {"tag_weight": 0.0},
    "times named": {"time_weight": 0.0},
    "triggers": {"trigger_weight": 0.0},
    "NEXT altogether": {"neighbour_span": 0},
    "NEXT: what neighbours say": {"context_weight": 0.0},
    "NEXT: neighbours' scores": {"neighbour_weight": 0.0},
    "NEXT: second step": {"neighbour_span": 1},
    "questions and answers": {"answer_factor": 1.0, "question_discount": 0.0},
    "MENTIONS": {"mention_weight": 0.0},
    "MENTIONS and things named": {"mention_weight": 0.0, "name_weight": 0.0},
    "SUPPORTS, DERIVED_FROM": {"evidence_weight": 0.0},
    "CONTRADICTS": {"contradiction_weight": 0.0},
    "landmarks": {"landmark_weight": 0.0},
    "bounded terms": {"relevance_weight": 0.0, "use_weight": 0.0, "negative_weight": 0.0},
}
"""What is taken away, and the settings that do so."""
Say = Callable[[str], None]


def measure(system: MemGraphSystem, harness: Harness, sets: Sequence[str], half: str, say: Say) -> list[dict[str, Any]]:
    """Put the questions once with everything, once without each part; print and return the differences in points.

    A negative difference is what a part earns. Intervals are the harness's: 95 % of a seeded bootstrap over the questions.
    """
    system.config = None
    whole = {name: harness.evaluate(system, name, half) for name in sets}
    heads = ["without", *(f"{name} {HEADLINES[name][0][1]}" for name in sets)]
    figures = [f"{100 * whole[name]['agg']['ALL'][HEADLINES[name][0][1]]:.1f}" for name in sets]
    rows, found = [["(nothing)", *figures]], []
    for part, settings in WITHOUT.items():
        system.config = RetrievalConfig(**settings)
        cells = []
        for name in sets:
            metric = HEADLINES[name][0][1]
            less = harness.evaluate(system, name, half)
            difference, low, high = harness.difference(whole[name], less, metric)
            found.append(
                {"without": part, "set": name, "metric": metric, "points": difference, "low": low, "high": high}
            )
            is_same = less["per"] == whole[name]["per"]
            cells.append("–" if is_same else harness.distance(whole[name], less, metric))
        rows.append([part, *cells])
        say(f"without {part}: {', '.join(cells)}")
    system.config = None
    say("")
    for line in table(heads, rows):
        say(line)
    return found
