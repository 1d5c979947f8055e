"""The keys that sign a store's journal: where they come from, which one signs, and which ones verify."""

from memgraph.journal.keys.local import (
    KEY_VARIABLE as KEY_VARIABLE,
    EnvKeys as EnvKeys,
    FileKeys as FileKeys,
    default_keys as default_keys,
)
from memgraph.journal.keys.ring import KeyRing as KeyRing
from memgraph.journal.keys.secret import key_from_secret as key_from_secret
