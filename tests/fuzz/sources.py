"""Targets: the readers of build logs and histories, and the settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import memgraph
from memgraph.config import load_config
from memgraph.extraction.annotate import RuleAnnotator
from memgraph.extraction.readers import BuildLogReader, Reader, SavedGitLogReader
from memgraph.extraction.readers import git as git_reader
from memgraph.extraction.readers.commits import RecentCommits, grouped
from memgraph.extraction.rules.extractor import RuleExtractor
from memgraph.extraction.secrets import redact_any
from tests.fuzz.harness import Target, afterwards
from tests.fuzz.mutation import (
    expanded,
    mutated,
    mutated_bytes,
    mutated_text,
    odd_value,
    random_document,
    read,
    written,
)

BUILD = {
    "buildId": "b1",
    "projectId": "shop",
    "startedAt": "2026-01-05T10:00:00Z",
    "completedAt": "2026-01-05T10:30:00Z",
    "buildOutcome": "failure",
    "buildSummary": "Checkout work: use `retry`, not sleep",
    "tasks": [
        {
            "taskId": "t1",
            "agentName": "mars",
            "description": "Add retries to the payment client",
            "outcome": "failure",
            "output": 'Traceback:\n  File "src/payment.py", line 3\nTimeoutError: no answer in 30 s',
            "aceScore": 0.4,
            "filesChanged": ["src/payment.py"],
            "occurredAt": "2026-01-05T10:10:00Z",
        },
        {
            "taskId": "t2",
            "agentName": "venus",
            "description": "Retry, then it passed",
            "outcome": "success",
            "reverts": "t1",
        },
    ],
    "userInterventions": [
        {"timestamp": "2026-01-05T10:20:00Z", "action": "No, always use backoff", "context": "数据库"}
    ],
}
SNAKE = {
    "build_id": "b2",
    "build_outcome": "success",
    "started_at": "2026-01-06",
    "completed_at": "2026-01-06T01:00:00+02:00",
    "tasks": [{"task_id": "t", "agent_name": "m", "description": "d", "outcome": "partial"}],
}
GIT_LOG = b"""commit 3f786850e387550fdab836ed7e6dc881de23001b (HEAD -> main, tag: v1)
Author: Ada L\xc3\xb6ve <ada@example.org>
Date:   Thu Feb 5 10:00:00 2026 +0100

    Revert "Cache totals"

    This reverts commit 89e6c98d92887913cadf06b2adb97f26cde4849b.

M\tsrc/cart.py
R100\tsrc/old name.py\t"src/n\\303\\244w.py"

commit 89e6c98d92887913cadf06b2adb97f26cde4849b
Merge: 1234567 89abcde
Author: Ada <ada@example.org>
Date:   2026-02-05 09:30:00 +0100

    Cache totals

    Signed-off-by: Ada <ada@example.org>

A\tsrc/cache.py

commit 2b66fd261ee5c6cfc8de7fa466bab600bcfe4f69
Author: Bob <b@example.org>
Date:   Wed, 4 Feb 2026 08:00:00 +0000

    WIP: first
"""
GIT_TOKENS = b"\0".join(
    [
        b"3f786850e387550fdab836ed7e6dc881de23001b\nAda\n2026-02-05T10:00:00+01:00\nCache totals\n\nBody\n",
        *(b"\nM", b"src/cart.py", b"R100", b"old", b"new"),
        b"89e6c98d92887913cadf06b2adb97f26cde4849b\nBob\n2026-02-05T12:00:00Z\nRevert \"Cache totals\"\n",
        b"2b66fd261ee5c6cfc8de7fa466bab600bcfe4f69\nBob\n2026-02-09T12:00:00Z\nReapply \"Cache totals\"\n",
    ]
)  # fmt: skip
SETTINGS = """
consolidation_enabled = true
compression_cycle_interval = 10
garbage_collection = "archive"
security_mode = "prod"
lock_timeout_s = 10.0
keys_home = "/nowhere/keys"

[retrieval_budget]
episodic = 5
max_tokens = 800

