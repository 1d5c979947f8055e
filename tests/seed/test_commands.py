"""KIMI-MEMORY-04, required tests 1 to 22."""

from __future__ import annotations

import json
from datetime import timedelta
from uuid import uuid4

import pytest

import memgraph
from memgraph.model.results.curation import MemoryExport, MemoryListEntry

CLEAR = "I have a clear memory of this"
VAGUE = "I vaguely remember"


@pytest.fixture
def commands(store, embedder):
    return memgraph.MemoryCommands(store, embedder)


@pytest.fixture
def asking(open_store, fake_embedder, vector_at):
    """Return a store and its commands, for which the question `zzyzx` lies on axis 0."""
    embedder = fake_embedder({"zzyzx": vector_at(1.0)})
    store = open_store(embedder=embedder)
    return store, memgraph.MemoryCommands(store, embedder)


def fill(store):
    """Insert five memories, one of them suppressed and two linked, and return them by name."""
    made = {
        "episode": store.insert_memory(
            memgraph.EpisodicMemory(
                content="JWT failed", project_id="A", tags=["auth"], location="auth.py", relevance_score=0.5
            )
        ),
        "hidden": store.insert_memory(
            memgraph.EpisodicMemory(content="Not to be told", is_suppressed=True, relevance_score=0.7)
        ),
        "pinned": store.insert_memory(
            memgraph.SemanticMemory(content="Prefer sessions", is_pinned=True, confidence=0.8)
        ),
        "knowledge": store.insert_memory(memgraph.SemanticMemory(content="Proxies strip headers", relevance_score=0.9)),
        "procedure": store.insert_memory(
            memgraph.ProceduralMemory(
                content="Deploying", trigger_pattern="a release", steps=["build", "ship"], relevance_score=0.4
            )
        ),
    }
    store.link(made["episode"].id, "SUPPORTS", made["pinned"].id)
    return made


def test_01_remember_creates_pinned_semantic_memory(store, commands):
    assert commands.remember("Always use pnpm").success

    (memory,) = store.get_all_memories()
    assert isinstance(memory, memgraph.SemanticMemory)
    assert memory.content == "Always use pnpm"
    assert (memory.is_pinned, memory.relevance_score, memory.outcome) == (True, 1.0, "positive")


def test_02_remember_embeds_the_text(store, commands, embedder, embedded_texts):
    commands.remember("Always use pnpm")

    assert embedded_texts(embedder) == ["Always use pnpm"]
    (memory,) = store.get_all_memories()
    assert memory.embedding.tolist() == embedder.embed(["Always use pnpm"])[0].tolist()


def test_03_remember_returns_success_message(commands):
    result = commands.remember("Always use pnpm")

    assert (result.command, result.success) == ("remember", True)
    assert result.message == "Remembered: 'Always use pnpm' (pinned, will not decay)"


def test_04_remember_accepts_custom_tags(store, commands):
    commands.remember("Always use pnpm", ["tooling", "node"])

    (memory,) = store.get_all_memories()
    assert memory.tags == ["tooling", "node"]


@pytest.mark.embedded
def test_04_remember_splits_what_is_too_long_for_one_memory(store, commands):
    text = " ".join(f"Sentence number {n} says something worth keeping." for n in range(40))

    assert commands.remember(text).success

    parts = store.get_all_memories()
    assert len(parts) > 1
    assert all(part.is_pinned and len(part.content) <= 800 for part in parts)
    kept = " ".join(part.content for part in parts)
    assert all(f"number {n} says" in kept for n in range(40))
    assert store.cypher("MATCH (:Memory)-[r:NEXT]->(:Memory) RETURN count(r) AS n") == [{"n": len(parts) - 1}]


def test_05_forget_suppresses_matching_memory(asking, vector_at):
    store, commands = asking
    near = store.insert_memory(memgraph.EpisodicMemory(content="n" * 30 + " " + "m" * 49, embedding=vector_at(0.9)))
    also = store.insert_memory(memgraph.EpisodicMemory(content="Also near", embedding=vector_at(0.8)))

    result = commands.forget("zzyzx")

    assert (result.command, result.success) == ("forget", True)
    assert near.content[:60] in result.message
    assert near.content[:61] not in result.message
    assert store.get_memory(near.id).is_suppressed
    assert not store.get_memory(also.id).is_suppressed  # only the best match goes
    assert commands.forget("zzyzx").success
    assert store.get_memory(also.id).is_suppressed  # what is suppressed already is not matched again


