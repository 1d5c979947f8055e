"""``memgraph-hook CLIENT``: hands an agent's event to the worker and prints the answer. Standard library only.

It never blocks a prompt and never fails: whatever goes wrong, it prints nothing and exits with 0.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any, NoReturn

from memgraph.interfaces.worker.client import WorkerAnsweredError, WorkerUnavailableError, ask
from memgraph.interfaces.worker.place import MAX_REQUEST_BYTES, Place, place_of

BUDGET_S = 3.0
"""Time for everything, if ``--budget`` does not say otherwise: a first recall may have to start the worker."""
_GREETING_S = 1.5
"""A worker that accepts and says nothing hangs: each of a session's hooks would wait for its whole budget otherwise."""
_HARD_STOP_S = 0.5
_DELIVERY_S = 60.0
"""Time for reporting a session's start to the worker afterwards: a large store opens slowly."""
_START = "SessionStart"
_LOSES_CONTEXT = frozenset({"clear", "compact"})
"""Sources of a start after which memories may be given again: the worker has to know before the next prompt."""
_USAGE = "usage: memgraph-hook CLIENT [--home DIR] [--budget SECONDS] < EVENT.json"


class _GivenUpError(Exception):
    """The hook has nothing to say; the message is for ``MEMGRAPH_LOG``."""


def main() -> NoReturn:
    """Run the ``memgraph-hook`` command."""
    try:
        client, home, budget_s = _arguments(sys.argv[1:])
        # what no time-out of ours covers, such as an input that never ends, ends here
        signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
        signal.setitimer(signal.ITIMER_REAL, budget_s + _HARD_STOP_S)
        _print(_answer(client, home, budget_s))
    except (_GivenUpError, WorkerUnavailableError, WorkerAnsweredError) as error:
        _say(str(error))
    except Exception as error:  # noqa: BLE001 - a prompt must not fail for what is wrong here
        _say(f"{type(error).__name__}: {error}")
    os._exit(0)  # skips what Python does at exit: it takes a few milliseconds


def _arguments(given: list[str]) -> tuple[str, str | None, float]:
    options: dict[str, str] = {}
    names = []
    rest = iter(given)
    for word in rest:
        if word in ("--home", "--budget"):
            options[word] = next(rest, "")
        else:
            names.append(word)
    if len(names) != 1 or names[0].startswith("-"):
        raise _GivenUpError(_USAGE)
    try:
        budget_s = float(options.get("--budget", BUDGET_S))
    except ValueError:
        raise _GivenUpError(_USAGE) from None
    return names[0], options.get("--home"), min(max(budget_s, 0.05), 60.0)


def _answer(client: str, home: str | None, budget_s: float) -> str:
    """Return the worker's answer to the event on standard input."""
    data = sys.stdin.buffer.read(MAX_REQUEST_BYTES)
    try:
        event: Any = json.loads(data)
    except (ValueError, RecursionError):
        raise _GivenUpError("standard input holds no JSON document of at most 8 MB") from None
    place = place_of(home)
    if place is None:
        raise _GivenUpError("there is no store; `memgraph connect` creates one")
    kept = _kept_overview(client, place.home, event)
    request = {"hook": client, "event": event}
    try:
        answer = ask(place, request, timeout_s=budget_s, greeting_s=_GREETING_S, starts=not kept)
    except WorkerUnavailableError as error:
        if error.is_absent and _is_start(event):
            _deliver(place, {**request, "is_printed": bool(kept)})
        if not kept:
            raise
        _say(f"{error}; printed what was kept")
        return kept
    return answer if isinstance(answer, str) else ""


def _deliver(place: Place, request: dict[str, Any]) -> None:
    """Start the worker and give it an event in a process of its own, for which the session does not wait."""
    if os.fork():
        return
    with suppress(WorkerUnavailableError, WorkerAnsweredError, OSError):
        os.setsid()  # clients end the processes that their hooks started
        signal.setitimer(signal.ITIMER_REAL, _DELIVERY_S + _HARD_STOP_S)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        ask(place, request, timeout_s=_DELIVERY_S, starts=True)
    os._exit(0)


def _is_start(event: Any) -> bool:
    return isinstance(event, dict) and event.get("hook_event_name") == _START


def _kept_overview(client: str, home: str, event: Any) -> str:
    """Return what a worker would print at the start of a session, if it was rendered beforehand and is still valid; else ""."""
    cwd = event.get("cwd") if _is_start(event) and event.get("source") not in _LOSES_CONTEXT else None
    if not isinstance(cwd, str) or not os.path.isabs(cwd):
        return ""
    from pathlib import Path

    from memgraph.disk.glance import work_tree_name
    from memgraph.interfaces.agents.kept import kept_overview

    project = work_tree_name(cwd) or os.path.basename(cwd.rstrip("/"))
    kept = kept_overview(Path(home), project, client)
    return kept.printed if kept else ""


def _print(text: str) -> None:
    """Write the whole answer, or what a reader takes of it."""
    data = memoryview(text.encode("utf-8", "replace"))
    while data:
        data = data[os.write(1, data) :]


def _say(reason: str) -> None:
    """Say on standard error why there is no answer, if somebody wants to know."""
    if os.environ.get("MEMGRAPH_LOG"):
        with suppress(OSError):
            os.write(2, f"memgraph-hook: {reason}\n".encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
