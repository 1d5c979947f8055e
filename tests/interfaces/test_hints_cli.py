"""What commands say besides their results: what was meant, what is left out, what was carried out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

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
    assert refused.count("Field required") == 4
    assert "more error" not in refused
    assert "memgraph distil show --json" in refused
    done = run(cli, [*home, "distil", "answer", order["id"], "-"], input='{"statements": [], "verdict": "newer holds"}')
    older, newer = order["subject_ids"]
    assert f"the newer statement replaces the older; undo: memgraph unsupersede {older} --by {newer}" in done.output
