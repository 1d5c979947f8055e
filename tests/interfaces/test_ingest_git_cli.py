"""``memgraph ingest git``: a history goes in as a file or a repository, and what ``list``, ``recall`` and ``query`` say of it is true."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from memgraph.interfaces.cli.group import cli

CENTS = "Use integer cents for prices because floats lost a cent in the invoice export"
CARTS = "Lock the cart while it is paid because two payments were booked for one order"
SAID = "Prices of the {} list were rounded twice because both services rounded them. "
LONG = "".join(SAID.format(number) for number in range(120))
ENDLESS = "The prices were wrong because " + " and ".join(f"service {number} rounded them" for number in range(60))
WHY = (
    "The accounting system expects decimals, so every import of an invoice failed since then, and the clerks had to enter each of "
    "the prices by hand in the evening."
)
COINS = f"{CENTS}\n\nA sum of three prices of a tenth was not what the bank had booked, and nobody could tell where the difference came from at the end of the year."
PAID = f"{CARTS}\n\nTwo clerks had opened the same cart at the same time on a busy evening, and the bank took the money of a customer who had bought one lamp twice."


class History:
    """A saved ``git log --name-status`` in the making, and the store that it is read into."""

    def __init__(self, folder: Path, settings: Callable[[], Any]) -> None:
        self.path = folder / "shop.log"
        self.home = folder / "store"
        self.settings = settings
        self.commits: list[str] = []

    def commit(self, message: str, *files: str, author: str = "Ada <ada@shop.example>") -> str:
        number = len(self.commits) + 1
        sha = f"{number:02x}" * 20
        lines = "".join(f"    {line}\n" for line in message.split("\n"))
        changed = "".join(f"{file}\n" for file in files or ["M\tshop/prices.py"])
        date = f"2026-01-{number:02d} 12:00:00 +0000"
        self.commits.append(f"commit {sha}\nAuthor: {author}\nDate:   {date}\n\n{lines}\n{changed}")
        self.path.write_text("\n".join(reversed(self.commits)), "utf-8")
        return sha

    def run(self, *arguments: object) -> Result:
        options = ["--home", str(self.home), *map(str, arguments)]
        return CliRunner().invoke(cli, options, prog_name="memgraph", obj=self.settings())

    def read(self, *paths: Path) -> Result:
        return self.run("ingest", "git", *(paths or [self.path]))

    def memories(self) -> list[dict[str, Any]]:
        """The memories of the store in any state, oldest first."""
        options = ("list", "--limit", 1000, "--json")
        states = [(), *(("--state", state) for state in ("invalidated", "superseded"))]
        listed = {one["id"] for state in states for one in json.loads(self.run(*options, *state).stdout)}
        shown: list[dict[str, Any]] = [json.loads(self.run("show", one, "--json").stdout)["memory"] for one in listed]
        return sorted(shown, key=lambda one: (one["occurred_at"], one["content"]))

    def made_of(self, sha: str) -> list[dict[str, Any]]:
        """The memories of one commit."""
        return [one for one in self.memories() if one["git_commit"] == sha]

    def text_of(self, sha: str) -> str:
        (memory,) = self.made_of(sha)
        return str(memory["content"])


class Repository:
    """A git repository with a commit a day, all by Ada."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.days = 0
        self.git("init", "-q", "-b", "main", str(path), folder=path.parent)

    def git(self, *arguments: str, folder: Path | None = None) -> bytes:
        day = f"2026-01-{self.days + 1:02d}T12:00:00+0200"
        ada = {"NAME": "Ada", "EMAIL": "ada@shop.example", "DATE": day}
        people = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in ada.items()}
        environment = {**os.environ, **people, "GIT_CONFIG_GLOBAL": os.devnull, "TZ": "UTC"}
        where = folder or self.path
        return subprocess.run(["git", *arguments], cwd=where, env=environment, check=True, capture_output=True).stdout

    def commit(self, message: str, files: dict[str, str | None]) -> str:
        """Commit files with their new contents; None removes one."""
        self.days += 1
        for name, text in files.items():
            file = self.path / name
            if text is None:
                file.unlink()
                continue
            if file.parent.is_file():
                file.parent.unlink()
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-qm", message)
        return self.git("rev-parse", "HEAD").decode().strip()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "shop")


