"""Changes a store to another embedding model and waits at one place until it is killed. ``FOLDER PLACE``.

Places: ``making`` (half of the vectors are made), ``made`` (all are, and no event names them), ``changed`` (one does).
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

from places import DIMENSION, opened, say

from memgraph.journal.vectors import MadeVectors
from memgraph.store.maintenance.vectors import Vectors
from memgraph.testing import FakeEmbedder


def stay(*_: Any) -> None:
    """Report that the place is reached, and wait."""
    say("there")
    signal.pause()


def main() -> None:
    """Change the model."""
    place = sys.argv[2]
    if place == "made":
        Vectors._change_model = stay
    if place == "changed":
        MadeVectors.forget = stay
    progress = (lambda done, total: stay() if done * 2 >= total else None) if place == "making" else None
    with opened(Path(sys.argv[1])) as store:
        store.reembed(FakeEmbedder(DIMENSION * 2, "new"), batch=2, progress=progress)


main()
