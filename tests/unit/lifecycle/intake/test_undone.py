"""What later commits do to the memories of earlier ones: reverts, removals, renames, corrections."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from memgraph.extraction.readers import GitReader, SavedGitLogReader
from memgraph.lifecycle import ingest
from memgraph.model.memory import RECORD_SOURCE, StoredMemory
from tests.unit.extraction.readers.test_git_readers import START, Repository

WHY = "Each page of the shop took a second more for every customer who looked at it, as the till and the book were read anew for each of the prices."
CACHE = f"Cache the prices\n\nPrices were computed on every read because nothing kept them. {WHY}"
REVERT = f'Revert "Cache the prices"\n\nThe cache was never emptied, so prices are wrong when a discount ends. {WHY}'


class Log:
    """A saved git log that grows at its top."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[str] = []

    def commit(self, message: str, *files: str) -> str:
        number = len(self.entries) + 1
        sha = f"{number:02x}" * 20
        lines = "".join(f"    {line}\n" for line in message.split("\n"))
        date = f"2026-01-{number:02d} 12:00:00 +0000"
        changed = "".join(f"{file}\n" for file in files or ["M\tshop/prices.py"])
        self.entries.append(f"commit {sha}\nAuthor: Ann <ann@shop.example>\nDate:   {date}\n\n{lines}\n{changed}\n")
        self.path.write_text("".join(reversed(self.entries)))
        return sha

    def read_into(self, store: Any) -> dict[str, StoredMemory]:
        ingest(store, SavedGitLogReader(self.path))
        return {one.git_commit or "": one for one in store.every_memory() if one.source != RECORD_SOURCE}


@pytest.fixture(params=["at once", "step by step"])
def log(request: pytest.FixtureRequest, tmp_path: Path, store: Any) -> Log:
    made = Log(tmp_path / "shop.log")
    if request.param == "step by step":
        plain = made.commit

        def commit(message: str, *files: str) -> str:
            sha = plain(message, *files)
            made.read_into(store)
            return sha

        made.commit = commit  # type: ignore[method-assign]
    return made


def test_what_is_reverted_loses_force_and_the_revert_replaces_it(log: Log, store: Any) -> None:
    cached, reverted = log.commit(CACHE), log.commit(REVERT)
    made = log.read_into(store)

    assert made[cached].invalid_at == "2026-01-02T12:00:00.000Z"
    assert made[cached].invalidation_reason == f"its change was reverted by commit {reverted[:12]}"
    assert made[reverted].invalid_at is None
    links = [(one.source_id, one.relation, one.target_id) for one in store.every_link()]
    assert (made[reverted].id, "SUPERSEDES", made[cached].id) in links


def test_a_revert_without_a_reason_is_no_memory_and_still_ends_what_it_undid(log: Log, store: Any) -> None:
    cached, reverted = log.commit(CACHE), log.commit('Revert "Cache the prices"')
    made = log.read_into(store)

    assert reverted not in made
    assert made[cached].invalid_at


def test_what_is_put_back_is_in_force_again(log: Log, store: Any) -> None:
    cached, reverted = log.commit(CACHE), log.commit(REVERT)
    log.commit(f'Revert "Revert "Cache the prices""\n\nThis reverts commit {reverted}. {WHY}')
    made = log.read_into(store)

    assert made[cached].invalid_at is None
    assert made[cached].invalidation_reason is None
    assert made[reverted].invalid_at


def test_what_a_change_took_back_is_in_force_again_when_that_change_is_reverted(tmp_path: Path, store: Any) -> None:
    """The first to go calls itself no revert: it changes the contents back exactly. Each step is read on its own."""
    repository = Repository(tmp_path / "shop")
    repository.commit("Start", file="shop/prices.py", text="plain\n")
    ids = [repository.commit(CACHE, hours=9, file="shop/prices.py", text="cached\n")]
    ids.append(repository.commit("Compute them anew", hours=18, file="shop/prices.py", text="plain\n"))
    states = []
    for step in range(3):
        ingest(store, GitReader(repository.path))
        made = [one for one in store.every_memory() if one.git_commit in ids]
        states.append([one.invalid_at is None for one in sorted(made, key=lambda one: ids.index(one.git_commit or ""))])
        repository.git("revert", "--no-edit", "HEAD", when=START + timedelta(hours=27 + 9 * step))

    assert states == [[False, True], [True, False], [False, True]]


def test_what_a_removal_took_is_in_force_again_when_the_removal_is_reverted(tmp_path: Path, store: Any) -> None:
    repository = Repository(tmp_path / "shop")
    repository.commit("Start", file="README")
    cached = repository.commit(CACHE, hours=9, file="shop/cache.py")
    repository.git("rm", "-q", "shop/cache.py")
    repository.git("commit", "-q", "-m", "Do without", when=START + timedelta(hours=18))
    removed = repository.git("rev-parse", "HEAD")
    ingest(store, GitReader(repository.path))
    (made,) = (one for one in store.every_memory() if one.git_commit == cached)
    assert made.invalidation_reason == f"the code it concerns was removed by commit {removed[:12]}"

    repository.git("revert", "--no-edit", "HEAD", when=START + timedelta(hours=27))
    ingest(store, GitReader(repository.path))
    assert store.get_memory(made.id).invalid_at is None


