"""`MergedFile`: values of memgraph's in a file of the user's, which is otherwise left as it is, character for character."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

from memgraph.disk.files import write_atomically
from memgraph.errors import InvalidInputError, StorageError
from memgraph.interfaces.agents.connecting import json_text, toml_text
from memgraph.interfaces.agents.connecting.change import Part, PartState
from memgraph.interfaces.agents.connecting.files import make_folders, remove_empty
from memgraph.interfaces.agents.connecting.receipt import Insertion, Merged, Receipt, sha256_of


@dataclass(frozen=True)
class Entry:
    """A value to be inserted.

    Attributes
    ----------
    keys : tuple of str
        The path of keys to it, or to the list that gets it.
    value : object
    is_item : bool
        It is added to a list.
    """

    keys: tuple[str, ...]
    value: Any
    is_item: bool = False


class Format(Protocol):
    """Changes to the text of a kind of file: a module."""

    def parsed(self, text: str) -> Any:
        """Return the document."""
        ...

    def inserted(self, text: str, keys: Sequence[str], value: Any, *, is_item: bool) -> tuple[str, Insertion]:
        """Return the text with a value, and what was inserted."""
        ...

    def removed(self, text: str, insertion: Insertion, value: Any) -> str:
        """Return the text without a value."""
        ...


_TOML = cast("Format", toml_text)
_JSON = cast("Format", json_text)


@dataclass(frozen=True)
class MergedFile:
    """Values in a file of the user's. A file that is not valid is refused and left as it is.

    Attributes
    ----------
    path : Path
        A TOML file by its suffix, else JSON.
    entries : sequence of Entry
    is_ours : callable
        Whether a value that the user changed is still memgraph's: connecting leaves it, disconnecting removes it.
    """

    path: Path
    entries: Sequence[Entry]
    is_ours: Callable[[Any], bool]

    @property
    def _format(self) -> Format:
        return _TOML if self.path.suffix == ".toml" else _JSON

    @property
    def _empty(self) -> str:
        """Return the text of a document that holds nothing."""
        return "" if self.path.suffix == ".toml" else "{}\n"

    def parts(self, receipt: Receipt | None) -> list[Part]:
        """Return how the file stands: as the least finished of its values."""
        known = receipt.merged.get(str(self.path)) if receipt else None
        text = self._read() or ""
        document = self._parsed(text)
        states = {self._state(entry, document, known) for entry in self.entries}
        states |= {"outdated" for one in self._retired(known) if _found(document, one) is not None}
        if "missing" in states:
            self._with(text, [entry for entry in self.entries if self._state(entry, document, known) == "missing"])
        order: tuple[PartState, ...] = ("in the way", "missing", "outdated", "changed", "edited", "current")
        return [Part(str(self.path), next(state for state in order if state in states))]

    def apply(self, receipt: Receipt) -> None:
        """Insert what is missing or outdated."""
        text = self._read()
        document = self._parsed(text or "")
        is_blank = not (text or "").strip()
        known = None if is_blank else receipt.merged.get(str(self.path))
        old = known or Merged(sha256="", before=(text or "") if is_blank else None, is_new=text is None)
        states = [(one, self._state(one, document, known)) for one in self.entries]
        adopted = [self._adopted(one, document) for one in self.entries if self._is_unknown(one, document, known)]
        old = old.model_copy(update={"insertions": [*old.insertions, *adopted]})
        retired = [one for one in self._retired(known) if _found(document, one) is not None]
        wanted = [one for one, state in states if state in {"missing", "outdated"}]
        new, kept = text or "", old.insertions
        if retired or any(state == "outdated" for _, state in states):
            # all but what the user has changed, so that entries that are inserted again stand in their order
            changed = [list(one.keys) for one, state in states if state in {"edited", "changed"}]
            kept = [one for one in old.insertions if one.keys in changed]
            new = self._taken_back(new, old, [one for one in old.insertions if one not in kept])
            document = self._parsed(new)
            wanted = [one for one in self.entries if list(one.keys) not in changed and _found(document, one) is None]
        if wanted or retired:
            if sha256_of(new.encode()) != old.sha256:  # the places have moved
                kept = [one.model_copy(update={"offset": -1}) for one in kept]
            new, insertions = self._with(new, wanted, kept)
            for folder in (self.path.parent, self.path.resolve().parent):  # a link may lead to nothing yet
                make_folders(folder, receipt)
            self._write(new, text)
            old = old.model_copy(update={"sha256": sha256_of(new.encode()), "insertions": [*kept, *insertions]})
        receipt.merged[str(self.path)] = old

    def undo(self, receipt: Receipt) -> None:
        """Remove the values, and the file if there was none and nothing else is in it."""
        known = receipt.merged.get(str(self.path))
        text = self._read()
        if known is not None and text is not None:
            new = self._taken_back(text, known, known.insertions)
            is_blank = known.before is not None and new.strip() == self._empty.strip()
            if is_blank and known.is_new:
                self._remove()
            elif new != text:
                self._write(known.before or "" if is_blank else new, text)
        receipt.merged.pop(str(self.path), None)
        for folder in sorted(receipt.folders, key=lambda one: -len(one)):
            if self.path.is_relative_to(folder) or self.path.resolve().is_relative_to(folder):
                remove_empty(Path(folder))
                if not Path(folder).exists():
                    receipt.folders.remove(folder)

    def recover(self, receipt: Receipt) -> bool:
        """Note in a receipt which values in the file are memgraph's. Return whether none is missing."""
        document = self._parsed(self._read() or "")
        found = [one for one in self.entries if self._is_unknown(one, document, None)]
        insertions = [self._adopted(one, document) for one in found]
        if insertions:
            receipt.merged[str(self.path)] = Merged(sha256="", insertions=insertions)
        return all(one in found or one.value in _values(document, one) for one in self.entries)

    def _is_unknown(self, entry: Entry, document: Any, known: Merged | None) -> bool:
        """Return whether a value stands in the file that is memgraph's by its looks only."""
        return _insertion_of(known, entry) is None and any(map(self.is_ours, _values(document, entry)))

    def _adopted(self, entry: Entry, document: Any) -> Insertion:
        """Return what is known of such a value: not how it came there."""
        value = next(one for one in _values(document, entry) if self.is_ours(one))
        return Insertion(keys=list(entry.keys), value=value, is_item=entry.is_item, depth=len(entry.keys))

    def _with(
        self, text: str, entries: Sequence[Entry], before: Sequence[Insertion] = ()
    ) -> tuple[str, list[Insertion]]:
        """Return the text with some entries, and what was inserted. Raise `StorageError` if it cannot take them."""
        text = text if text.strip() else self._empty or text
        insertions: list[Insertion] = []
        for entry in entries:
            insert = partial(self._format.inserted, text, entry.keys, entry.value, is_item=entry.is_item)
            text, insertion = self._checked(insert)
            # a parent that another entry has brought goes with the last of them
            depths = [one.depth for one in (*before, *insertions) if one.depth < _shared(one.keys, insertion.keys)]
            insertions.append(insertion.model_copy(update={"depth": min([insertion.depth, *depths])}))
        return text, insertions

    def _state(self, entry: Entry, document: Any, known: Merged | None) -> PartState:
        values = _values(document, entry)
        if entry.value in values:
            return "current"
        written = _insertion_of(known, entry)
        if written is not None and written.value in values:
            return "outdated"
        if any(map(self.is_ours, values)):
            return "edited" if written is not None or entry.is_item else "in the way"
        if entry.is_item or not values:
            return "missing"
        return "in the way" if written is None else "changed"

    def _retired(self, known: Merged | None) -> Iterator[Entry]:
        """Yield what an earlier version inserted that is not wanted any more."""
        for one in known.insertions if known else ():
            if not any(one.keys == list(entry.keys) for entry in self.entries):
                yield Entry(tuple(one.keys), one.value, one.is_item)

    def _taken_back(self, text: str, known: Merged, insertions: Sequence[Insertion]) -> str:
        """Return the text without some insertions, also where the user has changed the rest, or these values themselves."""
        is_untouched = sha256_of(text.encode()) == known.sha256 and list(insertions) == known.insertions
        if is_untouched and all(one.offset >= 0 for one in insertions):
            for one in reversed(insertions):
                text = text[: one.offset] + text[one.offset + len(one.text) :]
            return text
        for one in reversed(insertions):
            value = self._present(one, self._parsed(text))
            if value is None:
                continue
            if value == one.value or all(map(self.is_ours, _hooks(value))):
                text = self._checked(partial(self._format.removed, text, one, value))
            else:  # the user has added hooks to the group: they stay
                text = self._checked(partial(json_text.without_members, text, one.keys, value, self.is_ours))
        return text

    def _present(self, insertion: Insertion, document: Any) -> Any:
        """Return the value of an insertion as it stands now; None if it is gone, or the user has put another there."""
        values = _values(document, Entry(tuple(insertion.keys), insertion.value, insertion.is_item))
        if insertion.value in values:
            return insertion.value
        return next((one for one in values if self.is_ours(one)), None)

    def _parsed(self, text: str) -> Any:
        return self._checked(partial(self._format.parsed, text))

    def _checked(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except InvalidInputError as error:
            reason = error.problem if error.field == "document" else f"{error.field} {error.problem}"
            raise StorageError(
                f"{reason}; nothing was changed: repair the file, then try again", path=self.path
            ) from None

    def _read(self) -> str | None:
        """Return the file's text, also that of one behind a link; None if there is none."""
        if self.path.exists() and not self.path.is_file():
            raise StorageError("is not a file", path=self.path)
        try:
            return self.path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            raise StorageError("is not UTF-8; nothing was changed", path=self.path) from None
        except OSError as error:
            raise StorageError(f"cannot be read: {error.strerror}", path=self.path) from None

    def _write(self, text: str, before: str | None) -> None:
        """Replace the file behind the path at once, with the permissions that it has."""
        target = self.path.resolve()

        def confirm() -> None:
            if self._read() != before:
                raise StorageError(
                    "was changed by another program meanwhile; nothing was written: try again", path=self.path
                )

        try:
            mode = stat.S_IMODE(target.stat().st_mode) if before is not None else None
            write_atomically(target, text.encode(), mode=mode, confirm=confirm)
        except OSError as error:
            raise StorageError(f"cannot be written: {error.strerror}", path=self.path) from None

    def _remove(self) -> None:
        try:
            self.path.resolve().unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"cannot be removed: {error.strerror}", path=self.path) from None


def _hooks(value: Any) -> list[Any]:
    """Return the hooks of a group, or the value itself."""
    hooks = value.get("hooks") if isinstance(value, dict) else None
    return hooks if isinstance(hooks, list) else [value]


def _shared(keys: Sequence[str], others: Sequence[str]) -> int:
    """Return how many keys two paths begin with in common."""
    return next(
        (number for number, (one, other) in enumerate(zip(keys, others, strict=False)) if one != other),
        min(len(keys), len(others)),
    )


def _insertion_of(known: Merged | None, entry: Entry) -> Insertion | None:
    return next((one for one in known.insertions if one.keys == list(entry.keys)), None) if known else None


def _values(document: Any, entry: Entry) -> list[Any]:
    """Return the value at an entry's place, or the items of its list; without those that are no objects."""
    for key in entry.keys:
        if not isinstance(document, dict) or key not in document:
            return []
        document = document[key]
    found = document if entry.is_item and isinstance(document, list) else [document]
    return found if not entry.is_item else [one for one in found if isinstance(one, dict)]


def _found(document: Any, entry: Entry) -> Any:
    return next((one for one in _values(document, entry) if one == entry.value), None)
