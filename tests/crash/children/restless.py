"""Writes events of many kinds until it is killed, and reports what is acknowledged. ``FOLDER SEED [PAUSE]``: seconds after each write."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path
from typing import Any

from places import opened, say


def main() -> None:
    folder, seed = Path(sys.argv[1]), int(sys.argv[2])
    pause = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
    chance = random.Random(seed)

    def memory(number: int) -> dict[str, Any]:
        return {
            "type": "episodic", "content": f"round {seed}, memory {number}: the build failed in login.py",
            "project_id": "P", "tags": [f"t{number % 5}", "auth"], "agents_involved": ["MARS"], "session_id": f"s{seed}",
        }  # fmt: skip

    store = opened(folder)
    say("ready")
    mine: list[str] = []
    number = 0
    while True:
        number += 1
        time.sleep(pause)
        step = chance.random()
        if step < 0.08:
            made = [one.id for one in store.insert_memories([memory(number * 100 + part) for part in range(60)])]
        else:
            made = [store.insert_memory(memory(number)).id]
        say(["added", *made])
        mine += [key for key in made if key]
        if step > 0.7:
            store.record_access(chance.choice(mine))
        if step > 0.85:
            changed = chance.choice(mine)
            store.update_memory(changed, title=f"changed in round {seed}")
            say(["changed", changed])
        if step > 0.95:
            gone = mine.pop(chance.randrange(len(mine)))
            say(["deleting", gone])
            store.delete_memory(gone)
            say(["deleted", gone])


main()
