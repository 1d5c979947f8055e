"""Records: what a source says happened, each kept whole as evidence, whether or not it is worth a memory."""

from __future__ import annotations

from typing import Any

from memgraph.model.base import MAX_CONTENT_CHARS, MAX_ITEMS
from memgraph.model.build import BuildEventLog, BuildTask, Candidate
from memgraph.model.memory import RECORD_SOURCE, EpisodicMemory, FileChange
from memgraph.text.cutting import whole_sentences

RELEVANCE = 0.5
"""Relevance of a new record: it fades below that at which it is archived before any memory of its day does."""


def record_of(log: BuildEventLog, task: BuildTask) -> Candidate | None:
    """Return the record of a commit; None for what only brings in another one, and for a log of another source.

    Its text is the whole message without trailers and markup, up to `MAX_CONTENT_CHARS` and cut at a sentence.
    """
    if log.source != "git" or task.repeats:
        return None
    memory = EpisodicMemory(
        content=whole_sentences(" ".join((task.text or task.description).split()), MAX_CONTENT_CHARS),
        outcome="negative" if task.outcome == "failure" else "positive",
        occurred_at=task.occurred_at,
        agents_involved=[task.agent_name],
        source_event_ids=[f"{log.build_id}/{task.task_id}"[:400]],
        source=RECORD_SOURCE,
        trust_class=log.trust_class,
        relevance_score=RELEVANCE,
        git_commit=task.task_id,
        **commit_fields(task),
    )
    return Candidate(key=f"{task.task_id[:380]}:{RECORD_SOURCE}", memory=memory)


def commit_fields(task: BuildTask) -> dict[str, Any]:
    """Return what is known of a commit, as fields of a memory (`CommitFields`)."""
    changes = [
        FileChange(path=one.path, kind=one.kind, added=one.added or 0, removed=one.removed or 0, was=one.was)
        for one in sorted(task.changes, key=lambda one: one.kind == "M")[
            :MAX_ITEMS
        ]  # what moved, came or went is not left out
    ]
    return {
        "change_kind": task.kind,
        "changes": changes,
        "undoes": (task.undoes or [*filter(None, [task.reverts])])[:MAX_ITEMS],
        "mends": task.mends,
        "closes": [str(number) for number in task.closes[:MAX_ITEMS]],
        "release": task.release,
    }
