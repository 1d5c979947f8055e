"""What the rules keep of a build log, how they say it, and what they pass over."""

from __future__ import annotations

from typing import Any

import pytest

from memgraph.extraction.rules.extractor import RuleExtractor
from memgraph.index.index import indexed_text
from memgraph.lifecycle import ConsolidationPipeline
from memgraph.model.build import BuildEventLog, Candidate
from memgraph.model.memory import EpisodicMemory, ProceduralMemory, SemanticMemory
from memgraph.ports import Extractor
from tests.growth import assert_grows_linearly

SHA = "%040x"


def log(*tasks: dict[str, Any], said: list[dict[str, str]] | None = None, **fields: Any) -> BuildEventLog:
    return BuildEventLog.parse(
        {
            "build_id": "b1",
            "project_id": "shop",
            "tasks": [
                {"task_id": f"t{number}", "agent_name": "coder", "outcome": "success", **task}
                for number, task in enumerate(tasks, start=1)
            ],
            "user_interventions": said or [],
            "build_outcome": "success",
            "started_at": "2026-03-01T10:00:00Z",
            "completed_at": "2026-03-01T11:00:00Z",
            **fields,
        }
    )


def commits(*tasks: dict[str, Any]) -> BuildEventLog:
    numbered = [
        {"task_id": SHA % (0xABC000 + number), "agent_name": "Ada", "files_changed": ["shop/cart.py"], **task}
        for number, task in enumerate(tasks)
    ]
    return log(*numbered, build_id=f"git-{SHA % 0xABC000:.12}", source="git")


def found(build_log: BuildEventLog) -> dict[str, Candidate]:
    return {
        (candidate.key or "").rsplit(":", 1)[1]: candidate
        for candidate in RuleExtractor().extract(build_log).candidates
    }


def kinds(build_log: BuildEventLog) -> list[str]:
    return [(candidate.key or "").rsplit(":", 1)[1] for candidate in RuleExtractor().extract(build_log).candidates]


def test_a_failure_says_who_failed_at_what_with_which_error() -> None:
    output = (
        "collected 12 items\n"
        + "ok\n" * 500
        + "Traceback (most recent call last):\n  File 'x.py'\nKeyError: 'total'\n1 failed\n"
    )
    build_log = log(
        {"description": "Run the cart tests", "output": output, "outcome": "failure", "files_changed": ["shop/cart.py"]}
    )
    memory = found(build_log)["failure"].memory
    assert isinstance(memory, EpisodicMemory)
    assert memory.content == "coder failed at “Run the cart tests” (shop/cart.py): KeyError: 'total'."
    assert (memory.outcome, memory.reason, memory.source) == ("negative", "a task failed", "build log")
    assert memory.errors_encountered[0].type == "KeyError"
    assert memory.failure_fingerprint
    assert memory.tags[:2] == ["failure", "keyerror"]
    assert (memory.build_id, memory.project_id, memory.task_id) == ("b1", "shop", None)
    assert memory.source_event_ids == ["b1/t1"]
    assert memory.evidence_build_ids == ["b1"]
    assert memory.agents_involved == ["coder"]
    assert memory.occurred_at == "2026-03-01T11:00:00.000Z"
    assert memory.title == "shop/cart.py"
    assert memory.trust_class == "agent"


def test_one_failure_in_two_builds_has_one_fingerprint() -> None:
    def fingerprint(line: str) -> str | None:
        return found(log({"description": "Test", "output": line, "outcome": "failure"}))[
            "failure"
        ].memory.failure_fingerprint

    first = fingerprint("2026-03-01 10:00:00 TypeError: cannot read '/home/a/x/cart.ts' at line 14 (0x7ffe12ab)")
    second = fingerprint("2026-04-09 23:11:08 TypeError: cannot read '/srv/b/cart.ts' at line 209 (0x55d0cc01)")
    assert first == second
    assert first != fingerprint("TypeError: cannot write '/home/a/x/cart.ts'")


def test_a_recovery_names_the_error_and_what_worked() -> None:
    build_log = log(
        {
            "description": "Deploy the shop to staging",
            "output": "error: port 8080 already in use",
            "outcome": "failure",
        },
        {"description": "Deploy the shop to staging again", "output": "Used port 8081 because 8080 is taken."},
    )
    assert kinds(build_log) == ["failure", "recovery"]
    memory = found(build_log)["recovery"].memory
    assert memory.outcome == "positive"
    assert "port 8080 already in use" in memory.content
    assert "Used port 8081 because 8080 is taken." in memory.content


