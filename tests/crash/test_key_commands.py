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
from memgraph.journal.key_providers import FileKeys
from memgraph.store.maintenance.keys import export_keys, rotate_key
from memgraph.store.maintenance.migration import migrate
from memgraph.testing import FakeClock
from tests.crash.conftest import Scene
from tests.witness import ANSWERS, copied, opened

KILLS, LONG_KILLS = 2, 60
EARLIER = Path(__file__).parents[1] / "fixtures" / "stores"
COMMANDS = {"export": ["keys", "export", "out.json"], "import": ["keys", "import", "keys.json"]}
DECISIVE = ("before COMMIT", "after COMMIT", "before rename")


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
    for place in some(places, name, is_long=is_long):
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


def some(places: list[str], title: str, *, is_long: bool) -> list[int]:
    """Choose places, numbered from 1, at random, the end of the transaction that moves the events among them."""
    numbers = range(1, len(places) + 1)
    last = [max(number for number in numbers if places[number - 1] == kind) for kind in DECISIVE if kind in places]
    return sorted({*last, *random.Random(title).sample(numbers, min(len(numbers), LONG_KILLS if is_long else KILLS))})


def test_a_move_to_another_place_can_be_repeated(
    scene: Any, nursery: Any, is_long: bool, rows: Any, tmp_path: Path
) -> None:
    assert rows["`memgraph move` is killed, anywhere"].note
    (scene.home / "config.toml").write_text("archive_retention_days = 900\n")
    places = passed(nursery, scene.copy(tmp_path / "whole").folder, "move", "--to", "new")
    for place in some(places, "move", is_long=is_long):
        trial = scene.copy(tmp_path / f"trial{place}")
        new, before = trial.folder / "new", trial.files()
        kill(nursery, trial.folder, place, "move", "--to", "new")
        if not new.exists():
            assert trial.files() == before
            passed(nursery, trial.folder, "move", "--to", "new")
        assert {path.name for path in trial.folder.iterdir()} == {"new", "store", "keys"}, places[place - 1]
        assert (new / "config.toml").read_bytes() == (trial.home / "config.toml").read_bytes()
        (trial.home / "moved.json").unlink(missing_ok=True)
        for home in (trial.home, new):
            with trial.open(home=home) as store:
                assert store.digest() == scene.digest
                assert store.verify(deep=True) == len(scene.lines)


class TestMove:
    """The journal of an earlier release, moved into the database."""

    @pytest.fixture
    def earlier(self, tmp_path: Path) -> Path:
        return copied(EARLIER / "0.2.0", tmp_path / "earlier")

    @pytest.mark.parametrize("name", ["0.1.0", "0.2.0"])
    def test_it_is_made_once(self, nursery: Any, rows: Any, is_long: bool, tmp_path: Path, name: str) -> None:
        assert rows["the move of a journal of release 0.1 or 0.2 into the database is killed, anywhere"].note
        data = (EARLIER / name / "store" / "journal" / "000000000001.jsonl").read_bytes()
        asked = json.loads((EARLIER / name / ANSWERS).read_bytes())["asked"]
        places = passed(nursery, copied(EARLIER / name, tmp_path / "whole"), "migrate")
        digests = set()
        for place in some(places, name, is_long=is_long):
            trial = copied(EARLIER / name, tmp_path / f"trial{place}")
            kill(nursery, trial, place, "migrate")
            digests.add(migrate(memgraph.AgentMemoryConfig(home=trial / "store", keys_home=trial / "keys")).digest)
            assert not (trial / "store" / "journal").exists()
            assert (trial / "store" / "journal-0.2" / "000000000001.jsonl").read_bytes() == data
            assert b"".join(line + b"\n" for line in Scene(trial, "", "").lines).startswith(data), places[place - 1]
            with opened(trial, asked) as memory:
                memory.store.verify(deep=True)
        assert len(digests) == 1

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