def test_a_fix_by_reverting_several_ends_each_and_its_own_revert_puts_each_back(log: Log, store: Any) -> None:
    cached, rounded = log.commit(CACHE), log.commit(f"Round the prices\n\nCents were lost because they were cut. {WHY}")
    fixed = log.commit(f"fix #587 by reverting {cached[:7]} and {rounded[:7]} (#606)")
    made = log.read_into(store)
    why = f"its change was reverted by commit {fixed[:12]}"
    assert [made[sha].invalidation_reason for sha in (cached, rounded)] == [why, why]

    log.commit(f"Lock the till by reverting {fixed[:7]}")
    made = log.read_into(store)
    assert [made[sha].invalid_at for sha in (cached, rounded)] == [None, None]


def test_a_memory_follows_its_file_and_ends_with_it(log: Log, store: Any) -> None:
    cached = log.commit(CACHE)
    log.commit("Move the prices", "R100\tshop/prices.py\tshop/money/prices.py")
    made = log.read_into(store)
    assert (made[cached].title, made[cached].invalid_at) == ("shop/money/prices.py", None)
    assert made[cached].files_involved == ["shop/money/prices.py"]  # type: ignore[attr-defined]
    assert [one.name for one in made[cached].entities if one.about] == ["shop/money/prices.py"]

    removed = log.commit("Sell nothing any more", "D\tshop/money/prices.py")
    made = log.read_into(store)
    assert made[cached].invalidation_reason == f"the code it concerns was removed by commit {removed[:12]}"


def test_a_removal_leaves_its_own_memory_and_those_of_other_files(log: Log, store: Any) -> None:
    other = log.commit(CACHE, "M\tshop/prices.py", "M\tshop/cart.py")
    removed = log.commit(f"Remove the price cache\n\nIt was wrong because discounts end. {WHY}", "D\tshop/prices.py")
    again = log.commit(f"Fix the prices\n\nThey were lost when the shop closed at night. {WHY}", "A\tshop/prices.py")
    made = log.read_into(store)

    assert [made[sha].invalid_at for sha in (other, removed, again)] == [None, None, None]


def test_what_a_removal_says_outlives_the_file_that_it_was_removed_from(log: Log, store: Any) -> None:
    dropped = log.commit(
        f"Drop support for coupons of paper\n\nThey cannot be checked, because they have no number. {WHY}",
        "M\t.github/workflows/test.yml",
        "M\tpyproject.toml",
        "M\tshop/_compat.py",
    )
    log.commit("Use the standard library only", "M\tshop/cart.py", "D\tshop/_compat.py")

    assert log.read_into(store)[dropped].invalid_at is None


@pytest.mark.parametrize(("lines", "is_over"), [((6, 0), True), ((2, 2), True), ((0, 35), False), ((1, 2), False)])
def test_a_change_that_took_more_than_it_brought_leaves_nothing_that_a_removal_takes(
    tmp_path: Path, store: Any, lines: tuple[int, int], is_over: bool
) -> None:
    repository = Repository(tmp_path / "shop")
    before, after = (f"price = {number}\n" for number in (1, 2))
    repository.commit("Start", file="shop/prices.py", text=before * (lines[1] + 1))
    changed = repository.commit(CACHE, hours=9, file="shop/prices.py", text=before + after * lines[0])
    repository.git("rm", "-q", "shop/prices.py")
    repository.commit("Sell nothing any more", hours=18, file="README")
    ingest(store, GitReader(repository.path))
    (made,) = (one for one in store.every_memory() if one.source != RECORD_SOURCE and one.git_commit == changed)

    assert (made.invalid_at is not None) == is_over


def test_a_fix_knows_what_it_corrects(log: Log, store: Any) -> None:
    cached = log.commit(CACHE)
    fixed = log.commit(f"Fix discounts that are ignored by the price cache\n\nIntroduced in {cached[:10]}. {WHY}")
    made = log.read_into(store)

    assert made[fixed].mends == cached  # type: ignore[attr-defined]
    links = [(one.source_id, one.relation, one.target_id) for one in store.every_link()]
    assert (made[fixed].id, "RELATED_TO", made[cached].id) in links


def test_a_replaced_build_file_ends_nothing(log: Log, store: Any) -> None:
    message = (
        f"Move the tests to a package\n\nThis prevents the runner from adding the base directory to the path. {WHY}"
    )
    moved = log.commit(message, "M\tsetup.py", "A\ttests/shop/__init__.py", "R100\ttests/a.py\ttests/shop/a.py")
    pinned = log.commit(f"Pin the sorter below 3\n\nSorter 3 crashes because prices are decimals. {WHY}", "M\tsetup.py")
    log.commit("Switch to pyproject.toml", "A\tpyproject.toml", "D\tsetup.py", "D\tsetup.cfg")
    made = log.read_into(store)

    assert [made[sha].invalid_at for sha in (moved, pinned)] == [None, None]


def test_pinned_memories_stay(log: Log, store: Any) -> None:
    cached = log.commit(CACHE)
    store.update_memory(log.read_into(store)[cached].id, is_pinned=True)
    log.commit(REVERT)

    assert log.read_into(store)[cached].invalid_at is None
