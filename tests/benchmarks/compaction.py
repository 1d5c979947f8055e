"""What a compaction saves: opening, rebuilding and disk, of a journal of many events of which a tenth is still alive; and what a retention saves.

The journal is made by signing lines in bulk, not through the store. Of ten events five add a memory, one changes it and four delete others.

    .venv/bin/python tests/benchmarks/compaction.py --events 1000000
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from memgraph.journal.closed.files import files_in
from memgraph.journal.segments import DEFAULT_LIMITS

from memgraph import AgentMemoryConfig
from memgraph.journal.envelope import assembled, canonical
from memgraph.journal.head_file import Head, HeadFile
from memgraph.model.events.memories import MemoryAdded, MemoryDeleted, MemoryRevised
from memgraph.model.ids import source_id
from memgraph.model.memory import MemoryRecord
from memgraph.model.timestamps import to_iso
from memgraph.store.compaction import compact, preview_compaction
from memgraph.store.opening import open_store_journal
from memgraph.store.projection.replayed_rows import replayed

START_S = 1_735_689_600
"""1 January 2025: the events are spread over a year."""
YEAR_S = 365 * 86_400
LATER = "2026-02-01T00:00:00.000Z"
T = TypeVar("T")


def moment(part: float) -> str:
    return to_iso(time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(START_S + int(part * YEAR_S))))


def contents(count: int) -> Iterator[tuple[type[Any], dict[str, Any], str]]:
    """Yield type, payload and time of so many events."""
    now = moment(0)
    times = dict.fromkeys(("created_at", "updated_at", "occurred_at", "relevance_at"), now)
    added = MemoryAdded(memory=MemoryRecord(id=source_id("b", 0), type="episodic", content="x", **times)).dump()
    text = (
        "The nightly build {} of the billing service failed, because the queue was full; a retry after {} s succeeded."
    )
    for number in range(count):
        turn, place = divmod(number, 10)
        now = moment(number / count)
        if place < 5:
            times = dict.fromkeys(("created_at", "updated_at", "occurred_at", "relevance_at"), now)
            one = {
                "id": source_id("b", turn * 5 + place),
                "content": text.format(number, number % 90),
                "tags": [f"t{number % 50}"],
            }
            yield MemoryAdded, {**added, "memory": {**added["memory"], **one, **times}}, now
        elif place == 5:
            yield (
                MemoryRevised,
                {"id": source_id("b", turn * 5), "changed": {"content": f"Changed {number}", "updated_at": now}},
                now,
            )
        else:
            yield MemoryDeleted, {"id": source_id("b", turn * 5 + place - 5)}, now


def fill(config: AgentMemoryConfig, count: int) -> None:
    """Make a journal of so many events; every ten are a commit."""
    journal = open_store_journal(config, None, lambda: moment(0))
    with journal.locked():
        pass
    key, chain, folder = journal.signing_key, journal.tail, journal.folder
    seq, signature, store_id = chain.seq, chain.signature, journal.store_id
    path = folder / journal.tail.position.segment
    file = path.open("ab")
    commit_id, left = "", 0
    for kind, content, now in contents(count):
        if left == 0:
            commit_id, left = source_id("commit", seq), 10
            if file.tell() >= DEFAULT_LIMITS.segment_bytes:
                file.close()
                file = (folder / f"{seq + 1:012d}.jsonl").open("ab")
        seq, left = seq + 1, left - 1
        salt = os.urandom(16)
        body = canonical(content)
        front = canonical(
            {
                "store_id": store_id, "seq": seq, "commit_id": commit_id, "last": left == 0, "event_id": commit_id, "type": kind.TYPE,
                "event_version": kind.VERSION, "write_scope": "global", "task_id": None, "actor": "agent", "timestamp": now,
                "occurred_at": now, "envelope_version": 1, "signature_version": 1, "key_id": key.key_id, "prev_signature": signature,
                "payload_sha256": hashlib.sha256(salt + body).hexdigest(),
            }
        )  # fmt: skip
        signature = hmac.digest(key.secret, front, "sha256").hex()
        file.write(assembled(front, body, salt.hex(), signature) + b"\n")
    file.close()
    HeadFile.of(folder, config.keys_home, store_id).replace(Head(seq, signature))


def timed(name: str, do: Callable[[], T], figures: dict[str, Any]) -> T:
    began = time.perf_counter()
    found = do()
    figures[name] = round(time.perf_counter() - began, 3)
    print(f"  {name}: {figures[name]:,.3f} s", file=sys.stderr, flush=True)
    return found


def sizes(folder: Path) -> dict[str, float]:
    """Return megabytes of the journal's own segments, of its archive and of its baseline."""
    rows = list((folder / "baseline").iterdir()) if (folder / "baseline").exists() else []
    parts = {"segments": files_in(folder), "archive": files_in(folder / "archive"), "baseline": rows}
    return {name: round(sum(path.stat().st_size for path in paths) / 1e6, 1) for name, paths in parts.items()}


def measure(folder: Path, count: int, *, tail: int) -> dict[str, Any]:
    """Fill, open, compact, open again, and compare what rebuilds give."""
    config = AgentMemoryConfig(home=folder / "store", keys_home=folder / "keys")
    figures: dict[str, Any] = {"events": count, "tail": tail}

    def opened() -> Any:
        return open_store_journal(config, None, lambda: LATER)

    timed("fill_s", lambda: fill(config, count), figures)
    journal = timed("open_without_checkpoint_before_s", opened, figures)
    with journal.locked():
        journal.checkpoint()
    timed("open_before_s", opened, figures)
    _, before = timed("replay_before_s", lambda: replayed(journal, journal.tail.seq), figures)
    figures["disk_before_mb"] = sizes(journal.folder)
    limit = moment(1 - tail / count)
    done = timed("compact_s", lambda: compact(config, before=limit, clock=lambda: _at(LATER)), figures)
    figures |= {"live_rows": done.rows, "events_after_the_baseline": done.events_left}
    journal = timed("open_s", opened, figures)
    (journal.folder / "verified.json").unlink()
    timed("open_without_checkpoint_s", opened, figures)
    _, after = timed("replay_s", lambda: replayed(journal, journal.tail.seq), figures)
    figures["disk_mb"] = sizes(journal.folder)
    figures["digest_equal"] = before == after
    kept = config.model_copy(update={"archive_retention_days": 1})
    preview = timed(
        "preview_of_retention_s", lambda: preview_compaction(kept, before=limit, clock=lambda: _at(LATER)), figures
    )
    done = timed("retention_s", lambda: compact(kept, before=limit, clock=lambda: _at(LATER)), figures)
    assert (preview.condensed_segments, preview.removed_texts) == (done.condensed_segments, done.removed_texts)
    figures |= {"condensed_segments": done.condensed_segments, "removed_texts": done.removed_texts}
    figures["disk_after_retention_mb"] = sizes(journal.folder)
    journal = timed("open_after_retention_s", opened, figures)
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
