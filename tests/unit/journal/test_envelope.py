"""A line that is not what was signed, at the place where it was signed, is refused."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from memgraph.errors import InvalidInputError, PayloadError, ScopeError, UnknownEventError
from memgraph.journal import envelope
from memgraph.journal.envelope import (
    FIRST_SIGNATURE,
    Chain,
    CommitDraft,
    Event,
    KeyOf,
    LineError,
    Sealed,
    canonical,
    parsed,
    seal,
)
from memgraph.journal.keyring import key_from_secret
from memgraph.model.events.memories import MemoryAdded, MemoryDeleted, MemoryLinked
from memgraph.model.events.records import RetrievalRecorded
from memgraph.model.events.registry import PAYLOADS
from memgraph.model.events.store import StoreCreated
from memgraph.model.ids import new_id
from memgraph.ports import SigningKey

NOW = "2026-02-01T09:00:00.000Z"
START = Chain("store-1")
HEAD_FIELDS = [
    "store_id", "seq", "commit_id", "last", "event_id", "type", "event_version", "write_scope", "task_id", "actor",
    "timestamp", "occurred_at", "envelope_version", "signature_version", "key_id", "prev_signature", "payload_sha256",
]  # fmt: skip
Added = Callable[..., MemoryAdded]


def data_of(sealed: Sealed) -> list[bytes]:
    """Return events as releases 0.1 and 0.2 wrote them: lines of canonical JSON."""
    return [line.data for line in sealed.lines]


def unseal(data: bytes, chain: Chain, key: SigningKey | KeyOf | None) -> tuple[Event, Chain]:
    """Verify such a line."""
    return envelope.unseal(parsed(data), chain, key)


@pytest.fixture
def key() -> SigningKey:
    return key_from_secret(b"k" * 32)


@pytest.fixture
def lines(key: SigningKey, added: Added) -> list[bytes]:
    """Three lines of two commits."""
    drafts = [
        CommitDraft("global", [added(1), added(2)]),
        CommitDraft("global", [MemoryDeleted(id=added(1).memory.id)]),
    ]
    return data_of(seal(drafts, START, key, NOW))


def read(lines: list[bytes], key: SigningKey | None, chain: Chain = START) -> list[Any]:
    events = []
    for line in lines:
        event, chain = unseal(line, chain, key)
        events.append(event)
    return events


def forged(line: bytes, key: SigningKey, *, payload: Any = None, **head: Any) -> bytes:
    """Sign a changed line validly, from the format's description alone, as a buggy or newer writer would."""
    envelope = orjson.loads(line)
    envelope["head"] |= head
    if payload is not None:
        envelope["payload"] = payload
        content = orjson.dumps(payload, option=orjson.OPT_SORT_KEYS)
        envelope["head"]["payload_sha256"] = hashlib.sha256(bytes.fromhex(envelope["salt"]) + content).hexdigest()
    signed = orjson.dumps(envelope["head"], option=orjson.OPT_SORT_KEYS)
    envelope["signature"] = hmac.digest(key.secret, signed, "sha256").hex()
    return orjson.dumps(envelope, option=orjson.OPT_SORT_KEYS)


SEED_4 = set(
    "TASK_CREATED TITLE_SET GOAL_SET DECISION_MADE DECISION_REVERTED CONSTRAINT_ADDED CONSTRAINT_REMOVED OPEN_QUESTION_ADDED "
    "OPEN_QUESTION_RESOLVED NEXT_ACTION_SET NEXT_ACTION_COMPLETED ARTIFACT_LINKED PIN_ADDED PIN_REMOVE_REQUESTED PIN_REMOVED "
    "STATE_PATCH_APPLIED USER_CONFIRMED".split()
)


