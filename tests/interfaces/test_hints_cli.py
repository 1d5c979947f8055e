"""What commands say besides their results: what was meant, what is left out, what was carried out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph.interfaces.cli.group import cli


def test_a_similar_command_is_suggested() -> None:
    assert "Did you mean recall?" in CliRunner().invoke(cli, ["recal", "x"]).output


def test_cypher_in_place_of_a_name_is_recognised() -> None:
    assert "--cypher TEXT" in CliRunner().invoke(cli, ["query", "MATCH (m:Memory) RETRN m"]).output


def test_a_shortened_list_says_so_and_a_verdict_names_its_undo(tmp_path: Any, settings: Callable[[], Any]) -> None:
    home = ["--home", str(tmp_path / "store")]

    def run(group: Any, words: list[str], **given: Any) -> Any:
        return CliRunner().invoke(group, words, obj=settings(), **given)

    for text in ("The importer handles empty files", "The importer does not handle empty files"):
        run(cli, [*home, "observe", text])
    assert "1 of 2 memories; --limit N shows more" in run(cli, [*home, "list", "--limit", "1"]).output

    run(cli, [*home, "sleep", "--phase", "work-orders"])
    (order,) = json.loads(run(cli, [*home, "--json", "distil"]).stdout)
    refused = run(cli, [*home, "distil", "answer", order["id"], "-"], input='{"statements": [{"type": "fact"}]}').output
    assert "a work order about a contradiction takes none, only a verdict" in refused
    assert "memgraph distil show --json" in refused
    done = run(cli, [*home, "distil", "answer", order["id"], "-"], input='{"statements": [], "verdict": "newer holds"}')
    older, newer = order["subject_ids"]
    assert f"the newer statement replaces the older; undo: memgraph unsupersede {older} --by {newer}" in done.output


@pytest.mark.parametrize(
    ("args", "said", "code"),
    [
        (["docs", "priv"], "'priv' is not a topic. Did you mean privacy?", 2),
        (["recall", "x", "--floor", "2"], "must be auto, off or a number from 0 to 1", 2),
        (["observe", "x", "--confidence", "2"], "2.0 is not in the range", 2),
        (["observe", "x", "--valid-at", "2026-13-01"], "valid_at: must be a time in ISO 8601, such as 2026-01-05", 1),
        (
            ["outcome", "00000000-0000-4000-8000-000000000000", "success"],
            "`memgraph recall TASK --explain` shows the ids",
            1,
        ),
    ],
)
def test_wrong_values_are_said_in_words_and_with_the_right_code(
    tmp_path: Any, settings: Callable[[], Any], args: list[str], said: str, code: int
) -> None:
    result = CliRunner().invoke(cli, ["--home", str(tmp_path / "store"), *args], obj=settings())
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in " ".join(result.stderr.split())
