"""Receipts of purges: made when a purge is complete, and checked against the journal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from memgraph.disk.files import make_private_folder, write_private
from memgraph.errors import InvalidInputError, JournalError
from memgraph.journal.journal import Journal
from memgraph.journal.vectors import NamedRows
from memgraph.model.events.store import MemoryPurged
from memgraph.model.events.tasks import TaskCreated
from memgraph.model.results.maintenance import KnownExport, PurgeReceipt, ReceiptCheck, RemainingName

FOLDER = "receipts"
_PURPOSE = "purge receipt"
MAX_BYTES = 64 << 20


def receipt_of(
    journal: Journal,
    seq: int,
    payload: MemoryPurged,
    *,
    removed: list[str],
    remaining: list[RemainingName],
    exports: list[KnownExport],
) -> PurgeReceipt:
    """Return the signed receipt of a completed purge."""
    receipt = PurgeReceipt(
        store_id=journal.store_id,
        key_id=journal.key_id,
        event=seq,
        purged_at=payload.purged_at,
        ids=payload.ids,
        derived_ids=payload.derived_ids,
        copied_ids=payload.copied_ids,
        restated_ids=payload.restated_ids,
        kept_ids=payload.kept_ids,
        ranges=_ranges(payload),
        vectors={one.model: one.rows for one in payload.vectors},
        rebuilt=["rows", "graph", "index"],
        removed=removed,
        lost_tasks=_lost_tasks(journal, payload.seqs()),
        remaining=remaining,
        exports=exports,
    )
    return receipt.model_copy(update={"code": journal.seal(_PURPOSE).code(_signed(receipt))})


def write_receipt(home: Path, receipt: PurgeReceipt) -> Path:
    """Write a receipt into the store's directory, and return its path."""
    path = home / FOLDER / f"{receipt.event:012d}.json"
    make_private_folder(path.parent)
    write_private(path, orjson.dumps(receipt.model_dump(mode="json"), option=orjson.OPT_INDENT_2))
    _begun(home, receipt.event).unlink(missing_ok=True)
    return path


def note_remaining(home: Path, event: int, remaining: Sequence[RemainingName]) -> None:
    """Keep what the receipt of a purge will say of names that stay: if the process is killed, nobody can find them by the purged words."""
    make_private_folder(home / FOLDER)
    write_private(_begun(home, event), orjson.dumps([one.model_dump(mode="json") for one in remaining]))


def noted_remaining(home: Path, event: int) -> list[RemainingName]:
    """Return what was kept, or what an earlier receipt of the purge says."""
    try:
        return [RemainingName.parse(one) for one in orjson.loads(_begun(home, event).read_bytes())]
    except (OSError, ValueError, InvalidInputError):
        receipt = _written(home, event)
        return (receipt and receipt.remaining) or []


def is_begun(home: Path, event: int) -> bool:
    """Return whether a purge that is not complete was made from this directory."""
    return _begun(home, event).exists()


def _begun(home: Path, event: int) -> Path:
    return home / FOLDER / f"{event:012d}.begun"


def has_receipt(home: Path, event: int, payload: MemoryPurged) -> bool:
    """Return whether a purge is complete and has a receipt: one of its number may be of a purge that a restoration has dropped."""
    receipt = None if is_begun(home, event) else _written(home, event)
    return receipt is not None and receipt.purged_at == payload.purged_at and receipt.ranges == _ranges(payload)


def _written(home: Path, event: int) -> PurgeReceipt | None:
    try:
        return read_receipt((home / FOLDER / f"{event:012d}.json").read_bytes())
    except (OSError, InvalidInputError):
        return None


def read_receipt(document: bytes | str | Mapping[str, Any] | PurgeReceipt) -> PurgeReceipt:
    """Return a receipt from its JSON text; raise `InvalidInputError` for any other."""
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
    """Check that a receipt is genuine and that what it says holds; requires that nobody writes."""
    if receipt.store_id != journal.store_id:
        problem = f"is of another store ({receipt.store_id}), this one is {journal.store_id}"
        raise InvalidInputError(problem, field="receipt", value=receipt.event)
    if journal.seal_of(receipt.key_id, _PURPOSE) is None:
        problem = f"was signed with the key {receipt.key_id!r}, which is missing: restore it, for example with `memgraph keys import`"
        raise InvalidInputError(problem, field="receipt", value=receipt.event)
    if not is_genuine(journal, receipt):
        raise InvalidInputError("was changed since it was signed", field="receipt", value=receipt.event)
    payload = next((purge for seq, purge in journal.purges() if seq == receipt.event), None)
    if payload is None:
        raise JournalError(f"the journal has no purge with the number {receipt.event}: it is an older copy")
    if _ranges(payload) != receipt.ranges or _ids(payload) != _ids(receipt):
        raise JournalError(f"event {receipt.event} of the journal purged something else than the receipt says")
    if left := journal.unpurged(payload.seqs()):
        raise JournalError(
            f"{len(left):,} of the purged events still have a payload, first event {left[0]}: the journal was restored from an "
            "older copy; run `memgraph purge --complete`"
        )
    for model, row in vectors_left(journal, receipt.vectors):
        raise JournalError(
            f"row {row} of the vectors of {model} still holds a purged vector; run `memgraph purge --complete`"
        )
    return ReceiptCheck(
        event=receipt.event,
        events=len(payload.seqs()),
        vectors=sum(map(len, receipt.vectors.values())),
        remaining=receipt.remaining,
    )


def vectors_left(journal: Journal, vectors: Mapping[str, Sequence[int]]) -> Iterator[tuple[str, int]]:
    """Yield the model and number of each of these purged rows that holds something which no later event has put there."""
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
    for line in journal.every_line_of(TaskCreated.TYPE):
        found[orjson.loads(line.head)["task_id"]].append(line.seq)
    return sorted(one for events in found.values() if seqs.issuperset(events) for one in events)


def _ranges(payload: MemoryPurged) -> list[tuple[int, int]]:
    return [(one.first, one.last) for one in payload.ranges]


def _ids(said: MemoryPurged | PurgeReceipt) -> list[list[str]]:
    return [said.ids, said.derived_ids, said.copied_ids, said.restated_ids, said.kept_ids]


def _signed(receipt: PurgeReceipt) -> bytes:
    return orjson.dumps(receipt.model_dump(mode="json", exclude={"code"}), option=orjson.OPT_SORT_KEYS)
