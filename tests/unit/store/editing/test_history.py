"""The history of a memory, and where it comes from."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph.errors import InvalidInputError, NotFoundError
from memgraph.extraction.readers import BuildLogReader
from memgraph.facade import MemGraph

GONE = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def memory(store: Any) -> MemGraph:
    return MemGraph(store)


def test_a_history_says_who_did_what_when_why_and_the_difference(memory: MemGraph, clock: Any) -> None:
    (fact,) = memory.commands.remember("Deploy on Tuesdays", tags=["ops"]).data["ids"]
    clock.advance(minutes=1)
    edited = memory.curation.edit(fact, {"content": "Deploy on Wednesdays"}, add_tags=["x"]).event
    memory.curation.archive(fact, reason="over")
    memory.store.update_memory(fact, is_pinned=False)
    memory.curation.undo(edited)
    memory.recall("deploy")
    memory.store.delete_memory(fact, reason="mistaken")
    found = memory.curation.history(fact)
    assert [(one.by, one.what, one.reason) for one in found] == [
        ("user", "added: “Deploy on Tuesdays”", "the user asked to remember it"),
        ("user", "changed content, tags", None),
        ("user", "archived", "over"),
        ("agent", "unpinned", None),
        ("user", "changed content, tags", None),
        ("agent", "deleted", "mistaken"),
    ]
    assert [(change.old, change.new) for change in found[1].changes if change.field == "tags"] == [
        (["ops"], ["ops", "x"])
    ]
    assert found[1].at == "2026-02-01T09:01:00.000Z"
    assert (found[1].undone_by, found[4].undoes) == (found[4].event, edited)
    assert [one.event for one in found] == sorted(one.event for one in found)


def test_links_evidence_recalls_and_outcomes_are_events_of_a_memory(memory: MemGraph) -> None:
    store = memory.store
    one, other = (store.insert_memory({"type": "episodic", "content": f"The import failed {n}"}).id for n in "ab")
    general = store.insert_memory({"type": "semantic", "content": "In general", "supporting_memory_ids": [one]}).id
    store.link(one, "SUPERSEDES", other, reason="newer")
    store.unlink(one, "SUPERSEDES", other)
    result = memory.recall("import failed")
    store.flush()
    assert not any("used" in entry.what for entry in memory.curation.history(one)), "a recall is no use"
    memory.record_outcome(result.query_id, "success", used=[one])
    store.flush()
    said = [entry.what for entry in memory.curation.history(one)]
    assert said[1:4] == [f"evidence of {general}", f"linked: SUPERSEDES {other}", f"unlinked: SUPERSEDES {other}"]
    assert any(what.startswith("recalled, in place ") for what in said)
    assert "used in a recall with the outcome success" in said
    assert f"linked: SUPERSEDES from {one}" in [entry.what for entry in memory.curation.history(other)]
    with pytest.raises(NotFoundError):
        memory.curation.history(GONE)


def test_why_follows_what_a_memory_rests_on_down_to_the_source(memory: MemGraph, tmp_path: Any) -> None:
    log = {
        "build_id": "b1", "project_id": "P", "build_outcome": "failure",
        "started_at": "2026-01-01T00:00:00Z", "completed_at": "2026-01-01T01:00:00Z",
        "tasks": [{"task_id": "t1", "agent_name": "MARS", "description": "Deploy the service", "outcome": "failure",
                   "output": "Error: the login token expired in service.py while deploying"}],
    }  # fmt: skip
    import json

    path = tmp_path / "builds.jsonl"
    path.write_text(json.dumps(log) + "\n")
    memory.ingest(BuildLogReader(path, project_id="P"), compress=False)
    (episode,) = memory.store.get_all_memories()
    given = {
        "type": "semantic",
        "content": "Tokens expire",
        "supporting_memory_ids": [episode.id],
        "reason": "it returned",
    }
    general = memory.store.insert_memory(given).id
    against = memory.store.insert_memory({"type": "semantic", "content": "Tokens last"}).id
    memory.store.link(against, "CONTRADICTS", general, reason="opposite")
    newer = memory.curation.edit(general, {"content": "Tokens expire at night"}, as_new=True).memories[0].id
    found = memory.curation.why(general)
    assert found.made is not None
    assert (found.why, found.made.by, found.made.type) == ("it returned", "agent", "memory.added")
    relations = {(one.relation, one.memory.id): one for one in found.relations}
    assert relations.keys() == {("derived from", episode.id), ("contradicts", against), ("superseded by", newer)}
    (place,) = relations["derived from", episode.id].memory.places
    assert (place.place, place.source, place.reference) == ("t1", f"builds {path}", "b1/t1")
    assert relations["contradicts", against].reason == "opposite"


def test_the_tree_is_bounded_in_depth_and_number_and_ends_in_circles(memory: MemGraph) -> None:
    store = memory.store
    ids = [store.insert_memory({"type": "semantic", "content": f"Fact {n}"}).id for n in range(6)]
    for one, other in zip(ids, [*ids[1:], ids[0]], strict=True):
        store.link(one, "DERIVED_FROM", other)
    found = memory.curation.why(ids[0], depth=2)
    second = found.relations[0].memory.relations[0].memory
    assert (second.id, second.relations, second.more) == (ids[2], [], 1)
    whole, seen = memory.curation.why(ids[0], depth=20), []
    while not whole.is_repeated:
        seen.append(whole.id)
        whole = whole.relations[0].memory
    assert (seen, whole.id) == (ids, ids[0])
    for other in ids[2:]:
        store.link(ids[0], "DERIVED_FROM", other)
    few = memory.curation.why(ids[0], most=2)
    assert (len(few.relations), few.more) == (2, 3)
    with pytest.raises(InvalidInputError):
        memory.curation.why(ids[0], depth=21)


def test_matching_takes_memories_with_all_words_or_of_like_meaning(memory: MemGraph) -> None:
    wanted = memory.store.insert_memory({"type": "semantic", "content": "Deployments happen on Tuesdays"}).id
    memory.store.insert_memory({"type": "semantic", "content": "The staging server is called heron"})
    assert [one.id for one in memory.curation.matching("tuesday deployment")] == [wanted]
