"""Laws of learning: twice is once, replayed it is the same, killed anywhere it ends as if it had not been, and no run makes laxer.

Whatever is drawn, there is something to learn: three builds that went well the same way, three that met the same error, and three
failures of one kind.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memgraph.index.columns import TIERS, TRUST
from memgraph.lifecycle.errors import analyse_errors
from memgraph.lifecycle.lessons import compress
from memgraph.lifecycle.procedures import approve_proposal, learn_procedures, list_proposals
from memgraph.model.events.records import FADED
from memgraph.model.results.learning import COUNTING_SOURCE, FEEDBACK_SOURCE, MADE_BY_SLEEP

LAWS = settings(max_examples=6, suppress_health_check=list(HealthCheck))
MORE = settings(LAWS, max_examples=60)
ERRORS = ["KeyError: 'a'", "connect ECONNREFUSED 10.0.0.1", "No such file or directory: x"]

episodes = st.lists(
    st.fixed_dictionaries(
        {
            "goal": st.sampled_from(["refund a broken order", "cancel a late flight"]),
            "steps": st.lists(st.sampled_from(["look_up", "check", "pay_back", "tell"]), min_size=2, max_size=6),
            "outcome": st.sampled_from(["positive", "positive", "negative"]),
            "project_id": st.sampled_from([None, "A"]),
            "task_id": st.sampled_from([None, None, "T"]),
            "build_id": st.sampled_from([f"b{n}" for n in range(6)]),
            "error": st.sampled_from([None, *ERRORS]),
            "privacy_tier": st.sampled_from(["public", "public", "private"]),
            "trust_class": st.sampled_from(["agent", "agent", "web"]),
        }
    ),
    min_size=4,
    max_size=20,
)
tiers = st.lists(st.sampled_from(["public", "private"]), min_size=9, max_size=9)
withdrawals = st.sets(st.integers(0, 28), max_size=8)
LAWFUL = {
    "drawn": episodes,
    "tiers": tiers,
    "withdrawn": withdrawals,
    "is_pinned": st.booleans(),
    "killed_at": st.integers(0, 8),
}
names = (f"store {n}" for n in itertools.count())


class KilledError(Exception):
    """The process is gone."""


def always(tiers: list[str]) -> list[dict[str, Any]]:
    """Return what there is to learn, with these privacy tiers."""
    kept = {"project_id": "A", "task_id": None, "trust_class": "agent"}
    solved = {"outcome": "positive", "goal": "mend a torn sail", "steps": ["find", "sew", "hoist"], "error": None}
    failed = {"outcome": "negative", "goal": "ring the bell", "steps": [], "error": "ValueError: the rope is gone"}
    alike = {**failed, "goal": "paint the hull", "error": None, "tags": ["hull", "paint"]}
    told = [{**kept, **one, "build_id": f"b{n}"} for one in (solved, failed, alike) for n in range(3)]
    return [{**one, "privacy_tier": tier} for one, tier in zip(told, tiers, strict=True)]


def keep(store: Any, drawn: list[dict[str, Any]]) -> None:
    known = []
    for number, one in enumerate(drawn):
        log = [{"t": float(place), "action": action} for place, action in enumerate(one["steps"])]
        errors = [{"type": "error", "message": one["error"]}] if one["error"] else []
        names = ("goal", "outcome", "project_id", "task_id", "build_id", "privacy_tier", "trust_class", "tags")
        kept = {name: one[name] for name in names if name in one}
        told = {
            "id": f"00000000-0000-4000-8000-{number:012d}",
            "type": "episodic",
            "content": f"Case {number} was closed at night.",
        }
        known.append({**told, **kept, "action_log": log, "errors_encountered": errors})
    for task_id in (None, "T"):
        store.insert_memories([one for one in known if one["task_id"] == task_id])


def learn(store: Any) -> None:
    compress(store, embedder=store.embedder)
    analyse_errors(store)
    learn_procedures(store)


def learned(store: Any) -> dict[str, tuple[int, int]]:
    """Return how open and how trusted everything is that was learned."""
    made = (one for one in store.every_memory() if one.source in MADE_BY_SLEEP)
    return {one.id: (TIERS.index(one.privacy_tier), TRUST.index(one.trust_class)) for one in made}


def withdraw(store: Any, numbers: set[int], *, is_pinned: bool) -> None:
    """Approve what was proposed, pin everything or nothing, then forget some episodes, let others fade and delete the rest."""
    learn(store)
    for proposal in list_proposals(store):
        approve_proposal(store, proposal.id)
    made = {store.get_memory(one).source for one in learned(store)}
    assert made == MADE_BY_SLEEP - {FEEDBACK_SOURCE, COUNTING_SOURCE}
    for one in learned(store):
        store.update_memory(one, is_pinned=is_pinned)
    for number in sorted(numbers):
        memory_id = f"00000000-0000-4000-8000-{number:012d}"
        if store.get_memory(memory_id) is not None:
            ways = (store.suppress, store.delete_memory, partial(store.delete_memory, reason=FADED))
            ways[number % 3](memory_id)


def check_the_laws(
    open_store: Callable[..., Any],
    drawn: list[dict[str, Any]],
    tiers: list[str],
    withdrawn: set[int],
    is_pinned: bool,
    killed_at: int,
) -> None:
    with open_store(next(names)) as whole, open_store(next(names)) as killed:
        for store in (whole, killed):
            keep(store, [*always(tiers), *drawn])
            withdraw(store, withdrawn, is_pinned=is_pinned)
        made = learned(whole)
        learn(whole)
        after = learned(whole)
        assert all(now >= then for one in made for now, then in zip(after[one], made[one], strict=True))
        with pytest.MonkeyPatch.context() as patch:
            commits = itertools.count()

            def commit(store: Any, *args: Any, **named: Any) -> Any:
                if next(commits) == killed_at:
                    raise KilledError
                return type(store).commit(store, *args, **named)

            patch.setattr(killed, "commit", commit.__get__(killed))
            for _ in range(3):
                with suppress(KilledError):
                    learn(killed)
        learn(killed)
        assert killed.digest() == whole.digest()
        before = whole.digest(), whole.reader.index.offset.seq
        learn(whole)  # what one of them wrote another one looks at, and finds nothing to be done
        assert whole.digest() == before[0]
        assert {event.write_scope for event in whole.reader.events_after(before[1])} <= {"system"}
        settled = whole.reader.index.offset.seq
        learn(whole)
        assert (whole.digest(), whole.reader.index.offset.seq) == (before[0], settled)
        whole.rebuild()
        assert whole.digest() == before[0]


@LAWS
@given(**LAWFUL)
def test_twice_replayed_and_killed(open_store: Callable[..., Any], **drawn: Any) -> None:
    check_the_laws(open_store, **drawn)


@pytest.mark.long
@MORE
@given(**LAWFUL)
def test_the_same_at_length(open_store: Callable[..., Any], **drawn: Any) -> None:
    check_the_laws(open_store, **drawn)
