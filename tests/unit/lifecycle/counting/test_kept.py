"""Counted rules as memories: made of a history's commits, brought up to date by later ones, ended, and left alone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memgraph.extraction.readers import SavedGitLogReader
from memgraph.lifecycle import ConsolidationPipeline, ingest, sleep
from memgraph.lifecycle.counting.kept import count_records, records_of, rules_of
from memgraph.model.build import BuildEventLog
from memgraph.model.results.learning import COUNTING_SOURCE

Store = Any


def read(
    store: Store, folder: Path, commits: list[list[str]], titles: tuple[str, ...] = (), days: tuple[int, ...] = ()
) -> None:
    """Read a history of commits of these files, one a day, or each so many days after the first of January."""
    entries = []
    for number, files in enumerate(commits):
        changed = "".join(f"M\t{file}\n" for file in files)
        day = date(2026, 1, 1) + timedelta(days=days[number] if days else number)
        head = f"commit {number + 1:040x}\nAuthor: Ann Smith <a@x.example>\nDate:   {day} 12:00:00 +0000\n\n"
        title = titles[number] if titles else f"Step {number}"
        entries.append(f"{head}    {title}\n\n{changed}\n")
    log = folder / "shop.log"
    log.write_text("".join(reversed(entries)))
    ingest(store, SavedGitLogReader(log), compress=False)


def kept(store: Store, kind: str = "changes together") -> dict[str, Any]:
    """Return the rules in force of this kind, by the first file that they name."""
    rules = [one for one in store.query_by_type("semantic") if one.source == COUNTING_SOURCE and one.category == kind]
    return {str(one.pattern).split()[2]: one for one in rules}


PAIR = ["cup.py", "test_cup.py"]


@pytest.fixture
def history(store: Store, tmp_path: Path) -> Path:
    read(store, tmp_path, [PAIR] * 6)
    assert count_records(store).created > 0
    return tmp_path


def test_a_rule_is_made_with_its_evidence_and_brought_up_to_date(store: Store, history: Path) -> None:
    made = kept(store)["cup.py"]
    assert (len(made.supporting_memory_ids), made.tags) == (6, ["counted"])
    assert "6 of the last 6 commits" in made.content
    assert not any(count_records(store).model_dump(exclude={"complete"}).values())
    read(store, history, [PAIR] * 12)
    assert count_records(store).updated > 0
    after = kept(store)["cup.py"]
    assert (after.id, len(after.supporting_memory_ids)) == (made.id, 10), "the newest ten"
    assert "10 of the last 10 commits" in after.content
    digest = store.digest()
    store.rebuild()
    assert store.digest() == digest


def test_the_fifty_most_confident_rules_of_what_changes_together_are_kept(store: Store, tmp_path: Path) -> None:
    pairs = [[f"cup{number}.py", f"jug{number}.py"] for number in range(40)]
    read(store, tmp_path, pairs * 6 + [PAIR] * 30)
    count_records(store)
    rules = [one for one in store.query_by_type("semantic", limit=200) if one.category == "changes together"]
    assert len(rules) == 50 < 2 * len(pairs)
    assert {"cup.py", "test_cup.py"} <= set(kept(store))


@pytest.mark.embedded
def test_rules_of_one_kind_have_one_reason(store: Store, tmp_path: Path) -> None:
    read(store, tmp_path, [PAIR] * 6 + [["jug.py", "test_jug.py"]] * 9)
    count_records(store)
    (row,) = store.query("memories_by_reason")
    assert (row["reason"], row["memories"] > 2, row["recalled"]) == ("counted over the commits of the history", True, 0)


@pytest.mark.embedded
def test_a_rule_is_nobodys_lesson_and_its_beginning_is_not_told(store: Store, history: Path) -> None:
    rules = [row for row in store.query("generalisations") if row["content"].startswith("Who changes cup.py")]
    assert [(row["first_at"], row["last_at"][:10]) for row in rules] == [(None, "2026-01-06")]
    assert store.query("agents_by_learning") == []


def test_it_ends_when_the_counts_do_not_show_it_and_returns_with_them(store: Store, history: Path) -> None:
    made = kept(store)["cup.py"]
    apart = [PAIR] * 6 + [["cup.py", f"{number}.py"] for number in range(12)]
    read(store, history, apart)
    assert count_records(store).ended > 0
    assert "cup.py" not in kept(store)
    assert "do not show it" in store.get_memory(made.id).invalidation_reason
    read(store, history, apart + [PAIR] * 40)
    count_records(store)
    assert kept(store)["cup.py"].id == made.id


@pytest.mark.parametrize("way", ["suppress", "invalidate", "archive", "delete_memory"])
def test_what_was_put_away_stays_away(store: Store, history: Path, way: str) -> None:
    made = kept(store)["cup.py"]
    getattr(store, way)(made.id)
    read(store, history, [PAIR] * 12)
    count_records(store)
    assert "cup.py" not in kept(store)


@pytest.mark.parametrize("change", [{"content": "Both change."}, {"is_pinned": True}])
def test_what_a_person_worded_or_pinned_stays(store: Store, history: Path, change: dict[str, Any]) -> None:
    made = kept(store)["cup.py"]
    store.update_memory(made.id, **change)
    read(store, history, [PAIR] * 12)
    count_records(store)
    assert kept(store)["cup.py"].content == change.get("content", made.content)


def test_a_merge_tells_nothing_of_who_knows_a_file(store: Store, tmp_path: Path) -> None:
    read(store, tmp_path, [["cup.py"]] * 6)
    log = tmp_path / "shop.log"
    head = "commit {:040x}\nMerge: {:07x} {:07x}\nAuthor: Bob Ray <b@x.example>\nDate:   2026-02-0{} 12:00:00 +0000\n\n"
    merges = [f"{head.format(99 + day, day, day, day)}    Merge it\n\nM\tcup.py\n\n" for day in range(9, 0, -1)]
    log.write_text("".join(merges) + log.read_text())
    ingest(store, SavedGitLogReader(log), compress=False)
    (rule,) = [one for one in rules_of(records_of(store.reader, "shop", [])) if one.kind == "who knows"]
    assert (rule.object, rule.support, rule.occasions) == ("Ann Smith", 6, 6)


class Runs:
    """Runs of one test in a store, one an hour."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.number = 0

    def add(self, *results: str, commit: str | None = None, day: int = 1, name: str = "run-{:03}") -> None:
        """Add a run for each result: ``pass``, ``fail``, ``both`` for a test that passed when it was run again, ``two`` for two of one name."""
        logs = []
        for result in results:
            self.number += 1
            task = {"agent_name": "ci", "description": "Test cart::adds", "test": "cart::adds"}
            first = "cart::adds (first run)" if result == "both" else "first"
            failed = {**task, "task_id": first, "outcome": "failure", "output": f"E: {result} on {commit}"}
            tasks = [failed] * (result != "pass") + [{**task, "task_id": "last", "outcome": "success"}] * (
                result != "fail"
            )
            at = datetime(2026, 1, day, tzinfo=UTC) + timedelta(hours=self.number)
            shared = {"source": "test report", "trust_class": "tool", "git_commit": commit, "project_id": "shop"}
            times = dict.fromkeys(("started_at", "completed_at"), at.isoformat())
            build, outcome = name.format(self.number), "failure" if result == "fail" else "success"
            logs.append(
                BuildEventLog.parse({**shared, **times, "build_id": build, "build_outcome": outcome, "tasks": tasks})
            )
        ConsolidationPipeline(self.store).consolidate_all(logs)

    def rules(self, kind: str) -> list[Any]:
        """Count, and return the rules of this kind that are kept and in force."""
        count_records(self.store)
        return [one for one in self.store.query_by_type("semantic") if one.category == kind and not one.invalid_at]


