"""Rotation: both keys verify, the new one signs, and the earlier one signs nothing any more."""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memgraph.disk.seal import ReplacedKeyError
from memgraph.errors import DamagedJournalError, JournalError, KeyMissingError
from memgraph.journal.baseline import archive_row
from memgraph.journal.envelope import Chain, CommitDraft, canonical, seal
from memgraph.journal.journal import Journal
from memgraph.journal.key_providers import EnvKeys, FileKeys
from memgraph.journal.keyring import key_from_secret, uses_in
from memgraph.model.events.store import MemoryPurged, ranges_of
from memgraph.ports import SigningKey
from memgraph.store.maintenance.keys import reseal
from tests.unit.journal.conftest import NOW

Sql = Callable[..., Any]
LATER = "2026-03-03T09:00:00.001Z"
"""31 days after the rotation."""
FIRST, SECOND, THIRD = ("ab" * 32, "cd" * 32, "ef" * 32)


def lines_of(journal: Journal) -> list[dict[str, Any]]:
    return [json.loads(line.data) for line in journal.every_line()]


def ids(journal: Journal) -> list[str]:
    return [line["head"]["key_id"].rpartition("-")[0] for line in lines_of(journal)]


def test_a_new_key_signs_and_both_verify(rotated: Journal, open_one: Callable[..., Journal]) -> None:
    assert ids(rotated) == ["file:store:1", "file:store:1", "file:store:1", "file:store:2"]
    rotation = lines_of(rotated)[2]
    assert rotation["head"]["type"] == "key.rotated"
    assert rotation["payload"]["previous_key_id"] == rotation["head"]["key_id"]
    assert rotation["payload"]["key_id"] == lines_of(rotated)[3]["head"]["key_id"]
    again = open_one()
    assert again.verify() == 4
    assert again.used == rotated.used
    assert again.notices == []
    assert [event.key_id for event in again.events_after(0)] == [line["head"]["key_id"] for line in lines_of(rotated)]


def test_a_process_that_has_the_journal_open_follows(
    journal: Journal, open_one: Any, turn: Any, write: Any, added: Any
) -> None:
    other = open_one()
    for number in range(3):
        turn(journal)
        write(other, added(number))
        journal.refresh()
        assert journal.used == other.used
    assert ids(journal)[-1] == "file:store:4"
    assert open_one().verify() == 7


def test_the_earlier_key_signs_nothing_after_its_rotation(
    rotated: Journal, keys: FileKeys, open_one: Any, sql: Sql, added: Any
) -> None:
    """Whoever has stolen it can neither append to the journal nor alter its history."""
    stolen = keys.find(rotated.store_id, rotated.used.uses[0].key_id)
    assert stolen is not None
    (forged,) = seal([CommitDraft("global", [added(9)])], rotated.tail, stolen, NOW).lines
    insert = "INSERT INTO event (tenant, seq, type, head, payload, salt, signature) VALUES (1, ?, ?, ?, ?, ?, ?)"
    sql(insert, *forged)
    sql("UPDATE head SET seq = 5, signature = ?", forged.signature)
    for read in (open_one, rotated.refresh):
        with pytest.raises(DamagedJournalError, match="it was signed with key file:store:1-"):
            read()
    sql("DELETE FROM event WHERE seq = 5")
    ((signature,),) = sql("SELECT signature FROM event WHERE seq = 1")
    chain = Chain(rotated.store_id, 1, signature.hex(), NOW)
    (forged,) = seal([CommitDraft("global", [added(9)])], chain, stolen, NOW).lines
    sql("DELETE FROM event WHERE seq = 2")
    sql(insert, *forged)
    with pytest.raises(DamagedJournalError, match="event 3 does not follow event 2"):
        open_one()


