"""The version of rankings: every setting that a score depends on changes it."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph.errors import InvalidInputError
from memgraph.model.results.retrieval import RetrievalConfig
from memgraph.retrieval.version import settings_version

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
    default = RetrievalConfig()
    assert settings_version(changed(name, getattr(default, name))) != settings_version(default)


@pytest.mark.parametrize("name", sorted(BUDGET))
def test_the_budget_does_not(name: str) -> None:
    assert settings_version(RetrievalConfig.parse({name: 7})) == settings_version(RetrievalConfig())


def test_the_floor_does() -> None:
    assert len({settings_version(RetrievalConfig(), floor) for floor in (None, 0.5, 0.7)}) == 3