class TestFormat:
    def test_a_line_has_the_designed_format(self, lines: list[bytes], key: SigningKey, added: Added) -> None:
        envelope = orjson.loads(lines[0])
        assert list(envelope) == ["head", "payload", "salt", "signature"]
        assert sorted(envelope["head"]) == sorted(HEAD_FIELDS)
        assert len(HEAD_FIELDS) == 17
        assert orjson.dumps(envelope, option=orjson.OPT_SORT_KEYS) == lines[0]
        assert b"\n" not in lines[0]
        assert envelope["payload"] == added(1).dump()
        assert len(bytes.fromhex(envelope["salt"])) == 16
        salted = bytes.fromhex(envelope["salt"]) + canonical(envelope["payload"])
        assert envelope["head"]["payload_sha256"] == hashlib.sha256(salted).hexdigest()
        assert envelope["signature"] == hmac.digest(key.secret, canonical(envelope["head"]), "sha256").hex()

    def test_lines_form_a_chain(self, lines: list[bytes]) -> None:
        envelopes = [orjson.loads(line) for line in lines]
        assert [envelope["head"]["seq"] for envelope in envelopes] == [1, 2, 3]
        previous = [envelope["head"]["prev_signature"] for envelope in envelopes]
        assert previous == [FIRST_SIGNATURE, envelopes[0]["signature"], envelopes[1]["signature"]]

    def test_a_commit_shares_its_id_and_ends_once(self, lines: list[bytes]) -> None:
        heads = [orjson.loads(line)["head"] for line in lines]
        assert heads[0]["commit_id"] == heads[1]["commit_id"] != heads[2]["commit_id"]
        assert [head["last"] for head in heads] == [False, True, True]
        assert len({head["event_id"] for head in heads}) == 3

    def test_reading_returns_what_was_sealed(self, key: SigningKey, added: Added) -> None:
        draft = CommitDraft("task", [added(1, task_id="t", content="Ünï 数据 \U0001f600")], task_id="t", actor="user")
        sealed = seal([draft], START, key, NOW)
        assert read(data_of(sealed), key) == sealed.events
        event = sealed.events[0]
        assert (event.write_scope, event.task_id, event.actor, event.timestamp) == ("task", "t", "user", NOW)
        assert sealed.chain == Chain("store-1", 1, event.signature, NOW)

    def test_the_head_states_when_the_event_happened(self, key: SigningKey, added: Added) -> None:
        events = seal([CommitDraft("global", [added(1, occurred_at="2020-01-01")])], START, key, NOW).events
        assert (events[0].occurred_at, events[0].timestamp) == ("2020-01-01T00:00:00.000Z", NOW)

    def test_salts_differ_so_equal_payloads_cannot_be_recognised(self, key: SigningKey, added: Added) -> None:
        sealed = [data_of(seal([CommitDraft("global", [added(1)])], START, key, NOW))[0] for _ in range(2)]
        digests = {orjson.loads(data)["head"]["payload_sha256"] for data in sealed}
        assert len(digests) == 2

    def test_a_line_has_a_maximum_size(self, key: SigningKey, added: Added, monkeypatch: pytest.MonkeyPatch) -> None:
        draft = CommitDraft("global", [added(1)])
        (line,) = seal([draft], START, key, NOW).lines
        size = len(line.head) + len(line.payload or b"")
        monkeypatch.setattr(envelope, "MAX_LINE_BYTES", size + 1)
        seal([draft], START, key, NOW)
        monkeypatch.setattr(envelope, "MAX_LINE_BYTES", size)
        with pytest.raises(PayloadError, match="limit"):
            seal([draft], START, key, NOW)