def test_a_head_of_the_earlier_key_proves_nothing(
    rotated: Journal, keys: FileKeys, open_one: Any, sql: Sql, added: Any
) -> None:
    """Else whoever has stolen it could have events taken as verified."""
    stolen = keys.find(rotated.store_id, rotated.used.uses[0].key_id)
    assert stolen is not None
    (forged,) = seal([CommitDraft("global", [added(9)])], rotated.tail, stolen, NOW).lines
    sql("INSERT INTO event VALUES (1, ?, ?, ?, ?, ?, ?)", *forged)
    ((body,),) = sql("SELECT body FROM head")
    code = rotated._code(stolen, 5, forged.signature, body)
    sql("UPDATE head SET seq = 5, signature = ?, code = ?", forged.signature, code)
    with pytest.raises(DamagedJournalError, match="it was signed with key file:store:1-"):
        open_one()


def test_seals_are_of_the_key_that_signs(journal: Journal, open_one: Any, turn: Any) -> None:
    """Also those of a process that has the journal open; what the earlier key has sealed is told from damage."""
    other = open_one()
    seal, others = journal.seal("graph"), other.seal("graph")
    before, row = seal.sealed({"seq": 1}), seal.code(b"row")
    assert others.unsealed(before) == {"seq": 1}
    turn(journal)
    other.refresh()
    again = open_one().seal("graph")
    assert again.name == seal.name == others.name
    for one in (seal, others, again):
        assert one.code(b"row") == again.code(b"row") != row
        assert one.unsealed(seal.sealed([2])) == [2]
        with pytest.raises(ReplacedKeyError):
            one.unsealed(before)
        with pytest.raises(ValueError, match="no valid code"):
            one.unsealed(seal.sealed([2]).replace(b"[2]", b"[3]"))


def test_what_an_earlier_key_signed_for_good_verifies_as_long_as_the_key_is_there(
    journal: Journal, keys: FileKeys, open_one: Any, turn: Any
) -> None:
    key_id, code = journal.key_id, journal.seal("receipt").code(b"said")
    turn(journal)
    former = open_one().seal_of(key_id, "receipt")
    assert former is not None
    assert former.fits(code, b"said")
    assert not former.fits(code, b"other")
    assert open_one().seal_of("file:store:7-0011223344556677", "receipt") is None


class TestCutOff:
    """A rotation that died between two of its steps."""

    def test_after_the_key_was_stored(
        self, journal: Journal, keys: FileKeys, open_one: Any, turn: Any, write: Any, added: Any, caplog: Any
    ) -> None:
        made = keys.made_next(journal.store_id)
        keys.add(journal.store_id, made)
        with caplog.at_level(logging.WARNING):
            again = open_one()
        assert "does not sign this store yet; run `memgraph keys rotate`" in caplog.text
        write(again, added(1))
        assert ids(again) == ["file:store:1", "file:store:1"]
        assert turn(again).key_id == made.key_id  # and makes no third one
        assert len(keys.keys(journal.store_id)) == 2

    def test_before_the_transaction_ended(
        self, journal: Journal, keys: FileKeys, open_one: Any, turn: Any, write: Any, added: Any
    ) -> None:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Journal, "put_head", _broken)
            with pytest.raises(KeyboardInterrupt):
                turn(journal)
        assert (journal.tail.seq, len(journal.used.uses)) == (1, 1)
        write(journal, added(1))
        again = open_one()
        assert (again.verify(), ids(again)) == (2, ["file:store:1"] * 2)
        turn(again)
        assert len(keys.keys(journal.store_id)) == 2


