"""Commit sessions: one author's sitting becomes one build, and a revert refers to what it undoes.

A build is a run of consecutive commits by one author, each within `MAX_GAP` of the one before, at most `MAX_COMMITS`.
Its id derives from its first commit, so when a log grows at its end, only the last build changes or builds are added.
One commit is processed at a time, and one build held.

A commit that undoes another marks that one as a *failure*: this was unknown when the original was made, so the revert
is the evidence. A commit that restores what was undone is a success, work in progress is partial, all else is a
success.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from memgraph.extraction.readers.source import SourceRecord, beginning, shortened, storable_text
from memgraph.model.build import BuildEventLog, BuildTask, TaskOutcome
from memgraph.model.timestamps import to_iso

MAX_GAP = timedelta(hours=3)
MAX_COMMITS = 20
RECENT_COMMITS = 5_000
_MAX_SUBJECT_CHARS = 2_000
_MAX_SUBJECT_LINES = 3
_MAX_BODY_CHARS = 50_000
_MAX_PATH_CHARS = 4_096
_MAX_FILES = 10_000

_SHA = re.compile(r"[0-9a-f]{7,64}")
_REVERTS_SHA = re.compile(r"\bThis reverts commits? ([0-9a-f]{7,64})", re.IGNORECASE)
_REVERT_SUBJECT = re.compile(r'revert:?\s+"(.{1,1000})"', re.IGNORECASE)
_REINSTATES = re.compile(r'(?:reapply\b|reland\b|re-?apply\b|revert:?\s+"revert\b)', re.IGNORECASE)
_PARTIAL = re.compile(r"\[?\(?(?:wip|draft|partial(?:ly)?|incomplete|work in progress)\b", re.IGNORECASE)
_CONTINUES = re.compile(r" {0,3}(?:[a-z][a-z']{0,20}[\s.,;)]|[a-z][a-z']{0,20}$|\()(?!.{0,30}#\d)(?!\s?:)")
_TRAILER = re.compile(
    r"(?:co-authored-by|signed-off-by|reviewed-by|acked-by|tested-by|reported-by|suggested-by|approved-by|cc|change-id|"
    r"reviewed-on|git-svn-id|pull-request-resolved|differential revision|generated with|🤖 generated)\b.{0,3}:?\s",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit from either source; `message` is complete, `when` is its author's time."""

    sha: str
    author: str
    when: datetime
    message: str
    files: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """The message's first line, with the lines that continue its sentence, as git shows it."""
        return _parted(self.message)[0]


class RecentCommits:
    """The last `limit` commits by subject and sha, so that a revert finds what it undoes in an earlier build."""

    def __init__(self, limit: int = RECENT_COMMITS) -> None:
        self._limit = limit
        self._subject_of: dict[str, str] = {}
        self._sha_of: dict[str, str] = {}

    def add(self, sha: str, subject: str) -> None:
        """Record a commit as the latest with its subject."""
        subject = subject[:_MAX_SUBJECT_CHARS]
        self._sha_of.pop(subject, None)
        self._sha_of[subject] = sha
        self._subject_of[sha] = subject
        if len(self._subject_of) > self._limit:
            oldest = next(iter(self._subject_of))
            forgotten = self._subject_of.pop(oldest)
            if self._sha_of.get(forgotten) == oldest:
                del self._sha_of[forgotten]

    def undone_by(self, commit: Commit) -> str | None:
        """Return the sha that `commit` reverts according to its body, else according to the subject it quotes."""
        if match := _REVERTS_SHA.search(commit.message[:_MAX_BODY_CHARS]):
            named = match[1].lower()
            if named in self._subject_of or len(named) >= 40:
                return named
            return next((sha for sha in reversed(self._subject_of) if sha.startswith(named)), named)
        if match := _REVERT_SUBJECT.match(commit.subject):
            return self._sha_of.get(match[1])
        return None


def is_sha(text: str) -> bool:
    """Return whether `text` is a commit id that is safe to pass to git."""
    return _SHA.fullmatch(text) is not None


