"""Key providers of this machine: key files, the environment, and a JSON document."""

from __future__ import annotations

import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from memgraph.disk.files import make_private_file, make_private_folder, open_regular, write_private
from memgraph.errors import KeyMissingError, StorageError
from memgraph.journal.keys.document import MAX_DOCUMENT_BYTES, document_of, keys_in
from memgraph.journal.keys.place import SOURCE_VARIABLE, KeyPlace
from memgraph.journal.keys.secret import MAX_KEYS, fingerprint, is_named, key_from_secret, secret_of
from memgraph.ports import SigningKey

KEY_VARIABLE = "MEMGRAPH_KEY"
_SECRET_BYTES = 32


class ListedKeys(ABC):
    """A provider whose source holds all its keys at once. A `RotatingKeyProvider`."""

    name: str
    """The provider's name, as in key ids."""

    @abstractmethod
    def place(self, store_id: str) -> KeyPlace:
        """Return where a store's key is, for messages. Nothing is read."""

    @abstractmethod
    def keys(self, store_id: str) -> Sequence[SigningKey]:
        """Return the keys of a store, the active one first; an empty list for a store without keys."""

    def key(self, store_id: str) -> SigningKey | None:
        """Return the active key, or None if there is none.

        Raises
        ------
        KeyMissingError, StorageError
            The source cannot be read, or holds something else.
        """
        return next(iter(self.keys(store_id)), None)

    def find(self, store_id: str, key_id: str) -> SigningKey | None:
        """Return the key that an id names, or None."""
        return next((key for key in self.keys(store_id) if is_named(key, key_id)), None)

    def create(self, store_id: str) -> SigningKey:
        """Return the active key. Only key files make one."""
        if key := self.key(store_id):
            return key
        raise KeyMissingError(
            f"the key provider {self.name} has no key, and memgraph makes none there: {self.place(store_id).remedy}"
        )


class FileKeys(ListedKeys):
    """Keys in files ``<keys_home>/keys/<store_id>.json``, readable by their owner alone.

    Parameters
    ----------
    is_chosen : bool
        Whether the settings name this provider, so that ``MEMGRAPH_KEY`` has no effect.
    """

    name = "file"

    def __init__(self, keys_home: Path, *, is_chosen: bool = False) -> None:
        self._folder = keys_home / "keys"
        self._is_chosen = is_chosen

    def place(self, store_id: str) -> KeyPlace:
        """Return the store's key file."""
        path = self.path(store_id)
        or_else = "" if self._is_chosen else f", or set {KEY_VARIABLE}"
        how = "import it with `memgraph keys import FILE`"
        or_put_back = f" or restore its key file as {path}" if self._is_chosen else f", restore its key file as {path}"
        return KeyPlace(str(path), f"{how}{or_put_back}{or_else}")

    def path(self, store_id: str) -> Path:
        """Return the path of a store's key file."""
        return self._folder / f"{store_id}.json"

    def keys(self, store_id: str) -> list[SigningKey]:
        """Return the keys of the store's file; empty if it does not exist.

        Raises
        ------
        KeyMissingError
            The file exists but holds no valid keys.
        """
        path = self.path(store_id)
        try:
            with open_regular(path, follows_links=True) as file:
                data = file.read(MAX_DOCUMENT_BYTES + 1)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageError(f"the key cannot be read: {error.strerror}", path=path) from None
        advice = "move the file away and run `memgraph keys import FILE`, or put back the copy of it that was kept"
        return keys_in(data, str(path), store_id, advice=advice)

    def create(self, store_id: str) -> SigningKey:
        """Return the store's key, creating it if it does not exist."""
        if known := self.key(store_id):
            return known
        key = _made(1)
        make_private_folder(self._folder)
        make_private_file(self.path(store_id), document_of([key], store_id))  # the first process wins
        return self.key(store_id) or key

    def made_next(self, store_id: str) -> SigningKey:
        """Return a new key, which is not yet stored."""
        return _made(len(self.keys(store_id)) + 1)

    def add(self, store_id: str, *added: SigningKey, is_active: bool = True) -> None:
        """Store keys beside the others, all or none: in front of them or, if none is the active one, behind them.

        Raises
        ------
        KeyMissingError
            The file has another key of an id, or would hold too many.
        StorageError
            The system refuses.
        """
        keys, path = self.keys(store_id), self.path(store_id)
        known = {key.key_id: key.secret for key in keys}
        if others := [key.key_id for key in added if known.get(key.key_id, key.secret) != key.secret]:
            raise KeyMissingError(
                f"{path} has other keys of these ids: {', '.join(others)}; nothing was changed", key_ids=others
            )
        ids = {key.key_id for key in added}
        kept = [key for key in keys if key.key_id not in ids]
        if len(kept) + len(added) > MAX_KEYS:
            raise KeyMissingError(
                f"{path} would hold {len(kept) + len(added)} keys, and the limit is {MAX_KEYS}; nothing was changed. Remove those "
                "that `memgraph keys list` shows as not needed"
            )
        if added:
            make_private_folder(self._folder)
            write_private(path, document_of([*added, *kept] if is_active else [*kept, *added], store_id))


