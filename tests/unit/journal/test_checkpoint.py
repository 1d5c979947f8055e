"""Opening with a checkpoint takes only the time of hashing and is equally safe."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from memgraph.journal.closed.digest import JournalDigest
from memgraph.journal.segments import JournalLimits

from memgraph.errors import DamagedJournalError, JournalError, TruncatedJournalError
from memgraph.journal import replay
from memgraph.journal.envelope import canonical
from memgraph.journal.journal import Journal
from memgraph.journal.keys.providers import EnvKeys
from memgraph.model.events.memories import MemoryAdded

Open = Callable[..., Journal]
Paths = Callable[[Journal], Path]
Added = Callable[..., MemoryAdded]


@pytest.fixture
def checked(journal: Journal, write: Callable[..., Any], added: Added) -> Journal:
    """Five events, a checkpoint after the fourth."""
    for number in range(1, 4):
        write(journal, added(number))
    journal.checkpoint()
    write(journal, added(4))
    return journal


@pytest.fixture
def unsealed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the events that are verified individually from now on."""
    seen: list[int] = []
    real = replay.unseal

    def counting(line: bytes, chain: Any, key: Any) -> Any:
        seen.append(chain.seq + 1)
        return real(line, chain, key)

    monkeypatch.setattr(replay, "unseal", counting)
    return seen


def test_opening_verifies_only_later_events(checked: Journal, open_one: Open, unsealed: list[int]) -> None:
    again = open_one()
    assert again.tail == checked.tail
    assert unsealed == [5]


def test_without_one_everything_is_verified(checked: Journal, open_one: Open, unsealed: list[int]) -> None:
    (checked.folder / "verified.json").unlink()
    assert open_one().tail == checked.tail
    assert unsealed == [1, 2, 3, 4, 5]


def test_it_can_be_renewed_after_an_opening_that_used_it(checked: Journal, open_one: Open, unsealed: list[int]) -> None:
    open_one().checkpoint()
    unsealed.clear()
    assert open_one().tail == checked.tail
    assert unsealed == []


def test_it_covers_several_segments(open_one: Open, write: Any, added: Added, unsealed: list[int]) -> None:
    journal = open_one(limits=JournalLimits(segment_bytes=2_500))
    for number in range(1, 10):
        write(journal, added(number))
    journal.checkpoint()
    write(journal, added(10))
    unsealed.clear()
    assert open_one().tail == journal.tail
    assert unsealed == [11]
    first = min(journal.folder.glob("*.jsonl"))
    first.write_bytes(first.read_bytes().replace(b"Memory 1", b"Memory X"))
    with pytest.raises(DamagedJournalError):
        open_one()


@pytest.mark.parametrize("content", [b"Memory 1", b"Memory 3", b"Memory 4"])
def test_tampering_before_and_after_it_is_detected(
    checked: Journal, open_one: Open, segment: Paths, content: bytes
) -> None:
    path = segment(checked)
    path.write_bytes(path.read_bytes().replace(content, b"Memory X"))
    with pytest.raises(DamagedJournalError):
        open_one()


@pytest.mark.parametrize(
    "tamper",
    [
        lambda stored: b"",
        lambda stored: b"{}",
        lambda stored: b"[]",
        lambda stored: b"null",
        lambda stored: b"\xff\xff",
        lambda stored: json.dumps({**stored, "hmac": "0" * 64}).encode(),
        lambda stored: json.dumps({**stored, "hmac": 7}).encode(),
        lambda stored: json.dumps({**stored, "hmac": "\u00e9"}).encode(),
        lambda stored: json.dumps({**stored, "body": 7}).encode(),
        lambda stored: json.dumps({**stored, "body": {**stored["body"], "digest": "0" * 64}}).encode(),
        lambda stored: json.dumps({**stored, "body": {**stored["body"], "extra": 1}}).encode(),
    ],
)
def test_a_tampered_checkpoint_is_ignored(
    checked: Journal, open_one: Open, unsealed: list[int], tamper: Callable[[Any], bytes]
) -> None:
    path = checked.folder / "verified.json"
    path.write_bytes(tamper(json.loads(path.read_bytes())))
    assert open_one().tail == checked.tail
    assert unsealed == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("same_key", [False, True])
def test_a_checkpoint_of_another_store_is_ignored(
    open_one: Open, unsealed: list[int], write: Any, added: Added, same_key: bool
) -> None:
    keys = {"keys": EnvKeys({"MEMGRAPH_KEY": "0f" * 32})} if same_key else {}
    journal, other = open_one(**keys), open_one("other", **keys)
    for one, numbers in (
        (journal, [1]),
        (other, [1, 2, 3]),
    ):  # a longer one would also say that this journal was truncated
        for number in numbers:
            write(one, added(number))
        one.checkpoint()
    (journal.folder / "verified.json").write_bytes((other.folder / "verified.json").read_bytes())
    unsealed.clear()
    assert open_one(**keys).tail == journal.tail
    assert unsealed == [1, 2]


