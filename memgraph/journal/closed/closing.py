"""Upkeep of closed segments: the manifest names them, and they are compressed.

Needs the writer lock for everything that writes. A kill leaves a manifest that is behind, a temporary file, or a segment in both forms;
the next call continues.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from memgraph.disk.files import sync_folder
from memgraph.errors import DamagedJournalError, StorageError, TruncatedJournalError
from memgraph.journal.closed import files
from memgraph.journal.closed.digest import Extent, JournalDigest
from memgraph.journal.closed.manifest import (
    NAME,
    ClosedSegment,
    SegmentManifest,
    damaged,
    read_manifest,
    write_manifest,
)
from memgraph.ports import SigningKey

Find = Callable[[str], SigningKey | None]
Place = tuple[str, int]
KeysIn = Callable[[int, int], Iterable[str]]
"""Returns the ids of the keys that signed the events from one number to another."""
_BLOCK_BYTES = 1 << 20


class ClosedSegments:
    """The closed segments of a journal.

    Attributes
    ----------
    manifest : SegmentManifest
        As it was read or written last.
    problem : DamagedJournalError or None
        Why the manifest cannot be trusted.
    """

    def __init__(self, folder: Path, store_id: str) -> None:
        self._folder = folder
        self._store_id = store_id
        self.manifest = SegmentManifest()
        self.problem: DamagedJournalError | None = None

    @property
    def path(self) -> Path:
        """The manifest's path."""
        return self._folder / NAME

    def read(self, find: Find) -> None:
        """Read the manifest; `problem` says if it cannot be trusted.

        Raises
        ------
        StorageError
            It cannot be read.
        """
        self.manifest, self.problem = SegmentManifest(), None
        try:
            self.manifest = read_manifest(self._folder, self._store_id, find)
        except DamagedJournalError as error:
            self.problem = error

    def read_again(self, find: Find) -> None:
        """Read the manifest, which another process may have written, before it is changed.

        Raises
        ------
        DamagedJournalError
            It cannot be trusted.
        StorageError
            It cannot be read.
        """
        self.read(find)
        if self.problem is not None:
            raise self.problem

    def known(self, name: str, key: SigningKey) -> Extent | None:
        """Return what the manifest says of a segment whose compressed file is the one that it names; None for any other.

        Only a manifest that this key signed counts, because this stands in for reading the content.
        """
        stated = self.manifest.named().get(name)
        if stated is None or stated.packed is None or self.manifest.key_id != key.key_id:
            return None
        path = files.file_of(self._folder, name)
        if path.name == name:
            return None
        try:
            return stated.extent if _extent_of(path) == stated.packed else None
        except OSError:
            return None

    def digest(self, start: Place, end: Place, key: SigningKey | None) -> JournalDigest:
        """Hash the journal between two places, without reading what the manifest proves.

        Parameters
        ----------
        start, end : (str, int)
            Name of a segment, and number of the bytes before the place in it.

        Raises
        ------
        StorageError
            A segment cannot be read.
        DamagedJournalError
            A compressed segment is not whole.
        """
        digest = JournalDigest(start[0] if start[1] else "")
        for name in files.names_in(self._folder):
            if not start[0] <= name <= end[0]:
                continue
            begin = start[1] if name == start[0] else 0
            known = self.known(name, key) if key and name < end[0] and not begin else None
            if known is not None:
                digest.add_known(name, known)
                continue
            left = end[1] - begin if name == end[0] else sys.maxsize
            try:
                with files.opened(self._folder, name, begin) as stream:
                    while block := stream.read(min(_BLOCK_BYTES, left)):
                        digest.add(name, block)
                        left -= len(block)
            except OSError as error:
                path = files.file_of(self._folder, name)
                raise StorageError(f"cannot be read: {error.strerror}", path=path) from None
        return digest

    def check(self, digest: JournalDigest, last_seq: int) -> list[str]:
        """Compare the manifest with a journal whose events were verified up to one; return the segments that differ from it.

        Raises
        ------
        DamagedJournalError
            The manifest cannot be trusted, or names a segment that is not there.
        TruncatedJournalError
            It names events after the journal's end.
        """
        if self.problem is not None:
            raise self.problem
        found, differing = digest.extents(), []
        named = max((one.last_seq for one in self.manifest.segments), default=0)
        if named > last_seq:
            witness = f"its manifest {self.path}"
            raise TruncatedJournalError(path=self._folder, seq=last_seq, head_seq=named, witness=witness)
        for one in self.manifest.segments:
            if one.name < digest.first or (one.name == digest.first and one.name not in found):
                if not files.file_of(self._folder, one.name).exists():
                    raise damaged(self._folder, f"it names the segment {one.name}, which is not there")
                continue  # it is archived, or the digest begins in the midst of it
            if one.name not in found:
                raise damaged(self._folder, f"it names the segment {one.name}, which is not there")
            if found[one.name] != one.extent:
                differing.append(one.name)
        return differing

    def check_all(self, digest: JournalDigest, last_seq: int, find: Find) -> None:
        """Compare the manifest, as it was read before the journal, with what was read, and its compressed files with the present one.

        Raises
        ------
        DamagedJournalError, TruncatedJournalError
            They differ.
        """
        here = tuple(one for one in self.manifest.segments if one.last_seq <= last_seq)  # others were closed meanwhile
        self.manifest = replace(self.manifest, segments=here)
        differing = self.check(digest, last_seq)
        self.read_again(find)
        named = self.manifest.named()
        for name in differing:
            # One that is now what the manifest read again names was rewritten meanwhile.
            if name in named and files.extent_in(self._folder, name) != named[name].extent:
                raise damaged(self._folder, f"the segment {name} is not what it names, although its events verify")
        for one in self.manifest.segments:
            path = files.file_of(self._folder, one.name)
            if one.packed is not None and path.name != one.name:
                with suppress(FileNotFoundError):  # it was unpacked meanwhile
                    if _extent_of(path) != one.packed:
                        raise DamagedJournalError("it is not the file that the manifest names", path=path, offset=0)

    def is_named(self, name: str) -> bool:
        """Return whether a segment is named, so that nothing may be added to it."""
        return any(one.name == name for one in self.manifest.segments)

    def is_behind(self, digest: JournalDigest, key: SigningKey) -> bool:
        """Return whether a closed segment is not named, or the manifest was signed with another key."""
        named = {one.name for one in self.manifest.segments}
        return not named.issuperset(digest.closed()) or (bool(named) and self.manifest.key_id != key.key_id)

    def complete(self, digest: JournalDigest, key: SigningKey, find: Find, keys_in: KeysIn) -> None:
        """Name the closed segments that are not named yet, and sign the manifest with this key.

        Parameters
        ----------
        digest : JournalDigest
            Of the verified bytes. The files must still have them.

        Raises
        ------
        DamagedJournalError
            The manifest cannot be trusted, or a segment is not what was verified, or not what the manifest names.
        StorageError
            The system refuses.
        """
        self.read_again(find)
        named = self.manifest.named()
        for one in segments_in(digest, keys_in):
            if named.setdefault(one.name, one).extent != one.extent:
                raise damaged(self._folder, f"the segment {one.name} is not what it names")
            if named[one.name] is one:
                self._check_content(one)
        self.manifest = write_manifest(self._folder, self._store_id, named.values(), key)

    def renew(self, digest: JournalDigest, key: SigningKey, keys_in: KeysIn) -> None:
        """Write the manifest anew, whatever it says, as a repair needs: from bytes that were all verified.

        Raises
        ------
        DamagedJournalError
            A segment is no longer what was verified.
        StorageError
            The system refuses.
        """
        found = segments_in(digest, keys_in)
        for one in found:
            self._check_content(one)
        if found or self.path.exists():
            self.problem, self.manifest = None, write_manifest(self._folder, self._store_id, found, key)

    def forget(self, names: Collection[str], key: SigningKey, find: Find) -> None:
        """Take segments that are about to change out of the manifest: it is completed when they have.

        Raises
        ------
        DamagedJournalError
            The manifest cannot be trusted. It stays as it is: only a repair may replace it.
        StorageError
            The system refuses.
        """
        self.read_again(find)
        kept = [one for one in self.manifest.segments if one.name not in names]
        if len(kept) < len(self.manifest.segments):
            self.manifest = write_manifest(self._folder, self._store_id, kept, key)

    def name_again(self, names: Collection[str], key: SigningKey, find: Find) -> None:
        """Name closed segments that were condensed, as they are now. The lines of a condensed segment are in the order of their numbers.

        Raises
        ------
        DamagedJournalError
            The manifest cannot be trusted.
        StorageError
            A segment cannot be read, or the system refuses.
        """
        self.read_again(find)
        named = self.manifest.named()
        missing = [name for name in names if name not in named]
        for name in missing:
            data = files.read_all(self._folder, name)
            first, events = files.first_seq_of(name), data.count(b"\n")
            named[name] = ClosedSegment(
                name, first, first + events - 1, events, len(data), hashlib.sha256(data).hexdigest(), ()
            )
        if missing:
            self.manifest = write_manifest(self._folder, self._store_id, named.values(), key)

    def next_to_pack(self) -> str | None:
        """Return the first closed segment that is not compressed, or not known to be."""
        for one in self.manifest.segments:
            path = files.file_of(self._folder, one.name)
            if path.exists() and (one.packed is None or path.name == one.name):
                return one.name
        return None

    def pack(self, name: str, key: SigningKey) -> None:
        """Compress a segment that the manifest names, and name its compressed file.

        The manifest must have been read under the same lock (see `read_again`): it is written as it was read, but for this segment.

        Raises
        ------
        DamagedJournalError
            The segment is not what the manifest names.
        StorageError
            The system refuses.
        """
        stated = self.manifest.named()[name]
        place = files.file_of(self._folder, name).parent
        plain, packed = files.plain_path(place, name), files.packed_path(place, name)
        temporary = packed.with_name(f".{packed.name}.{os.getpid()}.tmp")
        try:
            self._check_content(stated)
            if plain.exists():
                files.write_packed(plain, temporary)
                if files.content_of(temporary) != stated.extent:
                    raise DamagedJournalError("it was not compressed correctly", path=plain, offset=0)
            made = _extent_of(temporary if plain.exists() else packed)
            others = [one for one in self.manifest.segments if one.name != name]
            self.manifest = write_manifest(self._folder, self._store_id, [*others, replace(stated, packed=made)], key)
            if plain.exists():
                temporary.replace(packed)
                sync_folder(place)
                plain.unlink()
                sync_folder(place)
        except OSError as error:
            raise StorageError(f"cannot be compressed: {error.strerror}", path=plain) from None
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def _check_content(self, stated: ClosedSegment) -> None:
        path = files.file_of(self._folder, stated.name)
        try:
            content = files.extent_in(self._folder, stated.name)
        except OSError as error:
            raise StorageError(f"cannot be read: {error.strerror}", path=path) from None
        if content != stated.extent:
            raise DamagedJournalError("it is not what was verified before", path=path, offset=0)


def segments_in(digest: JournalDigest, keys_in: KeysIn) -> list[ClosedSegment]:
    """Return what a manifest says of the closed segments of a journal that was verified."""
    found = digest.closed()
    firsts = [files.first_seq_of(name) for name in (*found, digest.name)]
    return [
        ClosedSegment(
            name=name,
            first_seq=first,
            last_seq=after - 1,
            events=after - first,
            size_bytes=extent.size_bytes,
            sha256=extent.sha256,
            key_ids=tuple(sorted(keys_in(first, after - 1))),
        )
        for (name, extent), first, after in zip(found.items(), firsts, firsts[1:], strict=False)
    ]


def _extent_of(path: Path) -> Extent:
    """Return size and SHA-256 of a file as it is."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return Extent(file.tell(), digest.hexdigest())