class TestRefused:
    @pytest.mark.parametrize(
        "alter",
        [
            lambda line: line.replace(b":", b": ", 1),
            lambda line: b" " + line,
            lambda line: line + b" ",
            lambda line: line.replace(b'"head"', b'"\\u0068ead"', 1),
            lambda line: line.replace(b'"access_count":0', b'"access_count":0.0', 1),
            lambda line: line.replace(b'"access_count":0', b'"access_count":-0', 1),
            lambda line: line.replace(b'"confidence":1.0', b'"confidence":1.00', 1),
            lambda line: line.replace(b'"confidence":1.0', b'"confidence":1e0', 1),
            lambda line: line.replace(b"{", b'{"a":1,', 1),
            lambda line: line.replace(b'"payload":', b'"payload":{},"payload":', 1),
            lambda line: line.replace(b"Memory 1", b"Memory 7", 1),
            lambda line: b"\xef\xbb\xbf" + line,
            lambda line: line[:-1],
            lambda _line: b"",
            lambda _line: b"[]",
            lambda _line: b"null",
        ],
    )
    def test_altered_bytes(self, lines: list[bytes], key: SigningKey, alter: Callable[[bytes], bytes]) -> None:
        altered = alter(lines[0])
        assert altered != lines[0]
        with pytest.raises(LineError):
            unseal(altered, START, key)
        with pytest.raises(LineError):
            unseal(altered, START, None)  # even without a key, by the bytes

    def test_keys_out_of_order(self, lines: list[bytes], key: SigningKey) -> None:
        envelope = orjson.loads(lines[0])
        backwards = orjson.dumps({name: envelope[name] for name in reversed(envelope)})
        with pytest.raises(LineError, match="canonical"):
            unseal(backwards, START, key)

    def test_the_same_salt_written_differently(self, lines: list[bytes], key: SigningKey) -> None:
        envelope = orjson.loads(lines[0])
        for salt in (
            envelope["salt"].upper(),
            f" {envelope['salt']}",
            " ".join((envelope["salt"][:2], envelope["salt"][2:])),
        ):
            with pytest.raises(LineError):
                unseal(canonical({**envelope, "salt": salt}), START, key)

    @pytest.mark.parametrize("field", HEAD_FIELDS)
    def test_a_changed_head(self, lines: list[bytes], key: SigningKey, field: str) -> None:
        envelope = orjson.loads(lines[0])
        old = envelope["head"][field]
        envelope["head"][field] = {str: "x", bool: not old, int: 7, type(None): "x"}[type(old)]
        with pytest.raises(LineError):
            unseal(canonical(envelope), START, key)

    @pytest.mark.parametrize("field", HEAD_FIELDS)
    def test_a_head_without_a_field(self, lines: list[bytes], key: SigningKey, field: str) -> None:
        envelope = orjson.loads(lines[0])
        del envelope["head"][field]
        with pytest.raises(LineError, match=r"fields|an envelope with a head"):
            unseal(canonical(envelope), START, key)

    def test_a_head_with_a_field_too_many(self, lines: list[bytes], key: SigningKey) -> None:
        with pytest.raises(LineError, match="fields"):
            unseal(forged(lines[0], key, extra=1), START, key)

    def test_another_key(self, lines: list[bytes]) -> None:
        with pytest.raises(LineError, match="key"):
            unseal(lines[0], START, key_from_secret(b"o" * 32))

    def test_another_key_of_the_same_name(self, lines: list[bytes], key: SigningKey) -> None:
        with pytest.raises(LineError, match="signature"):
            unseal(lines[0], START, SigningKey(key.key_id, b"o" * 32))

    def test_another_store_under_the_same_key(self, lines: list[bytes], key: SigningKey) -> None:
        with pytest.raises(LineError, match="store-1"):
            unseal(lines[0], Chain("store-2"), key)

    @pytest.mark.parametrize("order", [[1], [1, 0], [0, 2], [0, 0], [0, 1, 1], [0, 2, 1], [2]])
    @pytest.mark.parametrize("has_key", [True, False])
    def test_dropped_repeated_and_reordered_events(
        self, lines: list[bytes], key: SigningKey, order: list[int], has_key: bool
    ) -> None:
        with pytest.raises(LineError, match="does not follow"):
            read([lines[at] for at in order], key if has_key else None)

    def test_a_line_from_another_history_of_the_same_store(
        self, lines: list[bytes], key: SigningKey, added: Added
    ) -> None:
        other = data_of(seal([CommitDraft("global", [added(1), added(3)])], START, key, NOW))
        with pytest.raises(LineError, match="does not follow"):
            read([lines[0], other[1]], key)

    def test_another_payload_under_the_same_head(self, lines: list[bytes], key: SigningKey) -> None:
        first, second = (orjson.loads(line) for line in lines[:2])
        with pytest.raises(LineError, match="payload is not the one"):
            unseal(canonical({**first, "payload": second["payload"], "salt": second["salt"]}), START, key)

    @pytest.mark.parametrize(
        "gone", [{"payload": None, "salt": None}, {"payload": None}, {"salt": None}, {"salt": "zz"}]
    )
    def test_a_missing_payload(self, lines: list[bytes], key: SigningKey, gone: dict[str, Any]) -> None:
        with pytest.raises(LineError):
            unseal(canonical({**orjson.loads(lines[0]), **gone}), START, key)

    @pytest.mark.parametrize("version", [{"envelope_version": 2}, {"signature_version": 2}])
    def test_unknown_formats(self, lines: list[bytes], key: SigningKey, version: dict[str, int]) -> None:
        with pytest.raises(LineError, match="unknown"):
            unseal(forged(lines[0], key, **version), START, key)

    @pytest.mark.parametrize("head", [{"type": "memory.invented"}, {"event_version": 99}, {"event_version": 0}])
    def test_unknown_events(self, lines: list[bytes], key: SigningKey, head: dict[str, Any]) -> None:
        with pytest.raises(UnknownEventError, match="event 1"):
            unseal(forged(lines[0], key, **head), START, key)

    @pytest.mark.parametrize(
        "payload",
        [
            {},
            {"id": "not a uuid"},
            {"id": 7},
            {"id": None},
            {"id": "6d656d67-7261-4068-8b75-7a75206a726e", "extra": 1},
            {"id": "6d656d67-7261-4068-8b75-7a75206a726e", "reason": 3},
            {"id": "6d656d67-7261-4068-8b75-7a75206a726e", "reason": "x\x00"},
        ],
    )
    def test_payloads_that_match_no_schema(self, lines: list[bytes], key: SigningKey, payload: dict[str, Any]) -> None:
        with pytest.raises(PayloadError, match=r"event 1 \(memory\.deleted\)"):
            unseal(forged(lines[0], key, type="memory.deleted", event_version=1, payload=payload), START, key)

    def test_an_unchanged_line_signed_by_the_helper_passes(self, lines: list[bytes], key: SigningKey) -> None:
        """Show that the tests above refuse the change and not the helper's signature."""
        assert unseal(forged(lines[0], key), START, key)[0] == unseal(lines[0], START, key)[0]


