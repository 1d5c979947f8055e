"""The engines that a graph can be copied to: Kùzu and its fork Ladybug, which has the same interface."""

from __future__ import annotations

import importlib.util  # noqa: F401 - the engines use it without importing it
import resource
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from memgraph.errors import ConfigError, MissingExtraError


def most_database_bytes() -> int:
    """Return how large a database may become: 64 GiB, or a quarter of the address space that the process may have (``ulimit -v``).

    The engine reserves that much of the address space at once, in a power of two.
    """
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return 1 << 36 if limit == resource.RLIM_INFINITY else min(1 << 36, 1 << max(24, limit.bit_length() - 3))


@dataclass(frozen=True, slots=True)
class Vendor:
    """A graph engine: Kùzu or a fork of it.

    Attributes
    ----------
    name : str
        Name of the engine and of its module.
    extra : str or None
        The extra that installs it; None if it is installed with memgraph.
    """

    name: str
    extra: str | None = None

    def module(self) -> Any:
        """Return the engine's Python module.

        Raises
        ------
        MissingExtraError
            The engine is not installed.
        ConfigError
            This process already uses the other engine, and both in one process crash it.
        """
        if others := sorted((VENDORS.keys() - {self.name}) & sys.modules.keys()):
            raise ConfigError(
                f"this process already uses the engine {others[0]!r}; use {self.name!r} in another process"
            )
        try:
            return import_module(self.name)
        except ImportError:
            if self.extra is None:
                raise
            what = f'Graphs of the engine "{self.name}"'
            raise MissingExtraError(what, package=self.name, extra=self.extra) from None


KUZU = Vendor("kuzu")
LADYBUG = Vendor("ladybug", extra="ladybug")
VENDORS = {vendor.name: vendor for vendor in (KUZU, LADYBUG)}