def test_06_forget_returns_failure_when_no_match(commands):
    result = commands.forget("anything")

    assert (result.command, result.success) == ("forget", False)
    assert result.message


@pytest.mark.parametrize(("cosine", "suppressed"), [(0.49, False), (0.51, True)])
def test_07_forget_requires_similarity_above_one_half(asking, vector_at, cosine, suppressed):
    store, commands = asking
    memory = store.insert_memory(memgraph.EpisodicMemory(content="A memory", embedding=vector_at(cosine)))

    result = commands.forget("zzyzx")

    assert result.success is suppressed
    assert store.get_memory(memory.id).is_suppressed is suppressed


def test_08_ask_returns_episodic_memories_only(asking, vector_at):
    store, commands = asking
    episode = store.insert_memory(memgraph.EpisodicMemory(content="JWT failed", embedding=vector_at(0.8)))
    store.insert_memory(memgraph.SemanticMemory(content="Prefer sessions", embedding=vector_at(0.99)))
    hidden = memgraph.EpisodicMemory(content="Not to be told", embedding=vector_at(0.99), is_suppressed=True)
    store.insert_memory(hidden)

    result = commands.ask("zzyzx")

    assert (result.command, result.success) == ("ask", True)
    assert "JWT failed" in result.message
    assert "Prefer sessions" not in result.message
    assert "Not to be told" not in result.message
    assert store.get_memory(episode.id).access_count == 0  # asking is no use of a memory


def test_09_ask_formats_natural_language_summary(asking, vector_at):
    store, commands = asking
    for content, relevance in (("JWT failed", 0.9), ("CORS worked", 0.3)):
        store.insert_memory(
            memgraph.EpisodicMemory(content=content, relevance_score=relevance, embedding=vector_at(0.9))
        )

    message = commands.ask("zzyzx").message

    assert "JWT failed" in message
    assert "CORS worked" in message
    assert message.count(CLEAR) == 1
    assert message.count(VAGUE) == 1


def test_09_ask_never_lists_a_memory_as_not_tried_before(asking, vector_at):
    store, commands = asking
    store.insert_memory(memgraph.EpisodicMemory(content="JWT failed", relevance_score=0.05, embedding=vector_at(0.9)))

    assert commands.ask("zzyzx").message == f"{VAGUE} (just now): JWT failed"


def test_10_ask_returns_top_5_by_similarity(asking, vector_at):
    store, commands = asking
    names = ["alpha", "bravo", "delta", "gamma", "kappa", "omega", "sigma", "theta", "umbra", "zebra"]
    for n, name in enumerate(names):
        store.insert_memory(
            memgraph.EpisodicMemory(content=f"note {name}", embedding=vector_at(0.5 + 0.05 * n), relevance_score=0.9)
        )

    message = commands.ask("zzyzx").message

    told = [name for name in names if f"note {name}" in message]
    assert told == ["omega", "sigma", "theta", "umbra", "zebra"]
    assert message.count(CLEAR) == 5
    assert message.index("zebra") < message.index("omega")


def test_11_list_returns_memories_with_truncated_content(store, commands):
    texts = {"long": "x" * 100, "exact": "y" * 80, "short": "z"}
    for text in texts.values():
        store.insert_memory(memgraph.EpisodicMemory(content=text))

    listed = {entry.content for entry in commands.list()}

    assert listed == {"x" * 80 + "...", "y" * 80, "z"}


def test_11_list_entries_say_what_the_seed_lists(store, commands, clock):
    memory = store.insert_memory(
        memgraph.SemanticMemory(content="Prefer sessions", outcome="positive", relevance_score=0.6)
    )
    store.record_access(memory.id)
    clock.advance(days=2)

    (entry,) = commands.list()

    assert isinstance(entry, MemoryListEntry)
    assert (entry.id, entry.type, entry.outcome) == (memory.id, "semantic", "positive")
    assert (entry.age, entry.access_count, entry.is_pinned) == ("2 days ago", 1, False)
    assert entry.relevance_score == pytest.approx(0.8 * 0.95 ** (2 / 7))
    assert entry.confidence_label == "recall"


