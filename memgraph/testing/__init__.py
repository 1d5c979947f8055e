"""Public fakes for memgraph's ports: deterministic, offline and quick, for tests of code that uses memgraph.

Each fake records its inputs in `calls`, so that a test can check whether, how often, and with what it was called.
"""

from memgraph.testing.fakes import FakeAnnotator, FakeClock, FakeEmbedder, FakeExtractor, FakeKeys, FakeLanguageModel

__all__ = [
    "FakeAnnotator",
    "FakeClock",
    "FakeEmbedder",
    "FakeExtractor",
    "FakeKeys",
    "FakeLanguageModel",
]
