"""The log says what was done and how long it took; never what is remembered, what was asked, or a key."""

from __future__ import annotations

import json
import logging
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import memgraph
from memgraph.errors import EmbeddingError, GraphError, MemGraphError, QueryError
from memgraph.extraction.readers import BuildLogReader
from memgraph.interfaces.cli.group import cli
from memgraph.logs import timed
from memgraph.model.build import BuildEventLog
from memgraph.testing import FakeEmbedder

MARKER = "quetzalcoatl"
TEXT = f"The build of {MARKER} failed in {MARKER}.py because of a timeout"
BUILD = {
    "build_id": f"{MARKER}-1",
    "project_id": MARKER,
    "build_outcome": "failure",
    "started_at": "2026-01-05T10:00:00Z",
    "completed_at": "2026-01-05T10:04:00Z",
    "tasks": [{"task_id": MARKER, "agent_name": MARKER, "description": TEXT, "output": f"Error: {TEXT}", "outcome": "failure"}],
}  # fmt: skip


class _Kept(logging.Handler):
    def __init__(self, records: list[logging.LogRecord]) -> None:
        super().__init__()
        self.records = records

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def records() -> Iterator[list[logging.LogRecord]]:
    """Return what is logged from here on, at every level."""
    logger, handler = logging.getLogger("memgraph"), _Kept([])
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler.records
    logger.removeHandler(handler)
    logger.setLevel(before)


class _Failing(FakeEmbedder):
    def embed(self, texts: Any) -> Any:
        raise EmbeddingError("the model is not there")

    embed_query = embed  # type: ignore[assignment]


def refused(call: Any, *args: Any, **options: Any) -> None:
    with pytest.raises(MemGraphError):
        call(*args, **options)


def everything(open_store: Any, tmp_path: Path) -> Any:
    """Do everything that can be done with a memory, and some things that cannot; return the store, closed."""
    store = open_store(embedder=_Failing(64))
    store.insert_memory({"type": "episodic", "content": f"{TEXT} without a vector"})
    store.close()
    store = open_store()
    retrieval, commands = memgraph.MemoryRetrieval(store), memgraph.MemoryCommands(store)
    pipeline = memgraph.ConsolidationPipeline(store)
    fields = {
        "project_id": MARKER,
        "tags": [MARKER],
        "session_id": MARKER,
        "title": MARKER,
        "agents_involved": [MARKER],
    }
    ids = [store.insert_memory({"type": "episodic", "content": f"{TEXT} {n}", **fields}).id for n in range(3)]
    store.insert_memories([{"type": "semantic", "content": f"{TEXT} in bulk {n}", **fields} for n in range(40)])
    store.update_memory(ids[0], content=f"{MARKER} again", reason=MARKER)
    store.link(ids[1], "SUPERSEDES", ids[2], reason=MARKER)
    result = retrieval.retrieve({"task_description": f"change {MARKER}.py", "agent_name": MARKER, "project_id": MARKER})
    store.record_outcome(result.query_id, "success", used=[result.memories[0].id])
    retrieval.search_memories(MARKER)
    for ask in (commands.remember, commands.ask, commands.forget):
        ask(f"{TEXT} and {MARKER}")
    pipeline.consolidate(BuildEventLog.parse(BUILD))
    path = tmp_path / "builds.jsonl"
    path.write_text(json.dumps(BUILD | {"build_id": "b2"}) + f"\n{{{MARKER}\n", "utf-8")
    memgraph.MemGraph(store).ingest(BuildLogReader(path, project_id=MARKER))
    exported = commands.export_memories()
    store.delete_memory(ids[2])
    store.cypher("MATCH (m:Memory) WHERE m.content CONTAINS $text RETURN m.content", text=MARKER)
    refused(store.cypher, f"MATCH (m:{MARKER}) RETURN m")
    refused(store.cypher, f"MATCH (m:Memory) SET m.content = '{MARKER}'")
    refused(store.cypher, f"MATCH (m:Memory) RETURN m.{MARKER}")
    refused(store.insert_memory, {"type": "episodic", "content": MARKER * 200})
    refused(store.insert_memory, {"type": "episodic", "content": MARKER, "outcome": MARKER, "tags": [1]})
    refused(store.update_memory, ids[0], no_field=MARKER)
    store.rebuild()
    store.verify(deep=True)
    store.embed_awaiting()
    store.close()
    other = open_store("other")
    memgraph.MemoryCommands(other).import_memories(exported)
    broken = {"version": "1.0", "memories": [{"content": MARKER}]}
    assert not memgraph.MemoryCommands(other).import_memories(broken).success
    other.close()
    return store


