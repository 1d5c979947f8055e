"""Finds the failures in a history: of a task, if build names identify it, otherwise of an error, by its fingerprint.

Trials of the same task count as the same failure even if their texts or errors differ. So for builds whose names identify the task,
the outcome of the build counts, not the text of its memories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from memgraph.fold.history import History, Life, task_of_build

SUCCESS = "success"


class Which(NamedTuple):
    """The identity of a failure across its occurrences.

    Attributes
    ----------
    project_id : str
        Empty for no project.
    name : str
        The task or the fingerprint.
    is_task : bool
    """

    project_id: str
    name: str
    is_task: bool = False


class Failure(NamedTuple):
    """One occurrence of a failure: its time, the sequence number of its event, and its identity."""

    at: str
    seq: int
    which: Which


def failures(history: History, lives: Mapping[str, Life], counts: Callable[[str], bool]) -> list[Failure]:
    """Return every failure in order of time, once for each build in which it occurred.

    Parameters
    ----------
    lives : mapping of str to Life
        The counted memories, by id.
    counts : callable
        Returns whether the builds of a project are counted.
    """
    found: dict[tuple[Which, str], Failure] = {}
    for (project_id, name), build in history.builds.items():
        task = task_of_build(name)
        if task is not None and build.outcome != SUCCESS and counts(project_id):
            which = Which(project_id, task, is_task=True)
            found[which, f"build {name}"] = Failure(build.at, build.seq, which)
    for memory_id, life in lives.items():
        if life.type == "episodic":
            for which, at, key in _reported(history, memory_id, life):
                found.setdefault((which, key), Failure(at, life.seq, which))
    return sorted(found.values(), key=lambda failure: failure[:2])


def _reported(history: History, memory_id: str, life: Life) -> Iterator[tuple[Which, str, str]]:
    """Yield the failures that a memory reports, with their times and a key that is equal for two reports of one failure."""
    if life.fingerprint is None:
        return
    project_id = life.project_id or ""
    same = Which(project_id, life.fingerprint)
    known = [name for name in life.builds if (project_id, name) in history.builds]
    for name in known:
        if task_of_build(name) is None:
            yield same, history.builds[project_id, name].at, f"build {name}"
    if not known:
        for which in reported_since(history, life):
            yield which, life.at, f"memory {memory_id}"
    yield from ((same, at, f"again {memory_id} {number}") for number, at in enumerate(life.again))


def reported_since(history: History, life: Life) -> dict[Which, str]:
    """Return the failures that a memory reports and since when; empty without a fingerprint."""
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
