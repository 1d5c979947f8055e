"""Learning from sessions: read the transcripts that wait, record what became of recalls, render the overviews."""

from __future__ import annotations

import time
from pathlib import Path

from memgraph.disk.lock import ProcessLock
from memgraph.errors import MemGraphError, SourceError
from memgraph.extraction.readers import TranscriptReader
from memgraph.facade import MemGraph
from memgraph.interfaces.agents.jobs import Job, has_jobs, recover_jobs, take_jobs
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
    tried: set[Job] = set()
    while has_jobs(Path(home), client) and lock.try_acquire():
        try:
            recover_jobs(Path(home), client)
            with MemGraph.open(home, keys_home=keys_home) as memory:
                before = len(tried)
                learn_from_jobs(memory, client, tried)
        finally:
            lock.release()
        if len(tried) == before:
            return  # what waits now has failed in this run


def learn_from_jobs(memory: MemGraph, client: str, tried: set[Job] | None = None) -> None:
    """Read the transcripts that wait. One that fails is logged and waits for the next run.

    Parameters
    ----------
    tried : set of Job, optional
        The jobs that failed in this run: they are left waiting, and added to.
    """
    failed = set() if tried is None else tried
    home = memory.store.config.home
    projects: set[str] = set()

    def is_done(job: Job) -> bool:
        if job in failed:
            return False
        try:
            projects.update(learn_from(memory, client, job))
        except SourceError as error:
            logger.warning("a transcript was not read: %s", error.loggable)
        except MemGraphError as error:
            logger.warning("a transcript waits: %s", error.loggable)
            failed.add(job)
            return False
        return True

    take_jobs(home, client, is_done)
    memory.consolidation.compress_if_due()
    memory.distillation.request()
    for project in sorted(projects):
        render_overview(memory, project, agent=client)
    remove_old(home, client, now=time.time())


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
