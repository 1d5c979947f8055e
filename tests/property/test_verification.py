"""Laws of verification: evidence supports itself, a new number is refused, and hostile texts cost little."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memgraph.extraction.llm.claims import NOT_VERIFIED, Claim, evidence_in, is_dated, is_named
from tests.growth import assert_grows_linearly

LAWS = settings(max_examples=60, database=None)
WORDS = "importer queue lock release cache header retry worker token schema index timeout".split()
words = st.lists(st.sampled_from(WORDS), min_size=2, max_size=8, unique=True)
numbers = st.integers(13, 99_999).map(str)
texts = st.text(max_size=120)


def kept(content: str, source: str, *quoted: str) -> str | None:
    given = {"type": "semantic", "outcome": "neutral", "confidence": 0.8, "content": content}
    claim, _ = Claim.parse({**given, "evidence": [one[:1_000] for one in quoted or [source]]}).verified(source)
    return claim and claim.content


@LAWS
@given(first=words, second=words, number=numbers)
def test_a_sentence_supports_itself_and_any_change_of_it_is_marked_or_refused(
    first: list[str], second: list[str], number: str
) -> None:
    told = f"The {' '.join(first)} has {number}, because {' '.join(second)} fails in src/{first[0]}_{second[0]}.py:{number}."
    assert kept(told, told) == told
    assert kept(told.lower().replace(" ", "\n "), told) is not None
    for changed in (told.replace("has", "lacks"), told.replace("fails", "does not fail"), told.replace("because ", "")):
        assert kept(changed, told) == f"“{told}”{NOT_VERIFIED}{changed}"
    assert kept(told.replace(f"has {number}", f"has {number}1"), told) is None


@settings(max_examples=25, database=None)
@given(source=texts, other=texts, start=st.integers(0, 60))
def test_any_text_can_be_checked_and_a_passage_is_in_its_source(source: str, other: str, start: int) -> None:
    assert isinstance(is_named(other, source), bool)
    assert isinstance(is_dated(other, source), bool)
    passage = " ".join(source.split()[start % 5 : 8])
    known, missing = evidence_in(source, [passage])
    assert len(known.kept_for(other)) <= len(source) + len(other) + 60
    assert known.run(passage) in " ".join(source.split()).translate(str.maketrans("“”", '""'))
    if not missing:
        assert evidence_in(source.upper().lower(), [passage.upper().lower()])[1] == []
    assert evidence_in("abc", ["abcd", " "])[1] == ["abcd", " "]


@pytest.mark.parametrize("said", ["2026-01-05T10:00:00Z", "on 5 January 2026", "Jan 5, 2026:", "(January 5, 2026)"])
def test_days_are_found_in_their_usual_forms(said: str) -> None:
    assert is_dated("2026-01-05", said)
    assert not is_dated("2026-01-06", said)
    assert not is_dated("2026-11-05", said)
    assert not is_dated("2026-01-15", said)


@pytest.mark.parametrize("unit", ["not ", "a not, ", "a: not b ", "a-", "1,", "((((", "x", "a_/", "a. "])
def test_hostile_texts_cost_little(unit: str) -> None:
    def check(length: int) -> None:
        hostile = unit * (length // len(unit))
        assert kept("importer lock", hostile, "importer") is None
        assert isinstance(evidence_in(hostile, [hostile[:1_000], hostile[1:1_000]])[1], list)

    assert_grows_linearly(check, 40_000)
