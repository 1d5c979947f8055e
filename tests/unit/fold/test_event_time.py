"""When events happened: the store's own events, a user's statements, and dependencies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from memgraph import AgentMemoryConfig, AgentMemoryStore, Link, SemanticMemory
from memgraph.fold.event_time import ALWAYS, Moments
from memgraph.journal.envelope import Event
from memgraph.model.events.memories import (
    MemoryDerived,
    MemoryLinked,
    MemoryMerged,
    MemoryRevised,
    MemoryUnlinked,
    RecordPatch,
)
from memgraph.model.events.records import BuildConsolidated
from memgraph.testing import FakeClock, FakeEmbedder

TODAY = "2026-02-01T09:00:00.000Z"
EARLY, LATE = "2021-05-01T00:00:00.000Z", "2023-05-01T00:00:00.000Z"


class TimedStore:
    """A store with two new memories, of 2021 and of 2023, and the times of the events committed to it."""

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
        """Commit a build's events, as consolidation does."""
        fields = {"log_sha256": "0" * 64, "outcome": "failure", "task_count": 1, "complete": True, "extractor": "rules"}
        times = {"started_at": completed_at, "completed_at": completed_at, "consolidated_at": self.store.now()}
        build = {"project_id": "shop", "build_id": name, **fields, **times, "extracted": 0, "merged": 0}
        self.store.commit("global", [*events, BuildConsolidated.parse(build)])

    def seen_each_year(self, first: int, last: int) -> str:
        """Add an episode that a build reported in each year of a range."""
        builds = [f"build of {year}" for year in range(first, last + 1)]
        place = {"type": "episodic", "project_id": "shop", "evidence_build_ids": builds[:1]}
        episode = self.add("it failed", f"{first}-05-01", **place)
        for number, name in enumerate(builds):
            again = MemoryMerged(id=episode, changed=RecordPatch(evidence_build_ids=builds[: number + 1]))
            self.built(name, f"{first + number}-05-02T00:00:00.000Z", *([again] if number else []))
        return episode

    def lesson(self, source: str, *years: int, **fields: Any) -> SemanticMemory:
        """Return the memory that the store distils from an episode, as of the builds of some years."""
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
def timed(place: tuple[AgentMemoryStore, FakeClock]) -> TimedStore:
    place[1].advance(days=1)
    return TimedStore(*place)


def revised(memory_id: str, **changed: Any) -> MemoryRevised:
    return MemoryRevised(id=memory_id, changed=RecordPatch.parse(changed))


def test_each_event_has_its_time(timed: TimedStore) -> None:
    moments = [(event.type, moment) for event, moment in timed.moments()]
    assert moments[:2] == [("store.created", TODAY), ("embedding.switched", ALWAYS)]
    assert moments[-2:] == [("memory.added", EARLY), ("memory.added", LATE)]
    assert {moment for _, moment in timed.moments(recorded=True)[-2:]} == {timed.store.now()}
    timed.add("will happen", "2030-01-01T00:00:00Z")
    assert timed.of_last() == timed.store.now()  # no event is later than its recording


def test_a_link_by_the_store_dates_from_its_later_end(timed: TimedStore) -> None:
    timed.by_itself(timed.link("CONTRADICTS", timed.late, timed.early))
    assert timed.of_last() == LATE
    timed.by_itself(MemoryUnlinked(source_id=timed.late, relation="CONTRADICTS", target_id=timed.early))
    assert timed.of_last() == LATE
    assert timed.of_last(recorded=True) == timed.store.now()


def test_a_replacement_waits_until_it_is_valid(timed: TimedStore) -> None:
    newer = timed.add("holds from June on", LATE, valid_at="2023-06-01T00:00:00Z")
    timed.by_itself(timed.link("SUPERSEDES", newer, timed.early))
    assert timed.of_last() == "2023-06-01T00:00:00.000Z"
    timed.by_itself(timed.link("CONTRADICTS", newer, timed.early))
    assert timed.of_last() == LATE
    timed.by_itself(revised(newer, valid_at="2030-01-01T00:00:00Z"), timed.link("SUPERSEDES", newer, timed.late))
    assert timed.of_last() == timed.store.now()


def test_a_users_link_dates_from_its_recording_and_an_imported_one_from_its_stated_time(timed: TimedStore) -> None:
    timed.clock.advance(days=1)
    timed.store.link(timed.late, "SUPERSEDES", timed.early)
    assert timed.of_last() == timed.store.now()
    for created_at, moment in (("2024-01-01T00:00:00.000Z",) * 2, ("2022-01-01T00:00:00Z", LATE)):
        link = Link(source_id=timed.late, relation="RELATED_TO", target_id=timed.early, created_at=created_at)
        timed.store.import_memories([], [link])
        assert timed.of_last() == moment


