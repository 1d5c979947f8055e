"""`memgraph query` and `memgraph queries`: what they print, in which forms, and what they refuse."""

from __future__ import annotations

import csv
import io
import json
import re
import sys

import polars as pl
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from memgraph import AgentMemoryConfig, AgentMemoryStore
from memgraph.graph.queries import named_queries
from memgraph.interfaces.cli.analysis.query import print_csv, print_table, visible
from memgraph.interfaces.cli.group import cli
from memgraph.model.results.rows import Column, Rows
from memgraph.testing import FakeClock, FakeEmbedder

NOW = "2026-02-01T09:00:00.000Z"
HOSTILE = '[bold]"red", \x1b[31mnot\x1b[0m\r\nbold\u202e; \u2028=1+1\t漢字 שלום 👩\u200d🚀'
TOLD = r"[bold]\"red\", \x1b[31mnot\x1b[0m\r\nbold\u202e; \u2028=1+1\t漢字 שלום 👩‍🚀".replace('\\"', '"')
MEMORIES = [
    {"content": HOSTILE, "outcome": "failure", "agents_involved": ["ada"], "tags": ["a, b", "c"], "confidence": 0.5},
    {"content": "x" * 800, "outcome": "success", "agents_involved": ["ada", "bob"], "project_id": "shop"},
]
ALL = "MATCH (m:Memory) RETURN m.content AS content, m.occurred_at AS at, m.tags AS tags, m.confidence AS sure, m.project_id AS project ORDER BY sure"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("query-cli")
    config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    with AgentMemoryStore(config, embedder=FakeEmbedder(dimension=64), clock=FakeClock(start=NOW)) as store:
        store.insert_memories([{"type": "episodic", **fields} for fields in MEMORIES], annotate=False)
    return folder


@pytest.fixture
def run(folder, monkeypatch):
    """Run one command in this process, against the one store."""
    monkeypatch.setenv("MEMGRAPH_KEYS_HOME", str(folder / "keys"))
    for user in ("memgraph.store.store", "memgraph.embedding"):
        monkeypatch.setattr(f"{user}.default_embedder", lambda _: FakeEmbedder(dimension=64))

    def call(*args, stdin=None, home=None, exit_code=0):
        command = ["--home", str(home or folder / "store"), *map(str, args)]
        result = CliRunner().invoke(cli, command, input=stdin, prog_name="memgraph")
        assert result.exit_code == exit_code, result.output
        return result

    return call


def test_a_table_is_aligned_and_harmless(run):
    lines = run("query", "agents_by_outcome").stdout.splitlines()
    assert lines == [
        "agent  memories  positive  negative  other",
        "ada           2         1         1      0",
        "bob           1         1         0      0",
    ]
    text = run("query", "--cypher", ALL).stdout
    first, second, third = text.split("\n")[:3]
    assert first.split() == ["at", "tags", "sure", "project", "content"]  # long text is last
    assert second == f'2026-02-01 09:00:00  ["a, b", "c"]   0.5           {TOLD}'
    assert third.endswith("1.0  shop     " + "x" * 800)  # nothing is cut


def test_a_table_has_short_ids_and_programs_whole_ones(run):
    asked = (
        "query",
        "--cypher",
        "MATCH (m:Memory) RETURN m.id AS id, m.id AS query_id, m.content AS x_id ORDER BY id",
    )
    whole = [row["id"] for row in json.loads(run(*asked, "--json").stdout)]
    lines = run(*asked).stdout.splitlines()[1:]
    assert all(re.match(rf"{one[:8]}  {one}  ", line) for one, line in zip(whole, lines, strict=True))
    assert lines[0].endswith(("x" * 800, TOLD))  # what is no id is no shorter for its name
    assert all(one in run(*asked, "--csv").stdout for one in whole)


def test_midnight_is_a_day(run):
    rows = run("query", "--cypher", "RETURN timestamp('2026-02-01') AS day, timestamp('2026-02-01 00:00:01') AS time")
    assert rows.stdout.splitlines()[1] == "2026-02-01  2026-02-01 00:00:01"


def test_a_terminal_shows_it_within_its_width(monkeypatch, capsys):
    rows = Rows([{"n": 5, "text": HOSTILE + "y" * 200}], columns=[Column("n", "INT64"), Column("text", "STRING")])
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    print_table(rows)
    shown = capsys.readouterr().out
    assert max(map(cell_len, re.sub(r"\x1b\[[01]m", "", shown).splitlines())) <= 60
    assert "[bold]" in shown
    assert r"\x1b[31mnot" in shown
    assert "\x1b[31m" not in shown
    assert shown.count("y") == 200


