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
WHY = (
    "Discounts were applied twice, because the cart was priced on every read and the clerks who opened it in the evening "
    "could not see which of the prices had been lowered in the morning."
)


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


def test_another_test_with_nearly_the_same_name_is_no_recovery() -> None:
    names = ("adds up the prices of the cart", "adds up the taxes of the cart")
    tasks = [{"description": f"Test {name}", "test": name} for name in names]
    assert kinds(log({**tasks[0], "output": "E: 3", "outcome": "failure"}, tasks[1])) == ["failure"]
    assert kinds(log({**tasks[0], "output": "E: 3", "outcome": "failure"}, tasks[0])) == ["failure", "recovery"]


@pytest.mark.parametrize(
    ("description", "is_recovery"),
    [
        ("Attempt to speed up the parser cache", False),
        ("Parser cache, second attempt to warm", True),
        ("Warm parser cache (attempt 2)", True),
    ],
)
def test_the_word_attempt_tells_a_retry_only_with_its_number(description: str, is_recovery: bool) -> None:
    failed = {"description": "Rebuild parser cache from disk nightly", "output": "E: 3", "outcome": "failure"}
    assert ("recovery" in kinds(log(failed, {"description": description}))) is is_recovery


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


def test_a_revert_says_what_it_undid_and_why() -> None:
    undone = SHA % 0xFEED
    build_log = commits(
        {
            "description": 'Revert "Cache cart totals (#12)"',
            "output": f"This reverts commit {undone}.\n\n{WHY}",
            "reverts": undone,
            "undone_subject": "Cache cart totals (#12)",
            "kind": "revert",
            "occurred_at": "2026-03-01T09:30:00Z",
        }
    )
    memory = found(build_log)["revert"].memory
    assert isinstance(memory, EpisodicMemory)
    assert memory.content == f'Revert "Cache cart totals (#12)". This reverts commit {undone}. {WHY}'
    assert (memory.outcome, memory.source, memory.git_commit) == ("positive", "git", build_log.tasks[0].task_id)
    assert memory.occurred_at == memory.event_date == "2026-03-01T09:30:00.000Z"


@pytest.mark.parametrize(
    "body",
    [
        WHY,
        f"Closes #12\n\n* fix cart total\n\n{WHY}\n---------",
        f"```sh``` is what the shop runs.\n{WHY}",
        f"Счета были неверны. {WHY}",
        f"<details><summary>Why</summary>\n\n{WHY}</details>",
        f"{WHY}\n\n```\nfor cart in carts:\n    price(cart)\n```\n\n    price(cart)\n\n> As said before.",
    ],
)
def test_a_change_is_kept_that_its_author_explains(body: str) -> None:
    (candidate,) = RuleExtractor().extract(commits({"description": "fix: cart total", "output": body})).candidates
    memory = candidate.memory
    assert memory.content.startswith("fix: cart total. ")
    assert WHY in memory.content
    assert "price(cart)" not in memory.content
    assert "As said" not in memory.content
    assert "<" not in memory.content
    assert memory.reason == "its author explains the change"


def explained(body: str) -> str:
    (candidate,) = RuleExtractor().extract(commits({"description": "fix: cart total", "output": body})).candidates
    return candidate.memory.content


@pytest.mark.parametrize("block", ["```\nKeyError: 'cart'\n```", "    KeyError: 'cart'", "> KeyError: 'cart'"])
def test_what_a_colon_announces_is_kept_where_the_message_fits_and_marked_where_it_does_not(block: str) -> None:
    body = f"{WHY} It failed with\nthis error:\n\n{block}\n\n(Only in the morning.)"

    assert explained(body).endswith(
        f"with this error: {'> ' * block.startswith('>')}KeyError: 'cart' (Only in the morning.)"
    )
    long = body.replace("KeyError", "KeyError" * 100)
    assert explained(long).endswith("It failed with this error: […] (Only in the morning.)")


def test_a_text_that_is_too_long_keeps_its_first_paragraphs_and_items() -> None:
    item = "* Lock the cart while it is being priced"
    reason = "The total was wrong, because nobody who\nopened the shop in the morning could see\nwhich of the prices had been"
    body = f"{item}\n\n{reason} lowered\n\nIt is checked now, and the till is told:\n\n{'x ' * 400}"
    quoted = f"{item}\n\n{reason} lowered\n\nThe till says\n\n> It is closed\n\nwhere {'x ' * 400}"

    assert explained(body) == explained(quoted) == f"fix: cart total. {item} {' '.join(reason.split())} lowered"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "Closes #12",
        WHY.partition(",")[0],
        "\n".join(f"* {WHY}" for _ in range(3)),
        "\n".join(f"    {WHY}" for _ in range(3)),
        "\n".join(f"> {WHY}" for _ in range(3)),
        f"```\n{WHY}\n```",
        f"- one item\n> {WHY}",
        f"1. one item\n$ {WHY}",
        " ".join(f"shop/cart_{number}.py" for number in range(60)),
    ],
)
def test_lists_code_quotations_and_names_explain_nothing(body: str) -> None:
    assert kinds(commits({"description": "fix: cart total", "output": body})) == []


