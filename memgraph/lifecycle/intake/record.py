"""Records: what a source says happened, each kept whole as evidence, whether or not it is worth a memory."""

from __future__ import annotations

from memgraph.model.base import MAX_CONTENT_CHARS
from memgraph.model.build import BuildEventLog, BuildTask, Candidate
from memgraph.model.memory import RECORD_SOURCE, EpisodicMemory
from memgraph.text.cutting import whole_sentences

RELEVANCE = 0.5
"""Relevance of a new record: it fades below that at which it is archived before any memory of its day does."""
_MOST_FILES = 200
_CHARS_READ = 4 * MAX_CONTENT_CHARS


def record_of(log: BuildEventLog, task: BuildTask) -> Candidate | None:
    """Return the record of a commit; None for what only brings in another one, and for a log of another source.

    Its text is the whole message, up to `MAX_CONTENT_CHARS` and cut at a sentence.
    """
    if log.source != "git" or task.repeats:
        return None
    said = " ".join(f"{task.description}\n{task.output[:_CHARS_READ]}".split())
    return Candidate(
        key=f"{task.task_id[:380]}:{RECORD_SOURCE}",
        memory=EpisodicMemory(
            content=whole_sentences(said, MAX_CONTENT_CHARS),
            outcome="negative" if task.outcome == "failure" else "unknown",
            occurred_at=task.occurred_at,
            event_date=task.occurred_at,
            agents_involved=[task.agent_name],
            source_event_ids=[f"{log.build_id}/{task.task_id}"[:400]],
            source=RECORD_SOURCE,
            trust_class=log.trust_class,
            reason="a commit of the history",
            relevance_score=RELEVANCE,
            files_involved=task.files_changed[:_MOST_FILES],
            git_commit=task.task_id,
        ),
    )
