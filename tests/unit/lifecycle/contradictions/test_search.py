"""Contradictions in a store: found, written once, decided where that is safe, closed and opened again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import memgraph
from memgraph import BuildEventLog, EpisodicMemory, SemanticMemory
from memgraph.embedding import NoEmbedder
from memgraph.errors import InvalidInputError, NotFoundError, ProviderError
from memgraph.extraction.llm.extractor import ModelExtractor
from memgraph.lifecycle.contradictions import search
from memgraph.model.build import Candidate
from memgraph.model.link import REPLACED
from memgraph.testing import FakeJudge, FakeLanguageModel

OLD, NEW = "The deploy port of the shop is 8080", "The deploy port of the shop is now 9090"
YES, NO = "The importer handles empty files", "The importer does not handle empty files"
GONE = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def memory(store: Any) -> memgraph.MemGraph:
    return memgraph.MemGraph(store)


@pytest.fixture
def say(memory: memgraph.MemGraph, clock: Any) -> Callable[..., str]:
    """Observe something an hour after the last thing, too soon for a later state, and return its id."""

    def observe(text: str, **details: Any) -> str:
        clock.advance(hours=1)
        saved = memory.save_observation(text, **{"project": "shop", **details})
        assert saved.action == "created"
        return saved.memory_id or ""

    return observe


def pairs(memory: memgraph.MemGraph, **which: Any) -> list[tuple[str, str]]:
    return [(one.newer.id, one.older.id) for one in memory.contradictions.list(**which)]


def relations(memory: memgraph.MemGraph, one: str, other: str) -> set[str]:
    links = memory.store.links(one)
    return {link.relation for link in links if other in (link.source_id, link.target_id)}


def recalled(memory: memgraph.MemGraph, text: str) -> list[str]:
    return [one.memory.id for one in memory.search_memories(text)]


def test_another_value_of_the_same_day_with_higher_confidence_supersedes(
    memory: memgraph.MemGraph, say: Callable[..., str]
) -> None:
    old, new = say(OLD), say(NEW, confidence=0.9)

    assert relations(memory, new, old) == {"CONTRADICTS", "SUPERSEDES"}
    assert pairs(memory) == []
    (decided,) = memory.contradictions.list(decided=True)
    assert (decided.newer.id, decided.older.id) == (new, old)
    assert decided.reason == "says “9090” where the older one says “8080”"
    assert recalled(memory, "deploy port") == [new]
    kept = memory.store.get_memory(old)
    assert kept is not None
    assert kept.invalid_at is None  # nobody said when it ceased to be so

    memory.store.unsupersede(old)
    assert pairs(memory) == [(new, old)]
    assert sorted(recalled(memory, "deploy port")) == sorted([old, new])
    memory.contradictions.find()
    assert pairs(memory) == [(new, old)], "what the user took back stays taken back"


def test_an_agents_denial_stays_open_and_both_are_recalled(memory: memgraph.MemGraph, say: Callable[..., str]) -> None:
    old, new = say(YES), say(NO)

    assert pairs(memory) == [(new, old)]
    assert relations(memory, new, old) == {"CONTRADICTS"}
    assert sorted(recalled(memory, "does the importer handle empty files")) == sorted([old, new])
    told = memory.recall("does the importer handle empty files", project="shop").contradictions
    assert [(one.older_id, one.newer_id) for one in told] == [(old, new)]


def test_an_observations_notice_reports_the_contradiction(
    memory: memgraph.MemGraph, say: Callable[..., str], clock: Any
) -> None:
    say(YES)
    say(OLD)
    clock.advance(hours=1)
    assert (
        memory.save_observation(NEW, project="shop", confidence=0.9).notice == "replaces 1 memory that it contradicts"
    )
    told = memory.save_observation(NO, project="shop").notice
    assert told == "contradicts 1 memory: see `memgraph contradictions list`"


@pytest.mark.parametrize(
    ("older", "newer", "is_decided"),
    [
        ({"trust_class": "user"}, {"trust_class": "agent"}, False),
        ({"confidence": 0.9}, {"confidence": 0.5}, False),
        ({"confidence": 0.5}, {"confidence": 0.5}, False),
        ({"confidence": 0.5}, {"confidence": 0.6}, True),
        ({"valid_at": "2027-01-01"}, {}, False),
        ({}, {"valid_at": "2030-01-01"}, False),
    ],
    ids=str,
)
def test_when_the_newer_memory_supersedes_the_older_one(
    memory: memgraph.MemGraph, say: Callable[..., str], older: dict[str, Any], newer: dict[str, Any], is_decided: bool
) -> None:
    old, new = say(OLD, **older), say(NEW, **newer)
    if older.get("valid_at"):  # what holds later is the newer one, and has not begun
        old, new = new, old
    assert (pairs(memory) == []) is is_decided
    assert relations(memory, new, old) == {"CONTRADICTS", *(["SUPERSEDES"] if is_decided else [])}


def test_a_pinned_memory_yields_only_to_the_user(
    memory: memgraph.MemGraph, say: Callable[..., str], clock: Any
) -> None:
    old = say(OLD)
    memory.store.update_memory(old, is_pinned=True)
    new = say(NEW)
    assert pairs(memory) == [(new, old)]
    clock.advance(hours=1)
    said = memory.commands.remember("The deploy port of the shop is 7070", project_id="shop")
    assert set(said.data["replaced"]) == {new, old}
    assert memory.contradictions.find().replaced == 0
    assert [one.content for one in memory.store.list_memories()] == ["The deploy port of the shop is 7070"]


def test_a_successful_use_confirms_a_memory(memory: memgraph.MemGraph, say: Callable[..., str]) -> None:
    old, new = say(YES), say(NO)
    memory.contradictions.find()
    result = memory.recall("does the importer handle empty files", project="shop")
    memory.record_outcome(result.query_id, "success", used=[new])

    assert memory.contradictions.find().superseded == 1
    assert relations(memory, new, old) == {"CONTRADICTS", "SUPERSEDES"}


def test_merging_copies_in_sleep_confirms_nothing(memory: memgraph.MemGraph, clock: Any) -> None:
    for text, confidence in ((OLD, 0.9), (NEW, 0.6), (NEW.lower(), 0.2)):
        clock.advance(hours=1)
        memory.store.insert_memory(SemanticMemory(content=text, project_id="shop", confidence=confidence))
        memory.contradictions.find()
    assert memory.maintenance.sleep(phases=["near-duplicates", "contradictions"]).changed
    assert [one.content for one in memory.store.list_memories(state="superseded")] == [NEW.lower()]
    assert len(pairs(memory)) == 1


def test_the_link_stores_the_kind_and_the_wording_is_made_on_display(
    memory: memgraph.MemGraph, say: Callable[..., str]
) -> None:
    old, new = say("The deploy key of the shop is hunter2"), say("The deploy key of the shop is now blue42")
    assert memory.contradictions.list()[0].reason == "says “blue42” where the older one says “hunter2”"
    memory.store.suppress(old)
    (link,) = [one for one in memory.store.links(new) if one.relation == "CONTRADICTS"]
    assert link.reason == "another value"
    memory.store.unsuppress(old)
    memory.contradictions.resolve(old, new, keep=new)
    assert {one.reason for one in memory.store.links(new) if old in (one.source_id, one.target_id)} == {"another value"}
    memory.store.update_memory(new, content="The shop sells shoes")
    assert memory.contradictions.list(decided=True)[0].reason == "another value"  # its text tells it no more


def test_a_run_finds_earlier_writes_and_is_idempotent(memory: memgraph.MemGraph, clock: Any) -> None:
    for text in (OLD, YES, "The shop sells shoes", NEW, NO):
        clock.advance(hours=1)
        confidence = 0.9 if text == NEW else 0.5
        memory.store.insert_memory(SemanticMemory(content=text, project_id="shop", confidence=confidence))
    result = memory.contradictions.find()
    assert (result.looked_at, result.found, result.superseded) == (5, 2, 1)

    before = memory.store.digest(), memory.store._journal.tail.seq
    again = memory.contradictions.find()
    assert (again.looked_at, again.found) == (0, 0)
    assert (memory.store.digest(), memory.store._journal.tail.seq) == before
    memory.store.rebuild()
    assert memory.store.digest() == before[0]
    assert memory.store.verify(deep=True) > 0


def test_an_episode_is_looked_at_only_if_it_reports_a_change(memory: memgraph.MemGraph, clock: Any) -> None:
    for text in (YES, NO, "Bump litellm to 1.2", "We moved from Redux to Zustand"):
        clock.advance(hours=1)
        memory.store.insert_memory(EpisodicMemory(content=text, project_id="shop"))
    result = memory.contradictions.find()
    assert (result.looked_at, result.found, result.replaced) == (2, 0, 0)


def test_an_interrupted_run_continues_where_it_stopped(
    memory: memgraph.MemGraph, open_store: Callable[..., Any], clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memgraph.lifecycle.contradictions.search._BATCH", 2)
    other = memgraph.MemGraph(open_store("other"))
    for number, text in enumerate((OLD, YES, NEW, NO)):
        clock.advance(hours=1)
        for store in (memory.store, other.store):
            store.insert_memory(SemanticMemory(id=GONE[:-1] + str(number), content=text, project_id="shop"))
    steps: list[tuple[int, int | None]] = []

    def stop(done: int, total: int | None) -> None:
        steps.append((done, total))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.contradictions.find(progress=stop)
    assert not memory.contradictions.find(seconds=0).complete
    rest = memory.contradictions.find()
    assert rest.complete
    assert rest.looked_at == 2, "what was looked at before is not looked at again"
    other.contradictions.find()
    assert memory.store.digest() == other.store.digest()


@pytest.mark.parametrize(
    "elsewhere",
    [{"project_id": "bank"}, {"project_id": None}, {"task_id": "T"}, {"privacy_tier": "private"}, {"domain": "travel"}],
    ids=str,
)
def test_memories_of_different_scopes_are_not_compared(
    memory: memgraph.MemGraph, elsewhere: dict[str, Any], clock: Any
) -> None:
    here = {"project_id": "shop", "domain": "work"}
    memory.store.insert_memory(SemanticMemory(content=OLD, **here))
    clock.advance(hours=1)
    memory.store.insert_memory(SemanticMemory(content=NEW, **{**here, **elsewhere}))

    assert memory.contradictions.find().found == 0


def test_memories_of_one_task_are_compared(memory: memgraph.MemGraph, clock: Any) -> None:
    for text, confidence in ((OLD, 0.5), (NEW, 0.9)):
        clock.advance(hours=1)
        memory.store.insert_memory(SemanticMemory(content=text, task_id="T", confidence=confidence))
    assert memory.contradictions.find().superseded == 1


class TestReplaced:
    """A later state of the same thing: no contradiction."""

    @pytest.fixture
    def later(self, say: Callable[..., str], clock: Any) -> Callable[..., str]:
        def observe(text: str, **details: Any) -> str:
            clock.advance(days=2)
            return say(text, **details)

        return observe

    @pytest.mark.parametrize(
        ("older", "newer"),
        [
            (OLD, NEW),
            ("The worker retries failed jobs", "The worker no longer retries failed jobs"),
            ("The user likes early meetings", "The user does not like early meetings any more"),
        ],
    )
    def test_the_newer_one_wins_and_the_older_one_ends(
        self, memory: memgraph.MemGraph, later: Callable[..., str], older: str, newer: str
    ) -> None:
        old, new = later(older), later(newer)
        assert relations(memory, new, old) == {"SUPERSEDES"}
        assert pairs(memory) + pairs(memory, decided=True) == []
        ended, valid = memory.store.get_memory(old), memory.store.get_memory(new)
        assert ended is not None
        assert valid is not None
        assert (ended.invalid_at, ended.invalidation_reason) == (valid.valid_at, REPLACED)
        assert recalled(memory, older) == [new]

    def test_the_user_takes_it_back_for_good(self, memory: memgraph.MemGraph, later: Callable[..., str]) -> None:
        old, new = later(OLD), later(NEW)
        assert memory.store.unsupersede(old) == [new]
        assert sorted(recalled(memory, "deploy port")) == sorted([old, new])
        memory.store.update_memory(new, confidence=0.9)
        assert memory.contradictions.find().replaced == 0
        assert relations(memory, new, old) == {"RELATED_TO"}

    def test_the_user_replaces_at_once(self, memory: memgraph.MemGraph, say: Callable[..., str]) -> None:
        old = say(OLD, trust_class="user", confidence=0.9)
        new = say(NEW, trust_class="user", confidence=0.1)
        assert relations(memory, new, old) == {"SUPERSEDES"}

    @pytest.mark.parametrize(
        ("older", "newer"),
        [({"trust_class": "user"}, {}), ({"confidence": 0.9}, {"confidence": 0.5})],
        ids=str,
    )
    def test_a_source_that_is_less_sure_contradicts(
        self,
        memory: memgraph.MemGraph,
        later: Callable[..., str],
        older: dict[str, Any],
        newer: dict[str, Any],
    ) -> None:
        old, new = later(OLD, **older), later(NEW, **newer)
        assert pairs(memory) == [(new, old)]

    def test_the_notice_says_so(self, memory: memgraph.MemGraph, later: Callable[..., str], clock: Any) -> None:
        later(OLD)
        clock.advance(days=2)
        assert memory.save_observation(NEW, project="shop").notice == "replaces 1 memory that held until then"

    def test_changes_follow_each_other(self, memory: memgraph.MemGraph, clock: Any) -> None:
        ids = []
        for text in ("Bump litellm to 1.2", "Bump litellm from 1.2 to 1.3"):
            clock.advance(minutes=5)
            kept = memory.store.insert_memory(EpisodicMemory(content=text, source="git", project_id="shop"))
            ids.append(kept.id)
        assert (memory.contradictions.find().found, pairs(memory)) == (0, [])
        assert relations(memory, ids[1], ids[0]) == {"NEXT", "SUPERSEDES"}


def test_facts_valid_at_different_times_do_not_conflict(memory: memgraph.MemGraph, say: Callable[..., str]) -> None:
    memory.store.invalidate(say(OLD), at="2026-03-01")
    say(NEW, valid_at="2026-03-01")
    assert pairs(memory) + pairs(memory, decided=True) == []


class TestClosing:
    @pytest.fixture
    def both(self, say: Callable[..., str]) -> tuple[str, str]:
        return say(YES), say(NO)

    def test_invalidating_a_side_closes_it_until_undone(self, memory: memgraph.MemGraph, both: tuple[str, str]) -> None:
        for out, back in (
            (lambda one: memory.invalidate_memory(one, reason="tried it"), memory.store.revalidate),
            (memory.store.suppress, memory.store.unsuppress),
            (memory.store.archive, memory.store.unarchive),
        ):
            out(both[0])
            assert pairs(memory) == []
            back(both[0])
            assert pairs(memory) == [both[::-1]]

    def test_the_user_resolves_and_may_reverse_it(self, memory: memgraph.MemGraph, both: tuple[str, str]) -> None:
        old, new = both
        link = memory.contradictions.resolve(old, new, keep=old, reason="it was the wrong file")
        assert (link.source_id, link.target_id, link.reason) == (old, new, "it was the wrong file")
        assert recalled(memory, "does the importer handle empty files") == [old]

        memory.contradictions.resolve(new, old, keep=new)
        assert recalled(memory, "does the importer handle empty files") == [new]
        memory.store.unsupersede(old)
        assert pairs(memory) == [(new, old)]

    def test_a_dismissed_contradiction_is_not_proposed_again(
        self, memory: memgraph.MemGraph, both: tuple[str, str], say: Callable[..., str]
    ) -> None:
        old, new = both
        memory.contradictions.dismiss(old, new, reason="two importers")
        memory.store.update_memory(new, confidence=0.9)
        memory.contradictions.find()
        assert pairs(memory) == []
        assert relations(memory, old, new) == {"RELATED_TO"}

        memory.store.link(new, "CONTRADICTS", old)
        assert pairs(memory) == [(new, old)]

    def test_dismissing_restores_the_older_memory(self, memory: memgraph.MemGraph, say: Callable[..., str]) -> None:
        old, new = say(OLD), say(NEW)
        memory.contradictions.dismiss(new, old)
        assert sorted(recalled(memory, "deploy port")) == sorted([old, new])

    def test_what_cannot_be_is_refused(self, memory: memgraph.MemGraph, both: tuple[str, str]) -> None:
        other = memory.save_observation("The shop sells shoes").memory_id or ""
        with pytest.raises(InvalidInputError, match="does not contradict"):
            memory.contradictions.dismiss(both[0], other)
        with pytest.raises(InvalidInputError, match="keep"):
            memory.contradictions.resolve(*both, keep=other)
        with pytest.raises(NotFoundError):
            memory.contradictions.resolve(both[0], GONE, keep=both[0])


def log(build: str, day: int, changed: str) -> BuildEventLog:
    task = {"task_id": "t", "agent_name": "Ann", "description": changed, "output": "", "outcome": "success"}
    times = {"started_at": f"2026-01-{day:02}T10:00:00Z", "completed_at": f"2026-01-{day:02}T11:00:00Z"}
    return BuildEventLog.parse(
        {"build_id": build, "project_id": "shop", "build_outcome": "success", "tasks": [task], **times}
    )


class Said:
    """An extractor that takes each task's description for a fact."""

    name = "said"

    def extract(self, build_log: BuildEventLog) -> Any:
        sure = {"confidence": 0.9 if build_log.build_id == "b2" else 0.5}
        facts = [SemanticMemory(content=task.description, **sure) for task in build_log.tasks]
        return memgraph.ExtractionResult(candidates=[Candidate(memory=fact) for fact in facts])


