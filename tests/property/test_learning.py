"""Laws of learning: twice is once, replayed it is the same, and killed anywhere it ends as if it had not been."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memgraph.lifecycle.antipatterns import analyse_errors
from memgraph.lifecycle.procedures import learn_procedures
from memgraph.lifecycle.proposals import approve_proposal, list_proposals

LAWS = settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
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
        }
    ),
    min_size=4,
    max_size=20,
)
withdrawals = st.sets(st.integers(0, 19), max_size=6)
names = (f"store {n}" for n in itertools.count())


class KilledError(Exception):
    """The process is gone."""


def keep(store: Any, drawn: list[dict[str, Any]]) -> None:
    known = []
    for number, one in enumerate(drawn):
        log = [{"t": float(place), "action": action} for place, action in enumerate(one["steps"])]
        errors = [{"type": "error", "message": one["error"]}] if one["error"] else []
        kept = {name: one[name] for name in ("goal", "outcome", "project_id", "task_id", "build_id")}
        told = {"id": f"00000000-0000-4000-8000-{number:012d}", "type": "episodic", "content": f"Case {number}."}
        known.append({**told, **kept, "action_log": log, "errors_encountered": errors})
    for task_id in (None, "T"):
        store.insert_memories([one for one in known if one["task_id"] == task_id])


def learn(store: Any) -> None:
    learn_procedures(store)
    analyse_errors(store)


def withdraw(store: Any, numbers: set[int]) -> None:
    """Approve what was proposed, then forget some episodes and delete others."""
    learn(store)
    for proposal in list_proposals(store):
        approve_proposal(store, proposal.id)
    for number in sorted(numbers):
        memory_id = f"00000000-0000-4000-8000-{number:012d}"
        if store.get_memory(memory_id) is not None:
            store.suppress(memory_id) if number % 2 else store.delete_memory(memory_id)


def check_the_laws(
    open_store: Callable[..., Any], drawn: list[dict[str, Any]], withdrawn: set[int], killed_at: int
) -> None:
    with open_store(next(names)) as whole, open_store(next(names)) as killed:
        for store in (whole, killed):
            keep(store, drawn)
            if withdrawn:
                withdraw(store, withdrawn)
        learn(whole)
        with pytest.MonkeyPatch.context() as patch:
            commits = itertools.count()

            def commit(store: Any, *args: Any, **named: Any) -> Any:
                if next(commits) == killed_at:
                    raise KilledError
                return type(store).commit(store, *args, **named)

            patch.setattr(killed, "commit", commit.__get__(killed))
            for _ in range(2):
                with suppress(KilledError):
                    learn(killed)
        learn(killed)
        assert killed.digest() == whole.digest()
        before = whole.digest(), whole.reader.index.offset.seq
        learn(whole)
        assert (whole.digest(), whole.reader.index.offset.seq) == before
        whole.rebuild()
        assert whole.digest() == before[0]


@LAWS
@given(drawn=episodes, withdrawn=withdrawals, killed_at=st.integers(0, 6))
def test_twice_replayed_and_killed(
    open_store: Callable[..., Any], drawn: Any, withdrawn: set[int], killed_at: int
) -> None:
    check_the_laws(open_store, drawn, withdrawn, killed_at)


@pytest.mark.long
@MORE
@given(drawn=episodes, withdrawn=withdrawals, killed_at=st.integers(0, 6))
def test_the_same_at_length(open_store: Callable[..., Any], drawn: Any, withdrawn: set[int], killed_at: int) -> None:
    check_the_laws(open_store, drawn, withdrawn, killed_at)
