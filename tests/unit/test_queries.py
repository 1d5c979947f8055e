"""The analysts' queries, each against a store whose answers are known."""

from __future__ import annotations

import re

import pytest

from memgraph import assets
from memgraph.graph.guard import check_read_only

QUERIES = assets.texts("queries", ".cypher")


def memory(content, **fields):
    return {"type": "episodic", "content": content, **fields}


@pytest.fixture
def told(store):
    """A store with two projects, two agents, a revert and a forgotten failure."""
    known = store.insert_memories(
        [
            memory(
                "The parser failed on an empty file.",
                outcome="negative",
                project_id="alpha",
                files_involved=["src/parser.py", "src/lexer.py"],
                agents_involved=["ada"],
                reason="a task failed",
                occurred_at="2026-01-02T00:00:00.000Z",
            ),
            memory(
                "The parser failed on a byte order mark.",
                outcome="negative",
                project_id="alpha",
                files_involved=["src/parser.py"],
                agents_involved=["ada", "bob"],
                reason="a task failed",
                occurred_at="2026-01-03T00:00:00.000Z",
            ),
            memory(
                "bob reverted the streaming parser: it leaked memory.",
                outcome="negative",
                project_id="alpha",
                files_involved=["src/parser.py"],
                agents_involved=["bob"],
                tags=["revert", "src"],
                reason="a revert says what did not work",
                occurred_at="2026-01-04T00:00:00.000Z",
            ),
            memory(
                "The cache was made optional.",
                outcome="positive",
                project_id="beta",
                files_involved=["cache.py"],
                agents_involved=["ada"],
                occurred_at="2026-01-05T00:00:00.000Z",
            ),
            memory(
                "The cache failed under load.",
                outcome="negative",
                project_id="beta",
                files_involved=["cache.py"],
                agents_involved=["eve"],
            ),
            memory("Nobody knows how the cache ends.", project_id="beta", agents_involved=["bob"]),
        ]
    )
    store.update_memory(known[4].id, is_suppressed=True)
    return store


def test_failures_by_file_counts_what_went_wrong(told):
    rows = told.cypher(QUERIES["failures_by_file"], project="", most=10)
    assert [(row["file"], row["failures"]) for row in rows] == [("src/parser.py", 3), ("src/lexer.py", 1)]
    assert sorted(rows[0]["reasons"]) == ["a revert says what did not work", "a task failed"]
    assert str(rows[0]["last_at"]).startswith("2026-01-04")


def test_failures_by_file_keeps_to_a_project_and_a_number(told):
    assert told.cypher(QUERIES["failures_by_file"], project="beta", most=10) == []
    assert len(told.cypher(QUERIES["failures_by_file"], project="alpha", most=1)) == 1


def test_reverted_work_tells_what_was_undone(told):
    (row,) = told.cypher(QUERIES["reverted_work"], project="", most=10)
    assert row["content"] == "bob reverted the streaming parser: it leaked memory."
    assert (row["project"], row["agents"], row["files"]) == ("alpha", ["bob"], ["src/parser.py"])
    assert told.get_memory(row["id"]).tags == ["revert", "src"]
    assert told.cypher(QUERIES["reverted_work"], project="beta", most=10) == []


def test_agents_by_outcome_adds_up(told):
    rows = told.cypher(QUERIES["agents_by_outcome"], project="")
    assert [tuple(row.values()) for row in rows] == [("ada", 3, 1, 2, 0), ("bob", 3, 0, 2, 1)]
    assert [row["agent"] for row in told.cypher(QUERIES["agents_by_outcome"], project="beta")] == ["ada", "bob"]


def test_archived_and_deleted_memories_are_not_counted(told):
    (row,) = told.cypher(QUERIES["reverted_work"], project="", most=10)
    told.delete_memory(row["id"])
    assert told.cypher(QUERIES["reverted_work"], project="", most=10) == []
    assert told.cypher(QUERIES["failures_by_file"], project="", most=1)[0]["failures"] == 2


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_every_query_says_what_it_is(name):
    text = QUERIES[name]
    header = "\n".join(line for line in text.splitlines() if line.startswith("//"))
    assert f"// name: {name}\n" in header
    assert all(f"// {part}: " in header for part in ("purpose", "parameters", "columns"))
    body = text.replace(header, "")
    assert set(re.findall(r"\$\w+", header)) == set(re.findall(r"\$\w+", body))
    check_read_only(text)


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_every_query_has_the_columns_it_names(name, told):
    parameters = {"project": "", "most": 5}
    text = QUERIES[name]
    header = re.search(r"// columns: (.*(?:\n// .*)*)", text)[1]
    named = re.findall(r"(\w+) (?:STRING|INT64|TIMESTAMP)\b", header)
    rows = told.cypher(text, **{key: value for key, value in parameters.items() if f"${key}" in text})
    assert rows
    assert list(rows[0]) == named