def test_a_build_with_another_value_is_no_duplicate_and_supersedes(store: Any) -> None:
    memory = memgraph.MemGraph(store, extractor=Said())
    memory.consolidation.consolidate(log("b1", 5, OLD))
    memory.consolidation.consolidate(log("b2", 6, NEW))

    assert [one.content for one in store.list_memories()] == [NEW]
    (old,) = store.list_memories(state="superseded")
    assert (old.content, old.invalid_at) == (OLD, "2026-01-06T11:00:00.000Z")
    digest = store.digest()
    memory.consolidation.consolidate(log("b2", 6, NEW))
    assert store.digest() == digest


def test_a_failed_trial_is_not_retired_by_a_success(memory: memgraph.MemGraph, clock: Any) -> None:
    for outcome in ("failure", "success"):
        clock.advance(hours=1)
        text = f"Trial of the import: it ended in {outcome}"
        memory.store.insert_memory(EpisodicMemory(content=text, outcome=outcome, tags=["import"], project_id="shop"))
    assert memory.contradictions.find().found == 0


def test_generalisations_are_not_compared(memory: memgraph.MemGraph, clock: Any) -> None:
    for text in (OLD, NEW):
        clock.advance(hours=1)
        memory.store.insert_memory(SemanticMemory(content=text, source="compression"))
    assert memory.contradictions.find().found == 0


