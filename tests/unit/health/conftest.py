"""What a store's journal holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.tables import tables


@pytest.fixture
def bytes_of(store: Any) -> Callable[[], bytes]:
    """Return everything that the journal holds."""

    def read() -> bytes:
        return repr(tables(store.config.home)).encode()

    return read
