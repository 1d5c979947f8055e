"""The process that reads transcripts: it detaches itself before it imports what it needs.

``python -m memgraph.interfaces.agents.detached HOME KEYS_HOME CLIENT``
"""

from __future__ import annotations

import os
import sys

_NICENESS = 10


def main(home: str, keys_home: str, client: str) -> None:
    """Detach this process, then read what waits."""
    if os.fork():
        os._exit(0)  # whoever started it waits for this process only
    os.nice(_NICENESS)
    from memgraph.interfaces.agents.learning import learn

    learn(home, keys_home, client)


if __name__ == "__main__":
    main(*sys.argv[1:4])
