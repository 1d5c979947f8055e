"""The version of rankings: every setting that a score depends on changes it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memgraph.errors import InvalidInputError
from memgraph.model.results.retrieval import RetrievalConfig
from memgraph.retrieval.version import ranking_of, settings_version
from memgraph.store.commit.records import VectorModel

BUDGET = {"max_episodic", "max_semantic", "max_procedural", "max_tokens", "max_task_items", "max_related"}


def changed(name: str, value: Any) -> RetrievalConfig:
    for other in ("rrf",) if isinstance(value, str) else (value + 1, value + 0.01, value / 2):
        try:
            return RetrievalConfig.parse({name: other})
        except InvalidInputError:
            continue
    raise AssertionError(f"no other value of {name} is valid")


@pytest.mark.parametrize("name", sorted(RetrievalConfig.model_fields.keys() - BUDGET))
def test_every_setting_of_the_ranking_changes_it(name: str) -> None:
    default = RetrievalConfig(dense_weight=0.45)
    assert settings_version(changed(name, getattr(default, name))) != settings_version(default)


@pytest.mark.parametrize("name", sorted(BUDGET))
def test_the_budget_does_not(name: str) -> None:
    assert settings_version(RetrievalConfig.parse({name: 7})) == settings_version(RetrievalConfig())


def test_the_floor_does() -> None:
    assert len({settings_version(RetrievalConfig(), floor) for floor in (None, 0.5, 0.7)}) == 3


WEIGHTS = sorted(
    name for name, field in RetrievalConfig.model_fields.items() if name not in BUDGET and name != "fusion"
)
RANGES = {"answer_factor": st.floats(1.0, 2.0)}
"""The others take every value of up to 0.05, or are whole numbers."""


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_two_values_of_a_weight_share_a_version(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(WEIGHTS))
    is_whole = isinstance(getattr(RetrievalConfig(), name), int)
    values = st.integers(1, 10_000) if is_whole else RANGES.get(name, st.floats(1e-6, 0.05))
    one, other = data.draw(st.lists(values, min_size=2, max_size=2, unique=True))
    none = VectorModel("none", 0)
    first, second = (ranking_of(RetrievalConfig.parse({name: value}), 0.7, none) for value in (one, other))
    assert first.settings_version != second.settings_version
    assert first.configuration_sha256 != second.configuration_sha256
    assert (first.weights[name], second.weights[name]) == (one, other)
    assert first.settings_version.endswith(first.configuration_sha256[:8])


def test_a_ranking_names_every_weight() -> None:
    assert sorted(ranking_of(RetrievalConfig(dense_weight=0.45), None, VectorModel("none", 0)).weights) == WEIGHTS
