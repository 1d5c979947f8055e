"""``edit``, ``pin``, ``tag``, ``merge``, ``split``, ``history``, ``why``, ``undo``, and the forms of commands for many memories."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memgraph.interfaces.cli.group import cli

Run = Callable[..., Any]
TEXT, OTHER = "Deploy on Tuesdays only", "The staging server is called heron"


@pytest.fixture
def run(tmp_path: Path, settings: Callable[[], Any]) -> Run:
    def call(*args: object) -> Any:
        line = ["--home", str(tmp_path / "store"), *map(str, args)]
        return CliRunner().invoke(cli, line, prog_name="memgraph", obj=settings())

    return call


@pytest.fixture
def done(run: Run) -> Run:
    def call(*args: object) -> str:
        result = run(*args)
        assert result.exit_code == 0, result.output
        return str(result.stdout)

    return call


@pytest.fixture
def asked(done: Run) -> Run:
    return lambda *args: json.loads(done(*args, "--json"))


@pytest.fixture
def refused(run: Run) -> Run:
    def call(*args: object, code: int = 1) -> str:
        result = run(*args)
        assert (result.exit_code, result.stdout) == (code, ""), result.output
        return str(result.stderr)

    return call


@pytest.fixture
def ids(asked: Run) -> list[str]:
    return [asked("remember", text)["data"]["ids"][0] for text in (TEXT, OTHER)]


@pytest.fixture
def editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Set an editor that applies a Python expression to the text of the file."""

    def set_(expression: str, exit_code: int = 0) -> None:
        program = "import sys, pathlib\npath = pathlib.Path(sys.argv[1])\ntext = path.read_text()\n"
        script = tmp_path / "my editor.py"
        script.write_text(f"{program}path.write_text({expression})\nsys.exit({exit_code})\n")
        monkeypatch.setenv("EDITOR", shlex.join([sys.executable, str(script)]))
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    return set_


def kept_file(message: str) -> Path:
    """Return the file that a message names as the edited text."""
    assert "the edited text is in " in message
    return Path(message.rpartition(" in ")[2].strip())


def test_edit_prints_the_difference_and_what_undoes_it(done: Run, asked: Run, ids: list[str]) -> None:
    said = done(
        "edit", ids[0][:8], "--content", "Deploy on Mondays only", "--tag", "+ops", "--tag", "x", "--title", "Day"
    )
    assert "  content: Deploy on Tuesdays only → Deploy on Mondays only\n" in said
    assert "  tags: (not set) → ops, x\n" in said
    assert "  title: (not set) → Day\n" in said
    event = asked("history", ids[0])[-1]["event"]
    assert said.endswith(f"Changed: 'Deploy on Mondays only'; undo: memgraph undo {event}\n")
    assert "  tags: ops, x → ops\n" in done("edit", ids[0], "--tag", "-x", "--title", "")
    again = asked("edit", ids[0], "--tag", "ops")
    assert (again["data"]["event"], again["data"]["unchanged"]) == (None, [ids[0]])


def test_long_texts_are_shown_as_a_unified_difference(done: Run, ids: list[str]) -> None:
    first = "The window opens at nine and it closes at noon, every working day. "
    done("edit", ids[0], "--content", first + "Nobody is on call on Fridays.")
    said = done("edit", ids[0], "--content", first + "Ann is on call on Fridays.")
    assert f"     {first.strip()}\n    -Nobody is on call on Fridays.\n    +Ann is on call on Fridays.\n" in said


def test_a_new_version_supersedes(done: Run, asked: Run, ids: list[str]) -> None:
    said = asked("edit", ids[0], "--content", "Deploy on Mondays only", "--as-new")
    new, old = said["data"]["memories"]
    assert (new["change"], old["change"], old["id"]) == ("added", "superseded", ids[0])
    assert [one["id"] for one in asked("list", "--state", "superseded")] == [ids[0]]


