"""Repair of a store that cannot be opened: diagnose its journal, accept it as it is, cut it, or restore it from a backup.

What concerns the journal's trust is reported as opening the store reports it, once by a process. What a repair removes is kept in
``quarantine/`` in the store's directory, as lines of JSON.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memgraph.config import AgentMemoryConfig, load_config
from memgraph.diagnostics.reports import report_finding
from memgraph.disk.files import make_private_folder, sync_folder, write_private
from memgraph.disk.lock import writer_lock
from memgraph.errors import (
    BackupError,
    DamagedJournalError,
    InvalidInputError,
    JournalError,
    KeyMissingError,
    MemGraphError,
    StorageError,
)
from memgraph.journal import legacy
from memgraph.journal.envelope import Chain, CommitDraft, Line, LineError, unseal_alone, unseal_any
from memgraph.journal.head_file import Head, HeadFile
from memgraph.journal.journal import Journal
from memgraph.journal.key_providers import FileKeys, configured_keys
from memgraph.journal.keyring import KeyRing
from memgraph.journal.opening import FILE, Identity, add_store, id_of, identify, identity_in, opened, temporary
from memgraph.journal.sql import DamagedDatabaseError, Database
from memgraph.model.base import Callback, checked
from memgraph.model.events.payload import MAX_WHOLE, Payload, Whole
from memgraph.model.events.store import (
    AcceptedWitness,
    JournalCut,
    JournalRepaired,
    MemoryPurged,
    PurgedRows,
    StoreCreated,
    StoreRestored,
    ranges_of,
)
from memgraph.ports import Clock, KeyProvider, Progress
from memgraph.store.backups import damaged
from memgraph.store.opening import known_id, release, times_of
from memgraph.store.purge.plan import records
from memgraph.store.purge.purging import RECEIPTS, is_genuine, read_receipt, vectors_left
from memgraph.store.restoring import chain_of, fill

WitnessState = Literal["agrees", "missing", "damaged", "ahead", "behind", "other"]
QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True)
class Witness:
    """What a head names: an event of the journal, another of its number, or one after its end ("ahead"); the one in the database may be "behind"."""

    path: Path | str
    state: WitnessState
    seq: int | None = None
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """The last event of a journal's last whole commit, and what its head file states, and the database's head (`row`) if it contradicts."""

    path: Path | str
    seq: int
    signature: str
    head: Witness
    row: Witness | None = None

    @property
    def contradicting(self) -> list[Witness]:
        """The heads that state something else, which an acceptance would correct."""
        return [one for one in (self.head, self.row) if one is not None and one.state != "agrees"]

    @property
    def is_contradicted(self) -> bool:
        """Whether there are any."""
        return bool(self.contradicting)

    @property
    def lost(self) -> range:
        """Numbers of the events that are known to have been written and are missing."""
        return range(self.seq + 1, max([self.seq, *(one.seq or 0 for one in self.contradicting)]) + 1)


@dataclass(frozen=True, slots=True)
class Damage:
    """Where a journal is damaged: what is kept ends with the last whole commit that verifies; later events verify on their own.

    An event of a later release is no damage, and nothing may be cut; nor in the history, for which a baseline stands.
    """

    problem: str
    path: Path | str
    kept: Chain
    later_events: int
    known_seq: int
    is_later_release: bool = False
    is_in_history: bool = False

    @property
    def lost(self) -> int:
        """Number of events that are known to have been written and would not be replayed after a cut."""
        return max(0, self.known_seq - self.kept.seq)


@dataclass(frozen=True, slots=True)
class Cut:
    """A journal that was cut: the last event kept, the number of events lost, the folder with the rest, and the event that records it."""

    kept_seq: int
    lost: int
    quarantine: Path
    cut_bytes: int
    recorded_as: int


@dataclass(frozen=True, slots=True)
class JournalRestored:
    """A journal that was restored from a backup: its last event from there, and its last one now, which the damaged journal still had."""

    backup_seq: int
    kept_seq: int
    lost: int
    quarantine: Path
    purged_again: int
    recorded_as: int


def repair_store(
    config: AgentMemoryConfig | None = None,
    *,
    accept_head: Condition | None = None,
    accepted_by: str | None = None,
    reason: str | None = None,
    clock: Clock | None = None,
    keys: KeyProvider | None = None,
) -> Condition:
    """Verify a store's journal by itself and return its condition; change something only on request.

    A store is rejected if its journal ends before its head file, if the head file is damaged, or if it names another event of the same
    number; and if the head in the database does not name the last event. Such a journal can be accepted as it is, in exactly the condition
    that a first call returned. The acceptance is recorded as an event (``journal.repaired``). A journal whose own events do not verify
    cannot be accepted: restore a backup.
    """
    config = config or load_config()
    if accept_head is not None and not isinstance(accept_head, Condition):
        raise InvalidInputError(
            "must be the result of an earlier repair_store() call", field="accept_head", value=accept_head
        )
    with _reported(config, clock), _unwitnessed(config, keys, changes=accept_head is not None) as journal:
        if accept_head is None:
            found = _examined(journal)
            if any(one.state != "missing" for one in found.contradicting):  # opening makes a missing one
                _report(config, JournalError("a witness contradicts the journal"), clock)
            return found
        with journal.held():
            found = _examined(journal)
            if found != accept_head:
                raise _changed(journal)
            if not found.is_contradicted:
                raise JournalError(f"the journal in {journal.path} matches its head file: there is nothing to accept")
            by = accepted_by or f"memgraph {release()}"
            first: list[Payload] = [] if found.seq else [StoreCreated(created_by=by)]
            now = max(times_of(clock)(), journal.tail.timestamp)
            with journal.committing() as tx:
                journal.put_head(tx)  # one that was not believed, or of other events
                journal.append([CommitDraft("system", [*first, _record_of(found, now, by, reason)], actor="user")], now)
            journal.accept_end()
            return condition_of(journal, journal.named_by_head())


def baseline_problem(config: AgentMemoryConfig | None = None, *, keys: KeyProvider | None = None) -> str | None:
    """Return why the baseline of a compacted journal cannot be used; None if it can, or if there is none. Changes nothing."""
    config = config or load_config()
    try:
        with _reported(config), _unwitnessed(config, keys) as journal:
            journal.rows_of_baseline()
    except KeyMissingError:
        raise
    except JournalError as error:
        return str(error)
    return None


def drop_baseline(config: AgentMemoryConfig | None = None, *, keys: KeyProvider | None = None) -> int:
    """Verify every event and do without the baseline, which only costs time at a rebuild; return the number of the last event."""
    config = config or load_config()
    with _reported(config), _unwitnessed(config, keys, changes=True) as journal, journal.held():
        if _examined(journal).row is not None:
            raise JournalError(
                f"the head in {journal.path} contradicts its events: see `memgraph repair --accept-head` first"
            )
        with journal.committing() as tx:
            tx.run("remove_baseline", journal.database.tenant)
            journal.baseline = None
            journal.put_head(tx)
        return journal.tail.seq


def find_damage(config: AgentMemoryConfig | None = None, *, keys: KeyProvider | None = None) -> Damage | None:
    """Verify a journal from its first event; return its damage and what could be kept, or None; an event of a later release is an error."""
    config = config or load_config()
    with _reported(config), _unwitnessed(config, keys) as journal:
        return _damage_in(journal)


def cut_journal(
    expected: Damage,
    config: AgentMemoryConfig | None = None,
    *,
    reason: str | None = None,
    clock: Clock | None = None,
    keys: KeyProvider | None = None,
) -> Cut:
    """Cut a damaged journal: keep what verifies, and move the rest to ``quarantine/`` in the store's directory.

    It is recorded as an event (``journal.cut``). Whether a backup has what is cut off should be looked at first: see `restore_journal`.
    If the journal has changed since `find_damage`, nothing is done.
    """
    config = config or load_config()
    if not isinstance(expected, Damage):
        raise InvalidInputError("must be the result of find_damage()", field="expected", value=expected)
    if expected.is_later_release:
        raise JournalError(f"{expected.problem}; that is no damage: install a newer memgraph, nothing was cut")
    by = f"memgraph {release()}"
    with _unwitnessed(config, keys, changes=True) as journal, journal.held():
        if _damage_in(journal) != expected:
            raise _changed(journal)
        if expected.is_in_history:
            raise JournalError(
                f"{expected.problem}; that is among the events that the baseline stands for: cutting there would cut off everything. "
                "Restore it from a backup with `memgraph repair --from-backup FILE`"
            )
        now = max(times_of(clock)(), expected.kept.timestamp)
        place = quarantine_folder(config.home, now)
        size = _keep(_readable(journal, expected.kept.seq), place)
        with journal.committing() as tx:
            tx.run("remove_events_after", journal.database.tenant, expected.kept.seq)
            journal.put_head(tx)  # `tail` is where the damage begins
            found = condition_of(journal, journal.named_by_head())
            payloads: list[Payload] = [] if found.seq else [StoreCreated(created_by=by)]
            payloads.append(
                JournalCut(
                    part="tail",
                    seq=found.seq,
                    signature=found.signature,
                    quarantine=place.name,
                    cut_bytes=size,
                    events_lost=expected.lost,
                    cut_at=now,
                    cut_by=by,
                    reason=reason,
                )
            )
            if found.is_contradicted:
                payloads.append(_record_of(found, now, by, reason))
            (commit,) = journal.append([CommitDraft("system", payloads, actor="user")], now)
        journal.accept_end()
        recorded = next(event.seq for event in commit.events if isinstance(event.payload, JournalCut))
        return Cut(found.seq, expected.lost, place, size, recorded)


def restore_journal(
    path: str | Path,
    config: AgentMemoryConfig | None = None,
    *,
    bases: Sequence[str | Path] = (),
    until: int | None = None,
    clock: Clock | None = None,
    keys: KeyProvider | None = None,
    progress: Progress | None = None,
) -> JournalRestored:
    """Replace a store's damaged journal by that of a backup, in place and in one transaction.

    Events that were written after the backup are kept as far as they verify and follow its last one, so damage in the part that the
    backup has loses nothing. What is replaced is kept in ``quarantine/`` in the store's directory, and an event (``store.restored``) says
    what was done. What was purged after the backup was made is purged again, as far as the store's journal or its receipts still name it.
    With `until`, only the commits up to that event are restored, and none after it is kept.
    """
    checked(Callback, progress, "progress")
    checked(Whole | None, until, "until")
    config = config or load_config()
    provider = keys or configured_keys(config)
    chain = chain_of([path, *bases], provider, config.keys_home)
    last = chain[-1].manifest
    ring = KeyRing.from_providers(last.store_id, provider, FileKeys(config.keys_home))
    if ring.active is None:
        raise KeyMissingError(f"the signing key of the store {last.store_id} is missing: {ring.remedy}")
    _check_store(config, last.store_id, chain[-1].path)
    now = times_of(clock)()
    journal, place = _made_usable(config, last.store_id, ring, now)
    try:
        with journal.held():
            known = journal.known_seq()
            present = list(_readable(journal))
            _keep(present, place)
            with journal.committing() as tx:
                tenant = journal.database.tenant
                for name in ("remove_events", "remove_archives", "remove_baseline"):
                    tx.run(name, tenant)
                head = fill(journal.database, chain, config.home, until=until, progress=progress, keeps=True)
                if until is None:
                    journal.put(tx, _rest(present, head, last.store_id, ring))
                try:
                    journal.baseline = None
                    journal.read_to_end()
                except KeyMissingError:
                    raise
                except JournalError as error:
                    raise damaged(chain[-1].path, f"its events do not verify ({error})") from None
                if journal.tail.seq < head.seq:
                    raise damaged(chain[-1].path, "its journal does not end where its manifest says")
                kept = journal.tail
                journal.put_head(tx)
                again, back = _purged_again(journal, _known_purges(config.home, journal, present), now)
                lost = max(0, known - kept.seq)
                record = StoreRestored(
                    backup_id=last.backup_id,
                    made_at=last.made_at,
                    seq=head.seq,
                    signature=head.signature,
                    backup_seq=last.head.seq,
                    kept_seq=kept.seq,
                    events_lost=lost,
                    quarantine=place.name,
                    restored_at=now,
                    restored_by=f"memgraph {release()}",
                )
                commits = journal.append([CommitDraft("system", [record, *again], actor="user")], now)
            for model in journal.named.rows:  # what the caches hold may be of the history that was replaced
                journal.vectors(model).forget()
            journal.accept_end()
    finally:
        journal.close()
    purged = back | {seq for purge in again for seq in purge.seqs()}
    if purged:
        _keep((line.purged() if line.seq in purged else line for line in present), place)
    return JournalRestored(head.seq, kept.seq, lost, place, len(purged), commits[0].events[0].seq)


def quarantine_folder(home: Path, now: str) -> Path:
    """Make the folder for what a repair removes, named after the time."""
    name = "".join(one for one in now if one.isalnum())
    for number in range(1_000):
        path = home / QUARANTINE / (f"{name}-{number}" if number else name)
        if not path.exists():
            make_private_folder(path)
            return path
    raise StorageError("has too many folders of this moment", path=home / QUARANTINE)


class Unwitnessed(Journal):
    """A journal that is read regardless of its head and its head file."""

    def refresh(self) -> None:
        """Do nothing: it is read to its end by `read_to_end`."""

    def _compare(self, head: Head | None) -> None:
        """Compare nothing: `condition_of` says what the head file states."""

    def _write_head_file(self) -> None:
        """Write nothing until the end is accepted."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the writer lock, whatever the journal is like."""
        with self.database.lock().held(self.lock_timeout_s):
            self.holds_lock = True
            try:
                yield
            finally:
                self.holds_lock = False

    def accept_end(self) -> None:
        """Let the head file name the journal's end."""
        self._heads.replace(Head(self.tail.seq, self.tail.signature))

    def named_by_head(self) -> Head | None:
        """Return what the head file states; None if it cannot be read, or there is none."""
        try:
            head = self._heads.read()
        except JournalError:
            return None
        return head if head is None or head.seq <= MAX_WHOLE else None

    def named_by_row(self) -> Head | None:
        """Return what the head in the database states; None if opening would not believe it, or it cannot be read."""
        try:
            with self.database.reading() as tx:
                found = tx.one("head", self.database.tenant)
        except StorageError:
            return None
        return Head(found[0], found[1].hex()) if found and self._is_vouched(*found) else None

    def last_event(self) -> Head:
        """Return the last event in the database, verified or not."""
        with self.database.reading() as tx:
            return Head(*self._end_of(tx.one("last_event", self.database.tenant)))

    def stored_events(self) -> int:
        """Return the number of the last event in the database, verified or not; 0 if there is none, or it cannot be read."""
        try:
            with self.database.reading() as tx:
                found = tx.one("last_event", self.database.tenant)
        except StorageError:
            return 0
        return int(found[0]) if found else self.archived_until()

    def known_seq(self) -> int:
        """Return the last event that the database and the head file name."""
        named = self.named_by_head()
        return max(self.stored_events(), named.seq if named else 0)