def test_a_flaky_test_is_kept_with_its_failures_and_ends_with_them(store: Store) -> None:
    runs = Runs(store)
    runs.add("pass", "fail", "pass", commit="a" * 40)
    (rule,) = runs.rules("flaky test")
    assert rule.content == (
        "cart::adds is flaky: 2 of 2 times that it ran again on the same code it gave another result, 2 of the last 2, "
        "the latest on 1 January 2026."
    )
    told = [store.get_memory(one) for one in rule.supporting_memory_ids]
    assert {(one.outcome, one.build_id) for one in told} == {("negative", "run-002")}
    assert [(one.name, one.kind) for one in rule.entities] == [("cart::adds", "symbol")]
    runs.add("pass", commit="a" * 40)
    (after,) = runs.rules("flaky test")
    assert (after.id, "2 of 3 times" in after.content) == (rule.id, True)
    assert not any(count_records(store).model_dump(exclude={"complete"}).values())
    for one in told:
        store.suppress(one.id)
    runs.add("pass", commit="a" * 40)
    assert runs.rules("flaky test") == []


def test_a_test_that_was_retried_is_flaky_and_one_that_ran_on_unknown_code_is_not(store: Store) -> None:
    runs = Runs(store)
    runs.add("pass", "fail", "pass", "fail", "pass", "fail")
    runs.add("two", "two", "two")
    assert runs.rules("flaky test") == []
    runs.add("both", "both")
    (rule,) = runs.rules("flaky test")
    assert "2 of 2 times" in rule.content