[forgetting_curve]
decay_rate = 0.05
max_relevance = 1.0
"""
ENVIRONMENT = {
    "MEMGRAPH_SECURITY_MODE": "dev",
    "MEMGRAPH_LOCK_TIMEOUT_S": "5",
    "MEMGRAPH_CONSOLIDATION_ENABLED": "no",
    "MEMGRAPH_GARBAGE_COLLECTION": "delete",
    "MEMGRAPH_KEYS_HOME": "~/keys",
}
_WORDS = [
    "commit ",
    "Author: ",
    "Date:   ",
    "\n",
    "    ",
    "\t",
    "R100\t",
    '"\\303',
    "1970-01-01 00:00:00 +2500",
    "Feb 30 2026",
]


def drained(reader: Reader, cursor: str | None) -> bool:
    """Read a source to its end, and extract from each build; return whether it held any."""
    builds = 0
    assert reader.count() is None or reader.count() >= 0  # type: ignore[operator]
    str(reader.source_id).encode()
    for record in reader.records(cursor):
        assert record.build is not None or record.skipped, "neither a build nor a reason"
        record.cursor.encode()
        (record.skipped or "").encode("utf-8", "backslashreplace")
        if record.build is not None:
            builds += 1
            with afterwards():
                found = RuleExtractor().extract(redact_any(record.build).value)
                for candidate in found.candidates:
                    RuleAnnotator().annotate(candidate.memory)
    return builds > 0


@contextmanager
def builds_target(folder: Path) -> Iterator[Target]:
    """A file of build logs: one document, an array, or lines."""
    whole = [json.dumps(BUILD, ensure_ascii=False).encode(), json.dumps([BUILD, SNAKE], indent=1).encode()]
    lines = b"".join(json.dumps(build).encode() + b"\n" for build in (BUILD, SNAKE, BUILD))
    paths = {name: folder / f"log{name}" for name in (".json", ".jsonl", ".txt")}

    def make(rng: Random) -> bytes:
        name, cursor = (
            rng.choice(sorted(paths)),
            _cursor(rng, ["", "lines:120:1:0123456789abcdef", "whole:1:0123456789abcdef"]),
        )
        way = rng.random()
        if way < 0.4:
            data = mutated_bytes(rng, rng.choice([*whole, lines]), [*whole, lines])
        elif way < 0.45:
            data = _json(random_document(rng))
        elif way < 0.5:
            data = rng.choice([b"[", b'{"tasks":[']) * rng.choice([1, 500, 50_000])
        else:
            made = [_json(mutated(rng, rng.choice([BUILD, SNAKE]))) for _ in range(rng.randrange(1, 3))]
            data = b"\n".join(made) if rng.random() < 0.5 else b"[" + b",".join(made) + b"]"
        return f"{name} {json.dumps(cursor)}\n".encode() + data

    def run(case: bytes) -> bool:
        first, _, data = case.partition(b"\n")
        name, cursor = first.decode().split(" ", 1)
        paths[name].write_bytes(data)
        limits = {"max_line_bytes": 100_000, "max_whole_bytes": 1_000_000}
        return drained(BuildLogReader(paths[name], **limits), json.loads(cursor))

    yield Target(make, run)


@contextmanager
def history_target(folder: Path) -> Iterator[Target]:
    """The text of a saved ``git log``, and what git itself prints."""
    path = folder / "history.txt"

    def make(rng: Random) -> bytes:
        if rng.random() < 0.3:
            return b"git\n" + mutated_bytes(rng, GIT_TOKENS, [GIT_LOG])
        cursor = json.dumps(_cursor(rng, ["", "2b66fd261ee5c6cfc8de7fa466bab600bcfe4f69@0"])).encode()
        if rng.random() < 0.5:
            return cursor + b"\n" + mutated_bytes(rng, GIT_LOG, [GIT_LOG, GIT_TOKENS])
        text = mutated_text(rng, GIT_LOG.decode(), _WORDS)
        return cursor + b"\n" + text.encode("utf-8", "surrogatepass")

    def run(case: bytes) -> bool:
        first, _, data = case.partition(b"\n")
        if first == b"git":
            commits = ((commit, "a:b:c") for commit in git_reader._parsed(git_reader._tokens(BytesIO(data)), {}))
            records = list(grouped(commits, project_id="p", cursor="", recent=RecentCommits(2)))
            return any(record.build for record in records)
        path.write_bytes(data)
        return drained(SavedGitLogReader(path), json.loads(first))

    yield Target(make, run)


@contextmanager
def settings_target(folder: Path) -> Iterator[Target]:
    """``config.toml``, the environment, and arguments."""

    def make(rng: Random) -> bytes:
        text, environment, arguments = SETTINGS, ENVIRONMENT, {}
        way = rng.randrange(4)
        if way == 0:
            text = mutated_bytes(rng, SETTINGS.encode()).decode("latin-1")
        elif way == 1:
            text = mutated_text(
                rng, SETTINGS, ["=", "[", "]]", "[[a]]", '"""', "inf", "nan", "1979-05-27", "0x7f", "\\u0000", "#"]
            )
        elif way == 2:
            environment = mutated(rng, ENVIRONMENT)
        else:
            arguments = mutated(
                rng, {"lock_timeout_s": 1.0, "forgettingCurve": {"decay_rate": 0.1}, "retrieval_budget": {}}
            )
        kept = rng.random() < 0.5
        return written([text if way < 2 or kept else "", "latin-1" if way == 0 else "utf-8", environment, arguments])

    def run(case: bytes) -> bool:
        text, encoding, environment, arguments = read(case)
        (folder / "config.toml").write_bytes(
            text.encode(encoding, "surrogatepass" if encoding == "utf-8" else "strict")
        )
        given = arguments if isinstance(arguments, dict) else {}
        variables = {name: value for name, value in environment.items() if isinstance(value, str)}
        config = load_config({**given, "home": folder}, environment=variables)
        assert isinstance(config, memgraph.AgentMemoryConfig)
        assert config.keys_home.is_absolute()
        assert config.lock_timeout_s >= 0
        return True

    yield Target(make, run)


def _cursor(rng: Random, known: list[str]) -> str | None:
    return rng.choice([None, *known, mutated_text(rng, rng.choice(known)), str(odd_value(rng))])


def _json(document: Any) -> bytes:
    try:
        text = json.dumps(expanded(document), ensure_ascii=False)
    except RecursionError:
        text = "[" * 20_000
    return text.encode("utf-8", "surrogatepass")
