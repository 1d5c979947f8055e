"""Removes again, from a journal that a backup has restored, what was purged after the backup was made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from memgraph.disk.files import clear
from memgraph.errors import DamagedJournalError, JournalError, MemGraphError, StorageError
from memgraph.journal.baseline.header import FOLDER as BASELINE
from memgraph.journal.baseline.header import HEADER
from memgraph.journal.closed import files
from memgraph.journal.envelope import Event, KeyOf, LineError
from memgraph.journal.journal import Journal
from memgraph.journal.purge.intent import Noted
from memgraph.journal.purge.lines import is_purged, purged_line, seq_of
from memgraph.journal.purge.rewriting import rewrite_segments, segments_of, zero_rows
from memgraph.journal.segments import event_of
from memgraph.model.events.registry import STATES_MEMORY
from memgraph.model.events.store import MemoryPurged, PurgedRows, StoreRestored, ranges_of
from memgraph.model.results.maintenance import PurgeReceipt
from memgraph.store.backup.quarantine import readable_lines
from memgraph.store.compaction.renewing import renew_baseline
from memgraph.store.purge.exports import known_exports
from memgraph.store.purge.receipts import FOLDER, has_receipt, is_genuine, read_receipt, receipt_of, write_receipt
from memgraph.store.purge.records import records

_Identity = tuple[int, str]
"""An event's number and the id of its commit."""
_MARKS = tuple(b'"type":"%b","write_scope"' % kind.TYPE.encode() for kind in (MemoryPurged, StoreRestored))


class KnownPurge(NamedTuple):
    """A purge that the store has made, by its event or its receipt: its number and time, and what was removed."""

    event: int
    purged_at: str
    seqs: set[int]
    said: MemoryPurged | PurgeReceipt


class Known(NamedTuple):
    """What a store's journal and its receipts say, as far as they can be read: purges, and (last event kept, time) of restorations."""

    purges: list[KnownPurge]
    restorations: list[tuple[int, str]]


def known_purges(home: Path, journal: Journal) -> Known:
    """Return the purges that a store has made, whose journal may be damaged. What is not genuine is left out."""
    purges: dict[int, KnownPurge] = {}
    restorations = []
    for event in _events(journal):
        if isinstance(said := event.payload, MemoryPurged):
            purges[event.seq] = KnownPurge(event.seq, said.purged_at, said.seqs(), said)
        elif isinstance(said, StoreRestored):
            restorations.append((said.seq if said.kept_seq is None else said.kept_seq, said.restored_at))
    for path in sorted((home / FOLDER).glob("*.json")):
        try:
            receipt = read_receipt(path.read_bytes())
        except (OSError, MemGraphError):
            continue
        if receipt.event not in purges and is_genuine(journal, receipt):
            seqs = {seq for first, last in receipt.ranges for seq in range(first, last + 1)}
            purges[receipt.event] = KnownPurge(receipt.event, receipt.purged_at, seqs, receipt)
    return Known(list(purges.values()), restorations)


def purge_again(known: Known, journal: Journal, now: str) -> MemoryPurged | None:
    """Return the event that purges from a restored journal what its own events do not name any more; None: nothing.

    Numbers are of the same events only up to where the histories part: a former restoration may have dropped those after it, and others
    have their numbers now.
    """
    named, seqs = journal.purged.read(), set[int]()
    ids: dict[str, list[str]] = defaultdict(list)
    restated: list[str] = []
    for purge in known.purges:
        parted = [kept for kept, at in known.restorations if purge.event > kept and purge.purged_at <= at]
        last = min([journal.tail.chain.seq, *parted])
        missing = {seq for seq in purge.seqs if seq <= last} - named
        if missing:
            seqs |= missing
            for field in ("ids", "derived_ids", "copied_ids", "kept_ids"):
                ids[field] += getattr(purge.said, field)
            restated += purge.said.restated_ids
    if not seqs:
        return None
    gone = {one for field in ("ids", "derived_ids", "copied_ids") for one in ids[field]}
    vectors, stated = _vectors(journal, seqs, gone)
    ids["copied_ids"] += [one for one in restated if one not in stated]  # the event that restated it is lost
    return MemoryPurged(
        **{field: list(dict.fromkeys(found)) for field, found in ids.items()},
        ranges=ranges_of(seqs),
        vectors=[PurgedRows(model=model, rows=sorted(rows)) for model, rows in vectors.items()],
        purged_at=now,
    )