@contextmanager
def _unwitnessed(
    config: AgentMemoryConfig, keys: KeyProvider | None, *, changes: bool = False
) -> Iterator[Unwitnessed]:
    """Give the journal of a store, which is not read yet. One of an earlier release is read in a copy, or moved if it is changed."""
    store_id, ring = identify(
        config.home, keys or configured_keys(config), keys_home=config.keys_home, server=config.server
    )
    with as_stored(config, store_id, ring, changes=changes) as journal:
        yield journal


@contextmanager
def as_stored(
    config: AgentMemoryConfig, store_id: str, ring: KeyRing | None, *, changes: bool = False
) -> Iterator[Unwitnessed]:
    """Give the journal of an existing store, which is not read yet. Without keys it cannot be verified."""
    is_earlier = legacy.is_there(config.home) and not (config.home / FILE).exists()
    database = (
        opened(config.home, config.server, creates=False)
        if changes or not is_earlier
        else temporary(config.home, "it is only examined")
    )
    try:
        found = identity_in(database)
        is_earlier = found is None and legacy.is_there(config.home)
        identity = found or Identity(*legacy.read_manifest(config.home) if is_earlier else (store_id,))
        journal = _journal(config, database, identity, ring)
        if is_earlier:
            journal.path, refused, database.refused = config.home / legacy.FOLDER, database.refused, None
            with database.writing(config.lock_timeout_s) as tx:
                add_store(database, *identity)
                journal.put(tx, legacy.readable(config.home))
            database.refused = refused
        yield journal
    finally:
        database.close()