class TestOtherProviders:
    @pytest.fixture
    def opened(self, open_one: Any) -> Callable[..., Journal]:
        return lambda *secrets: open_one(keys=EnvKeys({"MEMGRAPH_KEY": " ".join(secrets)}))

    def test_the_new_key_is_the_providers(self, opened: Any, turn: Any, write: Any, added: Any) -> None:
        opened(FIRST)
        both = EnvKeys({"MEMGRAPH_KEY": f"{SECOND} {FIRST}"})
        journal = opened(SECOND, FIRST)
        assert turn(journal, both).key_id == both.key(journal.store_id).key_id  # type: ignore[union-attr]
        write(journal, added(1))
        assert opened(SECOND, FIRST).verify() == 3

    def test_without_a_new_one_it_is_refused(self, opened: Any, turn: Any) -> None:
        journal = opened(FIRST)
        with pytest.raises(KeyMissingError, match="add a new version"):
            turn(journal, EnvKeys({"MEMGRAPH_KEY": FIRST}))
        assert journal.tail.seq == 1

    def test_a_replaced_key_never_returns(self, opened: Any, turn: Any, tmp_path: Path) -> None:
        """Its id would be ambiguous, also after a resealing."""
        opened(FIRST)
        journal = opened(SECOND, FIRST)
        turn(journal, EnvKeys({"MEMGRAPH_KEY": f"{SECOND} {FIRST}"}))
        back = EnvKeys({"MEMGRAPH_KEY": f"{FIRST} {SECOND}"})
        with pytest.raises(KeyMissingError, match="was replaced"):
            turn(journal, back)
        reseal(journal, now=lambda: NOW, resealed_by="tests")
        with pytest.raises(KeyMissingError, match="was replaced"):
            turn(opened(SECOND, FIRST), back)

    def test_every_missing_key_is_named(self, opened: Any, turn: Any, sql: Sql) -> None:
        opened(FIRST)
        for active, *earlier in ((SECOND, FIRST), (THIRD, SECOND, FIRST)):
            turn(opened(active, *earlier), EnvKeys({"MEMGRAPH_KEY": " ".join((active, *earlier))}))
        journal = opened(THIRD, SECOND, FIRST)
        for has_head in (True, False):
            with pytest.raises(KeyMissingError, match="keys import") as refused:
                opened(THIRD)
            wanted = [use.key_id for use in journal.used.uses[:-1]]
            assert refused.value.key_ids == wanted
            assert all(key_id in str(refused.value) for key_id in wanted)
            if has_head:
                sql("DELETE FROM head")
        with pytest.raises(KeyMissingError):
            opened()

    def test_a_store_moves_from_key_files_to_another_provider(
        self, rotated: Journal, opened: Any, turn: Any, open_one: Any, write: Any, added: Any
    ) -> None:
        journal = opened(THIRD)  # the key files still verify
        turn(journal, EnvKeys({"MEMGRAPH_KEY": THIRD}))
        write(journal, added(3))
        assert opened(THIRD).verify() == 6
        with pytest.raises(KeyMissingError):
            open_one()  # the key files alone lack the key that signs

    def test_a_process_without_the_new_key_refuses_to_go_on(
        self, opened: Any, turn: Any, write: Any, added: Any
    ) -> None:
        stale = opened(FIRST)
        journal = opened(SECOND, FIRST)
        turn(journal, EnvKeys({"MEMGRAPH_KEY": f"{SECOND} {FIRST}"}))
        with pytest.raises(KeyMissingError, match="to which this store was rotated"):
            write(stale, added(1))
        write(journal, added(2))
        with pytest.raises(KeyMissingError):
            stale.refresh()
        assert journal.verify() == 3


def test_a_released_key_id_verifies_and_signs_until_it_is_rotated(
    keys: FileKeys, open_one: Any, turn: Any, write: Any, added: Any
) -> None:
    class Released:
        """Key files as version 0.2.0 made them."""

        def key(self, store_id: str) -> SigningKey | None:
            return keys.key(store_id)

        def create(self, store_id: str) -> SigningKey:
            key = key_from_secret(bytes.fromhex(FIRST))
            keys.path(store_id).parent.mkdir(parents=True)
            keys.path(store_id).write_text(json.dumps({"key_id": key.key_id, "secret": FIRST, "store_id": store_id}))
            return key

    open_one(keys=Released())
    journal = open_one()
    write(journal, added(1))
    turn(journal)
    write(journal, added(2))
    old = key_from_secret(bytes.fromhex(FIRST)).key_id
    assert [line["head"]["key_id"] for line in lines_of(journal)][:3] == [old] * 3
    assert ids(journal)[3] == "file:store:2"
    assert open_one().verify() == 4


