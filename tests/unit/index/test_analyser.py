"""The analyser's terms of texts that agents write."""

from __future__ import annotations

import sys
import threading

import pytest

from memgraph.index import analyser
from memgraph.index.analyser import MAX_TERM_CHARS, analyse
from tests.growth import assert_grows_linearly


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("  \n\t ", []),
        ("The deploys failed", ["deploy", "fail"]),
        ("running runs run", ["run", "run", "run"]),
        ("What did she say when her brother was ill?", ["say", "brother", "ill"]),
        ("Who are you, and where is it?", []),
        ("don't isn’t we'll Anna's they're", ["anna"]),
        ("O'Brien", ["o", "brien"]),
        ("the service is down", ["servic", "down"]),
    ],
)
def test_prose(text: str, terms: list[str]) -> None:
    assert analyse(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("getUserById", ["get", "user", "id", "getuserbyid"]),
        ("get_user_by_id", ["get", "user", "id", "getuserbyid"]),
        ("GetUserById", ["get", "user", "id", "getuserbyid"]),
        ("GET_USER_BY_ID", ["get", "user", "id", "getuserbyid"]),
        ("getuserbyid", ["getuserbyid"]),
        ("HTTPServer", ["http", "server", "httpserver"]),
        ("APIs", ["api"]),
        ("to_do", ["todo"]),
        ("__init__", ["init"]),
        ("PostgreSQL", ["postgr", "sql", "postgresql"]),
        ("is_active()", ["activ", "isact"]),
    ],
)
def test_identifiers_are_found_in_parts_and_whole(text: str, terms: list[str]) -> None:
    assert analyse(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("src/auth/login.py", ["src", "auth", "login", "py"]),
        (r"C:\Temp\app.log", ["c", "temp", "app", "log"]),
        ("https://example.com/a?b=1", ["https", "exampl", "com", "b", "1"]),
        ("memgraph/model/base.py:42", ["memgraph", "model", "base", "py", "42"]),
    ],
)
def test_paths(text: str, terms: list[str]) -> None:
    assert analyse(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("HTTP 401", ["http", "401"]),
        ("#1234", ["1234"]),
        ("E1234 utf8 s3 0x7ffe", ["e1234", "utf8", "s3", "0x7ffe"]),
        ("v1.2.3", ["1.2.3", "1.2"]),
        ("1.2.3.", ["1.2.3", "1.2"]),
        ("v2", ["v2"]),
        ("threshold 0.82", ["threshold", "0.82"]),
        ("python3.11", ["python", "3.11"]),
        ("release_1.2.3.tar.gz", ["relea", "1.2.3", "1.2", "tar", "gz"]),
        ("3.11rc1", ["3.11", "rc1"]),
        ("2026-01-05T10:00", ["2026", "01", "05", "10", "00"]),
    ],
)
def test_digits_and_versions(text: str, terms: list[str]) -> None:
    assert analyse(text) == terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Café naïve ÅNGSTRÖM", ["cafe", "naiv", "angstrom"]),
        ("Cafe\u0301", ["cafe"]),
        ("Straße STRASSE", ["strass", "strass"]),
        ("İstanbul", ["istanbul"]),
        ("ｆｕｌｌ ﬁne ①", ["full", "fine", "1"]),
        ("Москва́", ["москва"]),
        ("pass\u200bword soft\u00adware", ["password", "softwar"]),
        ("数据库", ["数据", "据库"]),
        ("库", ["库"]),
        ("使用Python编程", ["使用", "python", "编程"]),
        ("がガ", ["がガ"]),  # voicing marks are part of the spelling, unlike accents
        ("한국어", ["한국", "국어"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("ไทย", ["ไท", "ทย"]),
        ("🙂 … — !", []),
    ],
)
def test_other_scripts(text: str, terms: list[str]) -> None:
    assert analyse(text) == terms


def test_repeats_and_order_are_kept() -> None:
    assert analyse("alpha beta alpha") == ["alpha", "beta", "alpha"]


def test_long_terms_are_cut() -> None:
    assert analyse("x" * 1_000) == ["x" * MAX_TERM_CHARS]
    assert all(len(term) <= MAX_TERM_CHARS for term in analyse("1." * 1_000 + "a_" * 1_000 + "aB" * 1_000))


def test_stopwords_are_in_folded_form() -> None:
    assert all(word == word.casefold() and word.isascii() for word in analyser.STOPWORDS)


@pytest.mark.parametrize(
    "unit",
    """
    a aA a_ _ 1. 1 a1 . nn' A n't a.b/ 数 \u1100 \u0939\u0931 \ufdfa
    \u0591\u05b0 \u0315\u0300 \u093c\u094d か\u3099 \u0f71\u0f74 \u3099\u094d
    """.split(),
)
def test_hostile_input_takes_linear_time(unit: str) -> None:
    assert_grows_linearly(lambda length: analyse("a" + unit * (length // len(unit))), 100_000)


def test_blobs_do_not_fill_the_cache() -> None:
    before = analyser._terms_of.cache_info().currsize
    for number in range(50):
        analyse(f"{number}" + "ab" * 100)
    assert analyser._terms_of.cache_info().currsize == before


def test_threads_agree() -> None:
    words = [f"generalization{suffix}" for suffix in "abcdefghijklmnopqrst"] * 20
    analyser._terms_of.cache_clear()
    analyser._term.cache_clear()
    expected = analyse(" ".join(words))
    found: list[list[str]] = []

    def work() -> None:
        found.append(analyse(" ".join(words)))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        analyser._terms_of.cache_clear()
        analyser._term.cache_clear()
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert found == [expected] * 8
