"""Commit sessions: one author's sitting becomes one build, and a revert refers to what it undoes.

A build is a run of consecutive commits by one author, each within `MAX_GAP` of the one before, at most `MAX_COMMITS`.
Its id derives from its first commit, so when a log grows at its end, only the last build changes or builds are added.
One commit is processed at a time, and one build held.

A commit that undoes another marks that one as a *failure*: this was unknown when the original was made, so the revert
is the evidence. A commit that restores what was undone is a success, work in progress is partial, all else is a
success.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from memgraph.extraction.readers.history.commits import Commit, RecentCommits
from memgraph.extraction.readers.source import SourceRecord, beginning, shortened, storable_text
from memgraph.model.build import BuildEventLog, BuildTask, TaskOutcome
from memgraph.model.timestamps import to_iso
from memgraph.text import lazy_re as re

MAX_GAP = timedelta(hours=3)
MAX_COMMITS = 20
_MAX_SUBJECT_CHARS = 2_000
_MAX_BODY_CHARS = 50_000
_MAX_PATH_CHARS = 4_096
_MAX_FILES = 10_000

_SHA = re.compile(r"[0-9a-f]{7,64}")
_PARTIAL = re.compile(r"\[?\(?(?:wip|draft|partial(?:ly)?|incomplete|work in progress)\b", re.IGNORECASE)


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
        tasks.append(_task(commit, recent))
        recent.add(commit)
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


def _task(commit: Commit, recent: RecentCommits) -> BuildTask:
    subject = commit.subject
    undoing = recent.undoing(commit)
    again = undoing.is_again if undoing else False
    mended = None if undoing else recent.mended_by(commit)
    taken_back = undoing.origin if undoing and not again else None if undoing else recent.reversed_by(commit)
    outcome: TaskOutcome = "success"
    if undoing and not again:
        outcome = "failure"
    elif not undoing and _PARTIAL.match(subject):
        outcome = "partial"
    title = beginning(storable_text(undoing.title), _MAX_SUBJECT_CHARS) if undoing else ""
    files = commit.files[:_MAX_FILES]
    renamed = [file for file in files if file.status == "R"]
    return BuildTask(
        task_id=commit.sha,
        agent_name=storable_text(commit.author).strip()[:400] or "unknown",
        description=beginning(storable_text(subject), _MAX_SUBJECT_CHARS),
        output=storable_text(shortened(commit.body, _MAX_BODY_CHARS)),
        outcome=outcome,
        files_changed=_paths(file.path for file in files),
        files_removed=_paths(file.path for file in files if file.status == "D"),
        files_renamed=dict(
            zip(_paths(file.was for file in renamed), _paths(file.path for file in renamed), strict=False)
        ),
        occurred_at=to_iso(commit.when),
        reverts=undoing.commit if undoing else None,
        restores=undoing.origin if undoing and again else None,
        reverts_subject="" if again else title,
        restores_subject=title if again else "",
        removes=recent.removed_by(commit),
        takes_back=taken_back if undoing is None or taken_back != undoing.commit else None,
        repeats=recent.repeated_by(commit),
        release=commit.release or None,
        mends=mended,
        mends_subject=beginning(storable_text(recent.subject_of(mended)), _MAX_SUBJECT_CHARS) if mended else "",
    )


def _paths(files: Iterable[str]) -> list[str]:
    return [path for file in files if (path := storable_text(file)[:_MAX_PATH_CHARS])]