def test_what_passes_again_on_the_same_commit_is_not_told_to_work_now(store: Store) -> None:
    runs = Runs(store)
    runs.add("fail", commit="a" * 40)
    runs.add("pass", commit="a" * 40)
    assert [one.outcome for one in store.get_all_memories()] == ["negative"]
    runs.add("pass", commit="b" * 40)
    assert "positive" in [one.outcome for one in store.get_all_memories()]


def test_only_runs_of_one_job_are_compared(store: Store) -> None:
    runs = Runs(store)
    for commit in "abcd":
        runs.add("pass", commit=commit * 40, name="ci-ubuntu-22.04-{:03}")
        runs.add("fail", commit=commit * 40, name="ci-ubuntu-24.04-{:03}")
    assert runs.rules("flaky test") == runs.rules("returning failure") == []
    runs.add("pass", "fail", commit="d" * 40, name="ci-ubuntu-24.04-{:03}")
    (rule,) = runs.rules("flaky test")
    assert "2 of 2 times" in rule.content


@pytest.mark.parametrize(
    "name", ["{}", "build #{}", "ci-log-{:012x}", "ci-{}-0123456789ab", "junit-pytest-2026-01-{:02}T10:00:00.000Z"]
)
def test_the_number_of_a_build_is_no_part_of_its_job(store: Store, name: str) -> None:
    runs = Runs(store)
    runs.add("pass", "fail", "pass", commit="a" * 40, name=name)
    assert len(runs.rules("flaky test")) == 1


def test_a_number_that_returns_or_runs_beside_another_tells_jobs_apart(store: Store) -> None:
    runs = Runs(store)
    for commit in "abcd":
        runs.add("pass", commit=commit * 40, name="shard 1-{:012x}")
        runs.add("fail", commit=commit * 40, name="shard 2-{:012x}")
    assert runs.rules("flaky test") == runs.rules("returning failure") == []
    for number, commit in enumerate("efgh"):
        runs.number = 100 * number
        runs.add("pass", commit=commit * 40, name=f"run {commit}, python 1")
        runs.number = 100 * number
        runs.add("fail", commit=commit * 40, name=f"run {commit}, python 2")
    assert runs.rules("flaky test") == runs.rules("returning failure") == []


def test_the_last_results_of_a_test_are_counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memgraph.lifecycle.counting.kept.MOST_RESULTS", 4)
    runs = Runs(store)
    runs.add(*["pass", "fail"] * 4, commit="a" * 40)
    (rule,) = runs.rules("flaky test")
    assert "3 of 3 times" in rule.content


