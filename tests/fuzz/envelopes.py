"""Targets: one line of a journal, and a whole journal on disk."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from string import hexdigits
from typing import Any
from unittest.mock import patch
from uuid import UUID

import orjson

from memgraph.errors import MemGraphError
from memgraph.fold import EmptyRows, Projection, project
from memgraph.journal import envelope, opening
from memgraph.journal.envelope import Chain, CommitDraft, LineError, canonical, parsed, seal, unseal
from memgraph.journal.journal import Journal
from memgraph.journal.key_providers import FileKeys
from memgraph.journal.keyring import key_from_secret
from memgraph.journal.opening import open_journal
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
    RecordPatch,
    VectorRef,
)
from memgraph.model.events.payload import SYSTEM, Payload
from memgraph.model.events.records import (
    AccessEffect,
    AccessRecorded,
    BuildConsolidated,
    CompressionApplied,
    ContradictionsSought,
    DecayApplied,
    OutcomeRecorded,
    RecalledItem,
    RetrievalRecorded,
)
from memgraph.model.events.store import EmbeddingSwitched, StoreCreated
from memgraph.model.memory import MemoryRecord
from memgraph.model.timestamps import to_iso
from memgraph.testing import FakeKeys
from tests.fuzz.harness import Target, afterwards
from tests.fuzz.mutation import expanded, mutated, mutated_bytes, odd_value, random_document

DATABASE = "store/memgraph.db"
NOW = "2026-02-01T09:00:00.000Z"
STORE_ID = str(UUID(int=7, version=4))
IDS = [str(UUID(int=number, version=4)) for number in range(1, 4)]


def payloads() -> list[Payload]:
    """Return an event of each common kind."""
    times = dict.fromkeys(("created_at", "updated_at", "occurred_at", "relevance_at"), NOW)
    memory = {
        "type": "episodic",
        "content": "The build failed: 数据库",
        "tags": ["auth", "db"],
        "project_id": "P",
        "session_id": "s",
        "previous_id": IDS[1],
        "agents_involved": ["MARS"],
        "relevance_anchor": 0.7,
        "entities": [{"name": "login.py", "kind": "file", "about": True}],
        "action_log": [{"t": 0.5, "action": "ran"}],
    }
    vector = {"model": "fake", "row": 0, "sha256": "ab" * 32}
    recalled = [{"id": IDS[0], "type": "episodic", "score": 0.25, "tokens": 12}]
    use = {"id": IDS[0], "access_count": 2, "last_accessed_at": NOW, "relevance_anchor": 0.9, "relevance_at": NOW}
    return [
        StoreCreated(created_by="memgraph 0.1.0"),
        EmbeddingSwitched(model="fake", dimension=8),
        MemoryAdded(memory=MemoryRecord(id=IDS[0], **memory, **times), vector=VectorRef(**vector)),
        MemoryAdded(memory=MemoryRecord(id=IDS[1], type="procedural", content="How", steps=["one", "two"], **times)),
        MemoryRevised(id=IDS[0], changed=RecordPatch(title="T", outcome="negative"), cleared=["location"]),
        MemoryMerged(id=IDS[0], changed=RecordPatch(confidence=0.5), candidate_id=IDS[2]),
        MemoryLinked(source_id=IDS[0], relation="SUPPORTS", target_id=IDS[1], score=0.5, reason="so", created_at=NOW),
        MemoryDerived(id=IDS[1], source_ids=[IDS[0]], created_at=NOW),
        AccessRecorded(accesses=[AccessEffect(**use)]),
        RetrievalRecorded(
            query_id=IDS[2], query_hmac="cd" * 32, retrieved_at=NOW, settings_version="1",
            total_tokens=12, results=[RecalledItem(**item) for item in recalled],
        ),
        OutcomeRecorded(query_id=IDS[2], outcome="success", used=[IDS[0]], recorded_at=NOW),
        BuildConsolidated(
            project_id="P", build_id="b", log_sha256="ef" * 32, outcome="partial", started_at=NOW,
            completed_at=NOW, task_count=3, agents=["MARS"], consumed_keys=["k"], complete=True,
            extracted=1, merged=0, extractor="rules", consolidated_at=NOW,
        ),
        MemoryReembedded(model="fake", embedded_at=NOW, vectors=[PlacedVector(id=IDS[0], row=1, sha256="ab" * 32)]),
        DecayApplied(applied_at=NOW, updated=2, below_threshold=0),
        CompressionApplied(
            applied_at=NOW, episodes=9, communities=2, created=1, updated=1, superseded=0, retired=0
        ),
        ContradictionsSought(sought_at=NOW, through_seq=5, looked_at=2, found=1, superseded=0),
        MemoryUnlinked(source_id=IDS[0], relation="SUPPORTS", target_id=IDS[1]),
        MemoryUndeleted(memory=MemoryRecord(id=IDS[2], **memory, **times), added_seq=3, follower_ids=[IDS[1]]),
        MemoryDeleted(id=IDS[1], reason="old"),
    ]  # fmt: skip


def drafts() -> list[CommitDraft]:
    """Return the events as commits, some of several events."""
    system, shared = SYSTEM, []
    found: list[CommitDraft] = []
    for payload in payloads():
        if system == payload.SCOPES:
            found.append(CommitDraft("system", [payload], actor="system"))
        else:
            shared.append(payload)
    half = len(shared) // 2
    return [*found[:1], CommitDraft("global", shared[:half]), *found[1:], CommitDraft("global", shared[half:])]


@contextmanager
def settled_chance() -> Iterator[None]:
    """Make ids and salts the same in every run, so that a case is made again from its number."""
    chance = Random(7)
    with (
        patch.object(os, "urandom", chance.randbytes),
        patch.object(envelope, "uuid4", lambda: UUID(int=chance.getrandbits(128), version=4)),
        patch.object(opening, "uuid4", lambda: UUID(STORE_ID)),
    ):
        yield


@contextmanager
def line_target(_folder: Path) -> Iterator[Target]:
    """One line, given to `unseal`: as it was signed, or signed again by who has the key, or without a key to check by."""
    key = FakeKeys().create(STORE_ID)
    with settled_chance():
        lines = [line.data for line in seal(drafts(), Chain(STORE_ID), key, NOW).lines]
    chains = [Chain(STORE_ID)]
    for line in lines:
        chains.append(unseal(parsed(line), chains[-1], key)[1])
    envelopes = [orjson.loads(line) for line in lines]

    def make(rng: Random) -> bytes:
        place = rng.randrange(len(lines))
        way = rng.choice(["bytes", "document", "signed", "signed", "unsigned", "unsigned"])
        if way == "bytes":
            line = mutated_bytes(rng, lines[place], lines)
        elif rng.random() < 0.05:
            line = _dumped(random_document(rng))
        else:
            line = _spoilt(rng, envelopes[place], way, key.secret)
        return b"%d %s " % (place, b"-" if way == "unsigned" else b"key") + line

    def run(case: bytes) -> bool:
        place, by, line = case.split(b" ", 2)
        event, chain = unseal(parsed(line), chains[int(place)], key if by == b"key" else None)
        assert by != b"key" or line in lines or _is_signed(line, key.secret), "what nobody signed was accepted"
        assert chain.seq == event.seq == int(place) + 1
        told = (event.commit_id, event.type, event.write_scope, event.actor, event.timestamp, event.occurred_at)
        assert all(type(part) is str for part in told), "a part of the head is no text"
        assert to_iso(event.timestamp) == event.timestamp, "it is dated to no time"
        assert type(event.seq) is int, "its number is no number"
        assert type(event.last) is bool, "whether it is the last is not said"
        assert event.task_id is None or type(event.task_id) is str, "its task has no name"
        project([event], chain, Projection(STORE_ID), EmptyRows())
        return True

    yield Target(make, run, (LineError, MemGraphError))


def _spoilt(rng: Random, document: Any, way: str, secret: bytes) -> bytes:
    document = expanded(mutated(rng, document))
    if way in {"signed", "unsigned"} and isinstance(document, dict):
        head, salt = document.get("head"), document.get("salt")
        if isinstance(head, dict) and rng.random() < 0.9:
            body = _dumped(document.get("payload"))
            if isinstance(salt, str) and len(salt) == 32 and set(salt) <= set(hexdigits):
                head["payload_sha256"] = hashlib.sha256(bytes.fromhex(salt) + body).hexdigest()
            document["signature"] = hmac.digest(secret, _dumped(head), "sha256").hex()
    return _dumped(document)


def _is_signed(line: bytes, secret: bytes) -> bool:
    document = orjson.loads(line)
    return bool(document["signature"] == hmac.digest(secret, canonical(document["head"]), "sha256").hex())


def _dumped(document: Any) -> bytes:
    """Return canonical JSON where that can be had, else whatever Python makes of it."""
    try:
        return canonical(document)
    except (orjson.JSONEncodeError, RecursionError):
        try:
            return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
        except (RecursionError, TypeError):
            return b"[" * 3_000


@contextmanager
def journal_target(folder: Path) -> Iterator[Target]:
    """A journal whose files and rows were tampered with: served as it was written, up to a point that nobody denies, or refused."""
    made = folder / "made"
    keys, key = FileKeys(made / "keys"), key_from_secret(b"k" * 32)
    keys.path(STORE_ID).parent.mkdir(parents=True)
    keys.path(STORE_ID).write_text(json.dumps({"key_id": key.key_id, "secret": key.secret.hex(), "store_id": STORE_ID}))
    with settled_chance(), closing(_opened(made)) as journal:
        for draft in drafts()[1:]:
            with journal.locked():
                journal.append([draft], NOW)
        written = [event.signature for commit in journal.replay() for event in commit.events]
    files = {str(path.relative_to(made)): path.read_bytes() for path in sorted(made.rglob("*")) if path.is_file()}
    names = [name for name in files if "lock" not in name]
    place = folder / "case"

    def make(rng: Random) -> bytes:
        if rng.random() < 0.5:
            return json.dumps({"rows": [_edit(rng, len(written)) for _ in range(rng.choice([1, 1, 2]))]}).encode()
        spoilt = {name: _tampered(rng, files[name]) for name in rng.sample(names, rng.choice([1, 1, 1, 2]))}
        encoded = {name: None if data is None else base64.b64encode(data).decode() for name, data in spoilt.items()}
        return json.dumps({"files": encoded}).encode()

    def run(case: bytes) -> bool:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(made, place)
        changed = json.loads(case)
        for name, encoded in changed.get("files", {}).items():
            if encoded is None:
                (place / name).unlink()
            else:
                (place / name).write_bytes(base64.b64decode(encoded))
        with closing(sqlite3.connect(place / DATABASE)) as raw, raw:
            for statement in changed.get("rows", []):
                raw.execute(statement)
        try:
            journal = _opened(place)
        finally:
            around = {path.name for path in (*folder.iterdir(), *place.iterdir())}
            assert around == {"made", "case", "store", "keys"}, "something was written outside"
        with closing(journal):
            served = [event.signature for commit in journal.replay() for event in commit.events]
            is_theirs = journal.store_id == STORE_ID and changed.get("files", {}).get(DATABASE, "") is not None
            if is_theirs:
                assert served == written[: len(served)], "what nobody signed is served"
                assert len(served) == len(written) or f"keys/heads/{STORE_ID}" in changed["files"], "an end is lost"
            with afterwards():
                event = DecayApplied(applied_at=NOW, updated=0, below_threshold=0)
                with journal.locked():
                    journal.append([CommitDraft("system", [event])], NOW)
                with closing(_opened(place)) as again:
                    assert again.verify() == len(served) + 1
        return True

    yield Target(make, run)


def _opened(folder: Path) -> Journal:
    keys_home = folder / "keys"
    keys = FileKeys(keys_home)
    return open_journal(
        folder / "store", keys, keys_home=keys_home, now=lambda: NOW, created_by="tests", lock_timeout_s=1.0
    )


def _edit(rng: Random, events: int) -> str:
    """Return a statement that forges, moves or removes rows of the journal."""
    one, other = rng.randrange(1, events + 2), rng.randrange(1, events + 2)
    column = rng.choice(["type", "head", "payload", "salt", "signature"])
    table = rng.choice(["event", "event", "event", "head", "tenant", "memgraph_version"])
    bits = rng.randbytes(rng.choice([0, 1, 16, 32, 300])).hex()
    return rng.choice(
        [
            f"DELETE FROM event WHERE seq {rng.choice(['=', '>', '<'])} {one}",
            f"DELETE FROM {table}",
            f"UPDATE event SET {column} = (SELECT {column} FROM event WHERE seq = {other}) WHERE seq = {one}",
            f"UPDATE event SET {column} = x'{bits}' WHERE seq = {one}",
            f"UPDATE event SET {column} = {rng.choice(['7', '1e999', repr('x')])} WHERE seq = {one}",
            f"UPDATE OR REPLACE event SET seq = {other} WHERE seq = {one}",
            f"UPDATE OR REPLACE event SET seq = {rng.choice([0, -1, 1 << 40])} WHERE seq = {one}",
            f"UPDATE head SET {rng.choice(['seq', 'signature', 'body', 'code'])} = {rng.choice(['0', '3', repr('x'), 'zeroblob(9)'])}",
        ]
    )


def _tampered(rng: Random, data: bytes) -> bytes | None:
    if rng.random() < 0.05:
        return None
    if not data.startswith(b"{"):
        return mutated_bytes(rng, data)
    if rng.random() < 0.05:
        return rng.choice([b"[", b'{"a":']) * 100_000
    if rng.random() < 0.1:
        odd = rng.choice([b"1e999", b"-1", b"1" * 30, b"1" * 5_000, b"true", b"{}"])
        return re.sub(rb"(?<=: )\d+|(?<=: )\"[^\"]*\"", odd, data)
    if rng.random() < 0.5:
        try:
            return json.dumps(expanded(mutated(rng, json.loads(data)))).encode()
        except (RecursionError, ValueError):
            return json.dumps(odd_value(rng)).encode()
    return mutated_bytes(rng, data)
