"""What commands get that run in a test's process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def settings() -> Callable[[], Any]:
    """Make the object of one command: a fake model instead of the configured one."""
    from memgraph.interfaces.cli.base.options import Settings
    from memgraph.testing import FakeEmbedder

    return lambda: Settings(embedder=FakeEmbedder(dimension=64))


@pytest.fixture
def configured() -> Callable[[], Any]:
    """Make the object of one command with the configured model."""
    from memgraph.interfaces.cli.base.options import Settings

    return Settings
