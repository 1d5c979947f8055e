"""A forger who edits memgraph's projections, knows every format and recomputes every digest, but has no key.

Rows lie in one file with the events: they are edited by SQL. All other edits keep the length of a file; all keep its times.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import re
import sqlite3
import string
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import orjson
from blake3 import blake3

from tests.tables import bytes_of

WORD = re.compile(rb"[A-Za-z]{7,}")
_CODE_DIGITS = 64
_ALIGNED = 64
_NOTE_BYTES = 1024
_STATE = {
    "the state's digest": rb'"digest":"([0-9a-f]{64})"',
    "the state's sums": rb'"hashes":"(-?\d+)"',
    "the state's event": rb'"signature":"([0-9a-f]+)"',
}
_TEXTS = (("node", "body"), ("node", "key"), ("edge", "body"), ("state", "body"))
"""Columns of rows that are text."""


@dataclass
class Forgery:
    """An edit, and the forged words that must never be shown."""

    where: str
    what: str
    marks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Known:
    """Readable content of a store: words of its texts, titles, tags, and ids. `foreign` is an outcome that no memory has."""

    words: list[str]
    titles: list[str]
    tags: list[str]
    ids: list[str]
    foreign: str = "partial"


def put(path: Path, data: bytes) -> None:
    """Overwrite a file in place with equally many bytes, and restore its times."""
    before = path.stat()
    assert len(data) == before.st_size, path
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@contextmanager
def timeless(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a database to change it, and restore the times of its file."""
    before = path.stat()
    with closing(sqlite3.connect(path)) as raw, raw:
        yield raw
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


