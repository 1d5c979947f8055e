"""A state machine of all that can be done to a store, against a model of dictionaries.

Every step is checked: what the store shows is what the model holds, through whichever of one or two store objects on the
same directory is asked. In between the store is closed, killed also in a commit, left without its projections or with old ones,
rebuilt, and moved to another directory by export and import.
"""

from __future__ import annotations

import itertools
import logging
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import memgraph
from memgraph.errors import DuplicateIdError, ScopeError
from memgraph.fold import EmptyRows, Projection, project
from memgraph.journal.journal import Journal
from memgraph.journal.key_providers import FileKeys
from memgraph.journal.opening import open_journal
from memgraph.model.events.memories import MemoryDeleted, MemoryLinked
from memgraph.model.ids import canonical_name, new_id
from memgraph.model.memory import parse_memory
from memgraph.model.timestamps import to_iso
from memgraph.testing import FakeAnnotator, FakeClock, FakeEmbedder
from tests.projections import keep, lose
from tests.property.drawn import (
    DIMENSION,
    POOL,
    bad_fields,
    changes,
    either,
    ids,
    moments,
    new_memories,
    projections,
    relations,
    texts,
    units,
    ways,
)
from tests.property.store_model import Pending, StoreModel, relevance
from tests.tables import table, tables

START = "2026-02-01T09:00:00.000Z"
EMBEDDER = FakeEmbedder(DIMENSION)


