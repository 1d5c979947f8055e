"""The command line: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

import memgraph
from memgraph.embedding import default_embedder
from memgraph.interfaces.cli.base.options import Settings
from memgraph.interfaces.cli.group import COMMANDS, STOPPED, cli
from memgraph.testing import FakeEmbedder
from tests.tables import change_payload, table

HOSTILE = "[/oops] \x1b[31mred\x1b[0m \x9b2J\u202egnp.exe [bold]not bold[/bold]"
BUILD = {
    "buildId": "b1",
    "projectId": "shop",
    "startedAt": "2026-01-05T10:00:00Z",
    "completedAt": "2026-01-05T10:30:00Z",
    "buildOutcome": "failure",
    "buildSummary": "Checkout work",
    "tasks": [
        {
            "taskId": "t1",
            "agentName": "mars",
            "description": "Add retries to the payment client",
            "outcome": "failure",
            "output": "TimeoutError: gateway did not answer in 30 s",
            "filesChanged": ["src/payment.py"],
        }
    ],
    "userInterventions": [],
}


WHY = (
    "A customer whose network was slow paid two times for one order, as the gateway had taken the money before the answer was lost "
    "on its way to the shop."
)


@pytest.fixture
def fake_model(monkeypatch):
    for user in ("memgraph.store.store", "memgraph.embedding"):
        monkeypatch.setattr(f"{user}.default_embedder", lambda _: FakeEmbedder(dimension=64))


@pytest.fixture
def run(fake_model, tmp_path, configured):
    """Run one command in this process, against one store."""

    def call(*args, stdin=None, home=tmp_path / "store"):
        arguments = ["--home", str(home), *map(str, args)]
        return CliRunner().invoke(cli, arguments, input=stdin, prog_name="memgraph", obj=configured())

    return call


@pytest.fixture
def done(run):
    """Run a command that must succeed, and return what it printed on stdout."""

    def call(*args, **options):
        result = run(*args, **options)
        assert result.exit_code == 0, result.output
        return result.stdout

    return call


@pytest.fixture
def here(configured):
    """Run a command that must succeed in this process with the configured model, and return what it printed on stdout."""

    def call(*args, home):
        arguments = ["--home", str(home), *map(str, args)]
        result = CliRunner().invoke(cli, arguments, prog_name="memgraph", obj=configured())
        assert result.exit_code == 0, result.output
        return result.stdout

    return call


@pytest.fixture
def builds(tmp_path):
    path = tmp_path / "builds.jsonl"
    path.write_text(json.dumps(BUILD) + "\n", "utf-8")
    return path


def process(*args, home, check=None, **options):
    """Run ``python -m memgraph`` as a process of its own, with the real model."""
    command = [sys.executable, "-m", "memgraph", "--home", str(home), *map(str, args)]
    ended = subprocess.run(
        command, capture_output=True, encoding="utf-8", env=environment(), timeout=120, check=False, **options
    )
    if check is not None:
        assert ended.returncode == check, ended.stderr
    return ended


def environment():
    return {**os.environ, "PYTHONPATH": str(Path(memgraph.__file__).parents[1])}


def git(folder, *args, date="2026-01-01T00:00:00Z"):
    who = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date, "GIT_CONFIG_GLOBAL": os.devnull}
    command = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-C", str(folder), *args]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **who})


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init", "-q")
    for day, (file, subject) in enumerate(
        [
            ("src/cart.py", "Add a shopping cart"),
            ("src/cart.py", "Fix lost items when two tabs write the cart at once"),
            ("src/pay.py", f"Use idempotency keys instead of retries because the gateway charged twice\n\n{WHY}"),
        ],
        start=1,
    ):
        (folder / "src").mkdir(exist_ok=True)
        (folder / file).write_text(subject, "utf-8")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "-m", subject, date=f"2026-01-0{day}T12:00:00Z")
    return folder


# Start-up and the outer shape


def test_help_imports_nothing_heavy():
    script = (
        "import sys\n"
        "from memgraph.interfaces.cli import main\n"
        "sys.argv = ['memgraph', '--help']\n"
        "try:\n    main()\n"
        "except SystemExit as ended:\n    print(ended.code, *sorted(sys.modules))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment(), timeout=60
    )
    code, *modules = ended.stdout.splitlines()[-1].split()
    assert code == "0"
    heavy = {"pydantic", "numpy", "kuzu", "onnxruntime", "tokenizers", "rich", "networkx", "logging", "subprocess"}
    assert heavy & set(modules) == set()
    assert all(name in ended.stdout for name in COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_and_the_shared_options(name):
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0
    assert COMMANDS[name].help.split(";")[0].rstrip(".") in " ".join(result.stdout.split())
    if name not in {"ingest", "config"}:
        assert all(option in result.stdout for option in ("--home", "--json", "--version"))


def test_version_before_and_after_the_name():
    told = {CliRunner().invoke(cli, args).stdout for args in (["--version"], ["list", "--version"])}
    assert len(told) == 1
    assert re.fullmatch(r"memgraph \S+\n", told.pop())


@pytest.mark.parametrize(
    "args",
    [
        ["nonsense"],
        ["remember"],
        ["list", "--type", "odd"],
        ["list", "--limit", "-1"],
        ["recall", "x", "--odd"],
        ["--home", "", "stats"],
        ["ingest", "svn", "."],
    ],
)
def test_usage_errors_end_with_2(args):
    result = CliRunner().invoke(cli, args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Error:" in result.stderr


def test_shared_options_are_taken_after_the_name(fake_model, tmp_path, configured):
    arguments = ["remember", "one thing", "--home", str(tmp_path / "other"), "--json"]
    assert json.loads(CliRunner().invoke(cli, arguments, obj=configured()).stdout)["success"]
    assert (tmp_path / "other" / "memgraph.db").is_file()


# What each command does


def test_remember_list_show_and_stats(done):
    assert done("remember", "Deploy on Tuesdays only", "--tag", "deploy", "--project", "shop").startswith("Remembered:")
    memory_id = done("list").split("\t")[0]
    shown = done("show", memory_id)
    assert "Deploy on Tuesdays only" in shown
    assert "deploy" in shown
    assert "shop" in shown
    assert "memories           1 (" in done("stats")
    assert "listed             1 of them" in done("stats")


def test_a_list_in_json_has_each_memory_whole(done):
    text = "Ask before touching the billing tables: " + "they feed the ledger, and the ledger feeds the audit. " * 5
    done("remember", text)
    (entry,) = json.loads(done("list", "--json"))
    assert entry["content"] == text.strip()
    assert len(done("list").split("\t")[-1]) < 90


def test_a_new_store_is_announced_to_a_person_only(run, tmp_path, monkeypatch):
    assert run("remember", "one thing", home=tmp_path / "a").stderr == ""
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
    assert f"created a new store at {tmp_path / 'b'}" in run("remember", "one thing", home=tmp_path / "b").stderr
    assert run("remember", "one thing", "--json", home=tmp_path / "c").stderr == ""


@pytest.mark.parametrize("args", [["verify"], ["verify", "--deep"], ["verify", "--receipt", __file__]])
def test_where_there_is_no_store_nothing_is_verified(run, tmp_path, args):
    home = tmp_path / "missing"
    result = run(*args, home=home)
    assert (result.exit_code, result.stdout, home.exists()) == (1, "", False)
    assert f"there is no store at {home}, so there is nothing to check" in result.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["list"], ["stats"], ["search", "x"], ["ask", "x"], ["recall", "x", "--when-nothing", "empty"], ["audit"],
        ["contradictions"], ["export"], ["distil", "list"], ["proposals"], ["show", "12345678"], ["about", "x.py"],
        ["learning"],
    ],
)  # fmt: skip
def test_a_reading_command_creates_no_store(run, tmp_path, args):
    home = tmp_path / "missing"
    result = run(*args, home=home)
    assert result.exit_code == (1 if args[0] in {"show", "about", "learning"} else 0), result.output
    assert not home.exists()
    if args[0] in {"list", "stats"}:
        assert f"there is no store at {home} yet; the first command that learns creates it" in result.stderr
    if args[0] == "recall":
        assert (result.stdout, "no store" in result.stderr) == ("", False)


def test_a_reading_command_refuses_a_folder_of_other_files(run, tmp_path):
    (tmp_path / "thesis.doc").write_text("mine")
    result = run("list", home=tmp_path)
    assert (result.exit_code, "not a memgraph store" in result.stderr) == (1, True)


@pytest.mark.parametrize("options", [[], ["-vv"], ["--json"]])
@pytest.mark.parametrize("refused", [False, True], ids=["stored", "refused"])
def test_remember_never_prints_the_secret_that_it_takes_out(run, options, refused):
    token = f"ghp_{'a1B2' * 9}"
    text = f"Push with {token} please{chr(0) if refused else ''}"
    result = run("remember", "-", "--tag", token, *options, stdin=text)
    assert result.exit_code == (1 if refused else 0)
    assert "a1B2" not in result.output
    assert "GitHub token" in result.stderr


def test_remember_prints_the_command_that_undoes_it(done):
    printed = done("remember", "Deploy on Tuesdays only")
    undo = printed.strip().partition("; undo: memgraph ")[2].split()
    assert "Forgot: 'Deploy on Tuesdays only'" in done(*undo)


def test_remember_reads_standard_input(done):
    text = "Sentence about the ledger. " * 60
    ids = json.loads(done("remember", "-", "--json", stdin=text))["data"]["ids"]
    assert len(ids) > 1
    shown = json.loads(done("show", ids[1], "--json"))
    assert any(
        (link["relation"], {link["source_id"], link["target_id"]}) == ("NEXT", set(ids[:2])) for link in shown["links"]
    )
    assert "NEXT" in done("show", ids[1])


def test_recall_prints_the_text_and_nothing_else(done, run):
    done("remember", "Ask before touching the billing tables")
    result = run("recall", "change the billing tables", "--agent", "mars", "--explain")
    document = json.loads(done("recall", "change the billing tables", "--json"))
    assert result.stdout == document["formatted"] + "\n"
    assert result.stdout.startswith("## Standing rules\n- Rule: Ask before touching the billing tables.")
    seeds = done("recall", "change the billing tables", "--format", "prefix")
    assert seeds == document["injected_prompt_prefix"] + "\n"
    assert seeds.startswith("You have the following relevant memories")
    assert "query" in result.stderr


def test_recall_of_nothing_can_print_nothing(run):
    result = run("recall", "anything", "--when-nothing", "empty")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no memory is relevant" in result.stderr


def test_recall_as_json_names_the_query_and_holds_no_vectors(done):
    done("remember", "Ask before touching the billing tables")
    document = json.loads(done("recall", "billing", "--json"))
    assert document["query_id"]
    assert [memory["content"] for memory in document["memories"]] == ["Ask before touching the billing tables"]
    assert "embedding" not in document["memories"][0]


def test_ask_and_forget(done, run, builds):
    done("ingest", "builds", builds)
    assert "gateway did not answer" in done("ask", "payment client timeouts")
    (entry,) = json.loads(done("list", "--json"))
    content = json.loads(done("show", entry["id"], "--json"))["memory"]["content"]
    assert done("forget", content).startswith("Forgot:")
    assert done("list") == ""
    assert entry["id"] in done("list", "--include-suppressed")
    again = run("forget", content)
    assert (again.exit_code, again.stdout) == (1, "")
    assert again.stderr.startswith("memgraph: No memory matches")


def test_forget_without_a_match_is_a_failure_in_json_too(run):
    result = run("forget", "anything", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["success"] is False


def test_an_empty_repository_and_an_empty_store_say_so(run, tmp_path):
    subprocess.run(["git", "init", "-q", tmp_path / "new"], check=True)
    read = run("ingest", "git", tmp_path / "new")
    assert (read.exit_code, "new has no commits yet" in read.stderr) == (0, True)
    assert "no memory yet: `memgraph ingest git .`" in run("list").stderr
    assert run("remember", "The harbour opens at six").exit_code == 0
    assert "no memory" not in run("list").stderr
    assert "no memory matches" in run("list", "--type", "episodic").stderr


def test_ingest_git_reads_a_repository_and_a_saved_log(done, repository, tmp_path):
    report = json.loads(done("ingest", "git", repository, "--json"))
    assert report["read"] == 3
    assert report["extracted"] > 0
    again = json.loads(done("ingest", "git", repository, "--json"))
    assert (again["read"], again["builds"], again["extracted"], again["known"]) == (0, 0, 0, 0)
    assert done("ingest", "git", repository) == "Nothing new to read.\n"
    saved = tmp_path / "saved.txt"
    log = subprocess.run(["git", "-C", repository, "log", "--name-status"], capture_output=True, check=True)
    saved.write_bytes(log.stdout)
    told = json.loads(done("ingest", "git", saved, "--project", "copy", "--json", home=tmp_path / "second"))
    assert told["read"] == 3
    entries = json.loads(done("list", "--project", "copy", "--json", home=tmp_path / "second"))
    assert len(entries) == told["extracted"]


def test_ingest_reports_what_it_skipped(done, tmp_path):
    path = tmp_path / "b.jsonl"
    path.write_text('{"half":\n' + json.dumps(BUILD) + "\n", "utf-8")
    told = done("ingest", "builds", path)
    assert "Skipped 1 part" in told
    assert "line 1" in told


def test_list_filters_and_orders(done, builds):
    done("ingest", "builds", builds)
    done("remember", "Kept for good")
    assert len(done("list").splitlines()) == 2
    assert len(done("list", "--limit", "1", "--sort-by", "created").splitlines()) == 1
    assert "Kept for good" in done("list", "--type", "semantic")
    assert "Kept for good" not in done("list", "--project", "shop")


def test_list_prints_the_time_it_sorts_by(done):
    done("remember", "Kept for good")
    assert "\tnever used\t" in done("list", "--sort-by", "accessed")
    assert "\trecorded just now\t" in done("list", "--sort-by", "created")
    assert {json.loads(done("list", "--json", "--sort-by", order))[0]["age"] for order in ("accessed", "created")} == {
        "just now"
    }


def test_stats_counts_what_list_shows(done, tmp_path):
    done("remember", "Kept for good")
    with memgraph.MemGraph.open(tmp_path / "store", embedder=FakeEmbedder(dimension=64)) as memory:
        told = memory.store.insert_memory(memgraph.EpisodicMemory(content="The proxy strips headers")).id
        memory.store.insert_memory(
            memgraph.SemanticMemory(content="Proxies fail", source="compression", supporting_memory_ids=[told])
        )
    assert json.loads(done("stats", "--json"))["listed"] == len(json.loads(done("list", "--json"))) == 3
    done("forget", told)
    assert len(json.loads(done("list", "--json"))) == 1, "what was made of it is withheld"
    assert "listed             1 of them are shown by `memgraph list`" in done("stats")


def test_export_and_import_round_trip(done, run, tmp_path, builds):
    done("ingest", "builds", builds)
    file = tmp_path / "export.json"
    told = json.loads(done("export", file, "--json"))
    assert told["memories"] == 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    ids = [[memory["id"] for memory in json.loads(text)["memories"]] for text in (file.read_bytes(), done("export"))]
    assert ids[0] == ids[1]
    other = tmp_path / "other"
    assert json.loads(done("import", file, "--json", home=other))["data"] == {"imported": 1, "skipped": 0}
    assert json.loads(done("import", file, "--json", home=other))["data"] == {"imported": 0, "skipped": 1}
    digests = {json.loads(done("verify", "--json", home=home))["digest"] for home in (other, tmp_path / "store")}
    assert len(digests) == 1
    assert [path.name for path in tmp_path.glob(".export*")] == []


def test_an_export_says_what_is_hidden_in_it(run, done):
    done("remember", "Kept for good")
    done("remember", "Forgotten again")
    done("forget", "Forgotten again")
    whole = run("export")
    assert "includes 1 forgotten memory" in whole.stderr
    assert json.loads(whole.stdout)["total_memories"] == 2
    shared = run("export", "--shareable")
    assert (shared.stderr, json.loads(shared.stdout)["total_memories"]) == ("", 1)
    assert "Forgotten" not in shared.stdout


def test_a_failed_export_leaves_what_was_there(run, done, tmp_path):
    done("remember", "something")
    (tmp_path / "folder").mkdir()
    for target in (tmp_path / "folder", tmp_path / "absent" / "x.json"):
        result = run("export", target)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "cannot be written" in result.stderr
    assert list(tmp_path.glob(".folder*")) == []


@pytest.mark.embedded
def test_rebuild_verify_format_age_and_doctor(done):
    done("remember", "one thing")
    rebuilt, verified = json.loads(done("rebuild", "--json")), json.loads(done("verify", "--json"))
    assert rebuilt["memories"] == 1
    assert rebuilt["digest"] == verified["digest"]
    assert "Verified" in done("verify")
    assert "1 memory" in done("rebuild")
    assert json.loads(done("format-age", "2020-01-01T00:00:00Z", "--json"))["age"].endswith("years ago")
    document = json.loads(done("doctor", "--json"))
    assert document["healthy"]
    assert document["journal"]["events"] == verified["events"]
    assert document["key"]["present"]
    assert document["head"]["present"]
    assert document["graph"]["lag_events"] == 0
    assert document["model"]["available"]
    assert "no problem found" in done("doctor")


# Refusals


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["show", "not-an-id"], "no memory with id 'not-an-id'"),
        (["show", "3f0c9a52-1111-4222-8333-444455556666"], "no memory with id"),
        (["remember", "   "], "no text to remember"),
        (["remember", "nul \x00"], "cannot be stored"),
        (["ingest", "git", "/nonexistent/place"], "/nonexistent/place"),
        (["ingest", "builds", "/nonexistent/place"], "cannot be read"),
        (["import", "/nonexistent/file.json"], "cannot be read"),
        (["format-age", "yesterday"], "is not an ISO 8601 time"),
    ],
)
def test_refusals_are_one_line_on_stderr(run, args, said):
    result = run(*args)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("memgraph: ")
    assert result.stderr.count("\n") == 1
    assert said in result.stderr


def test_a_folder_of_other_files_is_not_a_store(run, tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "thesis.txt").write_text("mine", "utf-8")
    result = run("list")
    assert result.exit_code == 1
    assert "is not a memgraph store" in result.stderr
    told = run("doctor", "--json")
    assert told.exit_code == 1
    assert json.loads(told.stdout)["store"]["id"] is None
    assert "is not a memgraph store" in json.loads(told.stdout)["errors"][0]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda data: data[: len(data) // 2], "not a complete JSON document"),
        (lambda _: b"", "it is truncated"),
        (lambda _: b"\xff\xfe{}", "not a complete JSON document"),
        (lambda _: b"[1, 2]", "is not an export"),
        (lambda _: b"[" * 100_000, "not a complete JSON document"),
        (lambda _: b'{"memories": 3}', "memories: must be a list"),
        (lambda data: data.replace(b'"version":"1.0.0"', b'"version":"9"'), "version: must be 1.0.0"),
        (lambda data: data.replace(b'"total_memories":1', b'"total_memories":2'), "may be cut off"),
        (lambda data: data.replace(b'"type":"semantic"', b'"type":"odd"'), "memories.0.type"),
    ],
)
def test_a_broken_export_adds_nothing(done, run, tmp_path, spoil, said):
    done("remember", "one thing")
    file = tmp_path / "export.json"
    done("export", file)
    file.write_bytes(spoil(file.read_bytes()))
    result = run("import", file, home=tmp_path / "other")
    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stderr.startswith("memgraph: ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""
    assert json.loads(done("stats", "--json", home=tmp_path / "other"))["total"] == 0


def test_a_missing_key_is_named_by_doctor(done, run):
    done("remember", "one thing")
    key = Path(json.loads(done("doctor", "--json"))["key"]["path"])
    key.rename(key.with_suffix(".elsewhere"))
    assert run("list").exit_code == 1
    result = run("doctor", "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert not document["key"]["present"]
    assert not document["healthy"]
    assert str(key) in document["errors"][0]
    assert str(key) in run("doctor").stdout


def test_doctor_reports_a_damaged_journal_and_settings(done, run, tmp_path):
    done("remember", "one thing")
    change_payload(tmp_path / "store", "one thing", "two thing")
    result = run("doctor")
    assert result.exit_code == 1
    assert "problem: " in result.stdout
    assert str(tmp_path / "store" / "memgraph.db") in result.stdout
    (tmp_path / "store" / "config.toml").write_text("lock_timeout_s = 'soon'", "utf-8")
    assert "config.toml" in run("doctor").stdout


def test_a_store_above_its_limit_is_reported_by_doctor_and_collect(done, run, monkeypatch, tmp_path):
    done("remember", "one thing")
    with (tmp_path / "store" / "padding").open("wb") as file:
        file.truncate(2_000_000)
    assert "max_memory_mb" not in done("doctor")
    monkeypatch.setenv("MEMGRAPH_MAX_MEMORY_MB", "1")
    refused = run("doctor")
    assert refused.exit_code == 1
    assert "MB, more than max_memory_mb = 1\n  to do: raise max_memory_mb" in refused.stdout
    assert "more than max_memory_mb = 1;" in run("collect").stderr
    monkeypatch.setenv("MEMGRAPH_MAX_MEMORY_MB", "10")
    assert "max_memory_mb" not in done("doctor") + run("collect").stderr


def test_doctor_makes_nothing(run, tmp_path):
    result = run("doctor")
    assert result.exit_code == 0
    assert "no store yet" in result.stdout
    assert not (tmp_path / "store").exists()


# Hostile text


def test_memory_text_is_printed_harmlessly(done, run):
    memory_id = json.loads(done("remember", HOSTILE, "--json"))["data"]["ids"][0]
    for args in (["list"], ["show", memory_id], ["recall", "red oops"], ["remember", HOSTILE], ["forget", HOSTILE]):
        printed = run(*args).output
        assert "[/oops]" in printed
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", printed)


def test_memory_text_is_harmless_on_a_terminal(done, monkeypatch, capsys, tmp_path):
    from memgraph.interfaces.cli.base import output

    done("remember", HOSTILE)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    output.listing([(HOSTILE, ("1", "semantic"))])
    output.emit_json({"content": HOSTILE})
    printed = capsys.readouterr().out
    assert "[/oops]" in printed
    assert "[bold]not bold[/bold]" in printed
    assert "\x1b[31m" not in printed
    assert not {"\x9b", "\u202e"} & set(printed)


# The demo


@pytest.mark.embedded
def test_demo_learns_from_a_repository_and_keeps_only_a_page(
    fake_model, repository, tmp_path, isolated_environment, monkeypatch, configured
):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["demo", str(repository)], obj=configured())
    assert result.exit_code == 0, result.output
    assert "open memgraph-demo.html in a browser" in result.stdout
    assert "<!doctype html>" in (tmp_path / "memgraph-demo.html").read_text("utf-8").lower()
    assert "Read 3 commits" in result.stdout
    assert "An agent about to “change src/" in result.stdout
    assert "Notes from past work in shop." in result.stdout
    lines = result.stdout.splitlines()
    head = next(place for place, line in enumerate(lines) if "Notes from past work in shop." in line)
    assert [len(line) - len(line.lstrip()) for line in lines[head : head + 2]] == [3, 3]
    assert result.stdout.count("   memgraph ") == 3
    assert max(len(line) for line in result.stdout.splitlines() if str(repository) not in line) <= 80
    assert not (isolated_environment / "memgraph").exists()
    assert not (isolated_environment / "keys").exists()


@pytest.mark.embedded
def test_demo_takes_the_repository_around(fake_model, repository, monkeypatch, configured):
    monkeypatch.chdir(repository / "src")
    result = CliRunner().invoke(cli, ["demo", "--json", "--page", "../seen.html"], obj=configured())
    document = json.loads(result.stdout)
    assert document["report"]["read"] == 3
    assert (repository / "seen.html").exists()
    assert document["source"] == str(repository)


@pytest.mark.embedded
def test_demo_keeps_a_store_that_was_named(done, builds, tmp_path):
    document = json.loads(done("demo", builds, "--json", "--page", str(tmp_path / "page.html")))
    assert document["task"] == "change src/payment.py"
    assert "TimeoutError" in document["injected_prompt_prefix"]
    assert json.loads(done("stats", "--json"))["total"] == document["memories"] == 1


def test_demo_without_a_history_says_how_to_name_one(fake_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["demo"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "memgraph demo PATH" in result.stderr


@pytest.mark.embedded
def test_demo_of_a_history_that_teaches_nothing_says_so(fake_model, tmp_path, configured):
    git(tmp_path, "init", "-q", "idle")
    git(tmp_path / "idle", "commit", "-q", "--allow-empty", "-m", "wip")
    result = CliRunner().invoke(cli, ["demo", str(tmp_path / "idle")], obj=configured())
    assert result.exit_code == 0
    assert "Nothing was learned yet" in " ".join(result.stdout.split())


# As a process


def test_the_real_model_end_to_end(tmp_path, repository):
    home, model = tmp_path / "home", default_embedder()

    def here(*args):
        result = CliRunner().invoke(cli, ["--home", str(home), *args], obj=Settings(embedder=model))
        return result.exit_code, result.stdout, result.stderr

    assert here("ingest", "git", str(repository))[0] == 0
    assert here("remember", "Customers may pay by invoice")[0] == 0
    recalled = process("recall", "the gateway charges a card two times", home=home, check=0)
    assert "idempotency keys" in recalled.stdout
    assert "Fix lost items" in here("ask", "items vanished from the basket")[1].splitlines()[0]
    assert here("forget", "completely unrelated gardening advice")[0] == 1
    code, _, complaint = here("verify")
    assert (code, complaint) == (0, "")


def test_a_closed_pipe_is_quiet(here, tmp_path, monkeypatch):
    monkeypatch.setenv("MEMGRAPH_EMBEDDING_MODEL", "none")
    home = tmp_path / "home"
    here("remember", "one thing", home=home)
    read, write = os.pipe()
    os.close(read)
    ended = subprocess.run(
        [sys.executable, "-m", "memgraph", "--home", str(home), "export"],
        stdout=write,
        stderr=subprocess.PIPE,
        env=environment(),
        timeout=60,
        check=False,
    )
    os.close(write)
    assert ended.stderr == b""
    assert ended.returncode not in (0, 120)


def test_an_interrupted_ingest_continues(here, tmp_path, monkeypatch):
    monkeypatch.setenv("MEMGRAPH_EMBEDDING_MODEL", "none")
    log, whole, cut = tmp_path / "long.jsonl", tmp_path / "whole", tmp_path / "cut"
    with log.open("w", encoding="utf-8") as lines:
        for number in range(60):
            task = {**BUILD["tasks"][0], "taskId": f"t{number}", "output": f"ValueError: case {number} of {number * 7}"}
            lines.write(json.dumps({**BUILD, "buildId": f"b{number}", "tasks": [task]}) + "\n")
    command = [sys.executable, "-m", "memgraph", "ingest", "builds", str(log), "--json"]
    running = subprocess.Popen(
        [*command, "--home", str(cut)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    committed = 0
    until = time.monotonic() + 60
    while committed < 20 and running.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
        with suppress(sqlite3.Error):  # not made yet
            committed = len(table(cut, "event"))
    running.send_signal(signal.SIGINT)
    said, complaint = running.communicate(timeout=60)
    assert (running.returncode, json.loads(said)["error"]["exit_code"]) == (130, 130)
    assert complaint == f"memgraph: {STOPPED}\n"
    first = json.loads(here("stats", "--json", home=cut))["total"]
    here("ingest", "builds", log, home=cut)
    here("ingest", "builds", log, home=whole)
    here("verify", home=cut)
    final = [json.loads(here("stats", "--json", home=home)) for home in (cut, whole)]
    assert final[0]["total"] == final[1]["total"] >= first
    assert final[0]["by_type"] == final[1]["by_type"]


def test_a_process_that_is_to_end_leaves_nothing_half_done(tmp_path):
    program = """
