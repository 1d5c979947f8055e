"""What the reader of a history says of each commit: kind, files, people, issues, and what it undoes."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memgraph.extraction.readers import GitReader
from memgraph.extraction.readers.commits import Commit, FileChange, RecentCommits, grouped, issues_in, kind_of, persons
from memgraph.model.build import BuildTask, ChangedFile
from tests.unit.extraction.readers.test_git_readers import START, Repository, tasks

NAMES = {"shop/shop", "acme/shop"}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "shop")


def read(*commits: Commit) -> list[BuildTask]:
    given = [(commit, str(place)) for place, commit in enumerate(commits)]
    return tasks(list(grouped(given, project_id="shop", cursor="", recent=RecentCommits(), repositories=NAMES)))


def sha(number: int) -> str:
    return f"{number + 1:040x}".replace("0", "a")


def history(*messages: str) -> list[BuildTask]:
    """Read commits of these messages, the oldest first; ``{n}`` stands for the id of the n-th."""
    ids = [sha(number) for number in range(len(messages))]
    made = (
        Commit(ids[n], "Ada", START + timedelta(hours=n), message.format(*ids, none="f" * 40))
        for n, message in enumerate(messages)
    )
    return read(*made)


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ('Revert "Cache the totals of carts (#12)"', 0),
        ('Revert "Cache the totals of carts"', 0),
        ('Revert "Cache the totals…"', 0),
        ('fix: Revert "Cache the totals of carts (#12)" (#40)', 0),
        ("Revert cache the totals of carts (refs #7)", 0),
        ("UNDO: Cache the totals of carts", 0),
        ("Back out changeset {0}", 0),
        ("Roll back #12", 0),
        ("Rollback change #12.", 0),
        ("Roll back the pull/12, which broke Mondays", 0),
        ("Restore the totals\n\nThis reverts commit {0}, reversing\nchanges made to {1}.", 0),
        ("Compute totals\n\nRevert https://git.example.org/acme/shop/pull/12.", 0),
        ('Revert "Cache the totals of carts"\n\nThis reverts commit {none}.', 0),
        ('Revert "Lock the carts"\n\nThis reverts commit {0}.', 0),
        ('Revert the caching (#20)\n\n* Revert "Cache the totals of carts (#12)"\n\n* Add a test', 0),
        ('Revert the caching\n\n- Add a test\n- Revert "Cache the totals of carts"', 0),
        ("Revert the caching\n\n* Revert {0}\n* Add a test", 0),
        ('Compute totals\n\nThis reverts "Cache the totals of carts", because they lost a cent.', 0),
        ("Fix #30 by reverting {0} (#40)", 0),
        ("fix: the till, counted by hand, by reverting #12", 0),
        ('Fix the till by reverting "Cache the totals of carts"', 0),
    ],
)
def test_a_revert_is_of_what_its_message_names(message: str, place: int) -> None:
    *earlier, revert = history("Cache the totals of carts (#12)", "Lock the carts", message)
    assert (revert.reverts, revert.outcome, revert.kind) == (earlier[place].task_id, "success", "revert")
    assert revert.undone_subject == earlier[place].description
    assert revert.undoes == []


@pytest.mark.parametrize(
    "message",
    [
        "Add revert command to the shop",
        "Undo history: keep ten steps",
        "Revert to the earlier way of rounding",
        "Allow to reapply a discount",
        'Lock the till (#30)\n\n* wip\n* Revert "Lock the carts"\n\nThis reverts commit {1}.\n* done',
        'Lock the till (#30)\n\n* Revert "Cache the totals of carts (#12)"\n* done',
        'Lock the till\n\nUnlike what reverts "Cache the totals of carts", this keeps them.',
        "Lock the till\n\nNeed to revert this commit when carts are locked.",
        "Lock the till\n\nThis commit reverts a part of {1} and keeps the rest.",
        "Take back some of {1}: reverting it whole is too much",
        "Lock the till by hand instead of reverting #12",
        "Lock the till by partially reverting {0}",
        "Lock the till by reverting locks lazily",
        "Fix the till, broken by reverting {0} in the release branch",
        "Lock the till\n\nCould be done by reverting {0} as well.",
    ],
)
def test_what_only_speaks_of_a_revert_is_none(message: str) -> None:
    *_, task = history("Cache the totals of carts (#12)", "Lock the carts", message)
    assert (task.reverts, task.restores, task.undone_subject, task.outcome) == (None, None, "", "success")
    assert task.kind != "revert"


def test_a_revert_of_several_names_them_all() -> None:
    message = "Revert the caching\n\nThis rolls back #12 and #13.\nReverts #12."
    first, second, revert, again = history("Cache (#12)", "Lock (#13)", message, "Cache\n\nThis reverts commit {2}.")
    assert (revert.reverts, revert.undoes) == (first.task_id, [first.task_id, second.task_id])
    assert (again.restores, again.undoes) == (first.task_id, [])


@pytest.mark.parametrize(
    "names",
    [
        "This reverts commits:\n\n* {0}\n* {1}",
        "This reverts commits:\n- {0}\n- {1}",
        "Reverts:\n* {0}\n* {1}\n",
        "This reverts commits:\n\n{0}, {1}",
        "Reverting commits:\n{0}\n{1}",
    ],
)
def test_a_list_of_commits_below_a_colon_is_of_what_is_reverted(names: str) -> None:
    first, second, other, revert = history(
        "Cache", "Lock", "Round", f"Revert the locks\n\nAs discussed.\n\n{names}\n\nCloses #3"
    )
    assert revert.undoes == [first.task_id, second.task_id]
    assert other.task_id not in revert.undoes


def test_the_revert_of_a_merge_takes_back_what_it_brought_and_its_revert_puts_that_back() -> None:
    changed = (FileChange("M", "cart.py"),)
    told = {
        0: ("Cache", ()),
        1: ("Lock", (0,)),
        2: ('Revert "Cache"', (1,)),
        3: ("Round", (0,)),
        4: ("Merge topic", (3, 2)),
    }
    told |= {
        5: (f'Revert "Merge topic"\n\nThis reverts commit {sha(4)}.', (4,)),
        6: (f"Topic again\n\nThis reverts commit {sha(5)}.", (5,)),
    }
    made = [
        Commit(sha(n), "Ada", START, message, () if len(of) > 1 else changed, parents=tuple(map(sha, of)))
        for n, (message, of) in told.items()
    ]
    tasks = read(*made)
    revert, again = tasks[-2:]
    assert sorted(revert.undoes) == sorted(
        task.task_id for task in tasks if task.description.startswith(("Merge", "Lock", 'Revert "Cache'))
    )
    assert "Round" not in [task.description for task in tasks if task.task_id in revert.undoes]
    assert tasks[0].task_id in (revert.restores, *revert.restores_too), "the topic's revert of the cache is gone"
    assert {tasks[1].task_id, tasks[2].task_id} <= {again.restores, *again.restores_too}


def test_a_line_that_repeats_the_title_is_no_part_of_the_text() -> None:
    told = "Convert the hooks (#210)\n\nConvert the hooks\n\nThey were slow.", "Convert the pots\n\nConvert the pots"
    assert [task.text for task in history(*told)] == ["Convert the hooks (#210)\n\nThey were slow.", "Convert the pots"]


def test_a_fix_by_reverting_several_takes_each_of_them_back() -> None:
    first, second, fix = history("Cache", "Lock", "fix #587 by reverting {0} and {1} (#606)")
    assert (fix.reverts, fix.undoes, fix.mends) == (first.task_id, [first.task_id, second.task_id], None)
    assert fix.closes == [587]


def test_what_is_caused_by_an_earlier_revert_is_not_reverted_again() -> None:
    messages = "Cache (#12)", f"Revert {sha(0)}", f"Fix a crash caused by reverting {sha(0)}"
    changed = (FileChange("M", "cart.py"),)
    *_, fix = read(*(Commit(sha(n), "Ada", START, message, changed) for n, message in enumerate(messages)))
    assert (fix.reverts, fix.mends, fix.kind) == (None, sha(0), "fix")


def test_what_several_reverts_had_taken_back_is_put_back() -> None:
    earlier = "Cache (#12)", "Lock (#13)", "Round (#14)", "Revert {0} and {1}", "Revert {2}", "Show (#15)"
    cache, lock, rounded, both, one, show = history(*earlier, "Revert {3}, {4} and {5}")[:-1]
    undoing = history(*earlier, "Revert {3}, {4} and {5}")[-1]
    assert undoing.undoes == [task.task_id for task in (both, one, show)]
    assert [undoing.restores, *undoing.restores_too] == [task.task_id for task in (cache, lock, rounded)]
    undoing = history(*earlier, "Revert {5} and {4}")[-1]
    assert (undoing.reverts, undoing.restores, undoing.restores_too) == (show.task_id, None, [rounded.task_id])
    reland = history(*earlier, "Reland {0}")[-1]
    assert (reland.reverts, reland.restores, reland.restores_too) == (both.task_id, cache.task_id, [])


@pytest.mark.parametrize(
    "message",
    [
        "Reland {0}",
        'Reapply "Lock the carts"',
        'Revert "Revert "Lock the carts" (#3)" (#4)',
        "Lock them\n\nThis reverts commit {1}.",
    ],
)
def test_a_revert_of_a_revert_does_it_again(message: str) -> None:
    lock, revert, again = history("Lock the carts", 'Revert "Lock the carts"\n\nThis reverts commit {0}.', message)
    assert (again.reverts, again.restores, again.outcome) == (revert.task_id, lock.task_id, "success")
    assert (again.undone_subject, again.kind) == ("Lock the carts", "other")


def test_contents_that_are_changed_back_are_a_revert_if_the_message_speaks_of_one() -> None:
    def commit(number: int, message: str, before: str, after: str) -> Commit:
        file = FileChange("M", "cart.py", blobs=(before, after))
        return Commit(sha(number), "Ada", START + timedelta(hours=number), message, (file,))

    change = commit(1, "Export", "aa", "bb")
    said, unsaid = commit(2, "Export\n\nrollback of 22", "bb", "aa"), commit(2, "Use less memory", "bb", "aa")
    other = commit(2, "Export\n\nrollback of 22", "bb", "cc")

    assert [(one.reverts, one.takes_back) for one in read(change, said)[1:]] == [(sha(1), None)]
    assert [(one.reverts, one.takes_back, one.outcome) for one in read(change, unsaid)[1:]] == [
        (None, sha(1), "success")
    ]
    assert [(one.reverts, one.takes_back) for one in read(change, other)[1:]] == [(None, None)]
    added, dropped = (
        Commit(
            sha(number), "Ada", START + timedelta(hours=number), message, (FileChange(status, "go.mod", blobs=blobs),)
        )
        for number, message, status, blobs in (
            (1, "Add go.mod", "A", ("00", "aa")),
            (2, "Do without", "D", ("aa", "00")),
        )
    )
    assert [(one.reverts, one.takes_back) for one in read(added, dropped)[1:]] == [(None, sha(1))]
    modes = [commit(number, "Clear the executable bit", "aa", "aa") for number in (1, 2)]  # of the file, no contents
    assert [(one.reverts, one.takes_back) for one in read(*modes)[1:]] == [(None, None)]


def test_a_live_repository_tells_contents_that_are_changed_back_across_runs(repository: Repository) -> None:
    repository.commit("Add cart")
    repository.git("rm", "-q", "app/main.py")
    removed = repository.commit("Clean up", hours=9, file="other.py")
    cursor = list(GitReader(repository.path).records(None))[-1].cursor
    repository.git("checkout", removed + "~1", "--", ".")
    repository.git("rm", "-q", "--cached", "other.py")
    (repository.path / "other.py").unlink()
    repository.git("commit", "-q", "-m", "rollback of 22", when=START + timedelta(hours=30))
    for start in (None, cursor):
        assert tasks(list(GitReader(repository.path).records(start)))[-1].reverts == removed


def test_files_have_kinds_lines_and_former_paths(repository: Repository) -> None:
    def write(path: str, data: bytes) -> None:
        (repository.path / path).write_bytes(data)

    for path in ("moved.py", "changed.py", "gone.py"):
        write(path, b"".join(b"%s %d\n" % (path.encode(), number) for number in range(20)))
    repository.commit("Start", file="new.py")
    repository.git("mv", "moved.py", "here now.py")
    repository.git("rm", "-q", "gone.py")
    write("changed.py", (repository.path / "changed.py").read_bytes().replace(b"changed.py 7\n", b"one\ntwo\n"))
    write("picture.png", bytes(range(256)))
    repository.commit("Change", hours=1, file="new.py")
    repository.git("checkout", "-q", "-b", "side", "HEAD~1")
    repository.commit("Aside", hours=2, file="aside.py")
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge side", "side", when=START + timedelta(hours=3))

    _, change, aside, merge = tasks(list(GitReader(repository.path).records(None)))
    assert {file.path: file for file in change.changes} == {
        "here now.py": ChangedFile(path="here now.py", kind="R", added=0, removed=0, was="moved.py"),
        "gone.py": ChangedFile(path="gone.py", kind="D", added=0, removed=20),
        "changed.py": ChangedFile(path="changed.py", kind="M", added=2, removed=1),
        "picture.png": ChangedFile(path="picture.png", kind="A"),
        "new.py": ChangedFile(path="new.py", kind="M", added=2, removed=2),
    }
    assert [file.path for file in change.changes] == change.files_changed
    assert [task.changes == [] for task in (aside, merge)] == [False, True]


def test_lost_contents_cost_the_counts_and_not_the_run(repository: Repository) -> None:
    for number in range(4):
        repository.commit(f"Step {number}", hours=5 * number)
    lost = repository.git("rev-parse", "HEAD~1:app/main.py")
    (repository.path / ".git" / "objects" / lost[:2] / lost[2:]).unlink()

    found = tasks(list(GitReader(repository.path).records(None)))
    assert [task.description for task in found] == [f"Step {number}" for number in range(4)]
    assert [task.files_changed for task in found] == [["app/main.py"]] * 4
    assert found[-1].changes == [ChangedFile(path="app/main.py", kind="M")]


def test_the_spellings_of_an_author_are_one_person_whose_address_is_not_told(repository: Repository) -> None:
    def commit(name: str, address: str, hours: float) -> None:
        repository.commit(f"By {name}", hours=hours, author=name)
        date = (START + timedelta(hours=hours)).isoformat()
        repository.git("commit", "-q", "--amend", "--no-edit", f"--author={name} <{address}>", f"--date={date}")

    commit("ada", "ada@shop.io", 0)
    commit("Ada Lovelace", "Ada@shop.io", 10)
    commit("Ada Lovelace", "ada@shop.io", 15)
    (repository.path / ".mailmap").write_text("Grace Hopper <grace@navy.mil> <gh@shop.io>\n")
    commit("gh", "gh@shop.io", 20)
    commit("Grace Hopper", "grace@navy.mil", 30)
    records = list(GitReader(repository.path).records(None))
    assert [task.agent_name for task in tasks(records)] == ["Ada Lovelace"] * 3 + ["Grace Hopper"] * 2
    assert not any("@" in record.build.model_dump_json() for record in records if record.build)

    commit("Lovelace, Ada", "ada@shop.io", 40)
    late = tasks(list(GitReader(repository.path).records(records[-1].cursor)))[-1]
    assert late.agent_name == "Ada Lovelace"


SPELLINGS = st.lists(
    st.tuples(
        st.sampled_from(["ada", "Ada Lovelace", "ada lovelace", "A. Lovelace", "Grace Hopper", "gh", "Ben Bit"]),
        st.sampled_from(["ada@shop.io", "a@x.io", "gh@shop.io", "noreply@shop.io", "root@localhost", ""]),
    )
)


@given(SPELLINGS)
def test_a_person_is_known_by_the_full_name_of_the_most_commits_of_several_by_the_latest(
    authors: list[tuple[str, str]],
) -> None:
    users = {address: {name.casefold() for name, used in authors if used == address} for _, address in authors}
    assume(all(len(names) <= 4 for names in users.values()))
    found = persons(authors)
    assert found.keys() == set(authors)
    for one in set(authors):
        own = [name for name, address in authors if found[name, address] == found[one]]
        same = [
            name
            for name, address in authors
            if address == one[1] and address not in ("noreply@shop.io", "root@localhost", "")
        ]
        best = max(own, key=lambda name: (" " in name, own.count(name), len(own) - own[::-1].index(name)))
        assert found[one] == best
        assert {found[name, one[1]] for name in same} <= {found[one]}
    assert persons(authors * 3) == found


def test_a_name_that_most_commits_spell_otherwise_by_now_is_spelled_so(repository: Repository) -> None:
    def by(name: str, hours: float) -> None:
        repository.commit(f"By {name}", hours=hours)
        repository.git("commit", "-q", "--amend", "--no-edit", f"--author={name} <tin@shop.io>")

    for hours in (0, 10):
        by("Tin Tvrtkovic", hours)
    for hours in (20, 30, 40):
        by("Tin Tvrtković", hours)
    assert {task.agent_name for task in tasks(list(GitReader(repository.path).records(None)))} == {"Tin Tvrtković"}
    by("Tin Tvrtkovic", 50)
    assert set(GitReader(repository.path).people().values()) == {"Tin Tvrtkovic"}, "as many: the latest"


def test_an_address_that_many_or_nobody_use_unites_nobody() -> None:
    shared = [(f"Person {number}", "team@shop.io") for number in range(6)]
    nobody = [("Ann One", "noreply@github.com"), ("Ben Two", "noreply@github.com"), ("Cid Three", ""), ("Dee Four", "")]
    assert all(name == person for (name, _), person in persons([*shared, *nobody]).items())
    forms = [("Ann One", "17+ann@users.noreply.github.com"), ("ann", "ann@users.noreply.github.com")]
    assert set(persons(forms).values()) == {"Ann One"}


@pytest.mark.parametrize(
    ("text", "mentions", "closes"),
    [
        ("Fix totals (#12)\n\nFixes #7, see GH-8.", [12, 7, 8], [7]),
        ("Closes: #10 and resolves acme/shop#11", [10, 11], [10, 11]),
        ("FIXED https://github.com/acme/shop/issues/4", [4], [4]),
        ("closes https://git.example.org/acme/shop/-/merge_requests/4", [4], [4]),
        ("fixes #1, #2", [1, 2], [1]),
        ("Tidy <!-- For example:\n“closes #1234” --> (fixes #2)", [2], [2]),
        ("fixes other/shop#3 and https://github.com/other/shop/issues/5", [], []),
        ("prefixes #6; addresses #9", [6, 9], []),
        ("Use colour #123abc, &#39;, a#5, #0, page.html#7", [], []),
    ],
)
def test_issues_of_this_repository_that_a_message_mentions_and_closes(
    text: str, mentions: list[int], closes: list[int]
) -> None:
    assert issues_in(text, NAMES) == (mentions, closes)


def test_a_revert_closes_nothing_that_its_quoted_title_closes(repository: Repository) -> None:
    repository.git("remote", "add", "origin", "git@github.com:Acme/Shop.git")
    repository.commit("Round totals (fixes #3)")
    repository.commit('Revert "Round totals (fixes #3)"\n\nSee https://github.com/acme/shop/pull/9.', hours=9)
    done, revert = tasks(list(GitReader(repository.path).records(None)))
    assert [(task.mentions, task.closes) for task in (done, revert)] == [([3], [3]), ([3, 9], [])]


@pytest.mark.parametrize(
    ("title", "files", "kind"),
    [
        ("fix: totals", ["cart.py"], "fix"),
        ("feat(cart)!: totals", ["cart.py"], "feature"),
        ("[Fix] totals", ["cart.py"], "fix"),
        ("cart: Fix totals", ["cart.py"], "fix"),
        ("Add totals", ["cart.py", "tests/test_cart.py"], "feature"),
        ("Add totals", ["tests/test_cart.py", "docs/cart.md"], "test"),
        ("Explain totals", ["README.md"], "docs"),
        ("Make it blue", ["shop/cart.css"], "other"),
        ("docs: totals", ["cart.py"], "docs"),
        ("refactor(cart): totals", ["cart.py"], "refactor"),
        ("Rename totals", ["cart.py"], "refactor"),
        ("🐛 Fix resetting signals", ["kiln.py"], "fix"),
        ("✏️ Fix ping", ["kiln.py"], "fix"),
        ("v2.1.0", ["setup.py"], "release"),
        ("Bump version to 2.1.0", ["setup.py"], "release"),
        ("chore(release): 2.1.0", ["CHANGES.md"], "release"),
        ("Release 2.1.0rc1 (#7)", ["CHANGES.md"], "release"),
        ("Bump parser from 1.2 to 1.3", ["package.json"], "dependency"),
        ("chore(deps): parser to v3", ["package.json"], "dependency"),
        ("Bump actions/checkout from 3 to 4", [".github/workflows/ci.yml"], "dependency"),
        ("Update requirements", ["requirements/dev.txt", "setup.py"], "dependency"),
        ("Lock", ["Cargo.lock", "Cargo.toml"], "dependency"),
        ("feat: add login", ["Cargo.lock", "Cargo.toml"], "feature"),
        ("Fix crash in the lock", ["src/file.lock"], "fix"),
        ("Explain it", ["docs/requirements/intro.txt"], "docs"),
        ("Carts", ["go.mod", "go.sum"], "dependency"),
        *(("Carts", [f"a/{one}.lock"], "dependency") for one in ("Chart", "renv", "symfony", "rebar", "conan", "shard")),
        ("Update cart>=2 everywhere", ["cart.py"], "dependency"),
        ("Use the parser", ["package.json", "package-lock.json"], "dependency"),
        ("Bump version", ["setup.py"], "other"),
        ("Update Walk to follow links", ["walk.go"], "other"),
        ("Update the docs of carts to the new names", ["cart.py"], "other"),
        ("Update cart.py to use = and not is", ["cart.py"], "other"),
        ("Require a name to be given", ["cart.py"], "other"),
        ("Update the timeout from 5 to 10", ["cart.py"], "other"),
        ("Revert the rounding", ["cart.py"], "revert"),
        ("Totals", ["cart.py"], "other"),
        ("Merge branch 'main'", [], "other"),
        ("Fix a typo in the error for unknown carts", ["carts.py"], "docs"),
        ("Fix spelling.", ["carts.py"], "docs"),
        ("Fixed issue 34: get() raised an error", ["carts.py"], "fix"),
        ("Added: emit an event", ["carts.py"], "feature"),
        ("Merge commit from fork", ["carts.py"], "fix"),
        ("Merge pull request from GHSA-ffqj-6fqr-9h24", ["carts.py", "docs/carts.md"], "fix"),
        ("Merge commit from fork", ["docs/carts.md"], "docs"),
    ],
)  # fmt: skip
def test_the_kind_of_a_change(title: str, files: list[str], kind: str) -> None:
    assert kind_of(title, files, undoes=False, closes=False) == kind
    if kind == "other":
        assert kind_of(title, files, undoes=False, closes=True) == "fix"


@pytest.mark.parametrize(
    "text",
    [
        "All usages of `**kwargs` but `**options` are explicit.",
        "All of f(*args, **kwargs) and g(**options) are 2**3 or x ** 2.",
        "It matches **/*.py, src/** and `docs/**`.",
    ],
)
def test_two_stars_in_code_are_no_emphasis(text: str) -> None:
    (task,) = history(f"Say it\n\nIt is **no news**: {text} (**old**)")
    assert task.text == f"Say it\n\nIt is no news: {text} (old)"


def test_the_text_is_the_message_without_trailers_and_markup() -> None:
    body = (
        "## Why\n\n<!-- explain -->\nThe **total** of [the cart](https://shop.example/cart) was\nwrong.\n\n\n\n"
        "```py\nx = `1`\n```\n\nFixes: #12\nPiperOrigin-RevId: 8\nSigned-off-by: Ada <ada@shop.io>"
    )
    (task,) = history(f"Fix totals\n\n{body}")
    assert task.text == "Fix totals\n\nWhy\n\nThe total of the cart was\nwrong.\n\nx = `1`"
    assert task.closes == [12]
    (long,) = history("Fix totals\n\n" + "word " * 5_000)
    assert 7_900 < len(long.text) <= 8_000


def test_a_release_tagged_later_is_news_of_every_commit(repository: Repository) -> None:
    ids = [repository.commit(f"Step {number}", hours=number) for number in range(25)]
    cursor = list(GitReader(repository.path).records(None))[-1].cursor
    repository.git("tag", "v1.0", ids[9])
    repository.git("tag", "v1.1", ids[-1])
    first = next(iter(GitReader(repository.path).records(cursor)))
    assert first.releases == {one: "v1.0" if place < 10 else "v1.1" for place, one in enumerate(ids)}
