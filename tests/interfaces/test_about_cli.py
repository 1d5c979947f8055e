"""``about`` and ``learning``: what is counted over a history."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph.interfaces.cli.group import cli
from tests.interfaces.test_ingest_git_cli import COINS, Repository

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, settings: Callable[[], Any]) -> Run:
    """Run a command on a store that has read twenty commits: ten of a cup with its test, five of them fixes, ten of a saucer."""
    entries = []
    for number in range(20):
        files = ["cup.py", "test_cup.py"] if number % 2 else ["saucer.py"]
        title = "Fix the handle" if number in (1, 5, 9, 13, 17) else f"Step {number}"
        changed = "".join(f"M\t{file}\n" for file in files)
        head = f"commit {number + 1:040x}\nAuthor: Ann Smith <a@x.example>\nDate:   2026-01-{number + 1:02} 12:00:00 +0000\n\n"
        entries.append(f"{head}    {title}\n\n{changed}\n")
    log = tmp_path / "shop.log"
    log.write_text("".join(reversed(entries)))

    def call(*args: object) -> Any:
        options = ["--home", str(tmp_path / "store"), *map(str, args)]
        return CliRunner().invoke(cli, options, prog_name="memgraph", obj=settings())

    assert call("ingest", "git", log).exit_code == 0
    return call


def test_about_prints_what_is_counted_about_a_file(run: Run) -> None:
    said = run("about", "cup.py").stdout
    assert (
        "Who changes cup.py changes test_cup.py too: so did 10 of the last 10 commits of 2 to 20 files that changed it, "
        in said
    )
    assert (
        "cup.py is a hot spot: 5 of its 10 changes were fixes or closed an issue, 5 of the last 10; the latest of these was on 18 January 2026."
        in said
    )
    assert "Ann Smith knows cup.py: made 10 of the 10 changes to it by people" in said
    document = json.loads(run("about", "cup.py", "--json").stdout)
    assert {one["kind"] for one in document["rules"]} == {"changes together", "hot spot", "who knows"}
    assert all(one["support"] <= one["occasions"] == 10 for one in document["rules"])


def test_one_number_and_wording_counts_what_is_a_fix_or_closes_an_issue(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "shop.log"
    head = "commit {}\nAuthor: Bob Ray <b@x.example>\nDate:   2026-02-0{} 12:00:00 +0000\n\n    {}\n\nM\tlid.py\n\n"
    titles = ["Fix the knob", "Add a knob\n\n    Fixes #4", "Add a rim\n\n    Fixes #5", "Add a seal"]
    log.write_text("".join(head.format(f"{n}" * 40, 9 - n, one) for n, one in enumerate(titles)) + log.read_text())
    assert run("ingest", "git", log).exit_code == 0
    assert run("sleep").exit_code == 0
    spot = "lid.py is a hot spot: 3 of its 4 changes were fixes or closed an issue, 3 of the last 4; the latest of these was on 9 February 2026."
    for said in (run("about", "lid.py").stdout, run("learning").stdout, run("search", "lid.py hot spot").stdout):
        assert spot in said
    assert "changed by 4 commits, of which 3 are fixes or close an issue" in run("about", "lid.py").stdout
    rows = json.loads(run("query", "fixes_by_file", "--json").stdout)
    assert [(row["fixes"], row["changes"]) for row in rows if row["file"] == "lid.py"] == [(3, 4)]


def test_a_release_has_the_same_fixes_by_about_by_the_query_and_by_git(run: Run, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "lids")
    repository.commit("Start", {"lid.py": "0"})
    repository.git("tag", "1.0")
    for step, message in enumerate(
        ["Fix the rim", "Describe the rim\n\nFixes #4", "Add a knob", "Fix the knob\n\nFixes #5"]
    ):
        repository.commit(message, {"README.md" if "Describe" in message else "lid.py": f"step {step}"})
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("Polish the lid", {"polish.py": "1"})
    repository.git("checkout", "-q", "-")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge the polish for all lids\n\nFixes #6", "side")
    repository.git("tag", "1.1")
    assert run("ingest", "git", repository.path, "--project", "lids").exit_code == 0
    messages = repository.git("log", "--no-merges", "--format=%H %s %b", "-z", "1.0..1.1").decode().split("\0")
    fixes = {one[:40] for one in messages if " Fix" in one}
    assert len(fixes) == 3
    assert "5 commits, of which 3 are fixes or close an issue" in run("about", "1.1", "--project", "lids").stdout
    asked = ("query", "release_changes", "--param", "after=1.0", "--param", "kind=fix", "--json")
    rows = json.loads(run(*asked).stdout)
    assert {row["git_commit"] for row in rows} == fixes
    assert {row["kind"] for row in rows} == {"fix", "docs"}


def test_every_use_of_a_memory_or_a_record_is_counted(run: Run) -> None:
    run("remember", "Cups are washed by hand", "--project", "shop")
    reported: dict[str, list[str]] = {"used": [], "overridden": []}
    for task, option, outcome in (
        ("fix the handle", "used", "failure"),
        ("fix the handle", "overridden", "failure"),
        ("step 6", "used", "failure"),
        ("wash cups by hand", "used", "success"),
    ):
        found = json.loads(run("recall", task, "--json").stdout)
        memory = found["memories"][0]["id"]
        assert run("outcome", found["query_id"], outcome, f"--{option}", memory).exit_code == 0
        reported[option].append(memory)
    rows = {row["id"]: row for row in json.loads(run("query", "memories_by_use", "--json").stdout)}
    assert rows.keys() >= {*reported["used"], *reported["overridden"]}
    for option, ids in reported.items():
        assert {one: row[option] for one, row in rows.items()} == {one: ids.count(one) for one in rows}
    assert sum(row["helped"] for row in rows.values()) == 1


def test_lessons_by_build_says_that_most_commits_are_records_and_not_listed(run: Run, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "lids")
    for number in range(4):
        repository.commit(f"Turn the lid {number}", {"lid.py": f"{number}"})
    repository.commit(COINS, {"prices.py": "1"})
    assert run("ingest", "git", repository.path, "--project", "lids").exit_code == 0
    of_lids = ("--param", "project=lids", "--json")
    lessons = json.loads(run("query", "lessons_by_build", *of_lids).stdout)
    commits = repository.git("log", "--format=%s", "--", "lid.py").decode().splitlines()
    assert [one["lesson"].startswith("Use integer cents") for one in lessons] == [True]
    history = json.loads(run("query", "file_history", "--param", "file=lid.py", *of_lids).stdout)
    assert [row["content"] for row in history] == commits
    assert "Records (most commits and runs, of which no memory was made) are not listed" in run(
        "queries", "show", "lessons_by_build"
    ).stdout.replace("\n//  ", "")


def test_a_rule_has_one_confidence(run: Run, tmp_path: Path) -> None:
    """As it was measured in the history, also where more commits change that and not the rule."""
    log, all_of_it = tmp_path / "shop.log", (tmp_path / "shop.log").read_text()
    head = "commit {}\nAuthor: Bob Ray <b@x.example>\nDate:   2026-02-{:02} 12:00:00 +0000\n\n    Turn it\n\nM\tlid.py\nM\trim{}.py\n\n"
    for many in (0, 25):
        log.write_text("".join(head.format(f"{n:02}" * 20, n + 1, n) for n in reversed(range(many))) + all_of_it)
        assert run("ingest", "git", log).exit_code == 0
        assert run("sleep", "--phase", "counting").exit_code == 0
        rules = {one["text"]: one for one in json.loads(run("learning", "--json").stdout)["rules"]}
        kept = [one for one in json.loads(run("list", "--json", "--limit", "500").stdout) if one["content"] in rules]
        assert {rules[one["content"]]["kind"] for one in kept} >= {"hot spot", "who knows"}
        said = run("learning").stdout
        for one in kept:
            sure = json.loads(run("show", one["id"], "--json").stdout)["memory"]["confidence"]
            assert sure == round(rules[one["content"]]["confidence"], 2)
            assert f"{sure:.2f} {one['content']}" in said
        recalled = run("recall", "change cup.py", "--format", "notes").stdout
        assert "cup.py is a hot spot" in recalled
        assert "uncertain" not in recalled  # its counts are true, however seldom the next change is a fix


def test_about_tells_what_is_known_of_a_person_a_release_an_issue_and_a_commit(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "shop.log"
    head = "commit {}\n{}Author: {}\nDate:   2026-02-0{} 12:00:00 +0000\n\n    {}\n\nM\tlid.py\n\n"
    entries = [
        head.format("f" * 40, "Merge: 11 22\n", "Ann Smith <a@x.example>", 3, "Merge pull request #7"),
        head.format("e" * 40, "", "Bob Ray <b@x.example>", 2, "Cool the lid, see #7"),
        head.format("d" * 40, "", "Bob Ray <b@x.example>", 1, "Close the lid\n\n    Fixes #7"),
    ]
    log.write_text("".join(entries) + log.read_text())
    assert run("ingest", "git", log).exit_code == 0
    said = run("about", "ann smith").stdout
    assert (
        "Ann Smith is a person: without merges, 20 commits, of which 5 are fixes or close an issue, from 1 January 2026 to 20 January 2026"
        in said
    )
    assert "Ann Smith knows saucer.py: made 10 of the 10 changes" in said
    for name in ("#7", "7", "GH-7"):
        (line, *_) = run("about", name).stdout.splitlines()
        assert line == (
            "#7 is an issue or pull request: without merges, its number is in the kept text, or the merge, of 2 commits, of which 1 is a fix or closes an issue, "
            "from 1 February 2026 to 2 February 2026; by Bob Ray; they changed lid.py"
        )
    assert (
        "is the hash of 1 commit, on 2 February 2026; by Bob Ray; it changed lid.py\n"
        in run("about", "eeeeeeee").stdout
    )
    assert (
        "is the hash of 1 commit, which is a fix or closes an issue, on 1 February 2026; by Bob Ray"
        in run("about", "ddddddd").stdout
    )
    assert "is the hash of 1 merge, on 3 February 2026; by Ann Smith" in run("about", "ffffffff").stdout
    for name in ("12", "2", "b@x.example"):
        assert f"nothing is known about {name}" in run("about", name).stderr


def test_about_a_number_that_only_merges_name_tells_what_they_bring(run: Run, tmp_path: Path) -> None:
    """A merge that repeats the message of its only commit is not kept: the number is known of that commit."""
    log, both = tmp_path / "shop.log", "Merge: 11 22\n"
    head = "commit {}\n{}Author: {}\nDate:   2026-02-0{} 12:00:00 +0000\n\n    {}\n\n{}"
    bob, eve, merge = "Bob Ray <b@x.example>", "Eve Fox <e@x.example>", "Merge pull request #{} from bob/lid\n\n    {}"
    entries = [
        head.format("f" * 40, both, eve, 6, merge.format(9, "Warm the lid"), ""),
        head.format("e" * 40, "", bob, 5, "Warm the lid", "M\tlid.py\n\n"),
        head.format("d" * 40, both, eve, 4, merge.format(8, "Turn the rim"), ""),
        head.format("c" * 40, both, eve, 3, merge.format(7, "Cool the lid"), ""),
        head.format("b" * 40, "", bob, 2, "Cool the lid", "M\tlid.py\n\n"),
        head.format("a1" * 20, "", bob, 1, "Start the lid", "M\tlid.py\n\n"),
    ]
    for first in (4, 0):  # also of a commit that was stored by an earlier run
        log.write_text("".join(entries[first:]) + log.read_text())
        assert run("ingest", "git", log).exit_code == 0
        entries = entries[:first]
    said = run("about", "#8").stdout
    assert said.startswith(
        "#8 is an issue or pull request: its number is only in the kept text of 1 merge, on 4 February 2026; by "
    )
    assert "dddddddd 2026-02-04 Merge pull request #8 from bob/lid Turn the rim" in said
    for number, day in ((7, 2), (9, 5)):
        (line, *_) = run("about", f"#{number}").stdout.splitlines()
        assert line == (
            f"#{number} is an issue or pull request: without merges, its number is in the kept text, or the merge, of 1 commit, "
            f"on {day} February 2026; by Bob Ray; it changed lid.py"
        )


def test_a_bot_is_no_person_by_its_name_or_by_the_address_that_a_forge_gave_it(run: Run, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "lids")
    bots = {
        "Step Security Bot": "bot@stepsecurity.example",
        "tidy[bot]": "tidy@x.example",
        "Tidy Actions": "41+tidy-actions[bot]@users.noreply.github.com",
        "Release Token": "project_7_bot_3fa9@noreply.gitlab.com",
    }
    authors = {"Jane Abbot": "jane@x.example", **bots, "Jane Talbot": "t@x.example"}
    for number, (name, address) in enumerate(authors.items()):
        for step in range(3 if name.startswith("Jane") else 1):
            repository.commit(f"Turn the lid, {name} {step}", {"lid.py": f"{number} {step}"})
            repository.git("commit", "-q", "--amend", "--no-edit", f"--author={name} <{address}>")
    assert run("ingest", "git", repository.path, "--project", "lids").exit_code == 0
    lid, *others = run("about", "lid.py", "--project", "lids").stdout.splitlines()
    assert "by 10 commits, from 2 January 2026 to 11 January 2026; by Jane Abbot, Jane Talbot; by bots: " in lid
    known = ["Step Security Bot", "tidy[bot]", "Tidy Actions[bot]", "Release Token[bot]"]
    assert lid.partition("by bots: ")[2] == ", ".join(known)
    assert "Jane Talbot knows lid.py: made 3 of the 6 changes to it by people" in " ".join(others)
    for name in known:
        assert run("about", name, "--project", "lids").stdout.startswith(
            f"{name} is a bot: without merges, 1 commit, on"
        )
    assert run("about", "Jane Abbot").stdout.startswith("Jane Abbot is a person: without merges, 3 commits")
    query = "MATCH (p:Person)<-[:AUTHORED_BY]-(:Memory)-[:CHANGED]->(f:File {name: 'lid.py'}) RETURN DISTINCT p.name AS name"
    authors = json.loads(run("query", "--cypher", query, "--json").stdout)
    assert sorted(one["name"] for one in authors) == ["Jane Abbot", "Jane Talbot"]


@pytest.mark.parametrize("is_saved", [False, True])
def test_who_is_spelled_otherwise_by_now_is_one_person_with_what_was_read_before(
    run: Run, tmp_path: Path, is_saved: bool
) -> None:
    repository, saved = Repository(tmp_path / "lids"), tmp_path / "lids.log"
    for name, many in {"Tin Tvrtkovic": 2, "Tin Tvrtković": 3}.items():
        for step in range(many):
            repository.commit(f"Turn the lid, {name} {step}", {"lid.py": f"{name} {step}"})
            repository.git("commit", "-q", "--amend", "--no-edit", f"--author={name} <tin@lids.io>")
        saved.write_bytes(repository.git("log", "--name-status", "--date=iso"))
        assert run("ingest", "git", saved if is_saved else repository.path, "--project", "lids").exit_code == 0
        said = run("about", name, "--project", "lids").stdout
        assert said.startswith(f"{name} is a person: without merges, {2 if many == 2 else 5} commits")
    assert "; by Tin Tvrtković" in run("about", "lid.py", "--project", "lids").stdout
    assert "Tin Tvrtković knows lid.py: made 5 of the 5 changes" in run("learning", "--project", "lids").stdout


def test_a_mailmap_that_arrives_later_renames_whom_it_joins_and_nobody_else(run: Run, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "lids")
    authors = [
        "J Doe <jd@lids.io>",
        "Jo Doe <jo@home.io>",
        "Jo Doe <jo@lids.io>",
        "Sam <s@lids.io>",
        "Sam <sam@home.io>",
    ]
    for number in range(20):
        repository.commit(f"Turn the lid {number}", {f"lid{number % 5}.py": f"{number}"})
        repository.git("commit", "-q", "--amend", "--no-edit", f"--author={authors[number % 5]}")
    run("ingest", "git", repository.path, "--project", "lids")
    run("sleep")
    mailmap = "Jane Doe <jane@lids.io> <jd@lids.io>\nJane Doe <jane@lids.io> Jo Doe <jo@home.io>\nJane Doe <jane@lids.io> Jo Doe <jo@lids.io>\nSamuel Ray <s@lids.io>\n"
    repository.commit("Name the authors", {".mailmap": mailmap})
    run("ingest", "git", repository.path, "--project", "lids")
    run("sleep")

    people = run("query", "--csv", "--cypher", "MATCH (p:Person) RETURN p.name").stdout.split("\n")
    assert {"Ada", "Jane Doe", "Jo Doe", "Sam", "J Doe"}.intersection(people) == {"Ada", "Jane Doe", "Sam"}
    for name in ("J Doe", "Jo Doe", "jo@home.io", "Jane Doe"):
        assert "12 commits" in run("about", name, "--project", "lids").stdout
    rules = [line for line in run("list").stdout.splitlines() if "knows lid" in line]
    assert not [line for line in rules if "J Doe knows" in line or "Jo Doe knows" in line]
    assert [line for line in rules if "Jane Doe knows" in line]


def test_a_name_of_one_word_becomes_the_full_name_of_its_address_in_the_only_history(run: Run, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "lids")
    for number, author in enumerate(["danny <d@lids.io>", "sam <s@lids.io>", "Danny Smith <d@lids.io>"]):
        repository.commit(f"Turn the lid {number}", {"lid.py": f"{number}"})
        repository.git("commit", "-q", "--amend", "--no-edit", f"--author={author}")
        run("ingest", "git", repository.path, "--project", "lids")
    said = run("about", "lid.py", "--project", "lids").stdout
    assert "changed by 3 commits" in said
    assert "by Danny Smith, sam" in said


def test_a_mailmap_renames_no_one_word_author_who_may_be_somebody_else_elsewhere(run: Run, tmp_path: Path) -> None:
    for name in ("lids", "bells"):
        repository = Repository(tmp_path / name)
        repository.commit("Turn it", {f"{name}.py": "1"})
        repository.git("commit", "-q", "--amend", "--no-edit", f"--author=sam <sam@{name}.io>")
        run("ingest", "git", repository.path, "--project", "shop")
    repository.commit("Name the author", {".mailmap": "Samantha Ray <sam@bells.io>\n"})
    run("ingest", "git", repository.path, "--project", "shop")
    said = run("about", "lids.py").stdout
    assert "lids.py is a file: without merges, it was changed by 1 commit" in said
    assert "by sam" in said


def test_about_tells_what_is_known_of_every_file_that_was_changed(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "shop.log"
    head = "commit {}\nAuthor: Bob Ray <b@x.example>\nDate:   2026-02-0{} 12:00:00 +0000\n\n    {}\n\n{}\n\n"
    entries = [
        head.format("c" * 40, 3, "Warm the spare lid", "M\tspare/lid.py"),
        head.format("b" * 40, 2, "Move the lid", "R100\tlid.py\ttop/lid.py"),
        head.format("a" * 40, 1, "Close the lid", "A\tlid.py\nA\tknob.py"),
    ]
    log.write_text("".join(entries) + log.read_text())
    assert run("ingest", "git", log).exit_code == 0
    fact = "top/lid.py is a file: without merges, it was changed by 2 commits, from 1 February 2026 to 2 February 2026; by Bob Ray"
    for name in ("lid.py", "top/lid.py"):
        assert run("about", name).stdout.splitlines() == [
            f"{fact}; renamed from lid.py on 2 February 2026 (bbbbbbbb)",
            "  bbbbbbbb 2026-02-02 Move the lid",
            "  aaaaaaaa 2026-02-01 Close the lid",
        ]
    assert (
        "knob.py is a file: without merges, it was changed by 1 commit, on 1 February 2026"
        in run("about", "knob.py").stdout
    )
    assert "top is a folder: without merges, its files were changed by 2 commits" in run(
        "about", "top/"
    ).stdout.replace("/", "")


def test_about_a_former_name_says_when_and_by_which_commits_the_file_was_renamed(run: Run, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "lids")
    repository.commit("Add a lid", {"lid.py": "a lid\n" * 9, "knob.py": "a knob\n" * 9})
    repository.commit("Move the lid", {"lid.py": None, "top/lid.py": "a lid\n" * 9})
    repository.commit("Polish the lid", {"top/lid.py": "a lid\n" * 10})
    repository.commit("Call it cover", {"top/lid.py": None, "top/cover.py": "a lid\n" * 10})
    assert run("ingest", "git", repository.path, "--project", "lids").exit_code == 0
    changes = repository.git("log", "--follow", "--format=%h", "--", "top/cover.py").decode().split()
    shas = repository.git("log", "--format=%h", "--abbrev=8", "--diff-filter=R", "-M").decode().split()
    assert (len(changes), len(shas)) == (4, 2)
    for name in ("lid.py", "top/lid.py", "top/cover.py"):
        fact, *_ = run("about", name, "--project", "lids").stdout.splitlines()
        assert fact.startswith("top/cover.py is a file: without merges, it was changed by 4 commits")
        assert fact.endswith(
            f"; renamed from top/lid.py on 5 January 2026 ({shas[0]}), from lid.py on 3 January 2026 ({shas[1]})"
        )
    for name in ("knob.py", "top"):
        assert "renamed" not in run("about", name, "--project", "lids").stdout


@pytest.mark.parametrize("is_saved", [False, True])
def test_a_file_is_followed_in_the_order_of_the_commits_whenever_their_authors_made_them(
    run: Run, tmp_path: Path, is_saved: bool
) -> None:
    repository = Repository(tmp_path / "lids")
    repository.commit("Add a lid", {"old/lid.py": "0"})
    repository.commit("Fix the rim", {"old/lid.py": "1"})
    repository.commit("Move the lid", {"old/lid.py": None, "new/lid.py": "1"})
    for day in (1, 2, 3):
        repository.commit(f"Fix the knob, step {day}", {"new/lid.py": f"knob {day}"})
        repository.git("commit", "-q", "--amend", "--no-edit", f"--date=2025-12-0{day}T12:00:00Z")
    repository.commit("Polish the lid", {"new/lid.py": "2"})
    saved = tmp_path / "lids.log"
    saved.write_bytes(repository.git("log", "--name-status", "--date=iso"))
    assert run("ingest", "git", saved if is_saved else repository.path, "--project", "lids").exit_code == 0
    assert run("sleep").exit_code == 0
    hot = "new/lid.py is a hot spot: 4 of its 7 changes were fixes or closed an issue, 4 of the last 7; the latest of these was on 3 January 2026."
    for name in ("old/lid.py", "new/lid.py"):
        fact, *latest = run("about", name, "--project", "lids").stdout.splitlines()
        assert (
            "changed by 7 commits, of which 4 are fixes or close an issue, from 1 December 2025 to 8 January 2026; by Ada"
            in fact
        )
        assert [line.split(" ", 4)[-1] for line in latest[:2]] == ["Polish the lid", "Fix the knob, step 3"]
        assert [line.split(" ", 1)[1].strip() for line in latest if "hot spot" in line] == [hot]
    assert hot in run("learning", "--project", "lids").stdout
    assert hot in [one["content"] for one in json.loads(run("list", "--limit", 100, "--json").stdout)]


@pytest.mark.parametrize("first", ["R100\tlid\tlid/core.py", "A\tlid/lid"])
def test_a_folder_is_all_its_files_also_if_one_has_or_had_its_name(run: Run, tmp_path: Path, first: str) -> None:
    log = tmp_path / "shop.log"
    head = "commit {}\nAuthor: Bob Ray <b@x.example>\nDate:   2026-02-0{} 12:00:00 +0000\n\n    Turn it\n\n{}\n\n"
    changes = ["M\tlid/rim.py", "A\tlid/rim.py", first, "M\tcup.py"]
    log.write_text("".join(head.format(f"{n}" * 40, 9 - n, one) for n, one in enumerate(changes)) + log.read_text())
    assert run("ingest", "git", log).exit_code == 0
    for name in ("lid", "lid/"):
        assert f"{name} is a folder: without merges, its files were changed by 3 commits" in run("about", name).stdout


def test_a_name_of_several_files_is_refused_with_their_folders(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "shop.log"
    head = "commit SHA\nAuthor: Bob Ray <b@x.example>\nDate:   2026-02-01 12:00:00 +0000\n\n    Close a lid\n\nA\ttop/lid.py\nA\tspare/lid.py\n\n"
    log.write_text(head.replace("SHA", "a" * 40) + log.read_text())
    assert run("ingest", "git", log).exit_code == 0
    said = run("about", "lid.py")
    assert said.exit_code != 0
    assert (
        "several files have or had the name lid.py; give one with its folder: top/lid.py, spare/lid.py" in said.stderr
    )


def test_of_what_a_person_knows_ten_rules_are_printed(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "shop.log"
    files = "".join(f"M\tplates/{number}.py\n" for number in range(25))
    head = "commit {}\nAuthor: Bob Ray <b@x.example>\nDate:   2026-02-0{} 12:00:00 +0000\n\n    Wash all\n\n{}\n\n"
    log.write_text("".join(head.format(str(day) * 40, day, files) for day in (4, 3, 2, 1)) + log.read_text())
    assert run("ingest", "git", log).exit_code == 0
    *lines, more = run("about", "Bob Ray").stdout.splitlines()
    assert sum("Bob Ray knows plates/" in line for line in lines) == 10
    assert more == "… and 15 more"
    assert len(json.loads(run("about", "Bob Ray", "--json").stdout)["rules"]) == 25


def test_learning_lists_all_rules_and_checks_them(run: Run) -> None:
    listed = json.loads(run("learning", "--json").stdout)["rules"]
    assert {one["subject"] for one in listed} == {"cup.py", "test_cup.py", "saucer.py"}
    head = "Confidence (how often such rules were right about the last fifth of the history, else estimated from the counts), and rule:"
    assert run("learning").stdout.splitlines()[0] == head
    lines = run("about", "cup.py").stdout.splitlines()
    assert lines[lines.index(head) + 1].startswith("0.90 Who changes cup.py")
    assert head not in run("about", "ffffff1").stdout + run("about", "0000001").stdout
    checked = json.loads(run("learning", "--check", "--json").stdout)["kinds"]
    assert (checked["changes together"]["answered"], checked["changes together"]["right"]) == (4, 4)
    assert "changes together     4 of 4 questions answered, 100% right" in run("learning", "--check").stdout


def test_what_nothing_is_known_of_is_refused(run: Run, tmp_path: Path) -> None:
    assert "nothing is known about plate.py" in run("about", "plate.py").stderr
    assert "nothing is known about v" in run("about", "v").stderr
    for name in ("", " "):
        assert "the name is empty" in run("about", name).stderr
    assert "name a project with --project: shop" in run("about", "cup.py", "--project", "elsewhere").stderr
    assert run("about", "cup.py", "--home", tmp_path / "empty").exit_code == 1


def test_about_a_tag_beside_the_branch_says_that_only_the_branch_is_read(run: Run, tmp_path: Path) -> None:
    repository = Repository(tmp_path / "lids")
    repository.commit("Add a lid", {"lid.py": "1"})
    repository.git("tag", "v1.0")
    repository.git("checkout", "-q", "-b", "old")
    repository.commit("Patch the old lid", {"lid.py": "2"})
    repository.git("tag", "v1.0.1")
    repository.git("checkout", "-q", "main")
    assert run("ingest", "git", repository.path, "--project", "lids").exit_code == 0
    assert repository.git("tag", "--no-merged", "HEAD").decode().split() == ["v1.0.1"]
    beside = f"{repository.path} has a tag of that name; of its commits only those of HEAD are read, each in its first release"
    assert beside in run("about", "v1.0.1").stderr
    assert run("about", "v1.0").stdout.startswith(
        "v1.0 is a release: without merges and what an earlier one has, 1 commit"
    )
    for name in ("v1.0.2", "v1", "v1*", "../heads/old"):
        said = run("about", name).stderr
        assert f"nothing is known about {name}" in said
        assert "tag" not in said