def test_edit_opens_the_editor_on_the_fields_and_the_text(done: Run, asked: Run, ids: list[str], editor: Any) -> None:
    editor("text.replace('Tuesdays', 'Mondays').replace('title:', 'title: Day\\ntag: ops, late', 1)")
    done("edit", ids[0])
    found = asked("show", ids[0])["memory"]
    assert (found["content"], found["title"], found["tags"]) == ("Deploy on Mondays only", "Day", ["ops, late"])


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("text.replace('title:', 'titel:')", "line 4 is not one of title"),
        ("text.replace('domain:\\n', '').replace('domain: \\n', '')", "`domain:` is missing"),
        ("text.replace('---\\n', '')", "which separates the fields from the text"),
        ("text.replace('title:', 'title:\\ntitle:')", "line 5 states title a second time"),
        ("text.replace('privacy: public', 'privacy: secret')", "privacy_tier"),
        ("text + 'x' * 800", "at most 800"),
    ],
)
def test_a_text_that_is_refused_is_kept(
    refused: Run, asked: Run, ids: list[str], editor: Any, expression: str, why: str
) -> None:
    editor(expression)
    message = refused("edit", ids[0])
    assert why in message
    assert TEXT in kept_file(message).read_text()
    assert asked("show", ids[0])["memory"]["content"] == TEXT


def test_an_unchanged_text_a_failing_editor_and_none_change_nothing(
    refused: Run, ids: list[str], editor: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    editor("text")
    assert "was not changed in the editor" in refused("edit", ids[0])
    assert not list(tmp_path.glob("memgraph-*.txt"))
    editor("text + 'more'", 3)
    message = refused("edit", ids[0])
    assert "ended with exit code 3" in message
    assert kept_file(message).exists()
    monkeypatch.setenv("VISUAL", "'")
    assert "VISUAL is not a command" in refused("edit", ids[0])
    monkeypatch.setenv("VISUAL", str(tmp_path / "absent"))
    assert "cannot be started" in refused("edit", ids[0])
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name)
    assert "set VISUAL or EDITOR" in refused("edit", ids[0])


