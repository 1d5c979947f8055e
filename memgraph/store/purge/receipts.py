"""Receipts of purges: made when a purge is complete, and checked against the journal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from memgraph.disk.files import make_private_folder, write_private
from memgraph.errors import InvalidInputError, JournalError, StorageError
from memgraph.journal.envelope import Event
from memgraph.journal.journal import Journal
from memgraph.journal.purge.intent import Noted
from memgraph.journal.purge.rewriting import left_in, segments_of, sha256_of
from memgraph.journal.segments import Segments
from memgraph.journal.vectors.damage import NamedRows
from memgraph.model.events.store import MemoryPurged
from memgraph.model.events.tasks import TaskCreated
from memgraph.model.results.maintenance import KnownExport, PurgeReceipt, ReceiptCheck, RewrittenFile

FOLDER = "receipts"
_PURPOSE = "purge receipt"
_REGISTRATION = f'"type":"{TaskCreated.TYPE}"'.encode()
MAX_BYTES = 64 << 20


def receipt_of(
    journal: Journal,
    event: Event,
    payload: MemoryPurged,
    *,
    noted: Noted,
    removed: list[str],
    exports: list[KnownExport],
) -> PurgeReceipt:
    """Return the signed receipt of a completed purge."""
    files = []
    for segment in segments_of(journal.segments, payload.seqs()):
        name = f"journal/{segment}"
        known, sha256 = noted.files.get(name, (None, None))
        size, after = sha256_of(journal.segments, segment, known)
        files.append(RewrittenFile(path=name, size=size, before=sha256, after=after))
    receipt = PurgeReceipt(
        store_id=journal.store_id,
        key_id=journal.key_id,
        event=event.seq,
        purged_at=payload.purged_at,
        ids=payload.ids,
        derived_ids=payload.derived_ids,
        copied_ids=payload.copied_ids,
        restated_ids=payload.restated_ids,
        kept_ids=payload.kept_ids,
        ranges=_ranges(payload),
        vectors={one.model: one.rows for one in payload.vectors},
        files=files,
        rebuilt=["graph", "index"],
        removed=removed,
        lost_tasks=_lost_tasks(journal, payload.seqs()),
        remaining=noted.remaining,
        exports=exports,
    )
    return receipt.model_copy(update={"code": journal.seal(_PURPOSE).code(_signed(receipt))})


def write_receipt(home: Path, receipt: PurgeReceipt) -> Path:
    """Write a receipt into the store's directory, and return its path."""
    path = home / FOLDER / f"{receipt.event:012d}.json"
    make_private_folder(path.parent)
    write_private(path, orjson.dumps(receipt.model_dump(mode="json"), option=orjson.OPT_INDENT_2))
    return path


def has_receipt(home: Path, event: int, payload: MemoryPurged) -> bool:
    """Return whether a purge has a receipt: one of its number may be of a purge that a restoration has dropped."""
    try:
        receipt = read_receipt((home / FOLDER / f"{event:012d}.json").read_bytes())
    except (OSError, InvalidInputError):
        return False
    return receipt.purged_at == payload.purged_at and receipt.ranges == _ranges(payload)


def read_receipt(document: bytes | str | Mapping[str, Any] | PurgeReceipt) -> PurgeReceipt:
    """Return a receipt from its JSON text.

    Raises
    ------
    InvalidInputError
        It is no receipt.
    """
    if isinstance(document, PurgeReceipt):
        return document
    try:
        found = orjson.loads(document) if isinstance(document, bytes | str) else document
        receipt = PurgeReceipt.parse(found)
    except orjson.JSONDecodeError:
        raise InvalidInputError("is not JSON, so it is no receipt of a purge", field="receipt") from None
    except InvalidInputError as error:
        problem = f"is no receipt of a purge: {error.field} {error.problem}"
        raise InvalidInputError(problem, field="receipt") from None
    if receipt.model_dump(mode="json") != found:
        raise InvalidInputError("has other fields than a receipt of a purge", field="receipt")
    return receipt


