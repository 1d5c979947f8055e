"""Commits from a live repository and from a saved log: one result, one grouping, resumable."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memgraph import MemGraph
from memgraph.errors import InvalidInputError, SourceError
from memgraph.extraction.readers import GitReader, Reader, SavedGitLogReader, SourceRecord
from memgraph.extraction.readers.commits import Commit, RecentCommits, grouped
from memgraph.extraction.readers.git import tagged
from memgraph.lifecycle import ingest
from memgraph.model.build import BuildTask
from memgraph.store import AgentMemoryStore

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class Repository:
    """A small real repository with fixed times and people."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, when: datetime = START, author: str = "Ada") -> str:
        date = when.isoformat()
        environment = {
            "PATH": "/usr/bin:/bin:/usr/local/bin",
            "HOME": str(self.path),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_DATE": date,
            "GIT_COMMITTER_DATE": date,
        }
        command = ["git", "-c", f"user.name={author}", "-c", "user.email=dev@example.org", *arguments]
        done = subprocess.run(command, cwd=self.path, env=environment, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(
        self, message: str, *, hours: float = 0, author: str = "Ada", file: str = "app/main.py", text: str = ""
    ) -> str:
        target = self.path / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text or f"{message}\n{hours}\n")
        when = START + timedelta(hours=hours)
        self.git("add", "-A", when=when, author=author)
        self.git("commit", "-q", "-m", message, when=when, author=author)
        return self.git("rev-parse", "HEAD")

    def saved_log(self, path: Path, *options: str) -> Path:
        path.write_text(self.git("log", "--name-status", *options) + "\n")
        return path


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "shop")


def builds(records: list[SourceRecord]) -> list[tuple[str, list[str]]]:
    return [(r.build.build_id, [t.description for t in r.build.tasks]) for r in records if r.build]


def tasks(records: list[SourceRecord]) -> list[BuildTask]:
    return [task for record in records if record.build for task in record.build.tasks]


def test_a_sitting_of_one_author_is_one_build(repository: Repository) -> None:
    first = repository.commit("Add cart")
    repository.commit("Fix cart total", hours=1)
    other = repository.commit("Add invoices", hours=1.5, author="Grace")
    late = repository.commit("Add refunds", hours=9)
    records = list(GitReader(repository.path).records(None))
    assert builds(records) == [
        (f"git-{first[:12]}", ["Add cart", "Fix cart total"]),
        (f"git-{other[:12]}", ["Add invoices"]),
        (f"git-{late[:12]}", ["Add refunds"]),
    ]
    assert [record.records for record in records] == [2, 1, 1]
    task = tasks(records)[0]
    assert (task.task_id, task.agent_name, task.outcome) == (first, "Ada", "success")
    assert task.occurred_at == "2026-03-02T09:00:00.000Z"
    assert task.files_changed == ["app/main.py"]


def test_a_build_holds_at_most_twenty_commits(repository: Repository) -> None:
    for number in range(23):
        repository.commit(f"Step {number}", hours=number / 10)
    assert [record.records for record in GitReader(repository.path).records(None)] == [20, 3]


def test_a_later_run_reads_only_the_last_group_again_and_it_keeps_its_id(repository: Repository) -> None:
    repository.commit("Add cart")
    second = repository.commit("Add refunds", hours=9)
    reader = GitReader(repository.path)
    cursor = list(reader.records(None))[-1].cursor
    assert list(reader.records(cursor)) == []
    repository.commit("Fix refunds", hours=10)
    third = repository.commit("Add taxes", hours=20)
    again = list(reader.records(cursor))
    assert builds(again) == [
        (f"git-{second[:12]}", ["Add refunds", "Fix refunds"]),
        (f"git-{third[:12]}", ["Add taxes"]),
    ]
    assert list(reader.records(again[-1].cursor)) == []


def test_a_branch_merged_later_comes_at_the_end_whatever_its_dates(repository: Repository) -> None:
    repository.commit("Add cart")
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("Add side door", hours=5, author="Grace", file="side.py")
    repository.git("checkout", "-q", "main")
    repository.commit("Add refunds", hours=10)
    repository.commit("Add taxes", hours=20)
    reader = GitReader(repository.path)
    cursor = list(reader.records(None))[-1].cursor
    repository.git("merge", "-q", "--no-ff", "-m", "Merge branch 'side'", "side", when=START + timedelta(hours=30))
    read = [task.description for task in tasks(list(reader.records(cursor)))]
    assert read == ["Add taxes", "Add side door", "Merge branch 'side'"]
    # and each cursor of this run continues exactly behind its record
    records = list(reader.records(cursor))
    for number, record in enumerate(records[:-1], start=1):
        rest = [task.description for task in tasks(list(reader.records(record.cursor)))]
        assert rest == [task.description for task in tasks(records[number:])]