def test_a_distilled_memory_dates_from_its_latest_source(timed: TimedStore) -> None:
    lesson = timed.add("a lesson", EARLY, supporting_memory_ids=[timed.early, timed.late])
    assert [moment for _, moment in timed.moments()][-2:] == [LATE, LATE]
    timed.by_itself(revised(lesson, content="a lesson, in other words"))
    assert timed.of_last() == LATE
    newest = timed.add("another case", "2024-05-01T00:00:00Z")
    grown = MemoryDerived(id=lesson, source_ids=[newest], created_at=timed.store.now())
    timed.by_itself(revised(lesson, content="a lesson, from three cases"), grown)
    assert [moment for _, moment in timed.moments()][-2:] == ["2024-05-01T00:00:00.000Z"] * 2
    timed.by_itself(timed.link("SUPERSEDES", lesson, timed.early))
    assert timed.of_last() == "2024-05-01T00:00:00.000Z"  # it depends on the lesson's content by then


def test_a_memory_distilled_by_the_store_dates_from_its_named_builds(timed: TimedStore) -> None:
    episode = timed.seen_each_year(2018, 2022)
    lesson = timed.lesson(episode, 2018, 2019, 2020, id=str(uuid4()))
    builds = [f"build of {year}" for year in range(2018, 2023)]
    grown = revised(lesson.id, evidence_build_ids=builds[:4], occurred_at="2021-05-02T00:00:00.000Z")
    timed.by_itself(lesson, grown)
    moments = ["2020-05-02T00:00:00.000Z", "2020-05-02T00:00:00.000Z", "2021-05-02T00:00:00.000Z"]
    assert [moment for _, moment in timed.moments()][-3:] == moments
    timed.by_itself(revised(lesson.id, evidence_build_ids=builds))
    assert timed.of_last() == "2022-05-02T00:00:00.000Z"
    timed.by_itself(revised(lesson.id, evidence_build_ids=builds[1:]))
    assert timed.of_last() == "2022-05-02T00:00:00.000Z"  # a repetition is not earlier than the content it repeats
    assert timed.of_last(recorded=True) == timed.store.now()


def test_a_repetition_by_the_same_build_dates_from_that_build(timed: TimedStore) -> None:
    episode = timed.seen_each_year(2018, 2020)
    again = MemoryMerged(id=episode, changed=RecordPatch(source_event_ids=["build of 2021/second"]))
    timed.built("build of 2021", "2021-05-02T00:00:00.000Z", again)
    timed.by_itself(timed.lesson(episode, 2018, 2019, 2020))
    assert timed.of_last() == "2020-05-02T00:00:00.000Z"


def test_a_distilled_memory_is_not_earlier_than_a_users_change_of_its_sources(timed: TimedStore) -> None:
    episode = timed.seen_each_year(2018, 2020)
    timed.clock.advance(days=1)
    said = timed.store.now()
    timed.store.update_memory(episode, content="it failed because of the cache")
    timed.by_itself(timed.lesson(episode, 2018, 2019, 2020))
    assert timed.of_last() == said


def test_a_move_or_end_of_a_source_by_a_build_does_not_date_what_was_distilled(timed: TimedStore) -> None:
    timed.built("build of 2024", "2024-05-02T00:00:00.000Z", revised(timed.early, files_involved=["new.py"]))
    timed.built("build of 2025", "2025-05-02T00:00:00.000Z", revised(timed.early, invalid_at="2025-05-02T00:00:00Z"))
    fields = {"id": str(uuid4()), "content": "it fails", "occurred_at": EARLY, "supporting_memory_ids": [timed.early]}
    timed.by_itself(SemanticMemory(**fields))
    assert timed.of_last() == EARLY


def test_a_replacement_with_the_same_evidence_dates_from_its_creation(timed: TimedStore) -> None:
    episode = timed.seen_each_year(2018, 2022)
    early, late = (timed.lesson(episode, *years, id=str(uuid4())) for years in ((2018, 2019, 2020), (2018, 2019, 2021)))
    timed.by_itself(early, revised(early.id, occurred_at="2022-05-02T00:00:00.000Z"), late)
    timed.by_itself(timed.link("SUPERSEDES", late.id, early.id))
    assert timed.of_last() == "2021-05-02T00:00:00.000Z"


def test_a_source_is_linked_from_when_both_existed(timed: TimedStore) -> None:
    episode, other = timed.seen_each_year(2018, 2022), timed.add("it failed otherwise", "2021-03-01")
    lesson = timed.lesson(episode, 2018, 2019, 2020, id=str(uuid4()))
    grown = revised(lesson.id, occurred_at="2022-05-02T00:00:00.000Z")
    timed.by_itself(lesson, grown, MemoryDerived(id=lesson.id, source_ids=[other], created_at=timed.store.now()))
    assert timed.of_last() == "2021-03-01T00:00:00.000Z"


def test_a_merged_near_duplicate_dates_from_the_later_memory(timed: TimedStore) -> None:
    timed.by_itself(MemoryMerged(id=timed.early, candidate_id=timed.late, changed=RecordPatch(confidence=0.5)))
    assert timed.of_last() == LATE