def test_a_short_hash_is_the_only_commit_that_begins_with_it(store: Store, tmp_path: Path) -> None:
    read(store, tmp_path, [["cart.py"]] * 3)
    runs = Runs(store)
    runs.add("pass", commit=f"{1:040x}")
    runs.add("fail", commit=f"{2:040x}")
    runs.add("pass", commit=f"{3:040x}")
    assert runs.rules("flaky test") == [], "their first digits are the same"
    log = tmp_path / "shop.log"
    log.write_text(log.read_text().replace(f"commit {3:040x}", "commit " + "abc" * 13 + "d"))
    ingest(store, SavedGitLogReader(log), compress=False)
    runs.add("fail", commit="abcabca")
    runs.add("pass", commit="abc" * 13 + "d")
    runs.add("fail", commit="abcabca")
    (rule,) = runs.rules("flaky test")
    assert "2 of 2 times" in rule.content


def test_a_failure_that_returns_names_what_came_before_its_last_pass_and_ends(store: Store, tmp_path: Path) -> None:
    read(store, tmp_path, [["cart.py"], ["cart.py"], ["README.md"]])
    runs = Runs(store)
    runs.add("fail", "pass", commit=f"{1:040x}")
    runs.add("fail", "fail", commit="b" * 40, day=2)
    runs.add("pass", day=3)
    runs.add("fail", day=4)
    (rule,) = runs.rules("returning failure")
    assert rule.content == (
        "cart::adds returns as a failure: of 2 runs before which it had failed and passed, it failed in 2, 2 of the last 2, the latest on "
        "4 January 2026; what came between a failure of it and the next pass the last time: commit 00000000, “Step 1”."
    )
    mending = next(one.id for one in store.every_memory() if one.git_commit == f"{2:040x}")
    assert mending in rule.supporting_memory_ids
    runs.add("pass", day=5)
    runs.add(*["pass"] * 80, day=6)
    assert runs.rules("returning failure") == []
    runs.add(*["fail", "pass"] * 4, day=20)
    (back,) = runs.rules("returning failure")
    assert (back.id, "failed in 6," in back.content) == (rule.id, True)


def test_of_several_commits_before_a_pass_the_last_fix_is_named(store: Store, tmp_path: Path) -> None:
    titles = ("Add the cart", "Fix the sum", "Fix the tax", "Rename the tax")
    read(store, tmp_path, [["cart.py"]] * 4, titles)
    runs = Runs(store)
    runs.add("fail", "pass", "fail", "pass", "fail", day=1)
    assert "what came between" not in runs.rules("returning failure")[0].content
    runs.add("pass", day=6)
    (rule,) = runs.rules("returning failure")
    assert rule.content.endswith("the last time: commit 00000000, “Fix the tax”, one of 4 commits.")


def test_a_run_comes_after_the_commits_before_it_though_an_author_made_a_later_one_earlier(
    store: Store, tmp_path: Path
) -> None:
    titles = ("Add the cart", "Fix the sum", "Fix the tax", "Rename the tax")
    read(store, tmp_path, [["cart.py"]] * 4, titles, days=(0, 1, -31, 3))
    runs = Runs(store)
    runs.number = 12
    runs.add("fail", "pass", "fail", "pass", "fail", day=1)
    runs.add("pass", day=6)
    (rule,) = runs.rules("returning failure")
    assert rule.content.endswith("the last time: commit 00000000, “Fix the tax”, one of 3 commits.")


def test_sleep_counts_a_run_in_which_everything_passed(store: Store) -> None:
    runs = Runs(store)
    runs.add("both", "both")
    sleep(store, phases=["counting"])
    runs.add("pass", "pass", commit="a" * 40)
    sleep(store, phases=["counting"])
    (rule,) = [one for one in store.query_by_type("semantic") if one.category == "flaky test"]
    assert "2 of 3 times" in rule.content