def test_a_list_entry_is_as_old_as_what_it_tells(store, commands, clock):
    store.insert_memory({"type": "episodic", "content": "The mill burnt down", "occurred_at": "2019-05-01T00:00:00Z"})
    clock.advance(days=2)
    assert commands.list()[0].age.endswith("years ago")


def test_12_list_filters_by_type(store, commands):
    fill(store)

    assert {entry.type for entry in commands.list(type="semantic")} == {"semantic"}
    assert len(commands.list(type="semantic")) == 2
    assert [entry.content for entry in commands.list(type="episodic")] == ["JWT failed"]
    assert len(commands.list(type="episodic", include_suppressed=True)) == 2


def test_13_list_filters_by_project(store, commands):
    fill(store)
    store.insert_memory(memgraph.EpisodicMemory(content="Elsewhere", project_id="B"))

    assert [entry.content for entry in commands.list(project="A")] == ["JWT failed"]
    assert [entry.content for entry in commands.list(project="B")] == ["Elsewhere"]
    assert commands.list(project="C") == []


def test_14_list_respects_limit(store, commands):
    store.insert_memories([memgraph.EpisodicMemory(content=f"note {n}", relevance_score=n / 30) for n in range(30)])

    assert [entry.content for entry in commands.list()] == [f"note {n}" for n in range(29, 9, -1)]
    assert [entry.content for entry in commands.list(limit=2)] == ["note 29", "note 28"]


def test_14_list_sorts_as_asked(store, commands, clock):
    ids = {}
    for name, relevance in (("oldest", 0.2), ("middle", 0.9), ("newest", 0.5)):
        ids[name] = store.insert_memory(memgraph.SemanticMemory(content=name, relevance_score=relevance)).id
        clock.advance(days=1)
    for name in ("newest", "oldest"):
        store.record_access(ids[name])
        clock.advance(days=1)

    assert [entry.content for entry in commands.list(sort_by="created")] == ["newest", "middle", "oldest"]
    assert [entry.content for entry in commands.list(sort_by="accessed")] == ["oldest", "newest", "middle"]
    assert [entry.content for entry in commands.list(sort_by="relevance")] == ["middle", "newest", "oldest"]
    store.update_memory(ids["oldest"], occurred_at="2020-01-01")
    ages = [
        [one.age for one in commands.list(sort_by=order)][::step] for order, step in (("created", -1), ("accessed", 1))
    ]
    assert ages[0][0] == ages[1][0] == "6 years ago", "an age has one meaning in every order"


def test_15_show_returns_full_memory(store, commands):
    made = fill(store)

    for memory in made.values():
        assert commands.show(memory.id) == store.get_memory(memory.id)
    shown = commands.show(made["procedure"].id)
    assert isinstance(shown, memgraph.ProceduralMemory)
    assert (shown.trigger_pattern, shown.steps) == ("a release", ["build", "ship"])
    assert commands.show(made["hidden"].id).content == "Not to be told"


def test_16_show_returns_none_for_non_existent_id(store, commands):
    fill(store)

    assert commands.show(str(uuid4())) is None
    assert commands.show("fake") is None


def test_17_stats_returns_correct_counts(store, commands, config):
    fill(store)

    stats = commands.stats()

    assert stats.total == 5
    assert stats.by_type == {"episodic": 2, "semantic": 2, "procedural": 1}
    assert (stats.pinned_count, stats.suppressed_count) == (1, 1)
    assert stats.avg_relevance == pytest.approx((0.5 + 0.7 + 1.0 + 0.9 + 0.4) / 5)
    assert stats.db_size_bytes >= (config.home / "memgraph.db").stat().st_size > 0