@pytest.mark.parametrize(
    "task", [{"agent_name": "dependabot[bot]"}, {"repeats": SHA % 0xFEED}, {"kind": "dependency"}, {"kind": "release"}]
)
def test_what_a_bot_made_a_merge_repeats_or_others_released_is_skipped(task: dict[str, Any]) -> None:
    assert kinds(commits({"description": "Fix cart total", "output": WHY} | task)) == []


def test_a_title_that_comes_again_is_kept_once() -> None:
    tasks = [{"description": f"fix: cart total (#{number})", "output": WHY} for number in (7, 8)]
    assert len(kinds(commits(*tasks))) == 1


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
        {"description": f"fix: order {word} is lost when the page reloads", "output": WHY} for word in "abcdefghij"
    ]
    tasks.append({"description": "Run billing", "output": "ValueError: no rate", "outcome": "failure"})
    result = RuleExtractor().extract(log(*tasks))
    assert len(result.candidates) == 11
    assert (result.candidates[0].key or "").endswith(":failure")
    assert RuleExtractor().extract(log(*tasks)) == result
    assert len(RuleExtractor(limit=3).extract(log(*tasks)).candidates) == 3
    assert isinstance(RuleExtractor(), Extractor)
    assert result.extractor == "rules"


def test_a_grown_log_adds_its_growth(store: Any) -> None:
    early: list[dict[str, Any]] = [
        {"description": f"fix: order {word} is lost when the page reloads", "output": WHY} for word in "abcdefgh"
    ]
    late = [*early, {"description": "fix: the invoice shows the wrong currency after a reload", "output": WHY}]
    pipeline = ConsolidationPipeline(store)

    assert pipeline.consolidate(commits(*early)).memories_extracted == 8
    assert pipeline.consolidate(commits(*late)).memories_extracted == 1
    assert any("currency" in memory.content for memory in store.get_all_memories())


def test_hostile_logs_are_bounded() -> None:
    many: list[dict[str, Any]] = [
        {"description": f"fix: order {n} is lost when page {n * 7} reloads", "output": WHY} for n in range(1_500)
    ]

    assert len(RuleExtractor().extract(commits(*many)).candidates) == 1_000


def test_keys_stay_when_the_log_grows() -> None:
    early: list[dict[str, Any]] = [
        {"description": "fix: cart total ignores discounts when it is reloaded", "output": WHY},
        {"description": "Drop support for Python 3.7", "output": WHY},
    ]
    late: list[dict[str, Any]] = [*early, {"description": "Deprecate gift cards", "output": WHY}]
    before = {c.key: c.memory.content for c in RuleExtractor().extract(commits(*early)).candidates}
    after = {c.key: c.memory.content for c in RuleExtractor().extract(commits(*late)).candidates}
    assert before.items() <= after.items()


def test_an_empty_log_gives_nothing_and_a_failed_one_its_summary() -> None:
    assert kinds(log()) == []
    failed = log(build_outcome="failure", build_summary="All was well.\nfatal: disk quota exceeded on runner")
    memory = found(failed)["failure"].memory
    assert memory.content == "Build b1 of shop: fatal: disk quota exceeded on runner."


def test_a_long_explanation_ends_with_a_sentence_and_not_with_an_abbreviation() -> None:
    told = "The price of each of the goods is read from the book of the shop. " * 11
    task = {"description": "fix: prices", "output": f"{told}It is so for many goods, e.g. for {'tea ' * 40}."}
    (candidate,) = RuleExtractor().extract(commits(task)).candidates
    assert candidate.memory.content.endswith("the book of the shop.")


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


@pytest.mark.parametrize("unit", ["a", "A.", "instead of ", "1. run\n", '"', "a -> ", "```\n", "<!-- "])
def test_hostile_text_costs_little(unit: str) -> None:
    def extract(length: int) -> None:
        text = unit * (length // len(unit))
        said = [{"timestamp": "2026-03-01T10:10:00Z", "action": text, "context": text}]
        task = {"description": text, "output": text, "outcome": "failure", "files_changed": [text[:4_000]]}
        RuleExtractor().extract(log(task, task | {"outcome": "success"}, said=said, build_summary=text))

    assert_grows_linearly(extract, 200_000)


def test_who_and_where_are_fields_and_do_not_fill_the_text() -> None:
    memory = found(commits({"description": "fix: the cart total has three decimals", "output": WHY}))["change"].memory

    assert memory.agents_involved == ["Ada"]
    assert memory.location == "shop/cart.py"
    assert "Ada" not in memory.content
    assert "shop/" not in memory.content


def test_a_commit_is_found_by_the_issues_and_requests_that_it_names(store: Any) -> None:
    body = f"The lock was taken twice because two workers read one queue. {WHY}\n\nFixes #71, #72."
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
                "output": f"Totals were computed before the discounts were loaded. {WHY}",
            },
        )
    )
    (memory,) = [one for one in store.get_all_memories() if "lock" in one.content]
    assert [one.name for one in memory.entities if one.kind == "issue"] == ["#71", "#1394", "#72"]
    assert "#1394" in indexed_text(store.reader.rows([memory.id])[0])
