"""Changing the key that signs a journal, and signing its history anew."""

from memgraph.journal.rotation.reseal import reseal as reseal
from memgraph.journal.rotation.rotate import rotate as rotate