def _journal(config: AgentMemoryConfig, database: Database, identity: Identity, ring: KeyRing | None) -> Unwitnessed:
    return Unwitnessed(
        database,
        config.home,
        identity.store_id,
        ring,
        heads=HeadFile(config.keys_home, *identity),
        lock_timeout_s=config.lock_timeout_s,
    )


def _examined(journal: Unwitnessed) -> Condition:
    named = journal.named_by_head()
    journal.read_to_end()
    return condition_of(journal, named)


def condition_of(journal: Unwitnessed, named: Head | None) -> Condition:
    """Compare the end of what was read with what the head file stated before: another process may have committed since."""
    end, path = journal.tail, journal.head_path
    if named is None:
        is_new = end.seq == 0 and not path.exists()
        state: WitnessState = "agrees" if is_new else "damaged" if path.exists() else "missing"
        witness = Witness(path, state)
    else:
        signature = bytes.fromhex(named.signature).hex()
        if named.seq > end.seq:
            state = "ahead"
        else:
            is_known = named.seq == 0 or journal.signature_of(named.seq) == signature or journal.was_resealed_at(named)
            state = "agrees" if is_known else "other"
        witness = Witness(path, state, named.seq, signature)
    return Condition(journal.path, end.seq, end.signature, witness, _contradicting_row(journal))


