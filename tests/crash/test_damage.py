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

import memgraph
from memgraph.errors import DamagedJournalError, KeyMissingError, VectorDamageError
from memgraph.store import repair_store
from memgraph.testing import FakeClock

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


# -- the end of the journal --------------------------------------------------------------------------------------------

SHORT = "the journal ends before its head file says"


@way(SHORT, "refused")
def an_older_copy_of_the_database(scene: Any, stranger: Any) -> None:
    older = scene.rows()
    with scene.open() as store:
        store.insert_memory({"type": "episodic", "content": "later"})
    scene.put(older)


@way(SHORT, "refused")
def cut_and_without_a_head(scene: Any, stranger: Any) -> None:
    scene.sql("DELETE FROM event WHERE seq > 9")
    scene.sql("DELETE FROM head")


@way(SHORT, "refused")
def without_events_and_head(scene: Any, stranger: Any) -> None:
    scene.sql("DELETE FROM event")
    scene.sql("DELETE FROM head")


@way(SHORT, "refused")
def a_head_file_that_is_ahead(scene: Any, stranger: Any) -> None:
    scene.head.write_text(json.dumps({"seq": 99, "signature": "f" * 64}))


SHORT_BY_HEAD = "the journal ends before its head says"


@way(SHORT_BY_HEAD, "refused", DamagedJournalError)
def cut_by_a_commit(scene: Any, stranger: Any) -> None:
    scene.sql("DELETE FROM event WHERE seq = (SELECT MAX(seq) FROM event)")


@way(SHORT_BY_HEAD, "refused", DamagedJournalError)
def emptied(scene: Any, stranger: Any) -> None:
    scene.sql("DELETE FROM event")


# -- what the events say -----------------------------------------------------------------------------------------------

CHANGED = "an event is changed"


@way(CHANGED, "refused", DamagedJournalError)
def in_a_payload(scene: Any, stranger: Any) -> None:
    scene.change("Try 3", "Try 4")


@way(CHANGED, "refused", DamagedJournalError)
def in_a_head(scene: Any, stranger: Any) -> None:
    scene.change('"actor":"agent"', '"actor":"user"', where="seq = 4", column="head")


@way(CHANGED, "refused", DamagedJournalError)
def its_type(scene: Any, stranger: Any) -> None:
    scene.sql("UPDATE event SET type = 'memory.deleted' WHERE seq = 3")


@way(CHANGED, "refused", DamagedJournalError)
def purged_and_no_purge_names_it(scene: Any, stranger: Any) -> None:
    scene.sql("UPDATE event SET payload = NULL, salt = NULL WHERE seq = 3")


MOVED = "events are swapped, dropped, repeated, or come from an older copy"


@way(MOVED, "refused", DamagedJournalError)
def dropped(scene: Any, stranger: Any) -> None:
    scene.sql("DELETE FROM event WHERE seq = 5")


@way(MOVED, "refused", DamagedJournalError)
def of_an_older_copy(scene: Any, stranger: Any) -> None:
    older = scene.copy(scene.folder.with_name("older"))
    for place in (older, scene):
        with place.open() as store:
            for text in ("one", "two"):
                store.insert_memory({"type": "episodic", "content": f"{text} {place.folder}"})
    last = scene.sql("SELECT MAX(seq) FROM event")[0][0]
    (row,) = older.sql("SELECT * FROM event WHERE seq = ?", last - 1)
    scene.sql("REPLACE INTO event VALUES (?, ?, ?, ?, ?, ?, ?)", *row)


FOREIGN = "the journal contains events of another store"


@way(FOREIGN, "refused", DamagedJournalError)
def with_another_key(scene: Any, stranger: Any) -> None:
    (row,) = stranger.sql("SELECT * FROM event WHERE seq = 6")
    scene.sql("REPLACE INTO event VALUES (?, ?, ?, ?, ?, ?, ?)", *row)


ALL_FOREIGN = "the journal is another store's"


@way(ALL_FOREIGN, "refused", KeyMissingError)
def a_journal_of_another_store(scene: Any, stranger: Any) -> None:
    scene.put({name: rows for name, rows in stranger.rows().items() if name in ("event", "head")})


# -- the database ------------------------------------------------------------------------------------------------------

HEAD_ROW = "the journal's head is changed, or an older one"


@way(HEAD_ROW, "reported")
def an_older_head(scene: Any, stranger: Any) -> None:
    older = scene.sql("SELECT * FROM head")
    with scene.open() as store:
        store.insert_memory({"type": "episodic", "content": "later"})
        scene.digest = store.digest()
    scene.put({"head": older})
    scene.sql("UPDATE head SET code = 'x'")


@way(HEAD_ROW, "reported")
def a_head_that_names_another_key(scene: Any, stranger: Any) -> None:
    scene.sql("UPDATE head SET body = CAST(replace(CAST(body AS TEXT), 'file:', 'fire:') AS BLOB)")


