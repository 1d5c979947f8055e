"""The benchmark of recall on git histories: its questions are sound, and it tells a hop that helps from one that is off."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks import git_history

COMMITS = {
    "a": (
        "Import invoices in pages, because a file of a year exceeds the memory",
        ["billing/importer.py", "billing/parser.py"],
    ),
    "b": ("Fix: a byte order mark broke the header when the file came from a spreadsheet", ["billing/parser.py"]),
    "c": ("Fix the cart, which could not be clicked because the dark theme covered it", ["web/theme.js"]),
}
LOG = "".join(
    f"commit {name * 40}\nAuthor: Ann <redacted>\nDate:   2026-01-0{day} 12:00:00 +0000\n\n    {subject}\n\n"
    + "".join(f"M\t{file}\n" for file in files)
    + "\n"
    for day, (name, (subject, files)) in reversed(list(enumerate(COMMITS.items(), start=1)))
)


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: Any) -> Path:
    """Make a log, and questions to it."""
    (tmp_path / "shop.log.txt").write_text(LOG)
    asked = [
        {
            "project": "shop",
            "half": "dev",
            "kind": "join",
            "question": "What broke in a file of the importer of invoices?",
            "gold": ["a" * 40, "b" * 40],
        },
        {
            "project": "shop",
            "half": "test",
            "kind": "plain",
            "question": "What did the dark theme hide?",
            "gold": ["c" * 40],
        },
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in asked))
    monkeypatch.setattr(git_history, "QUESTIONS", path)
    return tmp_path


def test_the_questions_are_sound() -> None:
    asked = git_history.questions(None)

    assert Counter((one.half, one.kind) for one in asked) == dict.fromkeys([("dev", "join"), ("test", "join")], 13) | (
        dict.fromkeys([("dev", "plain"), ("test", "plain")], 7)
    )
    assert len({one.question for one in asked}) == len(asked)
    for one in asked:
        assert one.gold
        assert all(re.fullmatch(r"[0-9a-f]{40}", commit) for commit in one.gold)
        assert len(one.gold) == len(set(one.gold)) > (1 if one.kind == "join" else 0)


def test_scores_are_shares_of_the_evidence_and_the_place_of_the_first() -> None:
    found = [frozenset[str](), frozenset({"b", "x"}), *[frozenset[str]()] * 4, frozenset({"a"})]

    assert git_history.scored(found, ["a", "b"]) == {"R@5": 0.5, "R@10": 1.0, "all@10": 1.0, "MRR": 0.5}
    assert set(git_history.scored(found, ["c"]).values()) == {0.0}


def test_a_difference_has_an_interval_that_is_the_same_each_time() -> None:
    before, after = [{"R@5": value} for value in (0.0, 0.5, 0.0, 1.0)], [{"R@5": 1.0}] * 4

    gained, low, high = git_history.difference(before, after, "R@5")

    assert gained == 0.625
    assert 0.0 < low < gained < high <= 1.0
    assert git_history.difference(before, after, "R@5") == (gained, low, high)


def test_a_log_is_ingested_and_answers_a_question(logs: Path, capsys: Any) -> None:
    assert git_history.main(["--logs", str(logs), "--json"]) == 0

    told = json.loads(capsys.readouterr().out)
    assert told["memories"] == 3
    assert told["kept"]["default"]["plain"]["MRR"] == 1.0
    assert told["kept"]["default"]["join"]["all@10"] == 1.0
    assert list(told["each"]) == list(git_history.SETTINGS)


def test_a_commit_of_which_no_memory_was_made_is_named(logs: Path) -> None:
    git_history.QUESTIONS.write_text(git_history.QUESTIONS.read_text().replace("c" * 40, "d" * 40))

    with pytest.raises(SystemExit, match="d" * 40):
        git_history.main(["--logs", str(logs), "--half", "test"])
