"""The head file: the last signed event, kept outside the store, so that a truncation of the journal is detected."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from memgraph.disk.files import make_private_file, make_private_folder, storage_errors, write_private, write_small
from memgraph.errors import JournalError, StorageError

_RECORD_BYTES = 128
_SIGNATURE_BYTES = 32


@dataclass(frozen=True, slots=True)
class Head:
    """The last event that was written and synced."""

    seq: int
    signature: str


class HeadFile:
    """``<keys_home>/heads/<store_id>``: one record of fixed length, overwritten in place after each journal sync.

    The head file is not synced. After a power failure it may name an earlier event, which is harmless, but never a later one.

    A restored copy of a store has a head file of its own, ``<store_id>.<copy_id>``, so that it and the original can both be used. A
    journal is never adopted under such a name: otherwise naming a new copy in the database would hide a truncation.
    """

    def __init__(self, keys_home: Path, store_id: str, copy_id: str | None = None) -> None:
        self.path = keys_home / "heads" / (f"{store_id}.{copy_id}" if copy_id else store_id)
        self._is_of_copy = copy_id is not None

    def read(self) -> Head | None:
        """Return the head, or None if there is no file. Raises `JournalError` if it is damaged, and `StorageError` if it cannot be read."""
        try:
            stored = json.loads(self.path.read_text("utf-8"))
            head = Head(int(stored["seq"]), str(stored["signature"]))
            if head.seq < 0 or len(bytes.fromhex(head.signature)) != _SIGNATURE_BYTES:
                raise ValueError("is not a head")
            return head
        except FileNotFoundError:
            if not self._is_of_copy:
                return None
            raise JournalError(
                f"the head file {self.path} of this restored store is missing; restore it, or accept the journal as it is with "
                "`memgraph repair --accept-head`"
            ) from None
        except OSError as error:
            raise StorageError(f"the head file cannot be read: {error.strerror}", path=self.path) from None
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise JournalError(
                f"the head file {self.path} is damaged; restore it from a backup, or accept the journal as it is with "
                "`memgraph repair --accept-head`"
            ) from None

    def write(self, head: Head) -> None:
        """Record the head."""
        with storage_errors(self.path, "the head file cannot be written"):
            if not self.path.parent.exists():
                make_private_folder(self.path.parent)
            write_small(self.path, _record(head))

    def make(self, head: Head) -> None:
        """Record the head if there is no file; leave an existing file unchanged."""
        make_private_folder(self.path.parent)
        make_private_file(self.path, _record(head))

    def replace(self, head: Head) -> None:
        """Record the head in a new, synced file that replaces whatever has the path."""
        make_private_folder(self.path.parent)
        write_private(self.path, _record(head))


def _record(head: Head) -> bytes:
    return json.dumps({"seq": head.seq, "signature": head.signature}).ljust(_RECORD_BYTES - 1).encode() + b"\n"
