"""Rotation and resealing: killed anywhere, flipped anywhere, and under load."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.errors import JournalError, KeyMissingError
from memgraph.journal.envelope import Chain, parsed, unseal
from memgraph.journal.key_providers import FileKeys
from memgraph.store.maintenance.keys import list_keys, reseal_store, rotate_key
from memgraph.testing import FakeClock

PLACES = {
    "rotate": {"before replace": False, "before COMMIT": False, "after COMMIT": True, "before pwrite": True},
    "reseal": {"before COMMIT": False, "after COMMIT": True, "before pwrite": True},
}
"""Where they are killed, and whether they are done at the next opening."""
LATER_DAYS = 60


def config_of(scene: Any) -> memgraph.AgentMemoryConfig:
    return memgraph.AgentMemoryConfig(home=scene.home, keys_home=scene.keys_home)


def verified_by_their_ids(scene: Any) -> Counter[str]:
    """Verify every line with exactly the key that its id names, without the journal's own code for that; count by id."""
    keys = {key.key_id: key for key in FileKeys(scene.keys_home).keys(scene.store_id)}
    chain, counts = Chain(scene.store_id), Counter[str]()
    for data in scene.lines:
        key_id = json.loads(data)["head"]["key_id"]
        _, chain = unseal(parsed(data), chain, keys[key_id])
        counts[key_id] += 1
    return counts


@pytest.mark.parametrize(("what", "kind"), [(what, kind) for what, kinds in PLACES.items() for kind in kinds])
def test_killed_at_chosen_places(what: str, kind: str, scene: Any, nursery: Any, rows: Any, tmp_path: Path) -> None:
    config, clock = config_of(scene), FakeClock()
    if what == "reseal":
        rotate_key(config, clock=clock)
        rotate_key(config, clock=clock)
        clock.advance(days=LATER_DAYS)
    before = len(scene.lines)
    (places,) = nursery.run("rekey", scene.copy(tmp_path / "whole").folder, what)
    last = len(places) - places[::-1].index(kind)  # the first record is of who has the lock
    child = nursery.start("rekey", scene.folder, what, last, int(signal.SIGKILL))
    assert child.wait() == -signal.SIGKILL, child.errors()[-800:]
    assert _check(scene, what, before, clock) == PLACES[what][kind]
    killed = rows["a rotation is killed, anywhere" if what == "rotate" else "a resealing is killed, anywhere"]
    if killed.says:
        assert any(killed.fits(message) for message in scene.heard) == (kind == "before COMMIT")


def test_what_a_missing_and_an_expired_key_say(scene: Any, rows: Any) -> None:
    config = config_of(scene)
    rotate_key(config, clock=FakeClock())
    clock = FakeClock()
    clock.advance(days=LATER_DAYS)
    with pytest.raises(KeyMissingError) as refused:
        scene.open(clock=clock)
    assert rows["a rotated key has expired, and events still need it"].fits(str(refused.value))
    stored = json.loads(scene.key.read_text())
    scene.key.write_text(json.dumps({**stored, "earlier": []}))
    with pytest.raises(KeyMissingError) as refused:
        scene.open()
    assert rows["a key that verifies earlier events is missing"].fits(str(refused.value))


def _check(trial: Any, what: str, before: int, clock: FakeClock) -> bool:
    """Check that the killed act was done or not, that the store is whole, and that the act can be repeated; return whether it was done."""
    config = config_of(trial)
    now = FakeClock()
    with trial.open(clock=now) as store:  # at a time when every key may verify
        assert store.digest() == trial.digest
        events = store.verify()
    is_done = events == before + 1
    assert is_done or events == before
    assert sum(verified_by_their_ids(trial).values()) == events
    if what == "reseal":
        assert (len(verified_by_their_ids(trial)) == 1) == is_done
        if not is_done:
            with pytest.raises(KeyMissingError, match="may no longer verify"):
                trial.open(clock=clock)
            reseal_store(config, clock=clock)
        with trial.open(clock=clock) as store:
            assert store.digest() == trial.digest
            assert store.verify() == before + 1
    else:
        rotate_key(config, clock=now)
        keys = FileKeys(trial.keys_home).keys(trial.store_id)
        assert len(keys) == (3 if is_done else 2), "a key that was stored before the kill is used by the next rotation"
        with trial.open(clock=now) as store:
            store.insert_memory({"type": "episodic", "content": "life goes on"})
            assert store.verify() > events
    assert list_keys(config, clock=now).problems == ()
    return is_done


def test_rotation_under_load(scene: Any, nursery: Any, is_long: bool, show: Any) -> None:
    """Three processes write while the key is rotated three times."""
    writers, each, rotations = 3, 200 if is_long else 12, 3
    children = [nursery.start("writer", scene.folder, f"w{number}", each) for number in range(writers)]
    (scene.folder / "go").touch()
    for child in children:
        child.hears("open")
    config = memgraph.AgentMemoryConfig(home=scene.home, keys_home=scene.keys_home, lock_timeout_s=120.0)
    total = writers * each
    for turn in range(rotations):
        until = time.monotonic() + 120
        while sum(len(child.said()) - 1 for child in children) < total * (turn + 1) // (rotations + 1):
            assert time.monotonic() < until
            time.sleep(0.01)
        rotate_key(config, clock=FakeClock())
    with scene.open(
        lock_timeout_s=120.0
    ) as store:  # on a busy machine the writers may be done before the last rotation
        store.insert_memory({"type": "episodic", "content": "after the last rotation"})
    codes = [child.wait(600) for child in children]
    assert codes == [0] * writers, [child.errors()[-800:] for child in children]
    acknowledged = {word for child in children for word in child.said() if word != "open"}
    counts = verified_by_their_ids(scene)
    show("Rotation under load", ("key", "events"), counts.most_common())
    events = [json.loads(line) for line in scene.lines]
    assert sum(event["head"]["type"] == "key.rotated" for event in events) == rotations
    assert len(counts) == rotations + 1
    assert len(acknowledged) == total
    added = Counter(event["payload"]["memory"]["id"] for event in events if event["head"]["type"] == "memory.added")
    assert acknowledged <= added.keys()
    assert set(added.values()) == {1}
    with scene.open(lock_timeout_s=60.0) as store:
        assert store.verify() == len(events)
        assert acknowledged <= {memory.id for memory in store.every_memory()}


@pytest.mark.parametrize("name", ["key", "head"])
def test_flipped_bits_after_a_rotation(scene: Any, name: str, is_long: bool) -> None:
    """Each is refused, or leads to the same store."""
    rotate_key(config_of(scene), clock=FakeClock())
    with scene.open() as store:
        store.insert_memory({"type": "episodic", "content": "after the rotation"})
        digest, events = store.digest(), store.verify()
    path = getattr(scene, name)
    data = path.read_bytes()
    refused = 0
    for at in range(0, len(data), max(1, len(data) // (400 if is_long else 12))):
        flipped = bytearray(data)
        flipped[at] ^= 1 << at % 7
        path.write_bytes(flipped)
        try:
            with scene.open() as store:
                assert store.digest() == digest
                assert store.verify() == events
        except JournalError:
            refused += 1
        finally:
            path.write_bytes(data)
    assert refused
