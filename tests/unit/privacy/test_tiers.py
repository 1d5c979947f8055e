"""The privacy tier of a domain, and of texts that plainly concern health, money or identity numbers."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph import EpisodicMemory, SemanticMemory
from memgraph.model.memory import parse_memory
from memgraph.privacy import classified, finding_of, inferred, tier_of_domain
from tests.growth import assert_grows_linearly


@pytest.mark.parametrize(
    ("domain", "tier"),
    [("travel", "public"), (None, "public"), ("astronomy", "public"), ("Financial", "sensitive"), ("finance", "sensitive"),
     ("relationships", "sensitive"), ("relationship", "sensitive"), ("banking", "sensitive"), ("personal-finance", "sensitive"),
     ("healthcare", "private"), ("medicine", "private"), ("mental health", "private"), ("diaries", "private"), (" HEALTH ", "private"), ("medical", "private"), ("journal", "private")],
)  # fmt: skip
def test_the_tier_of_a_domain(domain: str | None, tier: str) -> None:
    assert tier_of_domain(domain) == tier


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("I was told that I have diabetes", "health"),
        ("Maria takes insulin every morning", "health"),
        ("The user is allergic to peanuts", "health"),
        ("My father had a heart attack in May", "health"),
        ("Her oncologist moved to another clinic", "health"),
        ("My salary is 90,000 a year", "financial"),
        ("Joan's bank account is at the corner", "financial"),
        ("Peter earns $4,200 a month", "financial"),
        ("The number is 219-09-9998", "identity"),
        ("Passport number: X1234567", "identity"),
        ("Send it to GB82 WEST 1234 5698 7654 32", "identity"),
        ("Pay with 4111 1111 1111 1111", "identity"),
        ("Pay with 4111111111111111", "identity"),
        ("i have diabetes and take insulin", "health"),
        ("I was diagnosed with a rare syndrome", "health"),
        ("My wife has recently been diagnosed with it", "health"),
        ("I make 90k a year", "financial"),
        ("she earns 4,200 euros per month", "financial"),
    ],
)
def test_a_text_that_plainly_concerns_a_person(text: str, domain: str) -> None:
    found = finding_of(text)
    assert found is not None
    assert (found.domain, found.tier) == (domain, "sensitive" if domain == "financial" else "private")


@pytest.mark.parametrize(
    "text",
    [
        "The health check of the gateway returns 503 after a restart",
        "The diabetes dataset is used in the regression tests",
        "The patient table stores blood pressure as an integer",
        "Rate limits are a money saver; the token budget is 800",
        "I fixed the memory leak, it was a long surgery on the parser",
        "The cache suffers from races when my laptop sleeps",
        "The invoice service owes its speed to an index",
        "Release 2024-11-0001 was built by job 123-456-7890",
        "Checksum 4111 1111 1111 1112, block 1234-5678-9012-3456",
        "GB00 WEST 1234 5698 7654 32 is a fixture with wrong check digits",
        "The passport library validates tokens",
        "The build was diagnosed with a memory leak",
        "I make 5 commits a week and 90k requests a year are served",
        "The snowflake id is 4111111111111112, the hash 0x4111111111111111a",
        "The cancer dataset is loaded. I like it",
        "Use the income field of the tax service, not the salary one",
    ],
)
def test_a_text_about_software_is_left_as_it_is(text: str) -> None:
    assert finding_of(text) is None


def test_a_tier_that_was_given_stays() -> None:
    text = "My salary is 90,000 a year"
    assert classified(SemanticMemory(content=text, privacy_tier="public")).privacy_tier == "public"
    raised = classified(SemanticMemory(content=text))
    assert (raised.privacy_tier, raised.domain) == ("sensitive", "financial")
    kept = classified(EpisodicMemory(content=text, domain="work"))
    assert (kept.privacy_tier, kept.domain) == ("sensitive", "work")
    assert classified(EpisodicMemory(content=text, domain="journal")).privacy_tier == "private"


def test_the_caller_is_told_why() -> None:
    assert inferred("health", "Ran ten kilometres").notice is None  # the domain said so
    notice = inferred("travel", "I take insulin every morning").notice
    assert notice is not None
    assert "private" in notice
    assert "health" in notice


def test_a_domain_that_is_almost_a_known_one_is_told() -> None:
    notice = inferred("helth", "Ran ten kilometres").notice
    assert notice is not None
    assert "did you mean health, which is private?" in notice
    assert [inferred(domain, "Ran").notice for domain in ("travel", "work", "wellness", None)] == [None] * 4


@pytest.mark.parametrize("field", ["title", "tags", "lesson", "correct_approach", "goal", "user_feedback", "steps"])
def test_every_text_of_a_memory_counts(field: str) -> None:
    said = "I take insulin every morning"
    value = [said] if field in ("tags", "steps") else said
    kind = "episodic" if field in ("goal", "user_feedback") else "procedural" if field == "steps" else "semantic"
    memory = parse_memory({"type": kind, "content": "The plan for the morning", field: value})
    assert (classified(memory).privacy_tier, classified(memory).domain) == ("private", "health")


@pytest.mark.parametrize("unit", ["cancer ", "I cancer ", "I ", "my salary ", "4111 ", "GB82WEST", "he was she had "])
def test_long_texts_cost_little(unit: str) -> None:
    assert_grows_linearly(lambda length: finding_of(unit * (length // len(unit))), 8_000)


@pytest.fixture
def memory(store: Any) -> Any:
    import memgraph

    return memgraph.MemGraph(store)


def test_every_door_gives_the_tier(memory: Any) -> None:
    said = memory.save_observation("I take insulin every morning")
    assert "private" in said.notice
    assert memory.store.get_memory(said.memory_id).domain == "health"
    done = memory.save_episode("Book a doctor", "asked", "called the clinic", "success", context="health")
    assert memory.store.get_memory(done.episode_id).privacy_tier == "private"
    kept = memory.store.insert_memory({"type": "semantic", "content": "My salary is 90,000 a year"})
    assert kept.privacy_tier == "sensitive"
    assert any("sensitive" in one for one in memory.store.notices)
    plain = memory.store.insert_memory({"type": "semantic", "content": "The build runs at night"})
    assert memory.store.update_memory(plain.id, content="I take insulin at night").privacy_tier == "private"
    assert memory.store.update_memory(plain.id, privacy_tier="public").privacy_tier == "public"


def test_a_change_of_any_text_or_of_the_domain_raises_the_tier(memory: Any) -> None:
    insert, edit = memory.store.insert_memory, memory.curation.edit
    ids = [insert({"type": "semantic", "content": f"The plan for day {number}"}).id for number in range(5)]
    edit(ids[0], {"domain": "health"})
    edit(ids[1], {"domain": "health", "privacy_tier": "public"})
    edit(ids[2], add_tags=["my insulin"])
    (new,) = [one.id for one in edit(ids[3], {"domain": "finance"}, as_new=True).memories if one.change == "added"]
    parts = memory.curation.split(ids[4], ["I have cancer", "The plan for the night"]).memories[:2]
    found = [memory.store.get_memory(one) for one in (*ids[:3], new, *(part.id for part in parts))]
    assert [one.privacy_tier for one in found] == ["private", "public", "private", "sensitive", "private", "public"]
    edit(ids[1], {"title": "A plan"})
    assert memory.store.get_memory(ids[1]).privacy_tier == "public"  # what was decided once is kept


def test_the_whole_text_decides_for_each_part(memory: Any) -> None:
    ids = memory.commands.remember("I take insulin every morning. " + "The plan for the day is long. " * 60).data["ids"]
    assert len(ids) > 1
    assert {memory.store.get_memory(one).privacy_tier for one in ids} == {"private"}
