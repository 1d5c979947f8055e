"""``python -m memgraph.interfaces.worker.run``: the worker's process. Imports the library only once it serves."""

from __future__ import annotations

import logging
import math
import os
import signal
import sys
import threading
from logging.handlers import RotatingFileHandler
from typing import TYPE_CHECKING

from memgraph.interfaces.worker.place import IDLE_VARIABLE, RELEASE, Place, place_of
from memgraph.interfaces.worker.server import Server, take_lock
from memgraph.interfaces.worker.tenant import Tenant

if TYPE_CHECKING:
    from memgraph.facade import MemGraph

IDLE_S = 900.0
_LOG_BYTES = 1_000_000
_DETACH = "--detach"


def main() -> int:
    """Serve the store in the directory that the command line names; with ``--detach``, in a child process."""
    given = sys.argv[1:]
    place = place_of(given[-1]) if given else None
    if place is None:
        return 1
    if _DETACH in given:
        os.closerange(3, 256)  # an agent must not wait for the end of a pipe that its hook has inherited
    try:
        lock = take_lock(place)
        if lock is None:
            return 0
        if _DETACH in given and os.fork():
            os._exit(0)  # the child serves, and has the system as its parent
        serve(place, lock)
    except OSError:  # of a full disk, for example; `serve` has logged it
        return 1
    return 0


def serve(place: Place, lock: int, *, in_foreground: bool = False) -> str:
    """Serve a store whose lock this process holds, until there is a reason to end; return it.

    Raises
    ------
    OSError
        The socket cannot be made.
    """
    os.umask(0o077)
    logger = _logging_to(place, in_foreground=in_foreground)
    tenant = Tenant(place, lambda: _opened(place))
    logging.getLogger("memgraph").addHandler(tenant.warnings)
    try:
        server = Server(place, lock, tenant, idle_s=_idle_s())
    except OSError as error:
        logger.error("cannot listen on %s: %s", place.socket, error.strerror)
        raise
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.stop("terminated"))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    logger.info("memgraph %s serves %s as process %d", RELEASE, place.home, os.getpid())
    threading.Thread(target=tenant.warm_up, daemon=True).start()
    reason = server.serve()
    tenant.close()
    logger.info("ended: %s", reason)
    return reason


def _opened(place: Place) -> MemGraph:
    from memgraph.config import load_config
    from memgraph.embedding import default_embedder, load_in_background

    config = load_config({"home": place.home})
    embedder = default_embedder(config)
    load_in_background(embedder)  # while the rest is imported
    from memgraph.facade import MemGraph
    from memgraph.store import AgentMemoryStore

    return MemGraph(AgentMemoryStore(config, embedder=embedder))


def _idle_s() -> float:
    """Return after how many seconds without a request the worker ends."""
    try:
        given = float(os.environ.get(IDLE_VARIABLE) or IDLE_S)
    except ValueError:
        return IDLE_S
    return given if math.isfinite(given) and given > 0 else IDLE_S


def _logging_to(place: Place, *, in_foreground: bool) -> logging.Logger:
    """Log to the worker's file, or to standard error. What cannot be written is left out."""
    logging.raiseExceptions = False
    handler: logging.Handler
    try:
        handler = (
            logging.StreamHandler()
            if in_foreground
            else RotatingFileHandler(place.log, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")
        )
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    library = logging.getLogger("memgraph")
    library.addHandler(handler)
    library.setLevel(logging.INFO)
    return logging.getLogger("memgraph.interfaces.worker")  # the name of this module is `__main__`


if __name__ == "__main__":
    code = main()
    logging.shutdown()
    os._exit(code)  # the store is closed; a thread that still loads the model is not waited for