def complete(home: Path, journal: Journal, now: str) -> None:
    """Remove what the journal names as purged; the caller holds the writer lock. The next opening rebuilds graph and index.

    Raises
    ------
    StorageError
        The system refuses.
    """
    for event in list(journal.purged.events()):
        if not isinstance(said := event.payload, MemoryPurged):
            continue
        for one in said.vectors:
            zero_rows(journal.vectors(one.model, journal.named.dimension_of(one.model) or 0), one.rows)
        journal.drop_checkpoint(segments_of(journal.segments, said.seqs()))
        rewrite_segments(journal.segments, said.seqs(), journal.signing_key)
        renew_baseline(journal, said.seqs(), now)
        journal.name_closed()
        if not has_receipt(home, event.seq, said):
            noted, exports = Noted({}, None), known_exports(home)
            write_receipt(home, receipt_of(journal, event, said, noted=noted, removed=[], exports=exports))
    _clean_quarantine(home, journal)


def _clean_quarantine(home: Path, journal: Journal) -> None:
    """Remove the payloads of purged events from what repairs have put aside: a repair that was broken off may have put back some."""
    purged = [line.data for line in journal.every_line(journal.start.position) if is_purged(line.data)]
    events = {_identity(orjson.loads(line)["head"]) for line in purged}
    seqs = set(map(seq_of, purged))
    for place in sorted((home / "quarantine").glob("*/")):
        for folder in (place, place / files.ARCHIVE):
            for path in files.files_in(folder):
                _clean_segment(folder, path, events, seqs)
        for name in (HEADER, BASELINE):  # its rows may state what was purged, and the events have all of it
            try:
                clear(place / name)
            except OSError as error:
                raise StorageError(f"cannot be removed: {error.strerror}", path=place / name) from None


def _clean_segment(folder: Path, path: Path, events: set[_Identity], seqs: set[int]) -> None:
    """Remove the payloads of purged events from a segment that was put aside; one that cannot be unpacked is removed."""
    name = files.name_of(path)
    if path != files.file_of(folder, name):  # its plain file counts
        path.unlink(missing_ok=True)
        return
    try:
        data = files.read_all(folder, name)
    except DamagedJournalError:
        path.unlink(missing_ok=True)
        return
    new = b"\n".join(_cleaned(line, events, seqs) for line in data.split(b"\n"))
    if new != data:
        files.replace(folder, name, new)


def _cleaned(line: bytes, events: set[_Identity], seqs: set[int]) -> bytes:
    """Return a line without its payload if it is a purged event's; one that is damaged and may be, as spaces."""
    try:
        return purged_line(line) if _identity(orjson.loads(line)["head"]) in events else line
    except (ValueError, KeyError, TypeError):
        return b" " * len(line) if seq_of(line) in seqs else line


def _identity(head: Mapping[str, Any]) -> _Identity:
    """Return what identifies an event, also if another one has its number, or its line is condensed."""
    return head["seq"], head["commit_id"]


def _events(journal: Journal) -> Iterator[Event]:
    """Iterate over the events of purges and restorations that can be read, each verified on its own."""
    for line in readable_lines(journal.segments, journal.segments.first()):
        if any(mark in line.data for mark in _MARKS):
            try:
                yield event_of(line, journal.store_id, _key_of(journal))
            except (LineError, JournalError):
                continue


def _key_of(journal: Journal) -> KeyOf:
    return lambda key_id: journal.ring.verifying(key_id, None)


def _vectors(journal: Journal, seqs: set[int], gone: set[str]) -> tuple[dict[str, set[int]], set[str]]:
    """Return the rows of the vectors of these events and memories, by model, and the memories that other events state."""
    rows: dict[str, set[int]] = defaultdict(set)
    stated: set[str] = set()
    for record in records(journal.lines()):
        content = record.content
        if record.type == "memory.reembedded":
            found = {one["row"] for one in content["vectors"] if one["id"] in gone}
            if found:
                rows[content["model"]] |= found
        elif record.seq in seqs:
            if vector := content.get("vector"):
                rows[vector["model"]].add(vector["row"])
        elif record.type in STATES_MEMORY:
            stated.add(content["memory"]["id"] if "memory" in content else content["id"])
    return rows, stated