def test_where_a_table_does_not_fit_a_terminal_each_row_is_a_block(monkeypatch, capsys):
    names = ["a_long_name", "another_one", "and_a_third", "nothing"]
    columns = [*(Column(name, "INT64") for name in names), Column("text", "STRING")]
    row = {"a_long_name": 1, "another_one": 2, "and_a_third": 3, "nothing": None, "text": "word " * 30}
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)

    def shown(width):
        monkeypatch.setenv("COLUMNS", str(width))
        print_table(Rows([row, row], columns=columns))
        return [line.rstrip() for line in re.sub(r"\x1b\[[01]m", "", capsys.readouterr().out).splitlines()]

    assert shown(100)[0].split() == [*names, "text"]
    blocks = shown(60)
    assert blocks[:4] == ["a_long_name: 1", "another_one: 2", "and_a_third: 3", "text:        " + "word " * 8 + "word"]
    assert blocks[4].startswith(" " * 13 + "word")
    assert blocks[len(blocks) // 2] == ""
    assert max(map(cell_len, blocks)) <= 60


def test_the_relation_of_an_edge_is_headed_as_it_was_asked(run):
    assert json.loads(
        run("--json", "query", "--cypher", "MATCH (a)-[r]->(b) RETURN label(r), count(*) LIMIT 1").stdout
    )[0].keys() == {"LABEL(r)", "COUNT_STAR()"}


def test_json_is_a_list_of_rows(run):
    first, second = json.loads(run("query", "--cypher", ALL, "--json").stdout)
    assert first == {"content": HOSTILE, "at": NOW, "tags": ["a, b", "c"], "sure": 0.5, "project": ""}
    assert second["project"] == "shop"


def test_values_that_json_lacks_have_a_form(run):
    asked = (
        "RETURN 1.0 / 0.0 AS endless, date('2026-01-02') AS day, interval('90 minutes') AS long, {a: [1, 2]} AS record,"
        " CAST(1.5 AS DECIMAL(5, 2)) AS decimal, CAST(2 AS INT128) AS large, NULL AS nothing, blob('ab') AS bytes"
    )
    (row,) = json.loads(run("query", "--cypher", asked, "--json").stdout)
    assert row == {
        "endless": "inf", "day": "2026-01-02", "long": 5400.0, "record": {"a": [1, 2]}, "decimal": 1.5, "large": 2,
        "nothing": None, "bytes": "6162",
    }  # fmt: skip


NAMED = "RETURN '\x9b31m=1+1\x1b' AS `a\x1b[31m`"


def test_a_terminal_is_given_no_commands_in_csv_and_a_pipe_what_there_is(run, monkeypatch, capsys):
    assert run("query", "--cypher", NAMED, "--csv").stdout_bytes == "a\x1b[31m\n\x9b31m=1+1\x1b\n".encode()
    (row,) = json.loads(run("query", "--cypher", NAMED, "--json").stdout)
    rows = Rows([row], columns=[Column(name, "STRING") for name in row])
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    print_csv(rows)
    assert capsys.readouterr().out == "a\\x1b[31m\n\\x9b31m=1+1\\x1b\n"
    print_table(rows)
    assert r"a\x1b[31m" in capsys.readouterr().out


def test_an_unknown_project_is_distinguished_from_an_empty_answer(run):
    assert run("query", "builds", "-p", "project=shpo").stderr.splitlines() == [
        "memgraph: no memory belongs to project 'shpo'; known projects: shop",
        "memgraph: the query returned no rows",
    ]
    assert "no memory belongs to project" not in run("query", "builds", "-p", "project=shop").stderr
    assert "no memory belongs to project" not in run("query", "builds", "-p", "project=").stderr


def test_csv_reads_back_as_it_was(run):
    text = run("query", "--cypher", ALL, "--csv").stdout_bytes.decode()
    names, first, second = csv.reader(io.StringIO(text, newline=""))
    assert names == ["content", "at", "tags", "sure", "project"]
    assert first == [HOSTILE, NOW, '["a, b", "c"]', "0.5", ""]
    assert json.loads(first[2]) == ["a, b", "c"]
    assert second == ["x" * 800, NOW, "[]", "1.0", "shop"]


def test_parquet_keeps_the_types(run, tmp_path):
    path = tmp_path / "rows.parquet"
    assert run("query", "--cypher", ALL, "--parquet", path).stdout == f"Wrote 2 rows to {path}.\n"
    frame = pl.read_parquet(path)
    assert frame.schema["at"] == pl.Datetime("ms", "UTC")
    assert frame["tags"][0].to_list() == ["a, b", "c"]
    assert frame["content"][0] == HOSTILE
    assert list(tmp_path.glob(".*")) == []  # no temporary file is left
    run("query", "builds", "--parquet", path)
    assert pq.read_table(path).num_rows == 0
    assert pq.read_table(path).column_names == [column.name for column in named_queries()["builds"].columns]


@pytest.mark.parametrize(("form", "stdout"), [((), b""), (("--csv",), b"x\n")])
def test_an_answer_without_rows_says_so_beside_it(run, form, stdout):
    result = run("query", "--cypher", "MATCH (b:Build) RETURN b.name AS x", *form)
    assert result.stdout_bytes == stdout
    assert result.stderr == "memgraph: the query returned no rows\n"


def test_parameters_are_of_the_headers_types(run):
    asked = ("query", "tags_by_trend", "--param", "at=2026-02-02", "-p", "days=7", "-p", "project=", "--json")
    assert {row["tag"] for row in json.loads(run(*asked).stdout)} == {"a, b", "c"}
    asked = ("query", "failures_by_file", "-p", "since=null", "-p", "limit=1", "--json")
    assert run(*asked).stdout == "[]\n"


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("-2.5", -2.5), ("true", True), ("null", None), ('"3"', "3"), ("[1]", "[1]"), ("NaN", "NaN"), ("a=b", "a=b"), ("", "")],
)  # fmt: skip
def test_ad_hoc_parameters_are_scalars_of_json_or_text(text, value):
    from memgraph.interfaces.cli.analysis.query import _scalar

    assert _scalar(text) == value
    assert type(_scalar(text)) is type(value)


