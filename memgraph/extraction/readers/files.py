"""What is read is foreign: files are opened within limits (gzipped or not), and their texts are cleaned."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO

from memgraph.disk.files import open_regular
from memgraph.errors import SourceError
from memgraph.extraction.secrets import redact
from memgraph.model.timestamps import to_iso
from memgraph.text import lazy_re as re

MAX_LINE_BYTES = 16 * 1024 * 1024
MAX_UNPACKED_BYTES = 8 * 1024 * 1024 * 1024
"""Maximum unpacked size, against decompression bombs."""
MAX_OUTPUT_CHARS = 8_000
"""Maximum characters of a call's or program's output, of which beginning and end are kept."""
MAX_SAID_CHARS = 4_000
"""Maximum characters of a statement by an agent or person."""
MAX_LINE_CHARS = 240
"""Maximum characters of a description."""
_MAX_UTF16_BYTES = 256 * 1024 * 1024
_MAX_HELD_BYTES = 16 * 1024 * 1024
"""An unpacked file of this size is held in memory, a larger one on disk."""
_CHUNK_BYTES = 1024 * 1024
_HEAD_BYTES = 8192
_LAST_DAY = 2_900_000
_UNDATED_START = datetime(2000, 1, 1, tzinfo=UTC)
_UNREADABLE = re.compile("[\ufffd\x00-\x08\x0e-\x1a\x1c-\x1f]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_BEGINS, _SPACE = re.compile(r"\n\s*|(?<=[.!?])\s+"), re.compile(r"\s+")
"""Where a sentence and a word begin."""
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[@-Z\\-_])")


@contextmanager
def opened(path: Path) -> Iterator[tuple[IO[bytes], str | None]]:
    """Open a text file, gzipped or not, for a block; UTF-16 is read as UTF-8.

    Yields
    ------
    (binary file, str or None)
        The seekable bytes, and why they end too early, if they do.

    Raises
    ------
    SourceError
        The file does not exist, is unreadable, or is not text.
    """
    problem = None
    try:
        raw: IO[bytes] = open_regular(path, follows_links=True)
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot be read: {getattr(error, 'strerror', None) or error}", path=path) from None
    try:
        if raw.read(2) == b"\x1f\x8b":
            raw, problem = _unpacked(raw)
        raw.seek(0)
        if (data := raw.read(2)) in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}:
            data += raw.read(_MAX_UTF16_BYTES)
            if len(data) > _MAX_UTF16_BYTES:
                raise SourceError("is in UTF-16 and too large for that; convert it to UTF-8", path=path)
            raw.close()
            raw = io.BytesIO(data.decode("utf-16", "replace").encode())
        raw.seek(0)
        head = raw.read(_HEAD_BYTES).decode("utf-8", errors="replace")
        if len(_UNREADABLE.findall(head)) * 5 > len(head):
            raise SourceError("contains binary data, not UTF-8 text", path=path)
        raw.seek(0)
        yield raw, problem
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror or error}", path=path) from None
    finally:
        raw.close()


def _unpacked(packed: IO[bytes]) -> tuple[IO[bytes], str | None]:
    """Return a copy of the content of a gzip file, and why it ends too early, if it does."""
    packed.seek(0)
    copy: IO[bytes] = SpooledTemporaryFile(_MAX_HELD_BYTES)  # noqa: SIM115 (closed by the caller)
    with packed, gzip.GzipFile(fileobj=packed, mode="rb") as content:
        while copy.tell() < MAX_UNPACKED_BYTES:
            try:
                chunk = content.read1(_CHUNK_BYTES)
            except EOFError:
                return copy, "the gzip data is truncated; everything before that was read"
            except (OSError, zlib.error):
                return copy, "the gzip data is damaged; the rest was not read"
            if not chunk:
                return copy, None
            copy.write(chunk)
    return copy, f"unpacks to more than {MAX_UNPACKED_BYTES:,} bytes; the rest was not read"


def lines(stream: IO[bytes], limit: int = MAX_LINE_BYTES, offset: int = 0) -> Iterator[tuple[int, bytes, bool]]:
    r"""Yield (offset after it, line, whether it ended in \n); of an over-long line only slightly more than `limit`."""
    while line := stream.readline(limit + 2):
        offset += len(line)
        rest = line
        while not rest.endswith(b"\n") and (rest := stream.readline(_CHUNK_BYTES)):
            offset += len(rest)
        terminated = rest.endswith(b"\n")
        yield offset, line.removesuffix(b"\n").removesuffix(b"\r"), terminated


def text_lines(stream: IO[bytes], limit: int = 64 * 1024) -> Iterator[str]:
    """Yield each line as text with invalid UTF-8 replaced; lines over `limit` bytes are truncated."""
    for _, line, _ in lines(stream, limit):
        yield line[:limit].decode("utf-8-sig", errors="replace")


def ending(path: Path) -> str:
    """Return a file name's last suffix in lower case, ignoring that of gzip."""
    name = path.name.lower().removesuffix(".gz")
    return name[name.rfind(".") :] if "." in name else ""


