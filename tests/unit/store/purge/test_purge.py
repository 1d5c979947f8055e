"""A purged memory, and what was made from it, is in no file of the store any more."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memgraph import AgentMemoryStore, MemGraph, restore
from memgraph.errors import InvalidInputError, JournalError, NotFoundError, ReadOnlyError
from memgraph.interfaces.operations import OPERATIONS
from memgraph.model.events.tasks import ChatContextSet, WorkingMemorySet
from memgraph.model.results.maintenance import PurgeReceipt
from tests.tables import VectorTable, change, lines_of, table

pytestmark = pytest.mark.embedded
Traces = Callable[..., list[str]]

SECRET = "Margaret moved to the house behind the old lighthouse in Warnemünde last spring"
OTHER = "The nightly backup of the billing database needs about forty minutes on Sundays"
THIRD = "Release branches are cut every second Thursday after the security review is done"


def episode(content: str, **fields: Any) -> dict[str, Any]:
    return {"type": "episodic", "content": content, **fields}


@pytest.fixture
def home(store: AgentMemoryStore) -> Path:
    return store.config.home


class TestOneMemory:
    def test_no_file_holds_it(self, store: AgentMemoryStore, home: Path, traces: Traces) -> None:
        secret = store.insert_memory(episode(SECRET, title="The house", tags=["margaret"], speaker="Agnes")).id
        kept = store.insert_memory(episode(OTHER, tags=["backup"])).id
        store.update_memory(secret, content=f"{SECRET}, with her two dogs")
        store.at("2099-01-01").close()
        with store.as_agent("coach") as view:
            assert len(view.get_all_memories()) == 2
        assert {name.partition("/")[0] for name in traces(home, SECRET)} >= {"memgraph.db-wal", "past"}
        receipt = store.purge([secret])
        assert traces(home, SECRET, "with her two dogs") == []
        assert traces(home, OTHER) != []
        assert [memory.id for memory in store.get_all_memories()] == [kept]
        assert store.cypher("MATCH (t:Tag) RETURN t.name AS name") == [{"name": "backup"}]
        assert (receipt.ids, receipt.removed) == ([secret], ["past"])
        store.verify(deep=True)

    def test_the_chain_still_verifies_when_the_store_is_opened_again(
        self, open_store: Callable[..., AgentMemoryStore], traces: Traces
    ) -> None:
        with open_store() as store:
            first = store.insert_memory(episode(SECRET)).id
            second = store.insert_memory(episode(OTHER)).id
            store.purge([first])
            digest = store.digest()
            third = store.insert_memory(episode(THIRD)).id
            store.delete_memory(third)
        with open_store() as again:
            assert again.notices == []
            assert again.digest() == digest
            assert again.verify(deep=True) == len(lines_of(again.config.home))
            again.rebuild()
            assert [memory.id for memory in again.get_all_memories()] == [second]

    def test_only_payload_and_salt_of_its_events_are_removed(self, store: AgentMemoryStore) -> None:
        secret = store.insert_memory(episode(SECRET)).id
        store.insert_memory(episode(OTHER))
        before = lines_of(store.config.home)
        receipt = store.purge([secret])
        after = lines_of(store.config.home)
        ((first, last),) = receipt.ranges
        gone = range(first, last + 1)
        for old, new in zip(before, after, strict=False):
            assert (old["head"], old["signature"]) == (new["head"], new["signature"])
            assert (new["payload"], new["salt"]) == (
                (None, None) if old["head"]["seq"] in gone else (old["payload"], old["salt"])
            )
        assert [one["head"]["type"] for one in before if one["head"]["seq"] in gone] == ["memory.added"]
        assert after[-1]["head"]["type"] == "memory.purged"
        assert SECRET.split(maxsplit=1)[0] not in json.dumps(after[-1])

    def test_its_vectors_are_zeros_and_those_of_others_are_not(self, store: AgentMemoryStore) -> None:
        secret = store.insert_memory(episode(SECRET)).id
        other = store.insert_memory(episode(OTHER)).id
        store.update_memory(secret, content=THIRD)
        file = store._journal.vectors(*store.vector_model)
        receipt = store.purge([secret])
        assert receipt.vectors == {file.model: [0, 2]}
        assert [bool(any(file.stored(row))) for row in range(3)] == [False, True, False]
        found = store.insert_memory(episode("After the purge a new vector has its place"))
        store.verify(deep=True)
        assert {other, found.id} == {memory.id for memory in store.get_all_memories()}
        assert found.embedding is not None

    def test_a_deleted_memory_can_be_purged_and_not_undeleted(
        self, store: AgentMemoryStore, home: Path, traces: Traces
    ) -> None:
        secret = store.insert_memory(episode(SECRET)).id
        store.insert_memory(episode(OTHER))
        store.delete_memory(secret, reason=f"she said: {SECRET}")
        assert traces(home, SECRET) != []
        assert [one.is_deleted for one in store.preview_purge([secret]).memories] == [True]
        store.purge([secret])
        assert traces(home, SECRET) == []
        with pytest.raises(NotFoundError):
            store.undelete(secret)
        store.verify(deep=True)

    def test_its_successors_follow_its_predecessor(self, store: AgentMemoryStore) -> None:
        chain = {"project_id": "P", "session_id": "s"}
        ids = [store.insert_memory(episode(text, **chain)).id for text in (OTHER, SECRET, THIRD)]
        store.purge([ids[1]])
        assert store.read_memories([ids[2]])[0].previous_id == ids[0]
        assert store.cypher("MATCH (a)-[:NEXT]->(b) RETURN a.id AS a, b.id AS b") == [{"a": ids[0], "b": ids[2]}]
        store.verify(deep=True)

    def test_another_process_that_has_the_store_open_goes_on(
        self, store: AgentMemoryStore, run: Callable[..., Any], home: Path, traces: Traces
    ) -> None:
        secret = store.insert_memory(episode(SECRET)).id
        kept = store.insert_memory(episode(OTHER)).id
        other = run(f"opened().purge(['{secret}'])")
        assert other.returncode == 0, other.stderr
        assert store.get_memory(secret) is None
        store.insert_memory(episode(THIRD))
        assert len(store.get_all_memories()) == 2
        assert store.get_memory(kept) is not None
        store.verify(deep=True)
        store.close()
        assert traces(home, SECRET) == []


class TestWhatWasMadeFromIt:
    def test_what_was_derived_goes_and_is_derived_again_by_sleep(
        self, open_store: Callable[..., AgentMemoryStore], traces: Traces
    ) -> None:
        store = open_store("builds")
        lesson = "The login service refuses tokens that were issued before the clock of the host was set"
        made = []
        for number in range(5):
            text = f"{lesson} (seen by build {number} on host {'abcde'[number] * 3})"
            fields = {"project_id": "P", "build_id": f"b{number}", "outcome": "negative", "tags": ["login", "clock"]}
            made.append(store.insert_memory(episode(text, **fields)).id)
        with MemGraph(store) as memory:
            memory.maintenance.sleep()
            (general,) = [one for one in store.every_memory() if one.type == "semantic"]
            assert made[0] in general.supporting_memory_ids
            receipt = memory.purge(made[0], keep_copies=True)
            assert general.id in receipt.derived_ids
            assert [one for one in store.every_memory() if one.type == "semantic"] == []
            memory.maintenance.sleep()
            (again,) = [one for one in store.every_memory() if one.type == "semantic"]
            assert set(again.supporting_memory_ids) == set(made[1:])
            assert traces(store.config.home, "(seen by build 0 on host aaa)") == []
            store.verify(deep=True)

    def test_what_is_derived_from_that_goes_too(self, store: AgentMemoryStore) -> None:
        secret = store.insert_memory(episode(SECRET)).id
        other = store.insert_memory(episode(OTHER)).id
        first = {"type": "semantic", "content": "Somebody lives at the coast", "supporting_memory_ids": [secret]}
        general = store.insert_memory(first).id
        second = {
            "type": "procedural",
            "content": "Write before going there",
            "supporting_memory_ids": [general, other],
        }
        rule = store.insert_memory(second).id
        receipt = store.purge([secret])
        assert receipt.derived_ids == [general, rule]
        assert [memory.id for memory in store.every_memory()] == [other]

    def test_a_memory_that_repeats_eight_words_goes_unless_copies_are_kept(
        self, store: AgentMemoryStore, home: Path, traces: Traces
    ) -> None:
        secret = store.insert_memory(episode(SECRET)).id
        copy = store.insert_memory(episode(f"She said: “{SECRET.upper()}” and smiled")).id
        seven = store.insert_memory(episode("Margaret moved to the house behind the lake")).id
        found = store.preview_purge([secret], keep_copies=True)
        assert [(one.id, one.why) for one in found.memories] == [(secret, "asked"), (copy, "kept")]
        receipt = store.purge([secret])
        assert (receipt.copied_ids, receipt.kept_ids) == ([copy], [])
        assert traces(home, SECRET) == []
        assert [memory.id for memory in store.every_memory()] == [seven]

    def test_a_kept_copy_is_named_by_the_receipt(self, store: AgentMemoryStore) -> None:
        secret = store.insert_memory(episode(SECRET)).id
        copy = store.insert_memory(episode(f"She said: “{SECRET}” and smiled")).id
        assert store.purge([secret], keep_copies=True).kept_ids == [copy]
        assert [memory.id for memory in store.every_memory()] == [copy]

    def test_a_memory_whose_history_held_the_words_is_restated(
        self, store: AgentMemoryStore, home: Path, traces: Traces
    ) -> None:
        secret = store.insert_memory(episode(SECRET)).id
        other = store.insert_memory(episode(f"{OTHER}. {SECRET}.", tags=["x"], project_id="P")).id
        third = store.insert_memory(episode(THIRD, project_id="P")).id
        store.link(other, "RELATED_TO", third, reason="both are about dates")
        store.record_access(other)
        store.flush()
        store.update_memory(other, content=OTHER)
        before = store.read_memories([other])[0]
        links = store.links(other)
        receipt = store.purge([secret])
        assert receipt.restated_ids == [other]
        assert traces(home, SECRET) == []
        assert store.read_memories([other])[0] == before
        assert store.links(other) == links
        store.verify(deep=True)
        store.delete_memory(other)
        assert store.undelete(other).content == OTHER
        assert {link.relation for link in store.links(other)} == {link.relation for link in links}
        store.verify(deep=True)

    def test_texts_of_duplicates_that_were_merged_into_others_go(
        self, store: AgentMemoryStore, home: Path, traces: Traces
    ) -> None:
        from memgraph.model.events.memories import MemoryMerged, RecordPatch

        secret = store.insert_memory(episode(SECRET)).id
        kept = store.insert_memory(episode(OTHER)).id
        merged = MemoryMerged(id=kept, changed=RecordPatch(confidence=0.5), candidate_content=f"{SECRET}!")
        store.commit("global", [merged])
        receipt = store.purge([secret])
        assert receipt.restated_ids == [kept]
        assert traces(home, SECRET) == []
        assert store.read_memories([kept])[0].confidence == 0.5

    def test_words_in_tasks_sessions_and_links_go(self, store: AgentMemoryStore, home: Path, traces: Traces) -> None:
        secret = store.insert_memory(episode(SECRET)).id
        one, two = (store.insert_memory(episode(text)).id for text in (OTHER, THIRD))
        store.link(one, "SUPERSEDES", two, reason=f"because {SECRET}")
        tasks = MemGraph(store).tasks
        tasks.upsert("Move", task_id="move")
        tasks.decide("move", f"We write to her. {SECRET}")
        tasks.constrain("move", "No phone calls")
        found = store.preview_purge([secret])
        assert found.others == {"DECISION_MADE": 1, "memory.linked": 1}
        store.purge([secret])
        assert traces(home, SECRET) == []
        (link,) = store.links(one)
        assert (link.relation, link.reason) == ("SUPERSEDES", None)
        store.verify(deep=True)

    def test_a_session_does_not_fall_back_to_an_earlier_note(
        self, store: AgentMemoryStore, home: Path, traces: Traces
    ) -> None:
        secret = store.insert_memory(episode(SECRET)).id
        store.insert_memory(episode(OTHER))
        for text in ("Find a train", SECRET):
            store.commit(
                "system", [WorkingMemorySet(session_id="s", task=text), ChatContextSet(session_id="s", context=text)]
            )
        store.purge([secret])
        assert traces(home, SECRET) == []
        assert lines_of(store.config.home)[-2]["payload"] == {"session_id": "s"}
        found = [store.reader.record(table, "s") for table in ("WorkingMemory", "ChatContext")]
        assert "train" not in repr(found)
        store.verify(deep=True)


class TestSelections:
    def test_a_text_is_found_in_whatever_case_and_in_deleted_memories(
        self, store: AgentMemoryStore, home: Path, traces: Traces
    ) -> None:
        store.insert_memory(episode(SECRET))
        gone = store.insert_memory(episode("The old  Lighthouse is for sale")).id
        store.delete_memory(gone)
        kept = store.insert_memory(episode(OTHER)).id
        store.purge(match="the OLD lighthouse")
        assert traces(home, "old lighthouse", "Old  Lighthouse") == []
        assert [memory.id for memory in store.every_memory()] == [kept]

    def test_a_project_goes_with_its_builds_tasks_and_recalls(
        self, store: AgentMemoryStore, home: Path, traces: Traces
    ) -> None:
        store.insert_memory(episode(SECRET, project_id="Heron", build_id="b1"))
        kept = store.insert_memory(episode(OTHER, project_id="P")).id
        memory = MemGraph(store)
        memory.recall("lighthouse", project="Heron")
        memory.tasks.upsert("Move there", task_id="move", project="Heron")
        memory.tasks.decide("move", "We go by train")
        store.flush()
        store.purge(project="Heron")
        assert traces(home, SECRET, "Heron", "Move there", "We go by train") == []
        assert [one.id for one in store.every_memory()] == [kept]
        store.verify(deep=True)

    def test_what_matches_everything_is_refused(self, store: AgentMemoryStore) -> None:
        for text in (SECRET, OTHER):
            store.insert_memory(episode(text, project_id="P"))
        digest = store.digest()
        with pytest.raises(InvalidInputError, match="would leave no memory"):
            store.purge(project="P")
        with pytest.raises(InvalidInputError, match="would leave no memory"):
            store.purge(match="e")
        for pattern in ("", "  \n"):
            with pytest.raises(InvalidInputError, match="matches everything"):
                store.purge(match=pattern)
        assert store.digest() == digest
        store.purge(project="P", everything=True)
        assert list(store.every_memory()) == []
        store.verify(deep=True)

    def test_other_bad_input_is_refused(self, store: AgentMemoryStore) -> None:
        one = store.insert_memory(episode(SECRET)).id
        before = lines_of(store.config.home)
        with pytest.raises(NotFoundError):
            store.purge(["00000000-0000-4000-8000-000000000000"])
        with pytest.raises(NotFoundError):
            store.purge(match="nobody ever said so")
        with pytest.raises(InvalidInputError, match="give one of"):
            store.purge()
        with pytest.raises(InvalidInputError, match="give one of"):
            store.purge([one], project="P")
        with store.at("2099-01-01") as view, pytest.raises(ReadOnlyError):
            view.purge([one])
        assert lines_of(store.config.home) == before

    def test_no_agent_can_ask_for_it(self) -> None:
        assert [name for name in (one.name for one in OPERATIONS.values()) if "purge" in name] == []


class TestReceipts:
    @pytest.fixture
    def receipt(self, store: AgentMemoryStore) -> PurgeReceipt:
        secret = store.insert_memory(episode(SECRET)).id
        store.insert_memory(episode(OTHER))
        return store.purge([secret])

    def test_it_holds_also_after_later_events_and_purges(self, store: AgentMemoryStore, receipt: PurgeReceipt) -> None:
        found = store.check_receipt(receipt)
        assert (found.events, found.vectors) == (1, 1)
        third = store.insert_memory(episode(THIRD)).id
        assert store.check_receipt(receipt).events == 1
        store.purge([third])
        assert store.check_receipt(receipt.model_dump_json()).events == 1

    def test_it_is_in_the_store_and_names_what_was_made_anew(
        self, store: AgentMemoryStore, receipt: PurgeReceipt
    ) -> None:
        (path,) = (store.config.home / "receipts").iterdir()
        assert PurgeReceipt.parse(json.loads(path.read_bytes())) == receipt
        assert receipt.rebuilt == ["rows", "graph", "index"]

    def test_every_flipped_bit_is_noticed(self, store: AgentMemoryStore, receipt: PurgeReceipt) -> None:
        data = receipt.model_dump_json().encode()
        places = range(0, 8 * len(data), 7)
        for bit in places:
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            with pytest.raises(InvalidInputError):
                store.check_receipt(bytes(flipped))

    @pytest.mark.parametrize(
        ("document", "said"),
        [
            ("no receipt", "receipt: is not JSON, so it is no receipt of a purge"),
            ('{"event": "x"}', "receipt: is no receipt of a purge: "),
            ('{"format": 2}', "receipt: is no receipt of a purge: "),
        ],
    )
    def test_what_is_no_receipt_is_not_shown(self, store: AgentMemoryStore, document: str, said: str) -> None:
        with pytest.raises(InvalidInputError) as refused:
            store.check_receipt(document)
        assert str(refused.value).startswith(said)
        assert "(got" not in str(refused.value), "no value is better than a single character in its place"

    def test_one_of_another_store_is_refused(
        self, open_store: Callable[..., AgentMemoryStore], receipt: PurgeReceipt
    ) -> None:
        other = open_store("other")
        other.insert_memory(episode(OTHER))
        with pytest.raises(InvalidInputError, match="of another store"):
            other.check_receipt(receipt)
        forged = receipt.model_copy(update={"store_id": other.store_id})
        with pytest.raises(InvalidInputError, match=r"was changed|which is missing"):
            other.check_receipt(forged)

    def test_a_payload_that_came_back_is_noticed_and_removed_again(
        self, store: AgentMemoryStore, home: Path, traces: Traces
    ) -> None:
        secret = store.insert_memory(episode(SECRET)).id
        store.insert_memory(episode(OTHER))
        old = table(home, "event")
        receipt = store.purge([secret])
        for _, seq, *_, payload, salt, _ in old:
            change(home, "UPDATE event SET payload = ?, salt = ? WHERE seq = ? AND payload IS NULL", payload, salt, seq)
        with pytest.raises(JournalError, match="1 of the purged events still have a payload"):
            store.check_receipt(receipt)
        with pytest.raises(
            JournalError, match=r"event \d+ was purged and has a payload again; run `memgraph purge --complete`"
        ):
            store.verify()
        store.complete_purges()
        assert store.check_receipt(receipt).events == 1
        assert traces(home, SECRET) == []
        store.verify(deep=True)

    def test_a_vector_that_came_back_is_noticed_and_removed_again(
        self, store: AgentMemoryStore, receipt: PurgeReceipt
    ) -> None:
        ((model, (row,)),) = receipt.vectors.items()
        vectors = VectorTable(store.config.home, model)
        vectors.put(row, b"\x01" * 4 * store.vector_model[1])
        with pytest.raises(JournalError, match="still holds a purged vector; run `memgraph purge --complete`"):
            store.check_receipt(receipt)
        store.complete_purges()
        assert store.check_receipt(receipt).vectors == 1
        assert row not in vectors.rows()
        store.verify(deep=True)


def test_a_payload_that_no_purge_names_is_damage(open_store: Callable[..., AgentMemoryStore]) -> None:
    with open_store() as store:
        secret = store.insert_memory(episode(SECRET)).id
        store.insert_memory(episode(OTHER))
        store.purge([secret])
        home = store.config.home
    change(home, "UPDATE event SET payload = NULL, salt = NULL WHERE instr(payload, CAST('billing' AS BLOB))")
    with open_store() as store, pytest.raises(JournalError, match="the payload is missing and no purge names it"):
        store.verify()


def test_a_backup_that_begins_during_a_purge_can_be_restored(
    open_store: Callable[..., AgentMemoryStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its digest is of the events that are in it: those of before, or those that remain."""
    file, has_begun = tmp_path / "backups" / "one.tar.gz", threading.Event()
    file.parent.mkdir()
    with open_store() as store, open_store() as other, ThreadPoolExecutor(1) as pool:
        store.insert_memories([episode(OTHER, session_id="s"), episode(THIRD, session_id="s")])
        secret = store.insert_memory(episode(SECRET, tags=["house"])).id
        made: list[Future[Any]] = []
        rows, replay = store._projector.rows, other._journal.replay

        def watched(*given: Any) -> str:
            monkeypatch.undo()
            made.append(pool.submit(other.backup, file))
            assert has_begun.wait(60)
            return rows.rebuild(*given)

        def told(*given: Any, **options: Any) -> Any:
            has_begun.set()
            return replay(*given, **options)

        monkeypatch.setattr(rows, "rebuild", watched)
        other._journal.replay = told  # type: ignore[method-assign]
        store.purge([secret])
        assert made[0].result(60)
    restored = restore(file, home=tmp_path / "restored", keys_home=tmp_path / "keys", dry_run=True)
    assert restored.last_seq == made[0].result().last_seq
