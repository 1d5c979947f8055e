"""The forgetting curve: its presets, confirmation, and the time until collection."""

from __future__ import annotations

import pytest

import memgraph
from memgraph.model.relevance import WEEKLY, ForgettingCurveConfig, decayed

STRENGTH = ForgettingCurveConfig(preset="strength")


def test_strength_is_seed_2s() -> None:
    assert decayed(1.0, 7.0, rate=STRENGTH.rate("episodic")) == pytest.approx(0.95)
    assert decayed(1.0, 7.0, rate=STRENGTH.rate("semantic")) == pytest.approx(0.95)
    assert (STRENGTH.reinforcement_boost, STRENGTH.max_relevance, STRENGTH.deletion_threshold) == (0.1, 5.0, 0.1)
    assert STRENGTH.confirmed(1.0) == 1.5
    assert STRENGTH.confirmed(4.8) == 5.0


def test_relevance_is_seed_0s_and_the_default() -> None:
    default = ForgettingCurveConfig()
    assert default == ForgettingCurveConfig(preset="relevance")
    assert (default.decay_rate, default.reinforcement_boost, default.max_relevance) == (0.05, 0.2, 1.0)
    assert default.confirmed(0.8) == pytest.approx(0.9)


@pytest.mark.parametrize("given", [{"decay_rate": 0.2}, {"decayRate": 0.2}])
def test_given_values_override_the_preset(given: dict[str, float]) -> None:
    curve = ForgettingCurveConfig(preset="strength", **given)
    assert (curve.decay_rate, curve.knowledge_decay_rate, curve.max_relevance) == (0.2, WEEKLY, 5.0)


@pytest.mark.parametrize("preset", ["weakness", 3, ["strength"]])
def test_an_unknown_preset_is_refused(preset: object) -> None:
    with pytest.raises(memgraph.InvalidInputError, match="preset"):
        ForgettingCurveConfig(preset=preset)


def test_a_store_reads_the_preset_from_its_file(tmp_path, open_store) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "config.toml").write_text('[forgetting_curve]\npreset = "strength"\n')
    store = open_store()
    kept = store.insert_memory({"type": "semantic", "content": "Deploy on Tuesdays", "relevance_score": 4.95})
    assert store.record_access(kept.id).relevance_score == 5.0
    pipeline = memgraph.ConsolidationPipeline(store)
    new = store.insert_memory({"type": "semantic", "content": "Ship from the main branch", "relevance_score": 2.0})
    assert pipeline.merge(new, {"content": "Ship from main"}).relevance_score == pytest.approx(2.5)
