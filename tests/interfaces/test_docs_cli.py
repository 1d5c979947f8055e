"""`memgraph docs`: the topics, one page, and what is no topic."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from memgraph.interfaces.cli.group import cli
from tests.documents import DOCS

TOPICS = sorted(page.stem for page in DOCS.glob("*.md"))
Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    return lambda *args: CliRunner().invoke(cli, ["docs", *args], prog_name="memgraph")


def test_without_a_topic_all_are_listed_with_what_they_cover(run: Run) -> None:
    lines = run().stdout.splitlines()
    listed = dict(line.split(maxsplit=1) for line in lines[: lines.index("")])
    assert sorted(listed) == TOPICS
    assert listed["settings"] == "Every setting, its environment variable, its default and its meaning."
    documents = json.loads(run("--json").stdout)
    assert [one["topic"] for one in documents] == TOPICS
    assert {one["topic"]: one["summary"] for one in documents} == listed


@pytest.mark.parametrize("topic", TOPICS)
def test_a_page_is_printed_without_notes_to_tools(run: Run, topic: str) -> None:
    shown = run(topic).stdout
    source = (DOCS / f"{topic}.md").read_text("utf-8")
    assert "<!--" not in shown
    assert shown.splitlines() == [line for line in source.splitlines() if not line.startswith("<!--")]
    document = json.loads(run(topic, "--json").stdout)
    assert document["text"].rstrip("\n") == shown.rstrip("\n")
    assert source.startswith(f"# {document['title']}\n\n{document['summary']}\n")


@pytest.mark.parametrize("name", ["Settings", "settings.md"])
def test_a_topic_is_known_by_its_file_too(run: Run, name: str) -> None:
    assert run(name).stdout == run("settings").stdout


@pytest.mark.parametrize("name", ["nonsense", "../errors", ""])
def test_what_is_no_topic_is_refused_with_the_topics(run: Run, name: str) -> None:
    for more in ([], ["--json"]):
        result = run(name, *more)
        assert result.exit_code == 2
        assert (json.loads(result.stdout)["error"]["exit_code"] == 2) if more else (result.stdout == "")
        assert all(topic in result.stderr for topic in TOPICS)


@pytest.mark.parametrize(("command", "topic"), [("purge", "privacy"), ("backup", "operations"), ("keys", "operations")])
def test_a_command_that_is_no_topic_leads_to_the_page_about_it(run: Run, command: str, topic: str) -> None:
    result = run(command)
    assert (result.exit_code, f"`memgraph docs {topic}`" in result.stderr) == (2, True), result.stderr
