"""What the benchmarks store and ask: made from a seed, so every run and every peer sees the same. Needs numpy alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
Memory = dict[str, Any]

DIMENSION = 384
SEED = 20260201
COMPONENTS = ("auth", "billing", "search", "deploy", "database", "cache", "queue", "frontend", "mobile", "docs")
AGENTS = ("MARS", "VENUS", "JUPITER", "SATURN")
FAILURES = (
    "timed out",
    "was refused",
    "returned HTTP 500",
    "raised ConnectionError",
    "leaked a lock",
    "lost its session",
)
FIXES = (
    "retried with a back-off",
    "pinned the version",
    "raised the timeout",
    "rolled the migration back",
    "added an index",
)
FILES = ("service", "client", "model", "views")
PROJECTS = 5
_NOISE = 1.2
"""Length of what is random in a vector, beside a topic of length 1: memories of one topic have a cosine of about 0.4."""


class Author:
    """Makes memories like those of a build, and questions about them.

    A memory has two sentences, three tags, three entities, two agents, a vector near its topic's, and lies in one of five
    projects, in a build of 20 and a session of 50 memories.

    Parameters
    ----------
    first : int
        How many memories others have made before: numbers of builds and steps go on from there.
    """

    def __init__(self, seed: int = SEED, *, first: int = 0) -> None:
        self._chance = random.Random(seed + first)
        self._noise = np.random.default_rng(seed + first)
        topics = np.random.default_rng(SEED).standard_normal((len(COMPONENTS) * len(FAILURES), DIMENSION))
        self._topics = topics / np.linalg.norm(topics, axis=1, keepdims=True)
        self._number = first

    def memory(self) -> Memory:
        """Make one memory, as keyword fields of `AgentMemory`; its content is like no other's."""
        self._number += 1
        chance, number = self._chance, self._number
        component, other = chance.sample(COMPONENTS, 2)
        file = f"src/{component}/{chance.choice(FILES)}_{chance.randrange(25)}.py"
        agents = chance.sample(AGENTS, 2)
        failure, fix = chance.choice(FAILURES), chance.choice(FIXES)
        return {
            "type": "episodic",
            "content": (
                f"While {agents[0]} worked on {component} in step {number % 20} of build {number // 20}, the call to "
                f"{other} {failure} after {chance.randrange(1, 900)} ms. {agents[1]} {fix} in {file} and the tests of "
                f"{component} passed again."
            ),
            "outcome": chance.choice(("positive", "negative", "neutral")),
            "project_id": f"project-{number % PROJECTS}",
            "build_id": f"build-{number // 20}",
            "session_id": f"session-{number // 50}",
            "tags": [component, other, chance.choice(("fix", "incident", "retry", "migration"))],
            "agents_involved": agents,
            "entities": [
                {"name": file, "kind": "file", "about": True},
                {"name": f"{component}_client_{chance.randrange(300)}", "kind": "symbol"},
                {"name": "ConnectionError", "kind": "error"},
            ],
            "embedding": self._near(component, failure),
        }

    def memories(self, count: int) -> list[Memory]:
        """Make so many memories."""
        return [self.memory() for _ in range(count)]

    def question(self) -> tuple[str, Vector]:
        """Make a question and its vector."""
        component, failure = self._chance.choice(COMPONENTS), self._chance.choice(FAILURES)
        agent = self._chance.choice(AGENTS)
        return f"the call to {component} {failure}, what did {agent} do about it?", self._near(component, failure)

    def word(self) -> str:
        """Make a word that no memory holds."""
        return "q" + "".join(self._chance.choices("bcdfghjklmnpqrstvwxz", k=12))

    def _near(self, component: str, failure: str) -> Vector:
        """Return a vector of length 1 near a topic's."""
        noise = self._noise.standard_normal(DIMENSION)
        topic = self._topics[COMPONENTS.index(component) * len(FAILURES) + FAILURES.index(failure)]
        vector = topic + noise * (_NOISE / np.linalg.norm(noise))
        unit: Vector = (vector / np.linalg.norm(vector)).astype(np.float32)
        return unit


class GivenVectors:
    """An `Embedder` that runs no model: it looks up what it was told."""

    name = "given"
    dimension = DIMENSION

    def __init__(self) -> None:
        self.vectors: dict[str, Vector] = {}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts, shape (n, dimension)."""
        return np.stack([self.vectors[text] for text in texts])

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query, shape (dimension,)."""
        return self.vectors[text]


class Clock:
    """A clock that moves a second at each look, the same in every run."""

    def __init__(self) -> None:
        self._now = datetime(2026, 2, 1, 9, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the time."""
        self._now += timedelta(seconds=1)
        return self._now

    def advance(self, days: int) -> None:
        """Let days go by."""
        self._now += timedelta(days=days)
