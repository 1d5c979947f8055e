"""The process that reads transcripts: it detaches itself before it imports what it needs, and writes a log of its own.

``python -m memgraph.interfaces.agents.detached HOME KEYS_HOME CLIENT DELAY_S``
"""

from __future__ import annotations

import logging
import os
import sys
import time
from logging.handlers import RotatingFileHandler
from pathlib import Path

_NICENESS = 10
_LOG_BYTES = 200_000


def main(home: str, keys_home: str, client: str, delay_s: str) -> None:
    """Detach this process, then read what waits after the delay."""
    if os.fork():
        os._exit(0)  # whoever started it waits for this process only
    os.nice(_NICENESS)
    time.sleep(float(delay_s))
    os.umask(0o077)
    path = Path(home) / "agents" / "learning.log"
    log = RotatingFileHandler(path, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8", delay=True)
    log.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("memgraph")
    logger.addHandler(log)
    logger.setLevel(logging.INFO)
    try:
        from memgraph.interfaces.agents.learning import learn

        learn(home, keys_home, client)
    except Exception as error:  # noqa: BLE001 (there is nobody else to report it to; the transcripts wait for the next run)
        reason = getattr(error, "loggable", type(error).__name__)
        logger.error("transcripts wait: %s", reason)


if __name__ == "__main__":
    main(*sys.argv[1:5])