def grouped(
    commits: Iterable[tuple[Commit | str, str]], *, project_id: str, cursor: str, recent: RecentCommits
) -> Iterator[SourceRecord]:
    """Yield a record per build of these commits, in order.

    Parameters
    ----------
    commits : iterable of (Commit or str, str)
        Oldest first, each with the cursor that means "done up to and including this one". A string is the reason why a
        commit could not be read.
    project_id : str
        Project of the builds.
    cursor : str
        The cursor before the first of them.
    recent : RecentCommits
        The preceding commits; extended.
    """
    group: list[Commit] = []
    settled = reached = cursor
    for commit, at in commits:
        if isinstance(commit, str):
            yield SourceRecord(None, settled, 1, commit)
            continue
        if group and not _continues(group, commit):
            yield _record(group, reached, project_id, recent)
            settled, group = reached, []
        group.append(commit)
        reached = at
    if group:
        # the last group may still grow: only a full one is final
        yield _record(group, reached if len(group) == MAX_COMMITS else settled, project_id, recent)


def _continues(group: list[Commit], commit: Commit) -> bool:
    last = group[-1]
    # rebased commits keep their authors' times, which may run backwards
    return len(group) < MAX_COMMITS and commit.author == last.author and abs(commit.when - last.when) <= MAX_GAP


def _record(group: list[Commit], cursor: str, project_id: str, recent: RecentCommits) -> SourceRecord:
    try:
        return SourceRecord(_build(group, project_id, recent), cursor, len(group))
    except ValueError as error:  # an invalid value costs its own build, not the run
        return SourceRecord(None, cursor, len(group), f"commit {group[0].sha[:12]}: {error}")


def _build(group: list[Commit], project_id: str, recent: RecentCommits) -> BuildEventLog:
    tasks = []
    for commit in group:
        tasks.append(_task(commit, recent.undone_by(commit)))
        recent.add(commit.sha, commit.subject)
    outcomes = {task.outcome for task in tasks}
    times = sorted(commit.when for commit in group)
    return BuildEventLog(
        build_id=f"git-{group[0].sha[:12]}",
        project_id=project_id,
        tasks=tasks,
        build_outcome=outcomes.pop() if len(outcomes) == 1 else "partial",
        started_at=to_iso(times[0]),
        completed_at=to_iso(times[-1]),
        source="git",
    )


def _task(commit: Commit, undone: str | None) -> BuildTask:
    subject = commit.subject
    outcome: TaskOutcome = "success"
    if not _REINSTATES.match(subject):
        if undone or _REVERT_SUBJECT.match(subject):
            outcome = "failure"
        elif _PARTIAL.match(subject):
            outcome = "partial"
    return BuildTask(
        task_id=commit.sha,
        agent_name=storable_text(commit.author).strip()[:400] or "unknown",
        description=beginning(storable_text(subject), _MAX_SUBJECT_CHARS),
        output=_body(_parted(commit.message)[1]),
        outcome=outcome,
        files_changed=[path for file in commit.files[:_MAX_FILES] if (path := storable_text(file)[:_MAX_PATH_CHARS])],
        occurred_at=to_iso(commit.when),
        reverts=undone,
    )


def _parted(message: str) -> tuple[str, str]:
    """Return the subject and the rest of a message. A subject that was wrapped continues in lower case."""
    first, _, rest = message.strip().partition("\n")
    subject = first.strip()
    for _ in range(_MAX_SUBJECT_LINES - 1):
        line, _, after = rest.partition("\n")
        if subject.endswith((".", ":", ";", "!")) or not _CONTINUES.match(line) or _TRAILER.match(line.strip()):
            break
        subject, rest = f"{subject} {line.strip()}", after
    return subject, rest


def _body(rest: str) -> str:
    """Return the text after the subject, without trailers, which name people and tools instead of what happened."""
    lines = (line.rstrip() for line in rest.splitlines() if not _TRAILER.match(line.strip()))
    return storable_text(shortened("\n".join(lines).strip("\n").rstrip(), _MAX_BODY_CHARS))