import os, signal
from pathlib import Path
from memgraph.interfaces.cli import main

replace = Path.replace

def ended_before(path, target):
    if Path(target).name == "export.json":
        os.kill(os.getpid(), signal.SIGTERM)
    return replace(path, target)

Path.replace = ended_before
main()
"""
    (tmp_path / "out").mkdir()
    line = [
        sys.executable,
        "-c",
        program,
        "--home",
        str(tmp_path / "store"),
        "export",
        str(tmp_path / "out/export.json"),
    ]
    ended = subprocess.run(line, capture_output=True, encoding="utf-8", env=environment(), timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (143, "")
    assert ended.stderr.splitlines()[-1] == f"memgraph: {STOPPED}"
    assert list((tmp_path / "out").iterdir()) == []


def assert_one_line(code, stdout, stderr, *words):
    assert code in (1, 2)
    assert stdout == ""
    assert len(stderr.splitlines()) == 1, stderr
    for word in words:
        assert word in stderr


def test_a_home_that_is_not_utf_8_is_refused(tmp_path):
    home = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    ended = process("stats", home=home)

    assert_one_line(ended.returncode, ended.stdout, ended.stderr, "home", "U+DCFF")


def test_a_process_whose_current_directory_is_gone(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = (
        f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); from memgraph.interfaces.cli import main; main()"
    )
    line = [sys.executable, "-c", script, "--home", str(tmp_path / "store"), "ingest", "git", "."]
    ended = subprocess.run(line, capture_output=True, encoding="utf-8", env=environment(), timeout=60, check=False)

    assert_one_line(ended.returncode, ended.stdout, ended.stderr, "current directory")


@pytest.mark.parametrize("command", [("ingest", "builds", "x.jsonl"), ("ingest", "git", ".")])
def test_a_current_directory_that_is_gone(run, tmp_path, monkeypatch, command):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    result = run(*command)

    assert_one_line(result.exit_code, result.stdout, result.stderr, "current directory")


@pytest.mark.parametrize("kind", ["file", "loop", "device"])
def test_a_home_that_is_no_directory_is_said_plainly(run, tmp_path, kind):
    home = Path(os.devnull)
    if kind == "file":
        home = tmp_path / "file"
        home.write_text("mine", "utf-8")
    elif kind == "loop":
        home = tmp_path / "loop"
        home.symlink_to(home)
    result = run("stats", home=home)

    assert_one_line(result.exit_code, result.stdout, result.stderr, str(home))
    assert "TOML" not in result.stderr


def test_an_interruption_that_a_library_makes_an_error_of_is_one_still(tmp_path):
    program = """
import os, signal
from memgraph.interfaces.cli import group

def loading(*args, **options):
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        raise ValueError("a model could not be built") from None

group.cli.main = loading
group.main()
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ran.returncode == 130
    assert ran.stderr.splitlines() == [
        "memgraph: interrupted: nothing is half done, and whatever was committed by then is kept; run the same command again to continue"
    ]


def test_an_interruption_while_modules_are_imported_gives_one_line(tmp_path):
    program = """
import os, signal, sys
from memgraph.__main__ import main

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "memgraph.interfaces.cli.group":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
main()
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ran.returncode == 130
    assert ran.stderr.splitlines() == ["memgraph: interrupted"]


def test_threads_of_numpy_that_have_nothing_to_do_do_not_spin(tmp_path):
    program = """
import os, sys
from memgraph.__main__ import main

sys.argv = ["memgraph", "--version"]
assert "numpy" not in sys.modules, "it reads the setting when it is imported"
try:
    main()
finally:
    print(os.environ["OPENBLAS_THREAD_TIMEOUT"])
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True,
        env={name: value for name, value in os.environ.items() if name != "OPENBLAS_THREAD_TIMEOUT"},
    )  # fmt: skip
    assert ran.stdout.splitlines()[-1] == "4"
