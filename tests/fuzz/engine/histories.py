"""Random histories of a store, as the changed rows that folding them gives.

The engine has lost values in patterns that no fixed test meets: a column without a gap so far, one value set, a checkpoint, rows
that lack the column. So what a history does with each optional field changes as it goes on: for a while every new memory has it,
then none, then some.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, get_args
from uuid import UUID

from memgraph.fold import Workspace, fold
from memgraph.journal.envelope import Event
from memgraph.model.base import MAX_ITEMS
from memgraph.model.events.memories import (
    MemoryAdded,
    MemoryDeleted,
    MemoryDerived,
    MemoryLinked,
    MemoryMerged,
    MemoryReembedded,
    MemoryRevised,
    MemoryUndeleted,
    MemoryUnlinked,
    PlacedVector,
    VectorRef,
)
from memgraph.model.events.payload import Payload
from memgraph.model.events.records import (
    AccessEffect,
    AccessRecorded,
    BuildConsolidated,
    CompressionApplied,
    ContradictionsSought,
    FailedTest,
    OutcomeRecorded,
    ProcedureMeasured,
    RecalledItem,
    RetrievalRecorded,
    SleepAdvanced,
    SourceRead,
)
from memgraph.model.link import EXPLICIT_RELATIONS
from memgraph.model.memory import MemoryRecord, Worked
from memgraph.model.timestamps import to_iso
from memgraph.ports import Change, Key, Row

TYPES = ("episodic", "semantic", "procedural")
_REQUIRED = {"id", "type", "content", "created_at", "updated_at", "occurred_at", "relevance_at"}
_SETTLED = {"previous_id", "embedding_model", "embedded_at"}
_CHANCES = (0.0, 0.0, 0.0, 0.1, 0.5, 0.9, 1.0, 1.0)
_FEW_WORDS = [
    "",
    " ",
    "null",
    "a",
    "no",
    "success",
    "[a,b]",
    "{x: 1}",
    '"q"',
    "1",
    "-0",
    "\\",
    "\n",
    "數據",
    "\U0001f600",
    "e\u0301",
]
_NAMES = [f"name{number}" for number in range(12)]
_KINDS = ("file", "symbol", "package", "person", "error", "issue", "commit", "url", "concept", "user")


class Rows:
    """The state of a fold as plain dictionaries: what the engine must hold."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[Key, Row]] = {}
        self._edges: dict[str, set[tuple[str, Key]]] = {}

    def get(self, table: str, key: Key) -> Row | None:
        """Return a row."""
        return self.tables.get(table, {}).get(key)

    def has(self, table: str, key: Key) -> bool:
        """Tell whether there is a row."""
        return key in self.tables.get(table, {})

    def edges_at(self, memory_id: str) -> Iterable[tuple[str, Key, Row]]:
        """Return every edge at a memory, both ways."""
        return [(table, key, self.tables[table][key]) for table, key in self._edges.get(memory_id, ())]

    def sources(self, table: str, target: str, limit: int) -> list[str]:
        """Return at most so many nodes that have an edge of a table to this one."""
        return [key[0] for name, key in self._edges.get(target, ()) if name == table and key[1] == target][:limit]

    def take(self, changes: Iterable[Change]) -> None:
        """Take in changed rows."""
        for change in changes:
            rows = self.tables.setdefault(change.table, {})
            if change.new is None:
                rows.pop(change.key, None)
            else:
                rows[change.key] = change.new
            if isinstance(change.key, tuple):
                for end in change.key:
                    known = self._edges.setdefault(end, set())
                    (known.discard if change.new is None else known.add)((change.table, change.key))

    def as_changes(self) -> list[Change]:
        """Return everything as changes from nothing."""
        return [Change(table, key, None, row) for table, rows in self.tables.items() for key, row in rows.items()]

    def __len__(self) -> int:
        return sum(map(len, self.tables.values()))


