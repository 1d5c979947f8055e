"""Memories whose words are as rare as those of real text, with sessions, tags, titles, times and edges: for measuring recall.

The sentences of `data.Author` share most of their words, which makes a text search dearer than it is. The shares of the memories that
hold a question's words, added up, are 2.0 there at the median; of real questions they are 0.8 (LoCoMo), 0.3 (HotpotQA) and 0.2
(MuSiQue), here 0.5.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import accumulate, product

from tests.benchmarks.data import AGENTS, SEED, Author, Memory, Vector

_SYLLABLES = "ba be bo da di do fa fi ga go ka ke ki la lo ma mi mo na no pa pe ra ri ro sa si ta ti zu".split()
_WORDS = 20_000
_TAGS = 500
_FLAT = 10
"""Zipf and Mandelbrot: the word of rank r is as frequent as 1 / (r + 10); the most frequent one stands in a third of the texts."""
_BEGUN = datetime(2024, 2, 1, tzinfo=UTC)
_REMEMBERED = 1_000


class Storyteller(Author):
    """Makes memories of 18 to 45 words of a Zipf vocabulary, said by one of four in a session, and questions about them.

    A memory has up to three tags of a Zipf vocabulary of 500, three entities, and the vector of `Author`. Every fifth has a title, every
    eighth asks. They are ten minutes apart.
    """

    def __init__(self, seed: int = SEED, *, first: int = 0) -> None:
        super().__init__(seed, first=first)
        self._words = ["".join(one) for _, one in zip(range(_WORDS), product(_SYLLABLES, repeat=3), strict=False)]
        self._word_weights = list(accumulate(1.0 / (rank + _FLAT) for rank in range(_WORDS)))
        self._tag_weights = list(accumulate(1.0 / (rank + 1) for rank in range(_TAGS)))
        self._told: list[list[str]] = []

    def memory(self) -> Memory:
        """Make one memory, as keyword fields of `AgentMemory`."""
        made, chance, number = super().memory(), self._chance, self._number
        words = self._drawn(chance.randrange(18, 46))
        self._remember(words)
        speaker, file = made["agents_involved"][0], made["entities"][0]["name"]
        end = "?" if number % 8 == 0 else "."
        tags = chance.choices(range(_TAGS), cum_weights=self._tag_weights, k=3)
        made |= {
            "content": f"{speaker}: {' '.join(words[:9])}, {' '.join(words[9:])} in {file}{end}",
            "speaker": speaker,
            "tags": sorted({f"topic-{tag}" for tag in tags}),
            "occurred_at": (_BEGUN + timedelta(minutes=10 * number)).isoformat(),
        }
        return made | ({"title": " ".join(words[:2])} if number % 5 == 0 else {})

    def generalisation(self, evidence: list[str]) -> Memory:
        """Make a semantic memory that rests on others."""
        made = {name: self.memory()[name] for name in ("content", "tags", "embedding", "project_id")}
        return made | {"type": "semantic", "supporting_memory_ids": evidence}

    def procedure(self) -> Memory:
        """Make a procedural memory with a trigger of three words."""
        made = {name: self.memory()[name] for name in ("content", "tags", "embedding", "project_id")}
        return made | {"type": "procedural", "trigger_pattern": " ".join(self._drawn(3)), "confidence": 0.8}

    def question(self) -> tuple[str, Vector]:
        """Make a question of six words of a memory, and its vector; every fifth names a time."""
        _, vector = super().question()
        words = self._chance.sample(self._chance.choice(self._told), 6)
        time = " last week" if self._chance.random() < 0.2 else ""
        return f"What did {self._chance.choice(AGENTS)} say about {' '.join(words)}{time}?", vector

    def _drawn(self, count: int) -> list[str]:
        return self._chance.choices(self._words, cum_weights=self._word_weights, k=count)

    def _remember(self, words: list[str]) -> None:
        if len(self._told) < _REMEMBERED:
            self._told.append(words)
        else:
            self._told[self._chance.randrange(_REMEMBERED)] = words
