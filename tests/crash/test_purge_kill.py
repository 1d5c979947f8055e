"""A purge is killed: it is as if it had not begun, or the next opening completes it."""

from __future__ import annotations

import random
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from memgraph.journal.closed.files import files_in

import memgraph
from memgraph.errors import InvalidInputError, JournalError
from memgraph.testing import FakeClock, FakeEmbedder

DIMENSION = 16
KILLS, LONG_KILLS = 5, 50
SECRET = "Margaret moved to the house behind the old lighthouse in Warnemünde last spring"
OTHER = "The nightly backup of the billing database needs about forty minutes on Sundays"


def opened(folder: Path) -> Any:
    config = memgraph.AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    return memgraph.AgentMemoryStore(config, embedder=FakeEmbedder(DIMENSION), clock=FakeClock())


def traces(home: Path) -> list[str]:
    words = SECRET.split()
    runs = [" ".join(words[start : start + 8]).encode() for start in range(len(words) - 7)]
    found = [path for path in sorted(home.rglob("*")) if path.is_file()]
    return [path.name for path in found if any(run in content_of(path) for run in runs)]


def content_of(path: Path) -> bytes:
    """Return the bytes of a file, those of a compressed segment unpacked."""
    data = path.read_bytes()
    return zstandard.ZstdDecompressor().decompress(data) if path.suffix == ".zst" else data


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A store with a secret: its id is the one of the memory to purge. It has several segments, and those before the last are compressed."""
    folder = tmp_path_factory.mktemp("purge") / "template"
    folder.mkdir()
    with opened(folder) as store:
        store._journal.segments._segment_bytes = 3_000
        secret = store.insert_memory({"type": "episodic", "content": SECRET, "project_id": "P"}).id
        for number in range(6):
            text = f"{OTHER}, number {number}"
            store.insert_memory({"type": "episodic", "content": text, "project_id": "P", "tags": [f"t{number}"]})
        general = {"type": "semantic", "content": "Somebody lives at the coast", "supporting_memory_ids": [secret]}
        store.insert_memory(general)
        told = store.insert_memory({"type": "episodic", "content": f"She said: {SECRET}"}).id
        store.update_memory(told, content="She said something")
        store.compact()
        store.at("2099-01-01").close()
    assert len(list((folder / "store" / "journal").glob("*.jsonl.zst"))) > 2
    yield folder, secret
    shutil.rmtree(folder.parent)


def test_a_killed_purge_is_completed_at_the_next_opening(
    template: tuple[Path, str], tmp_path: Path, nursery: Any, show: Any, is_long: bool
) -> None:
    folder, secret = template
    (places,) = nursery.run("purger", shutil.copytree(folder, tmp_path / "whole"), secret)
    with opened(tmp_path / "whole") as store:
        after = store.digest()
    with opened(Path(shutil.copytree(folder, tmp_path / "before"))) as store:
        before = store.digest()
    chance = random.Random(20260203)
    first = {kind: number for number, kind in reversed(list(enumerate(places, 1)))}
    chosen = [*(first.values() if is_long else ()), *chance.sample(range(1, len(places) + 1), KILLS)]
    chosen += chance.sample(range(1, len(places) + 1), LONG_KILLS) if is_long else []
    left = Counter[str]()
    for turn, place in enumerate(chosen):
        here = Path(shutil.copytree(folder, tmp_path / f"round{turn}"))
        child = nursery.start("purger", here, secret, place, int(signal.SIGKILL))
        code = child.wait()
        assert code == -signal.SIGKILL or (code == 0 and place > 0.9 * len(places)), child.errors()[-1_500:]
        what = f"place {place} ({places[place - 1]})"
        with opened(here) as store:
            digest = store.digest()
            assert digest in {before, after}, what
            store.verify(deep=True)
            if digest == after:
                assert traces(here / "store") == [], what
                (receipt,) = (here / "store" / "receipts").glob("*.json")
                assert store.check_receipt(receipt.read_bytes()).events > 2
                assert store.get_memory(secret) is None
            else:
                assert store.get_memory(secret).content == SECRET, what
            assert not (here / "store" / "journal" / "purging.json").exists(), what
        left["done" if digest == after else "not begun"] += 1
        shutil.rmtree(here)
    show(f"SIGKILL in {len(chosen)} of {len(places)} places of a purge", ("left", "times"), left.most_common())
    assert left["done"]


def test_a_damaged_note_of_a_purge_does_not_keep_it_from_being_completed(
    template: tuple[Path, str], tmp_path: Path, nursery: Any, rows: Any, caplog: pytest.LogCaptureFixture
) -> None:
    folder, secret = template
    (places,) = nursery.run("purger", shutil.copytree(folder, tmp_path / "whole"), secret)
    recorded = places.index("before the sync of segments")
    replaced = places.index("before replace", recorded) + 1  # that of the first segment
    here = Path(shutil.copytree(folder, tmp_path / "here"))
    child = nursery.start("purger", here, secret, replaced, int(signal.SIGKILL))
    assert child.wait() == -signal.SIGKILL
    note = here / "store" / "journal" / "purging.json"
    data = bytearray(note.read_bytes())
    data[len(data) // 2] ^= 1
    note.write_bytes(data)
    assert traces(here / "store") != []
    row = rows["a purge is killed, anywhere"]
    with caplog.at_level("WARNING"), opened(here) as store:
        assert [record for record in caplog.records if row.fits(record.getMessage())] != []
        assert traces(here / "store") == []
        (path,) = (here / "store" / "receipts").glob("*.json")
        receipt = path.read_bytes()
        assert store.check_receipt(receipt).events > 2
        assert b'"before": null' in receipt
        with pytest.raises(InvalidInputError):
            store.check_receipt(receipt.replace(b'"before": null', b'"before": "' + b"0" * 64 + b'"', 1))


def test_a_payload_that_comes_back_is_not_shown(template: tuple[Path, str], tmp_path: Path, rows: Any) -> None:
    folder, secret = template
    here = Path(shutil.copytree(folder, tmp_path / "here"))
    segment = files_in(here / "store" / "journal")[0]
    with opened(here) as store:
        store.purge([secret])
    shutil.copyfile(folder / "store" / "journal" / segment.name, segment)
    row = rows["a payload that a purge removed comes back, with a segment from a backup"]
    with opened(here) as store:
        assert store.get_memory(secret) is None
        with pytest.raises(JournalError) as refused:
            store.verify()
        assert row.fits(str(refused.value))
        store.complete_purges()
        store.verify(deep=True)
    assert traces(here / "store") == []