def test_a_memory_that_changes_while_it_is_edited_is_not_overwritten(
    refused: Run, asked: Run, ids: list[str], editor: Any, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    editor("text.replace('Tuesdays', 'Mondays')")
    import subprocess

    real = subprocess.run

    def meanwhile(*args: Any, **options: Any) -> Any:
        assert run("tag", ids[0], "busy").exit_code == 0
        return real(*args, **options)

    monkeypatch.setattr(subprocess, "run", meanwhile)
    assert "changed while it was in the editor" in refused("edit", ids[0])
    assert asked("show", ids[0])["memory"]["content"] == TEXT


def test_pin_tag_merge_and_split_and_their_undoing(done: Run, asked: Run, ids: list[str]) -> None:
    assert "is_pinned: true → false" in done("unpin", ids[0])
    assert "Pinned: 'Deploy on Tuesdays only' (1 memory unchanged); undo: memgraph undo " in done("pin", *ids)
    done("tag", ids[0], ids[1][:8], "night", "shift")
    assert asked("show", ids[1])["memory"]["tags"] == ["night", "shift"]
    done("untag", *ids, "shift")
    merged = asked("merge", *ids, "--keep", ids[1])
    assert [one["id"] for one in merged["data"]["memories"]] == [ids[1], ids[0]]
    assert f"event {merged['data']['event']}" in done("undo")
    split = done("split", ids[0], "--part", "Deploy on Tuesdays", "--part", "Never on Fridays")
    assert "Split into 2 memories: 'Deploy on Tuesdays only'; undo: memgraph undo " in split
    undone = asked("undo")
    removed = [(one["content"], one["change"]) for one in undone["data"]["memories"]]
    assert removed == [("Deploy on Tuesdays", "removed"), ("Never on Fridays", "removed")]
    redone = done("undo", undone["data"]["event"])
    assert f"{undone['data']['memories'][0]['id']}  restored: Deploy on Tuesdays\n" in redone
    assert "Redid what was undone by event" in redone


def test_many_memories_are_searched_for_listed_and_changed_at_once(
    done: Run, asked: Run, refused: Run, ids: list[str]
) -> None:
    said = refused("pin", "--match", "staging server")
    assert ids[1] in said
    assert "found 1 memory; add --yes to pin it" in said
    assert [one["id"] for one in asked("tag", "--match", "staging server", "--yes", "infra")["data"]["memories"]] == [
        ids[1]
    ]
    assert "no memory matches" in refused("tag", "--match", "zebra crossing", "--yes", "x")
    archived = asked("archive", *ids, "--reason", "old")
    assert len(archived["data"]["memories"]) == 2
    assert asked("list") == []
    done("undo")
    assert len(asked("list")) == 2


def test_a_search_that_finds_more_than_its_limit_changes_nothing(done: Run, refused: Run, asked: Run) -> None:
    for number in range(4):
        done("remember", f"Note {number} about the staging server", "--tag", f"n{number}")
    found = ("--match", "staging server", "--limit", "3")
    said = refused("forget", *found)
    assert len(said.splitlines()) == 4
    assert "these are 3 of 4 matches; --limit 4 takes all of them" in said
    assert "4 match, more than --limit 3, so nothing was changed" in refused("forget", *found, "--yes")
    assert len(asked("list")) == 4
    assert "Would forget 3 memories" in done("forget", *found, "--dry-run")
    done("forget", "--match", "staging server", "--limit", "4", "--yes")
    assert asked("list") == []


def test_forget_shows_what_it_would_do(asked: Run, done: Run, refused: Run, ids: list[str]) -> None:
    assert asked("forget", TEXT, "--dry-run")["data"] == {"id": ids[0], "dry_run": True}
    assert asked("forget", *ids, "--dry-run")["data"] == {"ids": ids, "dry_run": True}
    assert "Would forget 1 memory" in done("forget", "--match", "staging server", "--dry-run")
    assert len(asked("list")) == 2
    assert "put a text of several words in quotes" in refused("forget", "Deploy", "on", "Tuesdays")
    assert len(asked("forget", *ids)["data"]["memories"]) == 2
    assert asked("list") == []
    done("undo")
    assert len(asked("list")) == 2


def test_a_list_marks_what_is_not_in_force(done: Run, asked: Run, ids: list[str]) -> None:
    done("supersede", ids[0], "--by", ids[1])
    assert {entry["id"]: entry["states"] for entry in asked("list")} == {ids[0]: ["superseded"], ids[1]: []}
    assert [line.split("\t")[-2] for line in done("list").splitlines() if ids[0] in line] == ["superseded"]
    done("forget", ids[1])
    (shown,) = (one for one in asked("list", "--include-suppressed") if one["id"] == ids[1])
    assert shown["states"] == ["suppressed"]
    assert [one["states"] for one in asked("list")] == [[]]  # what replaced it is forgotten: it is in force again


@pytest.mark.embedded
def test_a_query_selects_memories_by_its_id_column(asked: Run, refused: Run, ids: list[str]) -> None:
    cypher = "MATCH (m:Memory) RETURN m.id AS id ORDER BY id"
    changed = asked("unpin", "--query", cypher, "--yes")["data"]["memories"]
    assert [one["id"] for one in changed] == sorted(ids)
    many = "UNWIND range(1, 1001) AS n RETURN CAST(n AS STRING) AS id"
    said = refused("pin", "--query", f"{many}", "--limit", "1000", "--yes")
    assert "more than 1,000 match" in said
    assert "one command changes at most 1,000: search for less" in said
    assert "in a column `id`; it returns n" in refused("pin", "--query", "MATCH (m:Memory) RETURN count(m) AS n")
    assert "read-only" in refused("pin", "--query", "MATCH (m:Memory) SET m.title = 'x' RETURN m.id AS id", "--yes")


def test_history_and_why_are_read_by_people_and_programs(done: Run, asked: Run, ids: list[str]) -> None:
    done("edit", ids[0], "--content", "Deploy on Mondays only")
    done("undo")
    lines = done("history", ids[0]).splitlines()
    assert "user    added: “Deploy on Tuesdays only”" in lines[0]
    assert lines[1].strip() == "why: the user asked to remember it"
    assert "user    changed content  (undone by event " in lines[2]
    assert "(undoes event " in lines[-2]
    assert [entry["what"] for entry in asked("history", ids[0])][1] == "changed content"
    done("merge", *ids)
    tree = done("why", ids[0])
    assert tree.startswith(f"{ids[0][:8]}  semantic  “{TEXT}”\n├─ added by user, event ")
    assert f"└─ supersedes (merged by the user):  {ids[1][:8]}" in tree
    found = asked("why", ids[0])
    assert (found["id"], found["relations"][0]["memory"]["id"]) == (ids[0], ids[1])
    done("delete", ids[1])
    assert asked("history", ids[1][:8])[-1]["what"] == "deleted"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["pin"], "give ID, --match TEXT or --query NAME"),
        (["pin", "12345678", "--match", "x"], "give either ID, --match or --query"),
        (["tag", "12345678"], "give at least one TAG"),
        (["edit", "12345678", "--as-new", "--match", "x"], "give either ID"),
        (["edit", "--match", "x", "--as-new"], "the editor takes one memory at a time"),
        (["edit", "--match", "x", "--query", "y", "--title", "z"], "cannot be combined"),
        (["split", "12345678", "--part", "x"], "at least two parts"),
        (["merge", "12345678"], "at least two"),
        (["undo", "0"], "0 is not in the range"),
    ],
)
def test_wrong_usage_is_said(refused: Run, args: list[str], said: str) -> None:
    assert said in refused(*args, code=2)


