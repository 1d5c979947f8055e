"""Cuts a damaged journal after its last event that verifies. What is cut off is kept in ``quarantine/`` in the store's directory.

Events after a damaged one cannot be replayed: each says which one it follows, and what it changed may depend on what is missing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

import orjson

from memgraph.disk.files import make_private_folder, sync_folder
from memgraph.disk.lock import writer_lock
from memgraph.errors import DamagedJournalError, JournalError, StorageError
from memgraph.journal import swap
from memgraph.journal.baseline.header import unverified_place
from memgraph.journal.closed.files import file_of, files_in, is_segment, name_of, opened, remove
from memgraph.journal.envelope import (
    BEGINNING_BYTES,
    ENVELOPE_VERSION,
    SIGNATURE_VERSION,
    CommitDraft,
    LineError,
    is_unsigned,
)
from memgraph.journal.head_file import Head
from memgraph.journal.keys.ring import KeyRing
from memgraph.journal.repair import Condition, Unwitnessed, record_of, settle
from memgraph.journal.replay import Committed, Offset
from memgraph.journal.segments import Line, Position, Segments, event_of
from memgraph.model.events.payload import Payload
from memgraph.model.events.store import JournalCut, StoreCreated

Part = Literal["tail", "segment"]
_COPY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Damage:
    """Where a journal is damaged, and what can be kept of it.

    Attributes
    ----------
    problem : str
        What is wrong, and where.
    path : Path
        The damaged segment.
    offset : int
        Byte of the damage in it.
    kept : Offset
        The end of the last whole commit that verifies.
    before_segment : Offset
        The same, of the segments before the damaged one.
    later_events : int
        Number of events after the damage that verify on their own.
    known_seq : int
        The last event that is known to have been written: by the head file, the checkpoint, or an event after the damage.
    is_later_release : bool
        The line is of an unknown version of the envelope, which is no damage: nothing may be cut.
    is_in_history : bool
        It is in the archive, or in a condensed segment: a cut would remove everything after it, the present state included.
    """

    problem: str
    path: Path
    offset: int
    kept: Offset
    before_segment: Offset
    later_events: int
    known_seq: int
    is_later_release: bool = False
    is_in_history: bool = False

    def end(self, part: Part) -> Offset:
        """Return the end of the journal after a cut."""
        return self.kept if part == "tail" else self.before_segment

    def lost(self, part: Part) -> int:
        """Return the number of events that are known to have been written and would not be replayed after a cut."""
        return max(0, self.known_seq - self.end(part).chain.seq)


@dataclass(frozen=True, slots=True)
class Cut:
    """A journal that was cut: the last event kept, the number of events lost, the folder with the rest, and the event that records it."""

    part: Part
    kept_seq: int
    lost: int
    quarantine: Path
    cut_bytes: int
    recorded_as: int


def damage_in(home: Path, store_id: str, ring: KeyRing, *, keys_home: Path) -> Damage | None:
    """Verify a journal from its first event and return its damage; None if its lines verify. Changes nothing.

    Raises
    ------
    KeyMissingError
        Even the first event was signed with another key.
    UnknownEventError, PayloadError
        An authentic event cannot be read by this release.
    """
    journal = _Tracking(home, store_id, ring, keys_home=keys_home)
    try:
        journal.load_to_end(by_checkpoint=False)
    except DamagedJournalError as error:
        if not is_segment(error.path):  # nothing of the journal itself: there is nothing to cut
            raise
        return _damage(journal, ring, str(error).partition(";")[0], error.path, error.offset)
    except StorageError as error:
        if not is_segment(error.path):
            raise
        return _damage(journal, ring, str(error), error.path, 0)
    return None


def cut(
    home: Path,
    store_id: str,
    ring: KeyRing,
    *,
    keys_home: Path,
    expected: Damage,
    part: Part,
    now: Callable[[], str],
    cut_by: str,
    reason: str | None = None,
    lock_timeout_s: float = 10.0,
) -> Cut:
    """Keep what verifies, move the rest into quarantine, and record that.

    The rest is copied before it is removed, so a crash loses nothing: the journal is then refused, as before, and can be repaired again.

    Parameters
    ----------
    expected : Damage
        What `damage_in` found; if the journal has changed since, nothing is done.
    part : {"tail", "segment"}
        Cut after the last commit that verifies, or before the damaged segment, which is then kept whole.

    Raises
    ------
    JournalError
        The journal has changed, or its line is of a later release.
    StorageError
        The rest cannot be copied.
    """
    if expected.is_later_release:
        raise JournalError(f"{expected.problem}; that is no damage: install a newer memgraph, nothing was cut")
    folder = home / "journal"
    end = expected.end(part)
    with exclusive(folder, lock_timeout_s):
        if damage_in(home, store_id, ring, keys_home=keys_home) != expected:
            raise JournalError(f"the journal under {folder} has changed in the meantime; run `memgraph repair` again")
        if expected.is_in_history:
            raise JournalError(
                f"{expected.problem}; that is in the archive or in a condensed segment: cutting there would cut off everything. Restore "
                "the segment from a backup with `memgraph repair --from-backup FILE`"
            )
        place = quarantine_folder(home, now())
        size = _keep(folder, end.position, place)
        if end.position.offset == 0:  # the file in quarantine may be the same: it must not be truncated
            remove(folder, end.position.segment)
        Segments(folder, 0).cut(end.position)
    journal = Unwitnessed(home, store_id, ring, keys_home=keys_home, lock_timeout_s=lock_timeout_s)
    journal.load_to_end(by_checkpoint=False)
    with journal.locked():
        found = journal.condition()
        if (found.seq, found.signature) != (end.chain.seq, end.chain.signature):
            raise JournalError(f"the journal under {folder} has changed in the meantime; run `memgraph repair` again")
        time = max(now(), journal.tail.chain.timestamp)
        payloads: list[Payload] = [] if found.seq else [StoreCreated(created_by=cut_by)]
        payloads.append(
            JournalCut(
                part=part,
                seq=found.seq,
                signature=found.signature,
                quarantine=place.name,
                cut_bytes=size,
                events_lost=expected.lost(part),
                cut_at=time,
                cut_by=cut_by,
                reason=reason,
            )
        )
        if found.contradicting:
            payloads.append(record_of(found, time, cut_by, reason))
        journal.append([CommitDraft("system", payloads, actor="user")], time)
        accept_end(journal, found)
    return Cut(part, found.seq, expected.lost(part), place, size, journal.tail.chain.seq)


def accept_end(journal: Unwitnessed, found: Condition) -> None:
    """Let the head file name the journal's end, and remove a checkpoint that contradicts it."""
    chain = journal.tail.chain
    journal.head_file.replace(Head(chain.seq, chain.signature))
    settle(journal, found)