@pytest.fixture
def history(tmp_path: Path, settings: Callable[[], Any]) -> History:
    return History(tmp_path, settings)


class TestReverts:
    @pytest.mark.parametrize(
        "title",
        [
            'Revert "Use cents"',
            "Go back to decimals",
            "prices: revert the import of carts",
            f'[2.x] Revert "{CARTS}"',
            "Back out the cents",
            f"UNDO: {CENTS}",
        ],
    )
    def test_a_revert_names_the_commit_that_its_body_names(self, history: History, title: str) -> None:
        cents, carts = history.commit(COINS), history.commit(PAID, "M\tshop/cart.py")
        revert = history.commit(f"{title}\n\nThis reverts commit {cents}.\n\n{WHY}")
        history.read()

        assert history.text_of(revert).endswith(f" This reverts commit {cents}. {WHY}")
        assert [one["invalid_at"] is None for one in (*history.made_of(cents), *history.made_of(carts))] == [
            False,
            True,
        ]

    @pytest.mark.parametrize(
        "body",
        [
            '* Add letters\n\n* Revert "{title}"\n\nThis reverts commit {sha}.\n\n* Send it on Mondays\n\n{why}',
            'First draft.\n\nRevert "{title}"\n\nThis reverts commit {sha}.\n\n{why}',
            "{why}\n\nThis partially reverts commit {sha}.",
            "{why}\n\nUnlike before, nothing here reverts commit {sha}.",
        ],
    )
    def test_a_commit_that_only_mentions_a_revert_is_none(self, history: History, body: str) -> None:
        cents = history.commit(COINS)
        added = history.commit(
            f"Add a newsletter (#12)\n\n{body.format(title=CENTS, sha=cents, why=WHY)}", "A\tshop/letter.py"
        )
        history.read()

        assert "reverted" not in history.text_of(added)
        assert [one["outcome"] for one in history.made_of(added)] == ["positive"]
        assert [one["invalid_at"] for one in history.made_of(cents)] == [None]

    def test_a_revert_that_quotes_what_it_reverts_in_a_list_ends_it(
        self, history: History, repository: Repository
    ) -> None:
        cents = repository.commit(COINS, {"shop/prices.py": "1"})
        message = f'Revert cents (#7)\n\n* Revert "{CENTS}"\n\n* Add a test of decimals'
        revert = repository.commit(message, {"shop/prices.py": "2", "test_prices.py": "1"})
        history.read(repository.path)

        reason = f"its change was reverted by commit {revert[:12]}"
        assert [one["invalidation_reason"] for one in history.made_of(cents)] == [reason]
        (found,) = json.loads(history.run("query", "reverted_work", "--json").stdout)
        assert found["reverted"] == [cents]
        recalled = history.run("recall", "Use integer cents for prices").stdout
        assert f"reverts {cents[:8]}" in recalled
        assert "what the bank had booked" not in recalled

    @pytest.mark.parametrize("title", ['Revert "Revert "{}""', 'Reapply "{}"', 'Reland "{}"', "Go back to cents"])
    def test_a_revert_of_a_revert_puts_the_change_back(self, history: History, title: str) -> None:
        cents = history.commit(COINS)
        revert = history.commit(f'Revert "{CENTS}"\n\nThis reverts commit {cents}.\n\n{WHY}')
        again = history.commit(f"{title.format(CENTS)}\n\nThis reverts commit {revert}.\n\n{WHY}")
        history.read()

        states = {sha: [one["invalid_at"] is None for one in history.made_of(sha)] for sha in (cents, revert, again)}
        assert states == {cents: [True], revert: [False], again: [True]}
        recalled = history.run("recall", "Use integer cents for prices").stdout
        assert "What to avoid" not in recalled

    def test_a_third_revert_takes_the_first_change_back(self, history: History) -> None:
        cents = history.commit(COINS)
        revert = history.commit(f'Revert "{CENTS}"\n\nThis reverts commit {cents}.')
        again = history.commit(f'Reapply "{CENTS}"\n\nThis reverts commit {revert}.')
        history.commit(f'Revert "Reapply "{CENTS}""\n\nThis reverts commit {again}.\n\n{WHY}')
        history.read()

        assert [one["invalid_at"] is None for one in history.made_of(cents)] == [False]

    @pytest.mark.parametrize("lead", ["UNDO:", "Undo:", "Revert:", "Rollback:", "Back out:", "revert:"])
    def test_a_subject_that_undoes_another_is_never_merged_with_it(self, history: History, lead: str) -> None:
        cents, undo = history.commit(COINS), history.commit(f"{lead} {CENTS}")
        history.read()

        assert [(one["git_commit"], one["invalid_at"] is None) for one in history.memories()] == [(cents, False)]
        assert history.memories()[0]["invalidation_reason"] == f"its change was reverted by commit {undo[:12]}"

    @pytest.mark.parametrize("lead", ["UNDO:", "undo:", "Revert:", "rollback:"])
    def test_a_subject_that_may_undo_an_unknown_change_keeps_its_lead(self, history: History, lead: str) -> None:
        undo = history.commit(f"{lead} {COINS}")
        history.read()

        assert history.text_of(undo).casefold().startswith(lead.casefold())