def test_rewritten_history_is_read_again_in_full(repository: Repository) -> None:
    for number in range(3):
        repository.commit(f"Step {number}", hours=number * 5)
    reader = GitReader(repository.path)
    cursor = list(reader.records(None))[-1].cursor
    repository.git("reset", "-q", "--hard", "HEAD~2")
    repository.commit("Another way", hours=40)
    for stale in (cursor, cursor.replace(cursor[1:9], "0" * 8), "--upload-pack=evil", "a:b", "::"):
        assert [task.description for task in tasks(list(reader.records(stale)))] == ["Step 0", "Another way"]


def test_a_shallow_clone_is_read_as_far_as_it_goes(repository: Repository, tmp_path: Path) -> None:
    for number in range(3):
        repository.commit(f"Step {number}", hours=number * 5)
    cursor = list(GitReader(repository.path).records(None))[-1].cursor
    repository.git("clone", "-q", "--depth=1", f"file://{repository.path}", str(tmp_path / "shallow"))
    shallow = GitReader(tmp_path / "shallow")
    assert [task.description for task in tasks(list(shallow.records(cursor)))] == ["Step 2"]


def test_a_revert_knows_what_it_undoes_across_builds_and_runs(repository: Repository) -> None:
    undone = repository.commit("Cache totals")
    reader = GitReader(repository.path)
    repository.commit("Add taxes", hours=8)
    cursor = list(reader.records(None))[-1].cursor
    repository.commit('Revert "Cache totals"', hours=20)
    again = repository.commit('Reapply "Cache totals"', hours=30)
    repository.git("revert", "--no-edit", again, when=START + timedelta(hours=40))
    last = tasks(list(reader.records(cursor)))
    by_subject, reapplied, by_sha = last[1:]
    assert (by_subject.reverts, by_subject.outcome) == (undone, "success")
    assert reapplied.outcome == "success"
    assert (by_sha.reverts, by_sha.outcome) == (again, "success")


def test_work_in_progress_is_partial_and_trailers_are_dropped(repository: Repository) -> None:
    credit = "".join(f"{word}-by: Y <y@example.org>\n" for word in ("Co-authored", "Signed-off", "Helped", "Mentored"))
    repository.commit(f"WIP: taxes\n\nOnly for one country.\n\n{credit}\nCc: Z <z@example.org>")
    (task,) = tasks(list(GitReader(repository.path).records(None)))
    assert (task.outcome, task.output) == ("partial", "Only for one country.")


def test_unusual_paths_and_hostile_messages_survive(repository: Repository) -> None:
    repository.commit(
        "M\n\ncommit 0123456789abcdef0123456789abcdef01234567\nM\tfake.py", file="dir with space/ümläut\ttab.py"
    )
    repository.commit("R100", hours=0.5, file="-rf")
    expected = [["dir with space/ümläut\ttab.py"], ["-rf"]]
    live = tasks(list(GitReader(repository.path).records(None)))
    assert [task.description for task in live] == ["M", "R100"]
    assert [task.files_changed for task in live] == expected
    saved = repository.saved_log(repository.path.parent / "shop.log.txt")
    assert [task.files_changed for task in tasks(list(SavedGitLogReader(saved).records(None)))] == expected


def test_no_code_of_the_repository_runs(repository: Repository, tmp_path: Path) -> None:
    repository.commit("Add cart")
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "core.pager", "gpg.program", "diff.external", "core.sshCommand"):
        repository.git("config", name, str(trap))
    repository.git("config", "log.showSignature", "true")
    assert len(tasks(list(GitReader(repository.path).records(None)))) == 1
    assert not (tmp_path / "sprung").exists()


