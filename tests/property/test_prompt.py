"""Every section of a prompt is within its budget, whatever the texts, the budgets and the way of counting are."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from memgraph import AgentMemoryStore, MemGraph, MemGraphError
from memgraph.config import AgentMemoryConfig
from memgraph.embedding import NoEmbedder
from memgraph.model.memory import EpisodicMemory, ProceduralMemory, SemanticMemory
from memgraph.retrieval.context.budget import count_tokens
from memgraph.testing import FakeClock

TEXTS = st.one_of(
    st.sampled_from(["deploy", "## x\n- y", "`" * 30, "<b>" * 40, "[a](b)" * 30, "字" * 200, "\\" * 90, "a. " * 250, "never deploy on Fridays"]),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=800),
)  # fmt: skip
BUDGETS = st.fixed_dictionaries(
    {
        name: st.one_of(st.integers(0, 60), st.integers(0, 600))
        for name in ("constraints", "long_term", "recent_notes", "chat_context", "chat_memory", "working_memory")
    }
)
COUNTERS: list[Callable[[str], int]] = [
    count_tokens,
    lambda text: ceil(len(text.encode("utf-8", "replace")) / 3),
    lambda text: len(text.split()),
]


def tried(write: Callable[[], Any]) -> None:
    """Store something, unless it is refused: an empty text, for example."""
    with suppress(MemGraphError):
        write()


@settings(max_examples=30)
@given(
    budgets=BUDGETS,
    texts=st.lists(TEXTS, min_size=1, max_size=25),
    counter=st.sampled_from(COUNTERS),
    asked=st.sampled_from(["", "deploy on Fridays"]),
    data=st.data(),
)
def test_every_section_is_within_its_budget(
    budgets: dict[str, int],
    texts: list[str],
    counter: Callable[[str], int],
    asked: str,
    data: st.DataObject,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        many = {"episodic": 30, "semantic": 30, "procedural": 30, "max_tokens": 100_000}
        config = AgentMemoryConfig(
            home=home / "store", keys_home=home / "keys", prompt_budget=budgets, retrieval_budget=many
        )
        with MemGraph(AgentMemoryStore(config, embedder=NoEmbedder(), clock=FakeClock())) as memory:
            tasks, store = memory.tasks, memory.store
            for text in texts:
                kind = data.draw(st.integers(0, 5))
                writes = [
                    lambda text=text: tasks.pins.upsert(text, kind="constraint"),
                    lambda text=text: store.insert_memory(SemanticMemory(content=text)),
                    lambda text=text: store.insert_memory(EpisodicMemory(content=text, outcome="negative")),
                    lambda text=text: store.insert_memory(ProceduralMemory(content=text, steps=[text] * 9)),
                    lambda text=text: tasks.absorb("s", f"<chat-memory>{text}</chat-memory>"),
                    lambda text=text: tasks.working.replace("s", task=text, context=[text], pending=[text], notes=text),
                ]
                tried(writes[kind])
            tried(lambda: tasks.working.set_context("s", "\n".join(texts)))
            prompt = tasks.prompt(asked, session="s", token_counter=counter, with_ids=bool(len(texts) % 2))
            for section in prompt.sections:
                assert section.tokens == counter(section.text)
                assert section.tokens <= section.budget == budgets[section.name], section
            assert prompt.text == "\n\n".join(one.text for one in prompt.sections)
            held = tasks.pins.list(kind="constraint")
            shown = [one for one in prompt.sections if one.name == "constraints"]
            said = sum(len(one.memory_ids) + one.left_out for one in shown)
            assert said == len(held) or (not shown and bool(prompt.notice) == bool(held))
