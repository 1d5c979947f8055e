"""Version of rankings, which is recorded with every retrieval: scores of different versions are not comparable."""

from __future__ import annotations

import hashlib
import json

from memgraph.model.results.retrieval import RetrievalConfig

STAGES_VERSION = "5"
"""Version of stages and terms, increased when rankings change at equal settings."""
_BUDGET = {"max_episodic", "max_semantic", "max_procedural", "max_tokens", "max_task_items", "max_related"}


def settings_version(config: RetrievalConfig, floor: float | None = None) -> str:
    """Return the version that is recorded with every retrieval, such as ``2-1f0c9a3e``: results of different versions are not comparable.

    It is `STAGES_VERSION` and a hash of the floor, if there is one, and of all settings of `config` except the budget, which a query may
    override. Records of earlier releases have the number alone.
    """
    settings = config.model_dump(mode="json", exclude=_BUDGET) | ({} if floor is None else {"floor": floor})
    scoring = json.dumps(settings, sort_keys=True)
    return f"{STAGES_VERSION}-{hashlib.sha256(scoring.encode()).hexdigest()[:8]}"
