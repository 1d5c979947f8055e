"""Commands that write keys, and the move of an earlier release's journal, killed anywhere."""

from __future__ import annotations

import json
import random
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.errors import JournalError
from memgraph.journal.keys.providers import FileKeys
from memgraph.store.maintenance.keys import export_keys, rotate_key
from memgraph.store.maintenance.migration import migrate
from memgraph.testing import FakeClock
from tests.witness import copied

KILLS, LONG_KILLS = 2, 60
EARLIER = Path(__file__).parents[1] / "fixtures" / "stores" / "0.2.0"
COMMANDS = {"export": ["keys", "export", "out.json"], "import": ["keys", "import", "keys.json"]}
MOVES = ("before COMMIT", "after COMMIT", "before rename", "after rename")


def kill(nursery: Any, folder: Path, place: int, *command: str) -> None:
    child = nursery.start("command", folder, place, int(signal.SIGKILL), *command)
    assert child.wait() == -signal.SIGKILL, child.errors()[-800:]


def passed(nursery: Any, folder: Path, *command: str) -> list[str]:
    """Run a command to its end and return the places that it passed."""
    whole = nursery.start("command", folder, 0, int(signal.SIGKILL), *command)
    assert whole.wait() == 0, whole.errors()
    places: list[str] = json.loads(whole.out.read_text().splitlines()[-1])
    return places


@pytest.mark.parametrize("name", COMMANDS)
def test_one_that_writes_keys_can_be_repeated(
    scene: Any, nursery: Any, name: str, is_long: bool, tmp_path: Path
) -> None:
    config = memgraph.AgentMemoryConfig(home=scene.home, keys_home=scene.keys_home)
    rotate_key(config, clock=FakeClock())
    export_keys(scene.folder / "keys.json", config)
    if name == "import":
        scene.key.unlink()
    places = passed(nursery, scene.copy(tmp_path / "whole").folder, *COMMANDS[name])
    numbers = range(1, len(places) + 1)
    for place in random.Random(name).sample(numbers, min(len(numbers), LONG_KILLS if is_long else KILLS)):
        trial = scene.copy(tmp_path / f"trial{place}")
        kill(nursery, trial.folder, place, *COMMANDS[name])
        path = trial.folder / "out.json" if name == "export" else trial.key
        if path.exists():
            assert len(json.loads(path.read_bytes())["earlier"]) == 1
        for one in (*trial.folder.glob(".out.json*"), *path.parent.glob(f"*{path.name}*")):
            assert stat.S_IMODE(one.stat().st_mode) == 0o600
        if name == "import" or not path.exists():
            passed(nursery, trial.folder, *COMMANDS[name])
        with trial.open() as store:
            assert store.digest() == scene.digest, places[place - 1]
        assert len(FileKeys(trial.keys_home).keys(trial.store_id)) == 2


class TestMove:
    @pytest.fixture
    def earlier(self, tmp_path: Path) -> Path:
        return copied(EARLIER, tmp_path / "earlier")

    @pytest.fixture
    def places(self, tmp_path: Path, nursery: Any) -> list[str]:
        return passed(nursery, copied(EARLIER, tmp_path / "whole"), "migrate", "--dry-run")

    @pytest.mark.parametrize("kind", MOVES)
    def test_it_is_made_once(self, earlier: Path, places: list[str], nursery: Any, rows: Any, kind: str) -> None:
        assert rows["the move of a journal of release 0.1 or 0.2 into the database is killed, anywhere"].note
        data = (earlier / "store" / "journal" / "000000000001.jsonl").read_bytes()
        renamed = places.index("before rename") + 1
        passed_before = {what: number for number, what in enumerate(places[:renamed], 1)}  # the last of each kind
        number = passed_before.get(kind, renamed + 1)
        kill(nursery, earlier, number, "migrate", "--dry-run")
        config = memgraph.AgentMemoryConfig(home=earlier / "store", keys_home=earlier / "keys")
        assert (earlier / "store" / "journal").exists() == (kind != "after rename")
        report = migrate(config, dry_run=True)
        assert report.events == data.count(b"\n")
        assert not (earlier / "store" / "journal").exists()
        assert (earlier / "store" / "journal-0.2" / "000000000001.jsonl").read_bytes() == data

    @pytest.mark.parametrize(
        ("what", "harm"),
        [
            ("the manifest of a journal of release 0.1 or 0.2 is damaged", lambda path: path.write_bytes(b"{}")),
            ("the manifest of a journal of release 0.1 or 0.2 is missing", lambda path: path.unlink()),
        ],
        ids=["damaged", "missing"],
    )
    def test_one_without_its_manifest_is_refused(self, earlier: Path, rows: Any, what: str, harm: Any) -> None:
        assert rows["the manifest of a journal of release 0.1 or 0.2 is damaged"].says
        assert rows["the manifest of a journal of release 0.1 or 0.2 is missing"].says
        harm(earlier / "store" / "journal" / "manifest.json")
        config = memgraph.AgentMemoryConfig(home=earlier / "store", keys_home=earlier / "keys")
        for _ in range(2):
            with pytest.raises(JournalError) as refused:
                memgraph.AgentMemoryStore(config)
            assert rows[what].fits(str(refused.value)), refused.value
