"""The baseline's header, ``journal/baseline.json``: what it stands for, authenticated with the key that signs the journal.

The header makes a baseline valid: its rows are written first, to a file of their own that the header names with its SHA-256. A header
holds one code for each key that may have to verify it: during a rotation the one before and the one after. It counts only if the key in
use at the journal's end has made one of them, because an earlier key may have leaked, and nothing in the chain binds the rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from memgraph.disk.files import read_own, write_private
from memgraph.errors import JournalError, KeyMissingError
from memgraph.journal.closed.files import ARCHIVE, files_in
from memgraph.journal.closed.signed import document_of, fits, parts_of
from memgraph.journal.envelope import Chain
from memgraph.journal.keys.ring import KeyHistory, KeyRing, KeyUse
from memgraph.journal.replay import Offset
from memgraph.journal.segments import Position, Segments
from memgraph.journal.vectors.vector_file import NamedVectors
from memgraph.ports import SigningKey

FORMAT = 1
FOLDER = "baseline"
HEADER = "baseline.json"
_PURPOSE = "baseline"
_BLOCK_BYTES = 1 << 20
_ADVICE = "`memgraph repair` says what can be done"


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a baseline stands for: all events up to a commit.

    Attributes
    ----------
    chain, position : Chain, Position
        The end of the journal's chain at that commit, and the place after it.
    named, used : NamedVectors, KeyHistory
        What the events up to there state about vectors, and which keys signed them.
    file, sha256, size_bytes : str, str, int
        The file of its rows, in the folder ``baseline``, and its bytes.
    rows, rows_sum : int, str
        Number of rows of all tables, and the sum of their hashes (see `memgraph.journal.baseline.rows`).
    digest, schema_version : str
        Digest of the state, and the version of its rows.
    made_at, made_by : str
    """

    chain: Chain
    position: Position
    named: NamedVectors
    used: KeyHistory
    file: str
    sha256: str
    size_bytes: int
    rows: int
    rows_sum: str
    digest: str
    schema_version: str
    made_at: str
    made_by: str

    @property
    def seq(self) -> int:
        """Number of the last event that it stands for."""
        return self.chain.seq

    @property
    def offset(self) -> Offset:
        """The point of the journal from which a replay continues it."""
        return Offset(self.chain, self.position)

    def path(self, folder: Path) -> Path:
        """Return the file of its rows, given the journal's folder."""
        return folder / FOLDER / self.file


def write_header(folder: Path, baseline: Baseline, keys: Iterable[SigningKey]) -> None:
    """Make a baseline, whose rows are written, the journal's; each of these keys verifies it. Needs the writer lock.

    Raises
    ------
    StorageError
        The system refuses.
    """
    write_private(folder / HEADER, header_document(baseline, keys))


def sign_again(folder: Path, store_id: str, ring: KeyRing, keys: Iterable[SigningKey]) -> None:
    """Let each of these keys verify the baseline, if there is one. Needs the writer lock.

    Raises
    ------
    JournalError
        It is not what was signed.
    StorageError
        The system refuses.
    """
    found, _ = read_header(folder, store_id, ring)
    if found is not None:
        write_header(folder, found, keys)


def header_document(baseline: Baseline, keys: Iterable[SigningKey]) -> bytes:
    """Return what `write_header` stores."""
    return document_of({"format": FORMAT, **asdict(baseline)}, keys, _PURPOSE)


def read_header(folder: Path, store_id: str, ring: KeyRing | None) -> tuple[Baseline | None, list[SigningKey]]:
    """Return the baseline of the journal in a folder, None if there is none, and the keys that verify it.

    Parameters
    ----------
    ring : KeyRing or None
        If None, it is not verified.

    Raises
    ------
    JournalError
        It is not what was signed, is another store's, or is of a format that this release does not know.
    KeyMissingError
        No key that signed it is there.
    """
    path = folder / HEADER
    try:
        return parse_header(read_own(path), path, store_id, ring)
    except FileNotFoundError:
        return None, []
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}; {_ADVICE}") from None


