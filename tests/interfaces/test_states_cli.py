"""Commands that change the state of memories: effect, output and undo."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph.interfaces.cli.group import cli

TEXT = "Deploy on Tuesdays only"
GONE = "00000000-0000-4000-8000-000000000000"
Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, settings: Callable[[], Any]) -> Run:
    """Run one command in this process, against one store."""

    def call(*args: object) -> Any:
        return CliRunner().invoke(
            cli,
            ["--home", str(tmp_path / "store"), *map(str, args)],
            prog_name="memgraph",
            obj=settings(),
        )

    return call


@pytest.fixture
def done(run: Run) -> Run:
    """Run a command that must succeed, and return what it printed on stdout."""

    def call(*args: object) -> str:
        result = run(*args)
        assert result.exit_code == 0, result.output
        return str(result.stdout)

    return call


@pytest.fixture
def refused(run: Run) -> Run:
    """Run a command that must be refused, and return its one line on stderr."""

    def call(*args: object) -> str:
        result = run(*args)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith("memgraph: ")
        assert result.stderr.count("\n") == 1
        return str(result.stderr)

    return call


@pytest.fixture
def memory_id(done: Run) -> str:
    return str(json.loads(done("remember", TEXT, "--json"))["data"]["ids"][0])


def undo_of(message: str) -> list[str]:
    """Return the arguments of the command that a message names to take it back."""
    found = re.search(r"undo: memgraph ([^.;\n]*)", message)
    assert found, message
    return found[1].split()


def listed(done: Run, *options: object) -> list[str]:
    return [entry["id"] for entry in json.loads(done("list", "--json", *options))]


@pytest.mark.parametrize(
    ("way", "options", "state"),
    [
        ("forget", [], "suppressed"),
        ("archive", ["--reason", "old", "--summary", "weekdays"], "archived"),
        ("invalidate", ["--reason", "changed"], "invalidated"),
        ("delete", ["--reason", "mistaken"], None),
    ],
)
def test_a_way_out_and_the_way_back_that_it_names(
    done: Run, refused: Run, memory_id: str, way: str, options: list[str], state: str | None
) -> None:
    message = done(way, memory_id[:8], *options)
    assert TEXT in message
    assert listed(done) == []
    if state is None:
        assert memory_id in refused("show", memory_id)
    else:
        assert listed(done, "--state", state) == [memory_id]
        assert all(option in done("show", memory_id[:12]) for option in options[1::2])
    back = undo_of(message)
    assert back[1] == memory_id
    again = done(back[0], memory_id[:8])
    assert TEXT in again
    assert listed(done) == [memory_id]
    assert undo_of(again) == [way, memory_id]  # and that can be taken back, too


def test_each_answers_in_json(done: Run, memory_id: str) -> None:
    other = json.loads(done("remember", "Deploy on any day", "--json"))["data"]["ids"][0]
    for args in (
        ["forget", memory_id], ["unforget", memory_id], ["archive", memory_id], ["unarchive", memory_id],
        ["invalidate", memory_id], ["revalidate", memory_id], ["supersede", memory_id, "--by", other],
        ["unsupersede", memory_id], ["delete", memory_id], ["undelete", memory_id],
    ):  # fmt: skip
        document = json.loads(done(*args, "--json"))
        assert (document["command"], document["success"], document["data"]["id"]) == (args[0], True, memory_id)
        assert "undo: memgraph" in document["message"]
    made = json.loads(done("link", memory_id, "supports", other, "--json"))
    assert (made["data"]["source_id"], made["data"]["relation"], made["data"]["target_id"]) == (
        memory_id,
        "SUPPORTS",
        other,
    )
    assert json.loads(done("unlink", memory_id, "supports", other, "--json"))["data"]["relation"] == "SUPPORTS"


def test_unforget_by_text(done: Run, refused: Run, memory_id: str) -> None:
    assert "No suppressed memory" in refused("unforget", TEXT)
    done("forget", TEXT)
    assert f"memgraph forget {memory_id}" in done("unforget", TEXT)
    assert listed(done) == [memory_id]


def test_what_is_still_out_is_told(done: Run, memory_id: str) -> None:
    done("forget", memory_id)
    done("archive", memory_id)
    done("invalidate", memory_id)
    told = done("unforget", memory_id)
    assert f"still archived: memgraph unarchive {memory_id}" in told
    assert f"still invalid: memgraph revalidate {memory_id}" in told
    assert f"still invalid: memgraph revalidate {memory_id}" in done("unarchive", memory_id)
    assert "still" not in done("revalidate", memory_id)
    assert listed(done) == [memory_id]


def test_a_time_to_come(done: Run, refused: Run, memory_id: str) -> None:
    assert "2099-01-01T00:00:00.000Z" in done("invalidate", memory_id, "--at", "2099-01-01")
    assert listed(done) == [memory_id]
    assert "ISO 8601" in refused("invalidate", memory_id, "--at", "soon")


def test_supersede_and_back(done: Run, refused: Run, memory_id: str) -> None:
    newer = json.loads(done("remember", "Deploy on any day", "--json"))["data"]["ids"][0]
    message = done("supersede", memory_id[:8], "--by", newer[:8], "--reason", "faster tests")
    assert listed(done, "--state", "superseded") == [memory_id]
    assert "is itself superseded" in refused("supersede", newer, "--by", memory_id)
    again = done(*undo_of(message))
    assert listed(done, "--state", "superseded") == []
    assert "not superseded" in refused("unsupersede", memory_id)
    done(*undo_of(again))
    assert listed(done, "--state", "superseded") == [memory_id]
    assert undo_of(done("unsupersede", memory_id)) == ["supersede", memory_id, "--by", newer]


def test_link_and_unlink(done: Run, refused: Run, memory_id: str) -> None:
    other = json.loads(done("remember", "Deploy on any day", "--json"))["data"]["ids"][0]
    message = done("link", memory_id[:8], "contradicts", other[:8], "--reason", "r")
    assert "CONTRADICTS" in done("show", other)
    again = done(*undo_of(message))
    assert "CONTRADICTS" not in done("show", other)
    assert undo_of(again) == ["link", memory_id, "CONTRADICTS", other]
    assert "there is no link" in refused("unlink", memory_id, "contradicts", other)
    assert "relation" in refused("unlink", memory_id, "likes", other)


def test_an_undeleted_memory_has_its_links(done: Run, memory_id: str) -> None:
    other = json.loads(done("remember", "Deploy on any day", "--json"))["data"]["ids"][0]
    done("link", other, "supersedes", memory_id)
    before = json.loads(done("show", memory_id, "--json"))
    done("delete", memory_id)
    done("undelete", memory_id[:8])
    assert json.loads(done("show", memory_id, "--json")) == before


@pytest.mark.parametrize(
    "args", [["archive"], ["unarchive"], ["invalidate"], ["revalidate"], ["delete"], ["undelete"], ["show"], ["unsupersede"]]
)  # fmt: skip
def test_ids_that_mean_nothing_are_refused(refused: Run, args: list[str]) -> None:
    assert "no memory with id" in refused(*args, GONE)
    assert "no memory with id" in refused(*args, GONE[:8])
    assert "first 8 characters" in refused(*args, "abc")


def test_a_beginning_of_several_ids_names_them(done: Run, refused: Run, tmp_path: Path) -> None:
    ids = [f"abcdef01-0000-4000-8000-00000000000{n}" for n in (1, 2)]
    memories = [{"type": "semantic", "id": key, "content": f"Memory {key[-1]}"} for key in ids]
    export = tmp_path / "export.json"
    document = {"version": "1.0.0", "exportedAt": "2026-01-01", "totalMemories": 2, "memories": memories, "links": []}
    export.write_text(json.dumps(document), "utf-8")
    done("import", export)
    for command in ("show", "archive", "forget"):
        told = refused(command, "abcdef01")
        assert all(key in told for key in ids)
    done("delete", ids[0])
    done("delete", ids[1])
    assert all(key in refused("undelete", "abcdef01") for key in ids)
    done("undelete", ids[0])
    done("undelete", "abcdef01")  # only one of them is still deleted
    assert sorted(listed(done)) == ids


def test_a_log_that_repeats_a_forgotten_memory_is_reported(done: Run, tmp_path: Path) -> None:
    def ingest(number: int) -> str:
        task = {
            "taskId": "t1",
            "agentName": "mars",
            "description": "Add retries to the payment client",
            "outcome": "failure",
            "output": "TimeoutError: gateway did not answer in 30 s",
        }
        times = {"startedAt": "2026-01-05T10:00:00Z", "completedAt": "2026-01-05T10:30:00Z"}
        build = {"buildId": f"b{number}", "projectId": "shop", "buildOutcome": "failure", "tasks": [task], **times}
        path = tmp_path / f"builds{number}.jsonl"
        path.write_text(json.dumps(build) + "\n", "utf-8")
        return done("ingest", "builds", path)

    assert "Left out" not in ingest(1)
    for memory_id in listed(done):
        done("forget", memory_id)
    assert "repeats what was forgotten or deleted" in ingest(2)
    assert listed(done) == []
