"""What is left of a text in the files of a store."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard

RUN_WORDS = 8


def _files(home: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the bytes of every file, and of every part of an archive."""
    for path in sorted(home.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix == ".zst":
                data += zstandard.ZstdDecompressor().decompress(data)
            yield str(path.relative_to(home)), data
            start = data.find(b"PK\x03\x04")
            if start >= 0 and zipfile.is_zipfile(io.BytesIO(data[start:])):
                with zipfile.ZipFile(io.BytesIO(data[start:])) as archive:
                    yield from ((f"{path.name}:{name}", archive.read(name)) for name in archive.namelist())


def _forms(text: str) -> set[bytes]:
    """Return a text as files may hold it: raw, and escaped as JSON."""
    import json

    return {text.encode(), json.dumps(text)[1:-1].encode(), json.dumps(text, ensure_ascii=False)[1:-1].encode()}


@pytest.fixture
def traces() -> Callable[..., list[str]]:
    """List the files of a store that hold a text, or eight words of it in a row, whatever their case."""

    def find(home: Path, *texts: str) -> list[str]:
        wanted: set[bytes] = set()
        for text in texts:
            words = text.split()
            runs = {" ".join(words[start : start + RUN_WORDS]) for start in range(len(words) - RUN_WORDS + 1)}
            wanted |= {form.lower() for run in {text, *runs} for form in _forms(run)}
        return [name for name, data in _files(home) if any(one in data.lower() for one in wanted)]

    return find
