"""Promises of the analyser that hold for every text."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from memgraph.index.analyser import MAX_TERM_CHARS, analyse

anything = st.text(st.characters(exclude_categories=()), max_size=200)
pieces = """
    get User By ID HTTP _ . / - ' ’ s t v 1 23 401 é ß T : ing ed ness
    数 据 が 한 \u3099 \u0301 \u093f \u1100 \u1161 \u11a8
""".split()
technical = st.lists(st.sampled_from([*pieces, " "]), max_size=40).map("".join)
letters = "abcdefghijklmnopqrstuvwxyz"
words = st.text(letters, min_size=1, max_size=20)
texts = anything | technical | words


@given(texts)
def test_terms_are_never_empty_or_long_and_hold_no_space(text: str) -> None:
    for term in analyse(text):
        assert 1 <= len(term) <= MAX_TERM_CHARS
        assert term.split() == [term]
        assert term == term.casefold()


@given(texts)
@example("committee")
@example("v1.2.3.4 getUserById don't")
@example("1." * 60)
@example("A" * 63 + "éing")
@example("only overall doing")
def test_terms_fed_back_give_the_same_terms(text: str) -> None:
    terms = analyse(text)
    assert set(analyse(" ".join(terms))) == set(terms)


@given(texts)
def test_it_is_deterministic(text: str) -> None:
    assert analyse(text) == analyse(text)


@given(texts, texts)
def test_texts_side_by_side_have_the_terms_of_both(left: str, right: str) -> None:
    assert analyse(f"{left} {right}") == analyse(left) + analyse(right)


@given(words)
def test_case_does_not_matter_for_a_word(word: str) -> None:
    assert analyse(word.upper()) == analyse(word) == analyse(word.capitalize())


@given(
    st.integers(min_value=0, max_value=10**30),
    st.sampled_from(["{}", "error {}", "#{}", "({})", "issue-{}", "line:{}."]),
)
def test_digits_are_found(number: int, shape: str) -> None:
    assert str(number) in analyse(shape.format(number))


@given(
    st.lists(st.integers(0, 10**6), min_size=2, max_size=5), st.sampled_from(["{}", "v{}", "pkg-{}", "pkg_{}", "V{},"])
)
def test_versions_are_found_whole(parts: list[int], shape: str) -> None:
    version = ".".join(map(str, parts))
    assert version in analyse(shape.format(version))


@given(st.lists(words, min_size=2, max_size=4))
def test_an_identifier_is_found_however_it_is_written(parts: list[str]) -> None:
    camel = parts[0] + "".join(part.capitalize() for part in parts[1:])
    joined = set(analyse("".join(parts)))
    for spelling in (camel, "_".join(parts), "_".join(parts).upper()):
        assert joined <= set(analyse(spelling))


@given(st.lists(words, min_size=1, max_size=6), st.sampled_from(["/", ".", "\\", "-", ":", "@"]))
def test_parts_of_a_path_are_found(parts: list[str], separator: str) -> None:
    assert analyse(separator.join(parts)) == analyse(" ".join(parts))


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5), min_size=1, max_size=30))
def test_no_han_character_is_lost(text: str) -> None:
    assert set("".join(analyse(text))) == set(text)


@given(st.text(letters, min_size=1, max_size=12).filter(analyse), st.integers(0, 11))
def test_accents_do_not_matter(word: str, at: int) -> None:
    accented = word[: at + 1] + "\u0301" + word[at + 1 :]
    assert analyse(accented) == analyse(word)
