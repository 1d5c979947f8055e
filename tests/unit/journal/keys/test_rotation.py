"""Rotation: both keys verify, the new one signs, and the earlier one signs nothing any more."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memgraph.disk.lock import ProcessLock
from memgraph.disk.seal import ReplacedKeyError
from memgraph.errors import DamagedJournalError, JournalError, KeyMissingError, StorageError
from memgraph.journal import swap
from memgraph.journal.envelope import Chain, CommitDraft, seal
from memgraph.journal.journal import Journal
from memgraph.journal.keys.providers import EnvKeys, FileKeys
from memgraph.journal.keys.ring import key_from_secret, key_id_in, replaced_in, uses_in
from memgraph.journal.rotation import reseal
from memgraph.ports import SigningKey
from tests.unit.journal.conftest import NOW

LATER = "2026-03-03T09:00:00.001Z"
"""31 days after the rotation."""
FIRST, SECOND, THIRD = ("ab" * 32, "cd" * 32, "ef" * 32)


def lines_of(journal: Journal) -> list[dict[str, Any]]:
    text = "".join(path.read_text() for path in sorted(journal.folder.glob("*.jsonl")))
    return [json.loads(line) for line in text.splitlines()]


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


def test_without_a_checkpoint_every_event_is_verified_with_its_own_key(rotated: Journal, open_one: Any) -> None:
    (rotated.folder / "verified.json").unlink()
    assert open_one().used == rotated.used


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
    rotated: Journal, keys: FileKeys, open_one: Any, segment: Callable[[Journal], Path], added: Any, head_path: Any
) -> None:
    """Whoever has stolen it can neither append to the journal nor alter its history."""
    stolen = keys.find(rotated.store_id, rotated.used.uses[0].key_id)
    assert stolen is not None
    forged = seal([CommitDraft("global", [added(9)])], rotated.tail, stolen, NOW).data
    path, whole = segment(rotated), segment(rotated).read_bytes()
    path.write_bytes(whole + forged)
    with pytest.raises(DamagedJournalError, match="it was signed with key file:store:1-"):
        open_one()
    with pytest.raises(DamagedJournalError, match="it was signed with key file:store:1-"):
        rotated.refresh()
    lines = whole.splitlines(keepends=True)
    chain = Chain(rotated.store_id)
    for line in lines[:1]:
        head = json.loads(line)
        chain = Chain(rotated.store_id, 1, head["signature"], head["head"]["timestamp"])
    other_past = seal([CommitDraft("global", [added(9)])], chain, stolen, NOW).data
    path.write_bytes(lines[0] + other_past + b"".join(lines[2:]))
    with pytest.raises(DamagedJournalError):
        open_one()


def test_a_checkpoint_of_the_earlier_key_proves_nothing(
    rotated: Journal, keys: FileKeys, open_one: Any, segment: Callable[[Journal], Path]
) -> None:
    """Else whoever has stolen it could have altered bytes taken as verified."""
    import hashlib
    import hmac

    from memgraph.journal.envelope import canonical

    stolen = keys.find(rotated.store_id, rotated.used.uses[0].key_id)
    assert stolen is not None
    rotated.checkpoint()
    path, checkpoint = segment(rotated), rotated.folder / "verified.json"
    altered = path.read_bytes().replace(b'"Memory 1"', b'"Memory 7"')
    path.write_bytes(altered)
    body = json.loads(checkpoint.read_text())["body"]
    body["sha256"] = hashlib.sha256(altered).hexdigest()
    mac = hmac.digest(stolen.secret, b"memgraph checkpoint\x1f" + canonical(body), "sha256").hex()
    checkpoint.write_text(json.dumps({"body": body, "hmac": mac}))
    with pytest.raises(DamagedJournalError, match="not the one that was signed"):
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
        reseal(journal, keys_home=tmp_path / "keys", now=lambda: NOW, resealed_by="tests")
        with pytest.raises(KeyMissingError, match="was replaced"):
            turn(opened(SECOND, FIRST), back)

    def test_every_missing_key_is_named(self, opened: Any, turn: Any) -> None:
        opened(FIRST)
        for active, *earlier in ((SECOND, FIRST), (THIRD, SECOND, FIRST)):
            turn(opened(active, *earlier), EnvKeys({"MEMGRAPH_KEY": " ".join((active, *earlier))}))
        journal = opened(THIRD, SECOND, FIRST)
        for has_checkpoint in (True, False):
            with pytest.raises(KeyMissingError, match="keys import") as refused:
                opened(THIRD)
            wanted = [use.key_id for use in journal.used.uses[:-1]]
            assert refused.value.key_ids == wanted
            assert all(key_id in str(refused.value) for key_id in wanted)
            if has_checkpoint:
                (journal.folder / "verified.json").unlink()
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
        reseal(journal, keys_home=tmp_path / "keys", now=lambda: LATER, resealed_by="tests")
        assert open_one(now="2027-01-01T00:00:00.000Z").verify() == 5


class TestReseal:
    @pytest.fixture
    def resealed(self, rotated: Journal, tmp_path: Path) -> list[dict[str, Any]]:
        """Return the lines before it."""
        before = lines_of(rotated)
        reseal(rotated, keys_home=tmp_path / "keys", now=lambda: NOW, resealed_by="tests")
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

    def test_the_former_journal_is_refused(self, rotated: Journal, open_one: Any, segment: Any, tmp_path: Path) -> None:
        before = segment(rotated).read_bytes()
        reseal(rotated, keys_home=tmp_path / "keys", now=lambda: NOW, resealed_by="tests")
        segment(rotated).write_bytes(before)
        with pytest.raises(JournalError):
            open_one()

    def test_seals_change(self, journal: Journal, turn: Any, open_one: Any, tmp_path: Path) -> None:
        turn(journal)
        before = journal.seal("graph").sealed("the state at an event that is signed anew")
        reseal(journal, keys_home=tmp_path / "keys", now=lambda: NOW, resealed_by="tests")
        with pytest.raises(ReplacedKeyError):
            open_one().seal("graph").unsealed(before)

    def test_who_has_the_journal_open_is_told(
        self, rotated: Journal, open_one: Any, tmp_path: Path, write: Any, added: Any
    ) -> None:
        other = open_one()
        reseal(rotated, keys_home=tmp_path / "keys", now=lambda: NOW, resealed_by="tests")
        for use in (other.refresh, lambda: write(other, added(7)), lambda: write(rotated, added(7))):
            with pytest.raises(JournalError, match="open the store again"):
                use()
        other.checkpoint()  # as at its end
        again = open_one()
        assert again.notices == []
        assert again.verify() == 5

    def test_several_segments_stay_several(
        self, open_one: Any, turn: Any, write: Any, added: Any, tmp_path: Path
    ) -> None:
        from memgraph.journal.segments import JournalLimits

        journal = open_one(limits=JournalLimits(2_000, 3))
        for number in range(6):
            write(journal, added(number))
        turn(journal)
        names = sorted(path.name for path in journal.folder.glob("*.jsonl"))
        assert len(names) > 2
        reseal(journal, keys_home=tmp_path / "keys", now=lambda: NOW, resealed_by="tests")
        assert sorted(path.name for path in journal.folder.glob("*.jsonl")) == names
        again = open_one(limits=JournalLimits(2_000, 3))
        assert again.verify() == 9
        write(again, added(9))
        assert open_one(limits=JournalLimits(2_000, 3)).tail == again.tail

    def test_a_rotation_after_it_works(
        self, rotated: Journal, resealed: Any, open_one: Any, turn: Any, tmp_path: Path, write: Any, added: Any
    ) -> None:
        journal = open_one()
        turn(journal)
        write(journal, added(5))
        assert open_one().verify() == 7
        reseal(journal, keys_home=tmp_path / "keys", now=lambda: NOW, resealed_by="tests")
        assert open_one().verify() == 8

    def test_with_one_key_there_is_nothing_to_do(self, journal: Journal, tmp_path: Path) -> None:
        with pytest.raises(JournalError, match="nothing to reseal"):
            reseal(journal, keys_home=tmp_path / "keys", now=lambda: NOW, resealed_by="tests")

    def test_a_damaged_journal_is_not_laundered(
        self, rotated: Journal, open_one: Any, segment: Any, tmp_path: Path
    ) -> None:
        path = segment(rotated)
        path.write_bytes(path.read_bytes().replace(b'"Memory 1"', b'"Memory 7"'))
        before = path.read_bytes()
        with pytest.raises(DamagedJournalError):
            reseal(rotated, keys_home=tmp_path / "keys", now=lambda: NOW, resealed_by="tests")
        assert path.read_bytes() == before

    @pytest.mark.parametrize("flipped", ["plan.json", "000000000001.jsonl", "segments.json"])
    def test_flipped_bits_in_what_was_prepared_are_refused(
        self, rotated: Journal, open_one: Any, tmp_path: Path, flipped: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from memgraph.journal import swap

        monkeypatch.setattr(swap, "complete", lambda *_, **__: None)  # it dies before
        reseal(rotated, keys_home=tmp_path / "keys", now=lambda: NOW, resealed_by="tests")
        monkeypatch.undo()
        place = rotated.folder / "replacement" / flipped
        before = sorted((path.name, path.read_bytes()) for path in rotated.folder.glob("*.json*"))
        data = place.read_bytes()
        for at in range(0, len(data), max(1, len(data) // 40)):
            flip = bytearray(data)
            flip[at] ^= 1
            place.write_bytes(flip)
            with pytest.raises(JournalError):
                open_one()
            assert sorted((path.name, path.read_bytes()) for path in rotated.folder.glob("*.json*")) == before
        place.write_bytes(data)
        assert open_one().verify() == 5
        assert not (rotated.folder / "replacement").exists()


class TestReplacement:
    def test_its_folder_is_durable_before_it_is_final(
        self, rotated: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        synced: list[tuple[Path, bool]] = []
        sync_folder = swap.sync_folder

        def noted(path: Path) -> None:
            synced.append((path, swap.is_planned(rotated.folder)))
            sync_folder(path)

        monkeypatch.setattr(swap, "sync_folder", noted)
        reseal(rotated, keys_home=tmp_path / "keys", now=lambda: NOW, resealed_by="tests")
        assert (rotated.folder, False) in synced

    def test_a_leftover_does_not_close_a_read_only_store(
        self, rotated: Journal, open_one: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        left = swap.staging(rotated.folder) / "000000000001.jsonl"
        left.write_bytes(b"")

        def refuse(lock: ProcessLock, timeout_s: float) -> None:
            raise StorageError("cannot be locked: Read-only file system", path=rotated.folder / "lock")

        with monkeypatch.context() as patched:
            patched.setattr(ProcessLock, "acquire", refuse)
            assert open_one().tail == rotated.tail
        assert left.exists()
        open_one()
        assert not left.exists()


class TestResealingThatWasCutOff:
    """It died when the replacement was final and no segment was in place yet."""

    @pytest.fixture
    def cut_off(self, rotated: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
        from memgraph.journal import swap

        with monkeypatch.context() as patched:
            patched.setattr(swap, "complete", lambda *_, **__: None)
            reseal(rotated, keys_home=tmp_path / "keys", now=lambda: NOW, resealed_by="tests")
        assert swap.is_planned(rotated.folder)
        return rotated

    def test_who_has_the_journal_open_appends_nothing_that_would_be_replaced(
        self, rotated: Journal, request: pytest.FixtureRequest, open_one: Any, write: Any, added: Any
    ) -> None:
        other = open_one()
        request.getfixturevalue("cut_off")
        with pytest.raises(JournalError, match="was replaced"):
            write(other, added(7))
        again = open_one()
        assert again.verify() == 5
        write(again, added(7))
        assert open_one().verify() == 6

    def test_whoever_identifies_the_store_completes_it(
        self, cut_off: Journal, keys: FileKeys, tmp_path: Path, caplog: Any
    ) -> None:
        from memgraph.journal.opening import identify

        identify(tmp_path / "store", keys, keys_home=tmp_path / "keys")
        assert "completed a resealing that was cut off" in caplog.text
        assert not (cut_off.folder / "replacement").exists()
        assert len(lines_of(cut_off)) == 5

    def test_without_its_key_it_is_refused_and_can_be_completed_later(
        self, cut_off: Journal, keys: FileKeys, open_one: Any
    ) -> None:
        path = keys.path(cut_off.store_id)
        stored = path.read_bytes()
        document = json.loads(stored)
        path.write_text(json.dumps({**document["earlier"][0], "store_id": cut_off.store_id}))
        with pytest.raises(KeyMissingError, match="keys import") as refused:
            open_one()
        assert refused.value.key_ids == [document["key_id"]]
        path.write_bytes(stored)
        assert open_one().verify() == 5


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
    assert replaced_in(journal.lines()) == {odd[0]}
    assert {key_id_in(line.data) for line in journal.lines()} == set(odd)
    assert key_id_in(b'{"head":{"key_id":"\\x"}}') is None
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
        self, rotated: Journal, open_one: Any, segment: Any, write: Any, added: Any
    ) -> None:
        path = segment(rotated)
        lines = path.read_bytes().splitlines(keepends=True)
        envelope = json.loads(lines[-1])
        good = envelope["signature"].encode()
        path.write_bytes(b"".join(lines[:-1]) + lines[-1].replace(good, b"0" * 64))
        (rotated.folder / "verified.json").unlink()
        head = json.dumps({"seq": 3, "signature": json.loads(lines[2])["signature"]})
        (rotated.folder.parents[1] / "keys" / "heads" / rotated.store_id).write_text(head)
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
        self, rotated: Journal, keys: FileKeys, open_one: Any, segment: Any, change: dict[str, Any]
    ) -> None:
        import hmac

        from memgraph.journal.envelope import canonical

        key = rotated.signing_key
        path = segment(rotated)
        *lines, last = path.read_bytes().splitlines(keepends=True)
        envelope = json.loads(last)
        envelope["head"] |= change
        envelope["signature"] = hmac.digest(key.secret, canonical(envelope["head"]), "sha256").hex()
        path.write_bytes(b"".join(lines) + canonical(envelope) + b"\n")
        (rotated.folder / "verified.json").unlink()
        (rotated.folder.parents[1] / "keys" / "heads" / rotated.store_id).unlink()
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
