"""What a store's journal holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def bytes_of(store: Any) -> Callable[[], bytes]:
    """Return everything that the journal holds."""

    def read() -> bytes:
        folder = store.config.home / "journal"
        return b"".join(path.read_bytes() for path in sorted(folder.glob("*.jsonl")))

    return read
