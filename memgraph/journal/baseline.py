"""The baseline: all rows at an event, compressed, so that a rebuild need not replay what was before.

Its header says what it stands for, and is signed with the key in use at the journal's end, because nothing in the chain binds the rows.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from memgraph.errors import JournalError, KeyMissingError
from memgraph.journal.envelope import Chain, canonical
from memgraph.journal.keys.ring import KeyHistory, KeyRing, KeyUse
from memgraph.journal.vectors import NamedVectors
from memgraph.ports import Key, Row, SigningKey

BaselineRow = tuple[str, Key, Row]
FORMAT = 2
_ADVICE = "`memgraph repair` says what can be done"


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a baseline stands for: all events up to a commit.

    Attributes
    ----------
    chain : Chain
        The end of the journal's chain at that commit.
    named, used : NamedVectors, KeyHistory
        What the events up to there state about vectors, and which keys signed them.
    sha256 : str
        Of its packed rows.
    rows : int
    digest, schema_version : str
        Digest of the state, and the version of its rows.
    made_at, made_by : str
    signed_by : str
        Id of the key that signed the header.
    """

    chain: Chain
    named: NamedVectors
    used: KeyHistory
    sha256: str
    rows: int
    digest: str
    schema_version: str
    made_at: str
    made_by: str
    signed_by: str = ""

    @property
    def seq(self) -> int:
        """Number of the last event that it stands for."""
        return self.chain.seq

    def check_signer(self, current: SigningKey | None, path: Path | str) -> None:
        """Refuse a baseline that the key in use at the journal's end has not signed.

        Raises
        ------
        JournalError
            Only an earlier key has signed it.
        """
        if current is not None and self.signed_by != current.key_id:
            raise JournalError(
                f"the baseline in {path} is not signed with the key that signs the journal, {current.key_id}; {_ADVICE}"
            )


def packed_rows(rows: Iterable[BaselineRow]) -> tuple[bytes, int]:
    """Return rows as compressed lines of canonical JSON, and their number."""
    packer, parts, count = zlib.compressobj(6), [], 0
    for row in rows:
        parts.append(packer.compress(canonical(row) + b"\n"))
        count += 1
    return b"".join([*parts, packer.flush()]), count


def signed_header(baseline: Baseline, key: SigningKey) -> bytes:
    """Return a baseline's header, signed with a key."""
    body = asdict(replace(baseline, signed_by=key.key_id)) | {"format": FORMAT}
    return json.dumps({"body": body, "code": _code(key, body)}).encode()


def header_of(data: bytes, path: Path | str, store_id: str, ring: KeyRing | None) -> Baseline:
    """Return a baseline from its header.

    Parameters
    ----------
    ring : KeyRing or None
        If None, it is not verified.

    Raises
    ------
    JournalError
        It is not what was signed, is another store's, or is of a format that this release does not know.
    KeyMissingError
        The key that signed it is missing.
    """
    try:
        stored = json.loads(data)
        body, code = stored["body"], stored["code"]
        version = body.pop("format")
        used = KeyHistory(tuple(KeyUse(**use) for use in body["used"]["uses"]))
        parts: dict[str, Any] = {"chain": Chain(**body["chain"]), "named": NamedVectors(**body["named"]), "used": used}
        found = Baseline(**{**body, **parts})
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _damaged(path) from None
    if version != FORMAT:
        raise JournalError(f"{path}: baseline format {version!r} is unknown to this release; install a newer memgraph")
    if ring is not None:
        key = ring.find(found.signed_by)
        if key is None:
            raise KeyMissingError(
                f"the key that signed the baseline in {path} is missing: {found.signed_by}; restore it",
                key_id=found.signed_by,
            )
        if not hmac.compare_digest(_code(key, body | {"format": version}), str(code)):
            raise _damaged(path)
    if found.chain.store_id != store_id:
        raise JournalError(f"{path} holds the baseline of another store; {_ADVICE}")
    return found


def read_rows(baseline: Baseline, packed: bytes, path: Path | str) -> list[BaselineRow]:
    """Return the rows of a baseline, in the order in which they were written. They are verified before they are unpacked.

    Raises
    ------
    JournalError
        They are not what was signed.
    """
    if not isinstance(packed, bytes) or hashlib.sha256(packed).hexdigest() != baseline.sha256:
        raise _damaged(path)
    try:
        found = [orjson.loads(line) for line in zlib.decompress(packed).splitlines()]
    except (zlib.error, ValueError) as error:
        raise JournalError(f"the baseline's rows in {path} cannot be read: {error}") from None
    return [(table, key if isinstance(key, str) else (key[0], key[1]), row) for table, key, row in found]


def _code(key: SigningKey, body: dict[str, Any]) -> str:
    return hmac.digest(key.secret, b"memgraph baseline\x1f" + canonical(body), "sha256").hex()


def _damaged(path: Path | str) -> JournalError:
    return JournalError(f"the baseline in {path} is damaged: it is not what was signed; {_ADVICE}")
