"""Public fakes for memgraph's ports: deterministic, offline, quick. What users need to test code that uses memgraph.

Each fake keeps what it was given in `calls`, so that a test can ask whether, how often, and with what it was called.
"""

from memgraph.testing.engine import InMemoryEngine
from memgraph.testing.fakes import FakeAnnotator, FakeClock, FakeEmbedder, FakeExtractor, FakeKeys, FakeLanguageModel

__all__ = [
    "FakeAnnotator",
    "FakeClock",
    "FakeEmbedder",
    "FakeExtractor",
    "FakeKeys",
    "FakeLanguageModel",
    "InMemoryEngine",
]
