"""Near-duplicates: what becomes one, what stays apart, what is left of each, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from memgraph.embedding import NoEmbedder
from memgraph.lifecycle.dedup import near_duplicates as module
from memgraph.lifecycle.dedup.near_duplicates import PHASE, merge_near_duplicates
from memgraph.lifecycle.dedup.same import same
from memgraph.model.events.records import SleepAdvanced
from memgraph.model.memory import parse_memory

TEXT = "Deploys of the shop run on Tuesdays after the tests have passed"
LONGER = f"{TEXT}. Everybody agreed"
START = "2026-02-01T09:00:00.000Z"
EPISODE = {"type": "episodic", "build_id": "b1"}


def memory(number: int, content: str = TEXT, **fields: Any) -> dict[str, Any]:
    return {"id": str(UUID(int=number)), "type": "semantic", "content": content, "project_id": "shop", **fields}


def id_of(number: int) -> str:
    return str(UUID(int=number))


def gone(store: Any) -> list[int]:
    """Return the numbers of what a newer one replaces."""
    return sorted(UUID(one.id).int for one in store.list_memories(state="superseded"))


def keep(store: Any, *memories: dict[str, Any]) -> None:
    for one in memories:
        store.insert_memory(one)


class TestMerged:
    def test_the_later_memory_takes_the_longer_text_and_supersedes_the_other(self, store: Any) -> None:
        first, second = (
            memory(1, confidence=0.9, relevance_score=0.4, occurred_at="2026-01-09"),
            memory(2, LONGER, confidence=0.6, relevance_score=0.7, occurred_at="2026-01-02"),
        )
        keep(store, {**first, "evidence_build_ids": ["b1"]}, {**second, "evidence_build_ids": ["b2"]})
        assert merge_near_duplicates(store).merged == 1
        kept, other = store.get_memory(id_of(1)), store.get_memory(id_of(2))
        assert (kept.content, kept.evidence_build_ids, kept.source_event_ids) == (LONGER, ["b1", "b2"], [id_of(2)])
        assert np.array_equal(kept.embedding, other.embedding)
        assert (kept.relevance_score, kept.confidence) == (0.7, 0.9)
        (link,) = [one for one in store.links(id_of(1)) if one.relation == "SUPERSEDES"]
        assert (link.target_id, link.reason, link.score is not None and link.score >= 0.9) == (
            id_of(2),
            "near-duplicate",
            True,
        )
        assert other.content == LONGER
        assert gone(store) == [2]

    @pytest.mark.parametrize("ids", [(1, 2), (2, 1)])
    @pytest.mark.parametrize("dated_by", ["occurred_at", "valid_at"])
    def test_the_later_one_stays_whatever_the_ids_are_and_of_copies_the_first(
        self, store: Any, ids: tuple[int, int], dated_by: str
    ) -> None:
        older, newer = ids
        store.insert_memories(
            [memory(newer, LONGER, **{dated_by: "2026-01-09"}), memory(older, **{dated_by: "2026-01-02"})]
        )
        assert merge_near_duplicates(store).merged == 1
        assert gone(store) == [older]
        store.insert_memories(
            memory(number + 2, project_id="bank", **{dated_by: f"2026-01-0{place}"})
            for place, number in enumerate(ids, start=1)
        )
        assert merge_near_duplicates(store).merged == 1
        assert gone(store) == sorted([older, newer + 2])

    def test_twice_is_once(self, store: Any) -> None:
        keep(store, memory(1), memory(2, LONGER), memory(3))
        assert merge_near_duplicates(store).merged == 2
        digest = store.digest()
        assert merge_near_duplicates(store).merged == 0
        assert store.digest() == digest

    def test_a_pinned_memory_keeps_its_text(self, store: Any) -> None:
        keep(store, memory(1, LONGER), memory(2, is_pinned=True))
        assert merge_near_duplicates(store).merged == 1
        assert gone(store) == [1]
        assert store.get_memory(id_of(2)).content == TEXT

    def test_a_separated_pair_is_not_merged_again(self, store: Any) -> None:
        keep(store, memory(1), memory(2, LONGER))
        merge_near_duplicates(store)
        store.unsupersede(id_of(1))
        assert merge_near_duplicates(store).merged == 0
        assert gone(store) == []

    def test_an_adopted_text_is_compared_with_earlier_memories(self, store: Any) -> None:
        def at(degrees: float) -> list[float]:
            return [np.cos(np.radians(degrees)), np.sin(np.radians(degrees)), *[0.0] * 62]

        failure = {"type": "episodic", "build_id": "b1"}
        keep(
            store,
            memory(1, "The import of the rows failed", embedding=at(0), **failure),
            memory(2, "The import of rows failed", embedding=at(40), **failure),
            memory(3, "The import of a row failed!", embedding=at(20), **failure),  # near both
        )
        assert merge_near_duplicates(store).merged == 2
        assert gone(store) == [1, 2]

    def test_a_text_only_store_compares_words(self, open_store: Callable[..., Any]) -> None:
        store = open_store(embedder=NoEmbedder())
        keep(store, memory(1), memory(2, LONGER), memory(3, "Deploys of the shop are done by hand on Tuesdays"))
        result = merge_near_duplicates(store)
        assert (result.merged, result.by_words) == (1, 1)
        assert gone(store) == [1]

    def test_one_without_a_vector_among_others(self, open_store: Callable[..., Any]) -> None:
        with open_store(embedder=NoEmbedder()) as store:
            keep(store, memory(1))
        store = open_store()
        keep(store, memory(2, LONGER))
        result = merge_near_duplicates(store)
        assert (result.merged, result.by_words) == (1, 1)

    def test_hundreds_of_equal_texts(self, store: Any) -> None:
        store.insert_memories([memory(number) for number in range(1, 121)])
        assert merge_near_duplicates(store).merged == 119
        assert len(store.get_memory(id_of(1)).source_event_ids) == 119

    def test_of_two_with_own_content_the_newer_text_wins(self, store: Any) -> None:
        older, newer = ("In the nightly builds, the login failed", "Login failed in the nightly builds")
        failed = {"type": "episodic", "build_id": "b1"}
        keep(store, memory(1, older, occurred_at="2026-01-01", **failed))
        keep(
            store, memory(2, newer, occurred_at="2026-01-09", embedding=store.get_memory(id_of(1)).embedding, **failed)
        )
        assert len(newer) < len(older)
        assert merge_near_duplicates(store).merged == 1
        kept = store.get_memory(id_of(2))
        assert (kept.content, kept.occurred_at[:10], gone(store)) == (newer, "2026-01-09", [1])

    def test_different_values_are_never_merged(self, store: Any) -> None:
        texts = ("The standup of the shop team is at 9:30", "The standup of the shop team is at 10:00")
        others = ("Deploy the shop to the staging server first", "Deploy the shop to the production server first")
        for number, text in enumerate((*texts, *others), start=1):
            keep(store, memory(number, text, embedding=np.ones(64)))
        assert merge_near_duplicates(store).merged == 0

    def test_work_is_done_in_portions_and_an_interrupted_run_continues(
        self, store: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("memgraph.lifecycle.dedup.near_duplicates._PORTION", 4)
        for number in range(1, 13):
            keep(store, memory(number, f"Fact {number % 5} stands alone" if number % 2 else TEXT))
        seen: list[int] = []
        asked = iter([False])
        result = merge_near_duplicates(store, is_time_up=lambda: next(asked, True), on_portion=seen.append)
        assert (result.complete, len(seen)) == (False, 2)
        store.commit(
            "system",
            [
                SleepAdvanced(
                    started_at=START, advanced_at=START, phase=PHASE, complete=True, through_seq=seen[-1], changed=0
                )
            ],
            actor="system",
        )
        left = merge_near_duplicates(store, on_portion=seen.append)
        assert left.complete
        assert seen == sorted(set(seen))
        assert gone(store) == [4, 6, 8, 10, 11, 12]  # 11 says what 1 does

    def test_the_first_portion_is_done_and_the_rest_waits_when_the_time_is_up(
        self, store: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("memgraph.lifecycle.dedup.near_duplicates._PORTION", 2)
        keep(store, memory(1), memory(2, LONGER), memory(3))
        result = merge_near_duplicates(store, is_time_up=lambda: True)
        assert (result.merged, result.complete) == (1, False)

    def test_two_texts_that_say_more_in_their_own_way_do_not_meet_through_a_third(self, store: Any) -> None:
        keep(store, memory(1), memory(2, LONGER), memory(3, f"{TEXT}. The bank asked for it"))
        for number in (2, 3):
            store.update_memory(id_of(number), embedding=store.get_memory(id_of(1)).embedding)
        assert merge_near_duplicates(store).merged == 1
        assert merge_near_duplicates(store).merged == 0
        assert gone(store) == [1]


APART: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *(
        ({}, {"content": LONGER, **fields})
        for fields in (
            {"task_id": "T"},
            {"privacy_tier": "private"},
            {"trust_class": "web"},
            {"domain": "travel"},
            {"speaker": "Ann"},
            {"outcome": "failure"},
            {"type": "procedural"},
            {"invalid_at": "2030-01-01"},
            {"is_suppressed": True},
            {"archived_at": "2026-01-01"},
            {"source": "compression"},
            {"source": "work order"},
            {"correct_approach": "run them first"},
        )
    ),
    ({}, {"content": LONGER.replace("run", "never run")}),
    ({}, {"content": LONGER.replace("Tuesdays", "Mondays")}),
    ({"content": f"{TEXT} 4 times"}, {"content": f"{LONGER} 3 times"}),
]


def test_only_comparable_memories_with_equal_meaning_are_merged(store: Any) -> None:
    for number, (one, other) in enumerate(APART):
        project = f"p{number}"
        keep(store, {**memory(2 * number + 1, project_id=project), **one})
        keep(store, {**memory(2 * number + 2, project_id=project), **other})
    digest = store.digest()
    assert merge_near_duplicates(store).merged == 0
    assert store.digest() == digest


def test_pinned_or_contradicting_pairs_are_not_merged(store: Any) -> None:
    keep(store, memory(1, is_pinned=True), memory(2, LONGER, is_pinned=True))
    keep(store, memory(3, project_id="bank"), memory(4, LONGER, project_id="bank"))
    store.link(id_of(4), "CONTRADICTS", id_of(3))
    assert merge_near_duplicates(store).merged == 0
    keep(store, memory(5, f"{LONGER}. The bank did", project_id="bank"))  # it is the same as either of these
    assert merge_near_duplicates(store).merged == 1
    keep(store, memory(6, TEXT, is_pinned=True))
    assert merge_near_duplicates(store).merged == 1  # said twice in equal words


def test_episodes_without_a_build_are_not_merged(store: Any) -> None:
    keep(store, memory(1, **EPISODE), memory(2, f"**{TEXT}**!", type="episodic", build_id="b2"))
    keep(store, *(memory(number, type="episodic", project_id="bank") for number in (3, 4, 5)))
    assert merge_near_duplicates(store).merged == 1
    assert store.get_memory(id_of(1)).evidence_build_ids == ["b1", "b2"]
    assert gone(store) == [2]


def test_parts_of_longer_texts_are_not_merged(store: Any) -> None:
    for first in (1, 3):
        store.insert_parts([parse_memory(memory(first)), parse_memory(memory(first + 1, "It is so since the outage"))])
    assert merge_near_duplicates(store).merged == 0


def test_concurrent_writes_are_respected(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(store, memory(1), memory(2, LONGER), memory(3, project_id="bank"))

    def judged(one: Any, other: Any) -> bool:
        monkeypatch.setattr(module, "same", same)
        store.update_memory(id_of(2), content=LONGER.replace("run", "never run"))
        return same(one, other)

    monkeypatch.setattr(module, "same", judged)
    result = merge_near_duplicates(store)
    assert (result.merged, result.complete) == (0, True)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("Use pnpm and not npm in this repository", "In this repository use pnpm and not npm", True),
        ("The cache is cold after a deploy", "The cache is cold after a deploy. This surprises newcomers", True),
        ("The cache is cold after a deploy", "The cache is cold after a deploy. It was fixed in 2.1", False),
        ("The cache is cold after a deploy", "The cache is cold after a deploy. Not in staging", False),
        ("The cache is cold after a deploy", "The cache is cold after a deploy, in staging", False),
        ("Deploy on Fridays", "Do not deploy on Fridays", False),
        ("Set the limit from 10 to 20", "Set the limit from 20 to 10", False),
        ("Ann reviews what Bob writes", "Bob reviews what Ann writes", False),
        ("The parser needs Python 3.11", "The parser needs Python 3.12", False),
        ("Make the call with --fast", "Make the call with fast", False),
        ("Compare with a != b", "Compare with a == b", False),
        ("- *Never* push to `main`", "never push to main.", True),
        ("The deploy key lies in the vault of the team", "The deploy key lies in the safe of the team", False),
        ("Ann owns the billing service", "Bob owns the billing service", False),
        ("The meeting with Ann is in Oslo each May", "The meeting with Bob is in Paris each May", False),
        ("The limit is 10 requests a second", "The limit is 20 requests a second", False),
        ("The user prefers window seats on long flights", "The user prefers aisle seats on short flights", False),
        (
            "The shop retries failed payments three times and waits ten seconds between calls to the bank",
            "The shop retries failed payments five times and waits thirty seconds between calls to the bank",
            False,
        ),
        (
            "The billing job reads from the alpha replica and writes to the main queue in the western zone every hour",
            "The billing job reads from the beta replica and writes to the main queue in the eastern zone every hour",
            False,
        ),
        (
            "Weekly the importer of the shop reads all the rows that the suppliers left in the bucket",
            "The importer of the shop reads all the rows that the suppliers left in the bucket nightly",
            False,
        ),
        ("The cache isn't warm after a deploy", "The cache is not warm after a deploy", True),
        ("Before a deploy, warm the cache", "Warm the cache before a deploy", True),
        ("Deploy the shop before the bank", "Deploy the bank before the shop", False),
        ("Do not deploy on Fridays", "Never deploy on Fridays", True),
        ("We deploy on Fridays?", "We deploy on Fridays.", False),
        ("Read ../config.toml first", "Read /config.toml first", False),
        ("The table has 10² rows", "The table has 102 rows", False),
        ("The freezer runs at –5 degrees", "The freezer runs at 5 degrees", False),
        ("Team A is on call", "Team is on call", False),
        ("Deploy on Fridays only", "Deploy on Fridays only. That rule is wrong", False),
        ("Use tabs in the code", "Use tabs in the code. Bob disagrees", False),
        ("On 2026-01-05 the login failed behind the proxy", "On 2026-02-09 the login failed behind the proxy", False),
        (
            "Mended the freeze when the playlist is empty",
            "Mended the freeze when the playlist has a track that nobody tagged",
            False,
        ),
        ("The mailer drops messages without a subject", "The mailer drops messages whose sender left the list", False),
    ],
)
def test_whether_one_can_stand_for_both(one: str, other: str, is_same: bool) -> None:
    pair = [parse_memory({"type": "semantic", "content": text}) for text in (one, other)]
    assert same(*pair) is is_same
    assert same(*reversed(pair)) is is_same


def test_reports_of_one_failure_may_differ_in_time_and_address() -> None:
    texts = (
        "On 2026-01-05 the import failed at 0x7fa0 (12 rows)",
        "On 2026-02-09 the import failed at 0x11bc (12 rows)",
        "On 2026-02-09 the import failed at 0x11bc (31 rows)",
    )
    one, other, another = (
        parse_memory({"type": "episodic", "content": text, "failure_fingerprint": "f00"}) for text in texts
    )
    assert same(one, other)
    assert not same(other, another)


def test_a_failure_reported_again_is_the_same() -> None:
    first, again, other = (
        parse_memory({"type": "episodic", "content": text, "outcome": "negative"})
        for text in ("Tokens failed", "Refresh tokens failed again", "Tokens never failed again")
    )
    assert same(first, again)
    assert same(again, first)
    assert not same(first, other)


def test_two_commits_are_the_same_only_in_equal_words() -> None:
    texts = (
        "Fix the login of the shop",
        "Fixed the login of the shop",
        "Fix the login of the shop. The cookie was lost",
    )
    one, equal, more = (
        parse_memory({"type": "episodic", "content": text, "git_commit": f"{number}" * 40})
        for number, text in enumerate(texts)
    )
    assert same(one, equal)
    assert not same(one, more)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Tokens failed", "Sessions were dropped at sign-in"),
        ("Token rotation failed under load", "Two requests that race refresh their tokens twice"),
        ("The importer reads the rows twice", "Rows are duplicated when suppliers are loaded"),
        ("Tokens failed", "Tokens failed because the proxy strips the header"),
    ],
)
def test_near_texts_that_are_not_seen_to_differ_are_the_same(one: str, other: str) -> None:
    pair = [parse_memory({"type": "episodic", "content": text}) for text in (one, other)]
    assert same(*pair)
    assert same(*reversed(pair))
