"""`OwnFiles`: files that belong to memgraph alone, in a directory of their own or among others'."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from memgraph.disk.files import write_atomically
from memgraph.errors import StorageError
from memgraph.interfaces.agents.connecting.change import Part, PartState
from memgraph.interfaces.agents.connecting.receipt import Receipt, sha256_of


@dataclass(frozen=True)
class OwnFiles:
    """Files below a directory.

    Attributes
    ----------
    top : Path
    files : mapping of str to bytes
        Contents by path relative to `top`.
    is_own_folder : bool
        The whole directory is memgraph's: it appears at once, complete, and other files in it are reported.
    made_by_program : sequence of Path
        Directories that the program makes for these files. They go with them if they are empty.
    """

    top: Path
    files: Mapping[str, bytes]
    is_own_folder: bool = True
    made_by_program: Sequence[Path] = ()

    def parts(self, receipt: Receipt | None) -> list[Part]:
        """Return how each file stands."""
        written = receipt.files if receipt else {}
        found = [Part(str(self.top / name), self._state(name, data, written)) for name, data in self.files.items()]
        known = {part.path for part in found}
        below = self._below() if self.is_own_folder else []
        for path in below:
            if str(path) not in known:  # a file of an earlier version that is no longer written: connecting removes it
                is_ours = sha256_of(_bytes(path) or b"") == written.get(str(path))
                found.append(Part(str(path), "outdated" if is_ours else "extra"))
        return found

    def apply(self, receipt: Receipt) -> None:
        """Write what is missing or outdated."""
        states = {part.path: part.state for part in self.parts(receipt)}
        wanted = {name: data for name, data in self.files.items() if states[str(self.top / name)] != "changed"}
        try:
            if self.is_own_folder and not self.top.exists():
                self._make_folder(wanted, receipt)
            else:
                self._write(wanted, receipt)
        except OSError as error:
            raise StorageError(f"cannot be written: {error.strerror}", path=self.top) from None
        for path, state in states.items():
            if state == "outdated" and path not in {str(self.top / name) for name in self.files}:
                Path(path).unlink(missing_ok=True)
                receipt.files.pop(path, None)

    def undo(self, receipt: Receipt) -> None:
        """Remove the files that are as they were written, and the directories that are empty then."""
        ours = [Path(path) for path in receipt.files if Path(path).is_relative_to(self.top)]
        try:
            for path in ours:
                data = None if path.is_symlink() or self._is_blocked(path) else _bytes(path)
                if data is not None and sha256_of(data) == receipt.files[str(path)]:
                    path.unlink()
                if not path.exists():
                    del receipt.files[str(path)]
        except OSError as error:
            raise StorageError(f"cannot be removed: {error.strerror}", path=self.top) from None
        inside = {parent for path in ours for parent in path.parents if parent.is_relative_to(self.top)}
        made = {Path(one) for one in receipt.folders}
        for folder in sorted(inside if self.is_own_folder else inside & made, key=lambda one: -len(one.parts)):
            remove_empty(folder)
        for folder in sorted(made, key=lambda one: -len(one.parts)):
            if self.top.is_relative_to(folder):
                remove_empty(folder)
                receipt.folders.remove(str(folder))
        for folder in self.made_by_program:
            remove_empty(folder)

    def recover(self, receipt: Receipt) -> bool:
        """Note in a receipt which files stand as they would be written now. Return whether all of them do."""
        parts = [part for part in self.parts(None) if part.state != "extra"]
        found = [part.path for part in parts if part.state == "current"]
        receipt.files.update({path: sha256_of(Path(path).read_bytes()) for path in found})
        return len(found) == len(parts)

    def _state(self, name: str, data: bytes, written: Mapping[str, str]) -> PartState:
        path = self.top / name
        found = _bytes(path)
        if found is None:
            return "in the way" if os.path.lexists(path) or self._is_blocked(path) else "missing"
        if found == data:
            return "current"
        if str(path) not in written:
            return "in the way"
        return "outdated" if sha256_of(found) == written[str(path)] else "changed"

    def _is_blocked(self, path: Path) -> bool:
        """Return whether something that is no directory stands where one is needed, or a link leads elsewhere."""
        parents = [parent for parent in path.parents if parent.is_relative_to(self.top)]
        return any(os.path.lexists(one) and (one.is_symlink() or not one.is_dir()) for one in parents)

    def _below(self) -> list[Path]:
        if not self.top.is_dir() or self.top.is_symlink():
            return []
        return sorted(path for path in self.top.rglob("*") if path.is_symlink() or not path.is_dir())

    def _make_folder(self, wanted: Mapping[str, bytes], receipt: Receipt) -> None:
        """Write the directory beside its place, then move it there: a client sees all of it or nothing."""
        make_folders(self.top.parent, receipt)
        temporary = Path(mkdtemp(prefix=f".{self.top.name}.", suffix=".tmp", dir=self.top.parent))
        try:
            for name, data in wanted.items():
                path = temporary / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            temporary.chmod(self.top.parent.stat().st_mode & 0o777)
            temporary.rename(self.top)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        receipt.folders.append(str(self.top))
        receipt.files.update({str(self.top / name): sha256_of(data) for name, data in wanted.items()})

    def _write(self, wanted: Mapping[str, bytes], receipt: Receipt) -> None:
        for name, data in wanted.items():
            path = self.top / name
            if _bytes(path) != data:
                make_folders(path.parent, receipt)
                write_atomically(path, data, mode=None)
            receipt.files[str(path)] = sha256_of(data)


def make_folders(path: Path, receipt: Receipt) -> None:
    """Make a directory with its parents, and note in a receipt which were missing."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir()
        receipt.folders.append(str(folder))


def remove_empty(folder: Path) -> None:
    """Remove a directory if it is empty."""
    with suppress(OSError):  # not empty, or gone
        folder.rmdir()


def _bytes(path: Path) -> bytes | None:
    """Return the content of a regular file, also one behind a link; None if there is none."""
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError:
        return None
