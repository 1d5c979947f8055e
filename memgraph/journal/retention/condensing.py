"""Condenses archived segments: their lines are written without signatures, and without the words of memories that no longer exist."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import orjson

from memgraph.journal.closed import files
from memgraph.journal.envelope import Event, assembled, canonical, is_unsigned
from memgraph.journal.journal import Journal
from memgraph.journal.purge.lines import is_purged
from memgraph.journal.replay import Committed
from memgraph.journal.retention.reduction import IsGone, reduced
from memgraph.ports import Progress


def condense(journal: Journal, names: Collection[str], is_gone: IsGone, progress: Progress | None = None) -> list[str]:
    """Condense the first segments of a journal, and return the names of those that were written. Needs the writer lock. Idempotent.

    Every event is verified before its segment is replaced. A segment is replaced as a whole, so a kill leaves it as it was or condensed.

    Parameters
    ----------
    names : collection of str
        The first segments, all before the baseline's.
    is_gone : callable
        See `reduced`.
    progress : callable, optional
        Called with (done, total) events.

    Raises
    ------
    JournalError
        An event is not what was signed, or the manifest or the proof of condensed segments cannot be trusted.
    StorageError
        The system refuses.
    """
    written = []
    for name, commits in _by_segment(journal, names):
        lines = list(_condensed(commits, is_gone))
        before = files.read_all(journal.folder, name)
        after = b"".join(line + b"\n" for line in lines)
        if after != before:
            journal.closed.forget([name], journal.signing_key, journal.ring.find)
            journal.condensed.replace(name, before, after, [journal.signing_key])
            written.append(name)
        if progress:
            progress(commits[-1].after.chain.seq, journal.tail.chain.seq)
    return written


def _by_segment(journal: Journal, names: Collection[str]) -> Iterator[tuple[str, list[Committed]]]:
    """Yield the verified commits of each of the first segments."""
    here, commits = "", list[Committed]()
    for commit in journal.replay(journal.start):
        segment = commit.after.position.segment
        if segment != here and commits:
            yield here, commits
            commits = []
        if segment not in names:
            return
        here = segment
        commits.append(commit)
    if commits:
        yield here, commits


def _condensed(commits: list[Committed], is_gone: IsGone) -> Iterator[bytes]:
    """Yield the lines of a segment, condensed. Only its ends keep a signature: that before it, and its last one."""
    lines = [line for commit in commits for line in commit.data.split(b"\n")[:-1]]
    events = {event.seq: event for commit in commits for event in commit.events}
    for number, line in enumerate(lines):
        envelope = orjson.loads(line)
        head: dict[str, Any] = envelope["head"]
        event: Event | None = events.get(head["seq"])
        if event is not None and (left := reduced(event, is_gone)) is not None:
            envelope["payload"], head["event_version"] = left, event.payload.VERSION
        head |= {"event_id": "", "key_id": "", "payload_sha256": ""}
        if number:
            head["prev_signature"] = ""
        signature = envelope["signature"] if number == len(lines) - 1 else ""
        salt = None if is_purged(line) else ""
        made = assembled(canonical(head), canonical(envelope["payload"]), salt, signature)
        assert is_unsigned(made)  # noqa: S101 - this form
        yield made
