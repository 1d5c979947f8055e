"""Key providers: the sources of the secret that signs a store's journal."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from memgraph.disk.files import make_private_file, make_private_folder
from memgraph.errors import KeyMissingError, StorageError
from memgraph.ports import KeyProvider, SigningKey

KEY_VARIABLE = "MEMGRAPH_KEY"


def key_from_secret(secret: bytes) -> SigningKey:
    """Return the key of a secret; its public name is a digest of it."""
    return SigningKey(hashlib.sha256(b"memgraph key id\x1f" + secret).hexdigest()[:16], secret)


class FileKeys:
    """Keys in files ``<keys_home>/keys/<store_id>.json``, readable by their owner alone."""

    def __init__(self, keys_home: Path) -> None:
        self._folder = keys_home / "keys"

    def path(self, store_id: str) -> Path:
        """Return the path of a store's key file."""
        return self._folder / f"{store_id}.json"

    def key(self, store_id: str) -> SigningKey | None:
        """Return the store's key, or None if its file does not exist.

        Raises
        ------
        KeyMissingError
            The file exists but holds no valid key.
        """
        path = self.path(store_id)
        try:
            stored = json.loads(path.read_text("utf-8"))
            key = key_from_secret(bytes.fromhex(stored["secret"]))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"the key cannot be read: {error.strerror}", path=path) from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise KeyMissingError(f"{path} contains no key; restore it from a backup") from None
        if stored.get("key_id") != key.key_id:
            raise KeyMissingError(f"{path} contains a damaged key; restore it from a backup", key_id=key.key_id)
        return key

    def create(self, store_id: str) -> SigningKey:
        """Return the store's key, creating it if it does not exist."""
        if known := self.key(store_id):
            return known
        key = key_from_secret(secrets.token_bytes(32))
        make_private_folder(self._folder)
        stored = {"key_id": key.key_id, "secret": key.secret.hex(), "store_id": store_id}
        make_private_file(self.path(store_id), json.dumps(stored).encode())  # the first process wins
        return self.key(store_id) or key


class EnvKeys:
    """One key from the environment variable ``MEMGRAPH_KEY``: 64 or more hexadecimal digits."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment

    def key(self, store_id: str) -> SigningKey | None:  # noqa: ARG002 - one key serves every store
        """Return the key, or None if the variable is not set.

        Raises
        ------
        KeyMissingError
            The variable holds something else.
        """
        text = self._environment.get(KEY_VARIABLE, "").strip()
        if not text:
            return None
        try:
            secret = bytes.fromhex(text)
        except ValueError:
            secret = b""
        if len(secret) < 32:
            raise KeyMissingError(f"{KEY_VARIABLE} must hold at least 64 hexadecimal digits (32 bytes)")
        return key_from_secret(secret)

    def create(self, store_id: str) -> SigningKey:
        """Return the environment's key. It is never created here."""
        if key := self.key(store_id):
            return key
        raise KeyMissingError(f"{KEY_VARIABLE} is not set")


def default_keys(keys_home: Path, environment: Mapping[str, str] | None = None) -> KeyProvider:
    """Return the environment's key if ``MEMGRAPH_KEY`` is set, else keys in files."""
    environment = os.environ if environment is None else environment
    return EnvKeys(environment) if environment.get(KEY_VARIABLE) else FileKeys(keys_home)
