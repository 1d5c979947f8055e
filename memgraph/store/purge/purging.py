"""Purges memories: plans, records the intent, removes, rebuilds, and hands out a receipt, which can be checked against the journal."""

from __future__ import annotations

import logging
import shutil
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import orjson

from memgraph.disk.files import clear, make_private_folder, write_private
from memgraph.disk.folders import remove_abandoned
from memgraph.errors import BusyError, InvalidInputError, JournalError, MemGraphError, NotFoundError, StorageError
from memgraph.extraction.secrets import redact, redact_any
from memgraph.journal.envelope import CommitDraft, Committed
from memgraph.journal.journal import Journal
from memgraph.journal.opening import MOVED_COPY
from memgraph.journal.vectors import NamedRows
from memgraph.logs import logger_of, timed
from memgraph.model.base import Name, Text, checked
from memgraph.model.events.store import MAX_PURGED, BackupMade, Follower, MemoryPurged, PurgedRows, ranges_of
from memgraph.model.events.tasks import TaskCreated
from memgraph.model.results.maintenance import (
    KnownExport,
    PurgedMemory,
    PurgePreview,
    PurgeReceipt,
    ReceiptCheck,
    RemainingName,
)
from memgraph.ports import Row
from memgraph.store.commit.records import scope_of
from memgraph.store.deletions import deleted, undeletions
from memgraph.store.opening import READ_ONLY_COPY, release
from memgraph.store.purge.exports import ANSWERS, blank_answers, known_exports
from memgraph.store.purge.plan import (
    Criteria,
    Plan,
    Says,
    matched_in,
    phrase_of,
    plan_of,
    remaining_names,
    without_names,
)
from memgraph.store.query import StorePart
from memgraph.store.replayed import renew_baseline
from memgraph.text.cutting import preview

logger = logger_of(__name__)

RECEIPTS = "receipts"
_PURPOSE = "purge receipt"
MAX_BYTES = 64 << 20
_PROJECTS = "MATCH (p:Project) RETURN p.name ORDER BY p.name"
_FOLDERS = ("past", "agents/overviews", "quarantine", "journal-0.2")
"""Views of the past and of agents; overviews of projects; what repairs cut off the journal; the journal of an earlier release that was moved."""
_BUSY_S = 10.0
_TEMPORARY = (".*.tmp", "*/.*.tmp")
"""What killed processes left."""


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
    path = home / RECEIPTS / f"{receipt.event:012d}.json"
    make_private_folder(path.parent)
    write_private(path, orjson.dumps(receipt.model_dump(mode="json"), option=orjson.OPT_INDENT_2))
    _begun(home, receipt.event).unlink(missing_ok=True)
    return path


def note_remaining(home: Path, event: int, remaining: Sequence[RemainingName]) -> None:
    """Keep what the receipt of a purge will say of names that stay: if the process is killed, nobody can find them by the purged words."""
    make_private_folder(home / RECEIPTS)
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
    return home / RECEIPTS / f"{event:012d}.begun"


def has_receipt(home: Path, event: int, payload: MemoryPurged) -> bool:
    """Return whether a purge is complete and has a receipt: one of its number may be of a purge that a restoration has dropped."""
    receipt = None if is_begun(home, event) else _written(home, event)
    return receipt is not None and receipt.purged_at == payload.purged_at and receipt.ranges == _ranges(payload)


def _written(home: Path, event: int) -> PurgeReceipt | None:
    try:
        return read_receipt((home / RECEIPTS / f"{event:012d}.json").read_bytes())
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
        file = journal.vectors(model)
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