class TestNear:
    """Pairs that are near by their meaning, and of which words do not decide."""

    OLD = "The release build of the shop is signed by the platform team"
    NEW = "Dana signs the release build of the shop now"
    STORES = ("Redis", "Postgres")

    @pytest.fixture
    def both(self, memory: memgraph.MemGraph, say: Callable[..., str]) -> tuple[str, str]:
        ids = say(self.OLD), say(self.NEW)
        assert pairs(memory) == []
        return ids

    def test_they_are_asked_about_after_what_is_surer_and_never_twice(
        self, memory: memgraph.MemGraph, say: Callable[..., str], both: tuple[str, str]
    ) -> None:
        surer = say(YES), say(NO)
        say("The release build of the shop is signed by the platform team on Fridays")
        memory.maintenance.sleep(phases=["work-orders"])
        first, second, *_ = orders = memory.distillation.list()
        assert [one.subject_ids for one in (first, second)] == [list(surer), list(both)]
        assert {one.kind for one in orders} == {"contradiction"}
        assert memory.distillation.answer(
            second.id, {"statements": [], "verdict": "newer holds"}, answered_by="me"
        ).decision
        assert relations(memory, *both) == {"SUPERSEDES"}
        memory.store.unsupersede(both[0])
        memory.maintenance.sleep(phases=["contradictions", "work-orders"])
        assert list(both) not in [one.subject_ids for one in memory.distillation.list()]

    def test_they_take_no_more_than_three_quarters_of_a_days_orders(self, open_store: Callable[..., Any]) -> None:
        with open_store(distil_orders_a_day=4) as store:
            texts = (self.OLD, self.NEW)
            of_each = [
                SemanticMemory(content=text, project_id=f"shop {number}") for number in range(5) for text in texts
            ]
            store.insert_memories(of_each)
            asking = memgraph.MemGraph(store)
            asking.maintenance.sleep(phases=["work-orders"])
            assert len(asking.distillation.list()) == 3

    def test_that_both_hold_relates_them(self, memory: memgraph.MemGraph, both: tuple[str, str]) -> None:
        memory.maintenance.sleep(phases=["work-orders"])
        (order,) = memory.distillation.list()
        memory.distillation.answer(order.id, {"statements": [], "verdict": "both hold"}, answered_by="me")
        assert relations(memory, *both) == {"RELATED_TO"}

    def test_other_things_and_additions_are_no_question(
        self, memory: memgraph.MemGraph, say: Callable[..., str]
    ) -> None:
        say("The exporter of the depot writes CSV")
        say("The exporter of the depot writes CSV with a header")
        say("Reviews are done in pairs")
        memory.maintenance.sleep(phases=["work-orders"])
        assert memory.distillation.list() == []

    def test_the_same_words_in_another_order_are_asked_about(
        self, memory: memgraph.MemGraph, say: Callable[..., str]
    ) -> None:
        ids = [
            say(f"The sessions of the shop are stored in {one}, not in {other}")
            for one, other in (self.STORES, self.STORES[::-1])
        ]
        once = "the exporter writes CSV", "when it runs at night"
        texts = (" ".join(once), " ".join(reversed(once)))
        memory.store.insert_memories([SemanticMemory(content=text, project_id="shop") for text in texts])
        memory.maintenance.sleep(phases=["work-orders"])
        assert [one.subject_ids for one in memory.distillation.list()] == [ids]

    @pytest.mark.parametrize(
        ("said", "linked"),
        [("contradicts", "CONTRADICTS"), ("replaces", "SUPERSEDES"), ("compatible", "RELATED_TO"), ("unsure", None)],
    )
    def test_a_judge_decides(
        self, memory: memgraph.MemGraph, both: tuple[str, str], said: Any, linked: str | None
    ) -> None:
        judge = FakeJudge(said)
        judged = memgraph.MemGraph(memory.store, judge=judge)
        judged.maintenance.sleep(phases=["contradictions"])
        assert judge.calls == [(self.OLD, self.NEW)]
        assert relations(memory, *both) == ({linked} if linked else set())
        judged.maintenance.sleep(phases=["work-orders"])
        assert len(memory.distillation.list()) == (said in ("contradicts", "unsure"))

    def test_a_judge_that_fails_leaves_it_to_words(self, memory: memgraph.MemGraph, both: tuple[str, str]) -> None:
        memory.store.insert_memories([SemanticMemory(content=text, project_id="shop") for text in (YES, NO)])
        judge = FakeJudge([ProviderError("no", model="fake")])
        judged = memgraph.MemGraph(memory.store, judge=judge)
        assert judged.contradictions.find().found == 1
        assert len(judge.calls) == 1

    def test_an_unsure_judge_leaves_it_to_words(self, memory: memgraph.MemGraph) -> None:
        memory.store.insert_memories([SemanticMemory(content=text, project_id="shop") for text in (YES, NO)])
        judge = FakeJudge("unsure")
        assert memgraph.MemGraph(memory.store, judge=judge).contradictions.find().found == 1
        assert len(judge.calls) == 1

    def test_a_verdict_is_none_of_a_text_that_was_changed_meanwhile(
        self, memory: memgraph.MemGraph, both: tuple[str, str]
    ) -> None:
        class Slow(FakeJudge):
            def judge(self, one: str, other: str) -> Any:
                memory.store.update_memory(both[1], content="The depot of the shop has a new roof")
                return super().judge(one, other)

        judged = memgraph.MemGraph(memory.store, judge=Slow("replaces"))
        assert (judged.contradictions.find().replaced, relations(memory, *both)) == (0, set())

    def test_no_judge_is_asked_when_the_time_is_up(
        self, memory: memgraph.MemGraph, both: tuple[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        passed = [0.0]

        class Slow(FakeJudge):
            def judge(self, one: str, other: str) -> Any:
                passed[0] += 10
                return super().judge(one, other)

        memory.store.insert_memories([SemanticMemory(content=text, project_id="shop") for text in (YES, NO)])
        monkeypatch.setattr(search.time, "monotonic", lambda: passed[0])
        judge = Slow("compatible")
        search.find_contradictions(memory.store, judge=judge, seconds=5)
        assert len(judge.calls) == 1

    def test_counted_rules_are_no_questions(self, memory: memgraph.MemGraph) -> None:
        for text in (f"{self.OLD} of cart.py", f"{self.NEW} of cart.py"):
            memory.store.insert_memory(SemanticMemory(content=text, project_id="shop", source="counting"))
        judge = FakeJudge("contradicts")
        memgraph.MemGraph(memory.store, judge=judge).contradictions.find()
        assert judge.calls == []

    def test_the_configured_model_judges(self, memory: memgraph.MemGraph, both: tuple[str, str]) -> None:
        model = FakeLanguageModel('{"verdict": "replaces"}')
        judged = memgraph.MemGraph(memory.store, extractor=ModelExtractor(model))
        assert judged.contradictions.find().replaced == 1
        assert memory.judge is None

    def test_a_private_pair_is_shown_to_no_judge(self, memory: memgraph.MemGraph, clock: Any) -> None:
        for text in (YES, NO):
            clock.advance(hours=1)
            memory.store.insert_memory(SemanticMemory(content=text, project_id="shop", privacy_tier="private"))
        judge = FakeJudge()
        assert memgraph.MemGraph(memory.store, judge=judge).contradictions.find().found == 1
        assert judge.calls == []


def test_memories_without_vectors_are_found_by_their_words(open_store: Callable[..., Any], clock: Any) -> None:
    with open_store("plain", embedder=NoEmbedder()) as store:
        for text in (YES, "The shop sells shoes", NO):
            clock.advance(hours=1)
            store.insert_memory(SemanticMemory(content=text, project_id="shop"))
        assert memgraph.MemGraph(store).contradictions.find().found == 1


def test_vectors_of_any_length_are_compared_by_their_angle(memory: memgraph.MemGraph) -> None:
    names = "granite basalt marble slate gneiss chalk shale flint tuff sandstone".split()
    for place, name in enumerate(names, start=1):
        vector = [0.0] * 64
        vector[0], vector[place] = 5.0, 10.0  # a cosine of 0.2 with each other
        memory.store.insert_memory(SemanticMemory(content=f"The {name} lies deep", project_id="shop", embedding=vector))
    memory.maintenance.sleep(phases=["contradictions", "work-orders"])
    assert memory.distillation.list() == []
