"""Learning from sessions: read waiting transcripts, record the outcomes of recalls, render the overviews."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path

from memgraph.config import home_of
from memgraph.disk.lock import ProcessLock
from memgraph.errors import MemGraphError, SourceError
from memgraph.extraction.readers import TranscriptReader
from memgraph.facade import MemGraph
from memgraph.interfaces.agents.jobs import Job, recover_jobs, take_jobs, waiting_jobs
from memgraph.interfaces.agents.overview import render_overview
from memgraph.interfaces.agents.sessions import SessionLog, folder_of, remove_old
from memgraph.interfaces.agents.usage import uses_of
from memgraph.logs import logger_of

logger = logger_of(__name__)

_OPEN_OUTCOMES = {None, "", "pending"}


def learn(home: str, keys_home: str, client: str) -> None:
    """Open the store and read the transcripts that wait, unless another process does: then it reads them."""
    folder = folder_of(Path(home), client)
    lock = ProcessLock(folder / "learning.lock", "transcripts are being read")
    failed: set[Job] = set()
    # looks again after each run: who found the lock taken meanwhile has left its job to this process
    while waiting_jobs(Path(home), client) - failed and lock.try_acquire():
        try:
            recover_jobs(Path(home), client)
            place = None if home_of()[0] == Path(home) else home  # the environment's may be on a server
            with MemGraph.open(place, keys_home=keys_home) as memory:
                failed |= learn_from_jobs(memory, client, failed)
        finally:
            lock.release()


def learn_from_jobs(memory: MemGraph, client: str, skipped: Collection[Job] = ()) -> set[Job]:
    """Read the transcripts that wait. Return the jobs that failed: they are logged, and wait for the next run.

    Parameters
    ----------
    skipped : collection of Job
        Jobs to leave waiting.
    """
    failed: set[Job] = set()
    home = memory.store.config.home
    projects: set[str] = set()

    def is_done(job: Job) -> bool:
        if job in skipped:
            return False
        try:
            projects.update(learn_from(memory, client, job))
        except SourceError as error:
            logger.warning("a transcript was not read: %s", error.loggable)
        except Exception as error:  # noqa: BLE001 (one session never stops the others)
            reason = error.loggable if isinstance(error, MemGraphError) else type(error).__name__
            logger.warning("a transcript waits: %s", reason)
            failed.add(job)
            return False
        return True

    take_jobs(home, client, is_done)
    memory.consolidation.compress_if_due()
    memory.distillation.request()
    for project in sorted(projects):
        render_overview(memory, project, agent=client)
    remove_old(home, client, now=time.time())
    return failed


def learn_from(memory: MemGraph, client: str, job: Job) -> set[str]:
    """Read a session's transcript and those of its subagents from where the last run stopped; return their projects.

    Raises
    ------
    SourceError
        There is no transcript, or it cannot be read.
    """
    transcript = Path(job.transcript)
    projects = set()
    for path in (transcript, *sorted(transcript.with_suffix("").glob("**/*.jsonl"))):
        reader = TranscriptReader(path)
        memory.ingest(reader, compress=False)
        projects.add(reader.project_id)
    record_uses(memory, SessionLog(memory.store.config.home, client, job.session_id), transcript)
    return projects


def record_uses(memory: MemGraph, log: SessionLog, transcript: Path) -> None:
    """Record which recalled memories the agent used, as far as the transcript shows it, and the outcome if it does.

    Nothing is recorded of a recall of which no use can be seen, and of one whose outcome somebody has already stated.
    """
    recalls = log.recalls()
    if not recalls:
        return
    ids = list(dict.fromkeys(one for recall in recalls for one in recall.memory_ids))
    texts = {one.id: one.content for one in memory.store.read_memories(ids)}
    own = {one["query_id"]: one["outcome"] for one in log.records() if one["kind"] == "outcome"}
    for found in uses_of(transcript, recalls, texts):
        row = memory.store.reader.record("Recall", found.query_id)
        if row is None or row.get("outcome") not in {*_OPEN_OUTCOMES, own.get(found.query_id)}:
            continue
        memory.record_outcome(found.query_id, found.outcome, used=found.used)
        log.add("outcome", query_id=found.query_id, outcome=found.outcome)
