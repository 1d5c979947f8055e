"""When events happened: what the store does by itself, what a user says, and what rests on what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from memgraph import AgentMemoryConfig, AgentMemoryStore, Link, SemanticMemory
from memgraph.fold.event_time import ALWAYS, Moments
from memgraph.journal.envelope import Event
from memgraph.model.events.intake import BuildConsolidated
from memgraph.model.events.links import MemoryDerived, MemoryLinked, MemoryUnlinked
from memgraph.model.events.memories import MemoryMerged, MemoryRevised, RecordPatch
from memgraph.testing import FakeClock, FakeEmbedder

TODAY = "2026-02-01T09:00:00.000Z"
EARLY, LATE = "2021-05-01T00:00:00.000Z", "2023-05-01T00:00:00.000Z"


class Told:
    """A store with two new memories, of 2021 and of 2023, and what is told of events that are committed to it."""

    def __init__(self, store: AgentMemoryStore, clock: FakeClock) -> None:
        self.store, self.clock = store, clock
        self.early, self.late = (self.add(f"happened at {moment}", moment) for moment in (EARLY, LATE))

    def add(self, content: str, occurred_at: str | None = None, **fields: Any) -> str:
        memory = {"type": "semantic", "content": content, "occurred_at": occurred_at, **fields}
        return self.store.insert_memory(memory).id

    def moments(self, *, recorded: bool = False) -> list[tuple[Event, str]]:
        moments, found, run = Moments(recorded=recorded), list[tuple[Event, str]](), list[Event]()
        for event in self.store.reader.events_after(0):
            run.append(event)
            if event.last:
                found += zip(run, moments.of(run), strict=True)
                run = []
        return found

    def of_last(self, **how: Any) -> str:
        return self.moments(**how)[-1][1]

    def by_itself(self, *events: Any) -> None:
        """Commit as the lifecycle does."""
        self.clock.advance(days=1)
        self.store.commit("global", events, actor="system")

    def built(self, name: str, completed_at: str, *events: Any) -> None:
        """Commit what a build told, as consolidation does."""
        fields = {"log_sha256": "0" * 64, "outcome": "failure", "task_count": 1, "complete": True, "extractor": "rules"}
        times = {"started_at": completed_at, "completed_at": completed_at, "consolidated_at": self.store.now()}
        build = {"project_id": "shop", "build_id": name, **fields, **times, "extracted": 0, "merged": 0}
        self.store.commit("global", [*events, BuildConsolidated.parse(build)])

    def seen_each_year(self, first: int, last: int) -> str:
        """Add an episode that a build told each year, from one to another one."""
        builds = [f"build of {year}" for year in range(first, last + 1)]
        place = {"type": "episodic", "project_id": "shop", "evidence_build_ids": builds[:1]}
        episode = self.add("it failed", f"{first}-05-01", **place)
        for number, name in enumerate(builds):
            again = MemoryMerged(id=episode, changed=RecordPatch(evidence_build_ids=builds[: number + 1]))
            self.built(name, f"{first + number}-05-02T00:00:00.000Z", *([again] if number else []))
        return episode

    def lesson(self, source: str, *years: int, **fields: Any) -> SemanticMemory:
        """Return what the store makes of an episode, as of the builds of some years."""
        builds = [f"build of {year}" for year in years]
        at = f"{years[-1]}-05-02T00:00:00.000Z"
        said = {"content": f"it fails: {builds}", "project_id": "shop", "evidence_build_ids": builds, "occurred_at": at}
        return SemanticMemory(**{**said, "supporting_memory_ids": [source], **fields})

    def link(self, relation: Any, source: str, target: str) -> MemoryLinked:
        return MemoryLinked(source_id=source, relation=relation, target_id=target, created_at=self.store.now())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[AgentMemoryStore, FakeClock]]:
    folder, clock = tmp_path_factory.mktemp("moments"), FakeClock(TODAY)
    config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    with AgentMemoryStore(config, embedder=FakeEmbedder(64), clock=clock) as store:
        yield store, clock


@pytest.fixture
def told(place: tuple[AgentMemoryStore, FakeClock]) -> Told:
    place[1].advance(days=1)
    return Told(*place)


def revised(memory_id: str, **changed: Any) -> MemoryRevised:
    return MemoryRevised(id=memory_id, changed=RecordPatch.parse(changed))


def test_what_is_told_of_each_event(told: Told) -> None:
    moments = [(event.type, moment) for event, moment in told.moments()]
    assert moments[:2] == [("store.created", TODAY), ("embedding.switched", ALWAYS)]
    assert moments[-2:] == [("memory.added", EARLY), ("memory.added", LATE)]
    assert {moment for _, moment in told.moments(recorded=True)[-2:]} == {told.store.now()}
    told.add("will happen", "2030-01-01T00:00:00Z")
    assert told.of_last() == told.store.now()  # nobody knew it later than it was recorded


def test_a_link_by_the_store_came_with_its_later_end(told: Told) -> None:
    told.by_itself(told.link("CONTRADICTS", told.late, told.early))
    assert told.of_last() == LATE
    told.by_itself(MemoryUnlinked(source_id=told.late, relation="CONTRADICTS", target_id=told.early))
    assert told.of_last() == LATE
    assert told.of_last(recorded=True) == told.store.now()


def test_a_replacement_waits_until_it_is_valid(told: Told) -> None:
    newer = told.add("holds from June on", LATE, valid_at="2023-06-01T00:00:00Z")
    told.by_itself(told.link("SUPERSEDES", newer, told.early))
    assert told.of_last() == "2023-06-01T00:00:00.000Z"
    told.by_itself(told.link("CONTRADICTS", newer, told.early))
    assert told.of_last() == LATE
    told.by_itself(revised(newer, valid_at="2030-01-01T00:00:00Z"), told.link("SUPERSEDES", newer, told.late))
    assert told.of_last() == told.store.now()


def test_a_link_by_a_user_was_made_when_it_was_made_and_an_imported_one_when_it_says(told: Told) -> None:
    told.clock.advance(days=1)
    told.store.link(told.late, "SUPERSEDES", told.early)
    assert told.of_last() == told.store.now()
    for created_at, moment in (("2024-01-01T00:00:00.000Z",) * 2, ("2022-01-01T00:00:00Z", LATE)):
        link = Link(source_id=told.late, relation="RELATED_TO", target_id=told.early, created_at=created_at)
        told.store.import_memories([], [link])
        assert told.of_last() == moment


def test_what_is_distilled_comes_with_the_latest_of_its_sources(told: Told) -> None:
    lesson = told.add("a lesson", EARLY, supporting_memory_ids=[told.early, told.late])
    assert [moment for _, moment in told.moments()][-2:] == [LATE, LATE]
    told.by_itself(revised(lesson, content="a lesson, in other words"))
    assert told.of_last() == LATE
    newest = told.add("another case", "2024-05-01T00:00:00Z")
    grown = MemoryDerived(id=lesson, source_ids=[newest], created_at=told.store.now())
    told.by_itself(revised(lesson, content="a lesson, from three cases"), grown)
    assert [moment for _, moment in told.moments()][-2:] == ["2024-05-01T00:00:00.000Z"] * 2
    told.by_itself(told.link("SUPERSEDES", lesson, told.early))
    assert told.of_last() == "2024-05-01T00:00:00.000Z"  # it rests on what the lesson says by then


def test_what_the_store_distills_holds_from_the_builds_that_it_names(told: Told) -> None:
    episode = told.seen_each_year(2018, 2022)
    lesson = told.lesson(episode, 2018, 2019, 2020, id=str(uuid4()))
    builds = [f"build of {year}" for year in range(2018, 2023)]
    grown = revised(lesson.id, evidence_build_ids=builds[:4], occurred_at="2021-05-02T00:00:00.000Z")
    told.by_itself(lesson, grown)
    moments = ["2020-05-02T00:00:00.000Z", "2020-05-02T00:00:00.000Z", "2021-05-02T00:00:00.000Z"]
    assert [moment for _, moment in told.moments()][-3:] == moments
    told.by_itself(revised(lesson.id, evidence_build_ids=builds))
    assert told.of_last() == "2022-05-02T00:00:00.000Z"
    told.by_itself(revised(lesson.id, evidence_build_ids=builds[1:]))
    assert told.of_last() == "2022-05-02T00:00:00.000Z"  # nothing is told again before what it said
    assert told.of_last(recorded=True) == told.store.now()


def test_what_one_build_says_twice_is_said_by_that_build(told: Told) -> None:
    episode = told.seen_each_year(2018, 2020)
    again = MemoryMerged(id=episode, changed=RecordPatch(source_event_ids=["build of 2021/second"]))
    told.built("build of 2021", "2021-05-02T00:00:00.000Z", again)
    told.by_itself(told.lesson(episode, 2018, 2019, 2020))
    assert told.of_last() == "2020-05-02T00:00:00.000Z"


def test_what_the_store_distills_waits_for_what_a_user_said_of_its_sources(told: Told) -> None:
    episode = told.seen_each_year(2018, 2020)
    told.clock.advance(days=1)
    said = told.store.now()
    told.store.update_memory(episode, content="it failed because of the cache")
    told.by_itself(told.lesson(episode, 2018, 2019, 2020))
    assert told.of_last() == said


def test_what_tells_the_same_evidence_anew_replaces_from_when_it_came(told: Told) -> None:
    episode = told.seen_each_year(2018, 2022)
    early, late = (told.lesson(episode, *years, id=str(uuid4())) for years in ((2018, 2019, 2020), (2018, 2019, 2021)))
    told.by_itself(early, revised(early.id, occurred_at="2022-05-02T00:00:00.000Z"), late)
    told.by_itself(told.link("SUPERSEDES", late.id, early.id))
    assert told.of_last() == "2021-05-02T00:00:00.000Z"


def test_a_source_is_linked_from_when_both_were_there(told: Told) -> None:
    episode, other = told.seen_each_year(2018, 2022), told.add("it failed otherwise", "2021-03-01")
    lesson = told.lesson(episode, 2018, 2019, 2020, id=str(uuid4()))
    grown = revised(lesson.id, occurred_at="2022-05-02T00:00:00.000Z")
    told.by_itself(lesson, grown, MemoryDerived(id=lesson.id, source_ids=[other], created_at=told.store.now()))
    assert told.of_last() == "2021-03-01T00:00:00.000Z"


def test_a_near_duplicate_joins_when_the_later_one_came(told: Told) -> None:
    told.by_itself(MemoryMerged(id=told.early, candidate_id=told.late, changed=RecordPatch(confidence=0.5)))
    assert told.of_last() == LATE


def test_an_end_that_the_store_states_is_where_it_says(told: Told) -> None:
    told.by_itself(revised(told.early, invalid_at="2022-01-01T00:00:00Z", invalidation_reason="its text says so"))
    assert told.of_last() == "2022-01-01T00:00:00.000Z"
    now = told.store.now()
    told.by_itself(revised(told.late, archived_at=now, archive_reason="faded", updated_at=now))
    assert told.of_last() == now


def test_what_the_store_brings_back_was_away_before(told: Told) -> None:
    now = told.store.now()
    told.by_itself(revised(told.early, archived_at=now, archive_reason="too little evidence"))
    told.by_itself(MemoryRevised(id=told.early, changed=RecordPatch(), cleared=["archived_at", "archive_reason"]))
    assert told.of_last() == now


def test_upkeep_and_use_happened_when_they_were_recorded(told: Told) -> None:
    for change in ({"floor": 0.1}, {"archive_summary": "in short"}):
        told.by_itself(revised(told.early, **change))
        assert told.of_last() == told.store.now()
    told.clock.advance(days=1)
    told.store.record_access(told.early)
    told.store.flush()
    assert told.of_last() == told.store.now()


def test_what_a_user_says_later_holds_from_then_and_so_does_what_rests_on_it(told: Told) -> None:
    told.clock.advance(days=1)
    said = told.store.now()
    told.store.update_memory(told.early, content="rather another thing")
    assert told.of_last() == said
    told.by_itself(told.link("CONTRADICTS", told.late, told.early))
    assert told.of_last() == said


def test_what_a_user_pins_says_what_it_said(told: Told) -> None:
    told.clock.advance(days=1)
    told.store.update_memory(told.early, is_pinned=True)
    told.store.suppress(told.late)
    told.by_itself(told.link("CONTRADICTS", told.late, told.early))
    assert told.of_last() == LATE


def test_what_was_deleted_and_came_back_did_so_after_it_was_gone(told: Told) -> None:
    told.clock.advance(days=1)
    told.store.delete_memory(told.early)
    gone = told.of_last()
    told.store.undelete(told.early)
    assert [moment for _, moment in told.moments()][-2:] == [gone, gone]
    told.store.delete_memory(told.late)
    told.add("the same id again", LATE, id=told.late)
    assert told.of_last() == told.store.now()


def test_a_new_vector_is_no_history(told: Told) -> None:
    told.clock.advance(days=1)
    told.store.reembed(FakeEmbedder(32, "another model"))
    assert {moment for _, moment in told.moments()[-2:]} == {ALWAYS}
    assert {moment for _, moment in told.moments(recorded=True)[-2:]} == {ALWAYS}
    told.by_itself(revised(told.late, embedded_at=told.store.now()))
    assert told.of_last() == LATE