def _contradicting_row(journal: Unwitnessed) -> Witness | None:
    with journal.database.reading():  # both of one moment
        named, last = journal.named_by_row(), journal.last_event()
    if named is None or named == last:
        return None
    is_known = named.seq == 0 or journal.signature_of(named.seq) == named.signature
    state: WitnessState = "ahead" if named.seq > journal.tail.seq else "behind" if is_known else "other"
    return Witness(journal.path, state, named.seq, named.signature)


def _damage_in(journal: Unwitnessed) -> Damage | None:
    try:
        journal.read_to_end()
    except DamagedJournalError as error:
        return _damage(journal, str(error).partition(";")[0], is_later_release=error.concerns_envelope)
    except DamagedDatabaseError as error:
        return _damage(journal, str(error))
    return None


def _damage(journal: Unwitnessed, problem: str, *, is_later_release: bool = False) -> Damage:
    kept = journal.tail
    later, known = 0, kept.seq
    for line in _readable(journal, kept.seq):
        with suppress(LineError, JournalError):
            seq = unseal_alone(line, journal.store_id, journal.ring.verifying).seq
            later, known = later + 1, max(known, seq)
    named = [one.seq for one in (journal.named_by_head(), journal.named_by_row()) if one is not None]
    return Damage(
        problem=problem,
        path=journal.path,
        kept=kept,
        later_events=later,
        known_seq=max([known, *named]),
        is_later_release=is_later_release,
        is_in_history=journal.archived_until() > kept.seq,
    )