@contextmanager
def exclusive(folder: Path, timeout_s: float, *, discards_plan: bool = False) -> Iterator[None]:
    """Hold the writer lock of a journal that cannot be opened.

    Parameters
    ----------
    discards_plan : bool
        The caller puts aside what a resealing has prepared.

    Raises
    ------
    JournalError
        A resealing became final in the meantime: it would replace what the caller is about to change.
    """
    with writer_lock(folder).held(timeout_s):
        if swap.is_planned(folder) and not discards_plan:
            raise JournalError(
                f"the journal under {folder} has changed in the meantime: a resealing was cut off; run `memgraph repair` again"
            )
        yield


def quarantine_folder(home: Path, now: str) -> Path:
    """Make the folder for what a repair removes, named after the time."""
    name = "".join(one for one in now if one.isalnum())
    for number in range(1_000):
        path = home / "quarantine" / (f"{name}-{number}" if number else name)
        if not path.exists():
            make_private_folder(path)
            return path
    raise StorageError("has too many folders of this moment", path=home / "quarantine")


def set_aside(path: Path, place: Path) -> int:
    """Put a file into quarantine, too, and return its size. It need not be readable."""
    try:
        os.link(path, place / path.name)
    except OSError:  # a file system without hard links
        try:
            with path.open("rb") as source:
                return _copied(source, place / path.name)
        except OSError as error:
            raise StorageError(f"cannot be kept in {place}: {error.strerror}; nothing was removed", path=path) from None
    return path.stat().st_size


