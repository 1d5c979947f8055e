"""Temporal validation: what a text says of its own end, and what becomes of facts whose time is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memgraph.lifecycle.contradictions.resolution import STATED, stated_end, validate_facts
from memgraph.text.attempts import NOT_VERIFIED

SAID = "2026-02-01T09:00:00.000Z"


@pytest.mark.parametrize(
    ("text", "day_after"),
    [
        ("The freeze holds until 2026-03-31.", "2026-04-01"),
        ("The offer is valid until 31 March 2026", "2026-04-01"),
        ("The certificate expires on March 31st, 2026.", "2026-04-01"),
        ("Use the old API through the end of 2026.", "2027-01-01"),
        ("Support for Python 3.9 ends in October 2026.", "2026-11-01"),
        ("Up to 2026-03-31 the price is 5 euros", "2026-04-01"),
        ("Freeze until 2026-03-31, for the shop until 2026-04-15", "2026-04-16"),
        ("Reads are free until 2026-03-31. Writes are free until 2026-02-28.", "2026-04-01"),
    ],
)
def test_a_stated_end_is_recognised(text: str, day_after: str) -> None:
    assert stated_end(text, SAID) == f"{day_after}T00:00:00.000Z"


@pytest.mark.parametrize(
    "text",
    [
        "The database is Postgres 16",
        "Deploys are frozen until 2026-03-31. The database is Postgres 16.",  # the second fact has no end
        "The service was down until 2026-03-31",
        "The key has been valid until 2026-03-31",
        "The coupon is not valid until 2026-03-31",
        "The endpoint isn't available until 2026-03-31",
        "The freeze holds until 2026-01-31",  # that was over when it was said: history
        "The freeze holds until 03/04/2026",
        "The token expires 31.03.2026",
        "The freeze holds until 2026-02-30",
        "The freeze holds until Friday",
        "Up to 2026 requests a second are served",
        "The build ends with 2026 warnings",
        "We wait until 2026-03-311",
    ],
)
def test_ambiguous_text_states_no_end(text: str) -> None:
    assert stated_end(text, SAID) is None


def fact(store: Any, content: str, **fields: Any) -> str:
    return str(store.insert_memory({"type": "semantic", "content": content, "project_id": "shop", **fields}).id)


def listed(store: Any) -> set[str]:
    return {memory.id for memory in store.get_all_memories()}


def test_a_fact_becomes_invalid_at_its_stated_end(store: Any, clock: Any) -> None:
    ending, lasting = fact(store, "The freeze holds until 2026-03-31"), fact(store, "Deploys run on Tuesdays")
    clock.set("2026-03-31T23:00:00Z")
    assert validate_facts(store).expired == 0
    clock.set("2027-03-31T00:00:00Z")
    assert validate_facts(store).expired == 1
    assert listed(store) == {lasting}  # however old it is
    found = store.get_memory(ending)
    assert (found.invalid_at, found.invalidation_reason) == ("2026-04-01T00:00:00.000Z", STATED)
    digest = store.digest()
    assert (validate_facts(store).expired, store.digest()) == (0, digest)


def test_only_what_is_quoted_states_an_end(store: Any, clock: Any) -> None:
    ends, lasts = "The freeze holds until 2026-03-31.", "Deploys run on Tuesdays."
    fact(store, f"“{ends}”{NOT_VERIFIED}Deploys are frozen. They resume later.")
    lasting = fact(store, f"“{lasts}”{NOT_VERIFIED}They run until 2026-03-31.")
    clock.set("2027-03-31T00:00:00Z")
    assert validate_facts(store).expired == 1
    assert listed(store) == {lasting}


def test_a_pinned_fact_stays_and_is_counted(store: Any, clock: Any) -> None:
    kept = fact(store, "The freeze holds until 2026-03-31", is_pinned=True)
    fact(store, "The other freeze holds until 2026-03-31")
    clock.set("2026-04-02")
    result = validate_facts(store)
    assert (result.expired, result.ended_but_pinned, listed(store)) == (1, 1, {kept})
    store.update_memory(kept, is_pinned=False)  # which says nothing of the freeze
    assert (validate_facts(store).expired, listed(store)) == (0, {kept})  # whoever changed it after its end knew better


def test_events_are_not_retired_and_fields_override_the_text(store: Any, clock: Any) -> None:
    kept = {
        fact(store, "The freeze holds until 2026-03-31", type="episodic"),
        fact(store, "The freeze is on until 2026-03-31", invalid_at="2028-01-01"),
        fact(store, "The new freeze holds until 2026-03-31", valid_at="2026-04-02"),
    }
    clock.set("2027-01-01")
    assert validate_facts(store).expired == 0
    assert listed(store) == kept


def test_a_later_confirmation_overrides_the_stated_end(store: Any, clock: Any) -> None:
    ending = fact(store, "The freeze holds until 2026-03-31")
    clock.set("2026-04-02")
    validate_facts(store)
    store.revalidate(ending)
    clock.set("2026-05-02")
    assert validate_facts(store).expired == 0
    assert listed(store) == {ending}


def test_each_write_scope_has_its_own_commit(store: Any, clock: Any) -> None:
    for number in range(6):
        task = {0: None, 1: "T1", 2: "T2"}[number % 3]
        fact(store, f"Freeze {number} holds until 2026-03-31", **({"task_id": task} if task else {}))
    clock.set("2026-04-02")
    assert validate_facts(store).expired == 6
    assert not listed(store)


def test_it_stops_when_the_time_is_up(open_store: Callable[..., Any], clock: Any) -> None:
    store = open_store()
    fact(store, "The freeze holds until 2026-03-31")
    clock.set("2026-04-02")
    result = validate_facts(store, is_time_up=lambda: True)
    assert (result.expired, result.complete) == (0, False)