def test_a_revert_is_negative_and_says_what_it_undid_and_why() -> None:
    undone = SHA % 0xFEED
    build_log = commits(
        {
            "description": 'Revert "Cache cart totals (#12)"',
            "output": f"This reverts commit {undone}.\n\nThe cache leaks because carts are never evicted.",
            "reverts": undone,
            "undone_subject": "Cache cart totals (#12)",
            "occurred_at": "2026-03-01T09:30:00Z",
        }
    )
    memory = found(build_log)["revert"].memory
    assert isinstance(memory, EpisodicMemory)
    assert memory.content == (
        f"Ada reverted “Cache cart totals” (commit {undone[:12]}) in shop/cart.py. "
        "Why: The cache leaks because carts are never evicted."
    )
    assert (memory.outcome, memory.source, memory.git_commit) == ("positive", "git", build_log.tasks[0].task_id)
    assert memory.occurred_at == memory.event_date == "2026-03-01T09:30:00.000Z"


@pytest.mark.parametrize(
    ("description", "kind"),
    [
        ("Fixed crash when the cart is empty", "fix"),
        ("feat(api)!: rename totals endpoint", "breaking"),
        ("Breaking: move price rules", "breaking"),
        ("Lock the order row to avoid double charges on slow networks", "decision"),
        ("Remove the coupon endpoint", "removal"),
        ("Drop support for Python 3.7", "removal"),
        ("Deprecate the coupon endpoint in favour of vouchers", "deprecation"),
        ("Escape product names to close an SQL injection in the search", "security"),
    ],
)
def test_a_subject_alone_is_kept_if_it_states_something(description: str, kind: str) -> None:
    assert kinds(commits({"description": description})) == [kind]


@pytest.mark.parametrize(
    "task",
    [
        {"description": "wip"},
        {"description": "Add gift card payments"},
        {"description": "Interrupt running payments when the cart is closed"},
        {"description": "Use decimals instead of floats for prices"},
        {"description": "fix: rounding of the cart total"},
        {"description": "Release v2.1.0"},
        {"description": "deps: parser@0.8.2"},
        {"description": "Move payment helpers", "output": "This makes the code easier to read because it is shorter."},
        {"description": "fix bugs."},
        {"description": "Fix typo in cart total"},
        {"description": "Update README.md"},
        {"description": "Create cart.py"},
        {"description": "style: run formatter over cart module"},
        {"description": "Merge branch 'main' into cart"},
        {"description": "Merge pull request #7 from ada/cart"},
        {"description": "Bump requests from 2.0 to 2.1"},
        {"description": "Fix cart total", "agent_name": "dependabot[bot]"},
        {"description": "CI: fix cart pipeline on windows"},
        {"description": "Fix cart total", "files_changed": ["docs/cart.md", ".github/workflows/ci.yml"]},
        {"description": "Fix flaky cart assertion", "files_changed": ["tests/test_cart.py"]},
        {"description": 'Revert "docs: add emojis"', "undone_subject": "docs: add emojis"},
        {"description": "."},
        {"description": ""},
    ],
)
def test_noise_is_skipped(task: dict[str, Any]) -> None:
    assert kinds(commits(task)) == []


def test_a_decision_keeps_what_was_not_chosen() -> None:
    reason = "Floats lose cents because they cannot hold tenths exactly."
    task = {"description": "Use decimals instead of floats for prices", "output": reason}
    memory = found(commits(task))["decision"].memory
    assert isinstance(memory, EpisodicMemory)
    assert memory.content == f"Use decimals instead of floats for prices. {reason} (cart.py)"
    assert memory.decision == "Use decimals instead of floats for prices"
    assert memory.alternatives_considered == ["floats"]
    assert memory.outcome == "positive"


def test_a_body_adds_only_its_reasons() -> None:
    body = "Closes #12\n\n* fix cart total\n\nDiscounts were applied twice because the cart was priced on every read.\n---------"
    memory = found(commits({"description": "fix: cart total", "output": body}))["fix"].memory
    assert memory.content == (
        "Fix: cart total. Discounts were applied twice because the cart was priced on every read. (cart.py)"
    )


