"""Receipts of purges: made when a purge is complete, and checked against the journal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from memgraph.disk.files import make_private_folder, write_private
from memgraph.disk.seal import Seal
from memgraph.errors import InvalidInputError, JournalError, StorageError
from memgraph.journal.envelope import Event
from memgraph.journal.journal import Journal
from memgraph.journal.purge.intent import Hashes
from memgraph.journal.purge.rewriting import left_in, segments_of, sha256_of
from memgraph.journal.segments import Segments
from memgraph.journal.vectors.damage import NamedRows
from memgraph.model.events.store import MemoryPurged
from memgraph.model.results.purges import KnownExport, PurgeReceipt, ReceiptCheck, RewrittenFile

FOLDER = "receipts"
MAX_BYTES = 64 << 20


def receipt_of(
    journal: Journal,
    event: Event,
    payload: MemoryPurged,
    *,
    before: Hashes,
    removed: list[str],
    exports: list[KnownExport],
) -> PurgeReceipt:
    """Return the signed receipt of a completed purge."""
    files = []
    for segment in segments_of(journal.segments, payload.seqs()):
        name = f"journal/{segment}"
        known, sha256 = before.get(name, (None, None))
        size, after = sha256_of(journal.segments, segment, known)
        files.append(RewrittenFile(path=name, size=size, before=sha256, after=after))
    receipt = PurgeReceipt(
        store_id=journal.store_id,
        event=event.seq,
        purged_at=payload.purged_at,
        ids=payload.ids,
        derived_ids=payload.derived_ids,
        copied_ids=payload.copied_ids,
        restated_ids=payload.restated_ids,
        kept_ids=payload.kept_ids,
        ranges=[(one.first, one.last) for one in payload.ranges],
        vectors={one.model: one.rows for one in payload.vectors},
        files=files,
        rebuilt=["graph", "index"],
        removed=removed,
        exports=exports,
    )
    return receipt.model_copy(update={"code": _code(receipt, _seal(journal))})


def write_receipt(home: Path, receipt: PurgeReceipt) -> Path:
    """Write a receipt into the store's directory, and return its path."""
    path = home / FOLDER / f"{receipt.event:012d}.json"
    make_private_folder(path.parent)
    write_private(path, orjson.dumps(receipt.model_dump(mode="json"), option=orjson.OPT_INDENT_2))
    return path


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
        raise InvalidInputError("is not JSON, so it is no receipt of a purge", field="receipt", value="…") from None
    except InvalidInputError as error:
        problem = f"is no receipt of a purge: {error.field} {error.problem}"
        raise InvalidInputError(problem, field="receipt", value="…") from None
    if receipt.model_dump(mode="json") != found:
        raise InvalidInputError("has other fields than a receipt of a purge", field="receipt", value="…")
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
    if not _seal(journal).fits(receipt.code, _signed(receipt)):
        raise InvalidInputError(
            "was changed since it was signed, or was signed with another key", field="receipt", value=receipt.event
        )
    payloads = [event.payload for event in journal.purged.events() if event.seq == receipt.event]
    if not payloads or not isinstance(payload := payloads[0], MemoryPurged):
        raise JournalError(f"the journal has no purge with the number {receipt.event}: it is an older copy")
    if [(one.first, one.last) for one in payload.ranges] != receipt.ranges:
        raise JournalError(f"event {receipt.event} of the journal purged other events than the receipt says")
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
    )


def _check_vectors(journal: Journal, receipt: PurgeReceipt) -> None:
    """Check that the purged rows hold zeros, or vectors that later events have put there.

    Raises
    ------
    JournalError
    """
    named = NamedRows.of_lines(journal.lines()) if receipt.vectors else NamedRows()
    for model, rows in receipt.vectors.items():
        file = journal.vectors(model, journal.named.dimension_of(model) or 0)
        for row in rows:
            if any(file.stored(row)) and not named.is_used(model, row):
                raise JournalError(
                    f"row {row} of {file.path} still holds a purged vector; run `memgraph purge --complete`"
                )


def _is_same(segments: Segments, file: RewrittenFile) -> bool:
    try:
        return sha256_of(segments, Path(file.path).name, file.size) == (file.size, file.after)
    except StorageError:
        return False


def _seal(journal: Journal) -> Seal:
    return journal.seal("purge receipt")


def _signed(receipt: PurgeReceipt) -> bytes:
    return orjson.dumps(receipt.model_dump(mode="json", exclude={"code"}), option=orjson.OPT_SORT_KEYS)


def _code(receipt: PurgeReceipt, seal: Seal) -> str:
    return seal.code(_signed(receipt))
