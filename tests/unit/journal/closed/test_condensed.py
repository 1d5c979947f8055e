"""The document that proves condensed segments, and reading them while they are replaced."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from memgraph.journal.closed.condensed import CondensedSegments
from memgraph.journal.closed.digest import Extent
from memgraph.journal.segments import Position, Segments

from memgraph.errors import DamagedJournalError
from memgraph.journal.keys.providers import document_of
from memgraph.lifecycle.run.runner import Done
from memgraph.ports import SigningKey

NAME, STORE = "000000000001.jsonl", "11111111-1111-4111-8111-111111111111"
KEY, OTHER = SigningKey("file:store:1", b"k" * 32), SigningKey("file:store:2", b"o" * 32)
KEYS = {key.key_id: key for key in (KEY, OTHER)}


def unsigned(word: str) -> bytes:
    head = b'{"head":{"actor":"agent","commit_id":"c","envelope_version":1,"event_id":"","word":"%b"}}\n'
    return b"".join(head % word.encode() for _ in range(3))


def extent(data: bytes) -> Extent:
    return Extent(len(data), hashlib.sha256(data).hexdigest())


@pytest.fixture
def condensed(tmp_path: Path) -> CondensedSegments:
    (tmp_path / NAME).write_bytes(b"signed\n")
    return CondensedSegments(tmp_path, STORE, KEYS.get)


def put(condensed: CondensedSegments, word: str, key: SigningKey = KEY) -> None:
    """Replace the content of the segment."""
    condensed.replace(NAME, (condensed.path.parent / NAME).read_bytes(), unsigned(word), [key])


def read(condensed: CondensedSegments) -> list[tuple[bytes, bool]]:
    segments = Segments(condensed.path.parent, 0, condensed)
    return [(line.data, line.is_proven) for line in segments.lines(Position(NAME, 0))]


def test_only_the_named_content_is_proven(condensed: CondensedSegments, tmp_path: Path) -> None:
    assert not condensed.names(NAME)
    assert read(condensed) == [(b"signed", False)]
    put(condensed, "one")
    assert {proven for _, proven in read(condensed)} == {True}
    put(condensed, "two")
    assert condensed.contents()[NAME] == (extent(unsigned("two")),)
    (tmp_path / NAME).write_bytes(unsigned("one"))
    assert {proven for _, proven in read(condensed)} == {False}


def test_both_contents_are_proven_while_one_replaces_the_other(condensed: CondensedSegments, tmp_path: Path) -> None:
    """What a kill between the steps of a replacement leaves."""
    put(condensed, "one")

    class Killed(CondensedSegments):
        """Is killed after its document names both."""

        def _write(self, *given: Any) -> None:
            super()._write(*given)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        put(Killed(tmp_path, STORE, KEYS.get), "two")
    assert condensed.contents() == {NAME: (extent(unsigned("one")), extent(unsigned("two")))}
    for word in ("one", "two"):
        (tmp_path / NAME).write_bytes(unsigned(word))
        assert {proven for _, proven in read(condensed)} == {True}
    put(condensed, "three")
    assert condensed.contents()[NAME] == (extent(unsigned("three")),)


def test_a_reader_looks_again_if_the_content_was_replaced_meanwhile(tmp_path: Path) -> None:
    """It has read the former content when the document names only the new one."""

    class Late(CondensedSegments):
        meanwhile: Callable[[], None] | None = None

        def proves(self, name: str, content: bytes) -> bool:
            do, self.meanwhile = self.meanwhile, None
            if do is not None:
                do()
            return super().proves(name, content)

    late, writer = Late(tmp_path, STORE, KEYS.get), CondensedSegments(tmp_path, STORE, KEYS.get)
    (tmp_path / NAME).write_bytes(b"signed\n")
    put(writer, "one")
    late.meanwhile = lambda: put(writer, "two")
    assert {(b"two" in data, proven) for data, proven in read(late)} == {(True, True)}


def test_what_is_not_proven_is_not_replaced(condensed: CondensedSegments, tmp_path: Path) -> None:
    """Otherwise whoever can write the file, without a key, would have it proven by the next purge."""
    put(condensed, "one")
    (tmp_path / NAME).write_bytes(unsigned("forged"))
    before = condensed.path.read_bytes()
    with pytest.raises(DamagedJournalError, match="does not prove the content"):
        put(condensed, "two")
    assert (condensed.path.read_bytes(), (tmp_path / NAME).read_bytes()) == (before, unsigned("forged"))


def test_every_key_that_signed_it_must_fit(condensed: CondensedSegments) -> None:
    put(condensed, "one")
    condensed.sign_again([KEY, OTHER])
    assert condensed.names(NAME)
    stored = json.loads(condensed.path.read_bytes())
    stored["codes"] = [stored["codes"][0], "0" * 64]
    condensed.path.write_bytes(json.dumps(stored).encode())
    with pytest.raises(DamagedJournalError, match="is not what this store's key signed"):
        condensed.contents()


def test_only_the_key_in_use_proves_anything(condensed: CondensedSegments, tmp_path: Path) -> None:
    put(condensed, "one")
    strict = CondensedSegments(tmp_path, STORE, KEYS.get, OTHER.__eq__)
    with pytest.raises(DamagedJournalError, match="is not signed with the key that signs the journal"):
        strict.contents()
    condensed.sign_again([KEY, OTHER])
    assert strict.names(NAME)


def test_what_was_carried_out_is_noted_until_something_is_replaced(condensed: CondensedSegments) -> None:
    put(condensed, "one")
    done = Done(7, "a" * 64)
    assert not condensed.is_done(done)
    condensed.finish(done, [KEY])
    condensed.sign_again([KEY, OTHER])
    assert condensed.is_done(done)
    assert not condensed.is_done(Done(8, "a" * 64))
    put(condensed, "two")
    assert not condensed.is_done(done)


@pytest.mark.parametrize(
    "harm",
    [
        lambda _: b"",
        lambda _: b"[" * 100_000,
        lambda _: b"null",
        lambda data: data.replace(STORE.encode(), STORE.replace("1", "2").encode()),
        lambda data: data.replace(b'"format": 1', b'"format": 1.0'),
        lambda data: data + b" ",
        lambda data: data.replace(b'"signers": ["file:store:1"]', b'"signers": []'),
    ],
    ids=["empty", "nested", "null", "another store", "another number", "a space", "no signer"],
)
def test_what_is_no_proof_is_refused(condensed: CondensedSegments, harm: Callable[[bytes], bytes]) -> None:
    put(condensed, "one")
    data = condensed.path.read_bytes()
    condensed.path.write_bytes(harm(data))
    assert condensed.path.read_bytes() != data
    with pytest.raises(DamagedJournalError, match=r"condensed\.json.*put this file and the archived segments"):
        condensed.contents()


def test_a_later_format_is_no_damage(condensed: CondensedSegments) -> None:
    body = {"format": 2, "store_id": STORE, "segments": {}, "done": None}
    condensed.path.write_bytes(document_of(body, [KEY], "condensed"))
    with pytest.raises(DamagedJournalError, match="unknown to this release; install a newer memgraph"):
        condensed.contents()