@dataclass(eq=False)
class Purging(StorePart):
    """Purges of one store."""

    _home: Path
    _close_views: Callable[[], None]
    """Closes the store's own views of the past."""

    def preview_purge(
        self,
        ids: Sequence[str] = (),
        *,
        match: str | None = None,
        project: str | None = None,
        source: str | None = None,
        secrets: bool = False,
        keep_copies: bool = False,
    ) -> PurgePreview:
        """Return what `purge` would remove. Nothing is changed. Secrets are redacted in the answer to `secrets`, which may be empty."""
        checked(bool, keep_copies, "keep_copies")
        criteria = self._criteria(ids, match, project, source, secrets=secrets)
        self._reader.settle()
        with self._projector.reading():
            plan = self._planned(criteria, keeps_copies=keep_copies, may_be_empty=secrets)
            remaining = self._remaining(plan)

            def shown(text: str) -> str:
                return redact(text).value if secrets else text

            memories = [
                PurgedMemory(id=one, content=preview(shown(row.get("content", ""))), why=why, is_deleted=not self._is_there(one), matched_in=places)
                for why, named in (
                    ("asked", plan.ids), ("derived", plan.derived), ("copied", plan.copied),
                    ("restated", plan.restated), ("kept", plan.kept),
                )
                for one, (row, places) in self._last_rows(named, criteria.says).items()
            ]  # fmt: skip
        found = PurgePreview(
            memories=memories,
            events=len(plan.seqs),
            others=dict(plan.others),
            lost_tasks=plan.lost_tasks,
            remaining=remaining,
            exports=self._exports(plan.seqs),
            is_everything=plan.is_everything,
        )
        return redact_any(found).value if secrets else found

    def purge(
        self,
        ids: Sequence[str] = (),
        *,
        match: str | None = None,
        project: str | None = None,
        source: str | None = None,
        secrets: bool = False,
        keep_copies: bool = False,
        everything: bool = False,
    ) -> PurgeReceipt:
        """Remove memories and their words for good: from the journal, and from everything that was made from it.

        What was derived from them goes with them; the next sleep derives it again from what is left. Memories that repeat eight words
        of theirs in a row go, too. A process that is killed meanwhile leaves a purge that the next opening of the store completes. So it
        is if a read that began before lasts for over ten seconds: until then the database's files still hold the words, and the receipt
        is not signed (its `code` is empty).

        Parameters
        ----------
        ids : sequence of str
            Memories, deleted ones included. Either these or one of the following.
        match : str
            Everything that contains this text, in whatever case.
        secrets : bool
            Everything that contains a secret of a kind that is redacted today.
        project, source : str
            Everything of a project; everything that rests on a source: its name on memories, or the id, kind or place of one that was read.
        keep_copies : bool
            Keep memories that merely repeat words of the others. The receipt names them.
        everything : bool
            Also if no memory would be left.

        Raises
        ------
        NotFoundError
            There is nothing to purge.
        InvalidInputError
            Not exactly one thing was asked for, or no memory would be left.
        """
        checked(bool, keep_copies, "keep_copies")
        checked(bool, everything, "everything")
        criteria = self._criteria(ids, match, project, source, secrets=secrets)
        self.complete_begun()
        with self._writer.exclusive():
            self._writer.flush()
            plan = self._planned(criteria, keeps_copies=keep_copies)
            if plan.is_everything and not everything:
                problem = "would leave no memory; to purge them all, say so (`--all`)"
                raise InvalidInputError(problem, field="purge", value=_asked(criteria))
            return self._carry_out(plan)

    def _carry_out(self, plan: Plan) -> PurgeReceipt:
        remaining = without_names(self._remaining(plan))

        def erase() -> list[Committed]:
            drafts = self._drafts(plan)
            note_remaining(self._home, self._journal.tail.seq + sum(len(draft.payloads) for draft in drafts), remaining)
            commits = self._journal.append(drafts, self._now())
            self._erase(plan.seqs, plan.vectors)
            return commits

        event = self._projector.remove(erase)[-1].events[-1]
        payload: MemoryPurged = event.payload  # type: ignore[assignment]
        return self._complete([(event.seq, payload)])[0]

    def expire(self, ids: Sequence[str]) -> int:
        """Purge deleted memories alone, neither what was derived from them nor what repeats them; return how many had words left."""
        with self._writer.exclusive():
            self._writer.flush()
            wanted = [one for one in ids if not self._is_there(one)]
            plan = self._planned(Criteria(tuple(wanted)), keeps_copies=True, keeps_derived=True, may_be_empty=True)
            if plan.seqs:
                self._carry_out(plan)
            return len(plan.ids) if plan.seqs else 0

    def check_receipt(self, receipt: bytes | str | PurgeReceipt) -> ReceiptCheck:
        """Check a receipt against this store's journal.

        Raises
        ------
        InvalidInputError
            It is no receipt, was changed, or is of another store.
        JournalError
            What it says does not hold.
        """
        found = read_receipt(receipt)
        with self._projector.reading():
            return check_receipt(self._journal, found)

    def complete_begun(self) -> None:
        """Complete the purges without a receipt here, left by a killed process or made elsewhere, if the store can be written."""
        if self._journal.is_read_only:
            return
        try:
            if self._without_receipts():
                with self._writer.exclusive():
                    purges = self._without_receipts()
                    if begun := [seq for seq, _ in purges if is_begun(self._home, seq)]:
                        logger.warning("completing the purge of event %d, which was interrupted", begun[-1])
                        self._journal.database.erase()  # first: while a read lasts, nothing is rebuilt in vain
                    if purges:
                        self._complete(purges)
        except MemGraphError as error:
            logger.warning("a purge is not complete yet: %s", error.loggable)

    def complete_purges(self) -> None:
        """Remove again what earlier purges removed, where it came back, such as with a part of a backup.

        A `BusyError`: another process reads the database as it was before, so its files still hold what came back.
        """
        with self._writer.exclusive():
            purges, seqs, vectors = list[tuple[int, MemoryPurged]](), set[int](), defaultdict[str, set[int]](set)
            for seq, payload in list(self._journal.purges()):
                came_back = self._journal.unpurged(payload.seqs())
                left = list(vectors_left(self._journal, {one.model: one.rows for one in payload.vectors}))
                if came_back or left or not has_receipt(self._home, seq, payload):
                    note_remaining(self._home, seq, noted_remaining(self._home, seq))
                    seqs |= payload.seqs()
                    for model, row in left:
                        vectors[model].add(row)
                    purges.append((seq, payload))
            if purges:
                self._projector.remove(lambda: self._erase(seqs, vectors))
            if purges and not all(receipt.code for receipt in self._complete(purges)):
                raise BusyError("the database", pid=None, timeout_s=_BUSY_S)

    def _without_receipts(self) -> list[tuple[int, MemoryPurged]]:
        return [one for one in self._journal.purges() if not has_receipt(self._home, *one)]

    def _erase(self, seqs: set[int], vectors: Mapping[str, set[int]]) -> None:
        """Remove payloads and vectors, and what the baseline says of them, in the transaction that is open."""
        journal = self._journal
        journal.erase(seqs)
        with journal.committing() as tx:
            renew_baseline(journal, tx, seqs, self._now(), f"memgraph {release()}")
        for model, rows in vectors.items():
            journal.vectors(model).remove(rows)
        journal.remove_unnamed_vectors()

    def _complete(self, purges: Sequence[tuple[int, MemoryPurged]]) -> list[PurgeReceipt]:
        """Remove what was made of purged events, with the lock held, and return the receipts: unsigned if another process still reads it. Repeatable."""
        journal, projector = self._journal, self._projector
        seqs = [seq for seq, _ in purges]
        is_stale = not projector.is_rebuilt_since(max(seqs))
        is_here = is_stale or any(is_begun(self._home, seq) for seq in seqs)
        with timed(logger, logging.INFO, "purged") as counts:
            self._close_views()
            projector.graph.forget()
            removed = _remove_leftovers(self._home)
            with suppress(OSError):  # there is no folder for temporary files
                for prefix in (READ_ONLY_COPY, MOVED_COPY):
                    remove_abandoned(Path(gettempdir()), prefix)
            if is_stale:
                projector.rebuild()
            is_complete = projector.forget(erases=is_here)
            for model in journal.named.rows:  # last: a read that began before may have made a cache again
                journal.vectors(model).forget()
            receipts = [
                receipt_of(
                    journal,
                    seq,
                    payload,
                    removed=removed,
                    remaining=noted_remaining(self._home, seq),
                    exports=self._exports(payload.seqs()),
                )
                for seq, payload in purges
            ]
            counts["events"] = sum(len(payload.seqs()) for _, payload in purges)
        if not is_complete:
            logger.warning(
                "the purge of event %d is recorded; it is completed once another process ends its read", seqs[-1]
            )
            return [one.model_copy(update={"code": ""}) for one in receipts]
        for receipt in receipts:
            write_receipt(self._home, receipt)
        return receipts

    def _criteria(
        self, ids: Sequence[str], match: str | None, project: str | None, source: str | None, *, secrets: bool
    ) -> Criteria:
        known = checked(list[Name], [ids] if isinstance(ids, str) else ids, "ids")
        return Criteria(
            tuple(dict.fromkeys(known)),
            checked(Text | None, match, "match"),
            checked(Name | None, project, "project"),
            checked(Name | None, source, "source"),
            checked(bool, secrets, "secrets"),
        )

    def _planned(
        self, criteria: Criteria, *, keeps_copies: bool, keeps_derived: bool = False, may_be_empty: bool = False
    ) -> Plan:
        """Return the plan of a purge; refuse one of nothing, or of too much at once."""
        _ = self._projector.index
        rows = self._projector.rows
        plan = plan_of(self._journal, rows, criteria, keeps_copies=keeps_copies, keeps_derived=keeps_derived)
        if missing := [one for one in criteria.ids if one not in plan.ids]:
            raise NotFoundError("memory", missing[0])
        if not plan.seqs and not may_be_empty:
            raise NotFoundError("memory", _asked(criteria), problem=self._nothing(criteria, plan))
        if max(len(plan.gone()), len(plan.related), len(plan.followers)) > MAX_PURGED:
            problem = (
                f"would remove {len(plan.gone()):,} memories; purge at most {MAX_PURGED:,} at once, by source or match"
            )
            raise InvalidInputError(problem, field="purge", value=_asked(criteria))
        return plan

    def _remaining(self, plan: Plan) -> list[RemainingName]:
        return remaining_names(self._journal.every_line(), plan.is_said)

    def _nothing(self, criteria: Criteria, plan: Plan) -> str:
        if criteria.secrets:
            left = without_names(self._remaining(plan))
            return (
                f"nothing with a recognised secret can be removed: it is only in {phrase_of(left)}"
                if left
                else "no recognised secret is stored"
            )
        if criteria.match is None:
            if criteria.project is not None:
                advice = f"`memgraph query --cypher '{_PROJECTS}'` lists the projects"
                return f"nothing in the journal is of project {criteria.project!r}; {advice}"
            advice = "`memgraph show ID` names a memory's source, `memgraph query sources_read` lists what was read"
            return f"nothing in the journal rests on source {criteria.source!r}; {advice}"
        if left := self._remaining(plan):
            return (
                f"nothing that says {criteria.match!r} can be removed: it is only in names that are signed, or that the journal needs: "
                f"{phrase_of(left)}"
            )
        return (
            f"nothing in the journal says {criteria.match!r}, in whatever case: what was purged before is gone already"
        )

    def _drafts(self, plan: Plan) -> list[CommitDraft]:
        """Return the commits of a purge. The last one is the purge itself, so that one that is cut short leaves no memory half gone."""
        gone = plan.gone()

        def stays(memory_id: str) -> bool:
            return memory_id not in gone and self._is_there(memory_id)

        drafts = []
        for back, links in undeletions(self._journal, plan.restated, stays, model=self._writer.model):
            scope, task_id = scope_of(back.memory), back.memory.task_id
            clean = [
                one.model_copy(update={"reason": None}) if one.reason and plan.is_said(one.reason) else one
                for one in links
            ]
            drafts.append(CommitDraft(scope, [back, *clean], task_id=task_id, actor="system"))
        drafts += [CommitDraft(scope, [payload], actor="system") for scope, payload in plan.again]
        payload = MemoryPurged(
            ids=plan.ids,
            derived_ids=plan.derived,
            copied_ids=plan.copied,
            restated_ids=plan.restated,
            kept_ids=plan.kept,
            related_ids=sorted(plan.related),
            ranges=ranges_of(plan.seqs),
            vectors=[PurgedRows(model=model, rows=sorted(rows)) for model, rows in plan.vectors.items() if rows],
            followers=[Follower(id=one, previous_id=before) for one, before in plan.followers.items()],
            purged_at=self._now(),
        )
        return [*drafts, CommitDraft("system", [payload], actor="user")]

    def _exports(self, seqs: Collection[int]) -> list[KnownExport]:
        """Return the files that may hold what some events state: exports and backups written since that was recorded or, if it was imported, happened."""
        lines = self._journal.every_line(min(seqs, default=1) - 1)
        heads = (orjson.loads(line.head) for line in lines if line.seq in seqs)
        since = min((min(head["timestamp"], head["occurred_at"] or "9999") for head in heads), default="")
        backups = {str(one.content["path"]): one.timestamp for one in self._journal.events_of(BackupMade.TYPE)}
        written = [
            *known_exports(self._home),
            *(
                KnownExport(path=path, at=at, kind="backup", is_there=Path(path).exists())
                for path, at in backups.items()
            ),
        ]
        return [one for one in written if one.at >= since]

    def _present(self, memory_id: str) -> Row | None:
        return self._projector.rows.get("Memory", memory_id)

    def _is_there(self, memory_id: str) -> bool:
        return self._present(memory_id) is not None

    def _last_rows(self, memory_ids: Sequence[str], says: Says | None) -> dict[str, tuple[Row, list[str]]]:
        """Return the present rows of memories, or the last ones of deleted memories; and where they match, unless their preview shows it."""
        found = {one: row for one in memory_ids if (row := self._present(one)) is not None}
        missing = [one for one in memory_ids if one not in found]
        found |= {one.row["id"]: one.row for one in deleted(self._journal, missing)}
        rows = {one: found.get(one, {}) for one in memory_ids}
        places = matched_in(self._journal.lines(), says, rows) if says else {}
        return {one: (row, places.get(one, [])) for one, row in rows.items()}


def _asked(criteria: Criteria) -> str:
    return criteria.match or criteria.project or criteria.source or ", ".join(criteria.ids) or "secrets"


def _remove_leftovers(home: Path) -> list[str]:
    """Remove the files that may repeat memories and are neither journal, rows, graph nor index; return their names in the store's directory."""
    found = [*(home / name for name in _FOLDERS), *(path for pattern in _TEMPORARY for path in home.glob(pattern))]
    try:
        removed = [path for path in found if path.exists()]
        for path in removed:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)  # another process may be making a file in it
            clear(path) if path.exists() else None
    except OSError as error:
        raise StorageError(f"cannot be removed: {error.strerror}", path=Path(error.filename or home)) from None
    names = [str(path.relative_to(home)) for path in removed]
    return [*names, ANSWERS] if blank_answers(home / ANSWERS) else names