class StoreMachine(RuleBasedStateMachine):
    """See the module. `template` is the folder of an empty store: to copy one is quicker than to make one."""

    template: Path

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="memgraph-machine-"))
        self.life = 0
        self.folder = self.root / "life0"
        shutil.copytree(self.template, self.folder)
        self.clock = FakeClock(START)
        self.model = StoreModel()
        self.model.last_at = START
        self.stores: list[memgraph.AgentMemoryStore] = []
        self.pending: list[Pending] = []
        self.kept: Path | None = None
        self.steps = 0
        self.open()

    # -- what is done to memories

    @initialize(many=st.lists(new_memories, min_size=4, max_size=4), links=st.lists(st.tuples(relations, ids, ids), max_size=6))  # fmt: skip
    def begin(self, many: list[dict[str, Any]], links: list[tuple[str, str, str]]) -> None:
        """Begin with something there: what is done to nothing finds little."""
        self.insert_many(list(zip(many, POOL, strict=False)), [None], 0, "insert")
        for relation, one, other in links:
            self.link(one, relation, other, None, None, 0)

    @rule(fields=new_memories, memory_id=ids, sources=st.lists(ids, max_size=2), task=st.sampled_from([None, None, "T"]), at=either)  # fmt: skip
    def insert(self, fields: dict[str, Any], memory_id: str, sources: list[str], task: str | None, at: int) -> None:
        given = {**fields, "id": memory_id, "task_id": task}
        if fields["type"] != "episodic":
            given["supporting_memory_ids"] = sources
        store, pending = self.acting(at)
        sources = given.get("supporting_memory_ids", [])
        error: type[Exception] | None = None
        if memory_id in sources:
            error = memgraph.InvalidInputError
        elif memory_id in self.model.memories:
            error = DuplicateIdError
        elif not set(sources) <= self.model.memories.keys():
            error = memgraph.NotFoundError
        if error:
            with self.refused(error):
                store.insert_memory(given)
        else:
            now = self.commit_at(pending)
            assert store.insert_memory(given).id == memory_id
            self.add(given, now)

    @rule(many=st.lists(st.tuples(new_memories, ids), min_size=1, max_size=5), tasks=st.sampled_from([[None], ["T"], [None, "T"]]), at=either, through=st.sampled_from(["insert", "commit"]))  # fmt: skip
    def insert_many(self, many: list[Any], tasks: list[str | None], at: int, through: str) -> None:
        """Several in one commit: all of them or, where an id is known or a scope another, none."""
        given = [
            {**fields, "id": memory_id, "task_id": tasks[place % len(tasks)]}
            for place, (fields, memory_id) in enumerate(many)
        ]
        known = [memory["id"] for memory in given]
        scopes = {memory["task_id"] for memory in given}
        store, pending = self.acting(at)

        def write() -> None:
            if through == "insert":
                store.insert_memories(given)
            else:
                task = given[0]["task_id"]
                store.commit("task" if task else "global", [parse_memory(memory) for memory in given], task_id=task)

        is_known = len(set(known)) < len(known) or set(known) & self.model.memories.keys()
        errors = [*([ScopeError] if len(scopes) > 1 else []), *([DuplicateIdError] if is_known else [])]
        if errors:
            with self.refused(*errors):
                write()
        else:
            now = self.commit_at(pending)
            write()
            for memory in given:
                self.add(memory, now)

    @rule(fields=new_memories, wrong=bad_fields, at=either)
    def insert_what_is_wrong(self, fields: dict[str, Any], wrong: dict[str, Any], at: int) -> None:
        store, _ = self.acting(at)
        with self.refused(memgraph.InvalidInputError):
            store.insert_memories([fields, {**fields, **wrong}])
        with self.refused():
            assert store.commit("none", [MemoryDeleted(id=POOL[0])]) == []

    @rule(memory_id=ids, updates=changes, at=either)
    def update(self, memory_id: str, updates: dict[str, Any], at: int) -> None:
        store, pending = self.acting(at)
        if memory_id not in self.model.memories:
            with self.refused(memgraph.NotFoundError):
                store.update_memory(memory_id, **updates)
            return
        now = self.commit_at(pending)
        store.update_memory(memory_id.upper(), **updates)
        old = self.model.memories[memory_id]
        text = updates.get("content", old["content"])
        vector = updates.get("embedding")
        if vector is None and ("embedding" in updates or text != old["content"]):
            vector = EMBEDDER.embed([text])[0]
        self.model.update(memory_id, updates, now, None if vector is None else np.asarray(vector, np.float32))

    @rule(memory_id=ids, wrong=bad_fields | st.sampled_from([{"createdAt": START}, {"type": "semantic"}, {"taskId": "T"}, {"access_count": 3}]), at=either)  # fmt: skip
    def update_to_what_is_wrong(self, memory_id: str, wrong: dict[str, Any], at: int) -> None:
        store, _ = self.acting(at)
        with self.refused(memgraph.InvalidInputError, memgraph.NotFoundError):
            store.update_memory(memory_id, title="changed", **wrong)

    @rule(memory_id=ids, at=either)
    def delete(self, memory_id: str, at: int) -> None:
        store, pending = self.acting(at)
        if memory_id not in self.model.memories:
            with self.refused():
                assert store.delete_memory(memory_id) is False
            return
        now = self.commit_at(pending)
        assert store.delete_memory(memory_id) is True
        self.model.delete(memory_id, now)

    @rule(one=ids, relation=relations, other=ids, score=st.none() | st.floats(-1, 1), reason=st.none() | texts, at=either)  # fmt: skip
    def link(self, one: str, relation: str, other: str, score: float | None, reason: str | None, at: int) -> None:
        store, pending = self.acting(at)
        error: type[Exception] | None = None
        if one == other:
            error = memgraph.InvalidInputError
        elif not {one, other} <= self.model.memories.keys():
            error = memgraph.NotFoundError
        if error:
            with self.refused(error):
                store.link(one, relation, other)
            return
        now = self.commit_at(pending)
        store.link(one, relation, other, score=score, reason=reason)
        ends = (other, "SUPERSEDES", one) if relation == "superseded_by" else (one, relation.upper(), other)
        self.model.link(ends, score, reason, now)

    @rule(wanted=st.lists(st.tuples(st.sampled_from(["delete", "link"]), ids, ids), min_size=1, max_size=3), at=either)
    def commit_events(self, wanted: list[tuple[str, str, str]], at: int) -> None:
        """Events in one global commit: about memories that are there, and that belong to no task."""
        store, pending = self.acting(at)
        stamp = {"relation": "CONTRADICTS", "created_at": START}
        events = [
            MemoryDeleted(id=one) if what == "delete" else MemoryLinked(source_id=one, target_id=other, **stamp)
            for what, one, other in wanted
        ]
        there, error = set(self.model.memories), None
        for what, one, other in wanted:
            if not {one, *([other] if what == "link" else [])} <= there:
                error = error or memgraph.NotFoundError
            elif what == "delete" and self.model.memories[one]["task_id"]:
                error = error or ScopeError
            elif what == "delete":
                there.remove(one)
        if error:
            with self.refused(error):
                store.commit("global", events)
        else:
            now = self.commit_at(pending)
            store.commit("global", events)
            for what, one, other in wanted:
                if what == "link":
                    self.model.link((one, "CONTRADICTS", other), None, None, now)
                else:
                    self.model.delete(one, now)
            self.model.last_at = now

    @rule(fields=new_memories, at=either)
    def insert_anew(self, fields: dict[str, Any], at: int) -> None:
        """Without an id, and so, mostly, without looking at the graph."""
        store, pending = self.acting(at)
        now = self.commit_at(pending)
        store.flush()
        self.add({**fields, "id": store.insert_memory(fields).id}, now)

    @rule(memory_id=ids, way=ways, reason=st.none() | texts, when=st.none() | moments, at=either)
    def send_out_or_back(self, memory_id: str, way: str, reason: str | None, when: str | None, at: int) -> None:
        """Suppress, archive, invalidate, and the ways back; what is done already records nothing."""
        store, pending = self.acting(at)
        said: dict[str, Any] = {"archive": {"reason": reason}, "invalidate": {"reason": reason, "at": when}}.get(
            way, {}
        )
        if memory_id not in self.model.memories:
            with self.refused(memgraph.NotFoundError):
                getattr(store, way)(memory_id, **said)
            return
        old, now = self.model.memories[memory_id], self.now()
        wanted: dict[str, Any] = {
            "suppress": {"is_suppressed": True},
            "unsuppress": {"is_suppressed": False},
            "archive": {"archived_at": old["archived_at"] or now, "archive_reason": reason or old["archive_reason"]},
            "unarchive": {"archived_at": None},
            "invalidate": {
                "invalid_at": to_iso(when) if when else min(now, old["invalid_at"] or now),
                "invalidation_reason": reason or old["invalidation_reason"],
            },
            "revalidate": {"invalid_at": None},
        }[way]
        if all(old[name] == value for name, value in wanted.items()):
            with self.refused():
                getattr(store, way)(memory_id, **said)
            return
        now = self.commit_at(pending)
        getattr(store, way)(memory_id, **said)
        self.model.update(memory_id, wanted, now, None)

    @rule(older=ids, newer=ids, reason=st.none() | texts, score=st.none() | units, at=either)
    def supersede(self, older: str, newer: str, reason: str | None, score: float | None, at: int) -> None:
        store, pending = self.acting(at)
        error: type[Exception] | None = None
        if not {older, newer} <= self.model.memories.keys():
            error = memgraph.NotFoundError
        elif older == newer or older in self.model.newer_than(newer):
            error = memgraph.InvalidInputError
        key = (newer, "SUPERSEDES", older)
        old_score, old_reason = self.model.links.get(key, (None, None))
        said = (old_score if score is None else score, reason or old_reason)
        if error or self.model.links.get(key) == said:
            with self.refused(*([error] if error else [])):
                store.supersede(older, by=newer, reason=reason, score=score)
            return
        now = self.commit_at(pending)
        store.supersede(older, by=newer, reason=reason, score=score)
        self.model.link(key, *said, now)

    @rule(older=ids, newer=st.none() | ids, at=either)
    def unsupersede(self, older: str, newer: str | None, at: int) -> None:
        store, pending = self.acting(at)
        found = self.model.superseding(older)
        found &= {newer} if newer else found
        if older not in self.model.memories or newer not in {None, *self.model.memories}:
            with self.refused(memgraph.NotFoundError):
                store.unsupersede(older, by=newer or POOL[0])
            return
        if not found:
            with self.refused():
                assert store.unsupersede(older, by=newer) == []
            return
        now = self.commit_at(pending)
        assert set(store.unsupersede(older, by=newer)) == found
        for one in found:
            self.model.unlink((one, "SUPERSEDES", older), now)

    @rule(one=ids, relation=relations, other=ids, at=either)
    def unlink(self, one: str, relation: str, other: str, at: int) -> None:
        store, pending = self.acting(at)
        key = (other, "SUPERSEDES", one) if relation == "superseded_by" else (one, relation.upper(), other)
        if not {one, other} <= self.model.memories.keys():
            with self.refused(memgraph.NotFoundError):
                store.unlink(one, relation, other)
        elif key not in self.model.links:
            with self.refused():
                assert store.unlink(one, relation, other) is False
        else:
            now = self.commit_at(pending)
            assert store.unlink(one, relation, other) is True
            self.model.unlink(key, now)

    @rule(memory_id=ids, at=either)
    def undelete(self, memory_id: str, at: int) -> None:
        store, pending = self.acting(at)
        if memory_id in self.model.gone:
            now = self.commit_at(pending)
            assert store.undelete(memory_id).id == memory_id
            self.model.undelete(memory_id, now)
        elif memory_id in self.model.memories:
            with self.refused():
                assert store.undelete(memory_id).id == memory_id
        else:
            with self.refused(memgraph.NotFoundError):
                store.undelete(memory_id)

    # -- what is done with memories

    @rule(memory_id=ids, at=either)
    def use(self, memory_id: str, at: int) -> None:
        store, pending = self.acting(at)
        if memory_id not in self.model.memories:
            with self.refused(memgraph.NotFoundError):
                store.record_access(memory_id)
            return
        now = self.now()
        used = store.record_access(memory_id)
        pending.uses.append((memory_id, now, False))
        assert used.access_count == pending.over(self.model.memories[memory_id])["access_count"]

    @rule(text=texts, project=st.sampled_from([None, "A"]), task=st.sampled_from([None, "T"]), at=either, outcome=st.sampled_from([None, "success", "great"]), pick=ids)  # fmt: skip
    def retrieve(
        self, text: str, project: str | None, task: str | None, at: int, outcome: str | None, pick: str
    ) -> None:
        store, pending = self.acting(at)
        now = self.now()
        retrieval = memgraph.MemoryRetrieval(store)
        result = retrieval.retrieve({"task_description": text, "project_id": project, "task_id": task})
        found = [str(memory.id) for memory in result.memories]
        admitted = {
            memory_id
            for memory_id in self.model.listed(now)
            if (fields := self.model.memories[memory_id])["task_id"] in (None, task)
            and (project is None or fields["project_id"] in (None, project))
        }
        assert set(found) <= admitted
        assert len(set(found)) == len(found)
        assert bool(found) == bool(admitted)
        pending.uses += [(memory_id, now, True) for memory_id in found]
        pending.recalls.append((result.query_id, found))
        if outcome is None:
            return
        now = self.commit_at(pending)
        store.flush()
        used = [pick] if pick in found else found[:1]
        if outcome == "great":
            with self.refused(memgraph.InvalidInputError):
                store.record_outcome(result.query_id, outcome, used=used)
        elif pick not in found:
            with self.refused(memgraph.InvalidInputError):
                store.record_outcome(result.query_id, outcome, used=[pick])
        else:
            store.record_outcome(result.query_id, outcome, used=used)
            self.model.last_at = now
            for memory_id in used:
                self.model.succeeded(memory_id, now)
            pending.uses += [(memory_id, now, False) for memory_id in used]

    @rule(days=st.sampled_from([-400.0, -2.0, -0.01, 0.0, 0.5, 1.0, 20.0]), at=either)
    def pass_time(self, days: float, at: int) -> None:
        """Time passes, forward or backward, and with it what waits is written."""
        store, pending = self.acting(at)
        self.commit_at(pending)
        store.flush()
        self.clock.advance(days=days)

    # -- what is done to the store

    @rule(how=st.sampled_from(["reopen", "kill", "two", "two", "two", "lose", "keep", "put back"]), which=projections)
    def upset(self, how: str, which: list[str]) -> None:
        if how == "kill":
            self.kill()
        elif how == "keep":
            self.keep_projections()
        elif how == "put back" and self.kept is not None:
            self.shut()
            keep(self.kept, self.folder / "store", which)
            self.open()
        else:
            self.shut()
            if how == "lose":
                lose(self.folder / "store", which)
            for _ in range(2 if how == "two" else 1):  # from here on they take turns
                self.open()

    def kill(self) -> None:
        """Go on from the files as they are while the store is open: what was not committed is lost, and only that."""
        self.life += 1
        new = self.root / f"life{self.life}"
        with self.stores[0].reader.frozen():
            shutil.copytree(self.folder, new)
        self.abandon()
        self.folder = new
        self.open()

    def keep_projections(self) -> None:
        """Put a copy of the store aside."""
        self.kept = self.root / f"kept{self.steps}"
        shutil.rmtree(self.kept, ignore_errors=True)
        with self.stores[0].reader.frozen():
            shutil.copytree(self.folder / "store", self.kept)

    @rule(is_whole=st.booleans(), fields=new_memories, at=either)
    def crash(self, is_whole: bool, fields: dict[str, Any], at: int) -> None:
        """Die in a commit, before or after the database has taken it."""
        store, pending = self.acting(at)
        now = self.commit_at(pending)
        store.flush()
        given, before = {**fields, "id": new_id()}, table(self.folder / "store", "event")
        place = "_write_head_file" if is_whole else "put_head"
        with patch.object(Journal, place, side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
            store.insert_memory(given)
        if table(self.folder / "store", "event") != before:  # else it died before, when it made up for an earlier crash
            assert is_whole
            self.add(given, now)
        self.kill()

    def rebuild(self, at: int) -> None:
        store, pending = self.acting(at)
        self.commit_at(pending)
        digest = store.digest()
        store.rebuild()
        assert store.digest() == digest

    def verify(self, at: int) -> None:
        """All that can be asked of a store says the same as its journal, replayed in memory."""
        store, pending = self.acting(at)
        self.commit_at(pending)
        assert store.digest() == self.replayed_digest()
        store.verify(deep=True)
        counts = store.cypher("MATCH (a:Memory)-[e]->(b:Memory) RETURN label(e) AS name, count(*) AS n")
        expected: dict[str, int] = {"NEXT": len(self.model.follows)} if self.model.follows else {}
        for _, relation, _ in self.model.links:
            expected[relation] = expected.get(relation, 0) + 1
        assert {row["name"]: row["n"] for row in counts} == expected
        rows = store.cypher("MATCH (m:Memory) RETURN m.id AS id, m.content AS content, m.access_count AS uses")
        assert {row["id"]: (row["content"], row["uses"] or 0) for row in rows} == {
            key: (fields["content"], fields["access_count"]) for key, fields in self.model.memories.items()
        }
        tagged = store.cypher("MATCH (m:Memory)-[:TAGGED]->(t:Tag) RETURN count(*) AS n")[0]["n"]
        assert tagged == sum(len(fields["tags"]) for fields in self.model.memories.values())
        tags = store.cypher("MATCH (t:Tag) RETURN count(*) AS n")[0]["n"]
        assert tags == len({canonical_name(tag) for fields in self.model.memories.values() for tag in fields["tags"]})
        recalled = store.cypher("MATCH (:Recall)-[:RECALLED]->(m:Memory) RETURN count(*) AS n")[0]["n"]
        assert recalled == sum(map(len, self.model.recalled.values()))

    def move(self, at: int) -> None:
        """Export, and import into another directory: an equal store."""
        store, _ = self.acting(at)
        document = memgraph.MemoryCommands(store).export_memories().model_dump(mode="json")
        elsewhere = self.root / "elsewhere"
        shutil.copytree(self.template, elsewhere)
        with self.opened(elsewhere) as other:
            result = memgraph.MemoryCommands(other).import_memories(document)
            assert result.data == {"imported": len(self.model.memories), "skipped": 0}
            digest = other.digest()
            again = memgraph.MemoryCommands(other).export_memories().model_dump(mode="json")
        shutil.rmtree(elsewhere)
        for exported in (again, document):  # what it is *now* depends on the time of each store's last event
            for memory in exported["memories"]:
                del memory["relevance_score"]
        assert again["memories"] == document["memories"]
        assert again["links"] == document["links"]
        self.commit_at(self.pending[at % len(self.stores)])
        assert store.digest() == digest

    @rule(doomed=st.lists(ids, max_size=3), at=either)
    def restore_what_was_deleted(self, doomed: list[str], at: int) -> None:
        """Import an export into the very store it came from: what was deleted since is back, the rest is skipped."""
        store, pending = self.acting(at)
        commands = memgraph.MemoryCommands(store)
        memories, links = self.model.snapshot(pending)
        export = commands.export_memories()
        for memory_id in doomed:
            self.delete(memory_id, at)
        lost = [fields for fields in memories if fields["id"] not in self.model.memories]
        now = self.commit_at(pending) if lost else self.now()
        result = commands.import_memories(export)
        assert result.data == {"imported": len(lost), "skipped": len(memories) - len(lost)}
        for fields in lost:
            given = {name: value for name, value in fields.items() if name != "vector" and value is not None}
            self.model.add(parse_memory(given), now, fields["vector"], chained=False)
        for key, link in links.items():
            if key not in self.model.links:
                self.model.link(key, *link, now)

    @rule(how=st.sampled_from(["rebuild", "verify", "verify", "move"]), at=either)
    def examine(self, how: str, at: int) -> None:
        getattr(self, how)(at)

    # -- what must be so after every step

    @invariant()
    def shows_what_the_model_holds(self) -> None:
        self.steps += 1
        place = self.steps % len(self.stores)
        store, pending = self.stores[place], self.pending[place]
        with store.reader.frozen():
            now = self.now()
            assert store.now() == now
            expected = {fields["id"]: pending.over(fields) for fields in self.model.ordered()}
            shown = list(store.every_memory())
            assert [memory.id for memory in shown] == list(expected)
            for memory in shown:
                self.compare(memory, expected[str(memory.id)], now)
            for memory_id in (POOL[self.steps % len(POOL)], POOL[(self.steps // 7) % len(POOL)]):
                assert (store.get_memory(memory_id) is not None) == (memory_id in expected)
                if memory_id in expected:
                    assert {(link.source_id, link.relation, link.target_id) for link in store.links(memory_id)} == {
                        key
                        for key in [*self.model.links, *((a, "NEXT", b) for a, b in self.model.follows)]
                        if memory_id in (key[0], key[2])
                    }
            self.check_lists(store, expected, now)
            links = {(link.source_id, link.relation, link.target_id): link for link in store.every_link()}
            assert {key: (link.score, link.reason) for key, link in links.items()} == self.model.links

    def check_lists(self, store: memgraph.AgentMemoryStore, expected: dict[str, Any], now: str) -> None:
        for include in (False, True):
            listed = store.get_all_memories(include_suppressed=include)
            assert {memory.id for memory in listed} == self.model.listed(now, include_suppressed=include)
            values = [memory.relevance_score for memory in listed]
            assert all(earlier >= later - 1e-8 for earlier, later in itertools.pairwise(values))
        of_a = {memory.id for memory in store.query_by_project("A", type="episodic")}
        assert of_a == {
            key
            for key in self.model.listed(now)
            if (expected[key]["project_id"], expected[key]["type"]) == ("A", "episodic")
        }
        current = self.model.current()
        stats = store.get_stats()
        assert (stats.total, stats.pinned_count, stats.suppressed_count) == (
            len(current),
            sum(fields["is_pinned"] for fields in current),
            sum(fields["is_suppressed"] for fields in current),
        )
        assert stats.by_type == {
            kind: sum(fields["type"] == kind for fields in current) for kind in ("episodic", "semantic", "procedural")
        }
        average = sum(relevance(expected[fields["id"]], now) for fields in current) / max(1, len(current))
        assert stats.avg_relevance == pytest.approx(average, abs=1e-9)

    def compare(self, memory: Any, expected: dict[str, Any], now: str) -> None:
        shown = {name: getattr(memory, name) for name in expected if name != "vector"}
        assert shown == {name: value for name, value in expected.items() if name != "vector"}
        assert memory.embedding.tobytes() == expected["vector"].tobytes()
        assert memory.relevance_score == pytest.approx(relevance(expected, now), abs=1e-12)
        if memory.type != "episodic":
            sources = sorted(a for a, relation, b in self.model.links if (relation, b) == ("SUPPORTS", memory.id))
            assert memory.supporting_memory_ids == sources

    def teardown(self) -> None:
        try:
            if self.stores and sys.exc_info()[0] is None:
                self.verify(0)
                self.rebuild(0)
                self.shows_what_the_model_holds()
                self.shut()
        finally:
            self.abandon()
            shutil.rmtree(self.root, ignore_errors=True)

    # -- how it is done

    def opened(self, folder: Path) -> memgraph.AgentMemoryStore:
        config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
        return memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(DIMENSION), clock=self.clock, annotator=FakeAnnotator())  # fmt: skip

    def open(self) -> None:
        self.stores.append(self.opened(self.folder))
        self.pending.append(Pending())

    def shut(self) -> None:
        """Close the store objects, which commits what is pending in each."""
        for store, pending in zip(self.stores, self.pending, strict=True):
            self.commit_at(pending)
            store.close()
        self.stores, self.pending = [], []

    def abandon(self) -> None:
        """Let go of the store objects; what they still write goes to a directory that nobody reads again."""
        for store in self.stores:
            store.close()
        self.stores, self.pending = [], []

    def acting(self, at: int) -> tuple[memgraph.AgentMemoryStore, Pending]:
        place = at % len(self.stores)
        return self.stores[place], self.pending[place]

    def now(self) -> str:
        return max(to_iso(self.clock()), self.model.last_at)

    def commit_at(self, pending: Pending) -> str:
        """Return the time of a commit by a store object, with what is pending in it recorded first."""
        now = self.now()
        self.model.committed(now, pending)
        return now

    def add(self, given: dict[str, Any], now: str) -> None:
        memory = parse_memory(given)
        vector = memory.embedding if memory.embedding is not None else EMBEDDER.embed([memory.content])[0]
        self.model.add(memory, now, vector)

    @contextmanager
    def refused(self, *errors: type[Exception]) -> Iterator[None]:
        """Run what must be refused with one of these errors, or do nothing; nothing of the journal may change."""
        before = tables(self.folder / "store")
        if errors:
            with pytest.raises(errors):
                yield
        else:
            yield
        assert tables(self.folder / "store") == before

    def replayed_digest(self) -> str:
        keys_home = self.folder / "keys"
        journal = open_journal(
            self.folder / "store", FileKeys(keys_home), keys_home=keys_home, now=lambda: START, created_by="tests"
        )
        commits = list(journal.replay())
        events = [event for commit in commits for event in commit.events]
        _, state = project(events, commits[-1].after, Projection(journal.store_id), EmptyRows())
        return f"{state.digest:064x}"


@pytest.fixture(autouse=True)
def template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Make the store that each example begins with: empty, but for a memory that was and is gone."""
    caplog.set_level(logging.CRITICAL, "memgraph")  # thousands of stores are healed and rebuilt
    monkeypatch.setattr("memgraph.store.commit.access.FLUSH_AFTER_S", 3600.0)  # only the machine says when
    folder = tmp_path / "template"
    config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(DIMENSION), clock=FakeClock(START)) as store:
        store.delete_memory(str(store.insert_memory({"type": "semantic", "content": "gone"}).id))
    monkeypatch.setattr(StoreMachine, "template", folder, raising=False)


def lives(examples: int, steps: int, *phases: Phase) -> settings:
    return settings(
        phases=[Phase.explicit, Phase.generate, *phases],
        max_examples=examples,
        stateful_step_count=steps,
        database=None,
        derandomize=True,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )


def test_a_store_is_its_model() -> None:
    run_state_machine_as_test(StoreMachine, settings=lives(3, 16))


@pytest.mark.long
def test_a_store_is_its_model_for_long() -> None:
    run_state_machine_as_test(StoreMachine, settings=lives(400, 50, Phase.shrink))
