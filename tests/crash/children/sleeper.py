"""Lets a store sleep, and reports its beginning and its end. ``FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path

from places import opened, say

from memgraph.lifecycle import sleep


def main() -> None:
    with opened(Path(sys.argv[1])) as store:
        assert store.get_all_memories()  # the index is there
        say("asleep")
        sleep(store)
        say("awake")


main()
