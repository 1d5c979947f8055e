"""What went well is not lost, and resolves the failures of the same task in earlier builds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memgraph import BuildEventLog, MemGraph
from memgraph.extraction.readers import CiLogReader
from memgraph.lifecycle import ConsolidationPipeline, ingest, sleep

IMPORT, ERROR = "Import the supplier price list", "ValueError: could not convert string to float: '1.234,50'"
LESSON = "Read numbers with the supplier's locale, never with float() directly."
WHY = "The list comes from Germany, where the comma separates decimals."
COMMAND = "python -m shop.prices --locale de_DE list.csv"


def build(number: int, *tasks: dict[str, Any], **fields: Any) -> BuildEventLog:
    at = f"2026-03-{number:02}T08:00:00.000Z"
    went = "failure" if any(task["outcome"] == "failure" for task in tasks) else "success"
    given = {"build_id": f"nightly-{number}", "project_id": "shop", "started_at": at, "completed_at": at}
    return BuildEventLog.parse({**given, "build_outcome": went, "tasks": list(tasks), **fields})


def task(description: str, outcome: str, output: str = "", **fields: Any) -> dict[str, Any]:
    given = {"task_id": "t1", "agent_name": "builder", "description": description, "output": output}
    return {**given, "outcome": outcome, **fields}


def failed(description: str = IMPORT, error: str = ERROR, **fields: Any) -> dict[str, Any]:
    return task(description, "failure", f"Traceback\n{error}", **fields)


def mended(description: str = IMPORT, **fields: Any) -> dict[str, Any]:
    return task(description, "success", "Parsed 1,204 rows.", **fields)


@pytest.fixture
def pipeline(store: Any) -> ConsolidationPipeline:
    return ConsolidationPipeline(store)


def mending(store: Any, memory: Any) -> list[Any]:
    return [one for one in store.links(memory.id) if one.relation == "SUPERSEDES"]


def said(store: Any, question: str) -> str:
    memory = MemGraph(store)
    return memory.format_context_for_prompt(memory.recall(question, project="shop"), format="notes")


def test_lesson_reasoning_and_command_of_a_success_are_found(store: Any, pipeline: ConsolidationPipeline) -> None:
    told = {"lesson": LESSON, "reasoning": WHY, "command": COMMAND}
    result = pipeline.consolidate(build(1, mended(**told), task("Deploy", "success", "ok")))
    assert (result.memories_extracted, result.records_kept) == (0, 1)
    found = said(store, "import a supplier's price list")
    assert all(part in found for part in (LESSON, WHY, COMMAND))
    assert "Worked" in found
    assert "avoid" not in found


@pytest.mark.parametrize("at_once", [True, False])
def test_a_success_resolves_the_failures_of_its_task_in_earlier_builds(
    store: Any, pipeline: ConsolidationPipeline, at_once: bool
) -> None:
    told = {"lesson": LESSON, "reasoning": WHY, "command": COMMAND}
    builds = [build(1, failed()), build(2, failed()), build(3, failed()), build(4, mended(**told))]
    for some in [builds] if at_once else [[one] for one in builds]:
        pipeline.consolidate_all(some)
    failure, recovery = sorted(store.get_all_memories(), key=lambda one: one.outcome)
    assert failure.evidence_build_ids == ["nightly-1", "nightly-2", "nightly-3"]
    (link,) = mending(store, failure)
    assert (link.relation, link.source_id, link.target_id) == ("SUPERSEDES", recovery.id, failure.id)
    assert link.reason == "mended in nightly-4 on 4 March 2026"
    assert all(part in recovery.content for part in (ERROR, LESSON, WHY, COMMAND))
    found = said(store, IMPORT)
    assert LESSON in found
    assert "What to avoid" not in found


def test_recall_for_what_failed_three_times_says_first_what_works(store: Any, pipeline: ConsolidationPipeline) -> None:
    pipeline.consolidate_all(
        [build(1, failed()), build(2, failed()), build(3, failed()), build(4, mended(lesson=LESSON))]
    )
    sleep(store)
    found = said(store, IMPORT)
    assert LESSON in found.split("ValueError", 1)[0]
    assert "in 3 builds" in found


def test_what_fails_again_after_it_was_mended_is_a_new_failure(store: Any, pipeline: ConsolidationPipeline) -> None:
    for one in (build(1, failed()), build(2, mended(lesson=LESSON)), build(3, failed())):
        pipeline.consolidate(one)
    open_ = [one for one in store.get_all_memories() if one.outcome == "negative" and not mending(store, one)]
    assert [one.evidence_build_ids for one in open_] == [["nightly-3"]]
    pipeline.consolidate(build(4, mended(lesson=LESSON)))
    assert all(mending(store, one) for one in store.get_all_memories() if one.outcome == "negative")


def test_a_success_resolves_no_other_task_and_nothing_that_failed_after_it(
    store: Any, pipeline: ConsolidationPipeline
) -> None:
    pipeline.consolidate_all([build(5, failed()), build(6, failed("Ship the parcels", "OSError: no printer"))])
    pipeline.consolidate(build(4, mended(lesson=LESSON)))  # it is read later, and happened before
    pipeline.consolidate(build(7, mended("Ship the crates", lesson="Plug the printer in before.")))
    assert not any(mending(store, one) for one in store.get_all_memories())


def test_what_returned_and_was_mended_again_is_dated_by_the_last_time(
    store: Any, pipeline: ConsolidationPipeline
) -> None:
    pipeline.consolidate_all(
        [build(1, failed()), build(2, mended(lesson=LESSON)), build(3, failed()), build(4, failed())]
    )
    sleep(store, phases=["errors"])
    (kept,) = [one for one in store.get_all_memories() if one.source == "error analysis"]
    assert kept.content.endswith("It came back after it had been mended (4 March 2026). What helped (2 March 2026): "
        f"{LESSON} Seen when: “{IMPORT}”.")  # fmt: skip
    assert not kept.is_solved
    pipeline.consolidate(build(5, mended(lesson=LESSON)))
    sleep(store, phases=["errors"])
    again = store.get_memory(kept.id)
    assert again.content == f"{LESSON} That mended it (5 March 2026): “{ERROR}” came up in 3 builds, in March 2026."
    assert again.is_solved
    assert sleep(store, phases=["errors"]).changed == 0


def test_tests_that_pass_again_resolve_their_failures_without_a_word(
    store: Any, pipeline: ConsolidationPipeline
) -> None:
    name, report = "Test shop.prices::test_locale", {"source": "test report", "trust_class": "tool"}
    pipeline.consolidate(build(1, failed(name), task("Test shop::test_b", "success", task_id="t2"), **report))
    pipeline.consolidate(build(2, task(name, "success"), task("Test shop::test_b", "success", task_id="t2"), **report))
    failure, recovery = sorted(store.get_all_memories(), key=lambda one: one.outcome)
    assert [one.source_id for one in mending(store, failure)] == [recovery.id]
    assert recovery.content == f"“{name}” succeeded after builder had failed with {ERROR}."
    assert store.get_stats().records == 0


def test_a_pass_in_a_log_resolves_the_failure_that_a_report_tells(store: Any, pipeline: ConsolidationPipeline) -> None:
    name, tool = "tests.test_cart::test_tax", {"trust_class": "tool"}
    pipeline.consolidate(build(1, failed(f"Test {name}", test=name), source="test report", **tool))
    passed = task("Test tests/test_cart.py::test_tax", "success", test=name)
    other = task("Test tests/test_cart.py::test_total", "success", test="tests.test_cart::test_total")
    pipeline.consolidate(build(2, other, source="ci log", **tool))
    assert not any(mending(store, one) for one in store.every_memory())
    pipeline.consolidate(build(3, passed, source="ci log", **tool))
    assert sorted(one.outcome for one in store.every_memory() if mending(store, one)) == ["negative", "positive"]


def test_a_command_of_ci_that_passes_resolves_each_test_that_it_had_failed(store: Any, tmp_path: Path) -> None:
    for day, failing in enumerate((("sum", "tax"), ("sum",), ()), start=1):
        lines = [f"FAILED tests/test_cart.py::test_{one} - ValueError: no total for {one}" for one in failing]
        end = f"{len(failing)} failed, 30 passed in 2.1s" if failing else "32 passed in 2.1s"
        told = ["##[group]Run pytest -q", "pytest -q", "##[endgroup]", *lines, f"==== {end} ===="]
        told.append("##[error]Process completed with exit code 1." if failing else "Cleaning up orphan processes")
        log = tmp_path / f"run-{day}.log"
        log.write_text("".join(f"2026-03-0{day}T10:00:00.0000000Z {line}\n" for line in told))
        ingest(store, CiLogReader(log, project_id="shop"))
    failures = [one for one in store.get_all_memories() if one.outcome == "negative"]
    mended_by = {store.get_memory(link.source_id).content for one in failures for link in mending(store, one)}
    assert mended_by == {
        f"“Test tests/test_cart.py::test_{one}” succeeded after ci had failed with ValueError: no total for {one}."
        for one in ("sum", "tax")
    }
    found = said(store, "ValueError: no total for sum")
    assert "What to avoid" not in found


def test_a_later_trajectory_resolves_the_same_error_of_the_same_program(
    store: Any, pipeline: ConsolidationPipeline
) -> None:
    def session(number: int, *steps: tuple[str, str, str]) -> BuildEventLog:
        tasks = [
            {"task_id": f"s{place}", "agent_name": "claude", "description": "Bash", "command": command}
            | {"output": output, "outcome": outcome}
            for place, (command, output, outcome) in enumerate(steps)
        ]
        return build(number, *tasks, source="trajectory", session_id=f"session-{number}")

    missing = ("python sync.py", "ModuleNotFoundError: No module named 'httpx'", "failure")
    pipeline.consolidate(session(1, missing, missing))
    pipeline.consolidate(session(2, ("python sync.py", "3 parcels", "success")))
    pipeline.consolidate(
        session(3, missing, ("uv add httpx", "added", "success"), ("python sync.py", "done", "success"))
    )
    failure, recovery = sorted(store.get_all_memories(), key=lambda one: one.outcome)
    assert [one.source_id for one in mending(store, failure)] == [recovery.id]
    assert "it worked after `uv add httpx`" in recovery.content


def test_a_trial_that_went_well_is_kept_with_its_reasons(store: Any, pipeline: ConsolidationPipeline) -> None:
    whole = task(
        "Refund ticket 7", "success", "Reward 1. Refunded.", reasoning="Gold members may cancel within 24 hours."
    )
    call = task("refund(id=7)", "success", "ok", task_id="t2", command="refund(id=7)", reasoning="Now I refund.")
    pipeline.consolidate(build(1, {**whole, "task_id": "t1"}, call, source="trial"))
    every = [one.content for one in store.every_memory()]
    assert any("Gold members may cancel within 24 hours." in one for one in every)
    assert not any("Now I refund" in one for one in every)


@pytest.mark.parametrize("changes", [{"privacy_tier": "private"}, {"trust_class": "tool"}])
def test_what_mends_a_failure_is_as_private_and_no_more_trusted(
    store: Any, pipeline: ConsolidationPipeline, changes: dict[str, Any]
) -> None:
    pipeline.consolidate(build(1, failed()))
    (failure,) = store.get_all_memories()
    store.update_memory(failure.id, **changes)
    pipeline.consolidate(build(2, mended(lesson=LESSON)))
    (link,) = mending(store, failure)
    recovery = store.get_memory(link.source_id)
    assert {name: getattr(recovery, name) for name in changes} == changes


@pytest.mark.parametrize("changes", [{"is_pinned": True}, {"is_suppressed": True}, {"trust_class": "user"}])
def test_what_somebody_pinned_hid_or_said_is_not_replaced(
    store: Any, pipeline: ConsolidationPipeline, changes: dict[str, Any]
) -> None:
    pipeline.consolidate(build(1, failed()))
    (failure,) = store.get_all_memories()
    store.update_memory(failure.id, **changes)
    pipeline.consolidate(build(2, mended(lesson=LESSON)))
    assert mending(store, failure) == []
    assert "is_suppressed" not in changes or not [one for one in store.get_all_memories() if ERROR in one.content]