def files_below(folder: Path, endings: frozenset[str], *, hidden: bool = False) -> list[Path]:
    """Return the files below a directory that end in one of `endings` (gzipped ones, too), in sorted order.

    Symbolic links are not followed: they may lead anywhere, and in circles. Hidden files and directories are skipped by
    default; an unreadable directory counts as empty.
    """
    found: list[Path] = []
    for place, folders, names in os.walk(folder, followlinks=False):
        if not hidden:
            folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(place, name)
            if ending(path) in endings and (hidden or not name.startswith(".")) and not path.is_symlink():
                found.append(path)
    return sorted(found)


def storable_text(text: str) -> str:
    """Return `text` without unstorable characters: NUL and lone surrogates."""
    return _UNSTORABLE.sub("", text)


def shortened(text: str, limit: int) -> str:
    """Return `text` if it fits, otherwise its beginning and end: logs report failures at their end.

    Secrets are redacted before truncation: half of one would not be recognised.
    """
    if len(text) <= limit:
        return text
    text = redact(text).value
    if len(text) <= limit:
        return text
    half = (limit - 40) // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters cut …]\n{text[-half:]}"


def cleaned(value: object, limit: int) -> str:
    """Return a text in storable form: shortened, stripped, without terminal codes; "" for other values."""
    if not isinstance(value, str):
        return ""
    text = shortened(value, 2 * limit)
    return storable_text(shortened(without_ansi(text).replace("\r\n", "\n").strip(), limit))


def one_line(value: object, limit: int = MAX_LINE_CHARS) -> str:
    """Return a text as one line of at most `limit` characters."""
    return beginning(" ".join(cleaned(value, 8 * limit).split()), limit)


def beginning(text: str, limit: int) -> str:
    """Return `text` if it fits, otherwise its beginning and an ellipsis; no secret is cut in half."""
    return text if len(text) <= limit else f"{redact(text).value[: limit - 1]}…"


def end(text: str, limit: int) -> str:
    """Return `text` if it fits, otherwise its end, from where a line, sentence or word begins; no secret is cut in half."""
    if len(text) <= limit:
        return text
    last = redact(text).value[-limit:]
    begins = _BEGINS.search(last, 0, limit // 2) or _SPACE.search(last, 0, limit // 2)
    return last[begins.end() :] if begins else last


def named(value: object, default: str) -> str:
    """Return a text or integer as a storable name, or `default`."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**18:
        return str(value)
    return one_line(value, 300) or default


def without_ansi(text: str) -> str:
    """Return a text without terminal escape sequences."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def time_of(value: object) -> str | None:
    """Return an ISO 8601 text in canonical form, or None if it is invalid."""
    if not isinstance(value, str) or len(value) > 64:
        return None
    try:
        return to_iso(value)
    except ValueError:
        return None


def changed_at(path: Path) -> str:
    """Return a file's modification time, used as the time of an undated log's run."""
    try:
        return to_iso(datetime.fromtimestamp(int(path.stat().st_mtime), UTC))
    except (OSError, OverflowError, ValueError):
        return undated(0)


def undated(number: int) -> str:
    """Return the time assigned to an undated trial: trial `number` is that day after 2000-01-01, UTC.

    This keeps the order, precedes everything that is dated, and does not depend on the time of reading.
    """
    return to_iso(_UNDATED_START + timedelta(days=min(max(number, 0), _LAST_DAY)))
