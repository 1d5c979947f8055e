"""The quality protocol: items are drawn with the source that they were made of, and readings are compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from memgraph.extraction import readers
from tests.benchmarks.quality import sampling
from tests.benchmarks.quality.readings import kappa, read_labels, table

INPUTS = Path(__file__).parent / "fixtures" / "inputs"
SAMPLE = {name: {"item": name, "kind": "merge"} for name in ("i1", "i2", "i3", "i4")}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> sampling.Made:
    trajectories = [readers.TrajectoryReader(path) for path in sorted((INPUTS / "trajectories").iterdir())]
    sessions = [readers.TranscriptReader(path) for path in sorted((INPUTS / "transcripts").iterdir())]
    sources = [readers.SavedGitLogReader(INPUTS / "harbour.log"), readers.TauBenchReader(INPUTS / "tau-bench.json")]
    return sampling.made_of([*sources, *trajectories, *sessions], tmp_path_factory.mktemp("quality"))


def test_every_item_comes_with_its_source(made: sampling.Made) -> None:
    items = list(sampling._items(made))
    assert {"memory", "dropped"} <= {item["kind"] for item in items}
    assert [item for item in items if item["kind"] in {"memory", "merge", "resolution"} and not item["evidence"]] == []


def test_what_became_a_memory_is_not_called_dropped(made: sampling.Made) -> None:
    used = {event for memory in made.memories.values() for event in memory.source_event_ids}
    dropped = {item["text"] for item in sampling._items(made) if item["kind"] == "dropped"}
    assert used & made.events.keys()
    assert dropped.isdisjoint(made.events[event][: sampling._MAX_EVENT_CHARS] for event in used & made.events.keys())


def test_what_users_said_is_drawn_with_what_is_recalled_of_the_session(made: sampling.Made) -> None:
    turns = [item for item in sampling._items(made) if item["kind"] == "user turn"]
    recalled = {sampling._shown(memory) for memory in made.memories.values()}
    assert turns
    assert any(turn["evidence"] for turn in turns)
    assert {text for turn in turns for text in turn["evidence"]} <= recalled


def test_agreement_is_cohens() -> None:
    assert kappa([("a", "a"), ("b", "b"), ("a", "b"), ("b", "b")]) == pytest.approx(0.5)
    assert kappa([("a", "a")]) is None
    assert kappa([]) is None


def test_disputed_items_give_a_range_until_they_are_decided() -> None:
    one = {"i1": "equal", "i2": "equal", "i3": "different", "i4": "equal"}
    other = {**one, "i4": "different"}
    (undecided,) = table(SAMPLE, one, other, {})
    assert "equal 50%–75% (2), different 25%–50% (1)" in undecided
    (decided,) = table(SAMPLE, one, other, {"i4": "equal"})
    assert "equal 75% (3), different 25% (1)" in decided


@pytest.mark.parametrize("line", ['{"item": "i9", "label": "equal"}', '{"item": "i1", "label": "useful"}'])
def test_a_label_that_fits_no_item_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.jsonl").write_text(line)
    with pytest.raises(SystemExit, match="is not one label"):
        read_labels(tmp_path / "a.jsonl", SAMPLE)