def test_standard_input_is_asked(run):
    shown = run("query", "--cypher", "-", "-p", "n=3", stdin="// a note\nRETURN $n + 1 AS more\n")
    assert shown.stdout == "more\n   4\n"


@pytest.mark.parametrize(
    ("args", "exit_code", "says"),
    [
        (["nope"], 1, "there is no query 'nope'"),
        (["failures-by-file"], 1, "did you mean failures_by_file"),
        (["evidence_chain"], 1, "needs id (the memory's id, or its beginning): give --param id=…"),
        (["builds", "limit=5"], 2, "give a parameter as --param limit=5"),
        (["builds", "shop"], 2, "unexpected argument 'shop'"),
        (["builds", "-p", "most=1"], 1, "has no parameter 'most'; it takes project, outcome, at, limit"),
        (["builds", "-p", "limit=some"], 1, "limit: must be an integer (got 'some')"),
        (["builds", "-p", "limit=9223372036854775808"], 1, "limit: must be a 64-bit integer"),
        (["tags_by_trend", "-p", "at=2026-02-30"], 1, "at: must be a time"),
        (["tags_by_trend", "-p", "at="], 1, "at: must be a time"),
        (["--cypher", "MATCH (m:Memory) DELETE m"], 1, "DELETE; only read-only statements"),
        (["--cypher", "RETURN $x AS x"], 1, "uses $x, but no value is given"),
        (["--cypher", "RETURN 1 AS x", "-p", "y=1"], 1, "'y' is given, but the query does not use it"),
        (["--cypher", "RETURN m AS x"], 1, "the query failed"),
        (["--cypher", "MATCH (m:Memory) RETURN m.id; RETURN 1"], 1, "only one plain statement"),
        (
            ["--cypher", "MATCH (c:Comment) RETURN c"],
            1,
            "no label or relation Comment; there are the labels Memory, Run, Project",
        ),
        (["--cypher", "MATCH (c:Nothing) RETURN c"], 1, "In this graph there are the labels Memory, Run, Project"),
        (["--cypher", "MATCH (m)-[r]->(n) RETURN type(r)"], 1, "Use label(r) for the relation of an edge"),
        (["--cypher", "MATCH (m:Memory) RETURN m.text"], 1, "`memgraph queries schema` lists the properties"),
        (["--cypher", "MATCH (m:Memory) RETURN m.text"], 1, "the query failed: Cannot find property text for m."),
        (["--cypher", "MATCH (m:Memory) RETURN CAST(m.content AS INT64)"], 1, "the query failed: Cast failed."),
        (["--cypher", ""], 1, "must start with"),
        ([], 2, "name a query"),
        (["builds", "--cypher", "RETURN 1 AS x"], 2, "'builds' and --cypher cannot be combined"),
        (["builds", "--parquet", ""], 2, "must name a file"),
        (["builds", "-p", "limit=-1"], 1, "limit: must be at least 0 (got -1)"),
        (
            ["builds", "-p", "limit=10000000000000000000000"],
            1,
            "limit: is too large: must be a 64-bit integer",
        ),
        (
            ["builds", "-p", "limit=-10000000000000000000000"],
            1,
            "limit: is too small: must be a 64-bit integer",
        ),
        (["builds", "-p", "project=\udcff"], 1, "project: is not UTF-8 text"),
        (["hot_knowledge", "-p", "type=nonsense"], 1, "type: must be one of '', 'episodic', 'semantic', 'procedural'"),
        (
            ["--cypher", "RETURN $x AS v", "-p", f"x={'9' * 45}"],
            1,
            "the parameter 'x' is too large: integers have at most 64",
        ),
        (["--cypher", "RETURN $x AS v", "-p", "x=\udcff"], 1, "the parameter 'x' is not UTF-8 text"),
        (["builds", "-p", "limit"], 2, "is not NAME=VALUE"),
        (["builds", "-p", "limit=1", "-p", "limit=2"], 2, "given twice"),
        (["builds", "--json", "--csv"], 2, "cannot be combined"),
        (["builds", "--parquet", "no/such/folder/x.parquet"], 1, "x.parquet: cannot be written"),
    ],
)
def test_what_cannot_be_asked_is_refused(run, args, exit_code, says):
    result = run("query", *args, exit_code=exit_code)
    assert says in result.stderr
    assert result.stdout == "" or json.loads(result.stdout)["error"]["exit_code"] == exit_code
    assert exit_code == 2 or result.stderr.startswith("memgraph: ")


