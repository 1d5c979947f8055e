"""What a compaction makes: the baseline, and the archive of the events before it.

The baseline is all rows at an event, compressed, so that a rebuild need not replay what was before. Its header says what it stands for, and is
signed with the key in use at the journal's end, because nothing in the chain binds the rows. A part of the archive is consecutive events,
compressed into one row.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from memgraph.errors import JournalError, KeyMissingError
from memgraph.journal.envelope import Chain, Line, LineError, canonical, parsed
from memgraph.journal.keyring import KeyHistory, KeyRing, KeyUse
from memgraph.journal.vectors import NamedVectors
from memgraph.ports import Key, Row, SigningKey

BaselineRow = tuple[str, Key, Row]
FORMAT = 2
ADVICE = "`memgraph repair` says what can be done"


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a baseline stands for: all events up to the end of `chain`, and what they state of vectors (`named`) and keys (`used`)."""

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
    return json.dumps({"body": body, "code": _code(key, canonical(body))}).encode()


def header_of(data: bytes, path: Path | str, store_id: str, ring: KeyRing | None) -> Baseline:
    """Return a baseline from its header, verified unless `ring` is None; raise `JournalError` or `KeyMissingError` for any other."""
    try:
        stored = json.loads(data)
        body, code = stored["body"], stored["code"]
        version = body.pop("format")
        used = KeyHistory(tuple(KeyUse(**use) for use in body["used"]["uses"]))
        parts: dict[str, Any] = {"chain": Chain(**body["chain"]), "named": NamedVectors(**body["named"]), "used": used}
        found = Baseline(**{**body, **parts})
        said, signed_by, code = canonical(body | {"format": version}), str(found.signed_by), str(code).encode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _damaged(path) from None
    if version != FORMAT:
        raise JournalError(f"{path}: baseline format {version!r} is unknown to this release; install a newer memgraph")
    if ring is not None:
        key = ring.find(signed_by)
        if key is None:
            raise KeyMissingError(
                f"the key that signed the baseline in {path} is missing: {signed_by}; restore it", key_id=signed_by
            )
        if not hmac.compare_digest(_code(key, said).encode(), code):
            raise _damaged(path)
    if found.chain.store_id != store_id:
        raise JournalError(f"{path} holds the baseline of another store; {ADVICE}")
    return found


def read_rows(baseline: Baseline, packed: bytes, path: Path | str) -> list[BaselineRow]:
    """Return the rows of a baseline, in the order in which they were written. They are verified before they are unpacked."""
    if not isinstance(packed, bytes) or hashlib.sha256(packed).hexdigest() != baseline.sha256:
        raise _damaged(path)
    try:
        found = [orjson.loads(line) for line in zlib.decompress(packed).splitlines()]
    except (zlib.error, ValueError) as error:
        raise JournalError(f"the baseline's rows in {path} cannot be read: {error}") from None
    return [(table, key if isinstance(key, str) else (key[0], key[1]), row) for table, key, row in found]


def _code(key: SigningKey, said: bytes) -> str:
    return hmac.digest(key.secret, b"memgraph baseline\x1f" + said, "sha256").hex()


def _damaged(path: Path | str) -> JournalError:
    return JournalError(f"the baseline in {path} is damaged: it is not what was signed; {ADVICE}")


def archive_row(lines: Sequence[Line]) -> tuple[int, int, str, bytes]:
    """Return the row of a part: first and last event, their types, and their lines."""
    return lines[0].seq, lines[-1].seq, orjson.dumps(_types(lines)).decode(), packed(lines)


def packed(lines: Iterable[Line]) -> bytes:
    """Return events as an archive holds them: lines of canonical JSON, compressed."""
    return zlib.compress(b"".join(line.data + b"\n" for line in lines), 6)


def unpacked(first: int, last: int, types: str, body: bytes) -> list[Line]:
    """Return the lines of a part, which must be what its row says. Raises `LineError`."""
    try:
        lines = [parsed(data) for data in zlib.decompress(body).splitlines()]
        said = first, last, orjson.loads(types)
    except (zlib.error, LineError, TypeError, ValueError) as error:
        raise LineError(f"an archived event cannot be read: {error}") from None
    if not lines or said != (lines[0].seq, lines[-1].seq, _types(lines)):
        raise LineError("the archive does not hold the events that it names")
    return lines


def _types(lines: Iterable[Line]) -> list[str]:
    return sorted({line.type for line in lines})
