"""Laws of merging: a text with another number, name, version, negation or direction is never the same; one written otherwise always is."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memgraph import EpisodicMemory, SemanticMemory
from memgraph.lifecycle.dedup.same import is_equal, same

MANY = settings(max_examples=60, database=None)
NAMES = ("Ann", "Bob", "parser.py", "Redis", "the importer", "src/shop/cart.ts", "`--fast`", "req.ips", "us-east-1")
VALUES = ("8080", "9090", "1.2.3", "1.2.4", "-5", "5", "30 s", "30 ms", "10%", "2026-01-05", "v2", "<1.0", ">1.0")
VERBS = ("calls", "reviews the code of", "sends the rows to", "waits for", "overrides")
ends = st.sampled_from(["", ".", "!", " in the nightly build", " after each deploy.", ", because the bank asks for it"])
names, values, verbs = st.sampled_from(NAMES), st.sampled_from(VALUES), st.sampled_from(VERBS)
pairs = st.lists(names, min_size=2, max_size=2, unique=True)
texts = st.one_of(
    st.builds(lambda two, verb, end: f"{two[0]} {verb} {two[1]}{end}", pairs, verbs, ends),
    st.builds(lambda name, value, end: f"The limit of {name} is {value}{end}", names, values, ends),
    st.builds(lambda name, value, end: f"Never set {value} for {name}{end}", names, values, ends),
)
SIGNS = (".", "!", " ,", ";", "…", "")


def never_merges(one: str, other: str) -> None:
    for kind in (SemanticMemory, EpisodicMemory):
        for fields in ({}, {"outcome": "negative", "failure_fingerprint": "f00"}):
            memories = [kind.parse({"content": text, **fields}) for text in (one, other)]
            assert not same(*memories)
            assert not same(*reversed(memories))


@MANY
@given(name=names, two=st.lists(values, min_size=2, max_size=2, unique=True), end=ends)
def test_another_number_version_date_or_unit_is_another_fact(name: str, two: list[str], end: str) -> None:
    never_merges(*(f"The limit of {name} is {value}{end}" for value in two))


@MANY
@given(two=pairs, verb=verbs, end=ends)
def test_swapped_subject_and_object_are_another_fact(two: list[str], verb: str, end: str) -> None:
    never_merges(f"{two[0]} {verb} {two[1]}{end}", f"{two[1]} {verb} {two[0]}{end}")


@MANY
@given(two=pairs, value=values, end=ends)
def test_another_name_is_another_fact(two: list[str], value: str, end: str) -> None:
    never_merges(*(f"The limit of {name} is {value}{end}" for name in two))


@MANY
@given(text=texts, denial=st.sampled_from(["not", "never", "no longer", "don't", "hardly"]), data=st.data())
def test_a_negation_anywhere_is_another_fact(text: str, denial: str, data: st.DataObject) -> None:
    words = text.split()
    at = data.draw(st.integers(0, len(words)))
    never_merges(text, " ".join([*words[:at], denial, *words[at:]]))


@MANY
@given(text=texts, more=st.sampled_from(["It was reverted", "Not on Fridays", "Only in staging", "The limit is now 7"]))
def test_a_sentence_that_restricts_or_revokes_is_another_fact(text: str, more: str) -> None:
    never_merges(text, f"{text.rstrip('.!')}. {more}.")


def upper(text: str) -> str:
    """Return a text in upper case, but for code, in which case matters."""
    return "".join(part if set("./_-") & set(part) else part.upper() for part in re.split(r"(\s)", text))


@MANY
@given(text=texts, data=st.data())
def test_a_text_written_otherwise_is_the_same(text: str, data: st.DataObject) -> None:
    words = text.rstrip(".!").split()
    spaces = data.draw(st.lists(st.sampled_from([" ", "  ", "\n", "\t"]), min_size=len(words), max_size=len(words)))
    written = "".join(space + word for space, word in zip(spaces, words, strict=True)) + data.draw(
        st.sampled_from(SIGNS)
    )
    written = data.draw(st.sampled_from([upper, str.strip]))(written)
    frame = data.draw(st.sampled_from(["{}", "**{}**", "- {}", "“{}”", "({})", "# {}", "`{}`"]))
    other = frame.format(written.strip())
    assert is_equal(text, other)
    assert is_equal(other, text)
    assert same(SemanticMemory(content=text), SemanticMemory(content=other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("use GitHub", "Use Github"),
        ("−5 degrees", "-5 degrees"),
        ("at –5 degrees", "at -5 degrees"),
        ("the limit – 5 MB", "the limit: 5 MB"),
        ("send the e\u2011mail", "send the e-mail"),
        ("cafe\u0301 opens", "café opens"),
        ("...so what", "so what"),
        ("really???", "Really?"),
        ("**Really?**", "really?"),
        ("**Call *only* this**", "call only this"),
        ("name it _close_", "name it close"),
        ("*Till*'s door is red", "Till's door is red"),
        ("Two rules:\n* Sign it\n+ Count it", "two rules: sign it, count it"),
    ],
)
def test_one_text_written_in_two_ways_is_equal(one: str, other: str) -> None:
    assert is_equal(one, other)
    assert is_equal(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The operator restarts the gateway pods", "The operation restarts the gateway pods"),
        ("Universal images pass the checks", "University images pass the checks"),
        ("Team A is on call for the payments cluster", "Team is on call for the payments cluster"),
        ("Follow plan A for the migration", "Follow a plan for the migration"),
        ("Is it “done?”", "It is “done.”"),
        ("call setUp first", "call setup first"),
        ("call setUp first", "call setDown first"),
        ("wait 5m", "wait 5M"),
        ("H₂O is measured", "H2O is measured"),
        ("run pip install . first", "run pip install first"),
        ("test ./... at night", "test ./ at night"),
        ("cd .. first", "cd first"),
        ("cd ~ first", "cd first"),
        ("Ignore src/**", "Ignore src/*"),
        ("Keep src/*.py and lib/*.py", "Keep src/.py and lib/.py"),
        ("f(**kwargs)", "f(*kwargs)"),
        ("rm -rf build/*", "rm -rf build/"),
        ("grep -v '*foo*' first", "grep -v 'foo' first"),
        (
            "Ignore the files `*test*` when the suite runs at night",
            "Ignore the files `test` when the suite runs at night",
        ),
        ('Set it to "*foo*" now', 'Set it to "foo" now'),
        ("select * from t", "select from t"),
        ("The limit is > 5 MB", "The limit is 5 MB"),
        ("The room is - 5 degrees", "The room is 5 degrees"),
        ("Stop if a > b", "Stop if a b"),
        ("Keep a + b in the total", "Keep a b in the total"),
        ("Order 4711001 was not found", "Order 4711002 was not found"),
        ("Commit 1a2b3c4d has failed", "Commit 9f8e7d6c has failed"),
    ],
)
def test_what_looks_alike_but_is_another_fact(one: str, other: str) -> None:
    assert not is_equal(one, other)
    never_merges(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("After a deploy the cache is cold", "The cache is cold after a deploy"),
        ("Under load the workers restart", "The workers restarted under the load"),
        ("The operators restart a pod", "An operator restarts the pods"),
        ("Universities pass the check", "The university passed the checks"),
    ],
)
def test_inflection_articles_and_a_moved_clause_are_the_same_fact(one: str, other: str) -> None:
    assert same(SemanticMemory(content=one), SemanticMemory(content=other))
    assert same(SemanticMemory(content=other), SemanticMemory(content=one))
