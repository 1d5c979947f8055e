"""The privacy tier of a domain, and of texts that plainly concern health, money or identity numbers."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph import EpisodicMemory, SemanticMemory
from memgraph.privacy.tiers import classified, finding_of, inferred, tier_of_domain


@pytest.mark.parametrize(
    ("domain", "tier"),
    [("travel", "public"), (None, "public"), ("astronomy", "public"), ("Financial", "sensitive"), ("finance", "sensitive"),
     ("relationships", "sensitive"), (" HEALTH ", "private"), ("medical", "private"), ("journal", "private")],
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


def test_long_texts_cost_little() -> None:
    for text in ("I " * 4_000, "my salary " * 800, "4111 " * 1_600, "GB82WEST" * 1_000, "he was she had " * 500):
        finding_of(text)


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