class TestPayloads:
    @pytest.mark.parametrize(
        "make",
        [
            lambda: MemoryDeleted(id="x"),
            lambda: MemoryDeleted(id=new_id(), unknown=1),
            lambda: MemoryDeleted(id=new_id(), reason="x" * 8_001),
            lambda: MemoryLinked(source_id=new_id(), relation="LIKES", target_id=new_id(), created_at=NOW),
            lambda: MemoryLinked(source_id=new_id(), relation="NEXT", target_id=new_id(), created_at=NOW),
            lambda: MemoryLinked(source_id=new_id(), relation="SUPPORTS", target_id=new_id(), created_at="yesterday"),
            lambda: MemoryLinked(
                source_id=new_id(), relation="SUPPORTS", target_id=new_id(), created_at=NOW, score=float("nan")
            ),
            lambda: StoreCreated(created_by=7),
        ],
    )
    def test_invalid_payloads_cannot_be_constructed(self, make: Callable[[], Any]) -> None:
        with pytest.raises(InvalidInputError):
            make()

    def test_they_are_frozen(self, added: Added) -> None:
        with pytest.raises(ValidationError):
            added(1).memory = None

    def test_what_can_be_written_can_be_read_again(self, key: SigningKey) -> None:
        """Leaving out empty lists must not leave out required fields."""
        record = {
            "query_hmac": "0" * 64,
            "retrieved_at": NOW,
            "settings_version": "1",
            "total_tokens": 0,
            "results": [],
        }
        draft = CommitDraft("system", [RetrievalRecorded(query_id=new_id(), **record)])
        sealed = seal([draft], START, key, NOW)
        assert read(data_of(sealed), key) == sealed.events

    def test_every_one_has_a_name_and_a_scope(self) -> None:
        for (name, version), kind in PAYLOADS.items():
            assert name.count(".") == 1 or name in SEED_4, "a family and what happened, but for the names of seed 4"
            assert version >= 1
            assert kind.SCOPES


class TestScopes:
    @pytest.mark.parametrize(
        ("scope", "task_id"), [("task", None), ("global", "t"), ("system", "t"), ("none", None), ("none", "t")]
    )
    def test_scope_and_task_belong_together(self, added: Added, scope: Any, task_id: str | None) -> None:
        with pytest.raises(ScopeError):
            CommitDraft(scope, [added(1, task_id=task_id)], task_id=task_id)

    def test_system_events_are_not_mixed_with_others(self, added: Added) -> None:
        with pytest.raises(ScopeError):
            CommitDraft("system", [added(1)])
        with pytest.raises(ScopeError):
            CommitDraft("global", [added(1), StoreCreated(created_by="x")])