def parse_header(data: bytes, path: Path, store_id: str, ring: KeyRing | None) -> tuple[Baseline, list[SigningKey]]:
    """Return a baseline from what its header stores, and the keys that verify it; see `read_header`."""
    try:
        body, codes = parts_of(data)
        version, found = body["format"], _parsed({**body})
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _damaged(path) from None
    keys = []
    if ring is not None:
        known = [(key, code) for key_id, code in codes if (key := ring.find(key_id)) is not None]
        if not known:
            raise KeyMissingError(
                f"the keys that signed {path} are missing; restore them", key_id=codes[0][0] if codes else None
            )
        keys = [key for key, code in known if fits(key, code, body, _PURPOSE)]
        if len(keys) != len(known):
            raise _damaged(path)
    if version != FORMAT:
        raise JournalError(f"{path}: baseline format {version!r} is unknown to this release; install a newer memgraph")
    if found.chain.store_id != store_id:
        raise JournalError(f"{path} is the baseline of another store; {_ADVICE}")
    return found, keys


def unverified_place(folder: Path) -> tuple[int, Position] | None:
    """Return up to which event the baseline claims to stand for the journal, and the place after it, for reports on a store that does not open."""
    try:
        found = _parsed({**json.loads(read_own(folder / HEADER))["body"]})
        return found.seq, found.position
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def check_rows(folder: Path, baseline: Baseline) -> None:
    """Compare the file of a baseline's rows with the header. Costs what hashing it costs.

    Raises
    ------
    JournalError
        It is missing, or not what was signed.
    """
    path, digest = baseline.path(folder), hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
    except OSError as error:
        raise JournalError(f"the baseline's rows in {path} cannot be read: {error.strerror}; {_ADVICE}") from None
    if digest.hexdigest() != baseline.sha256:
        raise _damaged(path)


def check_signers(folder: Path, signers: Iterable[SigningKey], current: SigningKey | None) -> None:
    """Refuse a baseline that the key in use at the journal's end has not signed.

    Raises
    ------
    JournalError
        Only an earlier key has signed it.
    """
    if current is not None and all(key.secret != current.secret for key in signers):
        raise JournalError(
            f"{folder / HEADER} is not signed with the key that signs the journal, {current.key_id}; {_ADVICE}"
        )


def checked_header(segments: Segments, store_id: str, ring: KeyRing | None) -> tuple[Baseline | None, list[SigningKey]]:
    """Return what `read_header` returns, once the rows are compared with the header, and nothing is missing.

    Raises
    ------
    JournalError
        As `read_header`; or the rows are not what was signed; or the header or the archive is missing.
    """
    folder = segments.folder
    found, keys = read_header(folder, store_id, ring)
    if found is not None:
        check_rows(folder, found)
        if not segments.is_whole:
            raise JournalError(
                f"the journal under {folder} begins with the segment {segments.first().segment}: archived segments are missing, and "
                f"history, purges and agents' views need them. Put them back into {folder / ARCHIVE}, or run "
                "`memgraph repair --from-backup FILE`"
            )
    elif files_in(folder / ARCHIVE) or (not segments.is_whole and (folder / FOLDER).exists()):
        raise JournalError(
            f"the journal under {folder} was compacted, and its baseline {folder / HEADER} is missing; {_ADVICE}"
        )
    return found, keys


def _parsed(body: dict[str, Any]) -> Baseline:
    del body["format"], body["signers"]
    used = KeyHistory(tuple(KeyUse(**use) for use in body.pop("used")["uses"]))
    chain, position = Chain(**body.pop("chain")), Position(**body.pop("position"))
    found = Baseline(chain=chain, position=position, named=NamedVectors(**body.pop("named")), used=used, **body)
    if Path(found.file).name != found.file or found.file.startswith("."):
        raise ValueError("names a file elsewhere")
    return found


def _damaged(path: Path) -> JournalError:
    return JournalError(f"the baseline is damaged: {path} is not what was signed; {_ADVICE}")