def test_18_export_includes_all_memories(store, commands, clock):
    made = fill(store)
    store.delete_memory(store.insert_memory(memgraph.EpisodicMemory(content="Deleted")).id)

    export = commands.export_memories()

    assert isinstance(export, MemoryExport)
    assert (export.version, export.total_memories) == ("1.0.0", 5)
    assert export.exported_at == "2026-02-01T09:00:00.000Z"
    assert {memory.id for memory in export.memories} == {memory.id for memory in made.values()}
    assert sum(memory.is_suppressed for memory in export.memories) == 1
    assert [(link.source_id, link.relation, link.target_id) for link in export.links] == [
        (made["episode"].id, "SUPPORTS", made["pinned"].id)
    ]


@pytest.mark.parametrize("form", ["model", "mapping", "camelCase"])
def test_19_import_inserts_new_memories(store, commands, open_store, embedder, form):
    made = fill(store)
    export = commands.export_memories()
    if form != "model":
        export = json.loads(export.model_dump_json(by_alias=form == "camelCase"))
    fresh = open_store("fresh")

    result = memgraph.MemoryCommands(fresh, embedder).import_memories(export)

    assert result.success
    assert result.data == {"imported": 5, "skipped": 0}
    for memory in made.values():
        assert fresh.get_memory(memory.id) == store.get_memory(memory.id)
    assert fresh.digest() == store.digest()


def test_19_import_takes_what_seed_0_itself_exports(store, commands):
    """Its exports name the sources of a generalisation in the memory alone; vectors are those of a model it does not name."""
    at = "2026-01-05T10:00:00.000Z"
    episode, pattern, gone = (str(uuid4()) for _ in range(3))
    shared = {
        "embedding": [0.1] * 768,
        "agentsInvolved": [],
        "outcome": "negative",
        "relevanceScore": 0.9,
        "isPinned": False,
        "isSuppressed": False,
        "accessCount": 0,
        "createdAt": at,
        "updatedAt": at,
        "tags": ["auth"],
    }
    memories = [
        {"id": pattern, "type": "semantic", "content": "JWT fails", "confidence": 0.7, "supportingMemoryIds": [episode, gone]},
        {"id": episode, "type": "episodic", "content": "JWT failed", "eventDate": at, "location": "auth.py"},
    ]  # fmt: skip
    export = {"version": "1.0.0", "exportedAt": at, "totalMemories": 2, "memories": [shared | one for one in memories]}

    result = commands.import_memories(export)

    assert (result.success, result.data) == (True, {"imported": 2, "skipped": 0})
    assert "1 supporting id " in result.message
    assert store.get_memory(pattern).supporting_memory_ids == [episode]
    assert {link.relation for link in store.links(episode)} == {"SUPPORTS", "DERIVED_FROM"}
    assert store.get_memory(episode).embedding.shape == (64,)
    assert commands.import_memories(export).data == {"imported": 0, "skipped": 2}


def test_20_import_skips_duplicate_ids(store, commands, open_store, embedder):
    fill(store)
    export = commands.export_memories()
    fresh = open_store("fresh")
    importing = memgraph.MemoryCommands(fresh, embedder)
    importing.import_memories(export)
    digest = fresh.digest()

    again = importing.import_memories(export)

    assert again.success
    assert again.data == {"imported": 0, "skipped": 5}
    assert fresh.get_stats().total == 5
    assert fresh.digest() == digest
    store.insert_memory(memgraph.EpisodicMemory(content="One more"))
    assert importing.import_memories(commands.export_memories()).data == {"imported": 1, "skipped": 5}


def test_21_format_age_just_now(commands, clock):
    assert commands.format_age(clock().isoformat()) == "just now"
    assert commands.format_age((clock() - timedelta(seconds=59)).isoformat()) == "just now"


@pytest.mark.parametrize(
    ("ago", "words"),
    [
        (timedelta(minutes=5, seconds=59), "5 minutes ago"),
        (timedelta(minutes=59, seconds=59), "59 minutes ago"),
        (timedelta(hours=23, minutes=59), "23 hours ago"),
        (timedelta(days=2), "2 days ago"),
        (timedelta(days=29, hours=23), "29 days ago"),
        (timedelta(days=60), "2 months ago"),
        (timedelta(days=364), "12 months ago"),
        (timedelta(days=730), "2 years ago"),
    ],
)
def test_22_format_age_of_days(commands, clock, ago, words):
    assert commands.format_age((clock() - ago).isoformat()) == words
