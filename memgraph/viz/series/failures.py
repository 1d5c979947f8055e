"""What failed, and when: a task, where the builds' names tell which one they were trials at; else an error, by its fingerprint.

One task is one task, whatever was said of it: trials of it that were told in other words, or met other errors, failed at the same. So of
builds whose names tell the task, the outcome counts, and not what their memories say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from memgraph.fold.history.builds import task_of_build
from memgraph.fold.history.lives import History, Life

SUCCESS = "success"


class Which(NamedTuple):
    """A failure, wherever it comes back.

    Attributes
    ----------
    project_id : str
        Empty for none.
    name : str
        The task, or the fingerprint.
    is_task : bool
    """

    project_id: str
    name: str
    is_task: bool = False


class Failure(NamedTuple):
    """That something failed: when, in which order that was recorded, and what."""

    at: str
    seq: int
    which: Which


def failures(history: History, lives: Mapping[str, Life], counts: Callable[[str], bool]) -> list[Failure]:
    """Return every failure, in the order in which they happened: once for each build in which it was met.

    Parameters
    ----------
    lives : mapping of str to Life
        The memories that count, by id.
    counts : callable
        Tells whether the builds of a project do.
    """
    found: dict[tuple[Which, str], Failure] = {}
    for (project_id, name), build in history.builds.items():
        task = task_of_build(name)
        if task is not None and build.outcome != SUCCESS and counts(project_id):
            which = Which(project_id, task, is_task=True)
            found[which, f"build {name}"] = Failure(build.at, build.seq, which)
    for memory_id, life in lives.items():
        if life.type == "episodic":
            for which, at, key in _told(history, memory_id, life):
                found.setdefault((which, key), Failure(at, life.seq, which))
    return sorted(found.values(), key=lambda failure: failure[:2])


def _told(history: History, memory_id: str, life: Life) -> Iterator[tuple[Which, str, str]]:
    """Yield what failed by what a memory says, when, and a key that is the same where two memories tell of one failure."""
    if life.fingerprint is None:
        return
    project_id = life.project_id or ""
    same = Which(project_id, life.fingerprint)
    known = [name for name in life.builds if (project_id, name) in history.builds]
    for name in known:
        if task_of_build(name) is None:
            yield same, history.builds[project_id, name].at, f"build {name}"
    if not known:
        for which in told_since(history, life):
            yield which, life.at, f"memory {memory_id}"
    yield from ((same, at, f"again {memory_id} {number}") for number, at in enumerate(life.again))


def told_since(history: History, life: Life) -> dict[Which, str]:
    """Return the failures that a memory tells of, each with since when; none of one without a fingerprint."""
    if life.fingerprint is None:
        return {}
    project_id = life.project_id or ""
    found: dict[Which, str] = {}
    for name in life.builds:
        task, build = task_of_build(name), history.builds.get((project_id, name))
        which = Which(project_id, task or life.fingerprint, is_task=task is not None)
        at = max(build.at, life.at) if build else life.at
        found[which] = min(at, found.get(which, at))
    if life.again or not life.builds:
        found.setdefault(Which(project_id, life.fingerprint), life.at)
    return found
