"""Counted rules as memories: made of a history's commits, brought up to date by later ones, ended, and left alone."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from memgraph.extraction.readers import SavedGitLogReader
from memgraph.lifecycle import ingest
from memgraph.lifecycle.counting.kept import count_records
from memgraph.model.results.learning import COUNTING_SOURCE

Store = Any


def read(store: Store, folder: Path, commits: list[list[str]]) -> None:
    """Read a history of commits of these files, one a day."""
    entries = []
    for number, files in enumerate(commits):
        changed = "".join(f"M\t{file}\n" for file in files)
        day = date(2026, 1, 1) + timedelta(days=number)
        head = f"commit {number + 1:040x}\nAuthor: Ann Smith <a@x.example>\nDate:   {day} 12:00:00 +0000\n\n"
        entries.append(f"{head}    Step {number}\n\n{changed}\n")
    log = folder / "shop.log"
    log.write_text("".join(reversed(entries)))
    ingest(store, SavedGitLogReader(log), compress=False)


def kept(store: Store, kind: str = "changes together") -> dict[str, Any]:
    """Return the rules in force of this kind, by the first file that they name."""
    rules = [one for one in store.query_by_type("semantic") if one.source == COUNTING_SOURCE and one.category == kind]
    return {str(one.pattern).split()[2]: one for one in rules}


PAIR = ["cup.py", "test_cup.py"]


@pytest.fixture
def history(store: Store, tmp_path: Path) -> Path:
    read(store, tmp_path, [PAIR] * 6)
    assert count_records(store).created > 0
    return tmp_path


def test_a_rule_is_made_with_its_evidence_and_brought_up_to_date(store: Store, history: Path) -> None:
    made = kept(store)["cup.py"]
    assert (len(made.supporting_memory_ids), made.tags) == (6, ["counted"])
    assert "6 of the last 6 commits" in made.content
    assert not any(count_records(store).model_dump(exclude={"complete"}).values())
    read(store, history, [PAIR] * 12)
    assert count_records(store).updated > 0
    after = kept(store)["cup.py"]
    assert (after.id, len(after.supporting_memory_ids)) == (made.id, 10), "the newest ten"
    assert "10 of the last 10 commits" in after.content
    digest = store.digest()
    store.rebuild()
    assert store.digest() == digest


@pytest.mark.embedded
def test_a_rule_is_nobodys_lesson_and_its_beginning_is_not_told(store: Store, history: Path) -> None:
    rules = [row for row in store.query("generalisations") if row["content"].startswith("Who changes cup.py")]
    assert [(row["first_at"], row["last_at"][:10]) for row in rules] == [(None, "2026-01-06")]
    assert store.query("agents_by_learning") == []


def test_it_ends_when_the_counts_do_not_show_it_and_returns_with_them(store: Store, history: Path) -> None:
    made = kept(store)["cup.py"]
    apart = [PAIR] * 6 + [["cup.py", f"{number}.py"] for number in range(12)]
    read(store, history, apart)
    assert count_records(store).ended > 0
    assert "cup.py" not in kept(store)
    assert "do not show it" in store.get_memory(made.id).invalidation_reason
    read(store, history, apart + [PAIR] * 40)
    count_records(store)
    assert kept(store)["cup.py"].id == made.id


@pytest.mark.parametrize("way", ["suppress", "invalidate", "archive", "delete_memory"])
def test_what_was_put_away_stays_away(store: Store, history: Path, way: str) -> None:
    made = kept(store)["cup.py"]
    getattr(store, way)(made.id)
    read(store, history, [PAIR] * 12)
    count_records(store)
    assert "cup.py" not in kept(store)


@pytest.mark.parametrize("change", [{"content": "Both change."}, {"is_pinned": True}])
def test_what_a_person_worded_or_pinned_stays(store: Store, history: Path, change: dict[str, Any]) -> None:
    made = kept(store)["cup.py"]
    store.update_memory(made.id, **change)
    read(store, history, [PAIR] * 12)
    count_records(store)
    assert kept(store)["cup.py"].content == change.get("content", made.content)
