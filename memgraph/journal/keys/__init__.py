"""The keys that sign a store's journal: where they come from, which one signs, and which ones verify."""

from __future__ import annotations

from memgraph.journal.keys.local import KEY_VARIABLE, EnvKeys, FileKeys, default_keys
from memgraph.journal.keys.ring import KeyRing
from memgraph.journal.keys.secret import key_from_secret

__all__ = ["KEY_VARIABLE", "EnvKeys", "FileKeys", "KeyRing", "default_keys", "key_from_secret"]