def test_a_refusal_makes_no_store(run, tmp_path):
    run("query", "nope", home=tmp_path / "none", exit_code=1)
    run("query", "builds", "-p", "limit=x", home=tmp_path / "none", exit_code=1)
    run("queries", home=tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_parquet_without_pyarrow_says_what_installs_it(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = run("query", "builds", "--parquet", tmp_path / "x.parquet", exit_code=1)
    assert "pip install 'memgraph-kuzu[parquet]'" in result.stderr
    assert not (tmp_path / "x.parquet").exists()


def test_the_store_as_it_was_is_asked(run):
    assert "bob" in run("query", "agents_by_outcome", "--as-of", "2026-02-01").stdout
    before = run("query", "agents_by_outcome", "--as-of", "2025-01-01", exit_code=1)
    assert "is before the first remembered event" in before.stderr


def test_a_semicolon_may_end_a_query(run):
    plain = run("query", "--cypher", "MATCH (m:Memory) RETURN count(*) AS n").stdout
    assert run("query", "--cypher", "MATCH (m:Memory) RETURN count(*) AS n ;\n").stdout == plain
    (row,) = json.loads(run("query", "--cypher", "RETURN 'a;' AS x;", "--json").stdout)
    assert row == {"x": "a;"}


def test_the_schema_names_every_label_relation_and_property(run):
    listed = {one["name"]: one for one in json.loads(run("queries", "schema", "--json").stdout)}
    assert listed["Memory"]["properties"]["content"] == "STRING"
    assert listed["SUPERSEDES"]["between"] == ["Memory", "Memory"]
    text = run("queries", "schema").stdout
    assert "(:Memory)\n" in text
    assert "(Memory)-[:SUPERSEDES]->(Memory)\n" in text
    names = [
        row["name"]
        for row in json.loads(run("query", "--cypher", "MATCH (n) RETURN DISTINCT label(n) AS name", "--json").stdout)
    ]
    assert names
    assert set(names) - {"MemoryRow", "Projection"} <= listed.keys()


def test_queries_are_listed_and_shown(run):
    text = run("queries").stdout
    assert all(f"\n{name}" in f"\n{text}" for name in named_queries())
    assert "`memgraph queries schema` lists the labels, relations and properties" in " ".join(text.split())
    assert "memgraph queries schema" in " ".join(run("query", "--help").stdout.split())
    assert "builds [project=''] [outcome=''] [at=now] [limit=20]\n    each build's memories" in text
    listed = json.loads(run("queries", "list", "--json").stdout)
    assert [one["name"] for one in listed] == sorted(named_queries())
    trend = next(one for one in listed if one["name"] == "tags_by_trend")
    assert [(one["name"], one["default"]) for one in trend["parameters"]] == [
        ("project", ""), ("days", 30), ("at", "now"), ("limit", 20)
    ]  # fmt: skip
    assert trend["columns"][0] == {"name": "tag", "type": "STRING", "about": None}
    assert run("queries", "show", "builds").stdout == named_queries()["builds"].text
    assert json.loads(run("queries", "show", "about_entity", "--json").stdout)["parameters"][0]["required"] is True
    assert "did you mean builds" in run("queries", "show", "build", exit_code=1).stderr


def test_what_cannot_be_seen_is_shown_as_its_code():
    assert visible(HOSTILE) == TOLD
    assert visible("plain") == "plain"
    assert visible("\ufeff\x00\U000e0041") == r"\ufeff\x00\U000e0041"
