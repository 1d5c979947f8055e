"""What a compaction saves: opening, rebuilding and disk, of a journal of many events of which a tenth is still alive; and what a retention saves.

The journal is signed in bulk, not through the store. Of ten events five add a memory, one changes it and four delete others.

    .venv/bin/python tests/benchmarks/compaction.py --events 1000000
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from memgraph import AgentMemoryConfig
from memgraph.journal.envelope import CommitDraft
from memgraph.journal.journal import Journal
from memgraph.model.events.memories import MemoryAdded, MemoryDeleted, MemoryRevised
from memgraph.model.events.payload import Payload
from memgraph.model.ids import source_id
from memgraph.model.memory import MemoryRecord
from memgraph.model.timestamps import to_iso
from memgraph.store.compaction import compact
from memgraph.store.opening import open_store_journal
from memgraph.store.replayed import replayed

START_S = 1_735_689_600
"""1 January 2025: the events are spread over a year."""
YEAR_S = 365 * 86_400
LATER = "2026-02-01T00:00:00.000Z"
T = TypeVar("T")
_TOGETHER = 1_000
"""Events that are signed and written at once, ten to a commit."""


def moment(part: float) -> str:
    return to_iso(time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(START_S + int(part * YEAR_S))))


def payloads(count: int) -> Iterator[tuple[Payload, str]]:
    """Yield so many events and their times."""
    text = (
        "The nightly build {} of the billing service failed, because the queue was full; a retry after {} s succeeded."
    )
    for number in range(count):
        turn, place = divmod(number, 10)
        now = moment(number / count)
        if place < 5:
            times = dict.fromkeys(("created_at", "updated_at", "occurred_at", "relevance_at"), now)
            one = {"content": text.format(number, number % 90), "tags": [f"t{number % 50}"], **times}
            memory = MemoryRecord(id=source_id("b", turn * 5 + place), type="episodic", **one)
            yield MemoryAdded(memory=memory), now
        elif place == 5:
            changed = {"content": f"Changed {number}", "updated_at": now}
            yield MemoryRevised(id=source_id("b", turn * 5), changed=changed), now
        else:
            yield MemoryDeleted(id=source_id("b", turn * 5 + place - 5)), now


def fill(config: AgentMemoryConfig, count: int) -> None:
    """Make a journal of so many events; every ten are a commit."""
    journal = open_store_journal(config, None, lambda: moment(0))
    events = payloads(count)
    with journal.locked():
        while lot := [one for _, one in zip(range(_TOGETHER), events, strict=False)]:
            drafts = [CommitDraft("global", [one for one, _ in lot[at : at + 10]]) for at in range(0, len(lot), 10)]
            journal.append(drafts, lot[-1][1])
    journal.close()


def timed(name: str, do: Callable[[], T], figures: dict[str, Any]) -> T:
    began = time.perf_counter()
    found = do()
    figures[name] = round(time.perf_counter() - began, 3)
    print(f"  {name}: {figures[name]:,.3f} s", file=sys.stderr, flush=True)
    return found


def sizes(journal: Journal) -> dict[str, float]:
    """Return megabytes of the events, the archive and the baseline, and of the database."""
    parts = {**journal.sizes()._asdict(), "database": journal.database.size_bytes()}
    return {name: round(size / 1e6, 1) for name, size in parts.items()}


def measure(folder: Path, count: int, *, tail: int) -> dict[str, Any]:
    """Fill, open, compact, open again, and compare what rebuilds give."""
    config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    figures: dict[str, Any] = {"events": count, "tail": tail}

    def opened() -> Any:
        return open_store_journal(config, None, lambda: LATER)

    timed("fill_s", lambda: fill(config, count), figures)
    journal = timed("open_before_s", opened, figures)
    _, before = timed("replay_before_s", lambda: replayed(journal, journal.tail.seq), figures)
    figures["disk_before_mb"] = sizes(journal)
    journal.close()
    limit = moment(1 - tail / count)
    done = timed("compact_s", lambda: compact(config, before=limit, clock=lambda: _at(LATER)), figures)
    figures |= {"live_rows": done.rows, "events_after_the_baseline": done.events_left}
    journal = timed("open_s", opened, figures)
    _, after = timed("replay_s", lambda: replayed(journal, journal.tail.seq), figures)
    figures["disk_mb"] = sizes(journal)
    figures["digest_equal"] = before == after
    journal.close()
    kept = config.model_copy(update={"archive_retention_days": 1})
    preview = timed(
        "preview_of_retention_s", lambda: compact(kept, before=limit, dry_run=True, clock=lambda: _at(LATER)), figures
    )
    done = timed("retention_s", lambda: compact(kept, before=limit, clock=lambda: _at(LATER)), figures)
    assert preview.removed_texts == done.removed_texts
    figures["removed_texts"] = done.removed_texts
    journal = timed("open_after_retention_s", opened, figures)
    figures["disk_after_retention_mb"] = sizes(journal)
    timed("verify_after_retention_s", journal.verify, figures)
    _, last = timed("replay_after_retention_s", lambda: replayed(journal, journal.tail.seq), figures)
    figures["digest_equal_after_retention"] = last.digest == after.digest
    figures["digest"] = f"{after.digest:064x}"
    return figures


def _at(text: str) -> Any:
    from datetime import datetime

    return datetime.fromisoformat(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--tail", type=int, default=1_000, help="events after the baseline")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memgraph-compaction-") as folder:
        print(json.dumps(measure(Path(folder), options.events, tail=options.tail), indent=2))


if __name__ == "__main__":
    main()
