"""Stores that earlier releases have made: opened with the present code they hold, and answer, the same."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import memgraph
from memgraph.extraction.rules.extractor import RuleExtractor
from memgraph.model.events.payload import sparse
from memgraph.model.events.registry import UPCASTERS
from memgraph.model.memory import ATTEMPT_FIELDS, AgentMemory
from tests.fixtures.stores import make
from tests.witness import ANSWERS, answers, copied, differences, opened

STORES = Path(__file__).parent / "fixtures" / "stores"
RELEASES = sorted(path.name for path in STORES.iterdir() if (path / ANSWERS).exists())
_SHOWN = 30


def test_every_release_has_a_store() -> None:
    changelog = Path(memgraph.__file__).parent / "docs" / "changelog.md"
    dated = re.findall(r"^## \[(\d[\d.]*)\] - \d{4}", changelog.read_text(), re.MULTILINE)
    assert dated
    assert set(dated) <= set(RELEASES)


@pytest.mark.parametrize("release", RELEASES)
def test_a_store_of_an_earlier_release_answers_as_it_did(release: str, tmp_path: Path) -> None:
    folder = copied(STORES / release, tmp_path / "copy")
    kept = json.loads((folder / ANSWERS).read_text("utf-8"))
    with opened(folder, kept["asked"]) as memory:
        found = list(differences(kept["answers"], answers(memory, kept["asked"])))
    more = [f"… and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    assert not found, "\n".join([f"the store of {release} answers otherwise:", *found[:_SHOWN], *more])


@pytest.mark.parametrize(
    ("kept", "found", "told"),
    [
        ({"a": [1, {"b": "x"}]}, {"a": [1, {"b": "y"}]}, ['a[1].b: kept "x", found "y"']),
        ({"a": 1}, {"b": 2}, ["a: missing now: 1", "b: new: 2"]),
        ([1, 2], [1], [": 2 entries were kept, 1 are found"]),
        ({"a": 1.5, "b": None}, {"a": 1.5, "b": None}, []),
    ],
)
def test_each_difference_is_reported_with_its_path(kept: object, found: object, told: list[str]) -> None:
    assert list(differences(kept, found)) == told


def test_the_upcaster_fills_what_the_rules_write_today() -> None:
    """Of the sources that the first release had read: equal fields where the rules still write that text, but for what no text ever told."""
    found: dict[tuple[str, str], AgentMemory] = {}
    for reader in make.readers(make.INPUTS):
        for log in (record.build for record in reader.records(None) if record.build is not None):
            for candidate in RuleExtractor().extract(log).candidates:
                found[candidate.memory.source_event_ids[0], candidate.memory.content] = candidate.memory
    told = 0
    for event in make.events(STORES / "0.1.0" / "store"):
        memory = event["payload"].get("memory", {})
        if event["head"]["type"] != "memory.added" or memory["type"] != "episodic" or not memory.get("build_id"):
            continue
        upcast = UPCASTERS["memory.added", 1](event["payload"])["memory"]
        if not any(name in ATTEMPT_FIELDS for name in upcast):
            continue
        today = found.get((memory["source_event_ids"][0], memory["content"]))
        if today is None:
            continue  # the rules have since been made to say less, or more
        written = sparse(today.model_dump(include=ATTEMPT_FIELDS))
        if "asked" in written:
            written.pop("attempts", None)  # how many there were, no trial's text told
        assert {name: value for name, value in upcast.items() if name in ATTEMPT_FIELDS} == written
        told += 1
    assert told >= 10