def test_a_signature_of_something_else_makes_no_checkpoint(
    open_one: Open, unsealed: list[int], write: Any, added: Added
) -> None:
    """The key signs events, too: what it signed under another label proves nothing."""
    key = "0f" * 32
    keys = {"keys": EnvKeys({"MEMGRAPH_KEY": key})}
    journal = open_one(**keys)
    write(journal, added(1))
    journal.checkpoint()
    path = journal.folder / "verified.json"
    body = json.loads(path.read_bytes())["body"]
    signed = hmac.digest(bytes.fromhex(key), canonical(body), "sha256").hex()
    path.write_text(json.dumps({"body": body, "hmac": signed}))
    unsealed.clear()
    assert open_one(**keys).tail == journal.tail
    assert unsealed == [1, 2]


def test_a_checkpoint_that_is_nested_too_deeply_is_ignored(
    checked: Journal, open_one: Open, unsealed: list[int]
) -> None:
    (checked.folder / "verified.json").write_text("[" * 200_000)
    assert open_one().tail == checked.tail
    assert unsealed == [1, 2, 3, 4, 5]


def test_forging_both_journal_and_checkpoint_is_detected(checked: Journal, open_one: Open, segment: Paths) -> None:
    """A forger who changes bytes and computes the digest anew lacks the key."""
    path = segment(checked)
    data = path.read_bytes().replace(b"Memory 1", b"Memory X")
    path.write_bytes(data)
    stored = json.loads((checked.folder / "verified.json").read_bytes())
    position, before, digest = stored["body"]["position"], stored["body"]["digest"], JournalDigest()
    digest.add(path.name, data[: position["offset"]].replace(b"Memory X", b"Memory 1"))
    assert digest.hexdigest() == before
    digest = JournalDigest()
    digest.add(path.name, data[: position["offset"]])
    stored["body"]["digest"] = digest.hexdigest()
    (checked.folder / "verified.json").write_text(json.dumps(stored))
    with pytest.raises(DamagedJournalError):
        open_one()


def test_a_journal_shorter_than_its_checkpoint_was_truncated(
    checked: Journal, open_one: Open, segment: Paths, head_path: Paths
) -> None:
    lines = segment(checked).read_bytes().splitlines(keepends=True)
    segment(checked).write_bytes(b"".join(lines[:2]))
    head_path(checked).unlink()  # even without the head file
    with pytest.raises(TruncatedJournalError) as refused:
        open_one()
    assert (refused.value.seq, refused.value.head_seq) == (2, 4)


def test_checkpoints_are_written_at_intervals(open_one: Open, write: Any, added: Added, unsealed: list[int]) -> None:
    journal = open_one(limits=JournalLimits(checkpoint_events=4))
    for number in range(1, 7):
        write(journal, added(number))
    unsealed.clear()
    assert open_one().tail == journal.tail
    assert len(unsealed) < 4


def test_a_store_writes_a_checkpoint_when_it_closes(
    open_store: Callable[..., Any], tmp_path: Path, unsealed: list[int]
) -> None:
    store = open_store()
    store.insert_memories([{"type": "episodic", "content": f"memory {n}"} for n in range(20)])
    store.digest()
    store.close()
    unsealed.clear()
    assert open_store().get_stats().total == 20
    assert unsealed == []


def test_a_foreign_head_before_it_is_refused_too(checked: Journal, open_one: Open, head_path: Paths) -> None:
    head_path(checked).write_text(json.dumps({"seq": 2, "signature": "f" * 64}))
    with pytest.raises(JournalError, match="a different event"):
        open_one()


def test_an_old_checkpoint_still_proves_truncation_of_a_long_journal(
    checked: Journal,
    open_one: Open,
    head_path: Paths,
    write: Any,
    added: Callable[[int], MemoryAdded],
) -> None:
    for number in range(20, 26):
        write(checked, added(number))
    checked.verify()
    cut = checked.folder / "000000000001.jsonl"
    cut.write_bytes(b"".join(cut.read_bytes().splitlines(keepends=True)[:-2]))
    head_path(checked).unlink()
    for _ in range(2):
        with pytest.raises(TruncatedJournalError, match="checkpoint"):
            open_one(limits=JournalLimits(checkpoint_events=2))
