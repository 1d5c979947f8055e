"""Bad input: each a clear error that names field and value, and nothing stored."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest

import memgraph
from memgraph.errors import DuplicateIdError, NotAStoreError
from memgraph.testing import FakeClock, FakeEmbedder

DIMENSION = 64
NAN, INFINITY = float("nan"), float("inf")
KNOWN_ID = "11111111-1111-4111-8111-111111111111"

FIELDS = {
    "empty-content": ("content", ""),
    "blank-content": ("content", " \n\t "),
    "801-characters": ("content", "x" * 801),
    "content-of-another-type": ("content", 7),
    "surrogate-in-content": ("content", "a\ud800b"),
    "surrogate-in-project": ("project_id", "\udfff"),
    "surrogate-in-location": ("location", "src/\ud83d.py"),
    "nul-in-content": ("content", "a\x00b"),
    "nul-in-project": ("project_id", "shop\x00"),
    "nul-in-location": ("location", "\x00"),
    "nan-vector": ("embedding", [NAN] * DIMENSION),
    "one-nan-in-vector": ("embedding", [1.0] * (DIMENSION - 1) + [NAN]),
    "infinite-vector": ("embedding", [INFINITY] + [0.0] * (DIMENSION - 1)),
    "overflowing-vector": ("embedding", [1e39] + [0.0] * (DIMENSION - 1)),
    "zero-vector": ("embedding", [0.0] * DIMENSION),
    "empty-vector": ("embedding", []),
    "vector-of-vectors": ("embedding", [[1.0] * DIMENSION]),
    "vector-of-words": ("embedding", ["one"] * DIMENSION),
    "vector-of-digits": ("embedding", ["1"] * DIMENSION),
    "complex-vector": ("embedding", [1j] * DIMENSION),
    "time-before-all-time": ("occurred_at", "0001-01-01T00:00:00+14:00"),
    "time-after-all-time": ("occurred_at", "9999-12-31T23:59:59-14:00"),
    "unknown-type": ("type", "episode"),
    "no-type": ("type", None),
    "type-of-another-type": ("type", ["episodic"]),
    "unknown-outcome": ("outcome", "great"),
    "outcome-of-another-type": ("outcome", 1),
    "nan-relevance": ("relevance_score", NAN),
    "negative-relevance": ("relevance_score", -0.1),
    "confidence-above-one": ("confidence", 1.5),
    "id-that-is-no-uuid": ("id", "fake"),
    "date-that-is-none": ("event_date", "yesterday"),
    "impossible-date": ("event_date", "2026-02-30T00:00:00.000Z"),
    "unknown-field": ("colour", "red"),
}
ITEMS = {
    "surrogate-in-tag": ("tags", ["fine", "\ud800"]),
    "nul-in-tag": ("tags", ["fine", "a\x00"]),
    "empty-agent": ("agents_involved", ["MARS", " "]),
}


def data(**fields):
    return {"type": "episodic", "content": "A fine note", **fields}


def same(a, b):
    """Compare refused values; NaN is itself here."""
    return repr(a) == repr(b)


KNOWN = memgraph.EpisodicMemory(id=KNOWN_ID, content="Here already", tags=["kept"])


@pytest.fixture(scope="module")
def stocked(tmp_path_factory):
    """Return a store that holds one memory: the same for all tests, because nothing that is refused changes it."""
    folder = tmp_path_factory.mktemp("stocked")
    settings = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    with memgraph.AgentMemoryStore(settings, embedder=FakeEmbedder(DIMENSION), clock=FakeClock()) as store:
        store.insert_memory(KNOWN)
        yield store


@pytest.fixture
def own(store):
    """Return such a store for one test alone."""
    store.insert_memory(KNOWN)
    return store


@pytest.fixture
def unchanged(stocked):
    """Give a block after which the store must be what it was, in this process and when read anew."""

    @contextmanager
    def watch():
        before = stocked.get_stats().total, stocked.digest(), stocked.get_memory(KNOWN_ID)
        yield
        assert (stocked.get_stats().total, stocked.digest(), stocked.get_memory(KNOWN_ID)) == before
        assert stocked.cypher("MATCH (m:Memory) RETURN count(m) AS n") == [{"n": before[0]}]

    return watch


def assert_clear(error, field, value):
    assert isinstance(error, memgraph.InvalidInputError)
    assert isinstance(error, memgraph.MemGraphError)
    assert field in error.field.split(".")
    assert same(error.value, value)
    message = str(error)
    assert field in message
    assert "got " in message
    assert len(message) < 400
    message.encode("utf-8")  # it can be printed, whatever was refused


@pytest.mark.parametrize(("field", "value"), FIELDS.values(), ids=FIELDS)
def test_a_refused_field_is_named_with_its_value(stocked, unchanged, field, value):
    with unchanged(), pytest.raises(memgraph.MemGraphError) as caught:
        stocked.insert_memory(data(**{field: value}))

    assert_clear(caught.value, field, value)


@pytest.mark.parametrize(("field", "values"), ITEMS.values(), ids=ITEMS)
def test_a_refused_item_of_a_list_is_named_with_its_value(stocked, unchanged, field, values):
    with unchanged(), pytest.raises(memgraph.MemGraphError) as caught:
        stocked.insert_memory(data(**{field: values}))

    assert_clear(caught.value, field, values[1])


@pytest.mark.parametrize(("field", "value"), FIELDS.values(), ids=FIELDS)
def test_one_refused_memory_of_many_stores_none(stocked, unchanged, field, value):
    many = [data(content="The first"), data(**{field: value}), data(content="The last")]

    with unchanged(), pytest.raises(memgraph.MemGraphError) as caught:
        stocked.insert_memories(many)

    assert_clear(caught.value, field, value)


@pytest.mark.parametrize("dimension", [1, DIMENSION - 1, DIMENSION + 1])
@pytest.mark.parametrize("bulk", [False, True])
def test_a_vector_of_wrong_length(stocked, unchanged, dimension, bulk):
    given = data(embedding=np.ones(dimension, dtype=np.float32))

    with unchanged(), pytest.raises(memgraph.InvalidInputError) as caught:
        stocked.insert_memories([data(), given]) if bulk else stocked.insert_memory(given)

    assert "embedding" in caught.value.field.split(".")
    assert str(DIMENSION) in str(caught.value)
    assert str(dimension) in str(caught.value)


@pytest.mark.parametrize("given", [None, "a note", 7, ["a note"]])
def test_what_is_no_memory_at_all(stocked, unchanged, given):
    with unchanged(), pytest.raises(memgraph.InvalidInputError):
        stocked.insert_memory(given)


def test_eight_hundred_characters_are_not_too_many(own):
    stored = own.insert_memory(data(content="é" * 800))

    assert own.get_memory(stored.id).content == "é" * 800


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("content", ""),
        ("content", "x" * 801),
        ("content", "a\ud800"),
        ("content", "a\x00"),
        ("outcome", "great"),
        ("relevance_score", NAN),
        ("relevance_score", -1.0),
        ("is_pinned", "perhaps"),
        ("colour", "red"),
    ],
)
def test_a_refused_update_changes_nothing(stocked, unchanged, field, value):
    with unchanged(), pytest.raises(memgraph.MemGraphError) as caught:
        stocked.update_memory(KNOWN_ID, **{"tags": ["changed"], field: value})

    assert_clear(caught.value, field, value)


def test_an_id_that_is_in_the_store(stocked, unchanged):
    with unchanged(), pytest.raises(DuplicateIdError) as caught:
        stocked.insert_memory(data(id=KNOWN_ID))

    assert caught.value.memory_id == KNOWN_ID
    assert KNOWN_ID in str(caught.value)


def test_an_id_that_is_in_the_store_in_other_letters(stocked, unchanged):
    memory = stocked.insert_memory(data(id="abcdefab-cdef-4bcd-8fab-cdefabcdefab"))

    with unchanged(), pytest.raises(DuplicateIdError):
        stocked.insert_memory(data(id=memory.id.upper()))


def test_an_id_that_is_in_the_store_within_a_bulk_call(stocked, unchanged):
    with unchanged(), pytest.raises(DuplicateIdError) as caught:
        stocked.insert_memories([data(content="The first"), data(id=KNOWN_ID), data(content="The last")])

    assert caught.value.memory_id == KNOWN_ID


def test_an_id_twice_within_a_bulk_call(stocked, unchanged):
    twice = str(uuid4())

    with unchanged(), pytest.raises(DuplicateIdError) as caught:
        stocked.insert_memories([data(id=twice), data(content="Between"), data(id=twice)])

    assert caught.value.memory_id == twice
    assert stocked.get_memory(twice) is None


@pytest.mark.parametrize("text", ["", "  ", "a\x00b", "a\ud800b"], ids=["empty", "blank", "nul", "surrogate"])
def test_remembering_what_cannot_be_stored(stocked, unchanged, embedder, text):
    with unchanged(), pytest.raises(memgraph.InvalidInputError):
        memgraph.MemoryCommands(stocked, embedder).remember(text)


def exported(*memories, **fields):
    whole = {"version": "1.0.0", "exportedAt": "2026-01-01T00:00:00.000Z", "totalMemories": len(memories)}
    return {**whole, "memories": list(memories), **fields}


GOOD = {"id": "22222222-2222-4222-8222-222222222222", "type": "semantic", "content": "Good"}
EXPORTS = {
    "no-memories": ("memories", {"version": "1.0.0", "exportedAt": "2026-01-01", "totalMemories": 1}),
    "memories-are-no-list": ("memories", exported(memories={"0": GOOD}, totalMemories=1)),
    "no-version": ("version", {name: value for name, value in exported(GOOD).items() if name != "version"}),
    "unknown-version": ("version", exported(GOOD, version="9.0.0")),
    "fewer-memories-than-it-says": ("total", exported(GOOD, totalMemories=5)),
    "memory-cut-short": ("content", exported(GOOD, {"id": str(uuid4()), "type": "episodic"})),
    "memory-is-none": ("memories", exported(GOOD, None)),
    "memory-without-type": ("type", exported(GOOD, {"content": "x"})),
    "content-too-long": ("content", exported(GOOD, {"type": "episodic", "content": "x" * 801})),
    "unknown-outcome": ("outcome", exported(GOOD, {"type": "episodic", "content": "x", "outcome": "great"})),
    "nan-vector": ("embedding", exported(GOOD, {"type": "episodic", "content": "x", "embedding": [NAN] * DIMENSION})),
    "zero-vector": ("embedding", exported(GOOD, {"type": "episodic", "content": "x", "embedding": [0] * DIMENSION})),
    "nul": ("content", exported(GOOD, {"type": "episodic", "content": "\x00"})),
    "surrogate": ("content", exported(GOOD, {"type": "episodic", "content": "\ud800"})),
    "link-to-nothing": (
        "links.0.target_id",
        exported(GOOD, links=[{"sourceId": GOOD["id"], "relation": "SUPPORTS", "targetId": str(uuid4())}]),
    ),
    "unknown-relation": (
        "relation",
        exported(GOOD, links=[{"sourceId": GOOD["id"], "relation": "LIKES", "targetId": GOOD["id"]}]),
    ),
}


@pytest.mark.parametrize(("field", "broken"), EXPORTS.values(), ids=EXPORTS)
def test_a_broken_import_is_a_result_without_success(stocked, unchanged, embedder, field, broken):
    with unchanged():
        result = memgraph.MemoryCommands(stocked, embedder).import_memories(broken)

    assert (result.command, result.success) == ("import", False)
    assert (result.data["imported"], result.data["skipped"]) == (0, 0)
    assert field in result.data["field"]
    assert field in result.message
    result.model_dump_json().encode("utf-8")
    assert stocked.get_memory(GOOD["id"]) is None


@pytest.mark.parametrize("argument", [[GOOD], json.dumps(exported(GOOD)), None], ids=["list", "text", "none"])
def test_an_import_of_something_else_than_an_export_is_a_mistake_in_the_program(stocked, unchanged, embedder, argument):
    with unchanged(), pytest.raises(memgraph.InvalidInputError, match="must be an export"):
        memgraph.MemoryCommands(stocked, embedder).import_memories(argument)


def test_the_export_that_the_broken_ones_are_made_from_is_good(own, embedder):
    result = memgraph.MemoryCommands(own, embedder).import_memories(exported(GOOD))

    assert result.data == {"imported": 1, "skipped": 0}


def test_a_link_from_nothing_is_called_a_link(stocked, unchanged, embedder):
    nothing = str(uuid4())
    link = {"sourceId": nothing, "relation": "SUPPORTS", "targetId": KNOWN_ID}

    with unchanged():
        result = memgraph.MemoryCommands(stocked, embedder).import_memories(exported(GOOD, links=[link]))

    assert (result.success, result.data["field"]) == (False, "links.0.source_id")
    assert nothing in result.message


def test_links_between_known_memories_are_imported_once(own, embedder):
    commands = memgraph.MemoryCommands(own, embedder)
    commands.import_memories(exported(GOOD))
    link = {"sourceId": GOOD["id"], "relation": "SUPPORTS", "targetId": KNOWN_ID, "score": 0.5}

    result = commands.import_memories(exported(GOOD, links=[link, link]))
    linked, digest = own.links(KNOWN_ID), own.digest()
    commands.import_memories(exported(GOOD, links=[link]))

    assert result.data == {"imported": 0, "skipped": 1}
    assert [(found.source_id, found.relation, found.target_id, found.score) for found in linked] == [
        (GOOD["id"], "SUPPORTS", KNOWN_ID, 0.5)
    ]
    assert own.digest() == digest


@pytest.mark.parametrize("count", [2**31, 2**63, 10**30])
def test_a_count_that_the_index_cannot_hold(stocked, unchanged, count):
    with unchanged(), pytest.raises(memgraph.InvalidInputError) as caught:
        stocked.insert_memory(data(access_count=count))

    assert_clear(caught.value, "access_count", count)


def test_an_id_twice_within_an_import(stocked, unchanged, embedder):
    with unchanged():
        result = memgraph.MemoryCommands(stocked, embedder).import_memories(
            exported(GOOD, {**GOOD, "content": "Another"})
        )

    assert not result.success
    assert GOOD["id"] in result.message


def open_and_write(home, keys, embedder):
    settings = memgraph.AgentMemoryConfig(home=home, keys_home=keys)
    with memgraph.AgentMemoryStore(settings, embedder=embedder) as store:
        store.insert_memory(data())


def files_under(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "files",
    [{"notes.txt": "mine"}, {"journal/notes.txt": "mine"}, {"graph/data.kz": "x", "src/a.py": "y"}, {".hidden": "z"}],
    ids=["a-file", "a-journal-without-manifest", "a-project", "a-hidden-file"],
)
def test_a_directory_that_is_no_store(tmp_path, embedder, files):
    home = tmp_path / "project"
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    before = files_under(home)

    with pytest.raises(NotAStoreError) as caught:
        open_and_write(home, tmp_path / "keys", embedder)

    assert caught.value.path == home
    assert str(home) in str(caught.value)
    assert files_under(home) == before
    assert not (tmp_path / "keys").exists()


def test_an_empty_directory_becomes_a_store(tmp_path, embedder):
    (tmp_path / "empty").mkdir()

    open_and_write(tmp_path / "empty", tmp_path / "keys", embedder)

    assert (tmp_path / "empty" / "memgraph.db").is_file()


def test_a_file_where_the_directory_should_be(tmp_path, embedder):
    home = tmp_path / "file"
    home.write_text("mine")

    with pytest.raises(memgraph.MemGraphError) as caught:
        open_and_write(home, tmp_path / "keys", embedder)

    assert str(home) in str(caught.value)
    assert home.read_text() == "mine"


def test_no_write_permission_under_a_file(tmp_path, embedder):
    (tmp_path / "file").write_text("mine")
    home = tmp_path / "file" / "store"

    with pytest.raises(memgraph.StorageError) as caught:
        open_and_write(home, tmp_path / "keys", embedder)

    assert str(tmp_path / "file") in str(caught.value.path)
    assert str(caught.value.path) in str(caught.value)
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a file system that lets nobody write")
def test_no_write_permission_on_a_read_only_file_system(tmp_path, embedder):
    home = Path("/proc/memgraph-store")

    with pytest.raises(memgraph.StorageError) as caught:
        open_and_write(home, tmp_path / "keys", embedder)

    assert str(home) in str(caught.value)
    assert not home.exists()


def test_no_write_permission_for_the_keys(tmp_path, embedder):
    (tmp_path / "file").write_text("mine")

    with pytest.raises(memgraph.MemGraphError) as caught:
        open_and_write(tmp_path / "store", tmp_path / "file" / "keys", embedder)

    assert str(tmp_path / "file") in str(caught.value)