def check_receipt(journal: Journal, receipt: PurgeReceipt) -> ReceiptCheck:
    """Check that a receipt is genuine and that what it says holds; requires that nobody writes.

    Raises
    ------
    InvalidInputError
        The receipt is of another store, or is not what was signed.
    JournalError, StorageError
        The journal does not have the purge, or has a payload that the receipt says is gone.
    """
    if receipt.store_id != journal.store_id:
        problem = f"is of another store ({receipt.store_id}), this one is {journal.store_id}"
        raise InvalidInputError(problem, field="receipt", value=receipt.event)
    if journal.seal_of(receipt.key_id, _PURPOSE) is None:
        problem = f"was signed with the key {receipt.key_id!r}, which is missing: restore it, for example with `memgraph keys import`"
        raise InvalidInputError(problem, field="receipt", value=receipt.event)
    if not is_genuine(journal, receipt):
        raise InvalidInputError("was changed since it was signed", field="receipt", value=receipt.event)
    payloads = [event.payload for event in journal.purged.events() if event.seq == receipt.event]
    if not payloads or not isinstance(payload := payloads[0], MemoryPurged):
        raise JournalError(f"the journal has no purge with the number {receipt.event}: it is an older copy")
    if _ranges(payload) != receipt.ranges or _ids(payload) != _ids(receipt):
        raise JournalError(f"event {receipt.event} of the journal purged something else than the receipt says")
    if left := left_in(journal.segments, payload.seqs()):
        raise JournalError(
            f"{len(left):,} of the purged events still have a payload, first event {left[0]}: the journal was restored from an "
            "older copy; run `memgraph purge --complete`"
        )
    _check_vectors(journal, receipt)
    changed = [one.path for one in receipt.files if not _is_same(journal.segments, one)]
    return ReceiptCheck(
        event=receipt.event,
        events=len(payload.seqs()),
        vectors=sum(map(len, receipt.vectors.values())),
        changed_since=changed,
        remaining=receipt.remaining,
    )


def vectors_left(journal: Journal, vectors: Mapping[str, Sequence[int]]) -> Iterator[tuple[str, int]]:
    """Yield the model and number of each of these purged rows that holds something which no later event has put there.

    Raises
    ------
    StorageError
        A file cannot be read.
    """
    named = NamedRows.of_lines(journal.lines()) if vectors else NamedRows()
    for model, rows in vectors.items():
        file = journal.vectors(model, journal.named.dimension_of(model) or 0)
        yield from ((model, row) for row in rows if any(file.stored(row)) and not named.is_used(model, row))


def is_genuine(journal: Journal, receipt: PurgeReceipt) -> bool:
    """Return whether a receipt is of this store and was signed with the key that it names, the present one or a former."""
    seal = journal.seal_of(receipt.key_id, _PURPOSE)
    return receipt.store_id == journal.store_id and seal is not None and seal.fits(receipt.code, _signed(receipt))


def _lost_tasks(journal: Journal, seqs: set[int]) -> list[int]:
    """Return the purged events that had registered a task which no other event registers."""
    found: dict[str, list[int]] = defaultdict(list)
    for line in journal.every_line(journal.start.position):
        if _REGISTRATION in line.data:
            head = orjson.loads(line.data)["head"]
            if head["type"] == TaskCreated.TYPE:
                found[head["task_id"]].append(head["seq"])
    return sorted(one for events in found.values() if seqs.issuperset(events) for one in events)


def _check_vectors(journal: Journal, receipt: PurgeReceipt) -> None:
    """Check that the purged rows hold zeros, or vectors that later events have put there.

    Raises
    ------
    JournalError
    """
    for model, row in vectors_left(journal, receipt.vectors):
        path = journal.vectors(model, journal.named.dimension_of(model) or 0).path
        raise JournalError(f"row {row} of {path} still holds a purged vector; run `memgraph purge --complete`")


def _is_same(segments: Segments, file: RewrittenFile) -> bool:
    try:
        return sha256_of(segments, Path(file.path).name, file.size) == (file.size, file.after)
    except StorageError:
        return False


def _ranges(payload: MemoryPurged) -> list[tuple[int, int]]:
    return [(one.first, one.last) for one in payload.ranges]


def _ids(said: MemoryPurged | PurgeReceipt) -> list[list[str]]:
    return [said.ids, said.derived_ids, said.copied_ids, said.restated_ids, said.kept_ids]


def _signed(receipt: PurgeReceipt) -> bytes:
    return orjson.dumps(receipt.model_dump(mode="json", exclude={"code"}), option=orjson.OPT_SORT_KEYS)
