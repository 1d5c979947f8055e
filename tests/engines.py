"""Graph engines for tests, under a seal of their own.

Two engines cannot be in one process: ``--engine ladybug`` runs the tests that take an engine with Ladybug instead of Kùzu.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from memgraph.disk.seal import Seal
from memgraph.graph.connection import VENDORS
from memgraph.graph.engine import EmbeddedEngine

VARIABLE = "TESTED_ENGINE"
LONG = "TESTED_AT_LENGTH"
SEAL = Seal(b"t" * 32)


def vendor_name() -> str:
    """Return the engine that is tested in this process."""
    return os.environ.get(VARIABLE, "kuzu")


class Engine(EmbeddedEngine):
    """The engine that is tested in this process, with the seal of the tests."""

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(folder, SEAL, VENDORS[vendor_name()], **options)


def examples(few: int, *, at_length: int) -> int:
    """Return how many examples a test tries: a few, the same in each run, or with ``--long`` more, and new ones."""
    return at_length if os.environ.get(LONG) else few