def _readable(journal: Unwitnessed, after: int = 0) -> Iterator[Line]:
    """Yield the lines after an event, as far as they can be read: one that is missing or damaged ends nothing."""
    while True:
        try:
            for line in journal.every_line(after, until=MAX_WHOLE):
                after = line.seq
                yield line
            return
        except (StorageError, JournalError):
            after += 1
            if after > MAX_WHOLE or after > journal.stored_events():
                return


def _keep(lines: Iterable[Line], place: Path) -> int:
    """Put lines into quarantine and return their size in bytes."""
    data = b"".join(line.data + b"\n" for line in lines)
    write_private(place / "events.jsonl", data)
    sync_folder(place.parent)
    return len(data)


def _rest(present: Sequence[Line], end: Head, store_id: str, ring: KeyRing) -> Iterator[Line]:
    """Yield the whole commits of a journal that follow an event, as far as they verify."""
    chain, run = Chain(store_id, end.seq, end.signature), list[Line]()
    for line in present:
        if line.seq <= end.seq:
            continue
        try:
            found, chain = unseal_any(line, chain, ring.verifying)
        except (LineError, JournalError):
            return
        run.append(line)
        if found.last:
            yield from run
            run = []


def _made_usable(config: AgentMemoryConfig, store_id: str, ring: KeyRing, now: str) -> tuple[Unwitnessed, Path]:
    """Return the journal of a store, to be filled anew, and the folder for what is replaced: a damaged database goes there, and a new one begins."""
    path = config.home / FILE
    with nullcontext() if config.server else writer_lock(config.home).held(config.lock_timeout_s):
        try:
            database, identity = _opened(config, store_id)
            place = quarantine_folder(config.home, now)
        except (DamagedDatabaseError, DamagedJournalError):
            if config.server:
                raise
            place = quarantine_folder(config.home, now)
            for one in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
                with suppress(FileNotFoundError):
                    one.rename(place / one.name)
            database, identity = _opened(config, store_id)
    return _journal(config, database, identity, ring), place


