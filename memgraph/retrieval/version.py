"""Version of rankings, which is recorded with every retrieval: scores of different versions are not comparable."""

from __future__ import annotations

import hashlib
import json
import re
from functools import lru_cache
from typing import Any

from memgraph.diagnostics.records import Ranking
from memgraph.index.analyser import ANALYSER_VERSION
from memgraph.model.results.retrieval import RetrievalConfig
from memgraph.store.commit.records import VectorModel

STAGES_VERSION = "10"
"""Version of stages and terms, increased when rankings change at equal settings."""
_BUDGET = {"max_episodic", "max_semantic", "max_procedural", "max_tokens", "max_task_items", "max_related"}
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._:/@+=-]|^[^A-Za-z0-9]")
_MAX_NAME_CHARS = 200


@lru_cache(maxsize=64)
def ranking_of(config: RetrievalConfig, floor: float | None, vectors: VectorModel) -> Ranking:
    """Return the versions of everything that a ranking depends on."""
    settings = _scoring(config, floor)
    return Ranking(
        settings_version=settings_version(config, floor),
        configuration_sha256=_sha256(settings),
        analyser_version=ANALYSER_VERSION,
        embedder=_NOT_IN_NAMES.sub("_", vectors.name)[:_MAX_NAME_CHARS].lstrip("_") or "none",
        dimension=vectors.dimension,
        fusion=config.fusion,
        weights={
            name: float(value) for name, value in _scoring(config, None).items() if isinstance(value, int | float)
        },
        floor=floor,
    )


def versions_of(ranking: Ranking, vectors: VectorModel) -> dict[str, str]:
    """Return the versions that a recall's result names."""
    return {
        "settings": ranking.settings_version,
        "analyser": str(ranking.analyser_version),
        "embedder": vectors.name or "none",
    }


def settings_version(config: RetrievalConfig, floor: float | None = None) -> str:
    """Return the version that is recorded with every retrieval, such as ``2-1f0c9a3e``: results of different versions are not comparable.

    It is `STAGES_VERSION` and a hash of the floor, if there is one, and of all settings of `config` except the budget, which a query may
    override. Records of earlier releases have the number alone.
    """
    return f"{STAGES_VERSION}-{_sha256(_scoring(config, floor))[:8]}"


def _scoring(config: RetrievalConfig, floor: float | None) -> dict[str, Any]:
    return config.model_dump(mode="json", exclude=_BUDGET) | ({} if floor is None else {"floor": floor})


def _sha256(settings: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
