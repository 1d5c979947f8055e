"""Which changes state something to act on, and how the memory's text is composed of it."""

from __future__ import annotations

import pytest

from memgraph.extraction.rules.changes import assessed, composed_text, statements
from memgraph.extraction.rules.prose import sentences_of
from memgraph.extraction.rules.subjects import parse_subject
from memgraph.model.build import BuildTask


def told(description: str, output: str = "", *files: str) -> str | None:
    task = BuildTask(
        task_id="c1",
        agent_name="Ada",
        description=description,
        output=output,
        outcome="success",
        files_changed=list(files or ["shop/cart.py"]),
    )
    subject = parse_subject(description)
    change = assessed(task, subject)
    return composed_text(subject, change, task, "") if change else None


@pytest.mark.parametrize(
    "body",
    [
        "The cart is priced twice because two workers read one queue.",
        "Totals were computed before the discounts had been loaded.",
        "The auditors asked for it.",
        "Clerks cannot open an order while the lock is held.",
        "Without the lock, two clerks overwrite each other's orders when they save.",
    ],
)
def test_a_fix_is_kept_with_what_was_wrong(body: str) -> None:
    assert told("Fix the price of carts", body) == f"Fix the price of carts. {body}"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "Closes #12",
        "* fix tests\n* tweak changelog\n* address review comments",
        "--HG--\nbranch : trunk",
        "Suggested by Grace Hopper and reviewed by Alan Turing.",
        "Added tests and updated the changelog.",
        "This makes the module cleaner because there is less duplication of code.",
        "I think that it failed because of the cache.",
        "See https://shop.example/issues/12 because it explains the problem.",
        "Regression test from Grace Hopper.",
    ],
)
def test_narration_speculation_and_chaff_are_no_statements(body: str) -> None:
    assert told("Fix the price of carts", body) is None


def test_a_feature_is_kept_only_for_a_cause() -> None:
    described = "When it is given, the price is shown without taxes."
    caused = "Clerks added the taxes twice because the price did not say what it includes."

    assert told("Add a --net flag", described) is None
    assert told("Add a --net flag", f"{described} {caused}") == f"Add a --net flag. {described} {caused}"


def test_a_sentence_that_leans_on_another_is_told_with_it() -> None:
    body = "The queue is shared by all shops. It was emptied twice a day. This caused orders to be lost at noon."
    assert statements(body, known="Give each shop a queue")[-1] == "This caused orders to be lost at noon."
    assert len(statements(body, known="Give each shop a queue")) == 3


def test_tests_and_builds_are_kept_for_flaky_causes_and_workarounds_only() -> None:
    flaky = "The clock is read twice, so it fails when the second changes in between because both are compared."
    pinned = "Version 2.0 breaks the build because it needs a newer compiler."

    assert told("Fix flaky test of receipts", flaky, "tests/test_receipts.py")
    assert told("Pin printer to <2.0", pinned, "requirements.txt") == f"Pin printer to <2.0. {pinned}"
    assert told("Add tests of receipts", "They are needed because receipts are printed.", "tests/test_a.py") is None
    assert told("Explain receipts", "They were explained wrongly because of a mistake.", "docs/receipts.md") is None


@pytest.mark.parametrize(
    ("line", "text", "kind"),
    [
        ("[svn r123] count carts once", "count carts once", None),
        ("[2.1.x] fix: count carts once", "count carts once", "fix"),
        ("fix issue334: count carts once", "count carts once", "fix"),
        ("Fix #12 - count carts once", "count carts once", "fix"),
        (":bug: count carts once", "count carts once", None),
    ],
)
def test_marks_of_tools_do_not_belong_to_the_subject(line: str, text: str, kind: str | None) -> None:
    subject = parse_subject(line)
    assert (subject.text, subject.kind) == (text, kind)


def test_a_sentence_that_code_completes_is_left_out() -> None:
    body = "Carts were lost at noon. The query was sent like\n\n    SELECT 1\n\nwhich is wrong.\n\nNobody saw."
    assert [one.text for one in sentences_of(body)] == ["Carts were lost at noon."]


def test_items_that_are_wrapped_are_one_sentence() -> None:
    body = "- carts are counted twice because\nthe queue is shared by shops\n- tests"
    assert [(one.text, one.is_item) for one in sentences_of(body)] == [
        ("carts are counted twice because the queue is shared by shops", True)
    ]


def test_what_breaks_is_quoted_from_the_footer() -> None:
    body = "BREAKING CHANGE: prices are sent as text, callers must parse them"
    assert told("feat: send exact prices", body) == (
        "Breaking change: send exact prices. Prices are sent as text, callers must parse them."
    )


def test_a_paragraph_is_told_whole_as_far_as_it_fits() -> None:
    body = (
        "The printer ends each line itself. We need an end of line in case there are no lines. This trims the other one.\n\n"
        "Thanks to Grace!"
    )
    assert told("Print one end of line", body) == f"Print one end of line. {body.splitlines()[0]}"
    long = " ".join(["The lock is taken twice because of the queue.", *["It was always so in the shop."] * 30])
    assert (told("Fix the lock of the cart", long) or "").endswith("It was always so in the shop.")
    assert len(told("Fix the lock of the cart", long) or "") < 840


def test_reasons_given_as_a_list_are_told_with_what_announces_them() -> None:
    body = "There are several reasons for it:\n\n1) It is faster\n2) Its seed comes from the kernel. See:\n   https://shop.example/a\n"
    assert told("Switch from dice to the counter", body) == (
        "Switch from dice to the counter. There are several reasons for it: It is faster; Its seed comes from the kernel."
    )