def test_what_is_forgotten_already_or_named_twice_is_said_so(done: Run, asked: Run, ids: list[str]) -> None:
    assert asked("forget", ids[0], ids[0], "--dry-run")["data"]["ids"] == [ids[0]]
    done("forget", ids[0])
    assert done("forget", ids[0]) == f"'{TEXT}' is forgotten already.\n"


@pytest.mark.parametrize(("tier", "domain"), [("--tier", "--domain"), ("--privacy", "--context")])
def test_the_options_for_tier_and_domain_have_both_names_everywhere(
    asked: Run, ids: list[str], tier: str, domain: str
) -> None:
    options = (tier, "sensitive", domain, "travel")
    asked("edit", ids[0], *options)
    made = asked("observe", "The window seat is best", *options)["memory_id"]
    assert {entry["id"] for entry in asked("list", tier, "sensitive")} == {ids[0], made}
    assert ids[1] in {one["memory"]["id"] for one in asked("search", "staging", domain, "testing")}
    assert asked("show", made)["memory"]["domain"] == "travel"


def test_equal_parts_are_refused(refused: Run, ids: list[str]) -> None:
    assert "must be different texts" in refused("split", ids[0], "--part", "one", "--part", " One")


def test_show_keeps_lines(done: Run, asked: Run) -> None:
    text = "Steps:\n- stop\n\tmake -j\n- start \x1b[31m"
    shown = done("show", asked("remember", text)["data"]["ids"][0])
    assert "  Steps:\n  - stop\n      make -j\n  - start" in shown
    assert "\x1b" not in shown


def test_what_cannot_be_undone_is_refused_in_a_sentence(refused: Run, done: Run, ids: list[str]) -> None:
    assert "event 1 cannot be undone: store.created is not reversible" in refused("undo", 1)
    assert "no event with id '99'" in refused("undo", 99)
    done("undo")
    done("undo")
    assert "no change by a user is left to undo" in refused("undo")
