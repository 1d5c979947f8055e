"""What the names that the readers give to builds say of them: which task a trial was at, and what is a sitting of commits."""

from __future__ import annotations

import re

_TRIAL = re.compile(r"(.+)-trial-\d+@[0-9a-f]{8}")
_SITTING = re.compile(r"git-[0-9a-f]{12}")


def task_of_build(build_id: str) -> str | None:
    """Return what names the task that a build was a trial at, whichever trial; None if it was none."""
    found = _TRIAL.fullmatch(build_id)
    return found[1] if found else None


def is_attempt(build_id: str) -> bool:
    """Return whether a build has an outcome of its own: commits that were made in one sitting have none."""
    return _SITTING.fullmatch(build_id) is None