@pytest.mark.parametrize(
    ("description", "output"),
    [
        ("Rename an internal 'async' argument for Python 3.7 compatibility", ""),
        ("Timeouts of the queue should be on the Queue, not the Shop", ""),
        ("Making `-1` conflict with `--exec` and `--results` override `-1`", ""),
        ("open_cart() now raises CartError for empty baskets", ""),
        ("CI: no need to set SHOP", "It should be defined in every shop, if it isn't, setting it would be wrong."),
        ("The generator works in modules", "A major change in behavior, but with modules it is needed."),
        ("Drop support for RC4", "It's completely broken."),
        ("Drop 'Cart(on_close=...)' from API", ""),
        ("Drop `cart.timer` attribute", ""),
        ("Add protection of tossed cookies", "Mitigate malicious cookies set on a shop from being read by the street."),
        ("Remove the help page before adding it", "This fixes an issue where each call shows the help page once more."),
    ],
)
def test_rules_purposes_and_what_users_meet_are_kept(description: str, output: str) -> None:
    assert told(description, output)


@pytest.mark.parametrize(
    ("description", "output"),
    [
        ("Delete name field from Command", ""),
        ("Removed the lock files", "They were committed by mistake."),
        ("Take over the dual-license handling", "Try to stop the host from complaining about the license."),
        ("Go vet", "The string in the print tripped up go vet and was not easy to read."),
        ("Add Strict Transport Security protection", ""),
        ("Add a callback", "This can be used to initialize the class with options."),
        ("They should just share the same version", ""),
        ("Add logic for determining if a URL should be proxied", ""),
    ],
)
def test_what_changes_nothing_for_anyone_is_silent(description: str, output: str) -> None:
    assert told(description, output) is None


@pytest.mark.parametrize(
    "body",
    [
        "Prices come from the book, like so:\n\n    book.price\n\nThis breaks the cart because it is read twice.",
        "You can now ask the till for a price:\n\n    till.price()\n\nThe cart fails when it uses this mechanism.",
        "In the next commit, the till will be read in batches. To avoid filling that commit, the waits are here.",
        "Reading the book:\n\n    book.read()\n\nThe other shop avoids the same problem, because it reads once.",
    ],
)
def test_no_sentence_points_back_to_one_that_is_left_out(body: str) -> None:
    assert told("Rework the prices", body) is None


def test_the_fix_is_told_with_its_cause_across_paragraphs() -> None:
    cause = "The till rounds each line, i.e. the sum is off by a cent, because it has no decimals."
    fix = "Round the sum of them instead."
    assert told("Fix the sum of carts", f"{cause}\n\n{fix}") == f"Fix the sum of carts. {cause} {fix}"
    linked = (
        "This is caused by a bug of the printer:\n\n    https://printer.example/7\n\nTo work around this bug, wait."
    )
    expected = "This is caused by a bug of the printer. To work around this bug, wait."
    assert told("Wait for the printer", linked) == f"Wait for the printer. {expected}"


def test_one_part_of_a_squashed_change_is_told() -> None:
    body = (
        "* Read the book\n\nThe shop was closed while the book was read.\n\n"
        "* Print the sum\n\nThe printer hangs because the sum is empty. Print a zero for empty carts.\n"
    )
    assert statements(body, known="Fix the shop") == (
        "The printer hangs because the sum is empty.",
        "Print a zero for empty carts.",
    )


def test_a_culprit_alone_says_nothing_of_what_broke() -> None:
    origin = "This regression was caused by 3ef51d7f733a (Sort the carts)."
    assert told("Fix a regression of carts", origin) is None
    assert told("Fix carts", "These bugs were introduced by 3ef51d7f733a (Sort the carts).") is None
    cause = "Carts were sorted by two workers."
    assert told("Fix a regression of carts", f"{cause} {origin}") == (
        f"Fix a regression of carts. {cause} This regression was caused by 3ef51d7f73 (Sort the carts)."
    )


def test_a_fix_says_what_a_named_part_does_now() -> None:
    body = "Fix sum_of() to pass the cart and the book to price_of() in the correct order."
    assert told("Fix price_of() argument reversal", body) == f"Fix price_of() argument reversal. {body}"


@pytest.mark.parametrize(
    ("description", "output"),
    [
        ("api: expose the state of carts", ""),
        ("Down to 22 failing tests.", "The cart knows its price, which means that nobody has to look it up."),
        ("Bug fix for a missed import that didn't show up until the shop opened.", ""),
        (
            "Fix bugs of the till",
            "Fix a crash when the till is empty.\n\nFix a leak that occurs while the till is open.",
        ),
        ("An open task probably should close the till too", ""),
        ("Use plain text for the CSRF page", ""),
        ("CI: read the till once", "It runs once in a shop, because every test takes a minute."),
        ("Second half of the new till", "It moves the book, so that the shop can be closed without the till."),
        ("Created the shop runner, started making it open at night.", ""),
        ("Add the state of carts", "For example, a cart is full because somebody filled it."),
        ("Cut v0.2", "The machine did not publish the tag, so we need another one of them."),
        ("price_of() can now return a cart", ""),
    ],
)
def test_what_names_no_thing_or_no_cause_is_silent(description: str, output: str) -> None:
    assert told(description, output) is None


def test_a_reference_leaves_no_dangling_word() -> None:
    cause = "The till was read twice, because two clerks opened it."
    assert told("Fix for #12", cause) == f"Fix. {cause}"
