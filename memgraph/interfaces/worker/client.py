"""Asks the worker of a store, and starts it. Standard library only: agents' hooks import nothing else."""

from __future__ import annotations

import fcntl
import os
import socket
import sys
import time
from typing import Any

from memgraph.interfaces.worker.place import (
    INTERNAL,
    MAX_ANSWER_BYTES,
    OTHER_SETTINGS,
    PROTOCOL,
    RELEASE,
    RETIRING,
    Place,
    check_folder,
    is_own,
    line_of,
    make_folder,
    peer_uid,
    read_line,
    release_key,
    send_line,
    settings_mark,
)

_CONNECT_S = 1.0
_GREETING_BYTES = 4_096
_POLL_S = 0.01
_STARTS = 2
"""A worker that was just ending may have kept the first from serving."""


class WorkerUnavailableError(OSError):
    """No worker answered; the message says why. What was asked may be asked again or done otherwise.

    Attributes
    ----------
    is_sent : bool
        Whether a worker may have carried out the request all the same.
    is_absent : bool
        Whether there is no worker, rather than one that does not answer.
    """

    is_absent = False

    def __init__(self, reason: str, *, is_sent: bool = False) -> None:
        self.is_sent = is_sent
        super().__init__(reason)


class WorkerAnsweredError(Exception):
    """The worker answered with an error: its type and message as the library raises them.

    Attributes
    ----------
    is_refusal : bool
        Whether another process would refuse the request, too.
    """

    def __init__(self, type_: str, message: str) -> None:
        self.type = type_
        self.message = message
        self.is_refusal = type_ not in (INTERNAL, OTHER_SETTINGS)
        super().__init__(message)


def ask(
    place: Place, request: dict[str, Any], *, timeout_s: float, greeting_s: float = 60.0, starts: bool = False
) -> Any:
    """Return a worker's answer to a request.

    Parameters
    ----------
    timeout_s : float
        For everything: starting, waiting, answering.
    greeting_s : float
        For the greeting, which a worker sends before anything else: one that takes longer hangs, or the machine is busy.
    starts : bool
        Start a worker if none runs. An older one is replaced then; otherwise it is only stopped.

    Raises
    ------
    WorkerUnavailableError
        No worker runs, it does not answer in time, or it is of a newer release.
    WorkerAnsweredError
        It refused the request.
    """
    deadline = time.monotonic() + timeout_s
    starter, left = None, _STARTS if starts else 0
    while True:
        try:
            return _asked(place, request, deadline, greeting_s)
        except _NobodyError:
            if not starts or time.monotonic() + _POLL_S >= deadline:
                raise
            if not is_served(place) and not (starter and _is_running(starter)):
                if not left:
                    raise
                starter, left = start(place), left - 1
        time.sleep(_POLL_S)


def look_up(place: Place, name: str, arguments: Any, *, timeout_s: float, greeting_s: float = 60.0) -> Any:
    """Return what a running worker answers to a lookup of the command line, if it has this process's settings."""
    request = {"lookup": name, "arguments": arguments, "settings": settings_mark()}
    return ask(place, request, timeout_s=timeout_s, greeting_s=greeting_s)


class _NobodyError(WorkerUnavailableError):
    """There is no worker, or it has ended without taking the request."""

    is_absent = True


def _asked(place: Place, request: dict[str, Any], deadline: float, greeting_s: float) -> Any:
    with connected(place) as connection:
        greet = _greeting(connection, min(deadline, time.monotonic() + greeting_s))
        theirs = (greet.get("worker"), greet.get("version"))
        if theirs != (PROTOCOL, RELEASE):
            if release_key(*theirs) > release_key(PROTOCOL, RELEASE):
                raise WorkerUnavailableError(f"a worker of release {theirs[1]} runs, which is newer than {RELEASE}")
            _stop_older(connection, deadline)
            raise _NobodyError(f"a worker of release {theirs[1]} was asked to stop")
        try:
            send_line(connection, line_of({"version": RELEASE, **request}), deadline)
            document = read_line(connection, MAX_ANSWER_BYTES, deadline)
        except (OSError, ValueError) as error:
            raise WorkerUnavailableError(f"the worker did not answer: {error}", is_sent=True) from None
    return _answer_of(document)


def _answer_of(document: Any) -> Any:
    if not isinstance(document, dict) or not ("answer" in document or isinstance(document.get("error"), dict)):
        raise WorkerUnavailableError("the worker's answer is not understood", is_sent=True)
    if "answer" in document:
        return document["answer"]
    kind, message = str(document["error"].get("type")), str(document["error"].get("message"))
    if kind == RETIRING:
        raise _NobodyError(message)
    raise WorkerAnsweredError(kind, message)


def connected(place: Place) -> socket.socket:
    """Return a connection to a store's worker.

    Raises
    ------
    WorkerUnavailableError
        Nobody listens, or somebody else does.
    """
    connection = socket.socket(socket.AF_UNIX)
    try:
        check_folder(place.folder)
        connection.settimeout(_CONNECT_S)
        connection.connect(place.socket)
        if not is_own(peer_uid(connection)):
            raise PermissionError(f"{place.socket} belongs to another user")
    except (FileNotFoundError, ConnectionError) as error:
        connection.close()
        raise _NobodyError(f"no worker runs: {error.strerror}") from None
    except OSError as error:
        connection.close()
        raise WorkerUnavailableError(f"the worker cannot be reached: {error}") from None
    return connection


def _greeting(connection: socket.socket, deadline: float) -> dict[str, Any]:
    """Return the first line, which a worker sends as soon as it has taken the connection."""
    try:
        found = read_line(connection, _GREETING_BYTES, deadline)
    except ConnectionError:
        raise _NobodyError("the worker has just ended") from None
    except (OSError, ValueError) as error:
        raise WorkerUnavailableError(f"the worker hangs: {error}") from None
    return found if isinstance(found, dict) else {}


def _stop_older(connection: socket.socket, deadline: float) -> None:
    """Ask a worker of an older release to end. This request is the same in every release."""
    try:
        send_line(connection, line_of({"version": RELEASE, "stop": True}), deadline)
        read_line(connection, MAX_ANSWER_BYTES, deadline)
    except (OSError, ValueError):
        pass  # the next attempt shows whether it ends


def is_served(place: Place) -> bool:
    """Return whether a process holds the lock: it serves, or is about to begin or to end."""
    try:
        descriptor = os.open(place.lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def holder(place: Place) -> int | None:
    """Return the process that took the lock last."""
    try:
        with open(place.lock, "rb") as file:
            return int(file.read(20))
    except (OSError, ValueError):
        return None


def start(place: Place) -> int:
    """Start a worker, detached from this process, and return without waiting for it.

    Returns
    -------
    int
        The id of a process that ends as soon as the worker, its child, serves, or another one does.

    Raises
    ------
    WorkerUnavailableError
        It cannot be started.
    """
    null = os.devnull
    # -P: do not import from the current directory, which may be an untrusted project
    command = [sys.executable, "-P", "-m", "memgraph.interfaces.worker.run", "--detach", place.home]
    streams = [(os.POSIX_SPAWN_OPEN, number, null, os.O_RDWR, 0) for number in (0, 1, 2)]
    try:
        make_folder(place.folder)
        return os.posix_spawn(sys.executable, command, os.environ, file_actions=streams, setsid=True)
    except (OSError, NotImplementedError) as error:
        raise WorkerUnavailableError(f"a worker cannot be started: {error}") from None


def _is_running(pid: int) -> bool:
    """Return whether a child process is still there; reap it if it has ended."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False