@way(HEAD_ROW, "reported")
def the_head_of_another_store(scene: Any, stranger: Any) -> None:
    scene.put({"head": stranger.rows()["head"]})


@way("the journal's head is missing", "silent")
def head_row_gone(scene: Any, stranger: Any) -> None:
    scene.sql("DELETE FROM head")


DATABASE = "the database is damaged"


@way(DATABASE, "refused", memgraph.StorageError)
def a_database_of_noise(scene: Any, stranger: Any) -> None:
    scene.settle()
    scene.database.write_bytes(b"\xff" * scene.database.stat().st_size)


@way(DATABASE, "refused", memgraph.StorageError)
def a_database_without_its_end(scene: Any, stranger: Any) -> None:
    scene.settle()
    os.truncate(scene.database, 3 * 4096)


NO_EVENTS = "journal and head file are empty or missing, but rows, graph or index exist"


@way(NO_EVENTS, "refused")
def no_event_is_left(scene: Any, stranger: Any) -> None:
    scene.head.unlink()
    scene.sql("DELETE FROM event")
    scene.sql("DELETE FROM head")


@way(NO_EVENTS, "refused")
def the_database_is_gone(scene: Any, stranger: Any) -> None:
    for path in scene.home.glob("memgraph.db*"):
        path.unlink()


# -- keys --------------------------------------------------------------------------------------------------------------

KEY_GONE = "the signing key is missing, or the database is another store's"


@way(KEY_GONE, "refused", KeyMissingError)
def key_gone(scene: Any, stranger: Any) -> None:
    scene.key.unlink()


@way(KEY_GONE, "refused", KeyMissingError)
def the_database_of_another_store(scene: Any, stranger: Any) -> None:
    scene.put(stranger.rows())


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


# -- the head file -----------------------------------------------------------------------------------------------------

NO_HEAD = "the head file is missing"


@way(NO_HEAD, "reported")
def head_gone(scene: Any, stranger: Any) -> None:
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
def head_behind(scene: Any, stranger: Any) -> None:
    scene.head.write_text(head_at(scene, 7))


# -- leftovers ---------------------------------------------------------------------------------------------------------

LOCKS = "lock, pid and temporary files are left behind"


@way(LOCKS, "silent")
def locks_left_behind(scene: Any, stranger: Any) -> None:
    for name in ("lock.pid", "graph.lock.pid"):
        (scene.home / name).write_text("1")
    for name in ("lock", "graph.lock", "graph.wanted"):
        (scene.home / name).touch()


@way(LOCKS, "silent")
def pids_that_are_no_numbers(scene: Any, stranger: Any) -> None:
    for name in ("lock.pid", "graph.lock.pid"):
        (scene.home / name).write_bytes(b"\xff\xfe nobody")


@way(LOCKS, "silent")
def temporary_files_left_behind(scene: Any, stranger: Any) -> None:
    for name in ("cache/.fake.json.1.tmp", "index/.index.npz.1.tmp"):
        (scene.home / name).write_bytes(b"half")
    for name in ("query-x", "query-y"):
        (scene.home / "graph" / name).mkdir()
        (scene.home / "graph" / name / "base").write_bytes(b"half")


# -- vectors -----------------------------------------------------------------------------------------------------------

NO_VECTORS = "a vector is missing, or holds zeros, NaN or infinity"


def vectors(harm: Harm) -> Harm:
    """Without the copy that is searched: it would vouch for the rows as they were."""

    def both(scene: Any, stranger: Any) -> None:
        harm(scene, stranger)
        scene.cache.unlink()

    both.__name__ = harm.__name__
    return both


@way(NO_VECTORS, "repaired", VectorDamageError)
@vectors
def the_last_vector_is_gone(scene: Any, stranger: Any) -> None:
    scene.sql("DELETE FROM vector WHERE place = (SELECT MAX(place) FROM vector)")


@way(NO_VECTORS, "repaired", VectorDamageError)
@vectors
def all_vectors_are_gone(scene: Any, stranger: Any) -> None:
    scene.sql("DELETE FROM vector")


@way(NO_VECTORS, "repaired", VectorDamageError)
@vectors
def vectors_of_zeros(scene: Any, stranger: Any) -> None:
    scene.sql("UPDATE vector SET value = zeroblob(length(value))")


@way(NO_VECTORS, "repaired", VectorDamageError)
@vectors
def vectors_of_noise(scene: Any, stranger: Any) -> None:
    scene.sql("UPDATE vector SET value = CAST(? AS BLOB)", b"\xff" * 64)


FLIPPED_VECTORS = "a vector is changed"


@way(FLIPPED_VECTORS, "verify", VectorDamageError)
@vectors
def vectors_are_swapped(scene: Any, stranger: Any) -> None:
    first, second = (row[0] for row in scene.sql("SELECT value FROM vector WHERE place < 2 ORDER BY place"))
    scene.sql("UPDATE vector SET value = CASE place WHEN 0 THEN ? ELSE ? END WHERE place < 2", second, first)


