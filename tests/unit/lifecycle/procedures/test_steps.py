"""What several ways have in common, and what makes two steps the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memgraph.lifecycle.procedures import common_way, follows, listed, rendered, step_of, steps_of

ways = st.lists(st.lists(st.sampled_from("abcdef"), max_size=8), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("create reproduce.py (reproduce the bug)", "create src/check.py"),
        ("`python reproduce.py`", "run `python tests/other.py`"),
        ('cancel_reservation(id="A1")', "cancel_reservation"),
        ("`submit 'flag{1}'`", "submit"),
        ("3. Restart the pod 17", "restart the pod 4."),
        ("`curl https://a.example/x`", "`curl http://b.example`"),
    ],
)
def test_steps_that_differ_in_what_changes_are_the_same(one: str, other: str) -> None:
    assert step_of(one).key == step_of(other).key


@pytest.mark.parametrize(
    ("one", "other"), [("git commit", "git push"), ("edit a.py", "`python a.py`"), ("e.g. this", "a.py this")]
)
def test_other_steps_differ(one: str, other: str) -> None:
    assert step_of(one).key != step_of(other).key


@pytest.mark.parametrize(
    ("action", "steps"),
    [
        ("1. Sign the slip. 2. Count the till.", ("Sign the slip.", "Count the till.")),
        ("First the till:\n1) Open it\n2) Count it", ("Open it", "Count it")),
        ("We signed 2. And then 3 more.", ()),
        ("Signed the slip. Counted the till.", ()),
    ],
)
def test_the_entries_of_a_numbered_list(action: str, steps: tuple[str, ...]) -> None:
    assert listed(action) == steps


def test_the_common_way_is_the_shared_steps_in_order() -> None:
    found = common_way(["xabcd", "abcyd", "abzcd", "qqqq"])
    assert found is not None
    backbone, *places = found
    assert "".join(["xabcd", "abcyd", "abzcd", "qqqq"][backbone][place] for place in places) == "abcd"
    assert common_way(["ab", "ba", "cd"]) is None


def test_short_ways_must_be_followed_completely_and_long_ones_mostly() -> None:
    assert follows("xaybzc", "abc")
    assert not follows("axb", "abc")
    assert follows("abcde", "abcdef")
    assert not follows("abcd", "abcdef")


def test_a_step_has_the_common_wording_or_no_variable_parts() -> None:
    same = steps_of(["run `make`"] * 1)[0]
    assert rendered([same, same, step_of("`make`")], same) == "run `make`"
    differ = [
        step_of("create a.py (reproduce the bug)"),
        step_of("create b/c.py (reproduce the bug at once)"),
        step_of("create d.py"),
    ]
    assert rendered(differ, differ[0]) == "create a file"
    commands = [step_of("`python a.py`"), step_of("`python b.py`"), step_of("`python c.py`")]
    assert rendered(commands, commands[0]) == "`python <file>`"


@given(ways)
def test_most_inputs_follow_the_common_way(drawn: list[list[str]]) -> None:
    found = common_way(drawn)
    if found is not None:
        backbone, *places = found
        assert places == sorted(set(places))
        for place in places:
            assert sum(drawn[backbone][place] in way for way in drawn) >= 0.6 * len(drawn)


@pytest.mark.parametrize(
    ("written", "told_as"),
    [
        ("2. Tag the release.", "Tag the release"),
        ("Run `make`;", "Run `make`"),
        *((own, own) for own in ("run `ls .`", "ls .", "cd ..", "rm -f {} \\;", "cp -r build/.", "git diff HEAD..")),
    ],
)
def test_a_step_is_rendered_without_number_and_full_stop(written: str, told_as: str) -> None:
    assert step_of(written).text == told_as