class History:
    """Makes one random history, the same for the same seed.

    Attributes
    ----------
    rows : Rows
        What has come of it so far.
    done : str
        What the last step did.
    """

    def __init__(self, seed: int | str, *, start: Rows | None = None) -> None:
        self.chance = Random(f"history {seed}")
        self.rows = start or Rows()
        self.done = ""
        self._seq = len(self.rows.tables.get("Memory", ()))
        self._memories: list[str] = list(self.rows.tables.get("Memory", {}))[-500:]  # type: ignore[arg-type]
        self._gone: list[MemoryRecord] = []
        self._recalls: list[str] = []
        self._vectors = 0
        self._size = self.chance.choice((2, 8, 40))
        self._moods: dict[str, float] = {}
        self._change_moods(1.0)

    def step(self) -> list[Change]:
        """Do one thing, and return the rows that it changes."""
        if self.chance.random() < 0.12:
            self._change_moods(self.chance.random())
        weights = {
            self._add: 8, self._add_many: 1, self._revise: 6, self._merge: 2, self._use: 4, self._link: 3, self._unlink: 1,
            self._derive: 2, self._delete: 2, self._delete_many: 0.2, self._undelete: 1, self._recall: 3, self._judge: 2,
            self._reembed: 1, self._consolidate: 2, self._read: 1, self._sleep: 1, self._measure: 1,
        }  # fmt: skip
        make: Callable[[], Sequence[Payload]] = self.chance.choices(list(weights), list(weights.values()))[0]
        self.done = make.__name__.strip("_")
        return self._folded(make())

    def many(self, count: int) -> list[Change]:
        """Add so many memories at once."""
        self.done = f"add {count:,}"
        return self._folded([self._added() for _ in range(count)])

    def _folded(self, payloads: Sequence[Payload]) -> list[Change]:
        workspace = Workspace(self.rows)
        for payload in payloads:
            self._seq += 1
            now = self._now()
            fold(
                workspace,
                Event(
                    self._seq, "c", True, payload.TYPE, payload, payload.dump(), "global", None, "agent", now, now, "s"
                ),
            )
        changes = list(workspace.changes())
        self.rows.take(changes)
        self._memories = [one for one in self._memories if self.rows.has("Memory", one)]
        return changes

    def _change_moods(self, share: float) -> None:
        names = [*MemoryRecord.model_fields, "vector", "link.score", "link.reason", "part", "recall", "build"]
        for name in names:
            if self.chance.random() < share:
                self._moods[name] = self.chance.choice(_CHANCES)

    def _has(self, name: str) -> bool:
        return self.chance.random() < self._moods[name]

    def _now(self) -> str:
        return to_iso(
            f"2026-{self.chance.randint(1, 12):02}-{self.chance.randint(1, 28):02}T10:00:00.{self.chance.randint(0, 999):03}Z"
        )

    def _id(self) -> str:
        return str(UUID(int=self.chance.getrandbits(128), version=4))

    def _text(self, most: int = 4_000) -> str:
        kind = self.chance.random()
        if kind < 0.1:
            return self.chance.choice(_FEW_WORDS)
        if kind < 0.3:
            return self.chance.choice(_NAMES)
        length = self.chance.choice((8, 12, 13, 40, 40, 40, 200, 799)) if kind < 0.98 else most
        return f"{self.chance.getrandbits(4 * min(length, 200)):0{min(length, 200)}x}".ljust(min(length, most), "é")[
            :most
        ]

    def _name(self) -> str:
        return self.chance.choice(_NAMES) if self.chance.random() < 0.7 else f"n{self.chance.getrandbits(60):x}"

    def _names(self, make: Callable[[], str]) -> list[str]:
        return list(dict.fromkeys(make() for _ in range(self.chance.choice((1, 1, 2, 3, 9)))))

    def _value(self, name: str) -> Any:
        """Return a random value of a memory's field."""
        chance = self.chance
        match name:
            case "outcome":
                return chance.choice(("positive", "negative", "neutral", "unknown"))
            case "privacy_tier":
                return chance.choice(("public", "sensitive", "private"))
            case "trust_class":
                return chance.choice(("user", "agent", "tool", "imported", "web"))
            case "is_pinned" | "is_suppressed" | "is_solved":
                return chance.random() < 0.5
            case "confidence" | "floor" | "success_rate":
                return chance.random()
            case "duration_seconds" | "relevance_anchor":
                return chance.choice((0.0, 1e-7, 1 / 3, 4.5, 1e22))
            case "access_count" | "usage_count" | "override_count" | "attempt" | "attempts" | "calls" | "failed_calls":
                return chance.choice((0, 1, 7, 2**31 - 1))
            case "worked_how":
                return chance.choice(get_args(Worked))
            case (
                "tags"
                | "agents_involved"
                | "source_event_ids"
                | "evidence_build_ids"
                | "tools_called"
                | "undoes"
                | "closes"
            ):
                return self._names(self._name)
            case "cues":
                return [self._name()[:80].strip() or "x" for _ in range(chance.choice((1, 5)))]
            case "entities":
                return [
                    {"name": self._name(), "kind": chance.choice(_KINDS), "about": self._has("part")}
                    for _ in range(chance.choice((1, 1, 3)))
                ]
            case "changes":
                return [
                    {
                        "path": self._name(),
                        "kind": chance.choice("AMDR"),
                        "added": chance.choice((0, 7)),
                        **self._some("was"),
                    }
                    for _ in range(chance.choice((1, 1, 4)))
                ]
            case "action_log":
                return [
                    {"t": float(place), "action": self._text(300), **self._some("target", "result", "error")}
                    for place in range(chance.choice((1, 2, 5)))
                ]
            case "errors_encountered":
                return [
                    {"type": self._name(), "message": self._text(300), **self._some("resolution")}
                    for _ in range(chance.choice((1, 2)))
                ]
            case "common_errors":
                return [{"error": self._text(300), "fix": self._text(300)}]
            case (
                "project_id"
                | "release"
                | "build_id"
                | "session_id"
                | "domain"
                | "speaker"
                | "phase"
                | "agent_type"
                | "mission_id"
                | "category"
            ):
                return self._name()
            case "outcome_word" | "failure_fingerprint" | "git_commit" | "mends" | "change_kind":
                return f"{chance.getrandbits(160):040x}"
            case "task_id":
                return "task"
        if name.endswith("_at") or name == "event_date":
            return self._now()
        kind = str(MemoryRecord.model_fields[name].annotation)
        return self._names(lambda: self._text(300)) if "list" in kind else self._text()

    def _some(self, *names: str) -> dict[str, str]:
        return {name: self._text(300) for name in names if self._has("part")}

    def _record(self) -> MemoryRecord:
        fields = {
            name: self._value(name)
            for name in MemoryRecord.model_fields
            if name not in _REQUIRED | _SETTLED and self._has(name)
        }
        times = {name: self._now() for name in ("created_at", "updated_at", "occurred_at", "relevance_at")}
        if self._has("previous_id") and self._memories:
            fields["previous_id"] = self.chance.choice(self._memories)
        return MemoryRecord(
            id=self._id(), type=self.chance.choice(TYPES), content=self._text(800).strip() or "x", **times, **fields
        )

    def _added(self) -> MemoryAdded:
        record = self._record()
        self._memories.append(record.id)
        return MemoryAdded(memory=record, vector=self._vector())

    def _vector(self) -> VectorRef | None:
        if not self._has("vector"):
            return None
        self._vectors += 1
        return VectorRef(
            model=self.chance.choice(("m1", "m2")), row=self._vectors, sha256=f"{self.chance.getrandbits(256):064x}"
        )

    def _some_memories(self, most: int) -> list[str]:
        return self.chance.sample(self._memories, min(len(self._memories), self.chance.randint(1, most)))

    def _add(self) -> list[Payload]:
        return [self._added() for _ in range(self.chance.randint(1, self._size))]

    def _add_many(self) -> list[Payload]:
        return [self._added() for _ in range(self.chance.choice((60, 120, 300)))]

    def _patch(self, kind: type[MemoryRevised | MemoryMerged], memory_id: str) -> Payload:
        row = self.rows.get("Memory", memory_id) or {}
        names = self.chance.sample(
            [
                name
                for name in MemoryRecord.model_fields
                if name not in {"id", "type", "created_at", "task_id"} | _SETTLED
            ],
            self.chance.randint(1, 6),
        )
        changed: dict[str, Any] = {}
        cleared = []
        for name in names:
            field = MemoryRecord.model_fields[name]
            if not field.is_required() and name in row and self.chance.random() < 0.3:
                cleared.append(name)
            elif name == "content":
                changed[name] = self._text(800).strip() or "x"
            elif field.is_required() or self.chance.random() < 0.8:
                changed[name] = self._value(name)
        return kind(id=memory_id, changed=changed, cleared=cleared, vector=self._vector())  # type: ignore[arg-type]

    def _revise(self) -> list[Payload]:
        return (
            [self._patch(MemoryRevised, one) for one in self._some_memories(self.chance.choice((1, 1, 3, 30)))]
            if self._memories
            else []
        )

    def _merge(self) -> list[Payload]:
        return [self._patch(MemoryMerged, one) for one in self._some_memories(2)] if self._memories else []

    def _use(self) -> list[Payload]:
        if not self._memories:
            return []
        now = self._now()
        return [
            AccessRecorded(
                accesses=[
                    AccessEffect(
                        id=one,
                        access_count=self.chance.randint(1, 9),
                        last_accessed_at=now,
                        relevance_anchor=self.chance.random(),
                        relevance_at=now,
                    )
                    for one in self._some_memories(10)
                ]
            )
        ]

    def _linked(self, source: str, target: str, relation: str) -> MemoryLinked:
        fields: dict[str, Any] = {}
        if self._has("link.score"):
            fields["score"] = self.chance.random()
        if self._has("link.reason"):
            fields["reason"] = self._text()
        return MemoryLinked(source_id=source, relation=relation, target_id=target, created_at=self._now(), **fields)  # type: ignore[arg-type]

    def _link(self) -> list[Payload]:
        pairs = (
            [self.chance.sample(self._memories, 2) for _ in range(self.chance.choice((1, 2, 20)))]
            if len(self._memories) > 1
            else []
        )
        return [self._linked(*pair, self.chance.choice(EXPLICIT_RELATIONS)) for pair in pairs]

    def _unlink(self) -> list[Payload]:
        found = [(table, key) for table in EXPLICIT_RELATIONS for key in self.rows.tables.get(table, {})]
        chosen = self.chance.sample(found, min(len(found), self.chance.choice((1, 3, 60))))
        return [MemoryUnlinked(source_id=key[0], relation=table, target_id=key[1]) for table, key in chosen]  # type: ignore[arg-type]

    def _derive(self) -> list[Payload]:
        sources = self._some_memories(12) if self._memories else []
        made = self._added()
        return (
            [made, MemoryDerived(id=made.memory.id, source_ids=sources, created_at=self._now())] if sources else [made]
        )

    def _deletion(self, memory_id: str) -> MemoryDeleted:
        row = {
            name: value
            for name, value in (self.rows.get("Memory", memory_id) or {}).items()
            if name in MemoryRecord.model_fields
        }
        self._gone.append(MemoryRecord(**row))
        return MemoryDeleted(id=memory_id)

    def _delete(self) -> list[Payload]:
        return [self._deletion(one) for one in self._some_memories(3)] if self._memories else []

    def _delete_many(self) -> list[Payload]:
        return [self._deletion(one) for one in self._some_memories(len(self._memories))] if self._memories else []

    def _undelete(self) -> list[Payload]:
        if not self._gone:
            return []
        record = self._gone.pop(self.chance.randrange(len(self._gone)))
        if self.rows.has("Memory", record.id):
            return []
        self._memories.append(record.id)
        return [MemoryUndeleted(memory=record, added_seq=self.chance.randint(1, self._seq + 1), vector=self._vector())]

    def _recall(self) -> list[Payload]:
        recalled = self._some_memories(10) if self._memories else []
        query_id = self._id()
        self._recalls.append(query_id)
        context = {
            name: self._name()
            for name in ("agent_name", "project_id", "session_id", "task_id", "build_id")
            if self._has("recall")
        }
        items = [RecalledItem(id=one, type="episodic", score=self.chance.random(), tokens=3) for one in recalled]
        return [
            RetrievalRecorded(
                query_id=query_id,
                query_hmac=f"{self.chance.getrandbits(256):064x}",
                retrieved_at=self._now(),
                settings_version="2",
                total_tokens=3 * len(items),
                results=items,
                **context,
            )
        ]

    def _judge(self) -> list[Payload]:
        if not self._recalls:
            return []
        query_id = self.chance.choice(self._recalls)
        used = [key[1] for key in self.rows.tables.get("RECALLED", {}) if key[0] == query_id][:3]
        return [
            OutcomeRecorded(
                query_id=query_id, outcome=self._name(), used=used[:2], overridden=used[2:], recorded_at=self._now()
            )
        ]

    def _reembed(self) -> list[Payload]:
        if not self._memories:
            return []
        found = []
        for one in self._some_memories(len(self._memories))[:MAX_ITEMS]:
            self._vectors += 1
            found.append(PlacedVector(id=one, row=self._vectors, sha256=f"{self.chance.getrandbits(256):064x}"))
        return [MemoryReembedded(model=self.chance.choice(("m1", "m2", "m3")), embedded_at=self._now(), vectors=found)]

    def _consolidate(self) -> list[Payload]:
        optional: dict[str, Any] = {
            name: self._names(self._name) for name in ("agents", "consumed_keys", "passed") if self._has("build")
        }
        if self._has("build"):
            optional["failed"] = [FailedTest(name=one, task=self._name()) for one in self._names(self._name)]
            optional["git_commit"] = self.chance.choice(("c0ffee1", "a" * 40, "b" * 40))
        return [
            BuildConsolidated(
                project_id=self._name(),
                build_id=self._name(),
                log_sha256=f"{self.chance.getrandbits(256):064x}",
                outcome=self.chance.choice(("success", "failure", "partial")),
                started_at=self._now(),
                completed_at=self._now(),
                task_count=self.chance.randint(0, 9),
                complete=self._has("part"),
                extracted=1,
                merged=0,
                extractor="rules",
                consolidated_at=self._now(),
                **optional,
            )
        ]

    def _read(self) -> list[Payload]:
        return [
            SourceRead(
                source_id=self._name(),
                kind="git",
                locator=self._text(300),
                project_id=self._name(),
                cursor=self._text(300),
                records=self._seq,
                builds=1,
                extracted=1,
                merged=0,
                skipped=0,
                read_at=self._now(),
            )
        ]

    def _sleep(self) -> list[Payload]:
        """Do what the phases of a sleep do, in one commit."""
        now = self._now()
        payloads: list[Payload] = []
        for _ in range(self.chance.randint(0, 4)):
            payloads += self._derive()
        known = [one for one in self._memories if self.rows.has("Memory", one)]
        for newer, older in zip(known[::7], known[3::7], strict=False):
            payloads.append(self._linked(newer, older, self.chance.choice(("SUPERSEDES", "CONTRADICTS"))))
            payloads.append(MemoryRevised(id=older, changed={"archived_at": now, "archive_reason": self._text(100)}))
        left = self.chance.sample(["collect", "errors"], self.chance.randint(0, 2))
        payloads.append(
            CompressionApplied(applied_at=now, episodes=1, communities=1, created=0, updated=0, superseded=0, retired=0)
        )
        payloads.append(ContradictionsSought(sought_at=now, through_seq=self._seq, looked_at=1, found=0, superseded=0))
        payloads.append(
            SleepAdvanced(
                started_at=now,
                advanced_at=now,
                phase="compress",
                complete=self._has("part"),
                through_seq=self._seq,
                changed=1,
                left=left,
            )
        )
        return payloads

    def _measure(self) -> list[Payload]:
        found = []
        for one in self._some_memories(3) if self._memories else ():
            counts = dict.fromkeys(
                ("tried", "succeeded", "uses", "uses_judged", "uses_succeeded", "override_count"),
                self.chance.randint(0, 5),
            )
            rate = {"success_rate": self.chance.random()} if self._has("part") else {}
            found.append(
                ProcedureMeasured(id=one, confidence=self.chance.random(), measured_at=self._now(), **counts, **rate)
            )
        return found
