"""Graph engines for tests, under a seal of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memgraph.graph.connection import KUZU
from memgraph.graph.engine import EmbeddedEngine
from memgraph.journal.seal import Seal

SEAL = Seal(b"t" * 32)


class KuzuEngine(EmbeddedEngine):
    """Kùzu, with the seal of the tests."""

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(folder, SEAL, KUZU, **options)