class EnvKeys(ListedKeys):
    """Keys from the environment variable ``MEMGRAPH_KEY``: 64 or more hexadecimal digits each; the first one is active.

    They serve every store.
    """

    name = "env"

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment

    def place(self, store_id: str) -> KeyPlace:  # noqa: ARG002 - the same keys serve every store
        """Return the variable."""
        return KeyPlace(KEY_VARIABLE, f"set {KEY_VARIABLE} to the store's key")

    def keys(self, store_id: str) -> list[SigningKey]:  # noqa: ARG002 - the same keys serve every store
        """Return the keys; empty if the variable is not set.

        Raises
        ------
        KeyMissingError
            The variable holds something else.
        """
        return keys_in_text(self._environment.get(KEY_VARIABLE, ""), KEY_VARIABLE, f"env:{KEY_VARIABLE}")


class JsonKeys(ListedKeys):
    """Keys from a JSON document that somebody else writes, such as a mounted secret. Its form: `memgraph.journal.keys.document`."""

    name = "json"

    def __init__(self, path: Path) -> None:
        self._path = path

    def place(self, store_id: str) -> KeyPlace:  # noqa: ARG002 - its store is named in the document
        """Return the document's path."""
        return KeyPlace(str(self._path), f"restore the document {self._path}, or correct {SOURCE_VARIABLE}")

    def keys(self, store_id: str) -> list[SigningKey]:
        """Return the document's keys; empty if there is no file."""
        try:
            with open_regular(self._path, follows_links=True) as file:
                data = file.read(MAX_DOCUMENT_BYTES + 1)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StorageError(f"the keys cannot be read: {error.strerror}", path=self._path) from None
        advice = f"put back a copy of the document, or correct {SOURCE_VARIABLE}"
        return keys_in(data, str(self._path), store_id, advice=advice)


def keys_in_text(text: str, source: str, place: str) -> list[SigningKey]:
    """Return the keys of secrets that stand in a text, separated by white space, the active one first."""
    words = text.split()
    if len(words) > MAX_KEYS:
        raise KeyMissingError(f"{source} holds more than {MAX_KEYS} keys")
    keys = [key_from_secret(secret_of(word, source), place) for word in words]
    return list({key.key_id: key for key in keys}.values())


def _made(number: int) -> SigningKey:
    secret = secrets.token_bytes(_SECRET_BYTES)
    return SigningKey(f"file:store:{number}-{fingerprint(secret)}", secret)


def default_keys(keys_home: Path, environment: Mapping[str, str] | None = None) -> ListedKeys:
    """Return the environment's keys if ``MEMGRAPH_KEY`` is set, else keys in files."""
    environment = os.environ if environment is None else environment
    return EnvKeys(environment) if environment.get(KEY_VARIABLE) else FileKeys(keys_home)
