"""Repairs a damaged journal from a backup: the backup's events, then those of the journal that still verify after them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from memgraph.config import AgentMemoryConfig, load_config
from memgraph.disk.files import make_private_folder, sync_folder, write_all
from memgraph.disk.folders import TemporaryFolder, remove_abandoned
from memgraph.errors import BackupError, JournalError, KeyMissingError, StorageError
from memgraph.journal import swap
from memgraph.journal.baseline.header import FOLDER, HEADER
from memgraph.journal.closed.condensed import NAME as CONDENSED
from memgraph.journal.closed.files import ARCHIVE, files_in
from memgraph.journal.closed.manifest import NAME as MANIFEST
from memgraph.journal.envelope import CommitDraft, LineError, unseal
from memgraph.journal.keys.providers import FileKeys, configured_keys
from memgraph.journal.keys.ring import KeyRing
from memgraph.journal.opening import read_manifest
from memgraph.journal.purge.intent import Intent
from memgraph.journal.purge.lines import is_purged, unseal_purged
from memgraph.journal.purge.rewriting import left_in
from memgraph.journal.repair import Unwitnessed
from memgraph.journal.replay import Offset
from memgraph.journal.segments import Line, Segments
from memgraph.model.base import Callback, checked
from memgraph.model.events.payload import Payload, Whole
from memgraph.model.events.store import StoreRestored
from memgraph.model.timestamps import to_iso
from memgraph.ports import Clock, KeyProvider, Progress
from memgraph.store.backup import manifest
from memgraph.store.backup.purged_again import complete, known_purges, purge_again
from memgraph.store.backup.quarantine import (
    accept_end,
    exclusive,
    is_unsigned_file,
    quarantine_folder,
    readable_lines,
    set_aside,
)
from memgraph.store.backup.restoring import file_of, head_of
from memgraph.store.backup.unpacking import chain_of, unpack
from memgraph.store.opening import open_store_journal, release, utc_now
from memgraph.store.purge.leftovers import REPAIRING


@dataclass(frozen=True, slots=True)
class JournalRestored:
    """A journal that was restored from a backup.

    Attributes
    ----------
    backup_seq : int
        The last event that was taken from the backup.
    kept_seq : int
        The last event now: beyond `backup_seq`, events of the damaged journal that still verify.
    lost : int
        Number of events that are known to have been written after it.
    quarantine : Path
        Folder with the files that were replaced.
    purged_again : int
        Number of events that were purged after the backup was made, and that the repair has purged again.
    has_texts_back : bool
        Whether the backup was made before the last retention, so that texts of deleted memories may be there again.
    recorded_as : int
        The event that records it.
    """

    backup_seq: int
    kept_seq: int
    lost: int
    quarantine: Path
    purged_again: int
    has_texts_back: bool
    recorded_as: int


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
    """Replace a store's damaged journal by that of a backup, in place.

    Events that were written after the backup are kept as far as they verify and follow its last one, so damage in the part that the
    backup has loses nothing. The files that are replaced are kept in ``quarantine/`` in the store's directory, and an event
    (``store.restored``) says what was done. Graph and index are rebuilt at the next use. What was purged after the backup was made is purged
    again, as far as the store's journal or its receipts still name it.

    A crash in the midst loses nothing: the journal is refused as before, and the same call repairs it.

    Parameters
    ----------
    until : int, optional
        Restore only the commits up to this event, and keep none after it.

    Raises
    ------
    BackupError
        The backup is damaged, or is of another store. Nothing is changed.
    """
    checked(Callback, progress, "progress")
    checked(Whole | None, until, "until")
    config = config or load_config()
    provider, time = keys or configured_keys(config), clock or utc_now
    chain = chain_of(
        [file_of(one) for one in (path, *bases)], lambda one: manifest.seals_of(provider, config.keys_home, one)
    )
    last = chain[-1].manifest
    ring = KeyRing.from_providers(last.store_id, provider, FileKeys(config.keys_home))
    if ring.active is None:
        raise KeyMissingError(f"the signing key of the store {last.store_id} is missing: {ring.remedy}")
    _check_store(config.home, last.store_id, chain[-1].path)
    folder = config.home / "journal"
    make_private_folder(folder)
    is_plan_damaged = _settled(folder, last.store_id, ring, config)
    with ExitStack() as stack:
        remove_abandoned(config.home, REPAIRING)
        new = TemporaryFolder(config.home, REPAIRING)
        stack.callback(new.remove)
        unpack(chain, new.path, progress)
        head = head_of(new.path / "journal", last, until)
        stack.enter_context(exclusive(folder, config.lock_timeout_s, discards_plan=is_plan_damaged))
        restored = _verified(new.path, last.store_id, ring, config.keys_home, chain[-1].path).tail
        if (restored.chain.seq, restored.chain.signature) != (head.seq, head.signature):
            raise manifest.damaged(chain[-1].path, "its journal does not end where its manifest says")
        if until is None:
            _append_rest(folder, new.path / "journal", restored, ring)
        journal = _verified(new.path, last.store_id, ring, config.keys_home, chain[-1].path)
        kept = journal.tail
        known_seq, present = _known(config, last.store_id, ring)
        intent = Intent(present)
        again = purge_again(known_purges(config.home, present), journal, to_iso(time()))
        back = len(left_in(journal.segments, journal.purged.read()))
        if again or back:  # from now on the next opening completes it
            intent.write({})
        place = quarantine_folder(config.home, to_iso(time()))
        has_texts_back = _is_other_proof(folder / CONDENSED, new.path / "journal" / CONDENSED)
        _replace(folder, new.path / "journal", place)
    lost = max(0, known_seq - kept.chain.seq)
    record = StoreRestored(
        backup_id=last.backup_id,
        made_at=last.made_at,
        seq=head.seq,
        signature=head.signature,
        backup_seq=last.head.seq,
        kept_seq=kept.chain.seq,
        events_lost=lost,
        quarantine=place.name,
        restored_at=to_iso(time()),
        restored_by=f"memgraph {release()}",
    )
    records = [record, again] if again else [record]
    seq = _recorded(config, last.store_id, ring, kept, records, lambda: to_iso(time()))
    if intent.is_there:
        _complete_purges(config, keys, lambda: to_iso(time()))
    purged = back + (len(again.seqs()) if again else 0)
    return JournalRestored(head.seq, kept.chain.seq, lost, place, purged, has_texts_back, seq)


def _check_store(home: Path, store_id: str, path: Path) -> None:
    """Refuse a backup of another store, and a place that is no store."""
    if not home.is_dir() or not any(home.iterdir()):
        raise BackupError(f"there is no store at {home}: `memgraph restore` makes one from this backup", path=path)
    try:
        found = read_manifest(home / "journal" / "manifest.json")
    except (JournalError, StorageError):
        return  # damaged or missing: the backup has it
    if found != store_id:
        raise BackupError(f"is a backup of another store, {store_id}; the one at {home} is {found}", path=path)


def _settled(folder: Path, store_id: str, ring: KeyRing, config: AgentMemoryConfig) -> bool:
    """Complete a resealing that was cut off, and return whether that is impossible, because what it prepared is damaged."""
    try:
        swap.settle(folder, store_id, ring, keys_home=config.keys_home, lock_timeout_s=config.lock_timeout_s)
    except KeyMissingError:
        raise
    except JournalError:
        return True
    return False


def _verified(home: Path, store_id: str, ring: KeyRing, keys_home: Path, path: Path) -> Unwitnessed:
    """Verify the journal that was unpacked, and return it."""
    journal = Unwitnessed(home, store_id, ring, keys_home=keys_home)
    try:
        journal.load_to_end(by_checkpoint=False)
    except KeyMissingError:
        raise
    except JournalError as error:
        raise manifest.damaged(path, f"its events do not verify ({error})") from None
    return journal


def _append_rest(folder: Path, new: Path, end: Offset, ring: KeyRing) -> None:
    """Append the whole commits of a journal that follow an event, as far as they verify, to the segments that they are in."""
    chain, run = end.chain, list[Line]()
    segments = Segments(folder, 0)
    for line in readable_lines(segments, segments.holding(chain.seq + 1)):
        if f'"prev_signature":"{chain.signature}"'.encode() not in line.data:
            if run:
                return
            continue  # an event of the backup, or one that follows no other
        try:
            if is_purged(line.data):
                head, chain = unseal_purged(line.data, chain, lambda key_id: ring.verifying(key_id, None))
                is_last = head.last
            else:
                event, chain = unseal(line.data, chain, lambda key_id: ring.verifying(key_id, None))
                is_last = event.last
        except (LineError, JournalError):
            return
        if not line.whole:
            return
        run.append(line)
        if is_last:
            for one in run:
                _append(new / one.start.segment, one.data + b"\n")
            run = []


def _append(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _known(config: AgentMemoryConfig, store_id: str, ring: KeyRing) -> tuple[int, Unwitnessed]:
    """Return the last event that the present journal and its witnesses name, and that journal."""
    journal = Unwitnessed(config.home, store_id, ring, keys_home=config.keys_home)
    with suppress(JournalError, StorageError):  # damaged: its witnesses are asked all the same
        journal.load_to_end(by_checkpoint=False)
    return max([journal.tail.chain.seq, *(one.seq for one in journal.witnesses() if one.seq is not None)]), journal


def _replace(folder: Path, new: Path, place: Path) -> None:
    """Put the new segments, and what else is missing, in the place of the old ones, which are kept."""
    try:
        for path in (*files_in(folder), folder / MANIFEST, folder / "manifest.json"):
            if path.exists():
                set_aside(path, place)
        sync_folder(place)
        sync_folder(place.parent)
        _replace_baseline(folder, new, place)
        swap.set_plan_aside(folder, place)  # else the next opening would try to complete it
        names = {path.name for path in files_in(new)}  # plain ones
        (folder / MANIFEST).unlink(missing_ok=True)
        for path in reversed(files_in(folder)):
            if path.name not in names:
                path.unlink()
        for name in sorted(names):
            (new / name).replace(folder / name)
        if not _is_manifest(folder / "manifest.json"):
            (new / "manifest.json").replace(folder / "manifest.json")
        for path in (new / "vectors").glob("*.f32"):
            present = folder / "vectors" / path.name
            make_private_folder(present.parent)
            if not present.exists() or present.stat().st_size < path.stat().st_size:
                if present.exists():
                    shutil.move(present, place / present.name)
                path.replace(present)
        (folder / "verified.json").unlink(missing_ok=True)
        sync_folder(folder)
    except OSError as error:
        raise StorageError(
            f"cannot be replaced: {error.strerror}; what was there is in {place}. Try again, with the same backup",
            path=folder,
        ) from None


def _replace_baseline(folder: Path, new: Path, place: Path) -> None:
    """Keep the baseline, the archive and the proof of condensed segments, and put what the backup has in their place: all segments that it has are among the new ones."""
    for name in (HEADER, FOLDER, ARCHIVE, CONDENSED):
        if (folder / name).exists():
            shutil.move(folder / name, place / name)
        if (new / name).exists():
            (new / name).replace(folder / name)


def _is_other_proof(present: Path, restored: Path) -> bool:
    """Return whether a store had condensed segments that are not those of a backup."""
    if not present.exists():
        return any(map(is_unsigned_file, files_in(present.parent / ARCHIVE)))
    try:
        return not restored.exists() or restored.read_bytes() != present.read_bytes()
    except OSError:  # damaged: what it said is not known
        return True


def _is_manifest(path: Path) -> bool:
    try:
        return bool(read_manifest(path))
    except (JournalError, StorageError):
        return False


def _recorded(
    config: AgentMemoryConfig,
    store_id: str,
    ring: KeyRing,
    kept: Offset,
    records: Sequence[Payload],
    now: Callable[[], str],
) -> int:
    """Record the restoration, and let the head file name the journal's new end."""
    journal = Unwitnessed(config.home, store_id, ring, keys_home=config.keys_home, lock_timeout_s=config.lock_timeout_s)
    journal.load_to_end(by_checkpoint=False)
    with journal.locked():
        found = journal.condition()
        if found.seq < kept.chain.seq:
            raise JournalError(
                f"the journal under {journal.folder} has changed in the meantime; run `memgraph repair` again"
            )
        time = max(now(), journal.tail.chain.timestamp)
        journal.append([CommitDraft("system", records, actor="user")], time)
        accept_end(journal, found)
        return journal.tail.chain.seq


def _complete_purges(config: AgentMemoryConfig, keys: KeyProvider | None, now: Callable[[], str]) -> None:
    """Remove what the restored journal names as purged from it, its baseline and what was put aside."""
    journal = open_store_journal(config, keys, now, with_expired_keys=True)
    with journal.locked():
        complete(config.home, journal, max(now(), journal.tail.chain.timestamp))
        Intent(journal).remove()
