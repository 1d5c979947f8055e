"""What it costs to ask an agent about its sessions, measured on the latest of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean

from memgraph.disk.files import open_regular
from memgraph.errors import SourceError
from memgraph.extraction.llm.asking import cautious_tokens
from memgraph.extraction.readers import TranscriptReader
from memgraph.interfaces.refusals import one_source
from memgraph.lifecycle.orders import MAX_ASKED, MAX_EXCERPT_CHARS, Subject, order_for, sheet_of, subjects_of
from memgraph.model.base import Count, Model
from memgraph.text import lazy_re as re

ANSWER_TOKENS = 1_000
"""Of one answer with its corrections; the mean of 20, about five sessions of others, is 976."""
_SESSIONS = 3
_TAIL_BYTES = 4_000_000
_USED = re.compile(rb'"(?:usage|last_token_usage)"\s*:\s*\{[^{}]*')
_READ = re.compile(rb'"(?:cache_creation_|cache_read_)?input_tokens"\s*:\s*(\d{1,9})')


class AskingCost(Model):
    """What it costs to ask an agent about one of its sessions, in tokens of its model: estimates, one for each three bytes.

    Attributes
    ----------
    sessions, asked : int
        The latest sessions, on which it was measured, and those of them that the agent would have been asked about, of which the figures
        are the means. If none: the most that a session can cost.
    read, written : int
        The work orders, and the answers to them.
    context : int
        The most that the session had in its context, as its program noted it: each request of the agent reads it again. 0 if it is not known.
    """

    sessions: Count = 0
    asked: Count = 0
    read: Count
    written: Count
    context: Count = 0


def cost_of_asking(transcripts: Sequence[Path]) -> AskingCost:
    """Return what asking costs, measured on the latest sessions of those with these transcripts."""
    sessions = {path.with_suffix("") for path in transcripts}
    own = [path for path in transcripts if sessions.isdisjoint(path.parents)]  # not those of their subagents
    latest = sorted(own, key=_changed_at)[-_SESSIONS:]
    asked = [(path, orders) for path in latest if (orders := _orders_of(path))]
    if not asked:
        longest = Subject("long session", "", "x" * MAX_EXCERPT_CHARS, 0, "2026-01-01T00:00:00.000Z", "agent")
        return AskingCost(sessions=len(latest), read=MAX_ASKED * _tokens_of(longest), written=MAX_ASKED * ANSWER_TOKENS)
    contexts = [found for path, _ in asked if (found := _context_of(path))]
    return AskingCost(
        sessions=len(latest),
        asked=len(asked),
        read=round(fmean(sum(map(_tokens_of, orders)) for _, orders in asked)),
        written=round(fmean(len(orders) for _, orders in asked) * ANSWER_TOKENS),
        context=round(fmean(contexts or [0])),
    )


def _orders_of(path: Path) -> list[Subject]:
    """Return what the agent would be asked about a session."""
    try:
        with one_source(path):
            logs = {one.build.build_id: one.build for one in TranscriptReader(path).records(None) if one.build}
    except SourceError:
        return []
    found = [subject for log in logs.values() for subject in subjects_of(log)]
    return sorted(found, key=lambda one: (-one.value, one.id))[:MAX_ASKED]


def _tokens_of(subject: Subject) -> int:
    return cautious_tokens(sheet_of(order_for(subject)).prompt)


def _context_of(path: Path) -> int:
    """Return the most input tokens of a session's requests, as its program noted them; 0 if it did not."""
    with suppress(OSError), open_regular(path) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
        return max(sum(map(int, _READ.findall(noted))) for noted in [b"", *_USED.findall(file.read(_TAIL_BYTES))])
    return 0


def _changed_at(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0