class TestSavedLogs:
    @pytest.fixture
    def shop(self, repository: Repository) -> Repository:
        code = "def price(cart):\n    try:\n        return sum(cart)\n    finally:\n        pass\n"
        repository.commit(COINS, {"prices.py": code})
        repository.commit(
            f"Round only once because sums of rounded prices differ from the bank\n\n{WHY}",
            {"prices.py": code.replace("sum", "total")},
        )
        repository.commit(PAID, {"cart.py": code, "prices.py": code.replace("cart", "goods")})
        repository.git("tag", "v1.0")
        repository.git("notes", "add", "-m", "Never deploy this on Fridays because the bank is closed.")
        return repository

    @staticmethod
    def said(history: History) -> list[tuple[str, str, str, list[str]]]:
        found = history.memories()
        return [
            (one["git_commit"][:7], one["content"], one["occurred_at"][:10], one["files_involved"]) for one in found
        ]

    @pytest.mark.parametrize(
        "options",
        [
            "--parents",
            "--children",
            "--parents --decorate",
            "--source --all",
            "--boundary HEAD",
            "--left-right HEAD",
            "--abbrev-commit",
            "--reverse",
            "--raw",
            "-p",
            "--notes",
            "--color=always",
            "--date=short",
            "--date=iso",
            "--date=iso-strict",
            "--date=rfc",
            "--date=raw",
            "--date=unix",
            "--date=local",
            "--pretty=fuller",
            "--pretty=raw",
            "-g",
        ],
    )
    def test_each_form_of_a_log_says_what_its_repository_says(
        self, history: History, shop: Repository, options: str
    ) -> None:
        history.read(shop.path)
        expected = self.said(history)
        history.home = history.home.with_name("second")
        history.path.write_bytes(shop.git("log", "--name-status", *options.split()))
        if options == "-p":  # git shows the names or the changes
            expected = [(*told[:3], []) for told in expected]
            history.path.write_bytes(shop.git("log", "-p"))
        history.read()

        found = self.said(history)
        without_place = [tuple(re.sub(r" \(\S+\)$", "", str(part)) for part in told[:3]) for told in found]
        assert len(expected) == 3
        assert without_place == [tuple(re.sub(r" \(\S+\)$", "", str(part)) for part in told[:3]) for told in expected]
        assert [told[3] for told in found] == [told[3] for told in expected]

    @pytest.mark.parametrize(
        "form", ["utf-8-sig", "utf-16", "utf-16-be", "crlf", "gzip", "gzip of utf-16", "two gzip members"]
    )
    def test_a_log_is_read_as_the_shell_or_the_archive_wrote_it(
        self, history: History, shop: Repository, form: str
    ) -> None:
        text = shop.git("log", "--name-status").decode()
        history.path.write_text(text)
        history.read()
        expected = self.said(history)
        history.home = history.home.with_name("second")
        whole = text.encode()
        written = {
            "crlf": text.replace("\n", "\r\n").encode(),
            "utf-16-be": b"\xfe\xff" + text.encode("utf-16-be"),
            "gzip": gzip.compress(whole),
            "gzip of utf-16": gzip.compress(text.encode("utf-16")),
            "two gzip members": gzip.compress(whole[:200]) + gzip.compress(whole[200:]),
        }
        path = history.path.with_name("shop.log.gz" if "gzip" in form else "shop.log")
        path.write_bytes(written[form] if form in written else text.encode(form))

        assert history.read(path).exit_code == 0
        assert len(expected) == 3
        assert self.said(history) == expected

    def test_the_half_of_a_gzip_file_is_not_the_whole_log(self, history: History, shop: Repository) -> None:
        packed = gzip.compress(shop.git("log", "-p", "--stat"))
        path = history.path.with_name("shop.log.gz")
        path.write_bytes(packed[: len(packed) // 2])

        read = history.read(path)

        assert "the gzip data is truncated" in read.output

    @pytest.mark.parametrize(
        ("zone", "moment"),
        [
            ("+9999", "2026-01-04T17:33:20.000Z"),
            ("+51800", "2025-12-18T08:12:20.000Z"),
            ("-0060", "2026-01-08T23:12:20.000Z"),
            ("+0530", "2026-01-08T16:42:20.000Z"),
        ],
    )
    def test_an_impossible_time_zone_is_taken_as_git_takes_it(self, history: History, zone: str, moment: str) -> None:
        text = f"commit {'0a' * 20}\nAuthor: Zo <z@x>\nDate:   Thu Jan 8 22:12:20 2026 {zone}\n\n    {COINS.replace(chr(10), chr(10) + 4 * chr(32))}\n"
        history.path.write_text(text)
        history.read()

        assert [one["occurred_at"] for one in history.memories()] == [moment]

    def test_an_impossible_time_zone_in_a_repository_loses_no_commit(
        self, history: History, repository: Repository
    ) -> None:
        repository.commit("Begin", {"a.py": "1"})
        tree = repository.git("rev-parse", "HEAD^{tree}").decode().strip()
        people = "author Zo <z@x> 1767873140 +51800\ncommitter Zo <z@x> 1767873140 +9999"
        commit = repository.path / "commit"
        commit.write_text(f"tree {tree}\n{people}\n\n{COINS}\n")
        sha = repository.git("hash-object", "--literally", "-w", "-t", "commit", str(commit)).decode().strip()
        repository.git("update-ref", "HEAD", sha)

        assert history.read(repository.path).exit_code == 0
        assert [one["occurred_at"] for one in history.memories()] == ["2026-01-08T11:52:20.000Z"]

    def test_a_commit_whose_date_cannot_be_read_is_named_with_a_remedy(
        self, history: History, shop: Repository
    ) -> None:
        history.path.write_bytes(shop.git("log", "--name-status", "--date=relative"))

        said = history.read().output

        assert re.search(
            r"commit [0-9a-f]{8}: its date “.+ ago” cannot be read: save `git log --name-status --date=iso`", said
        )


class TestRepositories:
    @pytest.mark.parametrize("kind", ["blob:none", "blob:limit=10", "tree:0"])
    def test_a_partial_clone_teaches_what_its_repository_does(
        self, history: History, repository: Repository, kind: str
    ) -> None:
        numbers = "\n".join(map(str, range(200)))
        repository.commit(COINS, {"prices.py": numbers})
        repository.commit("Rename the prices because their name clashed", {"prices.py": None, "p.py": f"{numbers}\nx"})
        repository.commit(PAID, {"cart.py": "1"})
        repository.git("config", "uploadpack.allowFilter", "true")
        source, clone = f"file://{repository.path}", repository.path.with_name("clone")
        repository.git("clone", "-q", "--no-checkout", f"--filter={kind}", source, str(clone), folder=clone.parent)

        read = history.read(clone)

        assert read.exit_code == 0
        assert [one["content"].partition(".")[0] for one in history.memories()] == [CENTS, CARTS]
        assert [one["invalid_at"] for one in history.memories()] == [None] * 2
        assert ("changed files are unknown" in read.output) == (kind == "tree:0")
        assert ("lines or renames of 3 commits could not be read" in " ".join(read.output.split())) == (
            kind != "tree:0"
        )

    def test_lines_that_cannot_be_counted_are_no_zeros(self, history: History, repository: Repository) -> None:
        repository.commit(COINS, {"prices.py": "1\n", "cart.py": "2\n"})
        repository.commit(PAID, {"cart.py": "3\n"})
        lost = repository.git("rev-parse", "HEAD:prices.py").decode().strip()
        (repository.path / ".git" / "objects" / lost[:2] / lost[2:]).unlink()

        read = history.read(repository.path)

        assert "lines or renames of 1 commit could not be read" in " ".join(read.output.split())
        for file, counted in (("prices.py", [(None, None)]), ("cart.py", [(1, 1), (None, None)])):
            rows = json.loads(history.run("query", "file_history", "--param", f"file={file}", "--json").stdout)
            assert [(row["added"], row["removed"]) for row in rows] == counted

    @pytest.fixture
    def of_another_user(self, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
        """A repository that git takes for another user's."""
        repository.commit(COINS, {"prices.py": "1"})
        git = tmp_path / "bin" / "git"
        git.parent.mkdir()
        git.write_text(f'#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec "{shutil.which("git")}" "$@"\n')
        git.chmod(0o755)
        monkeypatch.setenv("PATH", f"{git.parent}:{os.environ['PATH']}")
        # the one who runs the tests may trust every folder
        for level in ("GLOBAL", "SYSTEM"):
            monkeypatch.setenv(f"GIT_CONFIG_{level}", os.devnull)
        return repository

    def test_a_repository_of_another_user_is_refused_with_gits_remedy(
        self, history: History, of_another_user: Repository
    ) -> None:
        refused = history.read(of_another_user.path)

        assert refused.exit_code != 0
        assert f"git config --global --add safe.directory {of_another_user.path}" in " ".join(refused.output.split())

    @pytest.mark.parametrize("how", ["numbered", "file"])
    def test_a_repository_of_another_user_is_read_where_the_environment_allows_it(
        self, history: History, of_another_user: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
    ) -> None:
        if how == "file":
            (tmp_path / "config").write_text('[safe]\n\tdirectory = "*"\n')
            monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
        else:
            numbered = {"COUNT": "1", "KEY_0": "safe.directory", "VALUE_0": "*"}
            for name, value in numbered.items():
                monkeypatch.setenv(f"GIT_CONFIG_{name}", value)

        assert history.read(of_another_user.path).exit_code == 0
        assert [one["content"] for one in history.memories()] == [COINS.replace("\n\n", ". ")]


class TestMovedFiles:
    NUMBERS = "\n".join(f"row {number}" for number in range(90))
    REWRITTEN = "\n".join(f"price {number}" for number in range(31))
    """More than half as many lines as were taken away."""

    @pytest.mark.parametrize(
        ("message", "after"),
        [
            (
                "Make the prices a package",
                {"shop/prices.py": None, "shop/prices/__init__.py": "1", "shop/prices/vat.py": "2"},
            ),
            ("Tidy the prices", {"shop/prices.py": None, "shop/prices/vat.py": "1", "shop/prices/net.py": "2"}),
            ("Split the prices", {"shop/prices.py": None, "shop/vat.py": REWRITTEN, "shop/net.py": "2"}),
            ("Move the prices into the cart", {"shop/prices.py": None, "shop/cart.py": f"{NUMBERS}\n{REWRITTEN}"}),
            ("Prices belong to the core", {"shop/prices.py": None, "core/prices.py": "rewritten"}),
            ("Remove shop/prices.py", {"shop/prices.py": None, "core/prices.py": "rewritten"}),
            ("Drop the prices", {"shop/prices.py": None, "shop/money.py": REWRITTEN}),
            ("Compile the prices", {"shop/prices.py": None, "shop/prices.pyx": REWRITTEN}),
        ],
    )
    def test_code_that_moved_is_not_gone(
        self, history: History, repository: Repository, message: str, after: dict[str, str | None]
    ) -> None:
        repository.commit("Begin", {"shop/cart.py": self.NUMBERS})
        cents = repository.commit(COINS, {"shop/prices.py": "1\n" * 60})
        repository.commit(message, after)
        history.read(repository.path)

        assert [(one["invalid_at"], one["invalidation_reason"]) for one in history.made_of(cents)] == [(None, None)]

    @pytest.mark.parametrize(
        ("message", "after"),
        [
            ("Remove the prices", {"shop/prices.py": None}),
            ("The bank knows the prices", {"shop/prices.py": None, "notes.md": "Prices are at the bank"}),
            ("Drop our own prices", {"shop/prices.py": None, "shop/bank.py": "1"}),
            ("Say where the prices went", {"shop/prices.py": None, "shop/prices.md": "Prices are at the bank"}),
            ("Write another manual", {"shop/prices.py": None, "shop/manual.md": REWRITTEN}),
        ],
    )
    def test_code_that_was_removed_is_gone(
        self, history: History, repository: Repository, message: str, after: dict[str, str | None]
    ) -> None:
        cents = repository.commit(COINS, {"shop/prices.py": "1\n" * 60})
        gone = repository.commit(message, after)
        history.read(repository.path)

        reason = f"the code it concerns was removed by commit {gone[:12]}"
        assert [one["invalidation_reason"] for one in history.made_of(cents)] == [reason]

    @pytest.mark.parametrize("moved", ["prices/__init__.py", "prices.pyx"])
    def test_code_that_moved_and_was_then_removed_is_gone(
        self, history: History, repository: Repository, moved: str
    ) -> None:
        cents = repository.commit(COINS, {"prices.py": "1\n" * 60})
        repository.commit("Move the prices", {"prices.py": None, moved: self.REWRITTEN})
        repository.commit("Remove the prices", {moved: None})
        history.read(repository.path)

        assert [one["files_involved"] for one in history.made_of(cents)] == [[moved]]
        assert "was removed" in str(history.made_of(cents)[0]["invalidation_reason"])


class TestReleases:
    @staticmethod
    def releases(history: History) -> list[list[str]]:
        names = [[one["name"] for one in memory["entities"]] for memory in history.memories()]
        return [[name for name in one if name.startswith("v")] for one in names]

    def test_a_release_that_is_tagged_after_its_commits_were_read_has_its_memories(
        self, history: History, repository: Repository
    ) -> None:
        repository.commit(COINS, {"prices.py": "1"})
        repository.git("tag", "v1.0")
        repository.commit(PAID, {"cart.py": "1"})
        history.read(repository.path)
        before = self.releases(history)
        repository.git("tag", "-a", "v1.1", "-m", "Carts")
        repository.commit(f"Sort the goods because customers lost them\n\n{WHY}", {"goods.py": "1"})
        repository.git("tag", "v2.0")
        again = history.read(repository.path).output
        third = history.read(repository.path).output

        assert before == [["v1.0"], []]
        assert self.releases(history) == [["v1.0"], ["v1.1"], ["v2.0"]]
        assert "1 memory added" in again
        assert "Nothing new to read" in third
        found = json.loads(history.run("search", "what came with v1.1", "--json").stdout)
        assert "Lock the cart" in json.dumps(found).split("Use integer")[0]

    @pytest.mark.xfail(strict=True, reason="issue 15: a kind of its own would change the schemas of released events")
    def test_a_release_is_of_the_kind_release(self, history: History, repository: Repository) -> None:
        repository.commit(COINS, {"prices.py": "1"})
        repository.git("tag", "v1.0")
        history.read(repository.path)

        (memory,) = history.memories()
        assert [one["kind"] for one in memory["entities"] if one["name"] == "v1.0"] == ["release"]

    def test_what_was_read_is_what_was_kept_and_what_was_not(self, history: History, repository: Repository) -> None:
        repository.commit("Add a cart", {"cart.py": "1"})
        repository.git("checkout", "-q", "-b", "side")
        repository.commit("Count the stairs", {"stairs.py": "1"})
        repository.git("checkout", "-q", "-")
        repository.git("merge", "-q", "--no-ff", "-m", "Count the stairs", "side")
        said = history.run("ingest", "git", str(repository.path)).stdout
        assert said.startswith("Read 3 commits as ")
        assert "Kept 2 commits as records, each of" in said
        assert "Did not keep 1 merge that only repeats the message of what is brought in." in said

    def test_the_numbers_of_a_report_add_up_to_the_commits_of_the_history(
        self, history: History, repository: Repository, tmp_path: Path
    ) -> None:
        def kept() -> tuple[int, int]:
            query = "MATCH (m:Memory) WHERE m.git_commit <> '' RETURN m.source AS source"
            sources = [row["source"] for row in json.loads(history.run("query", "--cypher", query, "--json").stdout)]
            return sources.count("git"), sources.count("commit")

        repository.commit(COINS, {"prices.py": "1"})
        repository.commit("Add a cart", {"cart.py": "1"})
        repository.git("checkout", "-q", "-b", "side")
        repository.commit("Count the stairs", {"stairs.py": "1"})
        repository.git("checkout", "-q", "-")
        repository.git("merge", "-q", "--no-ff", "-m", "Count the stairs", "side")
        said = history.run("ingest", "git", repository.path).stdout
        assert int(repository.git("rev-list", "--count", "HEAD")) == 4
        assert kept() == (1, 2)
        assert "4 commits = 1 memory + 2 records + 1 merge not kept.\n" in said

        repository.commit(COINS, {"coins.py": "1"})
        repository.commit("Add a lamp", {"lamp.py": "1"})
        said = history.run("ingest", "git", repository.path).stdout
        assert "Read 2 commits as " in said
        assert "0 memories added, 1 merged into an existing one and kept as a record.\n" in said
        assert "Kept 2 commits as records" in said
        assert kept() == (1, 4)

        assert history.run("forget", "--match", "integer cents", "--yes").exit_code == 0
        repository.commit(f"Sort the goods\n\n{WHY}", {"goods.py": "1"})
        repository.commit(COINS, {"cents.py": "1"})
        repository.commit("Add a rug", {"rug.py": "1"})
        said = history.run("ingest", "git", repository.path).stdout
        assert "3 commits = 1 memory + 1 record + 1 that repeats what was forgotten or deleted.\n" in said

        repository.days -= 1  # the sitting of the rug grows
        repository.commit("Turn the rug", {"rug.py": "2"})
        said = history.run("ingest", "git", repository.path).stdout
        assert "2 commits = 1 record + 1 that left nothing new.\n" in said

        other = Repository(tmp_path / "till")
        other.commit("Open the till", {"till.py": "1"})
        afresh = ("ingest", "git", repository.path, other.path, "--home", tmp_path / "afresh", "--json")
        total = json.loads(history.run(*afresh).stdout)["total"]
        assert total["read"] == sum(int(one.git("rev-list", "--count", "HEAD")) for one in (repository, other)) == 11
        assert total["read"] == total["extracted"] + total["recorded"] + total["repeated"]
        assert total["repeated"] == 1

    def test_a_release_is_told_apart_from_commits_in_a_query(self, history: History, repository: Repository) -> None:
        repository.commit(COINS, {"prices.py": "1"})
        repository.git("tag", "v1.0")
        history.read(repository.path)
        for options in ([], ["--param", "kind=release"]):
            found = json.loads(history.run("query", "entities_by_mentions", *options, "--json").stdout)
            assert [row["kind"] for row in found if row["entity"] == "v1.0"] == ["release"]

    def test_a_release_of_records_is_learned_while_their_sitting_grows(
        self, history: History, repository: Repository, caplog: pytest.LogCaptureFixture
    ) -> None:
        """And the copy of the graph, which was there before, follows."""
        query = "MATCH (m:Memory)-[:IN_RELEASE]->(r:Release) RETURN m.content AS text, r.name AS name"
        repository.commit("Count the carts", {"carts.py": "1"})
        repository.commit(COINS, {"prices.py": "1"})
        history.read(repository.path)
        assert json.loads(history.run("query", "--cypher", query, "--json").stdout) == []
        repository.git("tag", "v1.0")
        repository.commit("Count the stairs", {"stairs.py": "1"})
        history.read(repository.path)
        found = json.loads(history.run("query", "--cypher", query, "--json").stdout)
        assert [row["name"] for row in found] == ["v1.0", "v1.0"]
        assert "Count the carts" in [row["text"] for row in found]
        assert "written anew" not in caplog.text

    def test_a_tag_alone_is_news(self, history: History, repository: Repository) -> None:
        repository.commit(COINS, {"prices.py": "1"})
        history.read(repository.path)
        repository.git("tag", "v1.0")
        history.read(repository.path)
        repository.git("tag", "v0.9")  # of a commit whose release is known

        history.read(repository.path)
        assert self.releases(history) == [["v1.0"]]


class TestTexts:
    @pytest.mark.parametrize(
        "message",
        [
            "Fix the prices that were wrong because both services round\n\n"
            + "Look at the list of all prices in it today.\n\n" * 176
            + ENDLESS[:130]
            + ".",
            f"Fix the prices which were wrong\n\n{LONG[:1500]}",
            f"Drop the old prices of carts\n\nBREAKING CHANGE: {'Carts have prices in cents and decimals from here on. ' * 30}",
            f"Drop the old prices of carts\n\nBREAKING CHANGE: Carts have prices{' and prices of goods' * 60}",
            f"{ENDLESS}\n\n{WHY}",
        ],
        ids=range(5),
    )
    def test_no_text_is_cut_inside_a_sentence(self, history: History, message: str) -> None:
        sha = history.commit(message)
        history.read()

        wanted = " ".join(re.sub(r"\.?\n\n", ". ", message).split()).casefold()
        assert history.made_of(sha)
        for text in [one["content"] for one in history.made_of(sha)]:
            told = text
            for one in re.split(r"(?<=[.!?…])\s+", told):
                words = one.rstrip(".…").casefold()
                follows = wanted.partition(words)[2][:2] if words in wanted else ""
                assert one.endswith("…") or follows.strip() in ("", ".", ";"), (one, follows)
                assert len(words.split()) > 1


class TestRecalls:
    @pytest.mark.parametrize(
        ("message", "part"),
        [
            (PAID, ", commit 02020202)"),
            (f"{CARTS} (#2)", "- Commit 02020202: Lock the cart"),
            (f'Revert "{CARTS}"\n\n{WHY}', ", by commit 02020202)"),
        ],
    )
    def test_a_line_of_a_commit_has_its_abbreviated_id_once(self, history: History, message: str, part: str) -> None:
        history.commit(COINS)
        history.commit(message, "M\tshop/cart.py")
        history.read()

        (recalled,) = (line for line in history.run("recall", CARTS).stdout.splitlines() if CARTS in line)
        (found,) = (line for line in history.run("search", CARTS).stdout.splitlines() if CARTS in line)
        assert part in recalled
        assert "\tcommit 02020202\t" in found
        assert [line.count("02020202") for line in (recalled, found)] == [1, 1]


class TestEntities:
    def test_only_what_is_called_a_package_is_one(self, history: History) -> None:
        history.commit(
            "Fix `port` and `query`, which were lost because `in` and `no-cache` of the `options` hid them\n\n"
            f"The package `litellm` failed without it, and the `left-pad` library and `@shop/cart` failed because of it. {WHY}"
        )
        history.read()

        (memory,) = history.memories()
        packages = [one["name"] for one in memory["entities"] if one["kind"] == "package"]
        assert sorted(packages) == ["@shop/cart", "left-pad", "litellm"]
        assert {"port", "query", "options"} <= {one["name"] for one in memory["entities"] if one["kind"] == "symbol"}

    def test_the_names_of_one_person_in_a_mailmap_are_one_agent(self, history: History, repository: Repository) -> None:
        (repository.path / ".mailmap").write_text("Ada Lovelace <ada@shop.example>\n")
        repository.commit(COINS, {"prices.py": "1"})
        history.read(repository.path)

        assert [one["agents_involved"] for one in history.memories()] == [["Ada Lovelace"]]