def test_nothing_remembered_asked_or_secret_is_logged(
    open_store: Any, tmp_path: Path, records: list[logging.LogRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = everything(open_store, tmp_path)

    with monkeypatch.context() as broken:  # the engine quotes what it was given

        def fail(*_args: Any, **_options: Any) -> None:
            broken.undo()
            raise GraphError("the graph engine refused", engine_says=f"could not read {TEXT}")

        broken.setattr("memgraph.graph.process.EngineProcess.ask", fail)
        with open_store() as again:
            again.cypher("MATCH (m:Memory) RETURN count(*)")
    with closing(sqlite3.connect(tmp_path / "store" / "memgraph.db")) as raw, raw:
        assert raw.execute("UPDATE node SET body = ?", (TEXT.encode(),)).rowcount > 0
    with open_store() as again:
        again.digest()
    for path in (tmp_path / "store" / "index").iterdir():
        path.write_bytes(b"PK" + TEXT.encode())
    assert open_store().reader.index

    secrets = [json.loads(path.read_text())["secret"] for path in (tmp_path / "keys" / "keys").iterdir()]
    said = [f"{record.name} {record.getMessage()} {record.args} {record.exc_info} {record.exc_text}" for record in records if record.name.startswith("memgraph")]  # fmt: skip
    assert len(said) > 30
    assert [line for line in said if MARKER in line.lower()] == []
    assert [line for line in said if any(secret in line for secret in secrets)] == []
    text = "\n".join(said)
    for what in ("opened the journal", "appended to the journal", "wrote rows", "rebuilt rows and index",
                 "built the index", "ranked for a recall", "answered a query", "read a source", "rebuilding the rows from the journal", "the graph is written anew: the graph engine refused"):  # fmt: skip
        assert what in text, what
    assert store.store_id


def test_every_record_comes_from_its_modules_own_logger(
    open_store: Any, tmp_path: Path, records: list[logging.LogRecord]
) -> None:
    open_store().insert_memory({"type": "episodic", "content": "plain"})
    own = [record for record in records if record.name.startswith("memgraph")]
    assert own
    for record in own:
        assert record.name in sys.modules
        module = Path(str(sys.modules[record.name].__file__))
        assert record.pathname == str(module) or record.pathname.endswith("logs.py")


def test_a_program_without_handlers_hears_nothing(tmp_path: Path) -> None:
    program = (
        "import sys, memgraph\nfrom pathlib import Path\nfrom memgraph.testing import FakeEmbedder\n"
        "home = Path(sys.argv[1])\n"
        "config = memgraph.AgentMemoryConfig(home=home / 's', keys_home=home / 'k')\n"
        "with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(8)) as store:\n"
        "    store.insert_memory({'type': 'episodic', 'content': 'x'})\n"
        "next((home / 'k' / 'heads').iterdir()).unlink()\n"
        "with memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(8)) as store:\n"
        "    assert store.notices\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_a_failed_block_is_not_reported_as_done(records: list[logging.LogRecord]) -> None:
    logger = logging.getLogger("memgraph.tests")
    with timed(logger, logging.INFO, "did it") as counts:
        counts["rows"] = 3
    with pytest.raises(ValueError, match="no"), timed(logger, logging.INFO, "did that"):
        raise ValueError("no")
    (record,) = [record for record in records if record.name == "memgraph.tests"]
    assert re.fullmatch(r"did it in [\d.]+ ms, rows 3", record.getMessage())


def test_what_a_log_may_say_of_an_error() -> None:
    assert GraphError("it broke", engine_says=TEXT).loggable == "it broke"
    assert TEXT in str(GraphError("it broke", engine_says=TEXT))
    assert QueryError(TEXT).loggable == "QueryError"
    assert memgraph.InvalidInputError("is wrong", field="content", value=TEXT).loggable == "InvalidInputError"
    assert memgraph.BusyError("the graph", pid=7, timeout_s=1.0).loggable.startswith("the graph has been held")


class TestTheCommandLine:
    @pytest.fixture
    def run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        for module in ("memgraph.store.store", "memgraph.embedding"):
            monkeypatch.setattr(f"{module}.default_embedder", lambda *_: FakeEmbedder(dimension=64))

        def call(*args: str) -> Any:
            return CliRunner().invoke(cli, ["--home", str(tmp_path / "store"), *args])

        return call

    def test_verbose_before_and_after_the_name(self, run: Any) -> None:
        assert run("remember", TEXT).stderr == ""
        for args in (["-v", "recall", MARKER], ["recall", MARKER, "--verbose"]):
            result = run(*args)
            assert "INFO memgraph.journal.opening: opened the journal in" in result.stderr
            assert "DEBUG" not in result.stderr
            assert "## Standing rules" in result.stdout
        debug = run("-vv", "recall", MARKER).stderr
        assert "DEBUG memgraph.retrieval.retrieval: ranked for a recall" in debug
        assert MARKER not in debug

    def test_the_environment_sets_the_level_too(self, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MEMGRAPH_LOG", "debug")
        assert "DEBUG memgraph" in run("remember", TEXT).stderr
        assert "DEBUG" not in run("-v", "recall", MARKER).stderr
        monkeypatch.setenv("MEMGRAPH_LOG", "error")
        assert run("stats").stderr == ""
        monkeypatch.setenv("MEMGRAPH_LOG", "loud")
        result = run("stats")
        assert result.exit_code == 1
        assert "MEMGRAPH_LOG is 'loud'" in result.stderr

    def test_warnings_are_logged_once_either_way(self, run: Any, isolated_environment: Path) -> None:
        run("remember", TEXT)
        head = next((isolated_environment / "keys" / "heads").iterdir())
        for args in (["stats"], ["-v", "stats"]):
            head.unlink()
            assert run(*args).stderr.count("adopted a journal") == 1
        assert logging.getLogger("memgraph").level == logging.NOTSET