class Attacker:
    """Edits the files of one store. The store is closed."""

    def __init__(self, home: Path, known: Known, chance: random.Random) -> None:
        self._home = home
        self._known = known
        self._chance = chance
        (self._past,) = (home / "past").iterdir()
        self.places: dict[str, Callable[[str], Forgery]] = {
            "rows": self._in_rows,
            "rows and their codes": self._with_codes,
            "graph": lambda where: self._in_file(where, self.graph),
            "index": lambda where: self._in_index(where, home / "index" / "index.npz"),
            "past: rows": lambda where: self._in_file(where, self._past / "memgraph.db"),
            "past: index": lambda where: self._in_index(where, self._past / "index" / "index.npz"),
        }

    @property
    def rows(self) -> Path:
        return self._home / "memgraph.db"

    @property
    def graph(self) -> Path:
        (path,) = (self._home / "graph").glob("base-*")
        return path

    def forge(self, place: str) -> Forgery:
        """Make one edit at a place."""
        return self.places[place](place)

    def _in_file(self, where: str, path: Path) -> Forgery:
        data, before = bytes_of(path), path.stat()
        what, old, new, marks = self._edit(data)
        edited = data.replace(old, new, 1 if what == "a text once" else -1)
        if where == "graph":  # it is compressed
            path.write_bytes(gzip.compress(edited))
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        else:
            put(path, edited)
        return Forgery(where, what, marks)

    def _in_rows(self, where: str) -> Forgery:
        with timeless(self.rows) as raw:
            found = [raw.execute(f"SELECT CAST({column} AS BLOB) FROM {table}") for table, column in _TEXTS]
            what, old, new, marks = self._edit(b"\n".join(text for texts in found for (text,) in texts))
            for table, column in _TEXTS:
                kind = "TEXT" if column == "key" else "BLOB"
                edited = f"CAST(replace(CAST({column} AS TEXT), ?, ?) AS {kind})"
                raw.execute(f"UPDATE {table} SET {column} = {edited}", (old.decode(), new.decode()))
        return Forgery(where, what, marks)

    def _edit(self, data: bytes) -> tuple[str, bytes, bytes, list[str]]:
        """Choose what to edit; return its name, bytes of the data, equally many others, and the marks in them."""
        what = self._chance.choice(["a text", "a text once", "a title", "a tag", "an id", "an outcome", *_STATE])
        if what in _STATE and (found := list(re.finditer(_STATE[what], data))):
            one = self._chance.choice(found)
            digits = bytes(self._digit(char) for char in one[1])
            return what, one[0], one[0].replace(one[1], digits), []
        old, new = self._replacement(what, data)
        return what if what not in _STATE else "a text", old, new, [new.decode()]

    def _replacement(self, what: str, data: bytes) -> tuple[bytes, bytes]:
        """Return bytes of the file, and equally many different ones."""
        if what == "an outcome" and b"success" in data:
            return b"success", self._known.foreign.encode()
        kinds = {"a title": self._known.titles, "a tag": self._known.tags, "an id": self._known.ids}
        wanted = [one for one in kinds.get(what, self._known.words) if one.encode() in data]
        old = self._chance.choice(
            wanted or [one for one in self._known.words + self._known.ids if one.encode() in data]
        )
        if old in self._known.ids:
            place = self._chance.randrange(24, 36)
            return old.encode(), (old[:place] + chr(self._digit(ord(old[place]))) + old[place + 1 :]).encode()
        rest = "".join(self._chance.choices(string.ascii_lowercase, k=len(old) - 2))
        return old.encode(), f"Zq{rest}".encode()

    def _digit(self, char: int) -> int:
        """Return another digit if it was one."""
        digits = b"0123456789" if chr(char).isdigit() else b"abcdef" if chr(char) in "abcdef" else bytes([char])
        return self._chance.choice([one for one in digits if one != char] or [char])

    def _code(self, data: bytes) -> str:
        """Return a code like memgraph's but without the key: unkeyed, or with a key derived from public data."""
        with closing(sqlite3.connect(self._home / "memgraph.db")) as raw:
            (public,) = raw.execute("SELECT store_id, name, tenant FROM tenant").fetchall()
        keys = [None, bytes(32), *(hashlib.sha256(str(value).encode()).digest() for value in public)]
        key = self._chance.choice([*keys, "sha256"])
        if key == "sha256":
            return hashlib.sha256(data).hexdigest()
        return blake3(data, key=key).hexdigest() if key else blake3(data).hexdigest()

    def _in_index(self, where: str, path: Path) -> Forgery:
        name, _, rest = path.read_bytes().partition(b"\n")
        data = rest[_CODE_DIGITS:]
        size = int.from_bytes(data[:8], "little")
        header, rest = data[_ALIGNED : _ALIGNED + size], data[_ALIGNED + size :]
        marks = []
        if what := self._chance.choice(["a word", "an id", ""]):
            names = self._known.ids if what == "an id" else [word.lower() for word in self._known.words]
            old = self._chance.choice([name for name in names if name.encode() in header])
            place = self._chance.randrange(24, 36) if what == "an id" else 2
            new = old[:place] + "".join(chr(self._digit(ord(char))) if what == "an id" else "q" for char in old[place:])
            header = header.replace(old.encode(), new.encode())
            marks = [new] if what == "an id" else []
        else:
            what, place, places = "numbers", -size % _ALIGNED, []
            for _, dtype, length in json.loads(header)["arrays"]:
                count = np.dtype(dtype).itemsize * length
                places += [(place, dtype, count)] if length else []
                place += count + -count % _ALIGNED
            place, dtype, count = self._chance.choice(places)
            numbers = np.frombuffer(rest[place : place + count], dtype=dtype)
            rest = rest[:place] + np.roll(numbers[::-1], 1).tobytes() + rest[place + count :]
        forged = data[:_ALIGNED] + header + rest
        put(path, name + b"\n" + self._code(forged).encode() + forged)
        return Forgery(where, what, marks)

    def _with_codes(self, where: str) -> Forgery:
        """Change a row and the state as memgraph would, with codes that are made without the key."""
        with timeless(self.rows) as raw:
            rows = raw.execute("SELECT id, body FROM node WHERE CAST(body AS TEXT) LIKE '%\"content\"%'").fetchall()
            number, body = self._chance.choice(rows)
            word = self._chance.choice(WORD.findall(orjson.loads(body)["content"].encode())).decode()
            mark = "Zq" + "".join(self._chance.choices(string.ascii_lowercase, k=len(word) - 2))
            forged = body.replace(word.encode(), mark.encode())
            code = int(self._code(forged)[:16], 16) >> 1
            raw.execute("UPDATE node SET body = ?, code = ? WHERE id = ?", (forged, code, number))
            ((state,),) = raw.execute("SELECT body FROM state").fetchall()
            raw.execute("UPDATE state SET code = ?", (self._code(state),))
        return Forgery(where, "a row, its code, the state's", [mark])


def flip(path: Path, chance: random.Random) -> str:
    """Flip a bit of a significant byte, and keep the file's times."""
    data = bytearray(path.read_bytes())
    used = np.flatnonzero(np.frombuffer(bytes(data), dtype=np.uint8))  # most of a graph's file is empty
    place = int(used[chance.randrange(len(used))])
    data[place] ^= 1 << chance.randrange(8)
    put(path, bytes(data))
    return f"{path.name}, byte {place}"