def test_an_end_has_the_stated_time_whoever_states_it(timed: TimedStore) -> None:
    timed.clock.advance(days=1)
    timed.store.invalidate(timed.early, at="2022-01-01", reason="it was switched off")
    assert timed.of_last() == "2022-01-01T00:00:00.000Z"
    assert timed.of_last(recorded=True) == timed.store.now()
    newer = timed.add("it was replaced in 2024", valid_at="2024-02-01T00:00:00Z")
    timed.store.supersede(timed.early, by=newer)
    assert timed.of_last() == timed.store.now()  # when it was remembered
    newer = timed.add("it was replaced in 2024 as well", "2023-12-01", valid_at="2024-02-01T00:00:00Z")
    timed.store.supersede(timed.early, by=newer)
    assert timed.of_last() == "2024-02-01T00:00:00.000Z"
    timed.store.update_memory(timed.late, content="it was so until 2024", invalid_at="2024-01-01T00:00:00Z")
    assert timed.of_last() == timed.store.now()  # the text is new


def test_ends_moves_and_restorations_by_the_commits_of_a_build_have_the_time_of_the_build(timed: TimedStore) -> None:
    end, moved = revised(timed.early, invalid_at=LATE), revised(timed.early, files_involved=["new.py"])
    back = MemoryRevised(id=timed.early, changed=RecordPatch(), cleared=["invalid_at"])
    link = timed.link("RELATED_TO", timed.early, timed.late)
    for event, year in ((end, 2023), (moved, 2024), (back, 2025), (link, 2025)):
        timed.built(f"build of {year}", f"{year}-05-02T00:00:00.000Z", event)
    at = {event.seq: moment for event, moment in timed.moments()}
    built = [event.seq for event, _ in timed.moments() if event.type == "build.consolidated"][-4:]
    assert [at[seq - 1][:10] for seq in built] == ["2023-05-01", "2024-05-02", "2025-05-02", "2025-05-02"]


def test_an_end_stated_by_the_store_has_the_stated_time(timed: TimedStore) -> None:
    timed.by_itself(revised(timed.early, invalid_at="2022-01-01T00:00:00Z", invalidation_reason="its text says so"))
    assert timed.of_last() == "2022-01-01T00:00:00.000Z"
    now = timed.store.now()
    timed.by_itself(revised(timed.late, archived_at=now, archive_reason="faded", updated_at=now))
    assert timed.of_last() == now


def test_a_restoration_by_the_store_follows_the_removal(timed: TimedStore) -> None:
    now = timed.store.now()
    timed.by_itself(revised(timed.early, archived_at=now, archive_reason="too little evidence"))
    timed.by_itself(MemoryRevised(id=timed.early, changed=RecordPatch(), cleared=["archived_at", "archive_reason"]))
    assert timed.of_last() == now


def test_upkeep_and_use_happened_when_they_were_recorded(timed: TimedStore) -> None:
    for change in ({"floor": 0.1}, {"archive_summary": "in short"}):
        timed.by_itself(revised(timed.early, **change))
        assert timed.of_last() == timed.store.now()
    timed.clock.advance(days=1)
    timed.store.record_access(timed.early)
    timed.store.flush()
    assert timed.of_last() == timed.store.now()


def test_a_users_later_change_dates_from_then_and_so_do_its_dependents(timed: TimedStore) -> None:
    timed.clock.advance(days=1)
    said = timed.store.now()
    timed.store.update_memory(timed.early, content="rather another thing")
    assert timed.of_last() == said
    timed.by_itself(timed.link("CONTRADICTS", timed.late, timed.early))
    assert timed.of_last() == said


def test_pinning_does_not_change_the_content(timed: TimedStore) -> None:
    timed.clock.advance(days=1)
    timed.store.update_memory(timed.early, is_pinned=True)
    timed.store.suppress(timed.late)
    timed.by_itself(timed.link("CONTRADICTS", timed.late, timed.early))
    assert timed.of_last() == LATE


def test_an_undeletion_follows_the_deletion(timed: TimedStore) -> None:
    timed.clock.advance(days=1)
    timed.store.delete_memory(timed.early)
    gone = timed.of_last()
    timed.store.undelete(timed.early)
    assert [moment for _, moment in timed.moments()][-2:] == [gone, gone]
    timed.store.delete_memory(timed.late)
    timed.add("the same id again", LATE, id=timed.late)
    assert timed.of_last() == timed.store.now()


def test_a_new_vector_is_not_part_of_the_history(timed: TimedStore) -> None:
    timed.clock.advance(days=1)
    timed.store.reembed(FakeEmbedder(32, "another model"))
    assert {moment for _, moment in timed.moments()[-2:]} == {ALWAYS}
    assert {moment for _, moment in timed.moments(recorded=True)[-2:]} == {ALWAYS}
    timed.by_itself(revised(timed.late, embedded_at=timed.store.now()))
    assert timed.of_last() == LATE
