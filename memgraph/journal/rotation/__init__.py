"""Changing the key that signs a journal, and signing its history anew."""

from __future__ import annotations

from memgraph.journal.rotation.reseal import reseal
from memgraph.journal.rotation.rotate import rotate

__all__ = ["reseal", "rotate"]