class TestExpiry:
    def test_a_rotated_key_verifies_for_thirty_days(self, rotated: Journal, open_one: Any) -> None:
        assert open_one(now="2026-03-03T09:00:00.000Z").tail == rotated.tail
        with pytest.raises(KeyMissingError, match="keys rotate --reseal") as refused:
            open_one(now=LATER)
        assert refused.value.key_ids == [rotated.used.uses[0].key_id]
        assert open_one(now=LATER, verification_days=31).tail == rotated.tail
        with pytest.raises(KeyMissingError):
            open_one(now="2026-02-01T09:00:00.001Z", verification_days=0)

    def test_dev_does_not_bypass_it(self, rotated: Journal, open_one: Any) -> None:
        with pytest.raises(KeyMissingError, match="may no longer verify"):
            open_one(now=LATER, allow_unverified=True)

    def test_the_last_days_are_announced(self, rotated: Journal, open_one: Any, caplog: Any) -> None:
        open_one(now="2026-02-20T09:00:00.000Z")
        assert "more days" not in caplog.text
        open_one(now="2026-02-26T09:00:00.000Z")
        assert "verifies events for 5 more days" in caplog.text

    def test_resealing_frees_it(self, rotated: Journal, open_one: Any, tmp_path: Path) -> None:
        journal = open_one(now=LATER, verification_days=None)
        reseal(journal, now=lambda: LATER, resealed_by="tests")
        assert open_one(now="2027-01-01T00:00:00.000Z").verify() == 5


