"""The manifest of a backup: what it holds, authenticated with a key derived from the store's.

It is the first file of the archive, so that every other file is expected, with its size and SHA-256, before it is read. Further kinds
of files need no new format: a restoration puts every file that the manifest lists in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from memgraph.disk.seal import Seal
from memgraph.errors import BackupError, InvalidInputError, KeyMissingError
from memgraph.journal.envelope import canonical
from memgraph.journal.keys.providers import FileKeys
from memgraph.journal.keys.ring import KeyRing, key_place, seal_of
from memgraph.model.base import Name, Strict, Timestamp
from memgraph.model.events.payload import Sha256, Whole
from memgraph.model.events.store import KeptVectors
from memgraph.model.ids import MemoryId, stored_form
from memgraph.ports import KeyProvider

FORMAT = 2
NAME = "backup.json"
"""The manifest's name in the archive."""
MAX_BYTES = 8 << 20
PURPOSE = "backup"
"""What the seal of manifests is for: see `Journal.seal`."""
_PART = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")


def _place(name: str) -> str:
    """Return the name of a file below the store's directory; refuse any that could lie elsewhere."""
    parts = name.split("/")
    if len(parts) > 8 or not all(_PART.fullmatch(part) for part in parts):
        raise ValueError("must be a relative path of plain names")
    return name


class BackupFile(Strict):
    """A file in the archive: `size_bytes` bytes of the store's file `name`, from `offset` on."""

    name: Annotated[str, AfterValidator(_place)]
    offset: Whole
    size_bytes: Whole
    sha256: Sha256


class BackupHead(Strict):
    """The end of the journal in a backup: the last event."""

    seq: Whole
    signature: Sha256
    timestamp: Timestamp


class BackupBase(Strict):
    """The backup that an incremental one continues, and the name that its file had."""

    backup_id: MemoryId
    seq: Whole
    signature: Sha256
    file: Name


class BackupManifest(Strict):
    """The content of a backup.

    Attributes
    ----------
    first_seq : int
        The first event in it: 1, or for an incremental backup the one after its base's last.
    head : BackupHead
        The last event: a commit boundary.
    digest, schema_version : str
        Digest of the state after it, and the version of the schema with which it was computed.
    envelope_version : int
        Format of the events.
    key_ids : list of str
        Keys that signed the events in it. The keys themselves are never in a backup.
    journal_sha256 : str
        SHA-256 of the events in it.
    vectors : list of KeptVectors
        Rows of the vector files, including the base's.
    files : list of BackupFile
        The other files of the archive, in their order.
    """

    format: Annotated[int, Field(ge=1)]
    backup_id: MemoryId
    store_id: MemoryId
    made_at: Timestamp
    made_by: Name
    first_seq: Whole
    head: BackupHead
    digest: Sha256
    schema_version: Name
    envelope_version: Whole
    key_ids: Annotated[list[Name], Field(max_length=10_000)]
    journal_sha256: Sha256
    vectors: Annotated[list[KeptVectors], Field(max_length=1_000)]
    base: BackupBase | None = None
    files: Annotated[list[BackupFile], Field(max_length=100_000)]


def sealed(manifest: BackupManifest, seal: Seal, key_id: str) -> bytes:
    """Return a manifest with its code, as it stands in the archive."""
    body = manifest.model_dump()
    return canonical({"body": body, "key_id": key_id, "code": seal.code(canonical(body))})


def unsealed(data: bytes, path: Path, seal_for: Callable[[str, str], Seal]) -> BackupManifest:
    """Return the manifest of an archive, verified.

    Parameters
    ----------
    path : Path
        The archive, for error messages.
    seal_for : callable
        Returns the seal for a store's id and the id of its key, or raises the error for one that it does not have.

    Raises
    ------
    BackupError
        It is no manifest, was not made with the store's key, or is of a later release.
    """
    try:
        stored = json.loads(data)
        body, key_id, code = stored["body"], stored["key_id"], stored["code"]
        store_id, format_ = body["store_id"], body["format"]
        if stored_form(store_id) != store_id or not isinstance(key_id, str) or type(format_) is not int:
            raise ValueError("is not a manifest")
        written = canonical(body)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise damaged(path, "its manifest cannot be read") from None
    if not seal_for(store_id, key_id).fits(code, written):
        raise damaged(path, "its manifest is not what was signed")
    if format_ != FORMAT:
        raise BackupError(f"backup format {format_} is unknown to this release; install a newer memgraph", path=path)
    try:
        return BackupManifest.parse(body)
    except InvalidInputError as error:
        raise damaged(path, f"its manifest does not fit its schema: {error.field}") from None


def seals_of(keys: KeyProvider, keys_home: Path, path: Path) -> Callable[[str, str], Seal]:
    """Return what `unsealed` needs from a provider of keys.

    Raises
    ------
    KeyMissingError
        From the function: the store's key is missing, or is another one.
    """

    def seal_for(store_id: str, key_id: str) -> Seal:
        ring = KeyRing.from_providers(store_id, keys, FileKeys(keys_home))
        key = ring.find(key_id)
        if key is None:
            is_other = f"not the key given, {ring.active.key_id}" if ring.active else "missing"
            raise KeyMissingError(
                f"{path} was made with key {_plain(key_id)} of store {store_id}, which is {is_other}: a backup never contains "
                f"keys; {key_place(keys, store_id).remedy}",
                key_id=key_id,
            )
        return seal_of(key, PURPOSE, store_id)

    return seal_for


def damaged(path: Path, reason: str) -> BackupError:
    """Return the error for a backup that cannot be trusted."""
    return BackupError(f"the backup is damaged: {reason}; use another one", path=path)


def _plain(text: str) -> str:
    return re.sub(r"[^0-9A-Za-z:._-]", "?", text)[:100]
