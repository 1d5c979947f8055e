"""Adds memories one by one. ``FOLDER NAME COUNT [TIMEOUT_S]``: waits for the file ``go``, reports each id when it is acknowledged."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from places import opened, say

import memgraph
from memgraph.model.ids import source_id


def main() -> None:
    folder, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    timeout_s = float(sys.argv[4]) if len(sys.argv) > 4 else 120.0
    while not (folder / "go").exists():
        time.sleep(0.001)
    try:
        with opened(folder, lock_timeout_s=timeout_s) as store:
            say("open")
            for number in range(count):
                memory = {
                    "id": source_id(f"crash {name}", number), "type": "episodic", "project_id": "P", "session_id": name,
                    "content": f"Writer {name}, memory {number}: the build failed in login.py", "tags": ["auth", name],
                }  # fmt: skip
                say(store.insert_memory(memory).id)
    except memgraph.BusyError as error:
        say({"busy": str(error), "pid": error.pid})


main()