def test_git_variables_set_by_hooks_are_ignored(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("Add cart")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert GitReader(repository.path).count() == 1


def test_a_repository_without_commits_has_no_records(repository: Repository) -> None:
    reader = GitReader(repository.path)
    assert list(reader.records(None)) == []
    assert reader.count() == 0
    assert reader.source_id


def test_a_directory_without_a_repository_raises(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(SourceError) as caught:
            list(GitReader(path).records(None))
        assert caught.value.path == path
        assert "git" in str(caught.value)


def test_a_reader_may_stop_early(repository: Repository) -> None:
    for number in range(4):
        repository.commit(f"Step {number}", hours=number * 5)
    records = GitReader(repository.path).records(None)
    assert next(records).build is not None
    records.close()  # type: ignore[attr-defined]


def test_a_repository_keeps_its_source_id_when_it_moves(repository: Repository, tmp_path: Path) -> None:
    root = repository.commit("Add cart")
    repository.commit("Fix cart", hours=1)
    reader = GitReader(repository.path / "app")
    assert isinstance(reader, Reader)
    assert (reader.source_id, reader.project_id, reader.count()) == (f"git:{root}", "shop", 2)
    assert reader.locator == str(repository.path)
    moved = repository.path.rename(tmp_path / "store")
    assert GitReader(moved).source_id == f"git:{root}"
    assert GitReader(moved, project_id="mine").project_id == "mine"


@pytest.mark.parametrize("options", [(), ("--date=iso",), ("--date=rfc",), ("--date=iso-strict",), ("--reverse",)])
def test_a_saved_log_gives_the_same_builds_as_its_repository(repository: Repository, options: tuple[str, ...]) -> None:
    repository.commit("Add cart\n\nBecause people buy several things.")
    repository.git("mv", "app/main.py", "app/cart.py")
    repository.commit("Move cart", hours=1, file="app/other.py")
    repository.commit("Add invoices", hours=30, author="Grace")
    repository.commit('Revert "Move cart"', hours=60)
    saved = repository.saved_log(repository.path.parent / "shop.log.txt", *options)
    live = [record.build for record in GitReader(repository.path).records(None) if record.build]
    for task in (task for build in live for task in build.tasks):
        assert all(change.added is not None for change in task.changes)
        task.changes[:] = [change.model_copy(update={"added": None, "removed": None}) for change in task.changes]
    assert [record.build for record in SavedGitLogReader(saved).records(None)] == live


def test_a_saved_log_that_grew_at_its_top_is_continued(repository: Repository, tmp_path: Path) -> None:
    oldest = repository.commit("Add cart")
    repository.commit("Add refunds", hours=9)
    path = repository.saved_log(tmp_path / "shop.log.txt")
    reader = SavedGitLogReader(path)
    cursor = list(reader.records(None))[-1].cursor
    assert reader.source_id == f"gitlog:shop:{oldest}"
    repository.commit("Fix refunds", hours=10)
    undo = repository.commit('Revert "Add cart"', hours=30)
    repository.saved_log(path)
    again = tasks(list(reader.records(cursor)))
    assert [task.description for task in again] == ["Add refunds", "Fix refunds", 'Revert "Add cart"']
    assert (again[-1].task_id, again[-1].reverts) == (undo, oldest)
    assert reader.source_id == f"gitlog:shop:{oldest}"
    assert reader.count() == 4
    assert len(tasks(list(reader.records("0" * 40 + "@1")))) == 4


def test_a_saved_log_tolerates_what_is_wrong_in_it(tmp_path: Path) -> None:
    path = tmp_path / "odd.log.txt"
    path.write_bytes(
        b"commit "
        + b"c" * 40
        + b" (HEAD -> main)\r\nAuthor: Z\xffoe <redacted>\r\nDate:   2026-03-04 10:00:00 -0700\r\n\r\n"
        b"    Fix \x00 parser \xe9\r\n    \r\n    "
        + b"x"
        * 20_000_000
        + b"\r\n\r\nM\ta\x00b.py\r\nR100\told.py\tnew.py\r\n\r\n"
        b"commit " + b"b" * 40 + b"\nAuthor: Zoe <redacted>\nDate:   someday\n\n    Undated\n\n"
        b"commit "
        + b"a" * 40
        + b"\nMerge: 111 222\nAuthor: Zoe <redacted>\nDate:   Mon Mar 2 09:00:00 2026 +0100\n\n    Merge it\n"
    )
    records = list(SavedGitLogReader(path).records(None))
    assert [record.skipped for record in records if record.skipped] == [
        "commit bbbbbbbb: its date “someday” cannot be read: save `git log --name-status --date=iso`"
    ]
    merge, fix = tasks(records)
    assert (merge.kind, merge.agent_name) == ("merge", "Zoe")
    assert (merge.occurred_at, merge.files_changed) == ("2026-03-02T08:00:00.000Z", [])
    assert (fix.description, fix.agent_name, fix.files_changed) == ("Fix  parser �", "Z�oe", ["ab.py", "new.py"])
    assert len(fix.output) < 100_000


def test_a_text_that_is_no_log_raises_and_an_empty_one_has_no_records(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Dear diary\n")
    with pytest.raises(SourceError, match="git log"):
        list(SavedGitLogReader(path).records(None))
    path.write_text("\n")
    assert list(SavedGitLogReader(path).records(None)) == []
    with pytest.raises(SourceError):
        SavedGitLogReader(tmp_path / "absent").count()


def test_a_source_is_named_once(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository.commit("Start the shop")
    live, saved = GitReader(repository.path), SavedGitLogReader(repository.saved_log(tmp_path / "shop.log"))
    names = (live.source_id, live.locator, live.project_id, saved.source_id)
    monkeypatch.setattr(subprocess, "Popen", None)
    (tmp_path / "shop.log").unlink()

    assert (live.source_id, live.locator, live.project_id, saved.source_id) == names


def test_a_repository_that_gets_its_first_commit_gets_its_name(repository: Repository) -> None:
    reader = GitReader(repository.path)
    before = reader.source_id

    root = repository.commit("Start the shop")

    assert (before, reader.source_id) == (f"git:{repository.path}", f"git:{root}")


def test_a_linked_work_tree_has_the_project_of_its_repository(repository: Repository, tmp_path: Path) -> None:
    repository.commit("Start the shop")
    linked = tmp_path / "fix"
    subprocess.run(["git", "-C", str(repository.path), "worktree", "add", "-q", str(linked)], check=True)

    assert GitReader(linked).project_id == GitReader(repository.path).project_id == repository.path.name
    assert GitReader(linked, project_id="till").project_id == "till"


@pytest.mark.parametrize("project", ["", " ", "x" * 401, "a\x00"])
def test_a_project_that_cannot_be_is_refused_at_once(tmp_path: Path, project: str) -> None:
    with pytest.raises(InvalidInputError, match="project_id"):
        SavedGitLogReader(tmp_path / "shop.log", project_id=project)


def test_an_impossible_commit_costs_its_build_and_not_the_run() -> None:
    commits = [
        (Commit("a" * 40, "Ada", START, "Start the shop"), "1"),
        (Commit("", "Bob", START, "No name at all"), "2"),
        (Commit("c" * 40, "Ada", START, "Add a cart"), "3"),
    ]

    records = list(grouped(commits, project_id="shop", cursor="", recent=RecentCommits()))

    assert [bool(record.build) for record in records] == [True, False, True]
    assert "task_id" in (records[1].skipped or "")


def test_a_commit_refers_to_what_it_undoes_or_corrects(repository: Repository) -> None:
    cached = repository.commit("Cache the totals of carts (#12)")
    fixed = repository.commit("Fix discounts\n\nThey are ignored, a regression caused by #12.", hours=1)
    named = repository.commit(f"Fix totals\n\nBroken in {cached[:9]}.", hours=2)
    linked = repository.commit(
        f"Fix taxes\n\nA regression of https://git.example.org/shop/commit/{cached}#note_1", hours=2
    )
    seen = repository.commit(f"Add gifts\n\nAs in https://git.example.org/shop/commit/{cached}", hours=2)
    unrelated = repository.commit("Fix a crash\n\nFixes #12.", hours=3)
    told = repository.commit(f"Join the totals\n\nIt was tried before; that was fixed in commit {cached[:9]}.", hours=3)
    by_words = repository.commit("Revert the totals of carts cache", hours=4)
    by_request = repository.commit("Revert #12", hours=5)
    back = repository.commit('Reapply "Cache the totals of carts (#12)"', hours=6)
    found = {task.task_id: task for task in tasks(list(GitReader(repository.path).records(None)))}

    assert [found[sha].mends for sha in (fixed, named, linked)] == [cached] * 3
    assert [found[sha].mends for sha in (seen, unrelated, told)] == [None] * 3
    assert found[fixed].mends_subject == "Cache the totals of carts (#12)"
    assert [found[sha].reverts for sha in (by_words, by_request, back)] == [cached, cached, by_request]
    assert found[back].restores == cached


def test_a_wrapped_subject_is_one_sentence(repository: Repository) -> None:
    repository.commit("Lock the cart while it is being priced\nand while it is being paid.\nBecause of races.")
    (task,) = tasks(list(GitReader(repository.path).records(None)))
    assert task.description == "Lock the cart while it is being priced and while it is being paid."
    assert task.output == "Because of races."


def test_a_title_without_an_empty_line_after_it_is_parted_from_the_body(repository: Repository) -> None:
    lines = ["the cart was locked in one", "place, then in another one,", "where it was locked", "again."]
    repository.commit("\n".join(["[project @ shop--1.0--patch-52]", "fix deadlock of the cart", *lines]))
    repository.commit("\n".join(["fix deadlock of the till", *lines]), hours=9)
    for task in tasks(list(GitReader(repository.path).records(None))):
        assert task.description.startswith("fix deadlock of the ")
        assert task.output == "\n".join(lines)


def test_removed_and_renamed_files_are_known(repository: Repository, tmp_path: Path) -> None:
    repository.commit("Add cart", file="app/cart.py")
    repository.git("mv", "app/cart.py", "app/basket.py")
    repository.commit("Rename cart", hours=1, file="app/other.py")
    repository.git("rm", "-q", "app/basket.py")
    repository.commit("Sell nothing", hours=2, file="README")
    saved = repository.saved_log(tmp_path / "shop.log")
    for reader in (GitReader(repository.path), SavedGitLogReader(saved)):
        _, renamed, removed = tasks(list(reader.records(None)))
        assert renamed.files_renamed == {"app/cart.py": "app/basket.py"}
        assert removed.files_removed == ["app/basket.py"]


@pytest.mark.parametrize("is_emptied", [False, True])
def test_what_a_missing_object_makes_unreadable_costs_its_own_commits_only(
    repository: Repository, is_emptied: bool
) -> None:
    lines = [f"price = {number}\n" for number in range(40)]
    repository.commit("Add prices", file="app/prices.py", text="".join(lines))
    repository.commit("Add a picture", hours=4, file="app/picture.svg")
    lost = repository.git("rev-parse", "HEAD:app/picture.svg")
    for hours, (name, later) in enumerate([("prices", "costs"), ("costs", "rates")], 8):
        repository.git("mv", f"app/{name}.py", f"app/{later}.py")
        repository.commit(
            f"Rename {name}", hours=hours, file=f"app/{later}.py", text="".join([*lines, f"{name} = 1\n"])
        )
    repository.git("mv", "app/rates.py", "app/tariffs.py")
    repository.commit("Draw another picture", hours=12, file="app/picture.svg")
    repository.commit("Say it", hours=16, file="app/notes.md")
    path = repository.path / ".git" / "objects" / lost[:2] / lost[2:]
    path.unlink()
    if is_emptied:
        path.touch()

    records = list(GitReader(repository.path).records(None))

    found = {
        task.description: [(one.path, one.was, one.added, one.removed) for one in task.changes]
        for task in tasks(records)
    }
    assert found == {
        "Add prices": [("app/prices.py", None, 40, 0)],
        "Add a picture": [("app/picture.svg", None, None, None)],
        "Rename prices": [("app/costs.py", "app/prices.py", 1, 0)],
        "Rename costs": [("app/rates.py", "app/costs.py", 1, 1)],
        "Draw another picture": [
            ("app/picture.svg", None, None, None),
            ("app/tariffs.py", "app/rates.py", None, None),
        ],
        "Say it": [("app/notes.md", None, 2, 0)],
    }
    (said,) = [record.skipped for record in records if record.skipped]
    assert "lines or renames of 2 commits" in said
    assert "clone the whole history" in said
    assert list(GitReader(repository.path).records(records[-1].cursor)) == []


@pytest.mark.parametrize(("kept", "is_gone"), [(2, True), (3, False)])
def test_a_file_is_gone_unless_others_of_its_kind_gain_half_of_its_lines(
    repository: Repository, kept: int, is_gone: bool
) -> None:
    lines = [f"price = {number}\n" for number in range(4)]
    repository.commit("Add prices", file="app/prices.py", text="".join(lines))
    repository.git("rm", "-q", "app/prices.py")
    repository.commit("Remove a module", hours=1, file="app/totals.py", text="import this\n" * kept)
    _, task = tasks(list(GitReader(repository.path).records(None)))
    assert (task.files_removed == ["app/prices.py"]) == is_gone


CAUSE = (
    "Read the rate again\n\nThe total was wrong because the rate was cached, and nobody who opened the shop in the morning "
    "could know that it had been changed by the clerk of the evening."
)


def merged(repository: Repository, message: str, *, hours: float, change: str = CAUSE) -> None:
    repository.git("checkout", "-q", "-b", f"side{hours}")
    repository.commit(change, hours=hours - 10, author="Grace", file=f"side{hours}.py")
    repository.git("checkout", "-q", "main")
    when = START + timedelta(hours=hours)
    repository.git("merge", "-q", "--no-ff", "-m", message, f"side{hours}", when=when)


@pytest.mark.parametrize(
    ("message", "is_repeated"),
    [
        (CAUSE, True),
        (CAUSE.partition("\n")[0], True),
        (f"Merge pull request #7 from grace/rate\n\n{CAUSE}", True),
        (f"{CAUSE} It is read once an hour now.", False),
        ("Merge branch 'side'", False),
    ],
)
def test_a_merge_knows_the_commit_whose_message_it_repeats(
    repository: Repository, tmp_path: Path, message: str, is_repeated: bool
) -> None:
    repository.commit("Add cart")
    merged(repository, message, hours=20)
    for reader in (GitReader(repository.path), SavedGitLogReader(repository.saved_log(tmp_path / "shop.log"))):
        _, change, merge = tasks(list(reader.records(None)))
        assert merge.repeats == (change.task_id if is_repeated else None)
        assert change.repeats is None


def test_a_merge_repeats_no_commit_that_it_does_not_merge(repository: Repository) -> None:
    repository.commit("Fix the typo")
    merged(repository, "Merge pull request #7 from grace/typo\n\nFix the typo", hours=20, change="Name the cart")
    assert [one.repeats for one in tasks(list(GitReader(repository.path).records(None)))] == [None, None, None]


def test_an_empty_commit_that_repeats_a_message_is_kept(repository: Repository, store: AgentMemoryStore) -> None:
    repository.commit("Version 0.17.1")
    repository.git("commit", "-q", "--allow-empty", "-m", "Version 0.17.1", when=START + timedelta(hours=1))
    assert ingest(store, GitReader(repository.path)).recorded == 2


def test_a_merge_is_the_work_of_who_made_what_it_merges(repository: Repository, tmp_path: Path) -> None:
    repository.commit("Add cart", author="Ada Lovelace")
    repository.git("checkout", "-q", "-b", "side")
    repository.commit("Add a door", hours=1, author="Grace Hopper", file="a.py")
    repository.commit("Add an oven", hours=2, author="Alan Kay", file="b.py")
    repository.git("checkout", "-q", "main")
    repository.commit("Add refunds", hours=3, author="Ada Lovelace")
    repository.git("checkout", "-q", "side")
    repository.git(
        "merge", "-q", "--no-ff", "-m", "Merge main", "main", when=START + timedelta(hours=4), author="Alan Kay"
    )
    repository.commit("Add a lamp", hours=5, author="Grace Hopper", file="c.py")
    reader = GitReader(repository.path)
    cursor = list(reader.records(None))[-1].cursor
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--no-ff", "-m", "Bring it to 2.0", "side", when=START + timedelta(hours=6))
    last = tasks(list(reader.records(cursor)))[-1]
    assert (last.kind, last.agent_name) == ("merge", "Grace Hopper")
    found = {task.description: (task.kind, task.agent_name) for task in tasks(list(reader.records(None)))}
    assert found["Merge main"] == ("merge", "Ada Lovelace")
    assert found["Bring it to 2.0"] == ("merge", "Grace Hopper")
    for options in ((), ("--parents",), ("--abbrev-commit",)):
        saved = tasks(list(SavedGitLogReader(repository.saved_log(tmp_path / "shop.log", *options)).records(None)))
        assert {task.description: (task.kind, task.agent_name) for task in saved}["Bring it to 2.0"] == (
            "merge",
            "Grace Hopper",
        )
    for options in (("--children",), ("--children", "--reverse"), ("--children", "--abbrev-commit")):
        saved = tasks(list(SavedGitLogReader(repository.saved_log(tmp_path / "shop.log", *options)).records(None)))
        assert {task.description: task.kind for task in saved} == {one: kind for one, (kind, _) in found.items()}


def test_who_made_most_of_a_merge_is_known_where_a_saved_log_has_parents(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit("Add cart", author="Ada Lovelace")
    repository.git("checkout", "-q", "-b", "side")
    for number, author in enumerate(("Grace Hopper", "Grace Hopper", "Alan Kay")):
        repository.commit(f"Add door {number}", hours=1 + number, author=author, file=f"{number}.py")
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--no-ff", "-m", "Bring it in", "side", when=START + timedelta(hours=6))
    for options, author in (((), "Alan Kay"), (("--parents",), "Grace Hopper")):
        saved = SavedGitLogReader(repository.saved_log(tmp_path / "shop.log", *options))
        assert tasks(list(saved.records(None)))[-1].agent_name == author


def test_a_quoted_path_has_the_escapes_that_git_writes(tmp_path: Path) -> None:
    log = f"commit {'a' * 40}\nAuthor: Ada <a@b.c>\nDate: 2026-03-01 10:00:00 +0000\n\n    Add\n\n"
    (tmp_path / "shop.log").write_text(log + 'A\t"a\\u0041b.py"\nA\t"caf\\303\\251\\t\\"x\\\\.py"\n')
    (task,) = tasks(list(SavedGitLogReader(tmp_path / "shop.log").records(None)))
    assert task.files_changed == ["a\\u0041b.py", 'café\t"x\\.py']


def test_what_a_merge_repeats_is_remembered_once(repository: Repository, store: AgentMemoryStore) -> None:
    repository.commit("Add cart")
    merged(repository, CAUSE, hours=20)
    ingest(store, GitReader(repository.path))
    (memory,) = store.get_all_memories()
    assert memory.files_involved == ["side20.py"]


def test_a_commit_knows_the_first_release_that_contains_it(repository: Repository) -> None:
    def tag(name: str, *options: str, hours: float) -> None:
        repository.git("tag", *options, name, when=START + timedelta(hours=hours))

    repository.commit("Add cart")
    tag("v1.0", "-a", "-m", "First release", hours=1)
    tag("nightly", hours=1)
    repository.commit("Add refunds", hours=10)
    repository.git("checkout", "-q", "-b", "maintenance")
    repository.commit("Fix refunds", hours=20)
    tag("v1.0.1", "-a", "-m", "Fixes", hours=30)
    repository.git("checkout", "-q", "main")
    repository.commit("Add taxes", hours=40, file="taxes.py")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge fixes", "maintenance", when=START + timedelta(hours=50))
    tag("v1.1rc1", hours=50)
    tag("v1.1", "-a", "-m", "Second release", hours=51)
    repository.git("tag", "tree-1.2", "HEAD^{tree}")
    gifts = repository.commit("Add gifts", hours=60)

    reader = GitReader(repository.path)
    records = list(reader.records(None))
    assert {task.description: task.release for task in tasks(records)} == {
        "Add cart": "v1.0",
        "Add refunds": "v1.0.1",
        "Fix refunds": "v1.0.1",
        "Add taxes": "v1.1rc1",
        "Merge fixes": "v1.1rc1",
        "Add gifts": None,
    }
    tag("v1.2", hours=61)
    (tagged_since,) = reader.records(records[-1].cursor)
    assert (tagged_since.build, tagged_since.releases[gifts]) == (None, "v1.2")


def test_a_release_is_what_its_tag_contains_and_no_earlier_one_whenever_it_was_tagged(repository: Repository) -> None:
    repository.commit("Add cart")
    first = repository.commit("Add refunds", hours=10)
    repository.commit("Add taxes", hours=20)
    repository.git("tag", "1.1", when=START + timedelta(hours=21))
    repository.commit("Add gifts", hours=-30)  # on a machine whose clock is wrong
    repository.git("tag", "-a", "1.2", "-m", "Third", when=START + timedelta(hours=-29))
    repository.git("tag", "-a", "1.0", "-m", "First", first, when=START + timedelta(hours=99))

    found = tasks(list(GitReader(repository.path).records(None)))
    assert [task.release for task in found] == ["1.0", "1.0", "1.1", "1.2"]


@pytest.mark.parametrize(
    ("names", "releases"),
    [
        (["v2.1", "r4.12-beta-1"], ["v2.1", "r4.12-beta-1"]), (["REL_2_1"], ["REL_2_1"]), (["parser-2.1"], ["parser-2.1"]), (["@shop/cart@2.1.0"], ["@shop/cart@2.1.0"]),
        (PRE := ["2.1.0.post1", "1.2-rc1", "v1.2.0-beta-1", "1.2.dev0", "v3.0.0-0"], PRE),
        (["v1", "release-2", "3"], ["v1", "release-2", "3"]), (["v1.0", "v1", "release-2"], ["v1.0"]),
        (["latest", "build-20260102", "2.1-is-broken", "v2.1\x1b[31m"], []),
    ],
)  # fmt: skip
def test_which_tags_are_releases(names: list[str], releases: list[str]) -> None:
    """A number alone names a release where no tag has a version of several numbers, beside which it may move from one to the next."""
    found, _ = tagged(f"commit\t{number:040x}\t\t\t{name}" for number, name in enumerate(names))
    assert list(found.values()) == releases


def test_tags_with_numbers_that_are_no_releases_are_said_once(repository: Repository) -> None:
    repository.commit("Add cart")
    for name in ("v1.0", "latest", "v1", "build-20260102"):
        repository.git("tag", name)
    records = list(GitReader(repository.path).records(None))
    said = [record.skipped for record in records if record.skipped]
    assert said == ["of the tags, these name no version and count as no release: build-20260102, v1"]
    repository.commit("Add refunds", hours=10)
    assert not any(record.skipped for record in GitReader(repository.path).records(records[-1].cursor))


@pytest.mark.embedded
def test_a_revert_is_work_that_was_done_and_no_failure(repository: Repository, store: AgentMemoryStore) -> None:
    cached = repository.commit("Cache totals")
    why = "Stale totals were paid because the cache outlived the invoice."
    undone = repository.commit(f'Revert "Cache totals"\n\nThis reverts commit {cached}.\n\n{why}', hours=20)
    repository.commit("Revert the new spacing", hours=30)
    repository.commit("Show all taxes", hours=40)
    repository.git("revert", "--no-edit", "HEAD", when=START + timedelta(hours=50))
    repository.commit("Show all taxes", hours=60)
    ingest(store, GitReader(repository.path))

    assert {row["o"] for row in store.cypher("MATCH (m:Memory) RETURN m.outcome AS o")} == {"positive"}
    assert store.query("failures_by_file") == store.query("builds", outcome="failure") == []
    found = store.query("reverted_work", at="2027-01-01")
    assert [(row["content"][:22], len(row["reverted"]), row["in_force"]) for row in found] == [
        ('Revert "Show all taxes', 1, False),  # the taxes are shown again
        ("Revert the new spacing", 0, True),
        ('Revert "Cache totals" ', 1, True),
    ]
    assert [row["git_commit"] for row in store.query("reverted_decisions", at="2027-01-01")] == [cached]
    assert [(row["earlier_commit"], row["later_commit"]) for row in store.query("time_to_fix")][-1] == (cached, undone)


@pytest.mark.embedded
def test_a_merge_that_brings_a_revert_reverts_nothing_itself(repository: Repository, store: AgentMemoryStore) -> None:
    cached = repository.commit("Cache totals")
    repository.git("checkout", "-q", "-b", "undo")
    repository.git("revert", "--no-edit", cached, when=START + timedelta(hours=20), author="Bob")
    repository.git("checkout", "-q", "main")
    merge = ("merge", "-q", "--no-ff", "undo", "-m", 'Revert "Cache totals" (#7)')
    repository.git(*merge, when=START + timedelta(hours=30), author="Eve")
    ingest(store, GitReader(repository.path))

    assert [row["agents"] for row in store.query("reverted_work")] == [["Bob"]]
    assert [row["fixed_by"] for row in store.query("time_to_fix")] == [["Bob"]]


@pytest.mark.embedded
def test_who_merges_a_fix_neither_made_it_nor_broke_anything(repository: Repository, store: AgentMemoryStore) -> None:
    repository.commit("Add cart", author="Ann")
    merged(repository, "Merge pull request #7 from grace/totals\n\nRound totals", hours=20)
    broken = repository.git("rev-parse", "HEAD")
    message = f"Merge pull request #8 from grace/fix\n\nFix the totals, which are wrong since {broken}"
    merged(repository, message, hours=40)
    ingest(store, GitReader(repository.path))

    (row,) = store.query("time_to_fix")
    assert (row["earlier_commit"], row["broken_by"], row["fixed_by"]) == (broken, ["Grace"], ["Grace"])
    authors = "MATCH (m:Memory)-[:AUTHORED_BY]->(p:Person) RETURN p.name AS name, count(*) AS commits ORDER BY name"
    assert [(row["name"], row["commits"]) for row in store.cypher(authors)] == [("Ann", 1), ("Grace", 2)]


@pytest.mark.embedded
def test_days_to_a_fix_are_not_told_where_the_authors_dates_are_out_of_order(
    repository: Repository, store: AgentMemoryStore
) -> None:
    broken = repository.commit("Round totals", hours=90)
    repository.commit(f"Fix the totals\n\nThey were wrong since {broken[:10]}.", hours=20)
    ingest(store, GitReader(repository.path))

    assert [(row["earlier_commit"], row["days"]) for row in store.query("time_to_fix")] == [(broken, None)]


@pytest.mark.embedded
def test_a_file_that_gets_the_name_of_one_that_moved_away_is_another(
    repository: Repository, store: AgentMemoryStore
) -> None:
    for step, (old, new) in enumerate([("app/cart.py", "app/basket.py"), ("app/cart.py", "app/wagon.py")]):
        repository.commit(f"Add {new}", hours=step * -40, file=old, text=f"{new}\n" * 9)
        repository.git("mv", old, new)
        repository.commit(f"Rename to {new}", hours=step * -40 - 10, file="README")
        repository.commit(f"Change {new}", hours=step * -40 - 20, file=new, text=f"{new}\n" * 12)
    ingest(store, GitReader(repository.path))

    for file, last in (("app/basket.py", "basket"), ("app/wagon.py", "wagon"), ("app/cart.py", "wagon")):
        found = [(row["name"], row["content"].split("/")[-1]) for row in store.query("file_history", file=file)]
        names = ["app/cart.py", f"app/{last}.py", f"app/{last}.py"]  # whatever the authors' dates
        assert sorted(found) == sorted((name, f"{last}.py") for name in names), file


@pytest.mark.embedded
def test_a_bot_is_no_person_and_its_forms_are_no_message(repository: Repository, store: AgentMemoryStore) -> None:
    form = "---\nupdated-dependencies:\n- dependency-name: tox\n  dependency-type: indirect\n...\n\nSigned-off-by: dependabot[bot] <x@y.z>"
    repository.commit(f"Bump tox from 3.1 to 3.2\n\nBumps tox.\n\n{form}", author="dependabot[bot]")
    squashed = "---------\n\nCo-authored-by: pre-commit-ci[bot] <66853113+pre-commit-ci[bot]@users.noreply.github.com>"
    repository.commit(f"Fix the total\n\n* Round late\n\n{squashed}", hours=9)
    ingest(store, GitReader(repository.path))

    rows = store.cypher("MATCH (m:Memory) WHERE m.git_commit <> '' RETURN m.content AS c ORDER BY m.seq")
    assert [row["c"] for row in rows] == ["Bump tox from 3.1 to 3.2 Bumps tox.", "Fix the total * Round late"]
    assert [row["n"] for row in store.cypher("MATCH (p:Person) RETURN p.name AS n")] == ["Ada"]
    assert len(store.cypher("MATCH (a:Agent) RETURN a.name AS n")) == 2


@pytest.mark.embedded
def test_a_history_is_stored_in_the_order_of_its_commits(repository: Repository, store: AgentMemoryStore) -> None:
    order = [repository.commit(message, hours=hour / 4) for hour, message in enumerate(["Add cart", CAUSE, "Add tax"])]
    ingest(store, GitReader(repository.path))
    stored = "MATCH (m:Memory) WHERE m.git_commit <> '' RETURN m.git_commit AS sha, m.source AS source ORDER BY m.seq"
    rows = store.cypher(stored)
    assert [row["sha"] for row in rows] == order
    assert [row["source"] for row in rows] == ["commit", "git", "commit"]


def test_memories_are_found_by_the_release_that_their_text_leaves_out(
    repository: Repository, store: AgentMemoryStore
) -> None:
    repository.commit(CAUSE)
    repository.git("tag", "v2.1")
    repository.commit("Round the total\n\nThe total was wrong because cents were cut off.", hours=30)
    ingest(store, GitReader(repository.path))
    found = store.cypher(
        "MATCH (memory:Memory)-[:MENTIONS]->(release:Entity) WHERE release.name = 'v2.1' "
        "RETURN memory.content AS content, release.name AS release"
    )
    assert [row["release"] for row in found] == ["v2.1"]
    assert "rate" in found[0]["content"]
    assert "2.1" not in found[0]["content"]
    results = MemGraph(store).search_memories("v2.1")
    assert results[0].memory.content == found[0]["content"]
