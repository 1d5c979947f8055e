"""``memgraph ingest junit`` and ``ci-log``: reports and logs as other programs write them, also when they are damaged."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from memgraph.interfaces.cli.group import cli

Read = Callable[[str, Mapping[str, bytes]], dict[str, "Kept"]]


class Kept(NamedTuple):
    """The store's content of one file: the outcome of its build, or why there is none, and the texts of its memories."""

    outcome: str
    texts: str


@pytest.fixture
def run(tmp_path: Path, settings: Callable[[], Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        arguments = ["--home", str(tmp_path / "store"), *map(str, args)]
        shown = CliRunner().invoke(cli, arguments, prog_name="memgraph", obj=settings())
        assert shown.exception is None or isinstance(shown.exception, SystemExit), shown.exc_info
        return shown

    return call


@pytest.fixture
def read(tmp_path: Path, run: Callable[..., Any]) -> Read:
    """Ingest files of a kind; return what is kept of each."""

    def call(kind: str, files: Mapping[str, bytes]) -> dict[str, Kept]:
        paths = [tmp_path / name for name in files]
        for path, data in zip(paths, files.values(), strict=True):
            path.write_bytes(data)
        refused = run("ingest", kind, *paths).stderr
        builds = "MATCH (b:Build) RETURN b.project_id AS project, b.outcome AS outcome"
        memories = "MATCH (m:Memory) RETURN m.project_id AS project, m.content AS text"
        outcomes = {
            row["project"]: row["outcome"] for row in json.loads(run("query", "--cypher", builds, "--json").stdout)
        }
        texts: dict[str, str] = {}
        for row in json.loads(run("query", "--cypher", memories, "--json").stdout):
            texts[row["project"]] = f"{texts.get(row['project'], '')}\n{row['text']}"
        said = {path.name: line for path in paths for line in refused.splitlines() if str(path) in line}
        return {
            name: Kept(outcomes.get(name.split(".")[0], said.get(name, "nothing")), texts.get(name.split(".")[0], ""))
            for name in files
        }

    return call


def suite(content: str, attributes: str = "", head: str = '<?xml version="1.0" encoding="UTF-8"?>\n') -> bytes:
    return f'{head}<testsuites><testsuite name="till" {attributes}>{content}</testsuite></testsuites>'.encode()


FAILED = '<testcase classname="till.Sums" name="rounds"><failure message="expected 12 but was 11"/></testcase>'
PASSED = '<testcase classname="till.Sums" name="adds"/>'


def test_one_character_that_xml_forbids_hides_no_failure(read: Read) -> None:
    marks = {
        "reference": b"&#27;[31mred&#27;[0m",
        "hexadecimal": b"&#x1B;[1m",
        "nul": b"&#0;",
        "noncharacter": b"&#xFFFF;",
        "raw": b"\x1b[31mred\x1b[0m",
        "bell": b"\x07",
        "latin": b"caf\xe9",
    }
    text = suite(f"<testcase name='a'><system-out>MARK</system-out></testcase>{FAILED}")
    kept = read("junit", {f"{name}.xml": text.replace(b"MARK", mark) for name, mark in marks.items()})
    assert {name: one.outcome for name, one in kept.items()} == dict.fromkeys(kept, "failure")
    assert all("expected 12 but was 11" in one.texts for one in kept.values())


def test_colours_in_a_failure_are_left_out_of_its_text(read: Read) -> None:
    colours = {"raw": "\x1b[31mfirst\x1b[39m total is wrong", "reference": "&#27;[31mfirst&#27;[39m total is wrong"}
    files = {
        f"{name}.xml": suite(f"<testcase name='a'><failure>{text}</failure></testcase>")
        for name, text in colours.items()
    }
    kept = read(
        "junit",
        files | {"message.xml": suite(f"<testcase name='a'><failure message='{colours['reference']}'/></testcase>")},
    )
    assert len(kept) == 3
    assert all("first total is wrong" in one.texts for one in kept.values())


def test_a_suite_that_did_not_start_has_failed(read: Read) -> None:
    why = '<error message="no container for postgres" type="LaunchError"/>'
    kept = read(
        "junit",
        {
            "error.xml": suite(why),
            "failure.xml": suite(why.replace("error", "failure") + PASSED),
            "all.xml": f"<testsuites>{why}</testsuites>".encode(),
            "counted.xml": suite(PASSED, 'tests="2" failures="0" errors="1"'),
            "status.xml": suite('<testcase name="a" status="failed"/>'),
        },
    )
    assert {name: one.outcome for name, one in kept.items()} == dict.fromkeys(kept, "failure")
    assert all("no container for postgres" in kept[name].texts for name in ("error.xml", "failure.xml", "all.xml"))


def test_the_reason_of_a_failure_is_kept_wherever_the_report_has_it(read: Read) -> None:
    cases = {
        "nested": "<failure><message>sum is 11</message><stack-trace>at Till.Sum()</stack-trace></failure>",
        "printed": "<failure type='failure'/><system-out>sum is 11</system-out>",
        "errors": "<failure/><system-err>sum is 11</system-err>",
        "cdata": "<error><![CDATA[\nsum is 11\n]]></error>",
        "second": "<failure message='first'>first</failure><failure message='sum is 11'/>",
        "flaky": "<flakyFailure message='sum is 11'><stackTrace>at Till.Sum()</stackTrace></flakyFailure>",
        "flakyerror": "<flakyError><stackTrace>sum is 11</stackTrace></flakyError>",
        "rerun": "<failure message='sum is 11'/><rerunFailure message='sum is 11'/>",
    }
    files = {
        f"{name}.xml": suite(f"<testcase classname='{name}' name='sums'>{case}</testcase>", f'hostname="{name}"')
        for name, case in cases.items()
    }
    kept = read("junit", files)
    assert {name: "sum is 11" in one.texts for name, one in kept.items()} == dict.fromkeys(files, True)
    assert {one.outcome for name, one in kept.items() if name.startswith("flaky")} == {"success"}


def test_a_document_type_and_other_encodings_are_read(read: Read) -> None:
    text = suite(FAILED).decode()
    declared = text.replace("UTF-8", "UTF-16")
    files = {
        "doctype.xml": text.replace("<testsuites>", "<!DOCTYPE testsuites>\n<testsuites>").encode(),
        "system.xml": text.replace("<testsuites>", '<!DOCTYPE x SYSTEM "junit.dtd">\n<testsuites>').encode(),
        "marked.xml": declared.encode("utf-16"),
        "big.xml": ("\ufeff" + declared).encode("utf-16-be"),
        "packed.xml.gz": gzip.compress(declared.encode("utf-16")),
        "untrue.xml": declared.encode(),
        "bom.xml": text.encode("utf-8-sig"),
        "blank.xml": f"\n  {text}".encode(),
        "latin.xml": text.replace("UTF-8", "ISO-8859-1").replace("adds", "ads é").encode("latin-1"),
    }
    kept = read("junit", files)
    assert {name: one.outcome for name, one in kept.items()} == dict.fromkeys(files, "failure")
    assert all("expected 12 but was 11" in one.texts for one in kept.values())


def test_entities_are_not_expanded(tmp_path: Path, read: Read) -> None:
    (tmp_path / "secret.txt").write_text("the word is swordfish", "utf-8")
    outside = f'<!DOCTYPE a [<!ENTITY b SYSTEM "file://{tmp_path}/secret.txt">]>'
    bomb = "<!DOCTYPE a [" + "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 50}">' for n in range(8)) + "]>"
    files = {
        "outside.xml": suite("<testcase name='a'><failure>&b;</failure></testcase>", head=outside),
        "bomb.xml": suite("<testcase name='a'><failure>&e8;</failure></testcase>", head=bomb),
        "undefined.xml": suite("<testcase name='a'><failure>&nbsp;</failure></testcase>"),
    }
    kept = read("junit", files)
    assert all("declares entities, which is not allowed" in kept[name].outcome for name in ("outside.xml", "bomb.xml"))
    assert kept["undefined.xml"].outcome == "partial"
    assert not any("swordfish" in one.texts for one in kept.values())


def test_a_report_that_cannot_be_read_whole_is_not_a_success(read: Read) -> None:
    text = suite(PASSED + FAILED)
    at = text.index(b"<failure")
    files = {
        "cut.xml": text[:at],
        "early.xml": text[: text.index(b"<testcase")],
        "ampersand.xml": text.replace(b'name="rounds"', b'name="a & b"'),
        "unclosed.xml": text.replace(b"</testcase>", b""),
        "deep.xml": suite(PASSED + "<properties>" * 200 + FAILED + "</properties>" * 200),
        "packed.xml.gz": gzip.compress(text * 1, mtime=0)[:-12],
    }
    outcomes = {name: one.outcome for name, one in read("junit", files).items()}
    assert len(outcomes) == len(files)
    assert "success" not in outcomes.values(), outcomes
    assert read("junit", {"whole.xml": suite(PASSED)})["whole.xml"].outcome == "success"


def hosted(command: str, *printed: str) -> str:
    """Return a step as a hosted runner logs it."""
    lines = [f"##[group]Run {command}", command, "shell: /usr/bin/bash -e {0}", "##[endgroup]", *printed]
    return "".join(f"2026-05-04T10:00:{number:02}.1234567Z {line}\n" for number, line in enumerate(lines))


OK = "==== 9 passed in 0.31s ===="
BROKEN = ("FAILED tests/test_till.py::test_rounds - assert 11 == 12", "==== 1 failed, 8 passed in 0.31s ====")
EXIT = "##[error]Process completed with exit code 1."
CLEAN = "Cleaning up orphan processes"


def test_a_cancelled_run_is_not_a_success(read: Read) -> None:
    ends = {
        "operation": hosted("pytest", "..", "##[error]The operation was canceled.", CLEAN),
        "shutdown": hosted("pytest", OK, "##[error]The runner has received a shutdown signal. It was stopped.", CLEAN),
        "gitlab": "section_start:1:x\n$ pytest\n..\nERROR: Job failed: canceled\n",
        "jenkins": "Started by user ada\n+ pytest\n..\nFinished: ABORTED\n",
        "unstable": "Started by user ada\n+ pytest\n..\nFinished: UNSTABLE\n",
        "travis": "$ pytest\n..\nDone: Job Cancelled\n",
    }
    kept = read("ci-log", {f"{name}.log": text.encode() for name, text in ends.items()})
    assert {name: one.outcome for name, one in kept.items()} == dict.fromkeys(kept, "partial")


def test_a_log_is_a_success_only_if_its_end_says_so(read: Read) -> None:
    first, second = hosted("pytest tests", OK), hosted("pytest slow", *BROKEN, EXIT)
    cut = {
        "half": first + second[: second.index("FAILED")],
        "between": first,
        "gitlab": f"section_start:1:x\n$ pytest\n{OK}\n",
        "shell": f"+ pytest\n{OK}\n+ pytest slow\n..\n",
        "bare": "$ make\ncc till.c\n",
        "tail": hosted("pytest", OK, "##[error]No space left on device", CLEAN),
        "ignored": f"$ pytest || true\n{BROKEN[0]}\nexit status 0\n",
    }
    whole = {
        "hosted": first + hosted("ls", CLEAN),
        "jenkins": f"Started by user ada\n10:00:01  + pytest\n10:00:02  {OK}\n10:00:03  Finished: SUCCESS\n",
        "passed": f"$ pytest\n{OK}\n",
        "quiet": "$ pytest -q\n9 passed, 1 skipped in 0.31s\n",
        "exit": "$ make\nexit status 0\n",
        "jest": "$ jest\nTests:       9 passed, 9 total\n",
    }
    kept = read("ci-log", {f"{name}.log": text.encode() for name, text in (cut | whole).items()})
    assert not [name for name in cut if kept[f"{name}.log"].outcome == "success"]
    assert {name: kept[f"{name}.log"].outcome for name in whole} == dict.fromkeys(whole, "success")
    packed = gzip.compress(f"$ pytest\n{OK}\n".encode() * 300)
    assert read("ci-log", {"packed.log.gz": packed[:-9]})["packed.log.gz"].outcome == "partial"


def test_the_reason_of_a_failure_is_kept_in_the_logs_of_each_tool(read: Read) -> None:
    jest = (
        "FAIL src/till.test.ts",
        "  ● till › rounds",
        "",
        "    Error: sum is 11",
        "      at till.test.ts:3:1",
        "",
        "x",
    )
    npm = "npm error code ERESOLVE", "npm error sum is 11"
    files = {
        "jest": hosted("npm test", *jest, EXIT),
        "console": hosted("npm test", jest[0], "  ● Console", "    noise", *jest[1:], EXIT),
        "docker": hosted("docker build .", *(f"#9 3.45{n} {line}" for n, line in enumerate(npm)), EXIT),
        "spaces": hosted("pytest", "FAILED tests/test_till.py::test_sum[1 - 2 [x]] - sum is 11", EXIT),
        "doctest": hosted("pytest", "FAILED docs/till.md::till.md - sum is 11", EXIT),
        "folder": hosted("pytest", "FAILED my tests/test_till.py::Sums::test - sum is 11", EXIT),
        "jenkins": "10:00:01  + pytest\n10:00:02  FAILED tests/test_till.py::test - sum is 11\n10:00:03  Finished: FAILURE\n",
        "bracketed": "[10:00:01] + pytest\n[10:00:02] FAILED tests/test_till.py::test - sum is 11\n",
    }
    encoded = {f"{name}.log": text.encode() for name, text in files.items()}
    encoded["powershell.log"] = files["jenkins"].replace("\n", "\r\n").encode("utf-16")
    kept = read("ci-log", encoded)
    assert {name: ("sum is 11" in one.texts, one.outcome) for name, one in kept.items()} == dict.fromkeys(
        encoded, (True, "failure")
    )
    assert "test_sum[1 - 2 [x]]" in kept["spaces.log"].texts
    assert "noise" not in kept["console.log"].texts


def test_the_file_of_the_mcp_memory_server_is_imported(tmp_path: Path, run: Callable[..., Any]) -> None:
    path = tmp_path / "memory.jsonl"
    lines = [
        {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["rounds sums down", "likes tea"]},
        {"type": "entity", "name": "till", "entityType": "project", "observations": []},
        {"type": "relation", "from": "Ada", "to": "till", "relationType": "maintains"},
    ]
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    assert "`memgraph import FILE`" in run("ingest", "builds", path).stderr
    assert "Imported 3 memories" in run("import", path).stdout
    assert "Imported 0 memories, skipped 3" in run("import", path).stdout
    listed = run("list").stdout
    for fact in ("Ada: rounds sums down", "Ada: likes tea", "Ada maintains till"):
        assert f"[source: imported] {fact}" in listed
    path.write_text(path.read_text("utf-8")[:-9], "utf-8")
    assert "not a complete JSON document" in run("import", path).stderr


def test_exported_chats_are_refused_with_what_to_do(tmp_path: Path, run: Callable[..., Any]) -> None:
    message = {"id": "m", "message": {"author": {"role": "user"}, "content": {"parts": ["Round sums down."]}}}
    chats = {
        "chatgpt.json": [{"title": "Sums", "create_time": 1.5, "mapping": {"m": message}, "current_node": "m"}],
        "claude.json": [{"uuid": "u", "name": "Sums", "account": {"uuid": "a"}, "chat_messages": [{"text": "Hello"}]}],
    }
    for name, document in chats.items():
        (tmp_path / name).write_text(json.dumps(document), "utf-8")
        for kind in ("builds", "transcripts", "tau-bench", "reflexion"):
            shown = run("ingest", kind, tmp_path / name)
            assert shown.exit_code == 1
            assert "exported chats of ChatGPT or Claude" in shown.stderr, kind
            assert "`memgraph remember TEXT`" in shown.stderr
        assert "`memgraph docs sources`" in run("import", tmp_path / name).stderr