def test_what_the_user_said_is_an_instruction_a_correction_or_a_procedure() -> None:
    said = [
        {"timestamp": "2026-03-01T10:10:00Z", "action": "Always run migrations inside a transaction", "context": ""},
        {
            "timestamp": "2026-03-01T10:20:00Z",
            "action": "Wrong table: rolled back the change",
            "context": "orders cleanup",
        },
        {
            "timestamp": "2026-03-01T10:20:00Z",
            "action": "1. Stop the worker\n2. Run the migration\n3. Start the worker",
            "context": "schema changes",
        },
        {"timestamp": "2026-03-01T10:30:00Z", "action": "ok", "context": ""},
    ]
    kept = found(log(said=said))
    assert set(kept) == {"instruction", "correction", "procedure"}
    instruction, correction, procedure = (kept[kind].memory for kind in ("instruction", "correction", "procedure"))
    assert isinstance(instruction, SemanticMemory)
    assert instruction.content == "Instruction by the user: Always run migrations inside a transaction."
    assert isinstance(correction, EpisodicMemory)
    assert correction.outcome == "negative"
    assert correction.user_feedback
    assert isinstance(procedure, ProceduralMemory)
    assert procedure.steps == ["Stop the worker", "Run the migration", "Start the worker"]
    assert kept["procedure"].key == "user@2026-03-01T10:20:00.000Z#1:procedure"


def test_a_task_that_states_steps_becomes_a_procedure() -> None:
    build_log = log(
        {
            "description": "Find out how to release the shop",
            "output": "Run `make build`, then push the tag, then deploy.",
        }
    )
    memory = found(build_log)["procedure"].memory
    assert isinstance(memory, ProceduralMemory)
    assert memory.steps == ["Run `make build`", "push the tag", "deploy"]
    assert memory.trigger_pattern == "Find out how to release the shop"


def test_all_most_salient_first_and_the_same_each_time() -> None:
    tasks: list[dict[str, Any]] = [
        {"description": f"fix: order {word} is lost when the page reloads"} for word in "abcdefghij"
    ]
    tasks.append({"description": "Run billing", "output": "ValueError: no rate", "outcome": "failure"})
    result = RuleExtractor().extract(commits(*tasks))
    assert len(result.candidates) == 11
    assert (result.candidates[0].key or "").endswith(":failure")
    assert RuleExtractor().extract(commits(*tasks)) == result
    assert len(RuleExtractor(limit=3).extract(commits(*tasks)).candidates) == 3
    assert isinstance(RuleExtractor(), Extractor)
    assert result.extractor == "rules"


def test_a_grown_log_adds_its_growth(store: Any) -> None:
    early: list[dict[str, Any]] = [
        {"description": f"fix: order {word} is lost when the page reloads"} for word in "abcdefgh"
    ]
    late = [*early, {"description": "fix: the invoice shows the wrong currency after a reload"}]
    pipeline = ConsolidationPipeline(store)

    assert pipeline.consolidate(commits(*early)).memories_extracted == 8
    assert pipeline.consolidate(commits(*late)).memories_extracted == 1
    assert any("currency" in memory.content for memory in store.get_all_memories())


def test_hostile_logs_are_bounded() -> None:
    many: list[dict[str, Any]] = [
        {"description": f"fix: order {n} is lost when page {n * 7} reloads"} for n in range(1_500)
    ]

    assert len(RuleExtractor().extract(commits(*many)).candidates) == 1_000


def test_keys_stay_when_the_log_grows() -> None:
    early: list[dict[str, Any]] = [
        {"description": "fix: cart total ignores discounts when it is reloaded"},
        {"description": "Drop support for Python 3.7"},
    ]
    late: list[dict[str, Any]] = [*early, {"description": "Deprecate gift cards"}]
    before = {c.key: c.memory.content for c in RuleExtractor().extract(commits(*early)).candidates}
    after = {c.key: c.memory.content for c in RuleExtractor().extract(commits(*late)).candidates}
    assert before.items() <= after.items()