CACHE = "the copy of the vectors that is searched (`cache/`) is missing, damaged, or another store's"


@way(CACHE, "silent")
def the_copy_is_gone(scene: Any, stranger: Any) -> None:
    scene.cache.unlink()


@way(CACHE, "silent")
def the_copy_is_flipped(scene: Any, stranger: Any) -> None:
    data = bytearray(scene.cache.read_bytes())
    data[70] ^= 1
    scene.cache.write_bytes(data)


@way(CACHE, "silent")
def the_copy_is_another_stores(scene: Any, stranger: Any) -> None:
    stranger = stranger.copy(scene.folder.with_name("stranger"))
    stranger.sql("UPDATE vector SET value = (SELECT value FROM vector WHERE place = 1)")
    stranger.cache.write_bytes(scene.cache.read_bytes()[::-1])
    for suffix in (".f32", ".json"):
        shutil.copy(stranger.cache.with_suffix(suffix), scene.cache.with_suffix(suffix))


# -- files -------------------------------------------------------------------------------------------------------------

DIRECTORY = "a directory is in place of a file, or a file cannot be read"


def directory_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "something").touch()


@way(DIRECTORY, "refused", memgraph.StorageError)
def a_directory_as_database(scene: Any, stranger: Any) -> None:
    scene.settle()
    directory_instead(scene.database)


@way(DIRECTORY, "refused", memgraph.StorageError)
def a_directory_as_head(scene: Any, stranger: Any) -> None:
    directory_instead(scene.head)


@way(DIRECTORY, "refused", memgraph.StorageError)
def a_directory_as_key(scene: Any, stranger: Any) -> None:
    directory_instead(scene.key)


CLOCK = "the clock is set back"


@way(CLOCK, "silent")
def last_written_next_year(scene: Any, stranger: Any) -> None:
    with scene.open(clock=FakeClock("2027-01-01T00:00:00.000Z")) as store:
        store.insert_memory({"type": "episodic", "content": "next year"})
        scene.digest = store.digest()


ALL = [pytest.param(case, name, id=name) for case in CASES for name in case.ways]


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
        said = [message for message in scene.heard if not message.startswith("rebuilding the graph")]
        assert {row.fits(message) for message in said} == ({True} if case.outcome == "reported" else set()), said


def contents(scene: Any) -> dict[Path, tuple[int, bytes | None]]:
    """Return the mode of each file and directory, and what files contain."""
    found = [path for path in scene.folder.rglob("*") if not path.is_socket()]
    return {path: (path.lstat().st_mode, path.read_bytes() if path.is_file() else None) for path in found}


def refused(scene: Any, case: Case, row: Any) -> None:
    before = scene.files()
    for _ in range(2):
        with pytest.raises(case.error) as error, scene.open() as store:
            store.rebuild()
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


def test_a_store_without_its_journal_is_reported_and_can_be_started_again(scene: Any) -> None:
    the_database_is_gone(scene, scene)
    config = memgraph.AgentMemoryConfig(home=scene.home, keys_home=scene.keys_home)
    named = [scene.home / name for name in ("graph", "cache", "index")]
    for open_it in (scene.open, lambda: repair_store(config)):
        with pytest.raises(memgraph.JournalError, match="to start over") as error:
            open_it()
        assert all(str(path) in str(error.value) for path in named)
    for path in named:
        shutil.rmtree(path)
    with scene.open() as store:
        assert store.get_all_memories() == []
        store.insert_memory(episode := {"type": "episodic", "content": "life begins anew"})
        assert [memory.content for memory in store.get_all_memories()] == [episode["content"]]


def file_in_its_place(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_bytes(b"a file")


def test_a_file_in_place_of_a_directory(scene: Any, rows: Any) -> None:
    row = rows["a file is in place of a directory"]
    file_in_its_place(scene.home / "graph")
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
        "name", ["database", *(pytest.param(name, marks=pytest.mark.long) for name in ("key", "head"))]
    )
    def test_unreadable_files(
        self, theirs: Any, nursery: Any, rows: Any, tmp_path: Path, template: Any, name: str
    ) -> None:
        getattr(theirs, name).chmod(0)
        (refusal,) = self.said(theirs, nursery, tmp_path, template)
        assert refusal["type"] == "StorageError", refusal
        assert rows[DIRECTORY].fits(refusal["message"]), refusal

    def test_unwritable_files(self, theirs: Any, nursery: Any, rows: Any, tmp_path: Path, template: Any) -> None:
        row = rows["the store is not writable, or is on a read-only file system"]
        theirs.settle()
        for path in (theirs.database, theirs.home):
            path.chmod(0o500 if path.is_dir() else 0o400)
        *read, refusal = self.said(theirs, nursery, tmp_path, template)
        assert read == ["read"]
        assert refusal["type"] == "ReadOnlyError", refusal
        assert row.fits(refusal["message"]), refusal
