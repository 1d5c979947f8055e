"""What a store's database holds, and changes that are made there behind the store's back."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memgraph.journal.opening import FILE, opened

ROWS = ("edge", "node", "gone", "state")
"""The tables of what the fold makes of the events."""


@contextmanager
def database(home: Path) -> Iterator[sqlite3.Connection]:
    """Connect to a store's database; what was changed is committed."""
    connection = sqlite3.connect(home / FILE)
    try:
        with connection:
            yield connection
    finally:
        connection.close()


def change(home: Path, statement: str, *values: Any) -> int:
    """Run a statement; return how many rows it changed."""
    with database(home) as connection:
        return connection.execute(statement, values).rowcount


def table(home: Path, name: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table."""
    with database(home) as connection:
        return sorted(connection.execute(f"SELECT * FROM {name}"), key=repr)


def tables(home: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all tables of the journal."""
    return {name: table(home, name) for name in ("tenant", "event", "head", "archive", "baseline", "vector")}


def raw_lines(home: Path) -> list[bytes]:
    """Return the events, archived ones first, each as a line of canonical JSON."""
    from memgraph.journal.head_file import HeadFile
    from memgraph.journal.journal import Journal
    from memgraph.journal.opening import identity_in

    made = opened(home)
    try:
        identity = identity_in(made)
        assert identity is not None
        journal = Journal(made, home, identity.store_id, None, heads=HeadFile(home, "none"), lock_timeout_s=0.0)
        return [line.data for line in journal.every_line(until=1 << 62)]
    finally:
        made.close()


def lines_of(home: Path) -> list[dict[str, Any]]:
    """Return the events, archived ones first: head, payload, salt and signature of each."""
    return [json.loads(line) for line in raw_lines(home)]


def change_payload(home: Path, old: str, new: str) -> None:
    """Change a text in the payloads of events."""
    changed = change(
        home,
        "UPDATE event SET payload = CAST(replace(CAST(payload AS TEXT), ?, ?) AS BLOB) WHERE instr(payload, CAST(? AS BLOB))",
        old,
        new,
        old,
    )
    assert changed, f"no event has {old}"


def harm_event(home: Path, seq: int) -> None:
    """Flip a bit in the payload of an event, or if it was purged, in its head."""
    with database(home) as connection:
        payload, head = connection.execute("SELECT payload, head FROM event WHERE seq = ?", (seq,)).fetchone()
        column, data = ("head", bytearray(head)) if payload is None else ("payload", bytearray(payload))
        data[len(data) // 2] ^= 1
        connection.execute(f"UPDATE event SET {column} = ? WHERE seq = ?", (bytes(data), seq))


def cut_events(home: Path, seq: int) -> int:
    """Remove all events after one; return their number."""
    return change(home, "DELETE FROM event WHERE seq > ?", seq)


def put_rows(home: Path, of: Path) -> None:
    """Put the rows of another closed store in place of those of this one."""
    with database(home) as connection:
        connection.execute("ATTACH ? AS other", (str(of / FILE),))
        for name in ROWS:
            connection.execute(f"DELETE FROM main.{name}")
            connection.execute(f"INSERT INTO main.{name} SELECT * FROM other.{name}")


class VectorTable:
    """The vectors of a model in the database. With each change the cache goes, so that it shows."""

    def __init__(self, home: Path, model: str = "fake") -> None:
        self.home = home
        self.model = model

    def rows(self) -> dict[int, bytes]:
        """Return the vectors by number."""
        with database(self.home) as connection:
            found = connection.execute("SELECT place, value FROM vector WHERE model = ?", (self.model,))
            return dict(found.fetchall())

    def put(self, row: int, data: bytes, *, at: int = 0) -> None:
        """Write bytes into a vector; it must be there, unless they are all of it."""
        before = self.rows().get(row, b"")
        values = (self.model, row, before[:at] + data + before[at + len(data) :])
        change(self.home, "INSERT OR REPLACE INTO vector (tenant, model, place, value) VALUES (1, ?, ?, ?)", *values)
        self.forget()

    def flip(self, row: int) -> None:
        """Flip a bit of a vector."""
        self.put(row, bytes([self.rows()[row][9] ^ 1]), at=9)

    def swap(self, one: int, other: int) -> None:
        """Exchange two vectors."""
        rows = self.rows()
        self.put(one, rows[other])
        self.put(other, rows[one])

    def cut(self, row: int, size: int = 0) -> None:
        """Shorten a vector to some bytes."""
        change(
            self.home, "UPDATE vector SET value = ? WHERE model = ? AND place = ?",
            self.rows()[row][:size], self.model, row,
        )  # fmt: skip
        self.forget()

    def remove(self, first: int = 0) -> None:
        """Remove the vectors from a number on."""
        change(self.home, "DELETE FROM vector WHERE model = ? AND place >= ?", self.model, first)
        self.forget()

    @property
    def cache(self) -> list[Path]:
        """The cache's files."""
        return sorted((self.home / "cache").glob(f"{self.model}.*"))

    def forget(self) -> None:
        """Remove the cache."""
        for path in self.cache:
            path.unlink()


def damage_cache(home: Path, how: Callable[[bytes], bytes]) -> None:
    """Change the bytes of each cache of vectors."""
    found = list((home / "cache").glob("*.f32"))
    assert found
    for path in found:
        path.write_bytes(how(path.read_bytes()))


def break_database(home: Path) -> None:
    """Replace a closed store's database by a file that is none."""
    forget_journal(home)
    (home / FILE).write_bytes(b"broken")


def make_newer(home: Path) -> None:
    """Let a later release have made the database."""
    change(home, "PRAGMA user_version = 99")


def forget_journal(home: Path) -> None:
    """Remove a store's database."""
    for suffix in ("", "-wal", "-shm"):
        (home / f"{FILE}{suffix}").unlink(missing_ok=True)


def copy_journal(home: Path, to: Path) -> None:
    """Copy a closed store's database into another folder."""
    to.mkdir(parents=True, exist_ok=True)
    with database(home) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(home / FILE, to / FILE)


def bytes_of(path: Path) -> bytes:
    """Return the bytes of a file, a compressed one's unpacked."""
    content = path.read_bytes()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def everything(home: Path) -> bytes:
    """Return the bytes of all files of a store, and what is compressed in its tables, unpacked."""
    with database(home) as connection:
        packed = connection.execute("SELECT body FROM archive UNION ALL SELECT body FROM baseline").fetchall()
    files = (bytes_of(path) for path in sorted(home.rglob("*")) if path.is_file())
    return b"\n".join([*files, *(zlib.decompress(body) for (body,) in packed)])
