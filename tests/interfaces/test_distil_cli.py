"""``memgraph distil``: what an agent pipes, what a person reads, and what is refused."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph import MemGraph
from memgraph.interfaces.cli.base.options import Settings
from memgraph.interfaces.cli.group import cli
from memgraph.lifecycle import sleep
from memgraph.testing import FakeEmbedder
from tests.unit.lifecycle.distillation.stories import failure, fix, statement


@pytest.fixture
def run(tmp_path: Path) -> Any:
    def invoke(*args: str, given: str | None = None, code: int = 0, stdout: bool = False) -> str:
        result = CliRunner().invoke(
            cli, ["--home", str(tmp_path / "s"), *args], input=given, obj=Settings(embedder=FakeEmbedder())
        )
        assert result.exit_code == code, result.output
        return result.stdout if stdout or not code else result.stderr

    with MemGraph.open(tmp_path / "s", embedder=FakeEmbedder()) as memory:
        memory.store.insert_memories([failure(1, content="It failed\x1b[2J: lock"), fix(2), failure(3)])
        sleep(memory.store, phases=["work-orders"])
    return invoke


def test_an_agent_can_pipe_an_order_and_its_answer(run: Any, tmp_path: Path) -> None:
    [listed] = json.loads(run("distil", "list", "--json"))
    sheet = json.loads(run("distil", "show", listed["id"], "--json"))
    assert sheet["order"] == listed
    assert sheet["reply_schema"]["properties"]["statements"]["items"]["properties"].keys() == {
        "type", "content", "outcome", "tags", "confidence", "evidence", "event_date", "location", "decision", "alternatives", "trigger",
        "steps", "agents", "cues", "is_rule",
    }  # fmt: skip
    assert sheet["fenced_excerpt"].splitlines()[0].strip("<>") in sheet["instructions"]
    said = json.dumps({"statements": [statement(event_date="", location="", agents=[])]})
    result = json.loads(
        run("distil", "answer", listed["id"], "-", "--by", "small-model", "--trust", "tool", "--json", given=said)
    )
    assert len(result["new_memory_ids"]) == 1
    again = tmp_path / "answer.json"
    again.write_text(said)
    assert "answered before, by small-model" in run("distil", "answer", listed["id"], str(again))
    assert json.loads(run("distil", "--json")) == []
    [closed] = json.loads(run("distil", "list", "--all", "--json"))
    assert (closed["state"], closed["answer_trust_class"]) == ("answered", "tool")


def test_what_a_person_reads(run: Any) -> None:
    line = run("distil")
    order_id = line[:8]
    assert re.search(r"0\.75  2026-01-03  returned failure, shop: 3 memories, “.*lock.*”$", line.strip())
    shown = run("distil", "show", order_id)
    assert "one worker per queue" in shown
    assert "\x1b" not in shown
    assert "Skipped the work order" in run("distil", "skip", order_id, "--reason", "no")
    assert run("distil") == "No work order is open.\n"
    assert "(skipped)" in run("distil", "list", "--all", "--limit", "1", "--project", "shop")
    assert run("distil", "list", "--all", "--project", "other") == "There are no work orders.\n"


def test_orders_about_different_files_can_be_told_apart(run: Any, tmp_path: Path) -> None:
    entries = "".join(
        f"commit {number:040x}\nAuthor: Ann <a@x.example>\nDate:   2026-01-{number:02} 12:00:00 +0000\n\n"
        f"    Fix the handle\n\nM\t{'cup' if number % 2 else 'jug'}.py\n\n"
        for number in reversed(range(1, 11))
    )
    (log := tmp_path / "shop.log").write_text(entries)
    run("ingest", "git", str(log))
    run("sleep", "--phase", "counting")
    run("sleep", "--phase", "work-orders")
    lines = [line for line in run("distil").splitlines() if "community" in line]
    assert sorted(line.split("“")[1][:20] for line in lines) == ["cup.py is a hot spot", "jug.py is a hot spot"]


def test_ingest_asks_about_a_long_session(run: Any, tmp_path: Path) -> None:
    task = {"agent_name": "A", "outcome": "success"}
    tasks = [{**task, "task_id": f"t{number}", "description": f"Look at file {number}"} for number in range(40)]
    log = {"build_id": "s1", "project_id": "shop", "build_outcome": "success", "tasks": tasks}
    path = tmp_path / "session.json"
    path.write_text(json.dumps({**log, "started_at": "2026-01-05", "completed_at": "2026-01-06"}))
    run("ingest", "builds", str(path))
    [order] = [one for one in json.loads(run("distil", "--json")) if one["kind"] == "long session"]
    assert order["build_id"] == "s1"
    assert "task: Look at file 7" in order["excerpt"]


REFUSED = [
    ("", "is not JSON"),
    ("[" * 200_000, "is not JSON"),
    ("[]", "must hold a JSON object"),
    ("{}", "statements"),
    (
        json.dumps({"statements": [statement(content="The import needs 7 proxies.")]}),
        "“7” is not in the quoted evidence",
    ),
]


def test_what_is_refused(run: Any) -> None:
    order_id = run("distil")[:8]
    for given, told in REFUSED:
        assert told in run("distil", "answer", order_id, "-", given=given, code=1)
    assert run("distil")[:8] == order_id


def test_a_refused_answer_names_every_missing_field_and_where_the_schema_is(run: Any) -> None:
    order_id = run("distil")[:8]
    refused = run("distil", "answer", order_id, "-", given='{"statements": [{"type": "fact"}]}', code=1)
    assert refused.count("Field required") == 4
    assert "more error" not in refused
    assert "memgraph distil show --json" in refused


def test_a_partly_refused_answer_says_why(run: Any) -> None:
    order_id = run("distil")[:8]
    said = json.dumps({"statements": [statement(), statement(content="The import needs 7 proxies.")]})
    shown = run("distil", "answer", order_id, "-", given=said)
    assert shown.splitlines()[0] == (
        "Answered: 1 memory added, 1 statement refused (send corrections of it; attempts left: 2)."
    )
    assert "statements.1.content: “7” is not in the quoted evidence" in shown
    assert "(answered in part)" in run("distil")
    wrong = json.dumps({"statements": [statement(content="The import needs 7 proxies.")] * 2})
    assert "2 statements refused (send corrections of them" in run("distil", "answer", order_id, "-", given=wrong)
    assert "(the order is closed)" in run("distil", "answer", order_id, "-", given=wrong)
    assert run("distil") == "No work order is open.\n"


def test_a_refused_answer_lists_all_problems_as_json(run: Any) -> None:
    order_id = run("distil")[:8]
    said = json.dumps({"statements": [statement(content=f"The import needs proxy{n}.") for n in range(8)]})
    problems = json.loads(run("distil", "answer", order_id, "-", "--json", given=said, code=1, stdout=True))["problems"]
    assert [f"“proxy{n}” is not in the quoted evidence" in problem for n, problem in enumerate(problems)] == [True] * 8


def test_what_is_not_there(run: Any, tmp_path: Path) -> None:
    assert "no work order with id" in run("distil", "show", "ffffffff", code=1)
    assert "No such file" in run("distil", "answer", "ffffffff", str(tmp_path / "none.json"), code=1)
    (tmp_path / "latin.json").write_bytes(b"\xff{}")
    assert "is not UTF-8" in run("distil", "answer", "ffffffff", str(tmp_path / "latin.json"), code=1)


def program(path: Path, body: str) -> str:
    """Return the command line of a program in Python that has read its order."""
    path.write_text(f"import json, sys, time\nsheet = json.load(sys.stdin)\n{body}\n")
    return f"{sys.executable} {shlex.quote(str(path))}"


def test_a_program_answers_the_open_orders(run: Any, tmp_path: Path) -> None:
    said = json.dumps({"statements": [statement()]})
    answers = program(
        tmp_path / "answer it.py", f"assert sheet['order']['kind'] and sheet['reply_schema']\nprint({said!r})"
    )
    assert "Answered: 1 memory added." in run("distil", "run", "--with", answers, "--by", "small-model")
    [closed] = json.loads(run("distil", "list", "--all", "--json"))
    assert (closed["state"], closed["answered_by"]) == ("answered", "small-model")
    assert run("distil", "run", "--with", answers) == "No work order is open.\n"


def test_an_answer_may_stand_in_a_block_of_code(run: Any, tmp_path: Path) -> None:
    fenced = program(tmp_path / "a.py", "print('Here:\\n```json\\n{\"statements\": []}\\n```')")
    [result] = json.loads(run("distil", "run", "--json", "--with", fenced))["answers"]
    assert result["new_memory_ids"] == []


def test_a_block_of_code_may_stand_in_an_answer(run: Any, tmp_path: Path) -> None:
    quoting = json.dumps({"statements": [statement(content="Run ```make``` first.")]})
    command = program(tmp_path / "a.py", f"print({quoting!r})")
    told = run("distil", "run", "--with", command, code=1, stdout=True)
    assert "statements.0.content" in told  # it was read, and refused for what it says


def test_an_answer_refused_in_part_leaves_its_order_open(run: Any, tmp_path: Path) -> None:
    said = json.dumps({"statements": [statement(), statement(content="The import needs 7 proxies.")]})
    command = program(tmp_path / "a.py", f"print({said!r})")
    found = json.loads(run("distil", "run", "--json", "--with", command, code=1, stdout=True).splitlines()[0])
    assert (len(found["answers"]), found["failed"], found["left"]) == (1, {}, 1)


def test_what_a_program_leaves_behind_is_ended(run: Any, tmp_path: Path) -> None:
    child = tmp_path / "child"
    body = f"""import subprocess
left = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])
open({str(child)!r}, 'w').write(str(left.pid))"""
    assert "took longer" in run(
        "distil", "run", "--timeout", "3", "--with", program(tmp_path / "a.py", body), code=1, stdout=True
    )
    for _ in range(200):  # a killed process is there until the system has ended it
        if not is_running(int(child.read_text())):
            break
        time.sleep(0.05)
    assert not is_running(int(child.read_text()))


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("print('I am no JSON')", "is not JSON"),
        ("print('[]')", "must hold a JSON object"),
        ("print('{}')", "statements"),
        ("sys.stdout.buffer.write(bytes([255]))", "printed no UTF-8"),
        ("sys.exit('no model\\x1b[2J is loaded')", "exited with 1: no model"),
        ("time.sleep(60)", "took longer than 0.5 s"),
        (f"print({json.dumps({'statements': [statement(content='The import needs 7 proxies.')]})!r})", "“7” is not"),
    ],
)
def test_an_order_whose_program_fails_is_named_and_stays_open(run: Any, tmp_path: Path, body: str, told: str) -> None:
    order_id = run("distil")[:8]
    command = program(tmp_path / "a.py", body)
    limit = "0.5" if "sleep" in body else "30"
    found = json.loads(
        run("distil", "run", "--json", "--timeout", limit, "--with", command, code=1, stdout=True).splitlines()[0]
    )
    [(failed, reason)] = found["failed"].items()
    assert (failed[:8], found["left"]) == (order_id, 1)
    assert told in reason
    assert run("distil")[:8] == order_id


def test_a_program_that_is_not_there_or_not_named_is_an_error(run: Any) -> None:
    for command, told in [
        ("no-such-program -x", "there is no program no-such-program"),
        ("'open", "--with: No closing quotation"),
        ("", "names no program"),
    ]:
        assert told in run("distil", "run", "--with", command, code=1)
    assert "returned failure" in run("distil")


def test_an_interruption_ends_the_program_and_keeps_what_was_answered(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = subprocess.Popen.communicate
    ended: list[subprocess.Popen[bytes]] = []

    def interrupted(self: subprocess.Popen[bytes], *args: Any, **more: Any) -> Any:
        ended.append(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    run("distil", "run", "--with", program(tmp_path / "a.py", "time.sleep(60)"), code=130)
    monkeypatch.setattr(subprocess.Popen, "communicate", given)
    assert ended[0].returncode == -9
    assert "returned failure" in run("distil")