def test_an_empty_log_gives_nothing_and_a_failed_one_its_summary() -> None:
    assert kinds(log()) == []
    failed = log(build_outcome="failure", build_summary="All was well.\nfatal: disk quota exceeded on runner")
    memory = found(failed)["failure"].memory
    assert memory.content == "Build b1 of shop: fatal: disk quota exceeded on runner."


def test_content_fits_and_stands_on_one_line() -> None:
    body = "\n\n".join(f"This matters because reason number {number} is long and winding." for number in range(60))
    task = {
        "description": "fix: " + "cart total " * 120,
        "output": body,
        "files_changed": [f"shop/{'x' * 200}{n}.py" for n in range(9)],
    }
    for candidate in RuleExtractor().extract(commits(task)).candidates:
        assert len(candidate.memory.content) <= 800
        assert "\n" not in candidate.memory.content


@pytest.mark.parametrize("unit", ["a", "A.", "instead of ", "1. run\n", '"', "a -> "])
def test_hostile_text_costs_little(unit: str) -> None:
    def extract(length: int) -> None:
        text = unit * (length // len(unit))
        said = [{"timestamp": "2026-03-01T10:10:00Z", "action": text, "context": text}]
        task = {"description": text, "output": text, "outcome": "failure", "files_changed": [text[:4_000]]}
        RuleExtractor().extract(log(task, task | {"outcome": "success"}, said=said, build_summary=text))

    assert_grows_linearly(extract, 200_000)


def test_issue_references_and_code_do_not_reach_the_content() -> None:
    body = "Refs: #3, #4\n\n```\nmust not be shown because it is code\n```\n\nPrices were rounded twice because of the cache."
    memory = found(
        commits({"description": "Stop rounding twice, use decimals instead of floats. Fixes #12", "output": body})
    )["decision"].memory
    assert memory.content == (
        "Stop rounding twice, use decimals instead of floats. Prices were rounded twice because of the cache. (cart.py)"
    )


def test_who_and_where_are_fields_and_do_not_fill_the_text() -> None:
    memory = found(commits({"description": "fix: the cart total is wrong when a price has three decimals"}))[
        "fix"
    ].memory

    assert memory.agents_involved == ["Ada"]
    assert memory.location == "shop/cart.py"
    assert "Ada" not in memory.content
    assert "shop/" not in memory.content


def test_a_commit_is_found_by_the_issues_and_requests_that_it_names(store: Any) -> None:
    body = "The lock was taken twice because two workers read one queue.\n\nFixes #71, #72."
    ConsolidationPipeline(store).consolidate(
        commits(
            {
                "description": "Fix the lock of the cart (#1394)",
                "output": body,
                "mentions": [1394, 71, 72],
                "closes": [71],
            },
            {
                "description": "Fix the price of carts",
                "output": "Totals were computed before the discounts were loaded.",
            },
        )
    )
    (memory,) = [one for one in store.get_all_memories() if "lock" in one.content]
    assert [one.name for one in memory.entities if one.kind == "issue"] == ["#71", "#1394", "#72"]
    assert "#" not in memory.content
    assert "#1394" in indexed_text(store.reader.rows([memory.id])[0])


def test_a_merged_request_is_kept_for_what_its_description_states_only() -> None:
    merge = "Merge pull request #71 from ada/queue"
    why = "The lock was taken twice because two workers read one queue."
    task = {"description": merge, "output": f"Lock the cart once\n\n{why}", "mentions": [71]}
    (memory,) = [one.memory for one in found(commits(task)).values()]
    assert memory.content.startswith(f"Lock the cart once. {why}")
    assert [one.name for one in memory.entities] == ["#71"]
    assert kinds(commits({"description": merge, "output": "Fix crash when the cart is empty"})) == []


def test_a_long_subject_is_parted_after_its_first_sentence() -> None:
    first = "Make the printer a daemon since the new version of the runtime does not call the handler at exit any more"
    (candidate,) = found(
        commits({"description": f"{first}. Also allow names of shops, streets and towns in capitals."})
    ).values()
    assert candidate.memory.content == f"{first}. (cart.py)"


def test_a_first_line_that_the_body_continues_is_told_whole() -> None:
    task = {"description": "Fixed a bug where empty carts were not getting", "output": "priced on Mondays. Thanks."}
    text = next(iter(found(commits(task)).values())).memory.content
    assert text == "Fixed a bug where empty carts were not getting priced on Mondays. (cart.py)"
