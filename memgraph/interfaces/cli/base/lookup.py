"""Computes what a reading command prints: in a running worker if there is one, otherwise in this process."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from memgraph.errors import ConfigError
from memgraph.interfaces.cli.base.opening import LOG_VARIABLE, opened
from memgraph.interfaces.cli.base.options import Settings
from memgraph.interfaces.cli.base.output import notice
from memgraph.interfaces.lookups import LOOKUPS

TIMEOUT_S = 10.0
GREETING_S = 1.0
"""A worker that does not greet in this time hangs; opening the store here is as quick as waiting for it."""
_WISHES = ("use", "start", "off")
F = TypeVar("F", bound=Callable[..., Any])


def with_worker(command: F) -> F:
    """Add ``--worker/--no-worker``."""
    return click.option(
        "--worker/--no-worker",
        default=True,
        help="Ask the store's worker if one runs (see `memgraph docs worker`).",
        show_default=True,
    )(command)


def looked_up(settings: Settings, name: str, given: Mapping[str, Any], *, uses_worker: bool) -> dict[str, Any]:
    """Return what the lookup of this name returns for these arguments, and print its notices.

    Raises
    ------
    MemGraphError
        As the lookup.
    Refused
        The worker refused it: the message is the same.
    """
    found = _from_worker(settings, name, given) if uses_worker else None
    if found is None:
        with _quick_start(), opened(settings, asks=True, embeds=True) as memory:
            found = LOOKUPS[name](memory, given)
    if hint := found.get("project_hint"):
        notice(hint)
    return found


@contextmanager
def _quick_start() -> Iterator[None]:
    """Spare a process that ends after one query what only pays off later: collecting garbage, and numpy's threads."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _from_worker(settings: Settings, name: str, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a running worker's answer; None if there is none, or if it would answer otherwise than this process."""
    from memgraph.interfaces.worker.place import USE_VARIABLE, place_of

    wish = os.environ.get(USE_VARIABLE) or "use"
    if wish not in _WISHES:
        raise ConfigError(f"{USE_VARIABLE} is {wish!r}; it must be one of {', '.join(_WISHES)}")
    is_given = settings.embedder is not None
    is_special = (
        settings.as_of is not None or settings.is_recorded or settings.verbosity or os.environ.get(LOG_VARIABLE)
    )
    if wish == "off" or is_given or is_special or (settings.justification is not None and settings.agent is None):
        return None
    place = place_of(settings.home)
    if place is None:
        return None
    from memgraph.interfaces.worker.client import WorkerAnsweredError, WorkerUnavailableError, look_up, start

    try:
        answer = look_up(place, name, given, timeout_s=TIMEOUT_S, greeting_s=GREETING_S)
    except WorkerUnavailableError as error:
        if wish == "start" and error.is_absent:
            start(place)  # for the next command: this one is as quick without it
        return None
    except WorkerAnsweredError as error:
        if not error.is_refusal:
            return None
        from memgraph.interfaces.cli.base.commands import Refused

        raise Refused(error.message) from None
    for line in answer["warnings"]:
        notice(line)
    found: dict[str, Any] = answer["found"]
    return found
