"""A purge is killed: it is as if it had not begun, or the next opening completes it."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memgraph
from memgraph.errors import JournalError
from memgraph.testing import FakeClock, FakeEmbedder
from tests.crash.conftest import Scene

DIMENSION = 16
SECRET = "Margaret moved to the house behind the old lighthouse in Warnemünde last spring"
OTHER = "The nightly backup of the billing database needs about forty minutes on Sundays"
PLACES = {
    "before its transaction ends": ("before COMMIT", 0, False),
    "after its transaction has ended": ("after COMMIT", 0, True),
    "before what was made of it is removed": ("before unlink", 0, True),
    "before the file is overwritten": ("before PRAGMA wal_checkpoint(TRUNCATE)", -1, True),
    "after the file was overwritten": ("after PRAGMA wal_checkpoint(TRUNCATE)", -1, True),
    "before the receipt is there": ("before replace", -1, True),
    "when all is done": ("before it is acknowledged", 0, True),
}
"""Where it is killed: which of the calls of a kind, and whether the purge is done at the next opening."""


def opened(folder: Path) -> Any:
    config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    return memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(DIMENSION), clock=FakeClock())


def traces(home: Path) -> list[str]:
    words = SECRET.split()
    runs = [" ".join(words[start : start + 8]).encode() for start in range(len(words) - 7)]
    found = [path for path in sorted(home.rglob("*")) if path.is_file()]
    return [path.name for path in found if any(run in path.read_bytes() for run in runs)]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A store with a secret: its id is the one of the memory to purge."""
    folder = tmp_path_factory.mktemp("purge") / "template"
    folder.mkdir()
    with opened(folder) as store:
        secret = store.insert_memory({"type": "episodic", "content": SECRET, "project_id": "P"}).id
        for number in range(4):
            text = f"{OTHER}, number {number}"
            store.insert_memory({"type": "episodic", "content": text, "project_id": "P", "tags": [f"t{number}"]})
        general = {"type": "semantic", "content": "Somebody lives at the coast", "supporting_memory_ids": [secret]}
        store.insert_memory(general)
        told = store.insert_memory({"type": "episodic", "content": f"She said: {SECRET}"}).id
        store.update_memory(told, content="She said something")
        store.at("2099-01-01").close()
    yield folder, secret
    shutil.rmtree(folder.parent)


@pytest.fixture(scope="module")
def whole(
    template: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory, nursery: Any
) -> tuple[list[str], str, str]:
    """The places that a purge passes, and the digests before and after it."""
    folder, secret = template
    here = tmp_path_factory.mktemp("whole")
    (places,) = nursery.run("purger", shutil.copytree(folder, here / "after"), secret)
    digests = []
    for place in (Path(shutil.copytree(folder, here / "before")), here / "after"):
        with opened(place) as store:
            digests.append(store.digest())
    return places, digests[0], digests[1]


@pytest.mark.parametrize("where", PLACES)
def test_a_killed_purge_is_completed_at_the_next_opening(
    template: tuple[Path, str],
    whole: tuple[list[str], str, str],
    tmp_path: Path,
    nursery: Any,
    rows: Any,
    where: str,
    caplog: Any,
) -> None:
    folder, secret = template
    places, before, after = whole
    kind, which, is_done = PLACES[where]
    begin = places.index("before COMMIT") if is_done else 0
    place = [number for number, what in enumerate(places, 1) if what == kind and number > begin][which]
    here = Path(shutil.copytree(folder, tmp_path / "here"))
    child = nursery.start("purger", here, secret, place, int(signal.SIGKILL))
    assert child.wait() == -signal.SIGKILL, child.errors()[-1_500:]
    with caplog.at_level("WARNING"), opened(here) as store:
        assert store.digest() == (after if is_done else before)
        store.verify(deep=True)
        if not is_done:
            assert store.get_memory(secret).content == SECRET
            return
        assert traces(here / "store") == []
        (receipt,) = (here / "store" / "receipts").glob("*.json")
        assert store.check_receipt(receipt.read_bytes()).events > 2
        assert store.get_memory(secret) is None
    row = rows["a purge is killed, anywhere"]
    said = [record for record in caplog.records if row.fits(record.getMessage())]
    assert len(said) == (where != "when all is done")
    assert traces(here / "store") == []


def test_a_payload_that_comes_back_is_not_shown(template: tuple[Path, str], tmp_path: Path, rows: Any) -> None:
    folder, secret = template
    here = Path(shutil.copytree(folder, tmp_path / "here"))
    scene = Scene(here, "", "")
    payloads = scene.sql("SELECT payload, salt, seq FROM event")
    with opened(here) as store:
        store.purge([secret])
    for one in payloads:
        scene.sql("UPDATE event SET payload = ?, salt = ? WHERE seq = ? AND payload IS NULL", *one)
    assert traces(here / "store") != []
    row = rows["a payload that a purge removed comes back"]
    with opened(here) as store:
        assert store.get_memory(secret) is None
        with pytest.raises(JournalError) as refused:
            store.verify()
        assert row.fits(str(refused.value))
        store.complete_purges()
        store.verify(deep=True)
        assert store.get_memory(secret) is None
    assert traces(here / "store") == []
