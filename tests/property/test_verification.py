"""Laws of verification: what evidence says is supported, and what is added, changed or denied is not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memgraph.extraction.llm.claims import Evidence, evidence_in, is_dated, is_named
from memgraph.extraction.llm.claims import unsupported as unsupported_by
from tests.growth import assert_grows_linearly

LAWS = settings(max_examples=60, database=None)
WORDS = "importer queue lock release cache header retry worker token schema index timeout".split()
words = st.lists(st.sampled_from(WORDS), min_size=2, max_size=8, unique=True)
numbers = st.integers(13, 99_999).map(str)
texts = st.text(max_size=120)


def unsupported(claim: str, passages: list[str] | Evidence) -> list[str]:
    known = passages if isinstance(passages, Evidence) else evidence_in("\n\n".join(passages), passages)[0]
    return unsupported_by(claim, known)


@LAWS
@given(first=words, second=words, number=numbers, is_denied=st.booleans())
def test_evidence_supports_itself_and_what_leaves_part_of_it_out(
    first: list[str], second: list[str], number: str, is_denied: bool
) -> None:
    denial = "does not need" if is_denied else "has"
    told = f"The {' '.join(first)} {denial} {number}, because {' '.join(second)} fails. See src/{first[0]}_{second[0]}.py:{number}."
    assert unsupported(told, [told]) == []
    assert unsupported(told.lower().replace(" ", "\n "), [told]) == []
    assert unsupported(f"{' '.join(second)} fails", [told]) == []
    assert unsupported(f"{second[0]} failed", ["something else", told]) == []


@LAWS
@given(
    said=words,
    new=st.sampled_from(["KeyError", "a/b.py", "--force", "v2.1"]),
    number=numbers,
)
def test_a_new_word_name_or_number_is_not_supported(said: list[str], new: str, number: str) -> None:
    evidence = [f"The {' '.join(said)} took 12 s in the file c/d.py"]
    assert unsupported(f"The {' '.join(said)}", evidence) == []
    assert any(
        new.rsplit("-", maxsplit=1)[-1].casefold() in one.casefold()
        for one in unsupported(f"The {new} {' '.join(said)}", evidence)
    )
    assert unsupported(f"The {' '.join(said)} took {number} s", evidence)


@LAWS
@given(
    said=words,
    negation=st.sampled_from(["do not {}", "never {}", "don't {}", "work without {}"]),
)
def test_a_denial_stays_a_denial(said: list[str], negation: str) -> None:
    stated = f"allowed work {' '.join(said)}"
    denied = negation.format(" ".join(said))
    assert unsupported(denied, [stated])
    assert unsupported(" ".join(said), [denied])
    assert unsupported(denied, [denied]) == []


@pytest.mark.parametrize(
    ("claim", "evidence", "holds"),
    [
        ("Do not use spaces", "please use tabs, not spaces", True),
        ("Use spaces", "please use tabs, not spaces", False),
        ("Do not use tabs", "please use tabs, not spaces", False),
        ("v1 is frozen and must not be changed", "v1 is frozen: do not change it", True),
        ("The server supports keep-alive", "The server doesn't support keep-alive.", False),
        ("The timeout is 60s", "set timeout to 60 s in the settings", True),
        ("The timeout is 6 s", "set timeout to 60 s in the settings", False),
        ("three retries, 1,000 rows", "3 retries and 1000 rows", True),
        ("version 3.3.5 of session.ts", "auth/session.ts since version 3.3.5", True),
        ("version 3.3 of session.ts", "auth/session.ts since version 3.3.5", False),
        ("The importer has a failure", "imports failed", True),
        ("The workers took the lock that was left", "workers take locks, and leave them", True),
        ("Raise the limit from 5 s to 10 s", "The limit was raised from 5 s to 10 s.", True),
        ("Call pytest.fixture", "@pytest.fixture is called", True),
        ("The exit code is -5.", "The exit code is 5.", False),
        ("The exit code is 5.", "The exit code is -5.", False),
        ("The exit code is −5.", "The exit code is -5.", True),
        ("The balance is -€500.", "The balance is -500 €.", True),
        ("The balance is €500.", "The balance is -500 €.", False),
        ("It passes when status == 5", "It passes when status==5", True),
        ("Use tabs", "Do not, in general, use tabs", False),
        ("Use tabs", "That is not so. Use tabs", True),
        ("数据库 locked", "数据库被锁 locked", True),
        ("", "anything", False),
        ("It is so.", "It is so.", False),
    ],
)
def test_what_holds(claim: str, evidence: str, holds: bool) -> None:
    assert (unsupported(claim, [evidence]) == []) is holds


@pytest.mark.parametrize(
    ("source", "evidence", "claim"),
    [
        ("Do not use tabs in the Makefile.", ["use tabs in the Makefile."], "Use tabs in the Makefile."),
        ("Use tabs rather than spaces.", ["spaces", "Use"], "Use spaces."),
        ("It fails not because of memory, but disk.", ["because of memory", "It fails"], "It fails because of memory."),
        ("Do not, in general, use tabs.", ["use tabs"], "Use tabs."),
        ("Use tabs. Never commit.", ["Use tabs"], "Never use tabs."),
    ],
)
def test_a_passage_is_judged_by_the_clause_it_stands_in(source: str, evidence: list[str], claim: str) -> None:
    known, missing = evidence_in(source, evidence)
    assert missing == []
    assert unsupported(claim, known)


@pytest.mark.parametrize(
    ("source", "cut"),
    [
        ("The worker is unable to delete", "able to delete"),
        ("listens on port 18080.", "8080."),
        ("The limit is 5000 requests", "The limit is 5"),
        ("Deploy to notprod-eu only", "prod-eu only"),
        ("It took 0.5 s", "5 s"),
        ("It took 1,500 s", "1"),
        ("It grew by 5% there", "It grew by 5"),
        ("We don't use tabs", "t use tabs"),
    ],
)
def test_a_passage_does_not_cut_a_word_or_a_number(source: str, cut: str) -> None:
    assert evidence_in(source, [cut])[1] == [cut]
    assert evidence_in(f"{source}. And {cut}", [cut])[1] == []


def test_a_passage_may_stand_in_several_places_and_scripts() -> None:
    for source, part in [
        ("Do not use tabs. Please use tabs in Makefiles.", "use tabs"),
        ("“use tabs”, he said", "use tabs"),
        ("(use  tabs)", "use tabs"),
        ("数据库被锁 use tabs", "据库被锁 use tabs"),
    ]:
        known, missing = evidence_in(source, [part])
        assert missing == []
        assert unsupported("Use tabs", known) == []


@settings(max_examples=25, database=None)
@given(source=texts, other=texts, start=st.integers(0, 60))
def test_any_text_can_be_checked_and_a_passage_is_in_its_source(source: str, other: str, start: int) -> None:
    assert isinstance(unsupported(other, [source]), list)
    assert isinstance(is_named(other, source), bool)
    assert isinstance(is_dated(other, source), bool)
    passage = " ".join(source.split()[start % 5 : 8])
    if any(char.isalnum() for char in passage):
        assert evidence_in(source.upper().lower(), [passage.upper().lower()])[1] == []
    assert evidence_in("abc", ["abcd", " "])[1] == ["abcd", " "]


@pytest.mark.parametrize("said", ["2026-01-05T10:00:00Z", "on 5 January 2026", "Jan 5, 2026:", "(January 5, 2026)"])
def test_days_are_found_in_their_usual_forms(said: str) -> None:
    assert is_dated("2026-01-05", said)
    assert not is_dated("2026-01-06", said)
    assert not is_dated("2026-11-05", said)
    assert not is_dated("2026-01-15", said)


@pytest.mark.parametrize("unit", ["not ", "a not, ", "a: not b ", "a-", "1,", "((((", "x", "a_/"])
def test_hostile_texts_cost_little(unit: str) -> None:
    def check(length: int) -> None:
        hostile = unit * (length // len(unit))
        assert unsupported("importer lock", [hostile]) == unsupported("importer lock", [""])
        assert isinstance(unsupported(hostile[:8_000], ["importer lock"]), list)
        assert isinstance(evidence_in(hostile, [hostile[:1_000], hostile[1:1_000]])[1], list)

    assert_grows_linearly(check, 40_000)