def _opened(config: AgentMemoryConfig, store_id: str) -> tuple[Database, Identity]:
    """Return the database and its store, which is added if there is none."""
    database = opened(config.home, config.server)
    try:
        if (identity := identity_in(database)) is None:
            add_store(database, store_id)
        return database, identity or Identity(store_id)
    except BaseException:
        database.close()  # else it would remove the write-ahead log of the one that takes its place
        raise


def _check_store(config: AgentMemoryConfig, store_id: str, path: Path) -> None:
    home = config.home
    if not config.server and (not home.is_dir() or not any(home.iterdir())):
        raise BackupError(f"there is no store at {home}: `memgraph restore` makes one from this backup", path=path)
    try:
        found = id_of(home, config.server)
    except MemGraphError:
        return  # damaged or missing: the backup has it
    if found != store_id:
        raise BackupError(
            f"is a backup of another store, {store_id}; the one at {config.server or home} is {found}", path=path
        )


@dataclass(frozen=True, slots=True)
class _KnownPurge:
    """A purge that the store has made, by its event or its receipt: its number and time, what was removed, and what it said."""

    event: int
    purged_at: str
    seqs: set[int]
    said: object


def _known_purges(
    home: Path, journal: Journal, lines: Sequence[Line]
) -> tuple[list[_KnownPurge], list[tuple[int, str]]]:
    """Return the purges that a store has made, and (last event kept, time) of restorations. What is not genuine is left out."""
    purges: dict[int, _KnownPurge] = {}
    restorations = []
    for line in lines:
        if line.type not in (MemoryPurged.TYPE, StoreRestored.TYPE):
            continue
        with suppress(LineError, JournalError):
            said = unseal_alone(line, journal.store_id, journal.ring.verifying).payload
            if isinstance(said, MemoryPurged):
                purges[line.seq] = _KnownPurge(line.seq, said.purged_at, said.seqs(), said)
            elif isinstance(said, StoreRestored):
                restorations.append((said.seq if said.kept_seq is None else said.kept_seq, said.restored_at))
    for path in sorted((home / RECEIPTS).glob("*.json")):
        try:
            receipt = read_receipt(path.read_bytes())
        except (OSError, MemGraphError):
            continue
        if receipt.event not in purges and is_genuine(journal, receipt):
            seqs = {seq for first, last in receipt.ranges for seq in range(first, last + 1)}
            purges[receipt.event] = _KnownPurge(receipt.event, receipt.purged_at, seqs, receipt)
    return list(purges.values()), restorations