class TestReseal:
    @pytest.fixture
    def resealed(self, rotated: Journal, tmp_path: Path) -> list[dict[str, Any]]:
        """Return the lines before it."""
        before = lines_of(rotated)
        reseal(rotated, now=lambda: NOW, resealed_by="tests")
        return before

    def test_it_changes_signatures_alone(self, rotated: Journal, resealed: Any, open_one: Any) -> None:
        after = lines_of(rotated)
        assert {line["head"]["key_id"] for line in after} == {resealed[-1]["head"]["key_id"]}
        assert len(after) == len(resealed) + 1
        for old, new in zip(resealed, after, strict=False):
            assert (old["payload"], old["salt"]) == (new["payload"], new["salt"])
            same = old["head"].keys() - {"key_id", "prev_signature"}
            assert {name: old["head"][name] for name in same} == {name: new["head"][name] for name in same}
        again = open_one()
        assert again.verify() == 5
        assert len(again.used.uses) == 1

    def test_its_event_keeps_the_head_of_the_former_chain(self, rotated: Journal, resealed: Any, open_one: Any) -> None:
        event = lines_of(rotated)[-1]
        assert event["head"]["type"] == "journal.resealed"
        assert event["payload"]["signature"] == resealed[-1]["signature"]
        assert event["payload"]["seq"] == 4
        assert event["payload"]["freed_key_ids"] == [resealed[0]["head"]["key_id"]]

    def test_the_former_journal_is_refused(self, rotated: Journal, open_one: Any, sql: Sql) -> None:
        before = {name: sql(f"SELECT * FROM {name}") for name in ("event", "head")}
        reseal(rotated, now=lambda: NOW, resealed_by="tests")
        for name, rows in before.items():
            sql(f"DELETE FROM {name}")
            for row in rows:
                sql(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", *row)
        with pytest.raises(JournalError):
            open_one()

    def test_it_is_all_or_nothing(self, rotated: Journal, open_one: Any, write: Any, added: Any) -> None:
        before = list(rotated.every_line())
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Journal, "append", _broken)
            with pytest.raises(KeyboardInterrupt):
                reseal(rotated, now=lambda: NOW, resealed_by="tests")
        assert list(rotated.every_line()) == before
        write(rotated, added(5))
        assert open_one().verify() == 5
        reseal(open_one(), now=lambda: NOW, resealed_by="tests")
        assert open_one().verify() == 6

    def test_an_archive_and_a_purged_event_stay_what_they_are(
        self, journal: Journal, open_one: Any, turn: Any, write: Any, added: Any
    ) -> None:
        for number in (1, 2, 3):
            write(journal, added(number))
        with journal.locked(), journal.committing() as tx:
            tx.run("put_archive", 1, *archive_row(list(journal.every_line(until=3))))
            tx.run("remove_events_until", 1, 3)
            event = MemoryPurged(ranges=ranges_of({2}), purged_at=NOW)
            journal.append([CommitDraft("system", [event])], NOW)
            journal.erase({2})
        turn(journal)
        reseal(journal, now=lambda: NOW, resealed_by="tests")
        again = open_one()
        assert (again.verify(), again.archived_until()) == (7, 3)
        assert [line.seq for line in again.every_line() if line.is_purged] == [2]

    def test_seals_change(self, journal: Journal, turn: Any, open_one: Any, tmp_path: Path) -> None:
        turn(journal)
        before = journal.seal("graph").sealed("the state at an event that is signed anew")
        reseal(journal, now=lambda: NOW, resealed_by="tests")
        with pytest.raises(ReplacedKeyError):
            open_one().seal("graph").unsealed(before)

    def test_what_a_freed_key_has_sealed_is_known_as_long_as_the_key_is_there(
        self, journal: Journal, turn: Any, open_one: Any
    ) -> None:
        """Such as the receipts of purges."""
        key_id, code = journal.key_id, journal.seal("receipt").code(b"row")
        turn(journal)
        reseal(journal, now=lambda: NOW, resealed_by="tests")
        again = open_one()
        assert again.key_id != key_id
        assert again.seal_of(key_id, "receipt").fits(code, b"row")
        assert not again.seal("receipt").fits(code, b"row")

    def test_who_has_the_journal_open_is_told(
        self, rotated: Journal, open_one: Any, tmp_path: Path, write: Any, added: Any
    ) -> None:
        other = open_one()
        reseal(rotated, now=lambda: NOW, resealed_by="tests")
        for use in (other.refresh, lambda: write(other, added(7))):
            with pytest.raises(JournalError, match="open the store again"):
                use()
        write(rotated, added(7))
        again = open_one()
        assert again.notices == []
        assert again.verify() == 6

    def test_a_rotation_after_it_works(
        self, rotated: Journal, resealed: Any, open_one: Any, turn: Any, tmp_path: Path, write: Any, added: Any
    ) -> None:
        journal = open_one()
        turn(journal)
        write(journal, added(5))
        assert open_one().verify() == 7
        reseal(journal, now=lambda: NOW, resealed_by="tests")
        assert open_one().verify() == 8

    def test_with_one_key_there_is_nothing_to_do(self, journal: Journal, tmp_path: Path) -> None:
        with pytest.raises(JournalError, match="nothing to reseal"):
            reseal(journal, now=lambda: NOW, resealed_by="tests")

    def test_a_damaged_journal_is_not_laundered(self, rotated: Journal, sql: Sql) -> None:
        sql("UPDATE event SET payload = CAST(replace(CAST(payload AS TEXT), 'Memory 1', 'Memory 7') AS BLOB)")
        before = sql("SELECT * FROM event")
        with pytest.raises(DamagedJournalError):
            reseal(rotated, now=lambda: NOW, resealed_by="tests")
        assert sql("SELECT * FROM event") == before