def _keep(folder: Path, end: Position, place: Path) -> int:
    """Put everything after a position into quarantine and return its size in bytes."""
    size = 0
    for path in files_in(folder):
        name = name_of(path)
        if name > end.segment or (name == end.segment and end.offset == 0):
            size += set_aside(path, place)
        elif name == end.segment and path == file_of(folder, name):
            size += _copy_rest(folder, end, place)
    sync_folder(place)
    sync_folder(place.parent)
    return size


def _copy_rest(folder: Path, end: Position, place: Path) -> int:
    """Copy the bytes of a segment after a position; of a compressed one that is damaged there, put the whole file aside."""
    path = file_of(folder, end.segment)
    target = place / f"{Path(end.segment).stem}-from-byte-{end.offset}.jsonl"
    try:
        with opened(folder, end.segment, end.offset) as source:
            return _copied(source, target)
    except DamagedJournalError:
        return set_aside(path, place)
    except OSError as error:
        problem = f"its end cannot be copied to {target}: {error.strerror}; nothing was removed. `--quarantine` moves the whole segment"
        raise StorageError(problem, path=path) from None


def _copied(source: IO[bytes], target: Path) -> int:
    """Copy the rest of a stream to a new file, mode 0600, sync it, and return its size in bytes."""
    with target.open("xb") as copy:
        target.chmod(0o600)
        shutil.copyfileobj(source, copy, _COPY_BYTES)
        copy.flush()
        os.fsync(copy.fileno())
        return copy.tell()


class _Tracking(Unwitnessed):
    """Remembers where each segment begins."""

    def __init__(self, home: Path, store_id: str, ring: KeyRing, *, keys_home: Path) -> None:
        super().__init__(home, store_id, ring, keys_home=keys_home)
        self.begins: dict[str, Offset] = {}

    def _take(self, commit: Committed, head: Head | None) -> None:
        self.begins.setdefault(commit.after.position.segment, self.tail)
        super()._take(commit, head)


def _damage(journal: _Tracking, ring: KeyRing, problem: str, path: Path, offset: int) -> Damage:
    kept = journal.tail
    later, known = 0, kept.chain.seq
    is_later_release = False
    for line in readable_lines(journal.segments, kept.position):
        if line.start == Position(name_of(path), offset):
            is_later_release = _is_of_later_release(line)
        try:
            event = event_of(line, journal.store_id, lambda key_id: ring.verifying(key_id, None))
        except (LineError, JournalError):
            continue
        if event.seq > kept.chain.seq:
            later, known = later + 1, max(known, event.seq)
    named = [
        one.seq for one in journal.witnesses() if one.seq is not None and one.state in ("ahead", "agrees", "other")
    ]
    stands_for = unverified_place(journal.folder)
    return Damage(
        problem=problem,
        path=path,
        offset=offset,
        kept=kept,
        before_segment=journal.begins.get(name_of(path), kept),
        later_events=later,
        known_seq=max(known, *named) if named else known,
        is_later_release=is_later_release,
        is_in_history=(stands_for is not None and kept.chain.seq < stands_for[0]) or is_unsigned_file(path),
    )


def is_unsigned_file(path: Path) -> bool:
    """Return whether a segment's lines are unsigned, as far as it can be read."""
    try:
        with opened(path.parent, name_of(path)) as stream:
            return is_unsigned(stream.read(BEGINNING_BYTES))
    except (OSError, DamagedJournalError):
        return False


def readable_lines(segments: Segments, start: Position) -> Iterator[Line]:
    """Yield the lines after a position, as far as they can be read."""
    names: Sequence[str] = [name for name in segments.names() if name >= start.segment]
    for name in names:
        begin = start if name == start.segment else Position(name, 0)
        try:
            for line in segments.lines(begin):
                if line.start.segment != name:
                    break
                yield line
        except (StorageError, DamagedJournalError):
            continue


def _is_of_later_release(line: Line) -> bool:
    try:
        head = orjson.loads(line.data)["head"]
        return bool(head["envelope_version"] > ENVELOPE_VERSION or head["signature_version"] > SIGNATURE_VERSION)
    except (ValueError, KeyError, TypeError):
        return False
