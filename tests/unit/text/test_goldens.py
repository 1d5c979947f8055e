"""What each utility for texts makes of difficult ones, as kept in ``goldens.json``: none of it may change by accident.

What memories say depends on these functions, and what they say is told apart, merged and compared later: another cut makes another
memory. A wanted change is kept by running this module: ``python -m tests.unit.text.test_goldens``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from memgraph.extraction.statements import sentences
from memgraph.index.analyser import analyse
from memgraph.lifecycle.contradictions.resolution import stated_end
from memgraph.retrieval.stages.time_phrases import spans_in
from memgraph.text.calendar import in_words
from memgraph.text.cutting import cut, fitted, preview, split_text, summary_of
from memgraph.text.safe import one_line, visible, visible_line
from memgraph.text.sentences import ended, enumerated, split_sentences
from memgraph.text.words import overlap

KEPT = Path(__file__).with_name("goldens.json")
TEXTS = [
    "",
    "  \t ",
    "One sentence",
    "One sentence. Another one! A third? and no fourth",
    "Dr. Smith, e.g. at 5 p.m., met the U.S. team. They agreed.",
    "Wait... what? Well… That was it.… Really.",
    "Done:\n- first item\n- second item. With a tail\n* third\n\n1. numbered\n2) too\n  • dotted",
    "See https://example.org/a.b?c=d. Then open src/auth/login.py. Version 1.2.3 is out.",
    "It reads config.toml.Then it stops.No space here",
    "数据库连接失败。重试成功！为什么？因为超时。 下一次用八秒。",
    "Straße gesperrt! Ünïcode – “quoted.” Next (in parentheses.) And 'so on.' End",
    "👩‍👩‍👧 Family. 🎉 Party! 😀",
    "Bell\x07 and null\x00 and escape \x1b[31mred\x1b[0m. New\x85line\u2028and\u2029paragraph.",
    "Right-to-left \u202egnp.exe\u202c and \u2066isolate\u2069 and tag \U000e0041. Soft\u00adhyphen \u200b zero",
    "Half a character \udcff here. Then \ufffe and \ufeff mark.",
    "x" * 130,
    "word " * 30,
    "a  b\t\tc\r\nd\r\re. F",
    "Use `pip install x.` Then run `make`. **Bold.** _Thin._ \"Quoted.\" -Dash",
    "The port is 8080; the host is a. Set it; then stop;no",
    "Fix: On 2026-01-05 in core, use tabs instead of spaces. It held until 2026-03-31. (core/a.py)",
    "It ended on the 5th. The 6th began. Until Mar. 31 it is on.",
    "JSON {\"a\": 1}. A call(x=1). A table | - |. Booking AB12C3 for sara_doe_1234 on May 5, 2026.",
    "However, it failed 3 times (KeyError: 12, at line 7). and then it worked; what worked: `make all`.",
    "...!?",
    ". Leading stop. ; and more",
    "Ends with a colon:",
    "Ends with a quotation mark”",
    "Ends in code `x`",
    "Ends here;",
    "Ends here。",
    "Ends…",
]  # fmt: skip
DATES = [
    "valid until 2026-03-31", "expires on 31 March 2026.", "until Sept 5, 2026", "through the end of 2026.", "till Feb 2026",
    "up to 31.12.2026", "ends on May 1st, 2026", "until MARCH 2026", "until February 30 2026", "until 3/4/2026",
    "was down until 2026-05-05", "in June", "in jun", "in May", "may 5", "May 5", "5 may", "on 5 Dec. 2025", "sept 2026",
    "June 2026", "the 3rd of January", "since 2025", "last month", "two months ago", "yesterday", "31 February 2026",
    "Valid until 1 sep. 2026. Also until 2 oct 2027.", "2026-00-05", "2026-05-00", "until 2026-00-31", "until 2026-05-00",
    "0 May 2026", "until 31 December 9999", "until 29 February 2028", "Feb 2028", "until AuguſT 2026",
]  # fmt: skip
NAMES = [["a"], ["a", "b"], ["a", "b", "c"]]
NOW = "2026-02-10T12:00:00.000Z"
NOW_DAYS = 20_494.5
LIMIT = 20


def terms(text: str) -> frozenset[str]:
    return frozenset(analyse(text))


PAIRS = [(terms(one), terms(other)) for one, other in [*pairwise(TEXTS), (TEXTS[2], TEXTS[3]), (TEXTS[3], TEXTS[3])]]
OF_TEXTS: dict[str, Callable[[str], Any]] = {
    "sentences of prose": sentences,
    "parts of claims": lambda text: split_sentences(text, "claim"),
    "parts that state an end": lambda text: split_sentences(text, "end"),
    "parts of a long text": lambda text: [part.strip() for part in split_sentences(text, "part") if part.strip()],
    "split_text": lambda text: split_text(text, LIMIT),
    "summary_of": lambda text: summary_of(f"{text} {text[::-1]}\n{text} {text}"),
    "ended": ended,
    "cut": lambda text: cut(text, LIMIT),
    "preview": preview,
    "fitted": lambda text: fitted([text, text[:5], text[::-1]], 2 * LIMIT),
    "one_line": one_line,
    "visible_line": visible_line,
    "visible": visible,
}
OF_PAIRS: dict[str, Callable[[frozenset[str], frozenset[str]], float]] = {
    "overlap": overlap,
    "overlap with the smaller one": lambda one, other: overlap(one, other, of_smaller=True),
}
OF_DATES: dict[str, Callable[[str], Any]] = {
    "stated_end": lambda text: stated_end(text, NOW),
    "spans_in": lambda text: spans_in(text, NOW_DAYS),
}
OF_MONTHS: dict[str, Callable[[int], str]] = {
    "in_words": lambda month: in_words(f"2026-{month:02d}-05"),
}
OF_NAMES: dict[str, Callable[[list[str]], str]] = {"enumerated": enumerated}


def found() -> dict[str, list[Any]]:
    """Return what each function makes of its inputs, as JSON has it."""
    results: dict[str, Any] = {name: list(map(function, TEXTS)) for name, function in OF_TEXTS.items()}
    results |= {name: [function(*pair) for pair in PAIRS] for name, function in OF_PAIRS.items()}
    results |= {name: list(map(function, DATES)) for name, function in OF_DATES.items()}
    results |= {name: list(map(function, range(1, 13))) for name, function in OF_MONTHS.items()}
    results |= {name: list(map(function, NAMES)) for name, function in OF_NAMES.items()}
    return json.loads(json.dumps(results))


@pytest.fixture(scope="module")
def results() -> dict[str, list[Any]]:
    return found()


@pytest.mark.parametrize("name", [*OF_TEXTS, *OF_PAIRS, *OF_DATES, *OF_MONTHS, *OF_NAMES])
def test_difficult_texts_have_the_recorded_results(name: str, results: dict[str, list[Any]]) -> None:
    assert results[name] == json.loads(KEPT.read_text("utf-8"))[name]


def test_a_month_in_another_spelling_is_no_surprise() -> None:
    assert spans_in("ſep 2026", NOW_DAYS) == spans_in("Sep 2026", NOW_DAYS)  # "ſ" is an "s" where case is ignored


if __name__ == "__main__":
    KEPT.write_text(json.dumps(found(), indent=1) + "\n", "utf-8")