def _broken(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_the_raw_scan_agrees_with_the_verified_history(rotated: Journal, turn: Any) -> None:
    assert uses_in(rotated.lines()) == rotated.used
    turn(rotated)
    assert uses_in(rotated.lines()) == rotated.used


def test_ids_of_a_users_own_provider_are_read_as_they_were_written(
    open_one: Any, turn: Any, write: Any, added: Any
) -> None:
    odd = ['vault:"prod"\\Schlüssel:1', 'vault:"prod"\\Schlüssel:2']

    class Own:
        """Keys with quotes, backslashes and umlauts in their ids."""

        def __init__(self) -> None:
            self.ids = odd[:1]

        def key(self, store_id: str) -> SigningKey | None:
            return SigningKey(self.ids[0], self.ids[0].encode().ljust(32))

        def create(self, store_id: str) -> SigningKey | None:
            return self.key(store_id)

        def find(self, store_id: str, key_id: str) -> SigningKey | None:
            return SigningKey(key_id, key_id.encode().ljust(32)) if key_id in self.ids else None

    keys = Own()
    journal = open_one(keys=keys)
    keys.ids = odd[::-1]
    journal = open_one(keys=keys)
    turn(journal, keys)
    write(journal, added(1))
    assert [use.key_id for use in uses_in(journal.lines()).uses] == odd
    assert uses_in(journal.lines()) == journal.used
    assert open_one(keys=keys).verify() == 3


class TestUnverified:
    """``dev`` with the explicit flag."""

    def test_every_use_is_logged_as_an_error(
        self, rotated: Journal, keys: FileKeys, open_one: Any, caplog: Any
    ) -> None:
        keys.path(rotated.store_id).unlink()
        journal = open_one(allow_unverified=True)
        for use in (lambda: None, journal.verify, lambda: list(journal.events_after(0)), lambda: list(journal.lines())):
            if use is not None:
                use()
            errors = [record for record in caplog.records if record.levelno == logging.ERROR]
            assert errors
            assert "without verifying their signatures" in errors[-1].getMessage()
            caplog.clear()
            journal.verify()
        assert journal.is_read_only

    def test_an_invalid_signature_is_read_but_never_written_after(
        self, rotated: Journal, open_one: Any, sql: Sql, head_path: Any, write: Any, added: Any
    ) -> None:
        sql("UPDATE event SET signature = zeroblob(32) WHERE seq = 4")
        sql("DELETE FROM head")
        ((signature,),) = sql("SELECT signature FROM event WHERE seq = 3")
        head_path(rotated).write_text(json.dumps({"seq": 3, "signature": signature.hex()}))
        with pytest.raises(DamagedJournalError, match="signature"):
            open_one()
        journal = open_one(allow_unverified=True)
        assert journal.tail.seq == 4
        with pytest.raises(KeyMissingError):
            write(journal, added(9))

    def test_a_whole_store_opens_as_ever(self, rotated: Journal, open_one: Any, write: Any, added: Any) -> None:
        journal = open_one(allow_unverified=True)
        before = journal.tail.seq
        assert not journal.is_read_only
        write(journal, added(9))
        assert journal.verify() == open_one().tail.seq == before + 1

    @pytest.mark.parametrize("change", [{"envelope_version": 2}, {"event_version": 99}, {"type": "memory.invented"}])
    def test_versions_and_schemas_are_never_bypassed(
        self, rotated: Journal, keys: FileKeys, open_one: Any, sql: Sql, head_path: Any, change: dict[str, Any]
    ) -> None:
        ((head,),) = sql("SELECT head FROM event WHERE seq = 4")
        forged = canonical(json.loads(head) | change)
        signature = hmac.digest(rotated.signing_key.secret, forged, "sha256")
        type_ = json.loads(forged)["type"]
        sql("UPDATE event SET head = ?, type = ?, signature = ? WHERE seq = 4", forged, type_, signature)
        sql("DELETE FROM head")
        head_path(rotated).unlink()
        keys.path(rotated.store_id).unlink()
        with pytest.raises(JournalError, match=r"unknown to this release|does not know"):
            open_one(allow_unverified=True)


@pytest.mark.parametrize("mode", ["production", "DEV", "devel", "no\nmode", 7])
def test_an_invalid_mode_counts_as_prod_and_is_an_error(mode: Any, caplog: Any) -> None:
    from memgraph import AgentMemoryConfig

    assert AgentMemoryConfig(security_mode=mode).security_mode == "prod"
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "counts as prod" in record.getMessage()
    assert "\n" not in record.getMessage()
    caplog.clear()
    for known in ("prod", "dev"):
        assert AgentMemoryConfig(security_mode=known).security_mode == known
    assert not caplog.records
