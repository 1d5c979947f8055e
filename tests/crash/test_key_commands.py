"""Commands that complete a resealing, put a damaged one aside, or write keys, killed anywhere."""

from __future__ import annotations

import json
import random
import shutil
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.errors import JournalError
from memgraph.journal import swap
from memgraph.journal.keys.providers import FileKeys
from memgraph.store.maintenance.keys import export_keys, reseal_store, rotate_key
from memgraph.store.repair import repair_store
from memgraph.testing import FakeClock

KILLS, LONG_KILLS = 1, 60
COMMANDS = {
    "repair": ["repair"],
    "list": ["list"],
    "restore over a damaged plan": ["repair", "--from-backup", "first.tar.gz", "--yes"],
    "keys export": ["keys", "export", "out.json"],
    "keys import": ["keys", "import", "keys.json"],
}


def config_of(scene: Any) -> memgraph.AgentMemoryConfig:
    return memgraph.AgentMemoryConfig(home=scene.home, keys_home=scene.keys_home)


def prepare(scene: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bring a store to where the command begins; return the number of events that it must have afterwards."""
    config = config_of(scene)
    rotate_key(config, clock=FakeClock())
    if name.startswith("keys"):
        export_keys(scene.folder / "keys.json", config)
        if name == "keys import":
            scene.key.unlink()
        return len(scene.lines)
    if name.startswith("restore"):
        with scene.open() as store:
            store.backup(scene.folder / "first.tar.gz")
    events = len(scene.lines) + 1
    with monkeypatch.context() as patched:
        patched.setattr(swap, "complete", lambda *_, **__: None)  # it dies when its plan is final
        reseal_store(config, clock=FakeClock())
    if name.startswith("restore"):
        plan = scene.home / "journal" / "replacement" / "plan.json"
        plan.write_bytes(plan.read_bytes().replace(b'"hmac": "', b'"hmac": "0', 1))
    return events


def check_keys(trial: Any, name: str) -> None:
    """Check that what a command writes is whole or not there, and private."""
    path = trial.folder / "out.json" if name == "keys export" else trial.key
    if path.exists():
        assert len(json.loads(path.read_bytes())["earlier"]) == 1
    for one in (*trial.folder.glob(".out.json*"), *path.parent.glob(f"*{path.name}*")):
        assert stat.S_IMODE(one.stat().st_mode) == 0o600


def test_a_damaged_plan_is_refused_with_its_two_remedies(
    scene: Any, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(scene, "restore over a damaged plan", monkeypatch)
    for use in (scene.open, lambda: repair_store(config_of(scene))):
        with pytest.raises(JournalError) as refused:
            use()
        assert rows["what a resealing has prepared is damaged before it is in place"].fits(str(refused.value))
    (scene.home / "journal" / "replacement").rename(scene.folder / "elsewhere")
    assert repair_store(config_of(scene)).contradicting == ()
    with scene.open() as store:
        assert store.digest() == scene.digest


@pytest.mark.parametrize(
    "name", [name if name == "repair" else pytest.param(name, marks=pytest.mark.long) for name in COMMANDS]
)
def test_one_that_is_killed_can_be_repeated(
    scene: Any, nursery: Any, name: str, is_long: bool, show: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = prepare(scene, name, monkeypatch)
    whole = nursery.start("command", scene.copy(tmp_path / "whole").folder, 0, int(signal.SIGKILL), *COMMANDS[name])
    assert whole.wait() == 0, whole.errors()
    places = json.loads(whole.out.read_text().splitlines()[-1])
    numbers = range(1, len(places) + 1)
    tried = sorted(random.Random(name).sample(numbers, min(len(numbers), LONG_KILLS if is_long else KILLS)))
    for place in tried:
        trial = scene.copy(tmp_path / f"trial{place}")
        child = nursery.start("command", trial.folder, place, int(signal.SIGKILL), *COMMANDS[name])
        assert child.wait() == -signal.SIGKILL, f"{places[place - 1]}: {child.errors()[-800:]}"
        if name.startswith("keys"):
            check_keys(trial, name)
        if name != "list" and not (name == "keys export" and (trial.folder / "out.json").exists()):
            again = nursery.start("command", trial.folder, 0, int(signal.SIGKILL), *COMMANDS[name])
            assert again.wait() == 0, f"{places[place - 1]}: {again.errors()[-800:]}"
        with trial.open() as store:
            assert store.digest() == scene.digest, places[place - 1]
            assert store.verify() >= events
        assert not (trial.home / "journal" / "replacement").exists()
        if name.startswith("keys"):
            assert len(FileKeys(trial.keys_home).keys(trial.store_id)) == 2
        shutil.rmtree(trial.folder)
    show(f"SIGKILL during `{name}`", ("places", "tried"), [(len(places), len(tried))])
