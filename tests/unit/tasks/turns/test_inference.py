"""The task of a message: named ones are near certain, words of many tasks say nothing, and what is not a candidate is never inferred."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.tasks.turns import MAX_READ_CHARS, TaskText, infer_task
from tests.growth import assert_grows_linearly

TASKS = (
    TaskText("fix-the-login", "Fix the login", ("Users can sign in with tokens", "Use tokens")),
    TaskText("docs", "Write the docs", ("List the endpoints",)),
    TaskText("payroll-2026", "Move payroll to the new provider", ("Call the bank",)),
)
HIGH = 0.75


def inferred(message: str, tasks: Sequence[TaskText] = TASKS, active: str | None = None) -> tuple[str | None, float]:
    found = infer_task(message, tasks, active=active)
    return (found.best.task_id if found.best else None), found.confidence


@pytest.mark.parametrize(
    ("message", "task"),
    [
        ("Please fix the login now", "fix-the-login"),
        ("FIX-THE-LOGIN: what is left?", "fix-the-login"),
        ("What about payroll-2026?", "payroll-2026"),
        ("Let us go on with task docs.", "docs"),
        ("Go on with `docs`", "docs"),
        ("We move payroll to the new provider today", "payroll-2026"),
        ("update the docs", "docs"),
    ],
)
def test_a_task_that_is_named_is_inferred_with_high_confidence(message: str, task: str) -> None:
    name, confidence = inferred(message)
    assert name == task
    assert confidence >= HIGH


@pytest.mark.parametrize(
    ("message", "task"),
    [
        ("The login fails on Safari", "fix-the-login"),
        ("Which endpoints need tokens to sign in users?", "fix-the-login"),
        ("Call the bank about the provider", "payroll-2026"),
        ("See the docs/index page", "docs"),
    ],
)
def test_words_of_a_task_make_it_likely_but_not_certain(message: str, task: str) -> None:
    name, confidence = inferred(message)
    assert name == task
    assert confidence < HIGH


@pytest.mark.parametrize("message", ["", "hello there", "please fix the typo", "payroll-20261", "yes", "!?", "数据"])
def test_a_message_that_says_too_little_belongs_to_no_task(message: str) -> None:
    assert inferred(message) == (None, 0.0)


def test_two_tasks_that_match_about_equally_well_are_ambiguous() -> None:
    tasks = [TaskText("a1", "Import customers from Berlin"), TaskText("b2", "Import customers from Paris")]
    found = infer_task("import the customers", tasks)
    assert [one.task_id for one in found.ambiguous] == ["a1", "b2"]
    assert infer_task("import the customers", tasks, active="b2").best == found.ambiguous[1], (
        "the current one of equals"
    )
    assert infer_task("import the customers from Paris", tasks).ambiguous == ()


def test_a_word_that_all_tasks_have_speaks_for_none() -> None:
    tasks = [TaskText(f"t{number}", f"Webshop {word}") for number, word in enumerate(["refunds", "vouchers", "stock"])]
    assert inferred("Something with the webshop is slow", tasks) == (None, 0.0)
    assert inferred("The refunds of the webshop are slow", tasks)[0] == "t0"


@pytest.mark.parametrize("name", ["a", "1", "the", "42", "fix"])
def test_an_id_that_is_a_common_word_or_a_number_is_named_only_explicitly(name: str) -> None:
    tasks = [TaskText(name, "Payroll")]
    assert inferred(f"There is {name} thing to fix in the code, 42 of them", tasks) == (None, 0.0)
    assert inferred(f"Go on with task {name}", tasks)[0] == name


def test_without_tasks_there_is_nothing_to_infer() -> None:
    assert inferred("Fix the login", []) == (None, 0.0)


def test_only_the_beginning_of_a_long_message_is_read_in_linear_time() -> None:
    def infer(size: int) -> None:
        assert inferred("fix the login " * (size // 12))[0] == "fix-the-login"
        assert inferred("-" * size) == (None, 0.0)
        assert inferred("docs-" * (size // 5))[1] < HIGH

    assert_grows_linearly(infer, 1_000_000)
    assert inferred("x " * MAX_READ_CHARS + "fix the login") == (None, 0.0)


@given(
    message=st.text(max_size=200),
    titles=st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).map(lambda text: f"{text}x"),
        min_size=1,
        max_size=5,
    ),
    order=st.randoms(use_true_random=False),
)
def test_confidence_is_a_share_and_the_order_of_the_tasks_does_not_matter(
    message: str, titles: list[str], order
) -> None:  # type: ignore[no-untyped-def]
    tasks = [TaskText(f"t{number}", title, (title[::-1],)) for number, title in enumerate(titles)]
    found = infer_task(message, tasks)
    order.shuffle(tasks)
    assert infer_task(message, tasks) == found
    assert 0.0 <= found.confidence <= 1.0
