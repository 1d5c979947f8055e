"""Preview of a collection: what it would do now, and which past recalls it would have changed. Writes nothing."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import numpy as np

from memgraph.lifecycle.collection.collect import Survey, counted
from memgraph.lifecycle.run.runner import View
from memgraph.model.results.maintenance import ChangedRecall, CollectionPreview, FadedMemory
from memgraph.model.timestamps import from_iso, to_iso
from memgraph.store import AgentMemoryStore
from memgraph.text.cutting import preview

RECENT_DAYS = 90
_SHOWN = 100

_RECALLS = "MATCH (r:Recall) WHERE r.retrieved_at >= timestamp($since) RETURN count(*) AS number"
_RETURNED = """
MATCH (r:Recall)-[e:RECALLED]->(m:Memory) WHERE r.retrieved_at >= timestamp($since) AND m.id IN $ids
RETURN r.id AS query_id, r.retrieved_at AS retrieved_at, r.agent_name AS agent_name, r.project_id AS project_id,
       m.id AS memory_id, e.score AS score
ORDER BY retrieved_at DESC, query_id, e.rank
"""


def preview_collection(store: AgentMemoryStore) -> CollectionPreview:
    """Return what `collect` would do now, and the recalls of the last 90 days that returned memories it would remove."""
    with store.reader.frozen():
        survey = Survey(View(store.reader, store.config, store.now(), is_locked=False))
        index, going = survey.index, list(survey.going())
        names = [index.ids.names[slot] for slot in going]
        was_used = index.column("access_count")[going] > 0 if going else np.zeros(0, dtype=np.bool_)
        done = Counter(
            floors_set=len(survey.without_floor()),
            floors_cleared=len(survey.with_floor()),
            summarised=len(survey.unsummarised()),
        )
        deletes = store.config.garbage_collection == "delete"
        done["deleted"] = int((~survey.is_evidence[going]).sum()) if deletes and going else 0
        done["archived"] = len(going) - done["deleted"]
        result = counted(survey, done)
        relevance = dict(zip(names, survey.relevance[going].tolist(), strict=True))
        shown = [
            FadedMemory(
                id=memory.id,
                type=memory.type,
                content=preview(memory.content),
                relevance=relevance[memory.id],
                access_count=memory.access_count,
                last_accessed_at=memory.last_accessed_at,
            )
            for memory in store.read_memories(names[:_SHOWN])
        ]
    since = to_iso(from_iso(store.now()) - timedelta(days=RECENT_DAYS))
    used = [name for name, was in zip(names, was_used.tolist(), strict=True) if was]
    return CollectionPreview(
        **result.model_dump(),
        memory_ids=names,
        memories=shown,
        recalls=_changed_recalls(store, used, since),
        recalls_since=since,
        recalls_in_all=store.cypher(_RECALLS, since=since)[0]["number"],
    )


def _changed_recalls(store: AgentMemoryStore, memory_ids: list[str], since: str) -> list[ChangedRecall]:
    """Return the retrievals since then that returned one of these memories, newest first."""
    if not memory_ids:
        return []
    found: dict[str, ChangedRecall] = {}
    for row in store.cypher(_RETURNED, since=since, ids=memory_ids):
        recall = ChangedRecall(
            query_id=row["query_id"],
            retrieved_at=row["retrieved_at"],
            agent_name=row["agent_name"],
            project_id=row["project_id"],
            scores={row["memory_id"]: row["score"]},
        )
        known = found.setdefault(recall.query_id, recall)
        known.scores.update(recall.scores)
    return list(found.values())
