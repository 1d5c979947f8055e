"""What was solved again and again becomes a proposal, on a real embedded graph; and what becomes of the proposal."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from memgraph import MemGraph
from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.lifecycle.procedures import (
    LATER_SUCCESSES,
    approve_proposal,
    learn_procedures,
    list_proposals,
    reject_proposal,
    reopen_proposal,
)
from memgraph.model.results.learning import LAPSED, UNCONVINCING
from memgraph.retrieval import MemoryRetrieval
from memgraph.store import query as reading

Store = Any
OTHER_STEPS = ["pack_book", "print_label", "call_courier"]
STEPS = ["list_orders", "check_refund_policy", "issue_refund", "send_confirmation"]


def solved(n: int, steps: list[str] | None = None, **fields: Any) -> dict[str, Any]:
    """Return an episode in which a customer of build `n` got a refund."""
    base = {"type": "episodic", "project_id": "shop", "outcome": "positive", "build_id": f"b{n}"}
    log = [{"t": float(place), "action": action} for place, action in enumerate(steps or STEPS)]
    goal = f"Refund the broken order {n} of a customer"
    return {**base, "content": f"Order {n} was refunded.", "goal": goal, "action_log": log, "tags": [f"t{n}"], **fields}


def learn(store: Store, *episodes: dict[str, Any]) -> list[str]:
    return [one.id for one in store.insert_memories(list(episodes))]


@pytest.fixture
def proposed(store: Store) -> Any:
    """Return the proposal that three builds make, in a store with their episodes."""
    learn(store, solved(1), solved(2, ["look_around", *STEPS]), solved(3))
    assert learn_procedures(store).proposed == 1
    (found,) = list_proposals(store)
    return found


def recalled(store: Store) -> list[str]:
    asked = {"task_description": "refund a broken order for the customer", "agent_name": "a", "project_id": "shop"}
    return [memory.id for memory in MemoryRetrieval(store).retrieve(asked).memories if memory.type == "procedural"]


class TestLearned:
    def test_the_same_steps_in_three_builds_are_proposed(self, store: Store, proposed: Any) -> None:
        made = store.get_memory(proposed.id)
        assert made.steps == STEPS
        assert set(made.trigger_pattern.split()) == {"refund", "broken", "order", "customer"}
        assert (made.confidence, made.success_rate, made.source) == (0.7, 1.0, "procedures")
        assert made.evidence_build_ids == ["b1", "b2", "b3"]
        assert made.content.startswith("How to go about “")
        assert "1. list_orders; 2. check_refund_policy" in made.content
        relations = sorted(
            (link.relation, link.source_id == made.id) for link in store.links(made.id) if link.relation != "NEXT"
        )
        assert relations == [("DERIVED_FROM", True)] * 3 + [("SUPPORTS", False)] * 3

    @pytest.mark.parametrize(
        "third",
        [
            solved(2, content="Order 2 was refunded twice."),
            solved(3, outcome="negative"),
            solved(3, project_id="other"),
            solved(3, ["guess", "hope"]),
        ],
        ids=["same build", "failed", "other project", "other steps"],
    )
    def test_fewer_builds_are_no_pattern(self, store: Store, third: dict[str, Any]) -> None:
        learn(store, solved(1), solved(2), third)
        assert learn_procedures(store).proposed == 0

    def test_frequent_failures_prevent_a_proposal_and_others_lower_the_rate(self, store: Store, proposed: Any) -> None:
        learn(store, *(solved(n, outcome="negative") for n in (4, 5)))
        assert learn_procedures(store).updated == 1
        assert store.get_memory(proposed.id).success_rate == 0.6

    def test_at_least_half_of_the_builds_must_have_succeeded(self, store: Store) -> None:
        learn(store, *(solved(n, outcome="positive" if n < 3 else "negative") for n in range(7)))
        assert learn_procedures(store).proposed == 0

    def test_sessions_count_where_there_are_no_builds(self, store: Store) -> None:
        learn(store, *(solved(n, build_id=None, session_id=f"s{n}") for n in range(3)))
        assert learn_procedures(store).proposed == 1

    def test_procedures_of_single_sessions_are_evidence(self, store: Store) -> None:
        steps = ["create reproduce.py (reproduce the issue)", "edit src/a.py", "`python reproduce.py`"]
        one = {"type": "procedural", "outcome": "positive", "steps": steps, "trigger_pattern": "Rounding is wrong"}
        learn(store, *({**one, "content": f"Way {n}.", "build_id": f"b{n}"} for n in range(3)))
        learn_procedures(store)
        (found,) = list_proposals(store)
        assert found.steps == ["create reproduce.py", "edit src/a.py", "`python reproduce.py`"]
        assert found.trigger == "rounding wrong"

    def test_it_inherits_the_strictest_fields_of_its_evidence(self, store: Store) -> None:
        learn(store, solved(1), solved(2, privacy_tier="private"), solved(3, trust_class="web"))
        learn_procedures(store)
        made = store.get_memory(list_proposals(store)[0].id)
        assert (made.privacy_tier, made.trust_class, made.project_id) == ("private", "web", "shop")


class TestAgain:
    def test_an_unchanged_store_is_not_written(self, store: Store, proposed: Any) -> None:
        before = store.digest(), store._journal.tail.seq
        assert not any(learn_procedures(store).model_dump(exclude={"complete"}).values())
        assert (store.digest(), store._journal.tail.seq) == before

    def test_more_evidence_updates_it(self, store: Store, proposed: Any) -> None:
        learn(store, solved(4))
        result = learn_procedures(store)
        assert (result.proposed, result.updated) == (0, 1)
        (after,) = list_proposals(store)
        assert (after.id, after.builds, after.confidence) == (proposed.id, 4, 0.8)

    def test_in_force_it_keeps_the_approved_text(self, store: Store, proposed: Any) -> None:
        approve_proposal(store, proposed.id)
        store.update_memory(proposed.id, evidence_build_ids=["b1", "b2", "b3", "merged"])
        longer = [*STEPS, "ask_for_a_rating"]
        learn(store, *(solved(n, longer) for n in range(4, 9)))
        learn_procedures(store)
        made = store.get_memory(proposed.id)
        assert (made.steps, len(made.evidence_build_ids), made.confidence) == (STEPS, 9, 0.9)

    def test_a_proposal_with_forgotten_evidence_lapses(self, store: Store, proposed: Any) -> None:
        store.suppress(store.get_memory(proposed.id).supporting_memory_ids[0])
        assert learn_procedures(store).retired == 1
        assert store.get_memory(proposed.id).archive_reason == LAPSED
        assert list_proposals(store, state=None) == []
        assert not learn_procedures(store).retired

    def test_faded_episodes_are_still_evidence(self, store: Store, proposed: Any) -> None:
        for one in store.get_memory(proposed.id).supporting_memory_ids:
            store.archive(one, reason="faded")
        learn_procedures(store)
        assert [one.id for one in list_proposals(store)] == [proposed.id]

    def test_with_limited_time_every_project_gets_its_turn(self, store: Store) -> None:
        for n in range(3):
            learn(store, *(solved(n, project_id=project) for project in "abc"))
        learn_procedures(store)
        for n in range(3, 5):
            learn(store, *(solved(n, project_id=project) for project in "cab"))
        told, runs = [], 0
        while not (result := learn_procedures(store, is_time_up=lambda: True)).complete:
            told.append(result.updated)
            runs += 1
            assert runs < 20
        assert sum(told) + result.updated == 3
        assert {one.builds for one in list_proposals(store)} == {5}
        before = store.digest(), store._journal.tail.seq
        assert learn_procedures(store).complete
        assert (store.digest(), store._journal.tail.seq) == before

    def test_it_looks_again_where_something_was_deleted(self, store: Store) -> None:
        """Only there, though the index knows no more where that was."""
        (one, *_), _ = (learn(store, *(solved(n, project_id=project) for n in range(4))) for project in "ab")
        learn_procedures(store)
        store.delete_memory(one)
        store.rebuild()
        result = learn_procedures(store)
        assert (result.episodes, result.updated) == (3, 1)

    def test_the_journal_is_read_once_for_all_projects(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        for project in "abc":
            learn(store, *(solved(n, project_id=project) for n in range(3)))
        reads, read = [], reading.deleted_of
        monkeypatch.setattr(reading, "deleted_of", lambda *args: reads.append(args) or read(*args))
        assert learn_procedures(store).proposed == 3
        assert len(reads) == 1

    def test_a_kill_between_two_projects_does_not_change_the_result(
        self, open_store: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ids = (f"00000000-0000-4000-8000-{n:012d}" for n in range(100))
        known = [{**solved(n), "project_id": project, "id": next(ids)} for project in "ab" for n in range(3)]
        digests = []
        for name, is_killed in (("whole", False), ("killed", True)):
            store = open_store(name)
            learn(store, *known)
            if is_killed:
                calls = iter([False, True])
                assert not learn_procedures(store, is_time_up=lambda calls=calls: next(calls)).complete
            learn_procedures(store)
            digests.append(store.digest())
        assert digests[0] == digests[1]


class TestWithdrawn:
    """What was forgotten, deleted or hidden is told by no procedure, whatever had been approved."""

    def test_it_lapses_with_too_little_evidence_and_returns_with_it(self, store: Store, proposed: Any) -> None:
        approve_proposal(store, proposed.id)
        store.update_memory(proposed.id, cues=["a refund fails"])
        before = store.get_memory(proposed.id)
        store.suppress(before.supporting_memory_ids[0])
        assert learn_procedures(store).retired == 1
        lapsed = store.get_memory(proposed.id)
        assert lapsed.archive_reason == LAPSED
        assert not {*STEPS, "refund"} & set(re.findall(r"\w+", lapsed.model_dump_json()))
        assert (recalled(store), list_proposals(store, state=None)) == ([], [])
        with pytest.raises(InvalidInputError):
            approve_proposal(store, proposed.id)
        assert not any(learn_procedures(store).model_dump(exclude={"complete"}).values())

        store.unsuppress(before.supporting_memory_ids[0])
        assert learn_procedures(store).proposed == 1
        assert recalled(store) == []
        approve_proposal(store, proposed.id)
        after = store.get_memory(proposed.id)
        assert (after.content, after.trigger_pattern, after.steps) == (before.content, before.trigger_pattern, STEPS)
        assert after.supporting_memory_ids == before.supporting_memory_ids
        assert recalled(store) == [proposed.id]
        digest = store.digest()
        store.rebuild()
        assert store.digest() == digest

    def test_a_proposal_lapses_too_and_a_pinned_one_does_not(self, store: Store, proposed: Any) -> None:
        forgotten = store.get_memory(proposed.id).supporting_memory_ids[0]
        store.suppress(forgotten)
        store.update_memory(proposed.id, is_pinned=True)
        assert learn_procedures(store).retired == 0
        store.update_memory(proposed.id, is_pinned=False)
        learn_procedures(store)
        assert list_proposals(store) == []
        store.unsuppress(forgotten)
        learn_procedures(store)
        assert [one.steps for one in list_proposals(store)] == [STEPS]

    def test_changed_steps_from_remaining_evidence_need_approval(self, store: Store) -> None:
        ids = learn(store, *(solved(n, [*STEPS, "whisper"] if n < 4 else STEPS) for n in range(1, 6)))
        learn_procedures(store)
        (found,) = list_proposals(store)
        assert found.steps[-1] == "whisper"
        approve_proposal(store, found.id)
        store.suppress(ids[0])
        learn_procedures(store)
        assert [one.steps for one in list_proposals(store)] == [STEPS]
        assert "whisper" not in store.get_memory(found.id).content
        assert store.get_memory(found.id).evidence_build_ids == ["b2", "b3", "b4", "b5"]

    @pytest.mark.parametrize(
        "withdraw",
        [
            lambda store, one: store.delete_memory(one),
            lambda store, one: store.update_memory(one, outcome="failure"),
            lambda store, one: store.invalidate(one),
        ],
        ids=["deleted", "no success after all", "not true"],
    )
    def test_every_withdrawal_counts(self, store: Store, proposed: Any, withdraw: Callable[[Store, str], Any]) -> None:
        approve_proposal(store, proposed.id)
        withdraw(store, store.get_memory(proposed.id).supporting_memory_ids[0])
        assert learn_procedures(store).retired == 1
        assert list_proposals(store, state="in force") == []

    def test_private_evidence_makes_it_private(self, store: Store) -> None:
        ids = learn(store, solved(1), solved(2), solved(3), solved(4))
        learn_procedures(store)
        (found,) = list_proposals(store)
        approve_proposal(store, found.id)
        store.update_memory(ids[0], privacy_tier="private")
        learn_procedures(store)
        made = store.get_memory(found.id)
        assert (made.privacy_tier, made.archived_at) == ("private", None)

    def test_only_a_person_relaxes_its_tier(self, store: Store, proposed: Any) -> None:
        approve_proposal(store, proposed.id)
        store.update_memory(proposed.id, privacy_tier="private", trust_class="web")
        learn(store, solved(4))
        learn_procedures(store)
        made = store.get_memory(proposed.id)
        assert (made.privacy_tier, made.trust_class, len(made.evidence_build_ids)) == ("private", "web", 4)
        store.update_memory(proposed.id, privacy_tier="public", trust_class="agent")
        learn(store, solved(5))
        learn_procedures(store)
        made = store.get_memory(proposed.id)
        assert (made.privacy_tier, made.trust_class, len(made.evidence_build_ids)) == ("public", "agent", 5)

    def test_a_pinned_one_keeps_its_words_and_their_tier(self, store: Store) -> None:
        ids = learn(store, solved(1), solved(2), solved(3), solved(4, privacy_tier="private"))
        learn_procedures(store)
        (found,) = list_proposals(store)
        approve_proposal(store, found.id)
        store.update_memory(found.id, is_pinned=True)
        store.suppress(ids[3])
        learn_procedures(store)
        made = store.get_memory(found.id)
        assert (made.privacy_tier, made.steps, len(made.evidence_build_ids)) == ("private", STEPS, 3)

    def test_a_deleted_one_returns_only_by_undelete(self, store: Store, proposed: Any) -> None:
        store.delete_memory(proposed.id)
        learn(store, *(solved(n) for n in range(4, 9)))
        learn_procedures(store)
        assert list_proposals(store, state=None) == []
        store.undelete(proposed.id)
        learn_procedures(store)
        assert [(one.id, one.builds) for one in list_proposals(store)] == [(proposed.id, 8)]

    def test_a_collected_one_returns_with_new_evidence(self, store: Store, proposed: Any) -> None:
        store.delete_memory(proposed.id, reason="faded")
        learn(store, {"type": "episodic", "content": "Something else.", "project_id": "shop"})
        assert learn_procedures(store).proposed == 0
        learn(store, solved(4))
        assert learn_procedures(store).proposed == 1


class TestProposals:
    def test_only_procedures_in_force_are_recalled_and_decisions_can_be_undone(
        self, store: Store, proposed: Any
    ) -> None:
        assert recalled(store) == []
        assert approve_proposal(store, proposed.id).state == "in force"
        assert recalled(store) == [proposed.id]
        assert list_proposals(store) == []
        assert reopen_proposal(store, proposed.id).state == "proposed"
        assert recalled(store) == []
        assert reject_proposal(store, proposed.id).state == "rejected"
        assert [one.state for one in list_proposals(store, state=None)] == ["rejected"]
        assert approve_proposal(store, proposed.id).state == "in force"

    def test_a_decision_is_the_users_and_made_once(self, store: Store, proposed: Any) -> None:
        approve_proposal(store, proposed.id)
        seq = store._journal.tail.seq
        (event,) = store.reader.events_after(seq - 1)
        assert (event.type, event.actor) == ("memory.revised", "user")
        approve_proposal(store, proposed.id)
        assert store._journal.tail.seq == seq

    def test_a_rejected_one_needs_as_much_new_evidence(self, store: Store, proposed: Any) -> None:
        reject_proposal(store, proposed.id)
        learn(store, solved(4), solved(5))
        assert learn_procedures(store).proposed == 0
        learn(store, solved(6))
        assert learn_procedures(store).proposed == 1
        assert [(one.id, one.builds) for one in list_proposals(store)] == [(proposed.id, 6)]
        assert learn_procedures(store).proposed == 0

    @pytest.mark.parametrize("approval", ["user", "evidence"])
    def test_later_successes_bring_it_into_force_if_configured(
        self, open_store: Callable[..., Any], clock: Any, approval: str
    ) -> None:
        store = open_store(procedure_approval=approval)
        learn(store, *(solved(n) for n in range(3)))
        learn_procedures(store)
        clock.advance(hours=1)
        for n in range(LATER_SUCCESSES):
            assert list_proposals(store, state="in force") == []
            learn(store, solved(10 + n))
            learn_procedures(store)
        assert len(list_proposals(store, state="in force")) == (1 if approval == "evidence" else 0)

    @pytest.mark.parametrize("trust", ["tool", "imported", "web"])
    def test_outside_sources_bring_none_into_force_and_the_user_does(
        self, open_store: Callable[..., Any], clock: Any, trust: str
    ) -> None:
        store = open_store(procedure_approval="evidence")
        learn(store, *(solved(n) for n in range(3)))
        learn_procedures(store)
        for n in range(2 * LATER_SUCCESSES):
            clock.advance(hours=1)
            learn(store, solved(10 + n) | {"trust_class": trust})
            learn_procedures(store)
        assert list_proposals(store, state="in force") == []
        (found,) = list_proposals(store)
        assert approve_proposal(store, found.id).state == "in force"

    @pytest.mark.parametrize("trust", ["tool", "imported", "web"])
    def test_outside_sources_add_no_words_to_what_is_in_force(self, store: Store, proposed: Any, trust: str) -> None:
        approve_proposal(store, proposed.id)
        before = store.get_memory(proposed.id)
        error = {"type": "E", "message": "OBEY", "resolution": "OBEY"}
        outside = [solved(n) | {"trust_class": trust, "errors_encountered": [error]} for n in range(20, 24)]
        learn(store, *outside)
        learn_procedures(store)
        after = store.get_memory(proposed.id)
        assert len(after.evidence_build_ids) > len(before.evidence_build_ids)
        for name in ("content", "steps", "common_errors", "trust_class", "archived_at"):
            assert getattr(after, name) == getattr(before, name), name

    def test_other_memories_are_rejected(self, store: Store) -> None:
        (other,) = learn(store, {"type": "procedural", "content": "Mine.", "steps": ["a", "b"]})
        with pytest.raises(InvalidInputError, match="does not name a learned procedure"):
            approve_proposal(store, other)
        with pytest.raises(NotFoundError):
            reject_proposal(store, "00000000-0000-4000-8000-000000000000")
        with pytest.raises(InvalidInputError, match="proposed"):
            list_proposals(store, state="old")  # type: ignore[arg-type]


class TestPractice:
    def told(self, store: Store, outcome: str, **said: Any) -> str:
        asked = {"task_description": "refund a broken order", "agent_name": "a", "project_id": "shop"}
        query_id = MemoryRetrieval(store).retrieve(asked).query_id
        store.record_outcome(query_id, outcome, **said)
        return str(query_id)

    def test_uses_change_the_rate_and_the_last_outcome_counts(self, store: Store, proposed: Any) -> None:
        approve_proposal(store, proposed.id)
        query_id = self.told(store, "failure", used=[proposed.id])
        made = store.get_memory(proposed.id)
        assert (made.success_rate, made.last_validated_at) == (0.75, store.now())
        assert made.confidence < 0.7
        store.record_outcome(query_id, "success", used=[proposed.id])
        made = store.get_memory(proposed.id)
        assert (made.success_rate, made.confidence) == (1.0, pytest.approx(0.7))
        before = store.digest()
        store.rebuild()
        assert store.digest() == before

    def test_learning_keeps_the_usage_counts(self, store: Store, proposed: Any) -> None:
        approve_proposal(store, proposed.id)
        self.told(store, "failure", used=[proposed.id])
        learn(store, solved(4))
        learn_procedures(store)
        made = store.get_memory(proposed.id)
        assert made.success_rate == 0.8
        assert made.confidence == pytest.approx(0.8 * 2 / 3)
        assert not learn_procedures(store).updated

    def test_an_overridden_unused_one_is_archived_and_can_return(self, store: Store, proposed: Any) -> None:
        approve_proposal(store, proposed.id)
        for _ in range(3):
            self.told(store, "success", overridden=[proposed.id])
        made = store.get_memory(proposed.id)
        assert (made.override_count, made.success_rate) == (3, 1.0)
        assert made.confidence < 0.3
        assert learn_procedures(store).retired == 1
        assert store.get_memory(proposed.id).archive_reason == UNCONVINCING
        assert recalled(store) == []
        assert learn_procedures(store).retired == 0
        store.unarchive(proposed.id)
        assert recalled(store) == [proposed.id]

    def test_one_from_a_single_session_that_is_only_overridden_is_archived(self, store: Store) -> None:
        content = "How to: refund a broken order. Steps: 1. run `make refund`"
        told = {"type": "procedural", "project_id": "shop", "content": content}
        one, by_hand = learn(store, {**told, "source": "transcript", "build_id": "b1"}, told)
        for _ in range(3):
            self.told(store, "success", overridden=[one, by_hand])
        assert learn_procedures(store).retired == 1
        assert [store.get_memory(memory_id).archive_reason for memory_id in (one, by_hand)] == [UNCONVINCING, None]

    def test_usage_outcomes_through_the_public_api(self, store: Store) -> None:
        with MemGraph(store) as memory:
            learn(
                memory.store,
                *(solved(n) for n in range(3)),
                *(solved(n, OTHER_STEPS, goal="Ship a book") for n in range(3)),
            )
            assert memory.maintenance.sleep(phases=["procedures"]).changed
            refund, ship = (
                next(one for one in memory.procedures.proposals() if word in one.trigger) for word in ("refund", "ship")
            )
            for one in (refund, ship):
                memory.procedures.approve(one.id)
            for outcome in ("success", "failure"):
                asked = memory.recall("refund a broken order", project="shop")
                memory.record_outcome(asked.query_id, outcome, used=[refund.id])
            for _ in range(3):
                asked = memory.recall("ship a book", project="shop")
                memory.record_outcome(asked.query_id, "success", overridden=[ship.id])
            memory.maintenance.sleep(phases=["procedures"])
            (kept,) = memory.procedures.proposals(state="in force")
            assert (kept.id, kept.success_rate) == (refund.id, 0.8)  # three builds and two uses
            assert memory.store.get_memory(ship.id).archive_reason == UNCONVINCING
            assert ship.id not in {one.id for one in memory.recall("ship a book", project="shop").memories}
            before = memory.store.digest()
            memory.store.rebuild()
            assert memory.store.digest() == before

    def test_a_used_procedure_is_not_archived(self, store: Store, proposed: Any) -> None:
        approve_proposal(store, proposed.id)
        self.told(store, "success", used=[proposed.id])
        for _ in range(9):
            self.told(store, "success", overridden=[proposed.id])
        assert store.get_memory(proposed.id).confidence < 0.3
        assert learn_procedures(store).retired == 0

    def test_usage_of_a_handwritten_procedure_is_measured(self, store: Store) -> None:
        rule = {
            "type": "procedural",
            "project_id": "shop",
            "content": "Refund a broken order: ask.",
            "trigger_pattern": "refund order",
        }
        (memory_id,) = learn(store, rule)
        self.told(store, "success", used=[memory_id])
        assert store.get_memory(memory_id).success_rate == 1.0
        self.told(store, "partial", used=[memory_id])
        self.told(store, "failure", used=[memory_id])
        assert store.get_memory(memory_id).success_rate == 0.5

    def test_a_handwritten_procedure_is_not_archived(self, store: Store) -> None:
        rule = {"type": "procedural", "project_id": "shop", "content": "To refund: ask Anna.", "confidence": 0.2}
        (memory_id,) = learn(store, rule)
        assert learn_procedures(store).retired == 0
        assert store.get_memory(memory_id).archived_at is None
