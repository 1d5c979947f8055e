"""``worker``: the process that keeps a store open: its status; stop it; run it in the foreground."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import click

from memgraph.interfaces.cli.base.commands import Refused
from memgraph.interfaces.cli.base.options import Command, Settings, Subgroup, pass_settings
from memgraph.interfaces.cli.base.output import emit, pairs, plain
from memgraph.interfaces.worker.client import WorkerAnsweredError, WorkerUnavailableError, ask, holder, is_served
from memgraph.interfaces.worker.place import Place, place_of

_ASK_S = 2.0
_STOP_S = 35.0
"""An ending worker waits up to 30 seconds for the requests that it has taken."""
_TERMINATE_S = 5.0


@click.group(cls=Subgroup, invoke_without_command=True)
@click.pass_context
def worker(ctx: click.Context) -> None:
    """Show the store's worker if no command is given."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(status)


@worker.command("status", cls=Command)
@pass_settings
def status(settings: Settings) -> None:
    """Show whether a worker serves the store, since when, and where its socket and its log are."""
    place = _place(settings)
    document: dict[str, Any] = {"running": False, "socket": place.socket, "log": place.log}
    try:
        document |= {"running": True, **_asked(place, {"status": True})}
    except WorkerUnavailableError as error:
        document["problem"] = None if error.is_absent else str(error)
    rows = [(name.replace("_", " "), plain(str(value))) for name, value in document.items() if value is not None]
    emit(settings, document, pairs(rows))


@worker.command("stop", cls=Command)
@pass_settings
def stop(settings: Settings) -> None:
    """Stop the store's worker after the requests that it has taken; terminate it if it does not answer."""
    pid = end_worker(_place(settings))
    if pid is None:
        emit(settings, {"stopped": False}, "No worker runs.")
    else:
        emit(settings, {"stopped": True, "pid": pid}, f"Stopped the worker (process {pid}).")


@worker.command("run", cls=Command)
@pass_settings
def run(settings: Settings) -> None:
    """Serve the store in the foreground, with the log on standard error, until interrupted or idle for too long."""
    from memgraph.interfaces.worker.run import serve
    from memgraph.interfaces.worker.server import take_lock

    place = _place(settings)
    lock = take_lock(place)
    if lock is None:
        raise Refused("a worker already serves this store; `memgraph worker stop` stops it")
    reason = serve(place, lock, in_foreground=True)
    emit(settings, {"ended": reason}, f"The worker has ended: {reason}.")


def end_worker(place: Place) -> int | None:
    """End a store's worker after the requests that it has taken; return its process id, or None if no worker runs.

    Raises
    ------
    Refused
        It does not end.
    """
    pid: int | None = None
    try:
        pid = _asked(place, {"status": True})["pid"]
        _asked(place, {"stop": True})
        ended = _ends(place, _STOP_S)
    except WorkerUnavailableError as error:
        if error.is_absent and not is_served(place):
            return None
        pid, ended = holder(place), False
    if not ended:
        ended = _terminated(place, pid)
    if not ended:
        raise Refused(f"the worker does not end (process {pid}); kill that process")
    return pid


def _place(settings: Settings) -> Place:
    place = place_of(settings.home)
    if place is None:
        raise Refused("there is no store here, so it has no worker; `memgraph remember TEXT` creates one")
    return place


def _asked(place: Place, request: dict[str, Any]) -> Any:
    try:
        return ask(place, request, timeout_s=_ASK_S)
    except WorkerAnsweredError as error:
        raise Refused(f"the worker refused: {error.message}") from None


def _ends(place: Place, timeout_s: float) -> bool:
    until = time.monotonic() + timeout_s
    while is_served(place):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def _terminated(place: Place, pid: int | None) -> bool:
    """Terminate the process that holds the lock."""
    if pid is None or not is_served(place):
        return not is_served(place)
    try:
        os.kill(pid, signal.SIGTERM)
    except OSError:
        return not is_served(place)
    return _ends(place, _TERMINATE_S)
