"""Damage to the journal, its witnesses, its key and its vectors: every row of the table, with every cause of it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import zstandard

import memgraph
from memgraph.errors import DamagedJournalError, KeyMissingError, VectorDamageError
from memgraph.store import repair_store
from memgraph.testing import FakeClock
from tests.projections import lose

Harm = Callable[[Any, Any], None]


@dataclass
class Case:
    """Causes of one row of the table.

    Attributes
    ----------
    outcome : str
        "refused": nothing is served or changed. "repaired": the store works and reports it; verifying refuses until it is
        repaired. "verify": only verifying refuses until it is repaired. "reported": the store works and reports it. "silent":
        the store works, and nothing needs to be reported.
    error : type
        The error raised if refused.
    """

    what: str
    outcome: str
    error: type[Exception] = memgraph.JournalError
    ways: dict[str, Harm] = field(default_factory=dict)


CASES: list[Case] = []


def way(what: str, outcome: str, error: type[Exception] = memgraph.JournalError) -> Callable[[Harm], Harm]:
    """Add a cause of a row of the table."""

    def add(harm: Harm) -> Harm:
        found = next((case for case in CASES if case.what == what), None)
        if found is None:
            CASES.append(found := Case(what, outcome, error))
        assert (found.outcome, found.error) == (outcome, error)
        found.ways[harm.__name__] = harm
        return harm

    return add


def head_at(scene: Any, seq: int) -> str:
    return json.dumps({"seq": seq, "signature": json.loads(scene.lines[seq - 1])["signature"]})


def without_checkpoint(harm: Harm) -> Harm:
    def both(scene: Any, stranger: Any) -> None:
        scene.checkpoint.unlink()
        harm(scene, stranger)

    both.__name__ = harm.__name__
    return both


def split(scene: Any) -> list[Path]:
    """Divide the journal into three segments, as a store with a small limit would."""
    lines = scene.lines
    paths = []
    for first, end in ((0, 5), (5, 11), (11, len(lines))):
        paths.append(scene.segment.with_name(f"{first + 1:012d}.jsonl"))
        paths[-1].write_bytes(b"".join(lines[first:end]))
    return paths


# -- the end of the journal --------------------------------------------------------------------------------------------

TORN = "the last commit is incomplete and was not acknowledged"


def cut_short(scene: Any, removed: int) -> None:
    """Make the last commit an unacknowledged one, and truncate it."""
    with scene.open() as store:
        store.insert_memories([{"type": "episodic", "content": f"never acknowledged {n}"} for n in range(2)])
    events = [json.loads(line) for line in scene.lines]
    seq = events[-2]["head"]["seq"] - 1
    scene.checkpoint.unlink()
    scene.head.write_text(head_at(scene, seq))
    scene.segment.write_bytes(scene.segment.read_bytes()[:-removed])


@way(TORN, "reported")
def within_its_last_line(scene: Any, stranger: Any) -> None:
    cut_short(scene, 100)


@way(TORN, "reported")
def before_its_last_line(scene: Any, stranger: Any) -> None:
    cut_short(scene, len(scene.lines[-1]) + 20)


@way(TORN, "reported")
def before_its_last_end_of_line(scene: Any, stranger: Any) -> None:
    cut_short(scene, 1)


@way(TORN, "reported")
def something_else_without_an_end_of_line(scene: Any, stranger: Any) -> None:
    with scene.segment.open("ab") as file:
        file.write(b"garbage")


SHORT = "the journal ends before its head file says"


@way(SHORT, "refused")
@without_checkpoint
def cut_by_a_commit(scene: Any, stranger: Any) -> None:
    scene.lines = scene.lines[:-1]


@way(SHORT, "refused")
def cut_by_a_commit_before_the_checkpoint(scene: Any, stranger: Any) -> None:
    scene.lines = scene.lines[:-1]


@way(SHORT, "refused")
def cut_within_a_line(scene: Any, stranger: Any) -> None:
    scene.segment.write_bytes(scene.segment.read_bytes()[:-10])


@way(SHORT, "refused")
def emptied(scene: Any, stranger: Any) -> None:
    scene.segment.write_bytes(b"")


@way(SHORT, "refused")
def its_file_is_gone(scene: Any, stranger: Any) -> None:
    scene.segment.unlink()


@way(SHORT, "refused")
def a_head_file_that_is_ahead(scene: Any, stranger: Any) -> None:
    scene.head.write_text(json.dumps({"seq": 99, "signature": "f" * 64}))


@way(SHORT, "refused")
@without_checkpoint
def the_last_of_three_segments_is_gone(scene: Any, stranger: Any) -> None:
    split(scene)[2].unlink()


SHORT_BY_CHECKPOINT = "the journal ends before its checkpoint says, and there is no head file"


@way(SHORT_BY_CHECKPOINT, "refused")
def cut_by_three_lines(scene: Any, stranger: Any) -> None:
    scene.head.unlink()
    scene.lines = scene.lines[:-3]


@way(SHORT_BY_CHECKPOINT, "refused")
def nothing_is_left(scene: Any, stranger: Any) -> None:
    scene.head.unlink()
    scene.segment.unlink()


# -- what the lines say ------------------------------------------------------------------------------------------------

CHANGED = "a byte of the journal is changed"


@way(CHANGED, "refused")
def in_a_payload(scene: Any, stranger: Any) -> None:
    scene.segment.write_bytes(scene.segment.read_bytes().replace(b"Try 3", b"Try 4"))


@way(CHANGED, "refused")
def in_a_head(scene: Any, stranger: Any) -> None:
    scene.segment.write_bytes(scene.segment.read_bytes().replace(b'"actor":"agent"', b'"actor":"user"', 1))


@way(CHANGED, "refused")
def crlf(scene: Any, stranger: Any) -> None:
    scene.segment.write_bytes(scene.segment.read_bytes().replace(b"\n", b"\r\n"))


@way(CHANGED, "refused")
def a_byte_order_mark(scene: Any, stranger: Any) -> None:
    scene.segment.write_bytes(b"\xef\xbb\xbf" + scene.segment.read_bytes())


@way(CHANGED, "refused")
def a_blank_line(scene: Any, stranger: Any) -> None:
    scene.lines = [*scene.lines[:3], b"\n", *scene.lines[3:]]


@way(CHANGED, "refused")
def a_line_of_garbage_at_the_end(scene: Any, stranger: Any) -> None:
    scene.lines = [*scene.lines, b"garbage\n"]


MOVED = "events are swapped, dropped, repeated, or come from an older copy"


@way(MOVED, "refused")
def swapped(scene: Any, stranger: Any) -> None:
    lines = scene.lines
    scene.lines = [*lines[:4], lines[5], lines[4], *lines[6:]]


@way(MOVED, "refused")
def dropped(scene: Any, stranger: Any) -> None:
    scene.lines = scene.lines[:4] + scene.lines[5:]


@way(MOVED, "refused")
def repeated(scene: Any, stranger: Any) -> None:
    scene.lines = [*scene.lines, scene.lines[-1]]


@way(MOVED, "refused")
def of_an_older_copy(scene: Any, stranger: Any) -> None:
    older = scene.copy(scene.folder.with_name("older"))
    for place in (older, scene):
        with place.open() as store:
            store.insert_memory({"type": "episodic", "content": str(place.folder)})
    scene.lines = [*scene.lines, older.lines[-1]]


@way(MOVED, "refused")
@without_checkpoint
def the_first_of_three_segments_is_gone(scene: Any, stranger: Any) -> None:
    split(scene)[0].unlink()


@way(MOVED, "refused")
@without_checkpoint
def the_second_of_three_segments_is_gone(scene: Any, stranger: Any) -> None:
    split(scene)[1].unlink()


@way(MOVED, "refused")
@without_checkpoint
def two_segments_have_changed_names(scene: Any, stranger: Any) -> None:
    paths = split(scene)
    other = paths[0].with_suffix(".other")
    paths[1].rename(other)
    paths[2].rename(paths[1])
    other.rename(paths[2])


@way(MOVED, "refused")
@without_checkpoint
def a_segment_is_there_twice(scene: Any, stranger: Any) -> None:
    paths = split(scene)
    shutil.copy(paths[1], paths[2].with_name("000000000099.jsonl"))


FOREIGN = "the journal contains events of another store"


@way(FOREIGN, "refused")
def with_another_key(scene: Any, stranger: Any) -> None:
    scene.lines = [*scene.lines[:5], stranger.lines[5], *scene.lines[6:]]


ALL_FOREIGN = "the journal is another store's"


@way(ALL_FOREIGN, "refused", KeyMissingError)
def a_journal_of_another_store(scene: Any, stranger: Any) -> None:
    shutil.copy(stranger.segment, scene.segment)


# -- manifest and key --------------------------------------------------------------------------------------------------

MANIFEST = "the manifest is damaged"


@way(MANIFEST, "refused")
def manifest_of_zeros(scene: Any, stranger: Any) -> None:
    scene.manifest.write_bytes(bytes(scene.manifest.stat().st_size))


@way(MANIFEST, "refused")
def manifest_emptied(scene: Any, stranger: Any) -> None:
    scene.manifest.write_bytes(b"")


@way(MANIFEST, "refused")
def manifest_cut(scene: Any, stranger: Any) -> None:
    scene.manifest.write_bytes(scene.manifest.read_bytes()[:-10])


NO_MANIFEST = "the manifest is missing"


@way(NO_MANIFEST, "refused")
def manifest_gone(scene: Any, stranger: Any) -> None:
    scene.manifest.unlink()


NO_EVENTS = "journal, head file and checkpoint are empty or missing, but rows or index exist"


def without_witnesses(harm: Harm) -> Harm:
    def all_three(scene: Any, stranger: Any) -> None:
        scene.head.unlink()
        scene.checkpoint.unlink()
        harm(scene, stranger)

    all_three.__name__ = harm.__name__
    return all_three


@way(NO_EVENTS, "refused")
@without_witnesses
def no_event_is_left(scene: Any, stranger: Any) -> None:
    scene.segment.write_bytes(b"")


@way(NO_EVENTS, "refused")
@without_witnesses
def half_of_the_first_event_is_left(scene: Any, stranger: Any) -> None:
    scene.segment.write_bytes(scene.lines[0][:100])


@way(NO_EVENTS, "refused")
@without_witnesses
def no_event_and_no_key_are_left(scene: Any, stranger: Any) -> None:
    scene.segment.unlink()
    scene.key.unlink()


@way(NO_EVENTS, "refused")
@without_witnesses
def only_vectors_are_left(scene: Any, stranger: Any) -> None:
    scene.segment.unlink()
    lose(scene.home)


@way(NO_EVENTS, "refused")
@without_witnesses
def manifest_and_events_are_gone(scene: Any, stranger: Any) -> None:
    scene.segment.unlink()
    scene.manifest.unlink()


@way(NO_EVENTS, "refused")
def the_whole_journal_is_gone(scene: Any, stranger: Any) -> None:
    shutil.rmtree(scene.home / "journal")


KEY_GONE = "the signing key is missing, or the manifest is another store's"


@way(KEY_GONE, "refused", KeyMissingError)
def key_gone(scene: Any, stranger: Any) -> None:
    scene.key.unlink()


@way(KEY_GONE, "refused", KeyMissingError)
def manifest_of_another_store(scene: Any, stranger: Any) -> None:
    shutil.copy(stranger.manifest, scene.manifest)


KEY = "the key file is damaged, or another store's"


@way(KEY, "refused", KeyMissingError)
def key_emptied(scene: Any, stranger: Any) -> None:
    scene.key.write_bytes(b"")


@way(KEY, "refused", KeyMissingError)
def key_flipped(scene: Any, stranger: Any) -> None:
    stored = json.loads(scene.key.read_bytes())
    digit = "1" if stored["secret"][0] == "0" else "0"
    scene.key.write_text(json.dumps({**stored, "secret": digit + stored["secret"][1:]}))


@way(KEY, "refused", KeyMissingError)
def a_key_of_another_store(scene: Any, stranger: Any) -> None:
    shutil.copy(stranger.key, scene.key)


# -- witnesses ---------------------------------------------------------------------------------------------------------

NO_HEAD = "the head file is missing"


@way(NO_HEAD, "reported")
def head_gone(scene: Any, stranger: Any) -> None:
    scene.head.unlink()


@way(NO_HEAD, "reported")
@without_checkpoint
def head_and_checkpoint_gone(scene: Any, stranger: Any) -> None:
    scene.head.unlink()


@way(NO_HEAD, "reported")
def all_heads_gone(scene: Any, stranger: Any) -> None:
    shutil.rmtree(scene.head.parent)


HEAD = "the head file is damaged"


@way(HEAD, "refused")
def head_emptied(scene: Any, stranger: Any) -> None:
    scene.head.write_bytes(b"")


@way(HEAD, "refused")
def head_of_zeros(scene: Any, stranger: Any) -> None:
    scene.head.write_bytes(bytes(128))


@way(HEAD, "refused")
def head_flipped(scene: Any, stranger: Any) -> None:
    scene.head.write_bytes(scene.head.read_bytes().replace(b'"seq"', b'"sep"'))


OTHER_HEAD = "the head file is another journal's"


@way(OTHER_HEAD, "refused", DamagedJournalError)
def head_of_another_store(scene: Any, stranger: Any) -> None:
    shutil.copy(stranger.head, scene.head)


@way(OTHER_HEAD, "refused", DamagedJournalError)
def head_with_another_signature(scene: Any, stranger: Any) -> None:
    scene.head.write_text(json.dumps({**json.loads(scene.head.read_bytes()), "signature": "f" * 64}))


@way(OTHER_HEAD, "refused", DamagedJournalError)
def head_of_an_earlier_event_with_another_signature(scene: Any, stranger: Any) -> None:
    scene.head.write_text(json.dumps({"seq": 5, "signature": "f" * 64}))


BEHIND = "the head file is behind, as after a power failure"


@way(BEHIND, "silent")
@without_checkpoint
def head_behind(scene: Any, stranger: Any) -> None:
    scene.head.write_text(head_at(scene, 7))


CHECKPOINT = "the checkpoint (`verified.json`) is missing, damaged, another store's, or old"


@way(CHECKPOINT, "silent")
@without_checkpoint
def checkpoint_gone(scene: Any, stranger: Any) -> None:
    pass


@way(CHECKPOINT, "silent")
def checkpoint_of_zeros(scene: Any, stranger: Any) -> None:
    scene.checkpoint.write_bytes(bytes(300))


@way(CHECKPOINT, "silent")
def checkpoint_flipped(scene: Any, stranger: Any) -> None:
    scene.checkpoint.write_bytes(scene.checkpoint.read_bytes().replace(b'"digest": "', b'"digest": "0'))


@way(CHECKPOINT, "silent")
def checkpoint_of_another_store(scene: Any, stranger: Any) -> None:
    shutil.copy(stranger.checkpoint, scene.checkpoint)


@way(CHECKPOINT, "silent")
def checkpoint_of_earlier(scene: Any, stranger: Any) -> None:
    old = scene.checkpoint.read_bytes()
    with scene.open() as store:
        store.insert_memory({"type": "episodic", "content": "later"})
        scene.digest = store.digest()
    assert scene.checkpoint.read_bytes() != old
    scene.checkpoint.write_bytes(old)


@way("the checkpoint cannot be written", "reported")
def a_directory_as_checkpoint(scene: Any, stranger: Any) -> None:
    scene.checkpoint.unlink()
    scene.checkpoint.mkdir()


LOCKS = "lock, pid and temporary files are left behind"


@way(LOCKS, "silent")
def locks_left_behind(scene: Any, stranger: Any) -> None:
    for name in ("journal/lock.pid",):
        (scene.home / name).write_text("1")
    for name in ("journal/lock",):
        (scene.home / name).touch()


@way(LOCKS, "silent")
def pids_that_are_no_numbers(scene: Any, stranger: Any) -> None:
    for name in ("journal/lock.pid",):
        (scene.home / name).write_bytes(b"\xff\xfe nobody")


@way(LOCKS, "silent")
def temporary_files_left_behind(scene: Any, stranger: Any) -> None:
    for name in ("journal/.verified.json.1.tmp", "journal/.manifest.json.1.tmp", "index/.index.npz.1.tmp"):
        (scene.home / name).write_bytes(b"half")
    (scene.home / "graph" / "write-x").mkdir(parents=True)
    (scene.home / "graph" / "write-x" / "Memory.json").write_bytes(b"half")


# -- vectors -----------------------------------------------------------------------------------------------------------

LONG_VECTORS = "the vector file is longer than the journal says"


@way(LONG_VECTORS, "silent")
def vectors_of_a_torn_commit(scene: Any, stranger: Any) -> None:
    with scene.vectors.open("ab") as file:
        file.write(os.urandom(1_000))


NO_VECTORS = "the vector file is missing or short, or holds zeros, NaN or infinity"


@way(NO_VECTORS, "repaired", VectorDamageError)
def vectors_cut(scene: Any, stranger: Any) -> None:
    scene.vectors.write_bytes(scene.vectors.read_bytes()[:-3])


@way(NO_VECTORS, "repaired", VectorDamageError)
def vectors_emptied(scene: Any, stranger: Any) -> None:
    scene.vectors.write_bytes(b"")


@way(NO_VECTORS, "repaired", VectorDamageError)
def vectors_gone(scene: Any, stranger: Any) -> None:
    scene.vectors.unlink()


@way(NO_VECTORS, "repaired", VectorDamageError)
def vectors_of_zeros(scene: Any, stranger: Any) -> None:
    scene.vectors.write_bytes(bytes(scene.vectors.stat().st_size))


@way(NO_VECTORS, "repaired", VectorDamageError)
def vectors_of_noise(scene: Any, stranger: Any) -> None:
    scene.vectors.write_bytes(b"\xff" * scene.vectors.stat().st_size)


WRITTEN_BEHIND = "vectors are appended to a vector file that is missing or short"


@way(WRITTEN_BEHIND, "repaired", VectorDamageError)
def a_write_behind_a_torn_row(scene: Any, stranger: Any) -> None:
    size = scene.vectors.stat().st_size
    os.truncate(scene.vectors, size - 100)
    write_behind(scene, size)


@way(WRITTEN_BEHIND, "repaired", VectorDamageError)
def a_write_behind_a_missing_file(scene: Any, stranger: Any) -> None:
    size = scene.vectors.stat().st_size
    scene.vectors.unlink()
    write_behind(scene, size)


def write_behind(scene: Any, size: int) -> None:
    with scene.open() as store:
        store.insert_memory({"type": "episodic", "content": "behind it"})
        scene.digest = store.digest()
    assert scene.vectors.stat().st_size > size


FLIPPED_VECTORS = "a vector is changed"


@way(FLIPPED_VECTORS, "verify", VectorDamageError)
def a_vector_is_flipped(scene: Any, stranger: Any) -> None:
    data = bytearray(scene.vectors.read_bytes())
    data[70] ^= 1
    scene.vectors.write_bytes(bytes(data))


@way(FLIPPED_VECTORS, "verify", VectorDamageError)
def vectors_are_swapped(scene: Any, stranger: Any) -> None:
    data = scene.vectors.read_bytes()
    scene.vectors.write_bytes(data[64:128] + data[:64] + data[128:])


# -- files -------------------------------------------------------------------------------------------------------------

DIRECTORY = "a directory is in place of a file, or a file cannot be read"


def directory_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "something").touch()


@way(DIRECTORY, "refused", memgraph.StorageError)
def a_directory_as_segment(scene: Any, stranger: Any) -> None:
    directory_instead(scene.segment)


@way(DIRECTORY, "refused", memgraph.StorageError)
def a_directory_as_manifest(scene: Any, stranger: Any) -> None:
    directory_instead(scene.manifest)


@way(DIRECTORY, "refused", memgraph.StorageError)
def a_directory_as_head(scene: Any, stranger: Any) -> None:
    directory_instead(scene.head)


@way(DIRECTORY, "refused", memgraph.StorageError)
def a_directory_as_key(scene: Any, stranger: Any) -> None:
    directory_instead(scene.key)


UNREADABLE_VECTORS = "the vector file cannot be read"

# -- closed segments ---------------------------------------------------------------------------------------------------

PACKED = "a compressed segment of the journal is damaged"
MANIFEST_OF_SEGMENTS = "the manifest of closed segments (`segments.json`) is damaged, or another store's"


def compressed(scene: Any) -> list[Path]:
    """Divide the journal into three segments, two of which are closed and compressed. Return the files of these."""
    split(scene)
    scene.checkpoint.unlink()
    with scene.open() as store:
        store.rebuild()  # the graph's place in the journal was one of the undivided file
        store.compact()
    found = sorted((scene.home / "journal").glob("*.jsonl.zst"))
    assert len(found) == 2
    return found


def segments_file(scene: Any) -> Path:
    path: Path = scene.home / "journal" / "segments.json"
    return path


@way(PACKED, "refused", DamagedJournalError)
def a_flipped_bit_in_it(scene: Any, stranger: Any) -> None:
    flip(compressed(scene)[1], 400)


@way(PACKED, "refused", DamagedJournalError)
def a_flipped_bit_in_its_header(scene: Any, stranger: Any) -> None:
    flip(compressed(scene)[0], 1)


@way(PACKED, "refused", DamagedJournalError)
def its_end_is_missing(scene: Any, stranger: Any) -> None:
    path = compressed(scene)[0]
    path.write_bytes(path.read_bytes()[:-100])


@way(PACKED, "refused", DamagedJournalError)
def it_is_empty(scene: Any, stranger: Any) -> None:
    compressed(scene)[1].write_bytes(b"")


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)


@way(MANIFEST_OF_SEGMENTS, "refused", DamagedJournalError)
def a_flipped_bit_in_the_manifest_of_segments(scene: Any, stranger: Any) -> None:
    compressed(scene)
    flip(segments_file(scene), 300)


@way(MANIFEST_OF_SEGMENTS, "refused", DamagedJournalError)
def an_empty_manifest_of_segments(scene: Any, stranger: Any) -> None:
    compressed(scene)
    segments_file(scene).write_bytes(b"")


@way(MANIFEST_OF_SEGMENTS, "refused", DamagedJournalError)
def the_manifest_of_segments_of_another_store(scene: Any, stranger: Any) -> None:
    compressed(scene)
    compressed(stranger)
    shutil.copy(segments_file(stranger), segments_file(scene))


@way("the manifest of closed segments names one that is not there", "refused", DamagedJournalError)
def two_segments_are_made_one(scene: Any, stranger: Any) -> None:
    first, second = compressed(scene)
    scene.checkpoint.unlink()
    content = b"".join(zstandard.ZstdDecompressor().decompress(path.read_bytes()) for path in (first, second))
    first.with_suffix("").write_bytes(content)
    first.unlink()
    second.unlink()


@way("the journal ends before the manifest of its closed segments says, and there is no head file", "refused")
def the_last_two_segments_are_gone(scene: Any, stranger: Any) -> None:
    _, second = compressed(scene)
    scene.checkpoint.unlink()
    scene.segment.unlink()
    second.unlink()
    scene.head.unlink()


BEHIND_SEGMENTS = "the manifest of closed segments is missing or behind; or a kill left a segment plain and compressed"


@way(BEHIND_SEGMENTS, "silent")
def the_manifest_of_segments_is_missing(scene: Any, stranger: Any) -> None:
    compressed(scene)
    segments_file(scene).unlink()


@way(BEHIND_SEGMENTS, "silent")
def a_segment_is_plain_and_compressed(scene: Any, stranger: Any) -> None:
    first, _ = compressed(scene)
    first.with_suffix("").write_bytes(zstandard.ZstdDecompressor().decompress(first.read_bytes()))


CLOCK = "the clock is set back"


@way(CLOCK, "silent")
def last_written_next_year(scene: Any, stranger: Any) -> None:
    with scene.open(clock=FakeClock("2027-01-01T00:00:00.000Z")) as store:
        store.insert_memory({"type": "episodic", "content": "next year"})
        scene.digest = store.digest()


OF_THE_DATABASE = {locks_left_behind, pids_that_are_no_numbers, temporary_files_left_behind}
ALL = [
    pytest.param(case, name, id=name, marks=[pytest.mark.embedded] if harm in OF_THE_DATABASE else [])
    for case in CASES
    for name, harm in case.ways.items()
]


@pytest.mark.parametrize(("case", "name"), ALL)
def test_each_case_of_damage(scene: Any, stranger: Any, rows: Any, case: Case, name: str) -> None:
    before = contents(scene)
    case.ways[name](scene, stranger)
    assert contents(scene) != before, "the harm harms"
    scene.heard.clear()
    row = rows[case.what]
    if case.outcome == "refused":
        refused(scene, case, row)
    elif case.outcome in ("repaired", "verify"):
        repaired(scene, case, row)
    else:
        goes_on(scene, with_rebuild=name == next(iter(case.ways)))
        said = [message for message in scene.heard if not message.startswith("rebuilding the rows")]
        assert {row.fits(message) for message in said} == ({True} if case.outcome == "reported" else set()), said


def contents(scene: Any) -> dict[Path, tuple[int, bytes | None]]:
    """Return the mode of each file and directory, and what files contain."""
    found = [path for path in scene.folder.rglob("*") if not path.is_socket()]
    return {path: (path.lstat().st_mode, path.read_bytes() if path.is_file() else None) for path in found}


def refused(scene: Any, case: Case, row: Any) -> None:
    before = scene.files()
    for _ in range(2):
        with pytest.raises(case.error) as error:
            scene.open()
        assert row.fits(str(error.value)), error.value
    assert scene.files() == before, "who refuses changes nothing"


def repaired(scene: Any, case: Case, row: Any) -> None:
    with scene.open() as store:
        assert store.digest() == scene.digest
        assert memgraph.MemoryRetrieval(store).search_memories("the build failed")
        with pytest.raises(case.error) as error:
            store.verify()
        said = scene.heard if case.outcome == "repaired" else [str(error.value)]
        assert [row.fits(message) for message in said] == [True], said
        store.repair_vectors()
        store.verify()
        assert store.digest() == scene.digest
    goes_on(scene, with_rebuild=False)
    assert len(scene.heard) == (1 if case.outcome == "repaired" else 0), scene.heard


def goes_on(scene: Any, *, with_rebuild: bool) -> None:
    with scene.open() as store:
        assert store.digest() == scene.digest
        new = store.insert_memory({"type": "episodic", "content": "life goes on"})
        assert new.created_at == max(memory.created_at for memory in store.every_memory())
        store.verify()
        if with_rebuild:
            digest = store.digest()
            store.rebuild()
            assert store.digest() == digest


@pytest.mark.embedded
def test_a_store_without_its_journal_is_reported_and_can_be_started_again(scene: Any) -> None:
    no_event_is_left(scene, scene)
    config = memgraph.AgentMemoryConfig(home=scene.home, keys_home=scene.keys_home)
    with pytest.raises(memgraph.JournalError) as error:
        scene.open()
    with pytest.raises(memgraph.JournalError) as same:
        repair_store(config)
    assert str(same.value) == str(error.value)
    named = [scene.home / name for name in ("memgraph.db", "index", "journal/vectors")]
    assert all(str(path) in str(error.value) for path in named)
    shutil.rmtree(scene.home / "journal")
    with pytest.raises(memgraph.JournalError, match="to start over"):
        scene.open()
    named[0].unlink()
    shutil.rmtree(named[1])
    with scene.open() as store:
        assert store.get_all_memories() == []
        store.insert_memory(episode := {"type": "episodic", "content": "life begins anew"})
        assert [memory.content for memory in store.get_all_memories()] == [episode["content"]]


def file_in_its_place(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.write_bytes(b"a file")


@pytest.mark.embedded
@pytest.mark.parametrize("name", ["graph", "journal"])
def test_a_file_in_place_of_a_directory(scene: Any, rows: Any, name: str) -> None:
    row = rows["a file is in place of a directory"]
    file_in_its_place(scene.home / name)
    with pytest.raises(memgraph.StorageError) as error, scene.open() as store:
        store.cypher("MATCH (m:Memory) RETURN m.id")
    assert row.fits(str(error.value)), error.value


class TestPermissions:
    """Run as a user bound by the files' modes; the administrator is not."""

    NOBODY = 65534

    @pytest.fixture
    def theirs(self, template: Any) -> Iterator[Any]:
        with TemporaryDirectory(prefix="memgraph-theirs-") as folder:
            Path(folder).chmod(0o755)
            scene = template.copy(Path(folder) / "scene")
            if os.geteuid() == 0:
                for path in (scene.folder, *scene.folder.rglob("*")):
                    os.chown(path, self.NOBODY, self.NOBODY)
            yield scene
            for path in (scene.folder, *scene.folder.rglob("*")):
                path.chmod(0o700)

    def said(self, scene: Any, nursery: Any, tmp_path: Path, template: Any) -> list[Any]:
        said = nursery.run("unprivileged", scene.folder, template.copy(tmp_path / "rehearsal").folder)
        return said[said.index("rehearsed") + 1 :]

    def test_full_permissions_work(self, theirs: Any, nursery: Any, tmp_path: Path, template: Any) -> None:
        assert self.said(theirs, nursery, tmp_path, template) == ["read", "written", "done"]

    @pytest.mark.parametrize(
        "name",
        ["segment", "vectors", *(pytest.param(name, marks=pytest.mark.long) for name in ("manifest", "key", "head"))],
    )
    def test_unreadable_files(
        self, theirs: Any, nursery: Any, rows: Any, tmp_path: Path, template: Any, name: str
    ) -> None:
        row = rows[UNREADABLE_VECTORS if name == "vectors" else DIRECTORY]
        getattr(theirs, name).chmod(0)
        (refusal,) = self.said(theirs, nursery, tmp_path, template)
        assert refusal["type"] == "StorageError", refusal
        assert row.fits(refusal["message"]), refusal

    def test_unwritable_files(self, theirs: Any, nursery: Any, rows: Any, tmp_path: Path, template: Any) -> None:
        row = rows["the store is not writable, or is on a read-only file system"]
        place = theirs.home / "journal"
        for path in (*place.rglob("*"), place):
            path.chmod(0o500 if path.is_dir() else 0o400)
        *read, refusal = self.said(theirs, nursery, tmp_path, template)
        assert read == ["read"]
        assert refusal["type"] == "ReadOnlyError", refusal
        assert row.fits(refusal["message"]), refusal

    def test_unwritable_vectors(self, theirs: Any, nursery: Any, tmp_path: Path, template: Any) -> None:
        place = theirs.home / "journal" / "vectors"
        for path in (*place.glob("*"), place):
            path.chmod(0o500 if path.is_dir() else 0o400)
        *read, refusal = self.said(theirs, nursery, tmp_path, template)
        assert read == ["read"]
        assert refusal["type"] == "StorageError", refusal
        assert "Permission denied" in refusal["message"], refusal