def _purged_again(
    journal: Journal, known: tuple[list[_KnownPurge], list[tuple[int, str]]], now: str
) -> tuple[list[MemoryPurged], set[int]]:
    """Erase again what earlier purges removed; return the events that record what no event names, and what came back otherwise.

    Numbers are of the same events only up to where the histories part: a former restoration may have given them to others.
    """
    purges, restorations = known
    named = journal.purged_seqs()
    back = set(journal.unpurged(named))
    seqs: set[int] = set()
    ids: dict[str, list[str]] = defaultdict(list)
    restated: list[str] = []
    for purge in purges:
        parted = [kept for kept, at in restorations if purge.event > kept and purge.purged_at <= at]
        last = min([journal.tail.seq, *parted])
        missing = {seq for seq in purge.seqs if seq <= last} - named
        if missing:
            seqs |= missing
            for field in ("ids", "derived_ids", "copied_ids", "kept_ids"):
                ids[field] += getattr(purge.said, field)
            restated += purge.said.restated_ids  # type: ignore[attr-defined]
    again = []
    if seqs:
        gone = {one for field in ("ids", "derived_ids", "copied_ids") for one in ids[field]}
        vectors, stated = _vectors(journal, seqs, gone)
        ids["copied_ids"] += [one for one in restated if one not in stated]  # the event that restated it is lost
        again.append(
            MemoryPurged(
                **{field: list(dict.fromkeys(found)) for field, found in ids.items()},
                ranges=ranges_of(seqs),
                vectors=[PurgedRows(model=model, rows=sorted(rows)) for model, rows in vectors.items()],
                purged_at=now,
            )
        )
        for model, rows in vectors.items():
            journal.vectors(model).remove(rows)
    journal.erase(seqs | back)
    wanted: dict[str, list[int]] = defaultdict(list)
    for _, purged in journal.purges():
        for one in purged.vectors:
            wanted[one.model] += one.rows
    for model, row in list(vectors_left(journal, wanted)):
        journal.vectors(model).remove([row])
    return again, back


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
        elif record.type in ("memory.added", "memory.undeleted", "memory.revised", "memory.merged"):
            stated.add(content["memory"]["id"] if "memory" in content else content["id"])
    return rows, stated


def _changed(journal: Journal) -> JournalError:
    return JournalError(f"the journal in {journal.path} has changed in the meantime; run `memgraph repair` again")


def _record_of(found: Condition, now: str, accepted_by: str, reason: str | None) -> JournalRepaired:
    return JournalRepaired(
        seq=found.seq,
        signature=found.signature,
        witnesses=[
            AcceptedWitness(
                kind="head", state="other" if one.state == "behind" else one.state, seq=one.seq, signature=one.signature
            )
            for one in found.contradicting
        ],
        events_lost=len(found.lost),
        dropped_bytes=0,
        repaired_at=now,
        repaired_by=accepted_by,
        reason=reason,
    )


@contextmanager
def _reported(config: AgentMemoryConfig, clock: Clock | None = None) -> Iterator[None]:
    """Report an error of the journal that a block raises, as opening the store does."""
    try:
        yield
    except JournalError as error:
        _report(config, error, clock)
        raise


def _report(config: AgentMemoryConfig, error: JournalError, clock: Clock | None = None) -> None:
    report_finding(config, error, now=times_of(clock), store_id=known_id(config))
