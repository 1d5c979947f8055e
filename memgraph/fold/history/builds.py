"""Parses the build names that the readers assign: the task of a trial, and sittings of commits."""

from __future__ import annotations

import re

_TRIAL = re.compile(r"(.+)-trial-\d+@[0-9a-f]{8}")
_SITTING = re.compile(r"git-[0-9a-f]{12}")


def task_of_build(build_id: str) -> str | None:
    """Return the name of the task that a build was a trial of, the same for every trial; None if it was no trial."""
    found = _TRIAL.fullmatch(build_id)
    return found[1] if found else None


def is_attempt(build_id: str) -> bool:
    """Return whether a build has an outcome of its own; a sitting of commits has none."""
    return _SITTING.fullmatch(build_id) is None
